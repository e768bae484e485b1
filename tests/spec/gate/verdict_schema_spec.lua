-- Every verdict follows the schema that toolgate/schemas publishes, says what is wrong (detail) and what to do next
-- (hint), and names what fits as a small JSON Schema.

local FAILS = [==[
-- fails: reports an error. For specs.
return tool "fails" { effects = "read", schema = params { n = optional(int()) },
  run = function() return failed("no_row", "no such row") end }
]==]

describe("a verdict", function()
  local client, folder, schema

  before_each(function()
    client = daemon.start { policies = { ["create_task.lua"] = fixtures.create_task, ["fails.lua"] = FAILS } }:connect()
    folder = process.directory()
    local _, line = client:asks("toolgate/schemas", { name = "verdict" })
    schema = process.write(folder .. "/verdict.json", json.encode(json.decode(line).result))
  end)

  local function follows_the_schema(result)
    local file = process.write(folder .. "/one.json", json.encode(verdict(result)))
    local code, out = process.run { daemon.binary, "validate", schema, file }
    assert.same({ 0, "" }, { code, code == 0 and "" or out })
    return verdict(result)
  end

  local function explains(result)
    local said = follows_the_schema(result)
    assert.truthy(said.detail and said.detail ~= "", "no detail")
    assert.truthy(said.hint and said.hint ~= "", "no hint")
    assert.truthy(text(result):find("Next: " .. said.hint, 1, true), text(result))
    return said
  end

  it("follows its schema if it passes", function()
    follows_the_schema(client:calls("create_task", { title = "x" }))
  end)

  it("has a detail and a hint if it does not", function()
    explains(client:calls("create_task", { titel = "x", count = "three" }))
    explains(client:calls("nothing", {}))
    explains(client:calls("fails", {}))
    local repeated
    for _ = 1, 6 do repeated = client:calls("fails", { n = 1 }, client_of.session("loop", { turn = 1 })) end
    assert.equal("loop", explains(repeated).error_class)
    assert.falsy(text(repeated):find("result you already have", 1, true), text(repeated))
  end)

  it("has what fits as a small schema, and what was sent", function()
    local said = explains(client:calls("create_task", { title = "x", status = "shipping", items = { 1, 2 } }))
    local by_path = {}
    for _, message in ipairs(said.messages) do by_path[message.path] = message end
    assert.same({ enum = { "placed", "shipped", "delivered" } }, by_path["args.status"].expected)
    assert.equal("shipping", by_path["args.status"].got)
    assert.same({ 2, "args.items[1]", "object" },
                { by_path["args.items[0]"].count, by_path["args.items[0]"].last_path,
                  by_path["args.items[0]"].expected.type })
  end)

  it("of the third identical call with wrong arguments names what is wrong with them", function()
    local result
    for _ = 1, 3 do result = client:calls("create_task", { status = 7 }, client_of.session("again", { turn = 1 })) end
    assert.truthy(text(result):find("'title' is missing", 1, true), text(result))
    assert.falsy(text(result):find("has not changed", 1, true), text(result))
    follows_the_schema(result)
  end)
end)
