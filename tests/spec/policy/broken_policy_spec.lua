-- A policy that throws fails its own calls; with on_policy_error = "open" its calls skip the broken hook.

local function tool(fields)
  return ([==[
-- open: breaks as its argument says.
return tool "open" {
  description = "Break.", effects = "read", on_policy_error = "open",
  schema = json [[{"type":"object","properties":{"a":{"type":"integer"}}}]],
  %s
}
]==]):format(fields)
end

describe("a policy that fails open", function()
  local function calls(fields)
    return daemon.start { policies = { ["open.lua"] = tool(fields) } }:connect():calls("open", { a = 1 })
  end

  it("passes a call whose check throws", function()
    local result = calls [[check = function() error "no" end, run = function(args) return { a = args.a } end]]
    assert.is_not_true(result.isError)
    assert.truthy(text(result):find('"a":1', 1, true), text(result))
  end)

  it("delivers a result whose hook throws, with a warning", function()
    local gate = daemon.start { policies = { ["open.lua"] = tool
      'run = function() return "a result" end, result = function() error("on purpose") end,' } }
    local result = gate:connect():calls("open", {})
    assert.is_not_true(result.isError)
    golden.check("feedback", "result: its result hook breaks, and the policy fails open", text(result))
  end)

  it("refuses a call whose run throws, with or without an output schema", function()
    for _, schema in ipairs { "", [==[output_schema = json [[{"type":"object","required":["n"]}]],]==] } do
      local result = calls(schema .. [[run = function(args) return args.n.n end]])
      assert.is_true(result.isError)
      assert.equal("policy_error", verdict(result).error_class)
    end
  end)

  it("never passes its tool arguments that its own normalise broke", function()
    local result = calls [[normalise = function() return { a = "text" } end,
                           run = function(args) return { kind = type(args.a) } end]]
    assert.truthy(text(result):find('"kind":"number"', 1, true), text(result))
    assert.is_nil(verdict(result).rewrites)
  end)
end)

describe("a policy that throws", function()
  it("is in the status with count and last error until it is reloaded", function()
    local gate, client = daemon.open { policies = { ["open.lua"] = tool [[run = function() return {} end,
      check = function(args) if args.a == 1 then error "no ones here" end end]] } }
    assert.same({}, gate:status().policy_faults)
    for a = 1, 2 do client:calls("open", { a = a }) end
    client:calls("open", { a = 1 })
    local fault = gate:status().policy_faults[1]
    assert.same({ "open", 2 }, { fault.tool, fault.count })
    assert.truthy(fault.last:find("open.lua:%d+: .*no ones here"), fault.last)
    gate:write_policy("open.lua", tool [[run = function() return {} end]])
    gate:reload()
    assert.same({}, gate:status().policy_faults)
  end)
end)
