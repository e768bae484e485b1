-- Arguments that arrive odd as a whole, as raw JSON, and what the tool hears, if it runs: docs/protocol.md,
-- "Arguments that arrive odd".

-- A tool that answers with the arguments it heard.
local function listener(name, schema, fields)
  return ([==[
-- %s: says which arguments it was run with.
return tool "%s" {
  description = "Repeats what it hears.", %s
  schema = json [=[%s]=], output_schema = json '{"type":"object"}',
  run = function(args) return { heard = args } end,
}
]==]):format(name, name, fields or 'effects = "read",', schema)
end

local EDIT = [[{"type":"object","required":["path","code"],"additionalProperties":false,"properties":{
  "path":{"type":"string"},"code":{"type":"string"},"dry":{"type":"boolean"},
  "edits":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"}}}}}}]]
local OPEN = [[{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}}}]]
local NONE = [[{"type":"object","properties":{}}]]
local PATH = [[{"type":"object","required":["path"],"additionalProperties":false,"properties":{
  "path":{"type":"string"},"force":{"type":"boolean"}}}]]

local client
local function serve(policies)
  client = daemon.start { policies = policies }:connect()
end

-- `raw`: the JSON of params.arguments; nil: there is none.
local function ask(method, name, raw)
  client.last_id = client.last_id + 1
  client:say_line(('{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"%s"%s}}'):format(
    client.last_id, method, name, raw and ',"arguments":' .. raw or ""))
  return assert(client:answer(client.last_id).result)
end

-- What the tool heard (nil: it did not run), the verdict, and the text.
local function call(name, raw)
  local result = ask("tools/call", name, raw)
  local heard = not result.isError and result.structuredContent.heard or nil
  return heard, verdict(result), text(result)
end

local function refused(name, raw, code)
  local heard, said, words = call(name, raw)
  assert.is_nil(heard)
  assert.equal("repair", said.verdict)
  assert.equal("invalid_arguments", said.error_class)
  if code then assert.equal(code, said.code) end
  return said, words
end

local function as_text(text_of_json) return json.encode(text_of_json) end

describe("arguments that arrive as text", function()
  before_each(function()
    serve { ["edit.lua"] = listener("edit", EDIT), ["erase.lua"] = listener("erase", PATH, 'effects = "destructive",') }
  end)

  local RIGHT = { path = "a", code = "x\ny" }

  it("of two calls is refused: neither runs", function()
    local said, words = refused("edit", as_text [[{"path":"a","code":"1"}{"path":"b","code":"1"}]])
    assert.equal("several", said.messages[1].code)
    assert.matches("2 one after another: make a call of its own for each", words, 1, true)
    assert.equal("several", refused("erase", as_text [[{"path":"a"}{"path":"a"}]]).messages[1].code) -- it destroys
    refused("edit", as_text(("{}"):rep(17)))
  end)

  it("hold a whole number without a point for a tool that takes whole numbers", function()
    serve { ["open.lua"] = listener("open", OPEN) }
    for sent, heard in pairs { ["30.0"] = "30", ["1e3"] = "1000", ["7"] = "7" } do
      local _, _, words = call("open", '{"path":"1.0","limit":' .. sent .. "}")
      assert.truthy(words:find('"limit":' .. heard .. "}", 1, true), words)
      assert.truthy(words:find('"path":"1.0"', 1, true), words)
    end
  end)

  it("that say that there are none are an empty object for a tool without parameters", function()
    serve { ["list.lua"] = listener("list", NONE) }
    assert.same({}, (call("list", "[]")))
  end)

  local spelled = {
    { "as JSON", [[{"path":"a","code":"x\ny"}]] },
    { "as JSON, twice encoded", as_text [[{"path":"a","code":"x\ny"}]] },
    { "with a comma at the end", [[{"path":"a","code":"x\ny",}]] },
    { "in a code fence", "```json\n{\"path\":\"a\",\"code\":\"x\\ny\"}\n```" },
    { "with a line break in a string", "{\"path\":\"a\",\"code\":\"x\ny\"}" },
    { "as a Python literal", [[{'path': 'a', "code": 'x\ny'}]] },
    { "twice", [[{"path":"a","code":"x\ny"} {"path":"a","code":"x\ny"}]] },
    { "behind an empty object", [[{}{"path":"a","code":"x\ny"}]] },
    { "behind a byte order mark", "\239\187\191" .. [[{"path":"a","code":"x\ny"}]] },
  }
  for _, row in ipairs(spelled) do
    it("are read " .. row[1] .. ", and the patch replaces the whole", function()
      local heard, said = call("edit", as_text(row[2]))
      assert.same(RIGHT, heard)
      assert.same({ { op = "replace", path = "", value = RIGHT } }, said.rewrites)
      assert.is_true(said.valid)
    end)
  end

  it("are read if they were escaped once more, unless a backslash has two readings", function()
    assert.same({ path = "a", code = "x" }, (call("edit", as_text [[{\"path\": \"a\", \"code\": \"x\"}]])))
    refused("edit", as_text [[{\"path\": \"a\", \"code\": \"x\\ny\"}]])
  end)

  it("are read for a tool that destroys, too: only their spelling is repaired", function()
    assert.same({ path = "a" }, (call("erase", as_text [[{"path": "a",}]])))
    assert.same({ path = "a", force = true }, (call("erase", as_text [[{'path': 'a', 'force': True}]])))
  end)

  it("are noted for the model if they were spelled oddly, not if a client encodes every call", function()
    local _, _, words = call("edit", as_text [[{'path': 'a', 'code': 'b'}]])
    golden.check("feedback", "note: oddly spelled arguments", words)
    _, _, words = call("edit", as_text [[{"path":"a","code":"c"}]])
    assert.is_nil(words:find("Note", 1, true))
  end)

  it("are refused if they are no JSON, with the place", function()
    local said = refused("edit", as_text [[{"path" "a"}]], "invalid_arguments")
    assert.equal("type", said.messages[1].code)
    assert.truthy(said.messages[1].message:find("byte 8", 1, true))
    for _, other in ipairs { as_text "hello", as_text "[1]", as_text "5", "5", "[1]", "true",
                             as_text [[{"path":"a","code":"x"} and more]] } do
      refused("edit", other)
    end
  end)

  it("are refused if a key comes twice, or a surrogate is alone", function()
    assert.equal("unreadable", refused("edit", as_text [[{"path":"a","path":"b","code":"x"}]]).messages[1].code)
    assert.equal("unreadable", refused("edit", as_text [[{"path":"\ud800","code":"x"}]]).messages[1].code)
    assert.equal("unreadable", refused("edit", [[{"path":"a","path":"b","code":"x"}]]).messages[1].code)
    assert.equal("unreadable", refused("edit", [[{"path":"\ud800","code":"x"}]]).messages[1].code)
  end)
end)

describe("arguments that were cut off", function()
  before_each(function()
    serve { ["edit.lua"] = listener("edit", EDIT), ["open.lua"] = listener("open", OPEN) }
  end)

  it("are refused from the first call, with the place", function()
    local long = '{"path":"a","edits":[{"text":"' .. ("x"):rep(18902)
    local said, words = refused("edit", as_text(long), "cut_off")
    assert.equal("cut_off", said.messages[1].code)
    assert.truthy(words:find("arguments were cut off after 18,932 characters inside 'edits[0].text' (3 brackets open). "
                             .. "If the value is long, send it in parts.", 1, true), words)
  end)

  it("never run, at whatever byte they end, spelled as they may be", function()
    for _, whole in ipairs { '{"path":"a","limit":12,"x":[true,null]}', "{'path': 'a', 'limit': 12}", '{\\"path\\":\\"a\\"}',
                             "```json\n{\"path\":\"a\"}\n```" } do
      for bytes = 2, #whole - 1 do
        assert.is_nil((call("open", as_text(whole:sub(1, bytes)))), whole:sub(1, bytes))
      end
    end
  end)

  it("are recognised in a value where a list is wanted", function()
    local said, words = refused("edit", json.encode { path = "a", code = "x", edits = '[{"text":"one"},{"text":"tw' }, "cut_off")
    assert.equal("args.edits", said.messages[1].path)
    golden.check("feedback", "cut off: a list in a text", words)
  end)

  it("are recognised inside a wrapper, also of an open schema", function()
    refused("edit", json.encode { arguments = '{"path":"a","code":"pri' }, "cut_off")
    refused("open", json.encode { input = '{"path":"a","lim' }, "cut_off")
    refused("open", json.encode { input = '{"path" "a"}' })
  end)

  it("are suspected if a long field is missing", function()
    local said = refused("edit", [[{"path":"a"}]], "invalid_arguments")
    assert.same({ "args.code", "missing" }, { said.messages[1].path, said.messages[1].code })
    assert.truthy(said.messages[1].message:find("if 'code' was long, it may have been cut off", 1, true))
    local _, words = refused("edit", "{}")
    assert.truthy(words:find("arguments arrived empty; if 'code' was long, it may have been cut off: send it in parts", 1, true))
  end)
end)

describe("arguments that arrive empty", function()
  before_each(function()
    serve { ["open.lua"] = listener("open", OPEN), ["ask.lua"] = listener("ask", PATH),
            ["write_all.lua"] = listener("write_all", OPEN, 'effects = "write",'),
            ["erase_all.lua"] = listener("erase_all", OPEN, 'effects = "destructive",'),
            ["stamp.lua"] = listener("stamp", NONE, 'effects = "write",') }
  end)

  local NOTHING = { "null", '""', '"  \\n"', '"null"', '"\\"\\""' }

  it("are {} for a tool that reads, and for one without parameters", function()
    for _, name in ipairs { "open", "stamp" } do
      for _, raw in ipairs(NOTHING) do
        local result = ask("toolgate/check", name, raw)
        assert.same({ "pass", {} }, { result.verdict, result.arguments }, raw)
        assert.equal("replace", result.rewrites[1].op)
        assert.truthy(result.advice:find("were read as {}", 1, true))
      end
      assert.is_nil(ask("toolgate/check", name).rewrites)
    end
  end)

  it("lack what is required", function()
    assert.equal("missing", refused("ask", '""').messages[1].code)
    assert.equal("missing", refused("ask", "null").messages[1].code)
  end)

  it("are refused for a tool that writes and whose parameters are all optional; {} is what it says", function()
    for _, raw in ipairs(NOTHING) do
      for _, name in ipairs { "write_all", "erase_all" } do
        assert.equal("empty", refused(name, raw).messages[1].code, raw)
      end
    end
    local _, words = refused("write_all", '""')
    golden.check("feedback", "empty arguments of a tool that writes", words)
    assert.same({}, (call("write_all", "{}")))
    assert.same({}, (call("erase_all", "{}")))
  end)

  it("are none for a client that leaves them out, except for a tool that destroys", function()
    assert.same({}, (call("write_all")))
    refused("erase_all")
  end)
end)

describe("arguments in a wrapper", function()
  before_each(function()
    serve { ["edit.lua"] = listener("edit", EDIT), ["open.lua"] = listener("open", OPEN),
            ["erase.lua"] = listener("erase", PATH, 'effects = "destructive",'),
            ["purge.lua"] = listener("purge", OPEN, 'effects = "destructive",'),
            ["named.lua"] = listener("named", [[{"type":"object","required":["input"],
              "properties":{"input":{"type":"object"},"path":{"type":"string"}}}]]),
            ["plural.lua"] = listener("plural", [[{"type":"object","additionalProperties":false,
              "properties":{"inputs":{"type":"object"},"path":{"type":"string"}}}]]),
            ["kept.lua"] = listener("kept", PATH, 'effects = "read", coerce = { wrapped = false },') }
  end)

  for _, name in ipairs { "arguments", "args", "input", "parameters", "params", "edit" } do
    it("'" .. name .. "' are taken out of it", function()
      local heard, said, words = call("edit", ('{"%s":{"path":"a","code":"b"}}'):format(name))
      assert.same({ path = "a", code = "b" }, heard)
      local ops = {}
      for _, op in ipairs(said.rewrites) do ops[op.op .. " " .. op.path] = true end
      assert.same({ ["remove /" .. name] = true, ["add /path"] = true, ["add /code"] = true }, ops)
      local _, notes = words:gsub("Note:", "")
      assert.equal(1, notes)
      assert.truthy(words:find("'" .. name .. "'", 1, true))
    end)
  end

  it("are taken out of an open object that declares none of its names", function()
    assert.same({ path = "a", limit = 3 }, (call("open", [[{"input":{"path":"a","limit":"3"}}]])))
    assert.same({ path = "a" }, (call("open", [[{"params":"{\"path\":\"a\"}"}]])))
  end)

  it("are taken out if the tool's name stands beside them, as in a whole call", function()
    assert.same({ path = "a" }, (call("open", [[{"name":"open","arguments":{"path":"a"}}]])))
    assert.same({ path = "a", code = "b" }, (call("edit", [[{"arguments":"{\"path\":\"a\",\"code\":\"b\"}","name":"edit"}]])))
    refused("edit", [[{"name":"other","arguments":{"path":"a","code":"b"}}]])
  end)

  it("are taken out of wrappers around each other", function()
    assert.same({ path = "a" }, (call("open", [[{"input":{"arguments":{"path":"a"}}}]])))
    assert.same({ path = "a" }, (call("open", [[{"input":"{\"arguments\":{\"path\":\"a\"}}"}]])))
  end)

  it("are refused if nothing is in it and the tool writes", function()
    for _, raw in ipairs { [[{"arguments":{}}]], [[{"arguments":""}]], [[{"input":null}]], [[{"args":"{}"}]] } do
      assert.equal("empty", refused("purge", raw).messages[1].code, raw)
    end
  end)

  it("stay where the name is declared, where there is another member, and where nothing inside is declared", function()
    assert.same({ input = { path = "a" } }, (call("named", [[{"input":{"path":"a"}}]])))
    assert.same({ input = { path = "a" }, path = "b" }, (call("open", [[{"input":{"path":"a"},"path":"b"}]])))
    assert.same({ input = { other = 1 } }, (call("open", [[{"input":{"other":1}}]])))
  end)

  it("are judged inside it if they are wrong there", function()
    assert.equal("args.code", refused("edit", [[{"arguments":{"path":"a"}}]]).messages[1].path)
    assert.equal("args.limit", refused("open", [[{"arguments":{"limit":"many"}}]]).messages[1].path)
  end)

  it("are refused if the wrapper may be a misspelled name", function()
    assert.equal("ambiguous", refused("plural", [[{"input":{"path":"a"}}]]).messages[1].code)
  end)

  it("are proposed to a tool that destroys, which runs with exactly what is proposed", function()
    local said, words = refused("erase", [[{"arguments":{"path":"a","force":true}}]])
    assert.same({ { path = "args.path", value = "a" }, { path = "args.force", value = true } }, said.suggestions)
    golden.check("feedback", "a proposal of a tool that destroys", words)
    assert.is_nil(said.rewrites)
    assert.same({ path = "a", force = true }, (call("erase", [[{"path":"a","force":true}]])))
    said = refused("purge", [[{"input":{"path":"a"}}]])
    assert.equal("not_repaired", said.messages[1].code)
    refused("purge", [[{"input":{"path":5}}]])
  end)

  it("are not proposed if they are long", function()
    local said = refused("erase", json.encode { arguments = { path = ("x"):rep(9000) } })
    assert.is_nil(said.suggestions)
    said = refused("purge", json.encode { arguments = { path = ("x"):rep(9000) } })
    assert.is_nil(said.suggestions)
  end)

  it("stay in it if the policy says so", function()
    refused("kept", [[{"arguments":{"path":"a"}}]])
  end)
end)

describe("a tool that destroys", function()
  it("gets no name, no type and no word guessed; all of it is proposed", function()
    serve { ["erase.lua"] = listener("erase", PATH, 'effects = "destructive",'),
            ["purge.lua"] = listener("purge", OPEN, 'effects = "destructive",'),
            ["delete_row.lua"] = listener("delete_row", PATH, "") }
    for _, row in ipairs { { "erase", [[{"Path":"a"}]] }, { "erase", [[{"path":"a","force":"yes"}]] },
                           { "erase", [[{"path":["a"]}]] }, { "purge", [[{"Limit":5}]] }, { "delete_row", [[{"Path":"a"}]] } } do
      local said = refused(row[1], row[2])
      assert.is_true(#said.suggestions > 0, row[2])
    end
  end)

  it("gets what its policy names", function()
    serve { ["erase.lua"] = listener("erase", PATH, 'effects = "destructive", coerce = { words = true },'),
            ["purge.lua"] = listener("purge", PATH, 'effects = "destructive", coerce = { lists = false },'),
            ["delete_row.lua"] = listener("delete_row", PATH, 'effects = "write",') }
    assert.same({ path = "a", force = true }, (call("erase", [[{"path":"a","force":"yes"}]])))
    refused("erase", [[{"Path":"a"}]])
    refused("purge", [[{"Path":"a"}]])
    assert.same({ path = "a" }, (call("delete_row", [[{"Path":"a"}]])))
  end)
end)

describe("odd arguments", function()
  it("run as they were sent in mode shadow, which reports what enforce would do", function()
    serve { ["edit.lua"] = listener("edit", EDIT, 'effects = "read", mode = "shadow",') }
    local heard, said, words = call("edit", [[{"arguments":{"path":"a","code":"b"}}]])
    assert.same({ arguments = { path = "a", code = "b" } }, heard)
    assert.is_nil(said.rewrites)
    assert.is_nil(words:find("Note", 1, true))
    heard, said = call("edit", [[{"path":"a"}]])
    assert.same({ { path = "a" }, "invalid_arguments" }, { heard, said.would })
    refused("edit", as_text [[{"path":"a","code":"b]], "cut_off")
  end)

  it("are repaired in the reply of check, with the text for the model", function()
    serve { ["edit.lua"] = listener("edit", EDIT) }
    local reply = ask("toolgate/check", "edit", [[{"params":{"path":"a","Code":"b"}}]])
    assert.same({ "pass", { path = "a", code = "b" } }, { reply.verdict, reply.arguments })
    golden.check("feedback", "note: a wrapper and a renamed parameter", reply.text)
    reply = ask("toolgate/check", "edit", as_text '{"path":"a","code":"b')
    assert.same({ "repair", "cut_off" }, { reply.verdict, reply.code })
    assert.truthy(reply.text:find("cut off", 1, true))
  end)

  it("are renamed in one line of a note each", function()
    serve { ["lines.lua"] = listener("lines", [[{"type":"object","required":["start"],"properties":{"start":{"type":"integer"},
      "start_line":{"type":"integer"},"end_line":{"type":"integer"}}}]]) }
    local heard, _, words = call("lines", [[{"start":1,"startLine":2,"endLine":"3"}]])
    assert.same({ start = 1, start_line = 2, end_line = 3 }, heard)
    assert.truthy(words:find("Note: 'startLine' was read as 'start_line'.", 1, true), words)
    assert.truthy(words:find("Note: 'endLine' was read as 'end_line'.", 1, true), words)
  end)

  it("reach an upstream repaired, and not at all if they were cut off", function()
    local notes = process.directory() .. "/notes"
    local config = ([[return { upstreams = { rows = { command = "luajit", args = { "%s/tests/support/lenient_server.lua" },
                                                      env = { NOTES = "%s" } } } }]]):format(daemon.root, notes)
    client = daemon.start { config = config }:connect()
    process.eventually("the tools are listed", function() return #client:asks("tools/list").tools >= 5 end)
    local args = [[{"query":"x","limit":3,"zone":"UTC","page":1}]]
    assert.is_not_true(ask("tools/call", "find_rows", '{"arguments":' .. args .. "}").isError)
    assert.is_not_true(ask("tools/call", "find_rows", as_text("```\n" .. args:gsub("3", "4") .. "\n```")).isError)
    for _ = 1, 4 do assert.is_true(ask("tools/call", "find_rows", as_text(args:sub(1, -4))).isError) end
    local received = {}
    for line in io.lines(notes) do received[#received + 1] = json.decode(line:match "{.*}") end
    assert.same({ { query = "x", limit = 3, zone = "UTC", page = 1 }, { query = "x", limit = 4, zone = "UTC", page = 1 } },
                received)
  end)

  it("are read alike by the examples of a policy", function()
    local folder = process.directory()
    process.write(folder .. "/edit.lua", (listener("edit", EDIT):gsub("\n}\n$", [==[

  examples = {
    { "a wrapper is taken off", args = { arguments = { path = "a", code = "b" } },
      gives = "pass", becomes = { path = "a", code = "b" } },
    { "a call that was cut off is refused", args = { arguments = '{"path":"a","co' },
      gives = "repair", says = "cut off" },
  },
}
]==])))
    local status, out = process.run { daemon.binary, "test", folder }
    assert.equal(0, status, out)
  end)
end)

describe("a refusal names what the model can act on", function()
  local LANGUAGE = [[{"type":"object","required":["lang"],"properties":{"lang":{"enum":["en_US","en_GB","de_DE"]}}}]]
  local STATIONS = [[{"type":"object","required":["stationNames"],"additionalProperties":false,"properties":{
    "stationNames":{"type":"string"}}}]]

  before_each(function()
    serve { ["edit.lua"] = listener("edit", EDIT), ["write_note.lua"] = listener("write_note", EDIT, 'effects = "write",'),
            ["speak.lua"] = listener("speak", LANGUAGE), ["get_stations.lua"] = listener("get_stations", STATIONS) }
  end)

  for _, row in ipairs {
    { "a quote inside a string", "edit", as_text '{"path":"a","code":"print("hi")"}',
      [[inside 'code' a double quote before byte 27 is not escaped]] },
    { "a comma that is missing", "edit", as_text '{"path":"a" "code":"b"}', "expected ',' or '}'" },
    { "markup inside a value", "edit", [[{"path":"a</parameter>\n<parameter name=\"code\">b"}]],
      "markup of parameters stands inside 'path'" },
    { "a long text that a tool reads", "edit", '{"path":"a"}', "it may have been cut off: send it in parts" },
    { "a long text that a tool writes", "write_note", '{"path":"a"}', "send less of it at once, or add the rest with another" },
    { "the beginning of two values", "speak", '{"lang":"en"}', "(did you mean 'en_US' or 'en_GB'?)" },
    { "a list for one text", "get_stations", '{"names":["a","b"]}', "did you mean 'stationNames'? It takes string" },
  } do
    it("of " .. row[1], function()
      local _, words = refused(row[2], row[3])
      assert.truthy(words:find(row[4], 1, true), words)
    end)
  end
end)
