-- A tool with annotations and no schema: its definition, and the feedback on its calls.
local cjson = require "cjson"

local page = process.read "docs/policy.md"
local forecast = assert(page:match '```lua\n(return tool "get_forecast".-)\n```')

describe("an annotated tool", function()
  it("is listed as docs/policy.md shows it", function()
    local shown = assert(page:match '```json\n({"name":"get_forecast".-)\n```')
    local folder = process.directory()
    process.write(folder .. "/get_forecast.lua", forecast)
    local code, out, err = process.run { daemon.binary, "tools", "--format", "mcp", "--policies", folder }
    process.remove(folder)
    assert.equal(0, code, err)
    assert.truthy(out:find(shown, 1, true), out)
  end)

  it("keeps the author's order of properties for every provider", function()
    local order = '"day".*"days".*"desk".*"visitors".*"host"'
    for _, form in ipairs { "mcp", "openai", "anthropic", "gemini" } do
      local out = process.runs { daemon.binary, "tools", "--format", form, "--policies", "policies" }
      local line = assert(out:match '[^\n]*"book_desk"[^\n]*')
      assert.matches('"properties":{' .. order, line)
    end
  end)
end)

describe("an annotated tool over the socket", function()
  local gate, client
  before_each(function()
    gate, client = daemon.open { policies = { ["get_forecast.lua"] = forecast, ["odd.lua"] = [==[
-- odd: a predicate that does not count on what it is given.
return tool "odd" {
  effects = "read",
  rules   = {
    when { n = is("a multiple of ten", function(n) return n % 10 == 0 end) } : needs "why",
  },
  ---@param n any
  ---@param why? string
  run = function() return {} end,
}
]==] } }
  end)

  it("is listed with a closed schema", function()
    local tools = client:asks("tools/list").tools
    for _, tool in ipairs(tools) do
      if tool.name == "get_forecast" then
        assert.equal("The weather of the next days.", tool.description)
        assert.same({ "city", "days" }, tool.inputSchema.required)
        assert.is_false(tool.inputSchema.additionalProperties)
        return
      end
    end
    error("get_forecast is not in the list: " .. cjson.encode(tools))
  end)

  it("reports every problem at once", function()
    local result = client:calls("get_forecast", { cty = "Faro", unit = "k", days = "1" })
    assert.same({ "args.cty unknown_field", "args.unit enum" }, client_of.problems(result))
    golden.check("feedback", "annotations: several problems at once", text(result))
  end)

  it("coerces a single day into a list", function()
    local result = client:calls("get_forecast", { city = "Faro", days = 2 })
    assert.equal("pass", verdict(result).verdict)
    assert.equal(1, cjson.decode(result.content[1].text).days)
  end)

  it("requires what a rule with a predicate needs", function()
    local result = client:calls("odd", { n = 20 })
    assert.same({ "args.why missing" }, client_of.problems(result))
    golden.check("feedback", "annotations: a rule with a predicate", text(result))
    assert.equal("pass", verdict(client:calls("odd", { n = 21 })).verdict)
  end)

  it("fails the call if the predicate throws, and names the rule's line", function()
    local said = verdict(client:calls("odd", { n = { deep = true } }))
    assert.equal("policy_error", said.error_class)
    local fault = gate:status().policy_faults[1]
    assert.matches("odd%.lua:5: ", fault.last)
    golden.check("load", "policy fault: a predicate throws", fault.last)
  end)
end)
