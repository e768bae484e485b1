-- The ledger's scripts use only what Redis' Lua and LuaJIT execute identically: string functions without locale,
-- whole numbers, decimal escapes, no iteration over tables, and a list of known commands.
local bc = require "jit.bc"

local FOLDER = "lua/ledger/"
local COMMON = { "session", "rules", "limits", "away" }
local SCRIPTS = { "admit", "settle", "turn", "see", "view", "reset", "peek", "leave", "merge" }

local function set(words)
  local found = {}
  for word in words:gmatch "%S+" do found[word] = true end
  return found
end

local GLOBALS = set "string tonumber redis KEYS ARGV"
local STRING = set "byte char find rep sub"
local FORBIDDEN = set [[goto pairs ipairs next select unpack table math os io bit struct cmsgpack cjson require load
  loadstring setfenv getfenv setmetatable getmetatable rawget rawset tostring type error pcall xpcall print]]
local TIME = { told = true, ["tell_second()"] = true }
local COMMANDS = set "TIME GET SET GETRANGE SETRANGE EXPIRE DEL HSET HGET HGETALL HLEN"

local function text_of(name)
  local file = assert(io.open(FOLDER .. name .. ".lua", "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

-- The tokens as { kind, text, line }, without comments and space.
local function tokens(text)
  local found, at, line = {}, 1, 1
  local function take(kind, pattern)
    local from, to = text:find("^" .. pattern, at)
    if not from then return false end
    local piece = text:sub(from, to)
    if kind then found[#found + 1] = { kind = kind, text = piece, line = line } end
    line = line + select(2, piece:gsub("\n", ""))
    at = to + 1
    return true
  end
  while at <= #text do
    local _ = take(nil, "%s+") or take(nil, "%-%-[^\n]*") or take("name", "[%a_][%w_]*") or take("number", "%d[%w.]*")
      or take("string", '"[^"\n]*"') or take("op", "%.%.%.?") or take("op", "[~=<>]=") or take("op", "[%[%]{}()%%+*/<>=,;.#-]")
      or error(("line %d: not in the subset: %s"):format(line, text:sub(at, at + 10)))
  end
  return found
end

-- The arguments of the call whose "(" is at `i`, each as concatenated tokens.
local function arguments(list, i)
  local args, depth, this = {}, 0, {}
  repeat
    local token = list[i]
    if token.text == "(" or token.text == "{" then depth = depth + 1 end
    if token.text == ")" or token.text == "}" then depth = depth - 1 end
    if depth == 1 and token.text == "," then
      args[#args + 1], this = table.concat(this), {}
    elseif not (depth == 1 and token.text == "(") then
      this[#this + 1] = token.text
    end
    i = i + 1
  until depth == 0
  this[#this] = nil
  if #this > 0 then args[#args + 1] = table.concat(this) end
  return args
end

local CALLS = {
  find = function(args) return #args == 4 and args[4] == "true", "find's fourth argument is true (plain)" end,
  rep = function(args) return #args == 2, "rep takes two arguments" end,
  tonumber = function(args)
    local fine = #args == 1 and (args[1]:match "^ARGV" or TIME[args[1]])
    return fine, "tonumber reads ARGV and TIME alone"
  end,
  call = function(args)
    return COMMANDS[(args[1] or ""):match '^"(%u+)"$'], "a command is named as it stands, one of the known"
  end,
}

local function faults_of(name, text)
  local faults, list = {}, tokens(text)
  local function fault(token, why) faults[#faults + 1] = ("%s.lua:%d: %s: %s"):format(name, token.line, token.text, why) end
  for i, token in ipairs(list) do
    local before, after = list[i - 1] or { text = "" }, list[i + 1] or { text = "" }
    if token.kind == "name" and FORBIDDEN[token.text] then fault(token, "is not in the subset") end
    if token.kind == "name" and before.text == "." and list[i - 2].text == "string" and not STRING[token.text] then
      fault(token, "is none of string's agreed functions")
    end
    if token.kind == "name" and CALLS[token.text] and after.text == "(" and before.text ~= "function" then
      local fine, why = CALLS[token.text](arguments(list, i + 1))
      if not fine then fault(token, why) end
    end
    if token.kind == "number" and not token.text:match "^%d+$" then fault(token, "numbers are decimal and whole") end
    if token.kind == "string" then
      for escape in token.text:gmatch "\\(%d?%d?%d?.?)" do
        if not escape:match "^%d" then fault(token, "escapes are decimal") end
      end
      if before.text:match "^[<>]=?$" or after.text:match "^[<>]=?$" then fault(token, "strings are not ordered") end
    end
  end
  return faults
end

-- Global names that a chunk reads and writes, from its bytecode.
local function globals_of(chunk)
  local read, written, out = {}, {}, {}
  bc.dump(chunk, { write = function(_, ...)
    for _, piece in ipairs { ... } do out[#out + 1] = piece end
  end, flush = function() end, close = function() end }, true)
  for op, name in table.concat(out):gmatch "(G[GS]ET)[^\n;]*; \"([^\"]*)\"" do
    (op == "GGET" and read or written)[name] = true
  end
  return read, written
end

-- The complete script; only leave and merge include "away".
local function whole(name)
  local texts = {}
  for _, common in ipairs(COMMON) do
    if common ~= "away" or name == "leave" or name == "merge" then texts[#texts + 1] = text_of(common) end
  end
  texts[#texts + 1] = "return (function()\n" .. text_of(name) .. "\nend)()"
  return table.concat(texts, "\n")
end

describe("the ledger's scripts", function()
  for _, names in ipairs { COMMON, SCRIPTS } do
    for _, name in ipairs(names) do
      it("use only the common subset: " .. name, function()
        assert.same({}, faults_of(name, text_of(name)))
      end)
    end
  end

  for _, name in ipairs(SCRIPTS) do
    it("read only the allowed globals and write none: " .. name, function()
      local read, written = globals_of(assert(loadstring(whole(name), "=" .. name)))
      assert.same({}, written)
      for global in pairs(read) do assert(GLOBALS[global], name .. ".lua reads the global " .. global) end
      assert(read.redis, "the bytecode was not read")
    end)

    it("begin with their contract: " .. name, function()
      local text = text_of(name)
      assert.truthy(text:find("^%-%- " .. name .. ": "))
      assert.truthy(text:find("\n-- KEYS ", 1, true))
      assert.truthy(text:find("\n-- Returns ", 1, true))
    end)
  end

  it("are all checked", function()
    local found = {}
    for path in io.popen("ls " .. FOLDER):lines() do found[#found + 1] = path:match "^(.*)%.lua$" end
    local known = {}
    for _, names in ipairs { COMMON, SCRIPTS } do
      for _, name in ipairs(names) do known[#known + 1] = name end
    end
    table.sort(found)
    table.sort(known)
    assert.same(known, found)
  end)

  it("outside the subset are reported", function()
    local function caught(text, why)
      local faults = faults_of("x", text)
      assert.equal(1, #faults, text)
      assert.truthy(faults[1]:find(why, 1, true), faults[1])
    end
    caught('local a = find(s, "b")', "plain")
    caught('local a = find(s, "b", 1, false)', "plain")
    caught('local a = string.format("x")', "agreed")
    caught('local a = rep("x", 2, ",")', "two arguments")
    caught('local a = "\\x41"', "decimal")
    caught('local a = "\\n"', "decimal")
    caught('local a = 0x10', "decimal")
    caught('local a = 1.5', "whole")
    caught('if a < "b" then end', "ordered")
    caught('local a = tonumber(x)', "ARGV")
    caught('call("KEYS", 1)', "known")
    caught('for _ in pairs(t) do end', "subset")
    assert.has_error(function() faults_of("x", "local a = s:len()") end)
    assert.has_error(function() faults_of("x", "local a = 2 ^ 3") end)
  end)
end)
