-- A server asks the user in the middle of a call (elicitation/create): the question reaches the client of the legacy era that
-- declared it can ask, and the answer reaches the server, whose call goes on.
local http_server = require "http_server"
local signal = require "posix.signal"

describe("a question of a server", function()
  local gate, client, calls

  local function serves(options, capabilities, upstream)
    calls = 0
    gate, client = daemon.open { config = ("return { upstreams = { fake = { %s } } }"):format(upstream or
      ([[command = "python3", args = { "-SE", "%s/tests/support/fake_upstream.py" }, env = { FAKE = "%s" } ]])
        :format(daemon.root, options or "")) }
    client:ask("initialize", { protocolVersion = "2025-06-18", capabilities = capabilities or { elicitation = {} },
                               clientInfo = { name = "spec", version = "1" } }, "hello")
  end

  local function does(how, more)
    calls = calls + 1
    local arguments = { how = how }
    for key, value in pairs(more or {}) do arguments[key] = value end
    client:begins("call" .. calls, "do", arguments, client_of.session("s" .. calls))
  end

  local function result() return client:answer("call" .. calls).result end

  local function hears_question(message)
    local question = client:hears()
    assert.equal("elicitation/create", question.method, json.encode(question))
    assert.equal("The server 'fake' asks: " .. (message or "Which size?"), question.params.message)
    return question
  end

  local function answers(question, answer)
    client:say { jsonrpc = "2.0", id = question.id, result = answer }
  end

  it("is put with the server's name and its form, and the answer lets the same call go on", function()
    serves()
    does "elicits"
    local question = hears_question()
    assert.same({ "small", "large" }, question.params.requestedSchema.properties.size.enum)
    answers(question, { action = "accept", content = { size = "large" } })
    local given = result()
    assert.equal("pass", verdict(given).verdict)
    assert.truthy(text(given):find('"size": "large"', 1, true), text(given))
    assert.equal(0, json.decode(text(client:calls("about", {}))).cancelled)
  end)

  it("is declined and cancelled by its user, and cancelled by what is no answer: the server hears it", function()
    serves()
    for _, one in ipairs { { { result = { action = "decline" } }, "decline" }, { { result = { action = "cancel" } }, "cancel" },
                           { { error = { code = -32601, message = "no" } }, "cancel" }, { { result = "yes" }, "cancel" },
                           { { result = { action = "maybe", content = { size = "large" } } }, "cancel" } } do
      does "elicits"
      one[1].jsonrpc, one[1].id = "2.0", hears_question().id
      client:say(one[1])
      local given = result()
      assert.truthy(text(given):find(('heard {"action": "%s"}'):format(one[2]), 1, true), text(given))
    end
  end)

  it("loses the characters that nobody sees", function()
    serves()
    does("elicits", { message = "Pay\226\128\139 \226\128\1741000?" })
    answers(hears_question "Pay 1000?", { action = "decline" })
    result()
  end)

  it("is text for the model of a client that cannot ask, and the server hears that nobody answers", function()
    serves("", json.decode "{}")
    does "elicits"
    local given = result()
    assert.same({ "ask", "need_user_input" }, { verdict(given).verdict, verdict(given).error_class })
    assert.truthy(text(given):find("Which size?", 1, true))
    assert.equal(1, json.decode(text(client:calls("about", {}))).cancelled)
  end)

  it("is text for the model where it cannot be shown whole or opens a page", function()
    serves()
    for _, params in ipairs { { message = ("x"):rep(5000), requestedSchema = { type = "object", properties = json.decode "{}" } },
                              { message = "Which one?", requestedSchema = { type = "object", properties = {
                                one = { type = "string", enum = { ("x"):rep(70000) } } } } },
                              { message = "Log in", mode = "url", url = "https://x.example", elicitationId = "1" } } do
      does("asks", { method = "elicitation/create", params = params })
      assert.equal("ask", verdict(result()).verdict)
    end
  end)

  it("is taken back when its call is cancelled, and the server hears that nobody answers", function()
    serves()
    does "elicits"
    local question = hears_question()
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "call" .. calls } }
    assert.equal(question.id, client:hears_notice("notifications/cancelled").params.requestId)
    answers(question, { action = "accept" }) -- too late, and of no effect
    process.eventually("the server has its answer", function()
      return json.decode(text(client:calls("about", {}))).replies[1] == '{"action": "cancel"}'
    end)
  end)

  it("is taken back when its server dies", function()
    serves()
    local pid = json.decode(text(client:calls("about", {}))).pid
    does "elicits"
    local question = hears_question()
    signal.kill(pid, signal.SIGKILL)
    assert.equal(question.id, client:hears_notice("notifications/cancelled").params.requestId)
    assert.equal("crashed", verdict(result()).code)
  end)

  it("is taken back when its server dies and its call is tried again, before it is put again", function()
    serves()
    gate:write_policy("do.lua", [[
-- do: for specs.
return tool "do" { description = "For specs.", effects = "read",
                   retry = { again = { times = 1, backoff = "10ms", within = "30s" } } }
]])
    gate:reload()
    client:hears_notice "notifications/tools/list_changed"
    local pid = json.decode(text(client:calls("about", {}))).pid
    does "elicits"
    local question = hears_question()
    signal.kill(pid, signal.SIGKILL)
    assert.equal(question.id, client:hears_notice("notifications/cancelled", 2).params.requestId)
    answers(hears_question(), { action = "decline" })
    assert.truthy(text(result()):find("heard", 1, true))
  end)

  it("gives a person longer than the tool's timeout", function()
    serves(nil, nil, ([[command = "python3", args = { "-SE", "%s/tests/support/fake_upstream.py" }, timeout = 0.3,
                        env = { FAKE = "" } ]]):format(daemon.root))
    does "elicits"
    local question = hears_question()
    client:begins("slow", "slow", { ms = 60000 }, client_of.session "slow")
    assert.equal("timeout", verdict(client:answer("slow").result).code) -- the timeout has passed
    answers(question, { action = "decline" })
    assert.truthy(text(result()):find("heard", 1, true))
  end)

  it("over HTTP is put likewise", function()
    local asks = { jsonrpc = "2.0", id = "q", method = "elicitation/create", params = {
      message = "Which size?", requestedSchema = { type = "object", properties = { size = { type = "string" } } } } }
    local server = http_server.mcp { calls = { asks = {
      headers = { ["Content-Type"] = "text/event-stream" }, pieces = { "data: " .. json.encode(asks) .. "\n\n", "HOLD" } } } }
    serves(nil, nil, ('url = "%s"'):format(server.url))
    client:begins("call0", "say", { text = "asks" })
    answers(hears_question(), { action = "accept", content = { size = "m" } })
    local heard = server:sees("the answer", function(r) return type(r.body) == "table" and r.body.id == "q" end)[1]
    assert.same({ action = "accept", content = { size = "m" } }, heard.body.result)
  end)

  it("of the modern era is put, and its call is made again with the answer and the server's state", function()
    serves "modern"
    does "needs_input"
    answers(hears_question(), { action = "accept", content = { size = "large" } })
    local given = result()
    assert.truthy(text(given):find('"size": "large"', 1, true), text(given))
    assert.truthy(text(given):find("with s-1", 1, true), text(given))
    does "needs_input"
    answers(hears_question(), { action = "decline" })
    assert.truthy(text(result()):find('"action": "decline"', 1, true))
  end)

  it("of the modern era that comes with more than a person answers is text for the model", function()
    serves "modern"
    does("needs_input", { count = 2 })
    for _ = 1, 2 do answers(hears_question(), { action = "decline" }) end
    assert.truthy(text(result()):find("heard", 1, true))
    does("needs_input", { count = 500 })
    local given = result()
    assert.equal("ask", verdict(given).verdict)
    assert.truthy(text(given):find("Which size?", 1, true), text(given))
  end)

  it("without words is none: the server gets an error", function()
    serves()
    does("asks", { method = "elicitation/create", params = { requestedSchema = { type = "object" } } })
    assert.truthy(text(result()):find("-32602", 1, true))
  end)
end)
