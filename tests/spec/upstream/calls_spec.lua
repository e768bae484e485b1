-- Calls that an MCP server runs: the verdict of each outcome, cancellation, queueing, reloads, and elicitation.

local function says(said, ...)
  for _, words in ipairs { ... } do
    assert.truthy(said:find(words, 1, true), ("expected '%s' in:\n%s"):format(words, said))
  end
end

-- A daemon with tests/support/plain_server.lua as its upstream; gate.notes() returns what the server has noted.
local function start(given)
  given = given or {}
  local notes = process.directory() .. "/notes"
  given.config = ([[
return { upstreams = { plain = {
  command = "luajit", args = { "%s/tests/support/plain_server.lua" }, env = { NOTES = "%s" }, %s } } }
]]):format(daemon.root, notes, given.upstream or "")
  local gate = daemon.start(given)
  gate.config = given.config
  function gate.notes()
    local file = io.open(notes)
    local said = file and file:read "*a" or ""
    if file then file:close() end
    return said
  end
  function gate.noted(word, count)
    process.eventually(("the server notes %s %d times"):format(word, count or 1), function()
      return select(2, gate.notes():gsub(word .. "\n", "")) == (count or 1)
    end)
  end
  return gate
end

local function upstream(gate)
  return gate:status().upstreams[1]
end

describe("a call that an upstream runs", function()
  local gate, client

  before_each(function()
    gate = start()
    client = gate:connect()
  end)

  local function holds(connection, id)
    connection:begins(id, "holds", { n = 1 })
    gate.noted "holds"
  end

  it("with invalid arguments is refused before it reaches the server", function()
    assert.equal("invalid_arguments", verdict(client:calls("recovers", { times = "many" }, session "s")).error_class)
    assert.equal("", gate.notes())
  end)

  it("that is only checked does not reach the server", function()
    assert.equal("pass", client:checks("echo", { text = "x" }, session "s").verdict)
    assert.equal("", gate.notes())
  end)

  it("that fails is a tool_error that quotes the server's message", function()
    local result = client:calls("fails", {}, session "s")
    assert.equal("tool_error", verdict(result).error_class)
    golden.check("feedback", "upstream: a tool's error", text(result))
  end)

  it("that the server refuses with a protocol error is a tool_error", function()
    local result = client:calls("refuses", {}, session "s")
    assert.equal("tool_error", verdict(result).error_class)
    golden.check("feedback", "upstream: a protocol error", text(result))
  end)

  it("whose result is a task that the call did not ask for is a schema_mismatch", function()
    local result = client:calls("nonsense", {}, session "s")
    assert.equal("schema_mismatch", verdict(result).error_class)
    golden.check("feedback", "upstream: a result that is none", text(result))
  end)

  it("that crashes the server is transient and may have been carried out, and the server is restarted", function()
    local result = client:calls("dies", {}, session "s")
    assert.same({ "wait", "transient", "crashed" },
                { verdict(result).verdict, verdict(result).error_class, verdict(result).code })
    golden.check("feedback", "upstream: it dies in a call that writes", text(result))
    assert.truthy(verdict(result).after_s)
    says(text(client:calls("echo", { text = "still here" }, session "s")), "still here") -- it is started again
  end)

  it("that only reads may be repeated after a crash", function()
    golden.check("feedback", "upstream: it dies in a call that reads", text(client:calls("dies_reading", {}, session "s")))
  end)

  it("relays the tool's progress and log messages", function()
    local result = client:calls("tells", {}, { progressToken = "p" })
    assert.equal("done", text(result))
    local heard = {}
    for _, notice in ipairs(client.notices) do
      heard[#heard + 1] = notice.params.progress or notice.params.data
    end
    assert.same({ 1, 2, "half way" }, heard)
  end)

  it("reaches the server under the tool's original name", function()
    gate:write_policy("say.lua", [==[
-- say: says a text. For specs.
return tool "say" { description = "Say.", upstream = "plain/echo", effects = "read", schema = params { text = str "What" } }
]==])
    gate:reload()
    assert.equal("hi", text(client:calls("say", { text = "hi" }, session "s")))
  end)

  it("continues during a reload", function()
    holds(client, "held")
    gate:write_policy("echo.lua", [[return tool "echo" { description = "Say.", use_when = "there is something to say" }]])
    gate:reload()
    gate:connect():calls("lets_go", {})
    assert.equal("let go", text(client:answer("held").result))
  end)

  it("is answered before a removed server is stopped", function()
    holds(client, "held")
    process.write(gate.directory .. "/toolgate.lua", "return {}")
    gate:reload()
    assert.equal("unknown_tool", verdict(gate:connect():calls("lets_go", {})).error_class)
    client:hears_only_a_ping()
    assert.is_nil(gate.notes():find "ended")
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "held" } }
    gate.noted "cancelled"
    gate.noted "ended"
  end)

  it("goes to the new server after a change of its settings, while the old one finishes its calls", function()
    holds(client, "held")
    process.write(gate.directory .. "/toolgate.lua", gate.config:gsub("NOTES =", "MORE = '1', NOTES ="))
    gate:reload()
    assert.equal("new", text(client:calls("echo", { text = "new" })))
    assert.is_nil(gate.notes():find "ended")
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "held" } }
    gate.noted "ended"
  end)

  it("is answered before the daemon stops", function()
    holds(client, "held")
    client:begins("last", "lets_go", {})
    gate:signal(15)
    local heard = {}
    for _, line in ipairs(client:hears_the_end()) do
      local message = client_of.json.decode(line)
      heard[message.id] = text(message.result)
    end
    assert.same({ held = "let go", last = "all" }, heard)
    gate.noted "ended"
  end)
