-- A server that does not keep its own output schema: what it returns reaches the client, with a note. A schema that a
-- policy wrote is the operator's word.
local offered = require "offered"

local SCHEMA = [[{"type":"object","additionalProperties":false,"required":["rows"],"x-kept":true,"properties":{
  "rows":{"type":"array","maxItems":3,"items":{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":"string"}}}},
  "state":{"enum":["open","closed"]},"at":{"type":"string","format":"date-time"},"format":{"type":"string","pattern":"^[a-z]+$"},
  "owner":{"oneOf":[{"$ref":"#/$defs/person"},{"type":"object","properties":{"kind":{"const":"team"}}}]}},
  "$defs":{"person":{"type":"object","properties":{"kind":{"const":"person"}}}}}]]
local LISTED = [[{"type":"object","required":["rows"],"x-kept":true,"properties":{
  "rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":"string"}}}},
  "state":{},"at":{"type":"string"},"format":{"type":"string"},
  "owner":{"anyOf":[{"$ref":"#/$defs/person"},{"type":"object","properties":{"kind":{}}}]}},
  "$defs":{"person":{"type":"object","properties":{"kind":{}}}}}]]

-- By the tool's name: what it returns, and where that does not fit.
local MISFITS = {
  new_value = { '{"rows":[],"state":"archived"}', "state" },
  local_time = { '{"rows":[],"at":"2026-11-25 10:00"}', "at" },
  one_more = { '{"rows":[],"debug":1}', "debug" },
  too_many = { '{"rows":[{},{},{},{}]}', "rows" },
  other_type = { '{"rows":[{"id":"7"}]}', "rows[0].id" },
  missing = { '{"state":"open"}', "rows" },
  null_and_new = { '{"rows":[{"id":1,"note":null}],"state":"archived"}', "state" },
}
local NULLS = { null = { '{"rows":[],"state":null}', '{"rows":[]}' },
                deep_null = { '{"rows":[{"id":null,"note":"x"}],"at":null}', '{"rows":[{"note":"x"}]}' } }

local function definitions()
  local list = {}
  local function offers(name, structured, words)
    list[#list + 1] = ('{"name":"%s","inputSchema":{"type":"object"},"outputSchema":%s,"_meta":{"answer":'
                       .. '{"content":[{"type":"text","text":%s}]%s}}}')
      :format(name, SCHEMA, json.encode(words or structured), structured and ',"structuredContent":' .. structured or "")
  end
  for name, case in pairs(MISFITS) do offers(name, case[1]) end
  for name, case in pairs(NULLS) do offers(name, case[1]) end
  offers("prose", nil, "three rows")
  offers("cut_off", nil, '{"rows":[{"id":1},{"id":2},{"id":')
  offers("of_policy", '{"rows":[],"state":"archived"}')
  offers("judged", '{"rows":[],"state":"archived"}')
  offers("secret", '{"rows":[{"note":"kimberley-7"}],"state":"kimberley-7"}')
  return "[" .. table.concat(list, ",") .. "]"
end

local POLICIES = {
  ["of_policy.lua"] = [==[return tool "of_policy" {
    output_schema = json [[{"type":"object","properties":{"state":{"const":"open"}}}]] }]==],
  ["judged.lua"] = [[return tool "judged" { result = function(result)
    if result.state == "archived" then return garbage("archived", "It is archived.") end end }]],
  ["secret.lua"] = 'return tool "secret" { redact = { "note" } }',
}

for _, over in ipairs(offered.OVER) do
  describe("a result that does not fit its server's own schema, over " .. over .. ",", function()
    local gate, client
    before_each(function()
      gate = offered.start(over, definitions(), { policies = POLICIES })
      client = gate:connect()
    end)

    local function calls(name)
      return client:calls(name, {}, { ["dev.toolgate/session"] = name })
    end

    it("passes as it came, with a note, and is logged once", function()
      for name, case in pairs(MISFITS) do
        local result = calls(name)
        assert.is_not_true(result.isError, text(result))
        assert.equal("pass", verdict(result).verdict)
        assert.truthy(text(result):find("as the tool sent it", 1, true), text(result))
        assert.truthy(text(result):find("'" .. case[2] .. "'", 1, true), text(result))
        local message = verdict(result).messages[1]
        assert.same({ "result." .. case[2], "warning" }, { message.path, message.severity })
        assert.same(json.decode((case[1]:gsub(',"note":null', ""))), result.structuredContent)
        calls(name)
        local _, count = gate:log():gsub("result_misfit tool=" .. name .. " ", "")
        assert.equal(1, count, name)
      end
    end)

    it("fits without a null of an optional member", function()
      for name, case in pairs(NULLS) do
        local result = calls(name)
        assert.same(json.decode(case[2]), result.structuredContent)
        assert.is_nil(verdict(result).messages, name)
      end
    end)

    it("passes as text, but what breaks off is broken", function()
      local result = calls "prose"
      assert.is_not_true(result.isError, text(result))
      assert.truthy(text(result):find("three rows", 1, true))
      assert.equal("truncated_response", verdict(calls "cut_off").code)
    end)

    it("is refused if the schema is a policy's, judged by a policy's hook, and quoted without what a policy redacts", function()
      assert.equal("schema_violation", verdict(calls "of_policy").code)
      assert.equal("semantic_garbage", verdict(calls "judged").error_class)
      local result, line = client:asks("tools/call", { name = "secret", arguments = json.decode '{"q":1}' })
      assert.is_not_true(result.isError)
      assert.is_nil(line:find("kimberley", 1, true), line)
    end)

    it("is listed with a schema that clients can check it by", function()
      local listed = {}
      for _, tool in ipairs(client:asks("tools/list").tools) do listed[tool.name] = tool.outputSchema end
      assert.same(json.decode(LISTED), listed.new_value)
      assert.equal("open", listed.of_policy.properties.state.const)
    end)
  end)
end
