-- The decision log: a record of every call, what it holds, and what it never holds.
local cjson = require "cjson"

local both = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task }
local ALWAYS = { "v", "ts", "decision_id", "generation", "uid", "session", "turn", "tool", "arguments", "verdict",
                 "error_class", "us" }

local function file_of(gate) return gate.socket .. ".state/decisions.ndjson" end

-- Waits until the file has `count` records, and returns them.
local function records(path, count)
  local list
  process.eventually(count .. " records in " .. path, function()
    list = {}
    for _, line in ipairs(process.whole_lines(path)) do list[#list + 1] = cjson.decode(line) end
    return #list >= count
  end)
  assert.equal(count, #list)
  return list
end

describe("the decision log", function()
  it("has a record of every call, passed ones too, with all fixed fields", function()
    local gate, client = daemon.open { policies = both }
    local meta = { ["dev.toolgate/session"] = "chat-7", ["dev.toolgate/turn"] = 3, ["dev.toolgate/call"] = "toolu_1",
                   ["dev.toolgate/step"] = "m12", ["dev.toolgate/ext"] = "crm" }
    client:calls("echo", { text = "hi" }, meta)
    client:checks("create_task", { due_date = "tomorrow" }, meta)
    client:calls("nothing", { a = 1 }, meta)
    local list = records(file_of(gate), 3)
    for i, verdict in ipairs { "pass", "repair", "refuse" } do
      for _, field in ipairs(ALWAYS) do assert.not_nil(list[i][field], field) end
      assert.equal(verdict, list[i].verdict)
      assert.same({ "chat-7", 3, "toolu_1", "m12", "crm" },
                  { list[i].session, list[i].turn, list[i].label, list[i].step, list[i].ext })
      assert.is_true(list[i].us.total >= 0)
      assert.truthy(list[i].ts:match "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$")
    end
    assert.same({ text = "hi" }, list[1].arguments)
    assert.equal("unknown_tool", list[3].error_class)
    assert.same({ "tools/call", "toolgate/check", "tools/call" },
                { list[1].method, list[2].method, list[3].method })
  end)

  -- What records share is written once and copied: it follows the tool, the method, the mode and the generation.
  it("names each call's own tool, method, mode and generation", function()
    local gate, client = daemon.open { policies = both }
    local function round()
      for _ = 1, 2 do
        client:calls("echo", { text = "hi" })
        client:checks("echo", { text = "hi" })
        client:checks("create_task", { title = "Call Ana" })
        client:calls("nothing", {})
      end
    end
    round()
    gate:write_policy("echo.lua", (fixtures.echo:gsub('tool "echo" {', 'tool "echo" { mode = "shadow",', 1)))
    gate:reload()
    round()
    local list = records(file_of(gate), 16)
    local generation = { list[1].generation, list[9].generation }
    assert.not_equal(generation[1], generation[2])
    for i, record in ipairs(list) do
      local after, place = math.floor((i - 1) / 8), (i - 1) % 4
      local mode = place == 2 and "enforce" or place < 2 and ({ "enforce", "shadow" })[after + 1] or nil
      assert.same({ ({ "echo", "echo", "create_task", "nothing" })[place + 1],
                    ({ "tools/call", "toolgate/check", "toolgate/check", "tools/call" })[place + 1],
                    generation[after + 1], mode },
                  { record.tool, record.method, record.generation, record.policy_mode })
    end
  end)

  it("gives a report the decision_id of its check", function()
    local gate, client = daemon.open { policies = both }
    local check = client:checks("create_task", { title = "Call Ana" })
    client:asks("toolgate/report", { callId = check.callId, result = { id = 5 } })
    local list = records(file_of(gate), 2)
    assert.same({ check.callId, check.callId }, { list[1].decision_id, list[2].decision_id })
    assert.equal("toolgate/report", list[2].method)
    assert.equal("ok", list[2].result.class)
  end)

  it("is off with decisions = false", function()
    local gate = daemon.start { policies = both, config = "return { decisions = false }" }
    gate:connect():calls("echo", { text = "hi" })
    assert.is_false(gate:status().decisions.on)
    gate:stop()
    assert.is_nil(io.open(file_of(gate)))
  end)

  it("writes what is buffered when the daemon stops", function()
    local directory = process.directory()
    local gate = daemon.start { policies = both, config = ("return { decisions = { file = %q } }"):format(directory .. "/log") }
    local client = gate:connect()
    for i = 1, 50 do client:checks("create_task", { title = "task " .. i }) end
    gate:stop()
    assert.equal(50, #records(directory .. "/log", 50))
  end)

  it("has the trace, the alias and the upstream of a call only if it has one", function()
    local gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
    local trace = "0af7651916cd43dd8448eb211c80319c"
    client:calls("echo", { text = "a" }, { traceparent = "00-" .. trace .. "-b7ad6b7169203331-01" })
    client:calls("echo", { text = "b" }, { traceparent = "00-" .. ("0"):rep(32) .. "-b7ad6b7169203331-01" })
    client:calls("echo", { text = "c" }, { traceparent = "00-" .. trace:upper() .. "-b7ad6b7169203331-01" })
    client:calls("echo", { text = "d" }, { traceparent = "nonsense" })
    local list = records(file_of(gate), 4)
    assert.equal(trace, list[1].trace_id)
    for i = 2, 4 do assert.is_nil(list[i].trace_id) end
    for _, field in ipairs { "alias", "upstream", "masked", "would", "messages" } do assert.is_nil(list[1][field]) end
  end)

  it("has the whole decision that a shadow did not enforce", function()
    local shadow = fixtures.create_task:gsub("effects =", 'mode = "shadow", effects =')
    local gate = daemon.start { policies = { ["create_task.lua"] = shadow } }
    gate:connect():checks("create_task", { due_date = "tomorrow" })
    local record = records(file_of(gate), 1)[1]
    assert.same({ "pass", "shadow" }, { record.verdict, record.policy_mode })
    assert.same({ "repair", "invalid_arguments", "schema" },
                { record.would.verdict, record.would.error_class, record.would.stage })
    assert.truthy(record.would.code and record.would.detail and record.would.hint)
    local codes = {}
    for _, message in ipairs(record.would.messages) do codes[message.code] = message.path end
    assert.equal("args.title", codes.missing)
  end)

  describe("with arguments", function()
    local function one(decisions, tool, arguments)
      local gate = daemon.start { policies = both, config = "return { decisions = " .. decisions .. " }" }
      gate:connect():checks(tool, arguments)
      local record, path = records(file_of(gate), 1)[1], file_of(gate)
      local line = process.read(path)
      gate:stop()
      return record, line
    end

    it("= full has them, and texts that quote them", function()
      local record = one('{ arguments = "full" }', "create_task", { title = "x", due_date = "password=1234567" })
      assert.equal("password=1234567", record.arguments.due_date)
      assert.truthy(record.messages[1].message:find("password=1234567", 1, true))
    end)

    it("= none has neither", function()
      local record, line = one('{ arguments = "none" }', "create_task", { title = "x", due_date = "tomorrow" })
      assert.same({ nil, nil, nil }, { record.arguments, record.arguments_hash, record.detail })
      assert.equal("format", record.messages[1].code)
      assert.is_nil(line:find("tomorrow", 1, true))
    end)

    it("= hash has the same keyed hash for the same arguments", function()
      local gate, client = daemon.open { policies = both, config = 'return { decisions = { arguments = "hash" } }' }
      client:checks("create_task", { title = "x" })
      client:asks("toolgate/check", { name = "create_task", arguments = { title = "x" } })
      client:checks("create_task", { title = "y" })
      local list = records(file_of(gate), 3)
      assert.equal(32, #list[1].arguments_hash)
      assert.equal(list[1].arguments_hash, list[2].arguments_hash)
      assert.not_equal(list[1].arguments_hash, list[3].arguments_hash)
      assert.is_nil(list[1].arguments)
      local other = daemon.start { policies = both, config = 'return { decisions = { arguments = "hash" } }' }
      other:connect():checks("create_task", { title = "x" })
      assert.not_equal(list[1].arguments_hash, records(file_of(other), 1)[1].arguments_hash)
    end)
  end)

  describe("masks", function()
    local SECRET = "hunter2-is-my-s3cret"
    local policy = [==[
-- login: logs in. Read only.
return tool "login" {
  description = "Log in and run a command.",
  schema = json [[{"type":"object","properties":{
    "user":{"type":"string"},"command":{"type":"string"},"password":{"type":"string","maxLength":8},
    "pin":{"type":"string","writeOnly":true},"door":{"type":"string","format":"password"},
    "nested":{"type":"object","properties":{"code":{"type":"string","writeOnly":true}}},
    "email":{"type":"string"},"note":{"type":"string"},"n":{"type":"integer","maximum":5}}}]],
  redact = { "email" },
  effects = "read",
  run = function(args)
    if args.note == "fail" then
      return failed("login_failed", "wrong password=" .. (args.password or "") .. " for " .. (args.pin or ""))
    end
    return { answer = args.note, token = args.password }
  end,
}
]==]
    local function run(arguments, config, more)
      local gate, client = daemon.open { policies = { ["login.lua"] = policy }, config = config }
      client:ask("tools/call", { name = "login", arguments = arguments, _meta = more })
      local path = file_of(gate)
      local record = records(path, 1)[1]
      return record, process.read(path)
    end

    local TAGGED = "^%[redacted %x%x%x%x%x%x%]$"

    local function hides(arguments, secret, paths, config)
      local record, line = run(arguments, config)
      assert.is_nil(line:find(secret, 1, true), line)
      table.sort(record.masked)
      assert.same(paths, record.masked)
      return record
    end

    it("values by their names, and every text that quotes them", function()
      local record = hides({ password = SECRET, note = "it is " .. SECRET }, SECRET, { "/note", "/password" })
      assert.truthy(record.arguments.password:match(TAGGED))
      assert.equal("it is [redacted]", record.arguments.note)
      assert.equal("maxLength", record.messages[1].code)
      assert.equal("args.password", record.messages[1].path)
      assert.is_nil(record.messages[1].got)
    end)

    it("short values, too", function()
      hides({ password = "q!", note = "fail" }, "q!", { "/password" }) -- not in the alphabet of the record's random id
    end)

    it("names that are a secret, in the list of masked paths too", function()
      local gate = daemon.start { policies = { ["login.lua"] = policy } }
      local name = "hunter2secret" -- the default names mask its own value
      gate:connect().stream:send(('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"login","arguments":'
                                  .. '{"%s":1,"password":"%s"}}}\n'):format(name, name))
      assert.is_not_nil(records(file_of(gate), 1)[1].masked)
      assert.is_nil(process.read(file_of(gate)):find(name, 1, true))
    end)

    it("values at long paths, of which it lists as many as have room", function()
      local secrets = {}
      for i = 1, 40 do secrets["password" .. i] = SECRET .. i end
      local record, line = run { [("k"):rep(1000)] = secrets }
      assert.equal(16, #record.masked)
      assert.is_nil(line:find(SECRET, 1, true))
    end)

    it("a part of a long value that a text quotes", function()
      local long = ("0123456789abcdefghij"):rep(20)
      hides({ password = long }, long:sub(1, 16), { "/password" })
    end)

    it("what the schema declares writeOnly or format password", function()
      hides({ pin = "4711-9933", door = "sesame-open", nested = { code = "xy-zzy-12" } }, "4711-9933",
            { "/door", "/nested/code", "/pin" })
    end)

    it("what a policy redacts", function()
      local record = hides({ email = "ana@example.com" }, "ana@example.com", { "/email" })
      assert.truthy(record.arguments.email:match(TAGGED))
    end)

    it("names of the configuration, in any spelling", function()
      hides({ note = "x", nested = { SocialNumber = "078-05-1120" } }, "078-05-1120", { "/nested/SocialNumber" },
            'return { decisions = { mask = { "social_*" } } }')
    end)

    it("no page token, unless the configuration asks for it", function()
      local pages = { next_page_token = "p-0001", pageToken = "p-0002", nextToken = "p-0003", sync_token = "p-0004" }
      local record = run { nested = pages, note = "list --page-token p-0005" }
      assert.is_nil(record.masked)
      assert.same(pages, record.arguments.nested)
      hides({ nested = pages }, "p-0001", { "/nested/next_page_token" },
            'return { decisions = { mask = { "next_page_token" } } }')
      hides({ nested = { secret_page_token = "p-0006" } }, "p-0006", { "/nested/secret_page_token" })
    end)

    it("no name that the configuration exempts", function()
      local config = 'return { decisions = { mask = { "!token", "!*_token" } } }'
      assert.is_nil(run({ nested = { token = "t-0001", id_token = "t-0002" } }, config).masked)
      hides({ nested = { token = "t-0001", password = "pw-0002" } }, "pw-0002", { "/nested/password" }, config)
    end)

    -- What docs/decisions.md says that masking does not find: a change here changes the page.
    it("neither misspelled names nor sentences", function()
      assert.is_nil(run({ nested = { api_kye = "k-0001" }, note = "my password is swordfish" }).masked)
    end)

    it("secrets in free text, and leaves the rest", function()
      local record = hides({ command = "mysql --password " .. SECRET .. " -h db" }, SECRET, { "/command" })
      assert.truthy(record.arguments.command:match "^mysql %-%-password %[redacted %x+%] %-h db$")
    end)

    it("secrets in JSON in a string", function()
      hides({ note = cjson.encode { user = "ana", password = SECRET } }, SECRET, { "/note" })
    end)

    it("arguments that are a string with the object", function()
      hides(cjson.encode { user = "ana", password = SECRET, n = 9 }, SECRET, { "" })
    end)

    it("values of keys that come twice", function()
      local gate, client = daemon.open { policies = { ["login.lua"] = policy } }
      client.stream:send(('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"login","arguments":'
                          .. '{"note":"password=%s","note":"b"}}}\n'):format(SECRET))
      records(file_of(gate), 1)
      assert.is_nil(process.read(file_of(gate)):find(SECRET, 1, true))
    end)

    it("values in rewrites, suggestions and errors of the tool", function()
      local arguments = { password = "s3cr3tpw", note = "fail", pin = " 9 8 7 6 5 ", n = "3" }
      local record, line = run(arguments)
      assert.is_nil(line:find("s3cr3tpw", 1, true), line)
      assert.is_nil(line:find("9 8 7 6 5", 1, true), line)
      assert.equal("tool_error", record.error_class)
      assert.equal("/n", record.rewrites[1].path)
    end)

    it("values of results", function()
      local record, line = run({ password = "s3cr3tpw", note = "the answer" },
                               'return { decisions = { results = "masked" } }')
      assert.is_nil(line:find("s3cr3tpw", 1, true), line)
      assert.same({ answer = "the answer", token = record.arguments.password }, record.result.value)
    end)

    it("nothing where nothing is secret", function()
      local record = run { note = "The bearer capability, 2026-05-01T00:00:00Z", n = 3 }
      assert.is_nil(record.masked)
      assert.equal("The bearer capability, 2026-05-01T00:00:00Z", record.arguments.note)
    end)
  end)

  it("cuts the arguments of a record that would be too long, and says so", function()
    local gate = daemon.start { policies = both }
    gate:connect():calls("echo", { text = ("x"):rep(200000) })
    local record = records(file_of(gate), 1)[1]
    assert.is_true(record.cut)
    assert.is_nil(record.arguments)
    assert.equal(32, #record.arguments_hash)
  end)

  it("does not mask arguments that no record could hold, and shows nothing of them", function()
    local gate = daemon.start { policies = both }
    local rows = {}
    for i = 1, 40 do rows[i] = { id = i, secret = "hidden-" .. ("x"):rep(9000) } end
    gate:connect():calls("echo", { text = 1, rows = rows }) -- a problem, whose message might quote one
    local record = records(file_of(gate), 1)[1]
    assert.is_true(record.cut)
    assert.is_nil(record.arguments)
    assert.is_nil(record.messages)
    assert.equal(32, #record.arguments_hash)
    assert.is_nil(process.read(file_of(gate)):find("hidden-", 1, true))
  end)

  it("does not mask a result that no record could hold, whoever wrote it", function()
    local makes = [==[
-- makes: returns many rows. Read only.
return tool "makes" { description = "Returns rows.", effects = "read", schema = params { text = str },
  run = function()
    local rows = {}
    for i = 1, 40 do rows[i] = { id = i, secret = "hidden-" .. ("x"):rep(9000) } end
    return { rows = rows }
  end }
]==]
    local gate = daemon.start { policies = { ["makes.lua"] = makes },
                                config = 'return { decisions = { results = "masked" } }' }
    gate:connect():calls("makes", { text = "short" })
    local record = records(file_of(gate), 1)[1]
    assert.is_true(record.cut)
    assert.is_nil(record.arguments) -- which might quote what is secret in the result
    assert.equal(32, #record.arguments_hash)
    assert.is_nil(process.read(file_of(gate)):find("hidden-", 1, true))
  end)

  it("has a call that its client gave up", function()
    local slow = [==[
-- wait: waits for a long time. Read only.
return tool "wait" {
  description = "Wait.",
  schema = json [[{"type":"object","properties":{}}]],
  effects = "read",
  exec = { "sleep", "60" },
}
]==]
    local gate, client = daemon.open { policies = { ["wait.lua"] = slow } }
    client.stream:send '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{}}}\n'
    process.eventually("it runs", function() return gate:status().connections.calls_in_flight == 1 end)
    client:close()
    local record = records(file_of(gate), 1)[1]
    assert.same({ "cancelled", "cancelled", "run" }, { record.error_class, record.code, record.stage })
  end)
end)
