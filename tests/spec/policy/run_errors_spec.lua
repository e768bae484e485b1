-- A tool written in Lua that raises an error has failed, in its own words; a mistake in its code is the policy's. And the
-- words json_decode and map.

local function policy(body, fields)
  return ([==[
-- find: finds an order. For specs.
return tool "find" {
  description = "Finds.", effects = "read", %s
  run = function(args)
    %s
  end,
}
]==]):format(fields or [[schema = params { n = optional(int "N") },]], body)
end

local function ran(body, args, fields)
  local gate = daemon.start { policies = { ["find.lua"] = policy(body, fields) } }
  local result = gate:connect():calls("find", args or {}, session "s")
  return verdict(result), text(result), gate
end

describe("error in a tool's run", function()
  for what, body in pairs {
    ["error(text)"] = 'error("no such order: 12")',
    ["error without a place"] = 'error("no such order: 12", 0)',
    ["assert"] = 'assert(nil, "no such order: 12")',
    ["a function that raises"] = 'local function deep() error("no such order: 12", 2) end\n    deep()',
    ["an error that was caught before"] = 'pcall(error, "first")\n    error("no such order: 12")',
  } do
    it("is the tool's own failure: " .. what, function()
      local said, read, gate = ran(body)
      assert.same({ "tool_error", "repair" }, { said.error_class, said.verdict })
      assert.truthy(read:find("find ran and failed", 1, true) and read:find('"no such order: 12"', 1, true), read)
      assert.is_nil(read:find("policy", 1, true), read)
      assert.is_nil(gate:connect():asks("toolgate/status").policy_faults[1])
    end)
  end

  for what, body in pairs {
    ["a mistake in its code"] = "local order = nil\n    return order.number",
    ["a mistake after an error that was caught"] = 'pcall(error, "no such order: 12")\n    return args.n + 1',
    ["an error that is no text"] = "error({ code = 12 })",
    ["its deadline"] = 'pcall(error, "no such order: 12")\n    while true do end',
  } do
    it("is the policy's where it is " .. what, function()
      local said, read = ran(body)
      assert.equal("policy_error", said.error_class, read)
    end)
  end

  it("is the policy's in any other hook", function()
    local said = ran("return 1", {}, 'schema = params {}, check = function() error("no such order: 12") end,')
    assert.equal("policy_error", said.error_class)
  end)
end)

-- What a run copies out of Lua's memory is bounded, also if the run catches the error that says so.
describe("a run that catches each error", function()
  for what, call in pairs { error = "error, text", json_decode = "json_decode, text" } do
    it("takes no memory without bound: " .. what, function()
      local body = ('local text = ("x"):rep(1e6)\n    for _ = 1, 300 do pcall(%s) end\n    return 1'):format(call)
      local gate = daemon.start { config = "return { limits = { policy_ms = 1000 } }",
                                  policies = { ["find.lua"] = policy(body) } }
      gate:connect():calls("find", {}, session "s")
      local status = process.read(("/proc/%d/status"):format(gate:pid()))
      assert.truthy(tonumber(status:match "VmHWM:%s*(%d+) kB") < 150000, status:match "VmHWM[^\n]*")
    end)
  end
end)

describe("json_decode", function()
  local function decoded(text_arg)
    return select(2, ran([[
    local value, why = json_decode(args.text)
    if why then return { why = why } end
    return { value = value }]], { text = text_arg }, [[schema = params { text = str "JSON" },]]))
  end

  it("reads JSON, and says what is wrong with what is none", function()
    assert.equal('{"value":{"rows":[1,2.50,null],"empty":[]}}', decoded '{"rows":[1,2.50,null],"empty":[]}')
    assert.equal('{"value":"text"}', decoded '"text"')
    assert.truthy(decoded '{"rows":[1,':find('"why":"', 1, true))
    assert.truthy(decoded "no JSON":find('"why":"byte 1: ', 1, true))
    assert.truthy(decoded(("["):rep(5000)):find('"why":"', 1, true))
  end)

  it("is bounded", function()
    local said = ran('local text = "[" .. ("1,"):rep(2e5) .. "1]"\n    for _ = 1, 1000 do json_decode(text) end\n    return 1')
    assert.equal("policy_error", said.error_class)
  end)
end)

describe("map", function()
  local function gives(fields, counts)
    local said, read = ran("return args", { counts = counts }, ("schema = params { counts = %s },"):format(fields))
    return said.verdict, read
  end

  it("takes any keys, and one type of values", function()
    assert.same({ "pass", '{"counts":{"red":1}}' }, { gives('map(str, int, "Pieces")', { red = 1 }) })
    assert.equal("repair", (gives("map(str, int)", { red = "many" })))
  end)

  it("may constrain keys, their number, and nest", function()
    assert.equal("repair", (gives('map { str { pattern = "^[a-z]+$" }, int, "Pieces", max = 2 }', { R7 = 1 })))
    assert.equal("repair", (gives('map { str, int, "Pieces", max = 1 }', { red = 1, blue = 2 })))
    assert.equal("pass", (gives('map(enum { "red", "blue" }, list(int))', { red = { 1, 2 } })))
    assert.equal("repair", (gives('map(enum { "red", "blue" }, list(int))', { green = { 1 } })))
  end)
end)
