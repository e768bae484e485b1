-- require "toolgate": the C module with which operators test policies in their own busted specs.

local folder_of_module = daemon.binary:match "^(.*)/"
local present = io.open(folder_of_module .. "/toolgate.so")

if not present then
  describe('require "toolgate"', function()
    pending(folder_of_module .. "/toolgate.so is not there: sanitizers need a host built with them")
  end)
  return
end
present:close()
package.cpath = folder_of_module .. "/?.so;" .. package.cpath
local toolgate = require "toolgate"

describe('require "toolgate"', function()
  local folder, gate

  setup(function()
    folder = process.directory()
    for _, name in ipairs { "echo", "create_task", "outcome" } do
      process.write(folder .. "/" .. name .. ".lua", fixtures[name])
    end
    process.write(folder .. "/tools.json", fixtures.agent_tools)
  end)
  before_each(function() gate = toolgate.load(folder, { tools = { folder .. "/tools.json" } }) end)

  it("runs a call through the whole pipeline", function()
    local said = gate:call("echo", { text = "hello" })
    assert.equal("pass", said.verdict)
    assert.equal("ok", said.class)
    assert.is_true(said.valid)
    assert.same({ text = "hello" }, said.arguments)
    assert.same({ said = "hello" }, said.result)
    assert.equal("echo", said.tool)
    assert.equal("local", said.ledger)
  end)

  it("reads arguments that arrive as text or in a wrapper", function()
    assert.same({ text = "hello" }, gate:call("echo", "{'text': 'hello',}").arguments)
    assert.same({ text = "hi" }, gate:call("echo", { arguments = { text = "hi" } }).arguments)
    assert.equal("cut_off", gate:call("echo", '{"text":"he').code)
  end)

  it("returns problems as data and as the text the model reads", function()
    local said = gate:call("create_task", { titel = "x" })
    assert.equal("repair", said.verdict)
    assert.equal("invalid_arguments", said.class)
    assert.equal("args.titel", said.problems[1].path)
    golden.check("feedback", "module: the text of a repair", said.text)
    assert.equal(2, said.attempts_left)
  end)

  it("shows policies the context of a call and of a list", function()
    process.write(folder .. "/role.lua", [==[
-- role: for specs.
return tool "role" { description = "R.", schema = params {}, effects = "read",
  prepare = function(def, call) if call.context and call.context.role == "banned" then return nil end return def end,
  run = function(args, call) return { role = call.context and call.context.role } end }
]==])
    local with_role = toolgate.load(folder .. "/role.lua")
    assert.same({ role = "guest" }, with_role:call("role", {}, { context = { role = "guest" } }).result)
    assert.same({}, with_role:call("role", {}).result)
    assert.equal(1, #with_role:list { context = { role = "guest" } })
    assert.equal(0, #with_role:list { context = { role = "banned" } })
    assert.has_error(function() with_role:call("role", {}, { context = { "guest" } }) end,
                     "option 'context': expected a table with names, got a list")
    os.remove(folder .. "/role.lua")
  end)

  it("counts the calls of each session, and starts afresh after forget", function()
    for _ = 1, 2 do assert.equal("pass", gate:call("echo", { text = "same" }).verdict) end
    assert.equal("loop", gate:call("echo", { text = "same" }).class)
    assert.equal("pass", gate:call("echo", { text = "same" }, { session = "another" }).verdict)
    gate:forget()
    assert.equal("pass", gate:call("echo", { text = "same" }).verdict)
  end)

  it("keeps gates independent", function()
    local other = toolgate.load(folder .. "/echo.lua")
    for _ = 1, 2 do gate:call("echo", { text = "same" }) end
    assert.equal("pass", other:call("echo", { text = "same" }).verdict)
    assert.equal("unknown_tool", other:call("outcome", { how = "x" }).class)
  end)

  it("takes a history and turns", function()
    local before = { { args = { text = "same" } }, { args = { text = "same" } } }
    assert.equal("loop", gate:call("echo", { text = "same" }, { history = before }).class)
    assert.equal("pass", gate:call("echo", { text = "same" }, { turn = 2 }).verdict)
    assert.has_error(function() gate:call("echo", { text = "x" }, { history = { { class = "okay" } } }) end,
                     "history[1]: unknown class 'okay' (did you mean 'ok'?)")
  end)

  it("supports check and then report for a tool that the agent runs", function()
    local checked = gate:check("get_weather", { city = "Rome", days = "3" })
    assert.equal("pass", checked.verdict)
    assert.same({ city = "Rome", days = 3 }, checked.arguments)
    assert.equal("/days", checked.rewrites[1].path)
    assert.equal("ok", gate:report(checked, { degrees = 21 }).class)
    assert.equal("pass", gate:call("get_weather", { city = "Oslo" }, { result = { degrees = 3 } }).verdict)
    checked = gate:check("get_weather", { city = "Bonn" })
    local said = gate:report(checked, nil, { error = "timed out", transient = true })
    assert.same({ "wait", "transient" }, { said.verdict, said.class })
    assert.has_error(function() gate:report(checked) end, 'report: expected a result, or nil and { error = "…" }')
  end)

  it("returns coverage, facts, the follow-up and choices", function()
    local said = gate:call("outcome", { how = "facts" })
    assert.equal("SATISFIED", said.coverage)
    assert.same({ colour = "red" }, said.facts)
    assert.same({ tool = "echo", args = { text = "next" } }, said.follow_up)
    said = gate:call("outcome", { how = "ask" })
    assert.equal("ask", said.verdict)
    assert.same({ "red", "blue" }, said.choices)
  end)

  it("has a clock that only advance and at move", function()
    process.write(folder .. "/configuration", "return { turn_idle_s = 60 }")
    gate = toolgate.load(folder, { config = folder .. "/configuration" })
    local function same() return gate:call("echo", { text = "same" }).class end
    assert.same({ "ok", "ok" }, { same(), same() })
    gate:advance(59)
    assert.equal("loop", same())
    gate:forget()
    gate:at(1790000000)
    assert.same({ "ok", "ok" }, { same(), same() })
    gate:advance(61) -- idle long enough to begin a turn
    assert.equal("ok", same())
  end)

  it("lists the tools that a model sees", function()
    local names = {}
    for i, definition in ipairs(gate:list()) do names[i] = definition.name end
    table.sort(names)
    assert.same({ "book_table", "create_task", "echo", "get_weather", "outcome" }, names)
  end)

  it("hides a tool from a user as prepare does", function()
    os.execute("mkdir -p '" .. folder .. "/hidden'")
    process.write(folder .. "/hidden/secret.lua", (fixtures.echo:gsub("echo", "secret"):gsub("effects",
      "prepare = function(def, call) if call.user == 'anna' then return def end end, effects")))
    gate = toolgate.load(folder .. "/hidden")
    assert.equal(1, #gate:list { user = "anna" })
    assert.equal(0, #gate:list { user = "ben" })
    assert.equal("pass", gate:call("secret", { text = "x" }, { user = "anna" }).verdict)
    assert.equal("unknown_tool", gate:call("secret", { text = "x" }, { user = "ben" }).class)
  end)

  it("converts every JSON value to Lua and back", function()
    local given = { text = "ü", none = toolgate.null, yes = true, no = false, n = 1.5, big = 9007199254740991,
                    list = { 1, { 2 } }, empty = toolgate.array {}, object = { a = {} } }
    local got = gate:call("echo", given, { session = "values" }).arguments
    assert.same(given, got)
    assert.equal(toolgate.null, got.none)
    local list = gate:check("create_task", { title = "x", tags = toolgate.array {} }).arguments.tags
    assert.same({}, list)
    assert.equal("ok", gate:check("create_task", { title = "y", tags = list }).class)
  end)

  it("rejects Lua values that JSON cannot represent", function()
    local function refuses(value, text)
      local ok, why = pcall(gate.call, gate, "echo", { text = value })
      assert.is_false(ok)
      assert.truthy(why:find(text, 1, true), why)
    end
    refuses(print, "arguments: JSON has no value that is a function")
    refuses(0 / 0, "arguments: JSON has no such number as nan")
    refuses({ 1, nil, 3 }, "holes")
    refuses({ 1, a = 2 }, "a list also has the key a")
    local cycle = {}
    cycle.again = cycle
    refuses(cycle, "nested deeper than")
    assert.equal("pass", gate:call("echo", { text = "still works" }).verdict)
  end)

  it("raises the errors of policy files and of options", function()
    os.execute("mkdir -p '" .. folder .. "/bad'")
    process.write(folder .. "/bad/a.lua", "return tool 'a' { desciption = 'x' }")
    process.write(folder .. "/bad/b.lua", "return tool 'b' {")
    local ok, why = pcall(toolgate.load, folder .. "/bad")
    assert.is_false(ok)
    golden.check("load", "module: a folder with two broken policies", why)
    ok, why = pcall(gate.call, gate, "echo", { text = "x" }, { gaol = "y" })
    assert.is_false(ok)
    golden.check("load", "module: an unknown option of gate:call", why)
  end)

  it("accepts one file of tools or a list, and rejects anything else", function()
    assert.equal(#gate:list(), #toolgate.load(folder, { tools = folder .. "/tools.json" }):list())
    for key, given in pairs { ["tools is a number"] = { tools = 5 }, ["tools holds a table"] = { tools = { {} } },
                              ["an unknown option"] = { tool = "x" } } do
      local ok, why = pcall(toolgate.load, folder, given)
      assert.is_false(ok)
      golden.check("load", "module: load with options: " .. key, why)
    end
  end)

  it("ends an endless policy at the deadline while the host's JIT is on", function()
    process.write(folder .. "/slow.lua", (fixtures.echo:gsub("echo", "slow"):gsub("return {", "while true do end %0")))
    local slow = toolgate.load(folder .. "/slow.lua")
    os.remove(folder .. "/slow.lua")
    local sum = 0
    for i = 1, 3 do
      assert.equal("policy_error", slow:call("slow", { text = "x" }, { session = "s" .. i }).class)
      for k = 1, 1e6 do sum = sum + k % 7 end
    end
    assert.equal(8999994, sum)
  end)

  it("serves thousands of calls, and frees its gates", function()
    for round = 1, 20 do
      local one = toolgate.load(folder .. "/echo.lua")
      for i = 1, 100 do
        assert(one:call("echo", { text = "x" }, { session = round .. "/" .. i }).verdict == "pass")
      end
    end
    collectgarbage()
    collectgarbage()
  end)

  it("works as docs/policy.md and docs/testing.md show", function()
    local page = process.read "docs/policy.md" .. process.read "docs/testing.md"
    local policy = assert(page:match '\n```lua\n(%-%- close_ticket:.-)\n```')
    local spec = assert(page:match '\n```lua\n(%-%- close_ticket_spec.lua:.-)\n```')
    local own = process.directory()
    os.execute("mkdir '" .. own .. "/policies'")
    process.write(own .. "/policies/close_ticket.lua", policy)
    process.write(own .. "/policies/close_ticket_spec.lua", spec)
    local code, out, err = process.run({ "busted", "--lua=luajit", "--cpath=" .. folder_of_module .. "/?.so", "policies" },
                                       { directory = own })
    process.remove(own)
    assert.equal(0, code, out .. err)
    assert.truthy(out:find("2 successes / 0 failures", 1, true), out)
  end)
end)

it("a host that is not LuaJIT gets an error that names LuaJIT", function()
  if os.execute("command -v lua5.1 >/dev/null") ~= 0 then pending("lua5.1 is not installed") return end
  local code, _, err = process.run({ "lua5.1", "-e", "package.cpath = '" .. folder_of_module .. "/?.so' require 'toolgate'" })
  assert.equal(1, code)
  assert.truthy(err:find("LuaJIT", 1, true) or err:find("undefined symbol: lua", 1, true), err)
end)
