-- tool_return: content blocks for the model and metadata for the client, besides a value.

local function policy(returns, fields)
  return ([==[
-- show: returns what the spec asks for. For specs.
return tool "show" {
  description = "Shows.", schema = params {},
  %s
  run = function()
    local shown = %s
    return shown
  end,
}
]==]):format(fields or "", returns)
end

describe("tool_return", function()
  local gate

  local function shows(returns, fields)
    gate = daemon.start { policies = { ["show.lua"] = policy(returns, fields) } }
    return gate:connect():calls("show", {}, session "s")
  end

  it("passes blocks of every kind to the model, in order", function()
    local result = shows [==[tool_return { content = {
      { type = "text", text = "two pictures", annotations = { audience = { "user" }, priority = 0.5 } },
      { type = "image", data = "aGk=", mimeType = "image/png" },
      { type = "audio", data = "aGk=", mimeType = "audio/wav; rate=8000" },
      { type = "resource_link", uri = "file:///report.pdf", name = "report", size = 12, mimeType = "application/pdf" },
      { type = "resource", resource = { uri = "note://1", text = "hello" } },
      { type = "resource", resource = { uri = "note://2", blob = "aGk=", mimeType = "image/png" } },
    } }]==]
    assert.is_not_true(result.isError, text(result))
    local kinds = {}
    for i, block in ipairs(result.content) do kinds[i] = block.type end
    assert.same({ "text", "image", "audio", "resource_link", "resource", "resource" }, kinds)
    assert.same({ audience = { "user" }, priority = 0.5 }, result.content[1].annotations)
    assert.same({ uri = "note://2", blob = "aGk=", mimeType = "image/png" }, result.content[6].resource)
  end)

  it("passes metadata to the client, not to the model", function()
    local result = shows [==[tool_return { value = { rows = 3 }, metadata = { ["example.com/took"] = 17, secret = "s3" } }]==]
    assert.equal(17, result._meta["example.com/took"])
    assert.equal("s3", result._meta.secret)
    assert.same({ rows = 3 }, json.decode(result.content[1].text))
    for _, block in ipairs(result.content) do assert.is_nil(json.encode(block):find("s3", 1, true)) end
  end)

  it("returns the value as structuredContent beside its content", function()
    local result = shows([==[tool_return { value = { rows = 3 }, content = { { type = "text", text = "three rows" } } }]==],
                         [==[output_schema = json [[{"type":"object","required":["rows"]}]],]==])
    assert.same({ rows = 3 }, result.structuredContent)
    assert.equal("three rows", result.content[1].text)
  end)

  it("returns the value as a text block behind its content if there is no output schema", function()
    local result = shows [==[tool_return { value = { rows = 3 }, content = { { type = "text", text = "three rows" } } }]==]
    assert.same({ "three rows", '{"rows":3}' }, { result.content[1].text, result.content[2].text })
    result = shows [==[tool_return { value = "plain", content = { { type = "text", text = "three rows" } } }]==]
    assert.same({ "three rows", "plain" }, { result.content[1].text, result.content[2].text })
  end)

  it("does not repeat a value that its content has", function()
    local result = shows [==[tool_return { value = { rows = 3 }, content = { { type = "text", text = '{ "rows": 3 }' } } }]==]
    assert.equal(1, #result.content)
  end)

  it("lets the result hook read the text of content without a value", function()
    local result = shows([==[tool_return { content = { { type = "text", text = "three rows" } } }]==],
                         [==[result = function(r) return ok { facts = { text = r.text } } end,]==])
    assert.same({ text = "three rows" }, verdict(result).facts)
  end)

  describe("gives file and line for content that no client would accept:", function()
    local function refuses(returns)
      local said = verdict(shows(returns))
      assert.equal("policy_error", said.error_class)
      assert.truthy(said.detail:find("show.lua:6: ", 1, true), said.detail)
      assert.truthy(gate:logs("policy_error"):find("show.lua:6: ", 1, true))
      golden.check("load", "policy fault: " .. returns, said.detail)
    end

    for _, content in ipairs {
      '"text"',
      '{ "text" }',
      '{ { type = "text", text = "a" }, { type = "picture" } }',
      '{ { text = "a" } }',
      '{ { type = "text" } }',
      '{ { type = "image", data = "no base64!", mimeType = "image/png" } }',
      '{ { type = "image", data = "aGk", mimeType = "image/png" } }',
      '{ { type = "image", data = "aGk=" } }',
      '{ { type = "audio", data = "aGk=", mimeType = "wav" } }',
      '{ { type = "resource_link", uri = "report.pdf", name = "r" } }',
      '{ { type = "resource_link", uri = "file:///r" } }',
      '{ { type = "resource", resource = { text = "a" } } }',
      '{ { type = "resource", resource = { uri = "a:b" } } }',
      '{ { type = "text", text = "a", annotations = { priority = 2 } } }',
      '{ { type = "text", text = "a", annotations = { audience = { "model" } } } }',
    } do
      it(content, function() refuses("tool_return { content = " .. content .. " }") end)
    end

    it("metadata that is not a table", function()
      refuses 'tool_return { value = 1, metadata = "m" }'
    end)
  end)
end)

describe("a command may print", function()
  local function prints(what, fields)
    local gate = daemon.start { policies = { ["show.lua"] = ([==[
-- show: prints what the spec asks for. For specs.
return tool "show" { description = "Shows.", schema = params { text = str "What" }, %s
  exec = { "printf", "%%s", "{text}" } }
]==]):format(fields or "") } }
    return gate:connect():calls("show", { text = type(what) == "string" and what or json.encode(what) }, session "s")
  end

  it("the fields of tool_return", function()
    local result = prints({ value = { rows = 3 }, content = { { type = "image", data = "aGk=", mimeType = "image/png" } },
                            metadata = { took = 17 } }, [==[output_schema = json [[{"type":"object","required":["rows"]}]],]==])
    assert.same({ { type = "image", data = "aGk=", mimeType = "image/png" } }, result.content)
    assert.same({ rows = 3 }, result.structuredContent)
    assert.equal(17, result._meta.took)
  end)

  it("a value with metadata alone", function()
    local result = prints { value = { 1, 2 }, metadata = { took = 17 } }
    assert.equal("[1,2]", result.content[1].text)
    assert.equal(17, result._meta.took)
  end)

  it("an MCP result, also an error", function()
    local result = prints { content = { { type = "text", text = "no such row" } }, isError = true }
    assert.is_true(result.isError)
    assert.equal("tool_error", verdict(result).error_class)
    golden.check("feedback", "result: an error as MCP has it", text(result))
  end)

  it("any other JSON or string, which is the value", function()
    for _, what in ipairs { { content = { { id = 1 } }, pages = 3 }, { value = 5 }, { metadata = { a = 1 } },
                            { value = 5, content = { { type = "image", data = "?" } } } } do
      assert.same(what, json.decode(prints(what).content[1].text))
    end
    assert.equal("plain", prints("plain").content[1].text)
  end)

  it("JSON that fits the output schema, which becomes structuredContent", function()
    local result = prints({ rows = 3 }, [==[output_schema = json [[{"type":"object","required":["rows"]}]],]==])
    assert.same({ rows = 3 }, result.structuredContent)
  end)
end)
