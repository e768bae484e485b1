-- A policy asks; the client puts the question to its user (elicitation/create of the legacy era), and the same call goes on,
-- or is refused.
local signal = require "posix.signal"

local PAY = [==[
-- pay: sends money. Asks above 100, and again above 1000.
return tool "pay" {
  description = "Send money.", effects = "write",
  schema = params { amount = int "How much" },
  check = function(args)
    if args.amount > 1000 then return ask("More than 1000?", { "yes, all of it", "no" }) end
    if args.amount > 100 then return ask("Pay " .. args.amount .. "?", { "pay", "keep", "ask my boss" }) end
    if args.amount < 0 then return ask "Take money back?" end
  end,
  run = function(args) return { paid = args.amount } end,
}
]==]
local AUDIT = [==[
-- audit: asks about every large payment, too.
return policy {
  tools = { "pay" },
  check = function(args) if args.amount == 999 then return ask("Does the auditor know?", { "yes", "no" }) end end,
}
]==]

describe("a question of a policy", function()
  local gate, client

  local function serves(capabilities)
    gate, client = daemon.open { policies = { ["pay.lua"] = PAY, ["audit.lua"] = AUDIT } }
    client:say { jsonrpc = "2.0", id = "hello", method = "initialize",
                 params = { protocolVersion = "2025-06-18", capabilities = capabilities or { elicitation = {} },
                            clientInfo = { name = "spec", version = "1" } } }
    client:answer "hello"
  end

  local function pays(amount, id)
    client:begins(id or "pay", "pay", { amount = amount })
  end

  -- The next message, which asks.
  local function hears_question()
    local message = client:hears()
    assert.equal("elicitation/create", message.method, client_of.json.encode(message))
    local properties = message.params.requestedSchema.properties
    local name, schema = next(properties)
    assert.is_nil(next(properties, name), "more than one property")
    return message, schema, name
  end

  local function answers(question, name, value, action)
    client:say { jsonrpc = "2.0", id = question.id,
                 result = { action = action or "accept", content = name and { [name] = value } or nil } }
  end

  it("is put to the user as its choices, of which the first lets the same call run", function()
    serves()
    pays(500)
    local question, schema, name = hears_question()
    assert.equal("Pay 500?", question.params.message)
    assert.same({ "pay", "keep", "ask my boss" }, schema.enum)
    assert.equal("string", schema.type)
    answers(question, name, "pay")
    assert.equal('{"paid":500}', text(client:answer("pay").result))
  end)

  it("is yes or no where it has no choices", function()
    serves()
    pays(-5)
    local question, schema, name = hears_question()
    assert.equal("boolean", schema.type)
    answers(question, name, true)
    assert.equal('{"paid":-5}', text(client:answer("pay").result))
    pays(-6)
    question = hears_question()
    answers(question, name, false)
    assert.equal("declined", verdict(client:answer("pay").result).code)
  end)

  it("is declined by any other choice, by decline and by cancel, and the model reads which", function()
    serves()
    pays(500)
    local question, _, name = hears_question()
    answers(question, name, "ask my boss")
    local result = client:answer("pay").result
    assert.same({ "refuse", "declined" }, { verdict(result).verdict, verdict(result).code })
    assert.truthy(text(result):find('chose "ask my boss"', 1, true), text(result))
    for i, action in ipairs { "decline", "cancel" } do
      pays(500 + i)
      answers((hears_question()), nil, nil, action)
      assert.equal("declined", verdict(client:answer("pay").result).code)
    end
  end)

  it("of several policies is put one after the other, and each has to be answered", function()
    serves()
    pays(999)
    local asked = {}
    for _ = 1, 2 do
      local question, schema, name = hears_question()
      asked[question.params.message] = true
      answers(question, name, schema.enum[1])
    end
    assert.same({ ["Pay 999?"] = true, ["Does the auditor know?"] = true }, asked)
    assert.equal('{"paid":999}', text(client:answer("pay").result))
  end)

  it("is for this call alone: another is asked about again", function()
    serves()
    for _ = 1, 2 do
      pays(500)
      local question, _, name = hears_question()
      answers(question, name, "pay")
      assert.equal('{"paid":500}', text(client:answer("pay").result):match "^[^\n]+")
    end
  end)

  it("is text for the model if the client has no elicitation, or answers with an error or garbage", function()
    serves {}
    pays(500)
    assert.equal("ask", verdict(client:answer("pay").result).verdict)
    daemon.stop_all()
    serves()
    for i, answer in ipairs { { error = { code = -32601, message = "no" } }, { result = "yes" },
                              { result = { action = "maybe" } },
                              { result = { action = "accept", content = { answer = "never offered" } } },
                              { result = { action = "accept", content = { other = "pay" } } },
                              { result = { action = "accept" } } } do
      pays(500 + i)
      answer.jsonrpc, answer.id = "2.0", hears_question().id
      client:say(answer)
      local result = client:answer("pay").result
      assert.equal("ask", verdict(result).verdict, i)
      assert.truthy(text(result):find("Pay 50" .. i .. "?", 1, true))
    end
  end)

  it("hears no second answer, none to another question, and none of another client", function()
    serves()
    pays(500)
    local question, _, name = hears_question()
    local other = gate:connect()
    other:say { jsonrpc = "2.0", id = question.id, result = { action = "accept", content = { [name] = "pay" } } }
    other:asks "ping"
    client:say { jsonrpc = "2.0", id = "toolgate/ask/777", result = { action = "accept", content = { [name] = "pay" } } }
    client:say { jsonrpc = "2.0", id = 1, result = { action = "accept", content = { [name] = "pay" } } }
    client:asks "ping"
    answers(question, name, "keep")
    answers(question, name, "pay")
    assert.equal("declined", verdict(client:answer("pay").result).code)
    client:asks "ping"
  end)

  it("is taken back with its call, and goes with its client", function()
    serves()
    pays(500)
    local question, _, name = hears_question()
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "pay" } }
    local notice = client:hears()
    assert.same({ "notifications/cancelled", question.id }, { notice.method, notice.params.requestId })
    answers(question, name, "pay")
    client:asks "ping"
    pays(501)
    hears_question()
    client:close()
    assert.equal(0, gate:status().connections.calls_in_flight or 0)
  end)

  it("is text for the model once nobody can answer: the client sends no more, or the daemon stops", function()
    for _, ends in ipairs { function() client.stream:shutdown "send" end, function() gate:signal(signal.SIGTERM) end } do
      serves()
      pays(500)
      local question = hears_question()
      ends()
      local result = assert(client:answer("pay").result, "an error")
      assert.equal("ask", verdict(result).verdict)
      assert.truthy(text(result):find("Pay 500?", 1, true), text(result))
      assert.equal(question.id, client.notices[1].params.requestId)
    end
  end)

  it("does not hold up other calls of the same connection", function()
    serves()
    pays(500)
    local question, _, name = hears_question()
    pays(5, "small")
    assert.equal('{"paid":5}', text(client:answer("small").result))
    answers(question, name, "pay")
    assert.equal('{"paid":500}', text(client:answer("pay").result))
  end)

  it("is put to the user of an agent that runs its own tools, before the check's reply", function()
    serves()
    gate:write_policy("move.lua", [==[
-- move: moves the arm. Asks. For specs.
return tool "move" {
  description = "Move the arm.", effects = "write", schema = params { steps = optional(int "How far") },
  check = function() return ask("Move?", { "move", "stay" }) end,
}
]==])
    gate:reload()
    local function checks(answer)
      client:say { jsonrpc = "2.0", id = answer, method = "toolgate/check", params = { name = "move", arguments = {} } }
      local question, _, name = hears_question()
      answers(question, name, answer)
      return client:answer(answer).result
    end
    local moved = checks "move"
    assert.same({ "pass", "string" }, { moved.verdict, type(moved.callId) })
    assert.equal("pass", client:asks("toolgate/report", { callId = moved.callId, result = "done" }).verdict)
    assert.equal("declined", checks("stay").code)
    client:say { jsonrpc = "2.0", id = "deaf", method = "toolgate/check", params = { name = "move", arguments = {} } }
    client:say { jsonrpc = "2.0", id = hears_question().id, error = { code = -32603, message = "no user here" } }
    assert.equal("ask", client:answer("deaf").result.verdict)
  end)

  it("goes through toolgate connect, too", function()
    serves()
    local lines = {}
    for _, message in ipairs {
      { jsonrpc = "2.0", id = 1, method = "initialize", params = {
        protocolVersion = "2025-06-18", capabilities = { elicitation = {} }, clientInfo = { name = "s", version = "1" } } },
      { jsonrpc = "2.0", id = 2, method = "tools/call", params = { name = "pay", arguments = { amount = 500 } } },
      { jsonrpc = "2.0", id = "toolgate/ask/1", result = { action = "accept", content = { answer = "pay" } } },
    } do lines[#lines + 1] = client_of.json.encode(message) .. "\n" end
    local out = process.runs({ daemon.binary, "connect", gate.socket }, { input = table.concat(lines) })
    assert.truthy(out:find("elicitation/create", 1, true), out)
    assert.truthy(out:find('{\\"paid\\":500}', 1, true), out)
  end)
end)
