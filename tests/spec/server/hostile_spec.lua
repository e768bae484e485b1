-- Hostile or clumsy clients: input of any size costs little, and other clients do not notice.

local function policy(name, fields)
  return ([==[
-- %s: takes what it is given. Read only.
return tool "%s" {
  description = "Take it.", effects = "read",
  schema = json [[{"type":"object","properties":{"text":{"type":"string"}}}]],
  run = function(args) return args end,
  %s
}
]==]):format(name, name, fields or "")
end

local function strangers(count, key)
  local fields = {}
  for i = 1, count do fields[(key or "field") .. i] = i end
  return fields
end

describe("ten thousands of unknown fields", function()
  it("are dropped, and noted in a few lines", function()
    local gate = daemon.start { policies = { ["a.lua"] = policy("a", "unknown = 'drop',") } }
    local result = gate:connect():calls("a", strangers(20000))
    assert.is_not_true(result.isError)
    assert.same({ "{}" }, { result.content[1].text })
    golden.check("feedback", "repaired arguments: many unknown fields left out", text(result))
    assert.truthy(#text(result) < 2000, #text(result))
  end)

  it("are dropped even if their names are too long to print", function()
    local gate = daemon.start { policies = { ["a.lua"] = policy("a", "unknown = 'drop',") } }
    local result = gate:connect():calls("a", strangers(40, ("x"):rep(9000)))
    assert.equal("{}", result.content[1].text)
    assert.truthy(#text(result) < 2000, #text(result))
  end)

  it("are refused with their count", function()
    local gate = daemon.start { policies = { ["a.lua"] = policy("a", "unknown = 'refuse',") } }
    local result = gate:connect():calls("a", strangers(20000))
    assert.is_true(result.isError)
    assert.truthy(text(result):find("20000 problems", 1, true), text(result))
    assert.truthy(text(result):find("and 19968 more", 1, true), text(result))
  end)

  it("are truncated in the feedback if their names are long", function()
    local gate = daemon.start { policies = { ["a.lua"] = policy("a", "unknown = 'refuse',") } }
    local result = gate:connect():calls("a", strangers(1, ("x"):rep(100000)))
    assert.truthy(#text(result) < 2000, #text(result))
  end)
end)

describe("ten thousands of members that toolgate changes", function()
  local function members(count, value)
    local list = {}
    for i = 1, count do list[i] = ('"n%d":%s'):format(i, value) end
    return table.concat(list, ",")
  end

  local function asks(client, method, params)
    client:say_line(('{"jsonrpc":"2.0","id":77,"method":"%s","params":%s}'):format(method, params))
    return client:hears().result
  end

  it("take memory once, and not once for each of them", function()
    local gate, client = daemon.open { tools = require("fixtures").agent_tools }
    local id = client:checks("get_weather", { city = "Bern" }).callId
    local block = '{"type":"text","text":"sunny","annotations":null,' .. members(30000, "null") .. "}"
    local judged = '{"coverage":"SATISFIED","facts":{' .. members(30000, "1") .. "}}"
    local said = asks(client, "toolgate/report",
                      ('{"callId":"%s","result":{"content":[%s]},"coverage":%s}'):format(id, block, judged))
    assert.equal("pass", said.verdict)
    said = asks(client, "toolgate/register", ('{"tools":[{"name":"mine","inputSchema":{"type":"object","properties":{%s}}}]}')
      :format(members(9000, "true")))
    assert.equal("mine", said.tools[1].name)
    local listed = client:asks("toolgate/tools").tools
    assert.equal("mine", listed[#listed].name)
    assert.same({}, listed[#listed].inputSchema.properties.n9000)
    assert.is_true(tonumber(process.read("/proc/" .. gate:pid() .. "/status"):match "VmHWM:%s*(%d+)") < 300000)
  end)
end)

describe("a schema with an expensive pattern", function()
  it("is too_complex after a few values, not after forty thousand", function()
    local client = daemon.start():connect()
    client:asks("toolgate/register", { tools = { { name = "mine", inputSchema = {
      type = "object", properties = { l = { type = "array", items = { type = "string", pattern = "^((a+)+c|a+b)$" } } } } } } })
    local list = {}
    for i = 1, 40000 do list[i] = ("a"):rep(13) .. "b" end
    local said = client:checks("mine", { l = list })
    assert.equal("too_complex", said.messages[1].code)
    assert.equal("pass", client:checks("mine", { l = { list[1], "aab" } }).verdict)
  end)

  it("is too_complex for property names, too", function()
    local client = daemon.start():connect()
    client:asks("toolgate/register", { tools = { { name = "mine", inputSchema = {
      type = "object", patternProperties = { ["^(a+)+$"] = { type = "string" } } } } } })
    local said = client:checks("mine", strangers(20000, ("a"):rep(13)))
    assert.equal("too_complex", said.messages[1].code)
  end)
end)

describe("an agent that registers its tools repeatedly", function()
  local function definition(n, version)
    local properties = {}
    for i = 1, 30 do properties["field" .. i] = { type = "string", description = version .. (" words"):rep(20) } end
    return { name = "mine" .. n, inputSchema = { type = "object", properties = properties } }
  end

  local function registers(client, version)
    local tools = {}
    for n = 1, 40 do tools[n] = definition(n, version) end
    local said, line = client:asks("toolgate/register", { tools = tools })
    assert.equal(40, #said.tools, line)
  end

  it("is accepted each time, changed or not", function()
    local client = daemon.start():connect()
    for turn = 1, 40 do registers(client, "of turn " .. turn) end
    for _ = 1, 40 do registers(client, "the same") end
    assert.equal("pass", client:checks("mine40", { field1 = "x" }).verdict)
  end)

  it("is not charged for definitions that were refused", function()
    local client = daemon.start():connect()
    local huge = { name = "huge", inputSchema = { type = "object", title = ("x"):rep(300000) } }
    for _ = 1, 60 do assert.equal(0, #client:asks("toolgate/register", { tools = { huge } }).tools) end
    registers(client, "small")
  end)
end)

describe("the number of a turn", function()
  it("leaves room for later turns, and is rejected if out of range", function()
    local client = daemon.start { policies = { ["a.lua"] = policy "a" } }:connect()
    local session = client_of.session("s", { turn = 2147483647 })
    assert.is_not_true(client:calls("a", { text = "x" }, session).isError)
    for later = 1, 3 do
      local said = client:asks("toolgate/turn", { _meta = client_of.session "s" })
      assert.equal(2147483647 + later, said.turn)
    end
    for _, odd in ipairs { 2147483648, 4294967295, -1, 1.5, 1e300 } do
      local said = client:ask("toolgate/turn", { turn = odd, _meta = client_of.session "s" })
      assert.truthy(said.error.message:find("from 1 to 2147483647", 1, true), said.error.message)
    end
  end)
end)

describe("a gateway policy that renames a tool", function()
  it("is logged, and the tool is not listed", function()
    local gate = daemon.start { policies = { ["a.lua"] = policy "a", ["b.lua"] = policy "b", ["gateway.lua"] = [==[
-- The list, with a mistake.
return gateway { prepare_tools = function(defs) defs[1].name = "better" return defs end }
]==] } }
    local tools = gate:connect():asks("tools/list").tools
    assert.same({ 1, "b" }, { #tools, tools[1].name })
    golden.check("log", "gateway policy: prepare_tools renames a tool", gate:logs "gateway.lua")
  end)
end)

describe("a policy that tries to keep state between calls", function()
  local session = client_of.session

  it("does not load if it assigns to a variable of its file", function()
    local log = daemon.fails { policies = { ["a.lua"] =
      "local last\n" .. policy("a", "check = function(args) last = args.text end,") } }
    assert.matches("a.lua:%d+: .*'last'", log)
    golden.check("load", "state between calls: a variable of the file", log)
  end)

  it("is a policy_error if it writes to a table of its file, and no other session sees the value", function()
    local gate = daemon.start { policies = { ["a.lua"] = "local kept = { 'nothing' }\n" .. policy("a", [==[
  check = function(args)
    if args.text then kept[1] = args.text end
    return refuse("kept", "it has " .. kept[1])
  end,]==]) } }
    local one, two = gate:connect(), gate:connect()
    for _ = 1, 2 do
      local broken = one:calls("a", { text = "my secret" }, session "one")
      assert.equal("policy_error", client_of.verdict(broken).error_class)
      local said = text(two:calls("a", {}, session "two"))
      assert.truthy(said:find("it has nothing", 1, true), said)
    end
    assert.matches("a.lua:%d+: .*'kept'", gate:log())
    assert.is_nil(gate:log():find("my secret", 1, true))
  end)
end)
