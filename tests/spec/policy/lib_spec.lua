-- policies/lib: Lua that policies share by require "lib.NAME".
local ffi = require "ffi"

local xxhash = ffi.load "libxxhash.so.0"
pcall(ffi.cdef, [[
  typedef struct { uint64_t low, high; } toolgate_spec_hash;
  toolgate_spec_hash XXH3_128bits(const void *data, size_t length);
]])

local function hash(bytes) return xxhash.XXH3_128bits(bytes, #bytes).low end

-- As the gate hashes a chain of texts: each with the hash so far before it.
local function chain(first, ...)
  local so_far = first
  for _, one in ipairs { ... } do
    local both = ffi.new("uint64_t[2]", so_far, one)
    so_far = hash(ffi.string(both, 16))
  end
  return so_far
end

local paths = [[
-- Which paths are inside.
local M = { allowed = { "src/", "docs/" } }
function M.inside(path)
  for _, prefix in ipairs(M.allowed) do
    if path:sub(1, #prefix) == prefix then return true end
  end
  return false
end
return M
]]

local function tool(name, head, body)
  return ([==[
-- %s: runs here.
%s
return tool "%s" {
  description = "Run.", effects = "read",
  schema = params({ path = optional(str "Where") }, { open = true }),
  %s
}
]==]):format(name, head, name, body)
end

local uses = tool("t", 'local paths = require "lib.paths"', [[
  check = function(args) if not paths.inside(args.path) then return refuse("outside", "No.", "Stop.") end end,
  run = function(args) return { first = paths.allowed[1], count = #paths.allowed } end]])

local shared = [[
-- What several policies declare alike.
return { id = shape "uuid", drafts = when { mode = "draft" } : refuses("drafts", "No drafts."), old = { "v1", "v2" },
         large = above(100), hidden = { "email" }, limits = { calls_per_turn = 9 } }
]]

local declares = tool("t", 'local shared = require "lib.shared"', [[
  ids = { id = shared.id }, redact = shared.hidden, limits = shared.limits,
  rules = { shared.drafts, when { mode = shared.old } : refuses("old", "Gone."),
            when { limit = shared.large } : refuses("large", "Too many.") },
  run = function() return { email = "ana@example.com", name = "Ana" } end]])

describe("require", function()
  it("gives policies what they declare: ids, rules, conditions, lists and tables", function()
    local client = daemon.start { policies = { ["lib/shared.lua"] = shared, ["t.lua"] = declares } }:connect()
    for code, arguments in pairs { drafts = { mode = "draft" }, old = { mode = "v2" }, large = { limit = 101 } } do
      assert.equal(code, verdict(client:calls("t", arguments)).code)
    end
    local result = text(client:calls("t", { mode = "new", limit = 5 }))
    assert.truthy(result:find("Ana", 1, true) and not result:find("ana@example.com", 1, true), result)
  end)

  it("gives all policies what a file of lib returns", function()
    local client = daemon.start { policies = { ["lib/paths.lua"] = paths, ["t.lua"] = uses,
      ["u.lua"] = uses:gsub("\"t\"", "\"u\"") } }:connect()
    for _, name in ipairs { "t", "u" } do
      assert.equal("outside", verdict(client:calls(name, { path = "/etc" })).code)
      local result = client:calls(name, { path = "src/a" })
      assert.truthy(text(result):find('"first":"src/"', 1, true), text(result))
    end
  end)

  it("runs each file once, before the policies, in the order in which they need each other", function()
    local client = daemon.start { policies = {
      ["lib/a.lua"] = 'local b = require "lib.b"\nreturn { name = "a" .. b.name, same = b.list }',
      ["lib/b.lua"] = 'return { name = "b", list = { 1, 2 } }',
      ["t.lua"] = tool("t", 'local a, b = require "lib.a", require("lib.b")\nlocal same = a.same == b.list', [[
        run = function() return { name = a.name, same = same, n = #b.list } end]]) } }:connect()
    local said = text(client:calls("t", {}))
    for _, part in ipairs { '"name":"ab"', '"same":true', '"n":2' } do assert.truthy(said:find(part, 1, true), said) end
  end)

  it("gives tables that all of Lua's words read, while the file loads and later", function()
    local body = [[local list, keys, copied = {}, 0, {}
      for i, v in ipairs(shared.list) do list[i] = v end
      for _ in pairs(shared) do keys = keys + 1 end
      local step = next
      for k, v in step, shared do copied[k] = v end
      local n = { #list, keys, #shared.list, table.concat(shared.list, "+"), (unpack(shared.list)),
                  type(shared) == "table" and copied.list[2] }]]
    local head = 'local shared = require "lib.shared"\n' .. body .. '\nlocal then_ = table.concat(n, " ")'
    local client = daemon.start { policies = { ["lib/shared.lua"] = "return { list = { 7, 8 }, n = 1 }",
      ["t.lua"] = tool("t", head, "run = function() " .. body .. ' return { now = table.concat(n, " "), before = then_ } end') } }
      :connect()
    local said = text(client:calls("t", {}))
    assert.truthy(said:find('"now":"2 2 2 7+8 7 8"', 1, true), said)
    assert.truthy(said:find('"before":"2 2 2 7+8 7 8"', 1, true), said)
  end)

  it("lets its functions read what the hook's own functions could", function()
    local client = daemon.start { policies = {
      ["lib/h.lua"] = [[return { seen = function(call) return call.facts.seen end,
                                 names = function(args) local n = 0 for _ in pairs(args) do n = n + 1 end return n end }]],
      ["t.lua"] = tool("t", 'local h = require "lib.h"', [[
        check = function(args, call) if h.seen(call) then return refuse("seen", "Seen.", "Stop.") end end,
        run = function(args) return { names = h.names(args) } end,
        result = function() return ok { facts = { seen = true } } end]]) } }:connect()
    local session = client_of.session("s", { turn = 1 })
    assert.truthy(text(client:calls("t", { path = ("x"):rep(100000), a = 1 }, session)):find('"names":2', 1, true))
    assert.equal("seen", verdict(client:calls("t", { b = 1 }, session)).code)
  end)

  it("says of a failing function where it failed, and whose hook it was", function()
    local gate = daemon.start { policies = {
      ["lib/bad.lua"] = "return {\n  f = function(x)\n    return x.y.z\n  end }",
      ["t.lua"] = tool("t", 'local bad = require "lib.bad"', "check = function(args) bad.f(args) end") } }
    assert.equal("policy_error", gate:connect():checks("t", {}).error_class)
    local last = gate:status().policy_faults[1].last
    assert.truthy(last:find "t.lua:6: check: ", last)
    assert.truthy(last:find "lib/bad.lua:3: ", last)
  end)

  it("is loaded again when a file of lib changes, also when lib is new", function()
    local gate = daemon.start { policies = { ["echo.lua"] = require("fixtures").echo } }
    os.execute("mkdir " .. gate.policies .. "/lib")
    gate:write_policy("lib/paths.lua", paths)
    gate:write_policy("t.lua", uses)
    local client, n = gate:connect(), 0
    local function is_outside()
      n = n + 1
      return verdict(client:calls("t", { path = "/etc/" .. n })).code == "outside"
    end
    process.eventually("the policy is loaded", is_outside)
    gate:write_policy("lib/paths.lua", (paths:gsub('"src/"', '"/etc"')))
    process.eventually("lib is loaded again", function() return not is_outside() end)
  end)
end)

describe("a file of lib", function()
  local directory
  before_each(function()
    directory = process.directory()
    os.execute("mkdir -p " .. directory .. "/policies/lib")
  end)

  local function write(name, source) process.write(directory .. "/policies/" .. name, source) end

  local function test(...)
    local child = process.start({ daemon.binary, "test", "policies", ... },
                                { stdin = "/dev/null", stdout = directory .. "/out", stderr = directory .. "/err",
                                  directory = directory })
    local _, code = child:wait()
    return process.read(directory .. "/out") .. process.read(directory .. "/err"), code
  end

  it("is refused with its line and what to do", function()
    local mistakes = {
      { "t.lua", 'local x = require "lib.pahts"\n' .. uses, 't.lua:1: require "lib.pahts": there is no file', '"lib.paths"' },
      { "t.lua", 'local x = require "socket"\n' .. uses, 't.lua:1: require: expected "lib.NAME"' },
      { "t.lua", 'local x = require "lib.../x"\n' .. uses, 't.lua:1: require: expected "lib.NAME"' },
      { "t.lua", 'local x = require "lib/paths"\n' .. uses, 't.lua:1: require: expected "lib.NAME"' },
      { "t.lua", "local x = require(5)\n" .. uses, 't.lua:1: require: expected "lib.NAME"' },
      { "t.lua", tool("t", "", 'run = function() return require "lib.paths" end'), "while the policy loads" },
      { "t.lua", 'local p = require "lib.paths"\np.allowed[3] = "x"\n' .. uses, "t.lua:2: ", "is read-only" },
      { "lib/x.lua", "return 5", "lib/x.lua:1: expected the file to return one table" },
      { "lib/x.lua", "", "expected the file to return one table" },
      { "lib/x.lua", 'return tool "x" {}', "a policy belongs beside the folder lib" },
      { "lib/x.lua", "return { f = retrun }", "lib/x.lua:1: there is no builtin or global 'retrun'" },
      { "lib/x.lua", "local n = 0\nreturn { f = function() n = n + 1 end }", "lib/x.lua:2: keeps state between calls" },
      { "lib/x.lua", 'local x = require "lib.x"\nreturn { x = x }', 'lib/x.lua:1: require "lib.x": the two files need' },
      { "lib/x.lua", "while true do end", "lib/x.lua: took longer to load than the 200 ms" },
      { "lib/x.lua", "return { x = '" .. ("x"):rep(1048576) .. "' }", "lib/x.lua: expected at most 1048576 bytes" },
    }
    for _, mistake in ipairs(mistakes) do
      write("lib/x.lua", "return {}")
      write("lib/paths.lua", paths)
      write("t.lua", uses)
      write(mistake[1], mistake[2])
      local said, code = test()
      assert.equal(1, code, mistake[2]:sub(1, 60))
      for i = 3, #mistake do assert.truthy(said:find(mistake[i], 1, true), said) end
    end
  end)

  it("is refused if others need it and it needs them", function()
    write("lib/a.lua", 'local b = require "lib.b"\nreturn { b = b }')
    write("lib/b.lua", '\nlocal a = require "lib.a"\nreturn { a = a }')
    local said, code = test()
    assert.equal(1, code)
    assert.truthy(said:find('lib/b.lua:2: require "lib.a": the two files need each other', 1, true), said)
  end)

  it("is no policy, and is counted by test --coverage", function()
    write("lib/paths.lua", paths)
    write("lib/x_spec.lua", "this is not Lua that toolgate reads")
    local examples = '  examples = { { "outside", args = { path = "/etc" }, gives = "refuse outside" } } }\n'
    local source = uses:gsub('optional%(str "Where"%)', 'str "Where"'):gsub("}\n$", examples)
      :gsub("end\n  examples", "end,\n  examples")
    write("t.lua", source)
    local said, code = test "--coverage"
    assert.equal(0, code, said)
    assert.truthy(said:find("1 passed, 0 failed", 1, true), said)
    assert.truthy(said:find "\nlib%.paths +0", said)
  end)

  it("that stalled the process is quarantined with the policies that need it, until one of them changes", function()
    write("lib/paths.lua", paths)
    write("t.lua", uses)
    write("echo.lua", require("fixtures").echo)
    local modules = chain(0ULL, hash "lib.paths", hash(paths))
    local function start()
      local line = bit.tohex(chain(hash(uses), modules), 16) .. " stall " .. directory .. "/policies/t.lua\n"
      os.execute("mkdir -p -m 700 " .. directory .. "/s.state")
      process.write(directory .. "/s.state/quarantine", line:rep(2))
      return daemon.start { policies = directory .. "/policies", socket = directory .. "/s" }
    end
    local client = start():connect()
    assert.equal("policy_error", client:checks("t", { path = "src/a" }).error_class)
    assert.equal("pass", client:checks("echo", { text = "x" }).verdict)
    daemon.stop_all()
    write("lib/paths.lua", paths .. "\n")
    assert.equal("pass", start():connect():checks("t", { path = "src/a" }).verdict)
    daemon.stop_all()
    write("lib/paths.lua", "-- calls no function\n" .. paths)
    os.execute("mkdir -p -m 700 " .. directory .. "/s.state")
    process.write(directory .. "/s.state/quarantine",
                  (bit.tohex(hash("-- calls no function\n" .. paths), 16) .. " stall " .. directory
                   .. "/policies/lib/paths.lua\n"):rep(2))
    local gate = daemon.start { policies = directory .. "/policies", socket = directory .. "/s" }
    assert.equal("policy_error", gate:connect():checks("t", { path = "src/a" }).error_class)
    assert.truthy(gate:status().quarantined[1].file:find "lib/paths.lua")
    assert.truthy(gate:status().policy_faults[1].last:find "lib/paths.lua stalled or crashed")
  end)
end)
