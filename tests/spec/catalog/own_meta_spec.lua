-- What a hook or an agent says of one tool's definition beside its schema: strict mode, and the repair budget.

local function tools(strict)
  return { ["gateway.lua"] = ([[
-- gateway: for specs.
return gateway { prepare_tools = function(defs)
  for _, d in ipairs(defs) do if d.name == "find" then d.strict = %s end end
  return defs
end }
]]):format(strict), ["find.lua"] = [[
-- find: for specs.
return tool "find" { description = "Finds.", effects = "read", schema = params { n = int "N", to = optional(str "To") },
  run = function() return 1 end }
]], ["open.lua"] = [[
-- open: for specs.
return tool "open" { description = "Opens.", effects = "read", schema = params { n = int "N" }, run = function() return 1 end }
]] }
end

local function definitions(gate, params)
  local said, named = gate:connect():asks("toolgate/tools", params), {}
  for _, one in ipairs(said.tools) do named[one.name or one["function"].name] = one["function"] or one end
  return named, said.warnings
end

describe("strict set by prepare_tools", function()
  it("holds for its tool in OpenAI's format, whatever the request says of all", function()
    local found = definitions(daemon.start { policies = tools "true" }, { format = "openai" })
    assert.same({ true, { "n", "to" } }, { found.find.strict, found.find.parameters.required })
    assert.is_nil(found.open.strict)
    found = definitions(daemon.start { policies = tools "false" }, { format = "openai", strict = true })
    assert.same({ false, true }, { found.find.strict, found.open.strict })
  end)

  it("is told to programs that read MCP's format", function()
    local found = definitions(daemon.start { policies = tools "true" }, {})
    assert.is_true(found.find._meta["dev.toolgate/strict"])
    assert.is_nil(found.find.strict)
  end)

  it("is a warning where the format has no strict mode", function()
    local _, warnings = definitions(daemon.start { policies = tools "true" }, { format = "gemini" })
    assert.truthy(warnings[1].tool == "find" and warnings[1].text:find("strict has no effect", 1, true))
  end)

  it("is an error where it is no boolean", function()
    local gate = daemon.start { policies = tools "'yes'" }
    local found = definitions(gate, { format = "openai" })
    assert.is_nil(found.find.strict)
    gate:logs "strict: expected true or false, got string"
  end)
end)

describe("a registered tool's dev.toolgate/repair", function()
  local function attempts(budget, policies)
    local client = daemon.start { policies = policies }:connect()
    client:asks("toolgate/register", { tools = { { name = "count", inputSchema = {
      type = "object", properties = { n = { type = "integer" } }, required = { "n" }, additionalProperties = false },
      _meta = { ["dev.toolgate/repair"] = budget, ["dev.toolgate/schema"] = "strict" } } } })
    local left = {}
    for n = 1, 8 do
      local said = client:checks("count", { m = n }, session("s", { step = "s" .. n }))
      if said.verdict ~= "repair" then break end
      left[n] = said.attempts_left
    end
    return left
  end

  it("is its budget of attempts", function()
    assert.same({ 4, 3, 2, 1 }, attempts(4))
    assert.same({ 2, 1 }, attempts(nil))
    assert.same({ 2, 1 }, attempts("many"))
    assert.same({ 2, 1 }, attempts(-1))
  end)

  it("gives way to a policy", function()
    assert.same({ 1 }, attempts(4, { ["count.lua"] = '-- count: for specs.\nreturn tool "count" { retry = { repair = 1 } }\n' }))
  end)
end)

describe("what a definition says of its tool in words that are not read", function()
  it("is a warning: a hint that is no boolean or misspelt, a mode or a budget of toolgate that is none", function()
    local warnings = daemon.start { tools = [==[[
      {"name":"a","description":"A.","inputSchema":{"type":"object"},
       "annotations":{"readOnlyHint":"true","destructivehint":true,"title":"T","audience":["user"]}},
      {"name":"b","description":"B.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false},
       "_meta":{"dev.toolgate/schema":"Strict","dev.toolgate/repair":"2"}},
      {"name":"c","description":"C.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":null},
       "_meta":{"dev.toolgate/schema":"learn","dev.toolgate/repair":0}}]]==] }:status().generation.warnings
    local said = table.concat(warnings, "\n")
    assert.equal(4, #warnings, said)
    for _, wanted in ipairs { "'readOnlyHint' has no effect: expected readOnlyHint = true or false",
                              "'destructivehint' has no effect: expected destructiveHint = true or false",
                              "dev.toolgate/schema has no effect: expected strict, learn or advise",
                              "dev.toolgate/repair has no effect: expected a whole number from 0 to 1000" } do
      assert.truthy(said:find(wanted, 1, true), said)
    end
  end)
end)
