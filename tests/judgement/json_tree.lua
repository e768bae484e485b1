-- JSON as a tree that keeps what a Lua table loses: the spelling of numbers, the order of members, empty lists.
-- A node is { kind = "object", { key, node }, … }, { kind = "array", node, … } or { kind, text } of a scalar: `text`
-- is a string's characters, or the literal of a number, boolean or null.
local json = require("cjson").new()

local M = {}

local read

local function skip(text, at)
  return text:find("[^ \t\r\n]", at) or #text + 1
end

local function read_string(text, at)
  local to = at
  repeat
    to = text:find('["\\]', to + 1)
    local escape = text:byte(to) == 92
    if escape then to = to + 1 end
  until not escape
  local literal = text:sub(at, to)
  local plain = literal:find("\\", 1, true) and json.decode("[" .. literal .. "]")[1] or literal:sub(2, -2)
  return { kind = "string", text = plain }, to + 1
end

local function read_object(text, at)
  local node = { kind = "object" }
  at = skip(text, at + 1)
  while text:sub(at, at) ~= "}" do
    local key, value
    key, at = read_string(text, at)
    value, at = read(text, skip(text, at) + 1)
    node[#node + 1] = { key = key.text, value = value }
    at = skip(text, at)
    if text:sub(at, at) == "," then at = skip(text, at + 1) end
  end
  return node, at + 1
end

local function read_array(text, at)
  local node = { kind = "array" }
  at = skip(text, at + 1)
  while text:sub(at, at) ~= "]" do
    node[#node + 1], at = read(text, at)
    at = skip(text, at)
    if text:sub(at, at) == "," then at = skip(text, at + 1) end
  end
  return node, at + 1
end

function read(text, at)
  at = skip(text, at)
  local first = text:sub(at, at)
  if first == "{" then return read_object(text, at) end
  if first == "[" then return read_array(text, at) end
  if first == '"' then return read_string(text, at) end
  local to = (text:find("[,%]} \t\r\n]", at) or #text + 1) - 1
  local literal = text:sub(at, to)
  local kind = literal == "null" and "null" or (literal == "true" or literal == "false") and "boolean" or "number"
  return { kind = kind, text = literal }, to + 1
end

-- The tree of a well-formed text.
function M.read(text)
  return (read(text, 1))
end

function M.quote(text)
  return json.encode(text)
end

function M.write(node)
  local parts = {}
  if node.kind == "object" then
    for i, member in ipairs(node) do parts[i] = M.quote(member.key) .. ":" .. M.write(member.value) end
    return "{" .. table.concat(parts, ",") .. "}"
  elseif node.kind == "array" then
    for i, item in ipairs(node) do parts[i] = M.write(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  return node.kind == "string" and M.quote(node.text) or node.text
end

function M.string(text) return { kind = "string", text = text } end

function M.get(object, key)
  for _, member in ipairs(object) do
    if member.key == key then return member.value end
  end
end

-- A copy of an object in which `key` has another value, or with value nil is left out; a new key goes to the end.
function M.with(object, key, value)
  local copy, found = { kind = "object" }, false
  for _, member in ipairs(object) do
    local same = member.key == key
    found = found or same
    if not same then copy[#copy + 1] = member
    elseif value then copy[#copy + 1] = { key = key, value = value } end
  end
  if value and not found then copy[#copy + 1] = { key = key, value = value } end
  return copy
end

-- The object with one member's name changed, in its place.
function M.renamed(object, from, to)
  local copy = { kind = "object" }
  for i, member in ipairs(object) do
    copy[i] = member.key == from and { key = to, value = member.value } or member
  end
  return copy
end

-- Alike as JSON: members in any order, numbers by their value.
function M.alike(a, b)
  if a.kind ~= b.kind then return false end
  if a.kind == "object" then
    if #a ~= #b then return false end
    for _, member in ipairs(a) do
      local other = M.get(b, member.key)
      if not other or not M.alike(member.value, other) then return false end
    end
    return true
  elseif a.kind == "array" then
    if #a ~= #b then return false end
    for i, item in ipairs(a) do
      if not M.alike(item, b[i]) then return false end
    end
    return true
  end
  return a.text == b.text or (a.kind == "number" and tonumber(a.text) == tonumber(b.text))
end

return M
