-- Definitions that are nearly right: what cannot be read is left out with a warning, the rest is in force, the tool
-- stays. It never accepts less than its author meant. What a policy or the operator wrote stays strict.
local http_server = require "http_server"

-- name = { schema, what of it is listed, arguments that run, arguments that do not }
local Q = '"q":{"type":"string","maxLength":3}'
local S = '"type":"object"'
local CASES = {
  php = { '{"type":"object","properties":[],"required":[]}', '{"required":{},"type":"object"}',
      '{}' }, -- as cjson writes an empty list
  php_nested = { '{"type":"object","properties":{"f":{"type":"object","properties":[]},'
      .. Q .. "}}", nil, '{"q":"a","f":{"x":1}}',
                 '{"q":"long"}' },
  properties_null = { '{"type":"object","properties":null}', '{"type":"object"}', '{"a":1}' },
  properties_list = { '{"type":"object","properties":["a"],"additionalProperties":false}', '{"type":"object"}', '{"a":1}' },
  property_null = { '{"type":"object","properties":{"a":null,' .. Q .. "}}", nil, '{"a":1,"q":"x"}', '{"q":"long"}' },
  property_text = { '{"type":"object","properties":{"a":"string",' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  property_list = { '{"type":"object","properties":{"a":["string"],' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  type_capitals = { '{"type":"object","properties":{"a":{"type":"INTEGER"},' .. Q .. "}}", nil, '{"a":1}', '{"a":"long"}' },
  required_null = { '{"type":"object","properties":{' .. Q .. '},"required":null}', nil, '{}', '{"q":"long"}' },
  required_true = { '{"type":"object","properties":{"q":{"type":"string","required":true}}}', nil, '{}' },
  ref_missing = { '{"type":"object","properties":{' .. Q .. ',"s":{"$ref":"#/$defs/S","description":"A screen"}}}', nil,
                  '{"s":1,"q":"x"}', '{"q":"long"}' },
  ref_remote = { '{"type":"object","properties":{' .. Q .. ',"s":{"$ref":"https://example.com/geo.json"}}}', nil, '{"s":1}',
                 '{"q":"long"}' },
  ref_null = { '{"type":"object","properties":{"s":{"$ref":null},' .. Q .. "}}", nil, '{"s":1}', '{"q":"long"}' },
  ref_circle = { '{"type":"object","properties":{"s":{"$ref":"#/$defs/a"},' .. Q .. '},"$defs":{"a":{"$ref":"#/$defs/b"},'
                 .. '"b":{"$ref":"#/$defs/a"}}}', nil, '{"s":1}', '{"q":"long"}' },
  ref_chain = { '{"type":"object","properties":{"s":{"$ref":"#/$defs/a"},' .. Q .. '},"$defs":{"a":{"$ref":"#/$defs/b"}}}', nil,
                '{"s":1}', '{"q":"long"}' },
  ref_hides = { '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"s":'
                .. '{"$ref":"#/definitions/S","type":"string"},' .. Q .. "}}", nil, '{"s":1}', '{"q":"long"}' },
  pattern = { '{"type":"object","properties":{"q":{"type":"string","maxLength":3,"pattern":"^\\\\d+\\\\Z"}}}', nil, '{"q":"a"}',
              '{"q":"long"}' },
  pattern_type = { '{"type":"object","properties":{"q":{"type":"string","maxLength":3,"pattern":5}}}',
      nil, '{"q":"a"}', '{"q":"long"}' },
  pattern_names = { '{"type":"object","properties":{' .. Q .. '},"patternProperties":{"(?P<a>b)":{"type":"string"}},'
                    .. '"additionalProperties":false}', nil, '{"q":"x","b":1}', '{"q":"long"}' },
  dialect = { '{"$schema":"https://example.com/d","type":"object","properties":{' .. Q .. "}}", nil, '{"q":"a"}',
      '{"q":"long"}' },
  type_null = { '{"type":"object","properties":{"a":{"type":null},' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  type_empty = { '{"type":"object","properties":{"a":{"type":[]},' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  type_object = { '{"type":"object","properties":{"a":{"type":{"x":1}},' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  root_null = { '{"type":null,"properties":{' .. Q .. "}}", nil, '{"q":"a"}', '{"q":"long"}' },
  root_array = { '{"type":"array","properties":{' .. Q .. "}}", nil, '{"q":"a"}', '{"q":"long"}' },
  enum_empty = { '{"type":"object","properties":{"a":{"enum":[]},' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  enum_text = { '{"type":"object","properties":{"a":{"enum":"x"},' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  enum_null = { '{"type":"object","properties":{"a":{"type":"string","enum":null},' .. Q .. "}}", nil, '{"a":"x"}',
      '{"q":"long"}' },
  bounds = { '{"type":"object","properties":{"a":{"minimum":"1","maximum":null,"multipleOf":0,"minLength":-1,"maxItems":"x"},'
             .. Q .. "}}", nil, '{"a":-1}', '{"q":"long"}' },
  items_null = { '{"type":"object","properties":{"a":{"type":"array","items":null},' .. Q .. "}}", nil, '{"a":[1]}',
      '{"q":"long"}' },
  items_text = { '{"type":"object","properties":{"a":{"type":"array","items":"string"},'
      .. Q .. "}}", nil, '{"a":[1]}', '{"q":"long"}' },
  additional_text = { '{"type":"object","additionalProperties":"no","properties":{' .. Q .. "}}", nil, '{"a":1}',
      '{"q":"long"}' },
  any_of_object = { '{"type":"object","anyOf":{},"oneOf":[],"allOf":null,"properties":{' .. Q .. "}}", nil, '{"a":1}',
      '{"q":"long"}' },
  branch_null = { '{"type":"object","properties":{"a":{"oneOf":[null,{"type":"string"}]},'
      .. Q .. "}}", nil, '{"a":"x"}', '{"q":"long"}' },
  defs_list = { '{"type":"object","$defs":[],"definitions":null,"properties":{' .. Q .. "}}", nil, '{"q":"a"}',
      '{"q":"long"}' },
  dependencies = { '{"type":"object","dependentRequired":[],"dependentSchemas":7,"properties":{' .. Q .. "}}", nil, '{"a":1}',
                   '{"q":"long"}' },
  booleans = { '{"type":"object","properties":{"a":true,"b":false,' .. Q .. "}}", nil, '{"a":1}', '{"q":"long"}' },
  -- what would become stricter without its broken part
  in_not = { '{"type":"object","properties":{"a":{"not":{"pattern":"("}},' .. Q .. "}}", nil, '{"a":"x"}', '{"q":"long"}' },
  in_not_by_ref = { '{"type":"object","properties":{"a":{"not":{"$ref":"#/$defs/x"}},' .. Q .. '},"$defs":{"x":{"pattern":"("}}}',
                    nil, '{"a":"x"}', '{"q":"long"}' },
  in_if = { '{"type":"object","properties":{"a":{"if":{"pattern":"("},"then":{"maxLength":1}},' .. Q .. "}}", nil, '{"a":"xx"}',
            '{"q":"long"}' },
  in_one_of = { '{"type":"object","properties":{"a":{"oneOf":[{"pattern":"(?P<x>a)"},{"type":"string"}]},' .. Q .. "}}", nil,
                '{"a":"xx"}', '{"q":"long"}' },
  in_contains = { '{"type":"object","properties":{"a":{"contains":{"pattern":"("},"maxContains":1},' .. Q .. "}}", nil,
                  '{"a":["x","y"]}', '{"q":"long"}' },
  unevaluated = { '{"type":"object","properties":{' .. Q .. '},"allOf":[{"$ref":"#/$defs/gone"}],'
                  .. '"unevaluatedProperties":false}', nil,
                  '{"q":"x","b":1}', '{"q":"long"}' },
  prefix = { '{"type":"object","properties":{"a":{"prefixItems":7,"items":{"type":"string"}},' .. Q .. "}}", nil, '{"a":[1]}',
             '{"q":"long"}' },
  one_of_stays = { '{"type":"object","properties":{"a":{"oneOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/s"}]},'
                   .. '"b":{"pattern":"("}},'
                   .. '"$defs":{"n":{"type":"number","minimum":5},"s":{"type":"number","minimum":9}}}',
      nil, '{"a":6}', '{"a":10}' },
}
local OUTPUTS = {
  output_ref = '{"type":"object","properties":{"s":{"$ref":"#/$defs/S"}}}',
  output_pattern = '{"type":"object","properties":{"w":{"type":"string","pattern":"(?P<id>a)"}}}',
  output_php = '{"type":"object","properties":[]}',
  output_null = "null",
  output_text = '"x"',
  output_deep = '{"type":"object","properties":' .. ('{"a":{"items":'):rep(40) .. "{}" .. ("}}"):rep(40) .. "}",
}

local function definitions()
  local list = {}
  for name, case in pairs(CASES) do list[#list + 1] = ('{"name":"%s","inputSchema":%s}'):format(name, case[1]) end
  for name, schema in pairs(OUTPUTS) do
    list[#list + 1] = ('{"name":"%s","inputSchema":{%s},"outputSchema":%s,'
                       .. '"_meta":{"answer":{"content":[],"structuredContent":{"ok":true}}}}')
      :format(name, S, schema)
  end
  list[#list + 1] = '{"name":"schema_missing"}'
  list[#list + 1] = '{"name":"schema_list","inputSchema":[]}'
  return "[" .. table.concat(list, ",") .. "]"
end

-- What the SDKs demand of a definition; false: they would drop the whole list.
local function assert_valid(tool, line)
  local schema = tool.inputSchema
  assert.equal("object", schema.type, line)
  assert.truthy(schema.properties == nil or type(schema.properties) == "table")
  for _, property in pairs(schema.properties or {}) do assert.equal("table", type(property), tool.name) end
  for _, name in ipairs(schema.required or {}) do assert.equal("string", type(name)) end
  if tool.outputSchema then assert.equal("object", tool.outputSchema.type) end
end

describe("a definition that is nearly right", function()
  local directory, gate, client, server
  before_each(function() directory = process.directory() end)

  local function runs(name, arguments, n)
    client:say_line(('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,'
                     .. '"_meta":{"dev.toolgate/session":"%s%s"}}}')
      :format(name, arguments, name, n))
    return client:hears().result
  end

  local function serves_all()
    client = gate:connect()
    local result, line = client:asks("tools/list", {})
    local tools = {}
    for _, tool in ipairs(result.tools) do
      assert_valid(tool, line)
      tools[tool.name] = tool
    end
    for name, case in pairs(CASES) do
      assert(tools[name], name .. " is not listed")
      if case[2] then assert.equal(case[2], json.encode(tools[name].inputSchema)) end
      local result_of = runs(name, case[3], 1)
      assert.is_not_true(result_of.isError, name .. ": " .. client_of.text(result_of))
      if case[4] then assert.equal("invalid_arguments", verdict(runs(name, case[4], 2)).error_class, name) end
    end
    for name in pairs(OUTPUTS) do
      assert(tools[name], name .. " is not listed")
      assert.is_not_true(runs(name, "{}", 1).isError, name)
    end
    assert(tools.schema_missing and tools.schema_list)
    assert.equal("A screen", tools.ref_missing.inputSchema.properties.s.description)
    return tools
  end

  it("is served over stdio, with a warning for what is left out", function()
    local offer = process.write(directory .. "/offer.json", definitions())
    gate = daemon.start { config = fixtures.serving("a", "offering", { OFFER = offer }) }
    serves_all()
    local warnings = gate:status().generation.warnings
    table.sort(warnings)
    golden.check("load", "definitions that are nearly right", table.concat(warnings, "\n"))
    for name in pairs(CASES) do
      if name ~= "booleans" then assert.truthy(gate:log():find("'" .. name .. "'", 1, true), name .. " is not in the log") end
    end
  end)

  it("is served over HTTP", function()
    local list = json.decode(definitions())
    process.write(directory .. "/tools.json", definitions())
    server = http_server.mcp { tools_file = directory .. "/tools.json" }
    gate = daemon.start { config = ("return { upstreams = { a = { url = '%s' } } }"):format(server.url) }
    assert.equal(#list, #gate:connect():asks("tools/list", {}).tools)
  end)

  it("is an error where a policy wrote it", function()
    local said = daemon.fails { policies = { ["t.lua"] = [==[
      return tool "t" { effects = "read", schema = json [[{"type":"object","properties":{"s":{"$ref":"#/$defs/S"}}}]],
                        run = function() return "ran" end }]==] } }
    assert.truthy(said:find("leads nowhere", 1, true), said)
    said = daemon.fails { policies = { ["t.lua"] = [==[
      return tool "t" { effects = "read", schema = { type = "object" },
                        output_schema = json [[{"type":"object","properties":{"s":{"pattern":"("}}}]],
                        run = function() return "ran" end }]==] } }
    assert.truthy(said:find("output schema", 1, true), said)
  end)

  it("is left out of the operator's file", function()
    process.write(directory .. "/t.json",
                  '[{"name":"t","inputSchema":{"type":"object","properties":{"s":{"$ref":"#/$defs/S"}}}}]')
    gate = daemon.start { policies = {}, arguments = { "--tools", directory .. "/t.json" } }
    gate:logs "tool 't' is left out: input schema: the reference"
  end)
end)