end)

describe("concurrent calls of an upstream", function()
  local function ask(client, id, n)
    client:begins(id, "holds", { n = n })
  end

  it("are queued beyond in_flight", function()
    local gate = start { upstream = [[in_flight = 2, timeout = "60s"]] }
    local client = gate:connect()
    for i = 1, 4 do ask(client, i, i) end
    gate.noted("holds", 2)
    process.eventually("two wait", function() return upstream(gate).queued == 2 end)
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = 3 } } -- never sent
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = 1 } }
    gate.noted("holds", 3) -- the fourth, in the place of the first
    assert.equal(0, upstream(gate).queued)
    client:hears_only_a_ping()
  end)

  it("that wait longer than the timeout are unavailable", function()
    local gate = start { upstream = [[in_flight = 1, timeout = "300ms"]] }
    local client = gate:connect()
    ask(client, 1, 1)
    ask(client, 2, 2)
    local first, second = client:hears(), client:hears()
    if first.id ~= 1 then first, second = second, first end
    assert.equal("timeout", verdict(first.result).code)
    assert.equal("unavailable", verdict(second.result).error_class)
    golden.check("feedback", "upstream: no room for the call in time", text(second.result))
  end)
end)

describe("an elicitation by an upstream", function()
  local gate, client

  before_each(function()
    gate = start()
    client = gate:connect()
  end)

  local function calls(more, meta)
    local params = { name = "asks", arguments = client_of.json.decode "{}", _meta = meta }
    for key, value in pairs(more or {}) do params[key] = value end
    return client:asks("tools/call", params)
  end

  local function can_ask(more)
    return modern { ["io.modelcontextprotocol/clientCapabilities"] = { elicitation = client_of.json.decode "{}" },
                    ["dev.toolgate/session"] = "s", unpack(more or {}) }
  end

  it("becomes a quoted question that the model passes on", function()
    local result = calls({}, session "s")
    assert.same({ "ask", "need_user_input", "NEED_USER_INPUT" },
                { verdict(result).verdict, verdict(result).error_class, verdict(result).coverage })
    golden.check("feedback", "upstream: elicitation that the model passes on", text(result))
  end)

  it("becomes a question for the model of a modern client that cannot elicit", function()
    local result = calls({}, modern { ["dev.toolgate/session"] = "s" })
    assert.equal("complete", result.resultType)
    says(text(result), "Which size?")
  end)

  it("reaches the user of a client that can elicit, and the answer reaches the server", function()
    local result = calls({}, can_ask())
    assert.equal("input_required", result.resultType)
    assert.is_nil(result.content)
    assert.equal("ask", verdict(result).verdict)
    local key, request = next(result.inputRequests)
    assert.same({ "elicitation/create", "Which size?" }, { request.method, request.params.message })
    local again = calls({ inputResponses = { [key] = { action = "accept", content = { size = "m" } } },
                          requestState = result.requestState }, can_ask())
    assert.same({ "complete", "size m" }, { again.resultType, text(again) })
    assert.equal(1, verdict(again).attempt)
    assert.equal(0, verdict(again).repeats)
  end)

  it("counts both requests as one call in budgets", function()
    gate:write_policy("asks.lua", [[return tool "asks" { description = "Ask.", limits = { calls_per_session = 1 } }]])
    gate:reload()
    for _ = 1, 3 do assert.equal("input_required", calls({}, can_ask()).resultType) end
    local result = calls({}, can_ask())
    local key = next(result.inputRequests)
    local answered = { inputResponses = { [key] = { action = "accept", content = { size = "m" } } },
                       requestState = result.requestState }
    assert.equal("size m", text(calls(answered, can_ask())))
    assert.equal("calls_per_session", verdict(calls(answered, can_ask())).code)
  end)

  it("follows a policy's own question, which is not put again with the server's", function()
    gate:write_policy("asks.lua", [[return tool "asks" { description = "Ask.",
      check = function() return ask "May it ask?" end }]])
    gate:reload()
    local first = calls({}, can_ask())
    assert.equal("May it ask?", first.inputRequests["toolgate/ask"].params.message)
    local second = calls({ inputResponses = { ["toolgate/ask"] = { action = "accept", content = { answer = true } } },
                           requestState = first.requestState }, can_ask())
    local key, request = next(second.inputRequests)
    assert.equal("Which size?", request.params.message)
    local last = calls({ inputResponses = { [key] = { action = "accept", content = { size = "m" } } },
                         requestState = second.requestState }, can_ask())
    assert.same({ "complete", "size m" }, { last.resultType, text(last) })
    assert.equal("May it ask?", calls({}, can_ask()).inputRequests["toolgate/ask"].params.message)
  end)

  it("costs no memory for each of many responses", function()
    local responses = {}
    for i = 1, 8000 do responses["n" .. i] = { action = "accept" } end
    assert.equal("input_required", calls({ inputResponses = responses }, can_ask()).resultType)
    assert.is_true(tonumber(process.read("/proc/" .. gate:pid() .. "/status"):match "VmHWM:%s*(%d+)") < 100000)
  end)

  it("rejects inputResponses of a wrong type", function()
    local reply = client:ask("tools/call", { name = "asks", arguments = client_of.json.decode "{}", _meta = can_ask(),
                                             inputResponses = { "m" } })
    assert.equal(-32602, reply.error.code)
    golden.check("protocol", "tools/call: inputResponses of a wrong type", reply.error.message)
  end)
end)
