-- The operator's own response schemas: the folder schemas/ beside the policies or the configuration, toolgate/schemas.
local cjson = require "cjson"

local INVOICE = [[{
  "description": "One invoice.",
  "type": "object",
  "properties": {
    "number": { "type": "string", "minLength": 3 },
    "total": { "type": "number", "minimum": 0 },
    "due": { "type": "string", "format": "date" },
    "site": { "type": "string", "format": "uri" },
    "payer": { "oneOf": [{ "type": "string" }, { "type": "integer" }] }
  },
  "required": ["number", "total", "payer"]
}]]

local FREE = '{"type":"object","properties":{"meta":{"type":"object","additionalProperties":{"type":"string"}}}}'

describe("response schemas of the operator", function()
  local gate, client, folder
  before_each(function()
    folder = process.directory()
    os.execute(("mkdir -p '%s/policies' '%s/schemas'"):format(folder, folder))
    process.write(folder .. "/policies/echo.lua", fixtures.echo)
  end)

  local function schema(name, text) process.write(folder .. "/schemas/" .. name, text) end

  local function start(config)
    gate, client = daemon.open { policies = folder .. "/policies", config = config }
  end

  local function fails()
    local said, code = daemon.fails { policies = folder .. "/policies" }
    assert.not_equal(0, code)
    return said
  end

  local function names()
    local found = {}
    for i, entry in ipairs(client:asks("toolgate/schemas", {}).schemas) do found[i] = entry.name end
    return found
  end

  it("are listed by name beside toolgate's own, and in the status", function()
    schema("invoice.json", INVOICE)
    schema("free.json", FREE)
    schema("README.md", "no schema")
    start()
    assert.same({ "verdict", "coverage", "free", "invoice" }, names())
    local entries = client:asks("toolgate/schemas", {}).schemas
    assert.same({ "toolgate", "operator" }, { entries[1].source, entries[4].source })
    assert.equal("One invoice.", entries[4].description)
    assert.same({ "free", "invoice" }, gate:status().generation.schemas)
  end)

  it("are served as they are", function()
    schema("invoice.json", INVOICE)
    start()
    assert.same(cjson.decode(INVOICE), client:asks("toolgate/schemas", { name = "invoice" }).schema)
    assert.is_nil(client:asks("toolgate/schemas", { name = "invoice" }).warnings)
  end)

  it("are served as response formats, strict with a warning for each change", function()
    schema("invoice.json", INVOICE)
    start()
    local openai = client:asks("toolgate/schemas", { name = "invoice", format = "openai" })
    local inner = openai.response_format.json_schema
    assert.same({ "json_schema", "invoice", true }, { openai.response_format.type, inner.name, inner.strict })
    assert.is_false(inner.schema.additionalProperties)
    assert.same({ "number", "total", "due", "site", "payer" }, inner.schema.required)
    assert.same({ "string", "null" }, inner.schema.properties.due.type)
    assert.equal(2, #inner.schema.properties.payer.anyOf)
    assert.is_nil(inner.schema.properties.number.minLength)
    local said = table.concat(openai.warnings, "\n")
    for _, part in ipairs { "#/number: 'minLength' is left out", "#/site: the format 'uri' is left out",
                            "#/payer: 'oneOf' is read as anyOf", "#: 'due' is required, and may be null",
                            "#: it is closed" } do
      assert.truthy(said:find(part, 1, true), part .. " is not in:\n" .. said)
    end
    assert.equal("json_schema", client:asks("toolgate/schemas", { name = "invoice", format = "anthropic" }).output_format.type)
    local gemini = client:asks("toolgate/schemas", { name = "invoice", format = "gemini" })
    assert.same(cjson.decode(INVOICE), gemini.generationConfig.responseJsonSchema)
    assert.same({}, gemini.warnings)
  end)

  it("are served without strict where that is not possible, with the reason", function()
    schema("free.json", FREE)
    start()
    local openai = client:asks("toolgate/schemas", { name = "free", format = "openai" })
    assert.is_false(openai.response_format.json_schema.strict)
    assert.same(cjson.decode(FREE), openai.response_format.json_schema.schema)
    assert.equal(1, #openai.warnings)
    assert.matches("^strict is not possible.*#/meta: an object with any keys", openai.warnings[1])
  end)

  it("follow a reload, which a broken one does not pass", function()
    start()
    assert.same({ "verdict", "coverage" }, names())
    schema("invoice.json", INVOICE)
    gate:reload()
    assert.same({ "verdict", "coverage", "invoice" }, names())
    schema("invoice.json", '{"type":"strang"}')
    gate:reload()
    assert.matches("reload_failed", gate:log())
    assert.equal("object", client:asks("toolgate/schemas", { name = "invoice" }).schema.type)
  end)

  it("are errors at load if they are none, with file and pointer", function()
    schema("a.json", '{"type":"object","properties":{"n":{"type":"strang"}}}')
    schema("b.json", '{"type":')
    schema("c.json", '["x"]')
    schema("no name.json", FREE)
    schema(".json", FREE)
    schema("verdict.json", FREE)
    local said = fails()
    for _, pattern in ipairs { "schemas/a%.json: .*/properties/n", "schemas/b%.json:1", "schemas/c%.json: expected a JSON Schema",
                               "schemas/no name%.json: expected a name of 1 to 64", "schemas/%.json: expected a name",
                               "schemas/verdict%.json: toolgate's own schema is named 'verdict'" } do
      assert.matches(pattern, said)
    end
  end)

  it("lie where the configuration says, which must exist", function()
    os.execute(("mkdir -p '%s/elsewhere'"):format(folder))
    process.write(folder .. "/elsewhere/other.json", FREE)
    schema("invoice.json", INVOICE)
    start(("return { schemas = '%s/elsewhere' }"):format(folder))
    assert.same({ "verdict", "coverage", "other" }, names())
    local said = daemon.fails { policies = folder .. "/policies", config = "return { schemas = '/nothing/there' }" }
    assert.matches("schemas /nothing/there: expected a folder", said)
  end)

  it("lie beside the configuration by default", function()
    schema("invoice.json", INVOICE)
    start("return {}")
    assert.same({ "verdict", "coverage", "invoice" }, names()) -- beside the policies: the configuration has none
    os.execute(("mkdir -p '%s/schemas'"):format(gate.directory))
    process.write(gate.directory .. "/schemas/mine.json", FREE)
    gate:reload()
    assert.same({ "verdict", "coverage", "mine" }, names())
  end)

  it("are named if another is asked for", function()
    schema("invoice.json", INVOICE)
    start()
    local fault = client:ask("toolgate/schemas", { name = "invoce" }).error
    assert.equal(-32602, fault.code)
    assert.matches("expected one of verdict, coverage, invoice, got 'invoce'", fault.message)
  end)
end)
