-- toolgate validate: the JSON Schema validator as a command.
local json = require("client").json

local SCHEMA = [[{"type": "object", "required": ["due"], "additionalProperties": false,
                  "properties": {"due": {"format": "date"}, "count": {"type": "integer", "minimum": 1}}}]]

describe("toolgate validate", function()
  local folder

  before_each(function()
    folder = process.directory()
    process.write(folder .. "/schema.json", SCHEMA)
  end)

  local function file(name, text) return process.write(folder .. "/" .. name, text) end
  local function validate(...) return process.run({ daemon.binary, "validate", ... }) end

  it("reports a valid instance", function()
    local code, out = validate(folder .. "/schema.json", file("a.json", [[{"due": "2026-05-03", "count": 2}]]))
    assert.are.same({ 0, folder .. "/a.json: valid\n" }, { code, out })
  end)

  it("reports every problem of every instance", function()
    local code, out = validate(folder .. "/schema.json", file("a.json", [[{"count": 0, "cuont": 3}]]),
                               file("b.json", "[]"))
    assert.are.equal(1, code)
    golden.check("cli", "validate: every problem of every instance", out)
  end)

  it("reads stdin, and prints JSON with --json", function()
    local code, out = process.run({ daemon.binary, "validate", folder .. "/schema.json", "-", "--json" },
                                  { input = [[{"due": "tomorrow"}]] })
    local answer = json.decode(out)
    assert.are.equal(1, code)
    assert.is_false(answer.valid)
    answer.problems[1].message = nil
    local wanted = { path = "due", code = "format", expected = { type = "string", format = "date" }, got = "tomorrow" }
    assert.are.same(wanted, answer.problems[1])
  end)

  it("does not assert format with --annotate-format", function()
    assert.are.equal(0, (validate(folder .. "/schema.json", file("a.json", [[{"due": "tomorrow"}]]), "--annotate-format")))
  end)

  it("resolves $ref from the documents given with --with, and fetches nothing", function()
    local schema = file("ref.json", [[{"$ref": "https://example.com/id"}]])
    local code, _, err = validate(schema, file("a.json", "7"))
    assert.are.equal(2, code)
    assert.is_truthy(err:find("https://example.com/id", 1, true), err)
    local document = file("id.json", [[{"type": "integer"}]])
    assert.are.equal(0, (validate(schema, folder .. "/a.json", "--with", "https://example.com/id=" .. document)))
    code, _, err = validate(schema, folder .. "/a.json", "--with", document)
    assert.are.equal(2, code)
    golden.check("cli", "validate: --with without a URI", err)
  end)

  it("warns of a small fault in a schema, and validates with it", function()
    local schema = file("old.json", [[{"minimum": 3, "exclusiveMinimum": true}]])
    local code, _, err = validate(schema, file("a.json", "3"))
    assert.are.equal(1, code)
    golden.check("cli", "validate: a schema with a small fault", err)
  end)

  for name, case in pairs {
    ["no operands"] = { {}, "SCHEMA INSTANCE" },
    ["an unknown dialect"] = { { "dialect.json", "a.json" }, "https://example.com/my-own" },
    ["a schema that is no JSON"] = { { "broken.json", "a.json" }, "broken.json:1" },
    ["an instance that is no JSON"] = { { "schema.json", "broken.json" }, "broken.json:1" },
    ["no such file"] = { { "schema.json", "absent.json" }, "absent.json" },
  } do
    it("reports the error and exits 2 for " .. name, function()
      file("a.json", "{}")
      file("broken.json", "{,}")
      file("dialect.json", [[{"$schema": "https://example.com/my-own"}]])
      local arguments = {}
      for i, operand in ipairs(case[1]) do arguments[i] = folder .. "/" .. operand end
      local code, _, err = validate(unpack(arguments))
      assert.are.equal(2, code)
      assert.is_truthy(err:find(case[2], 1, true), err)
      golden.check("cli", "validate: " .. name, err)
    end)
  end
end)

describe("the validation in docs/testing.md", function()
  it("prints what the page shows", function()
    local page = process.read "docs/testing.md"
    local command, shown = page:match "\n%$ (toolgate validate [^\n]+)\n(.-)```"
    local argv = {}
    for word in command:gmatch "%S+" do argv[#argv + 1] = word end
    argv[1] = daemon.binary
    local code, out = process.run(argv)
    assert.are.same({ 1, shown }, { code, out })
  end)
end)
