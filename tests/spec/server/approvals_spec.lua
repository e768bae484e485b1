-- A policy asks, and the agent has nobody to ask: an operator approves or denies (toolgate approvals, approve, deny), and
-- the same call, made again, runs once or is declined. A client of the modern era gets the question in the reply instead.
local clocks = require "clock"
local redis = require "redis"
local unistd = require "posix.unistd"

local PAY = [==[
-- pay: sends money. Asks above 100, twice above 1000.
return tool "pay" {
  description = "Send money.", effects = "write", retry = { same_call = 20 },
  schema = params { amount = int "How much", note = optional(str "What for") },
  check = function(args)
    if args.amount > 100 then return ask("Pay " .. args.amount .. "?", { "pay", "keep" }) end
  end,
  run = function(args) return { paid = args.amount } end,
}
]==]
local AUDIT = [==[
-- audit: asks about every large payment, too.
return policy {
  tools = { "pay" },
  check = function(args) if args.amount > 1000 then return ask "Does the auditor know?" end end,
}
]==]
local OTHER = 65534 -- nobody

local function serve(config)
  return daemon.start { policies = { ["pay.lua"] = PAY, ["audit.lua"] = AUDIT }, config = config }
end

-- The command as another process than the spec, which is the client; its exit code, and what it prints.
local function runs(gate, ...)
  local argv = { daemon.binary, ... }
  argv[#argv + 1] = "--socket"
  argv[#argv + 1] = gate.socket
  return process.run(argv)
end

local function waiting(gate)
  local _, out = runs(gate, "approvals", "--json")
  local list = {}
  for _, entry in ipairs(client_of.json.decode(out).approvals) do
    if entry.state == "pending" then list[#list + 1] = entry end
  end
  return list
end

describe("a question that nobody can be asked", function()
  local function pays(client, amount, name, note)
    local result = client:calls("pay", { amount = amount, note = note }, session(name or "s"))
    return verdict(result), text(result), result
  end

  it("waits for an operator, and runs once when it is approved and the call comes again", function()
    local gate = serve()
    local client = gate:connect()
    local v, words = pays(client, 500)
    assert.equal("ask", v.verdict)
    assert.truthy(words:find("toolgate approve " .. v.approval, 1, true), words)
    local list = waiting(gate)
    assert.same({ 1, v.approval, "pay", "Pay 500?", unistd.getpid() },
                { #list, list[1].id, list[1].tool, list[1].question, list[1].pid })
    assert.equal('{"amount":500}', list[1].arguments)
    assert.equal(0, (runs(gate, "approve", v.approval)))
    local id = v.approval
    v, words = pays(client, 500)
    assert.equal("pass", v.verdict)
    assert.equal('{"paid":500}', words:match "^[^\n]+")
    for _, event in ipairs { "asked", "given", "spent" } do gate:logs(("approval_%s approval=%s tool=pay"):format(event, id)) end
    v = pays(client, 500)
    assert.equal("ask", v.verdict, "it was spent")
  end)

  it("is declined once it was denied, without another question", function()
    local gate = serve()
    local client = gate:connect()
    local v = pays(client, 500)
    assert.equal(0, (runs(gate, "deny", v.approval)))
    for _ = 1, 2 do
      v = pays(client, 500)
      assert.same({ "refuse", "declined" }, { v.verdict, v.code })
    end
    assert.equal(0, #waiting(gate))
  end)

  it("is for this session, these arguments and these policies alone", function()
    local gate = serve()
    local client = gate:connect()
    local v = pays(client, 500)
    assert.equal(0, (runs(gate, "approve", v.approval)))
    assert.equal("ask", (pays(client, 501)).verdict)
    assert.equal("ask", (pays(client, 500, "s", "other")).verdict)
    assert.equal("ask", (pays(client, 500, "another")).verdict)
    gate:write_policy("pay.lua", (PAY:gsub("Send money", "Send the money")))
    gate:reload()
    assert.equal("ask", (pays(client, 500)).verdict)
  end)

  it("is the same question until it is answered, and a loop like any other", function()
    local gate = serve()
    local client = gate:connect()
    local first, last = (pays(client, 500))
    for _ = 1, 8 do
      last = pays(client, 500)
      if last.verdict ~= "ask" then break end
      assert.equal(first.approval, last.approval)
    end
    assert.truthy(last.verdict == "refuse" or last.verdict == "halt", last.verdict)
    assert.truthy(last.code == "loop" or last.code == "same_call", last.code)
  end)

  it("is answered once for each of several policies", function()
    local gate = serve()
    local client = gate:connect()
    local asked = {}
    for _ = 1, 2 do
      local v = pays(client, 5000)
      assert.equal("ask", v.verdict)
      assert.is_nil(asked[v.detail])
      asked[v.detail] = true
      assert.equal(0, (runs(gate, "approve", v.approval)))
    end
    assert.equal("pass", (pays(client, 5000)).verdict)
    assert.equal("ask", (pays(client, 5000)).verdict)
  end)

  it("is still approved if what runs the call was out of order", function()
    local gate, client = daemon.open { policies = { ["wire.lua"] = [==[
-- wire: sends money through an endpoint whose secret is not set.
return tool "wire" {
  description = "Send money.", effects = "write", schema = params { amount = int "How much" },
  check = function(args) return ask("Wire " .. args.amount .. "?") end,
  http = { "POST http://127.0.0.1:1/", headers = { ["X-Key"] = "${SPEC_NOT_SET}" } },
}
]==] } }
    local function wires() return verdict(client:calls("wire", { amount = 5 }, session "s")) end
    assert.equal(0, (runs(gate, "approve", wires().approval)))
    for _ = 1, 2 do
      local v = wires()
      assert.same({ "unavailable", "not_configured" }, { v.error_class, v.code })
    end
  end)

  it("of toolgate/check is approved likewise", function()
    local gate = serve()
    local client = gate:connect()
    local v = client:checks("pay", { amount = 500 }, session "s")
    assert.equal("ask", v.verdict)
    assert.equal(0, (runs(gate, "approve", v.approval)))
    v = client:checks("pay", { amount = 500 }, session "s")
    assert.equal("pass", v.verdict)
    assert.is_string(v.callId)
    assert.not_equal("pass", client:checks("pay", { amount = 500 }, session "s").verdict)
    v = client:asks("toolgate/check", { name = "pay", arguments = { amount = 700 }, asks = true, _meta = session "s" })
    assert.same({ "ask" }, { v.verdict, v.approval }, "the program asks its user itself")
  end)

  describe("answered by the wrong one", function()
    it("is refused to the process that made the call", function()
      local gate = serve()
      local client, other = gate:connect(), gate:connect()
      local v = pays(client, 500)
      for _, peer in ipairs { client, other } do
        local answer = peer:asks("toolgate/approve", { id = v.approval })
        assert.same({ false, "pending" }, { answer.ok, answer.state })
      end
      assert.equal("ask", (pays(client, 500)).verdict)
    end)

    it("is refused the second time, with who was first", function()
      local gate = serve()
      local v = pays(gate:connect(), 500)
      assert.equal(0, (runs(gate, "approve", v.approval)))
      local code, _, err = runs(gate, "deny", v.approval)
      assert.equal(1, code)
      assert.truthy(err:find("answered this already: it is approved", 1, true), err)
    end)

    it("is refused for an id that is unknown or none", function()
      local gate = serve()
      assert.equal(1, (runs(gate, "approve", "0123456789abcdef")))
      for _, id in ipairs { "nonsense", "", "0123456789ABCDEF", "0000000000000000", ("0"):rep(400) } do
        assert.equal(2, (runs(gate, "approve", id)), id)
      end
      for _, params in ipairs { {}, { id = 7 }, { id = { "x" } } } do
        assert.truthy(gate:connect():ask("toolgate/approve", params).error)
      end
    end)

    it("is refused to users who are no operators, and given to those that the configuration names", function()
      if unistd.getuid() ~= 0 then return pending "becoming another user needs root" end
      local function tries(config)
        local gate = serve(("return { socket_mode = '0666', %s }"):format(config))
        local v = pays(gate:connect(), 500)
        local code, _, err = process.run { "setpriv", "--reuid=" .. OTHER, "--regid=" .. OTHER, "--clear-groups",
                                           daemon.binary, "approve", v.approval, "--socket", gate.socket }
        return code, err
      end
      local code, err = tries ""
      assert.equal(2, code)
      assert.truthy(err:find("is for the user that runs the daemon", 1, true), err)
      code, err = tries "operators = { groups = { 12345 } }"
      assert.equal(2, code)
      assert.truthy(err:find("`operators`", 1, true), err)
      assert.equal(0, (tries(("operators = { users = { %d } }"):format(OTHER))))
      assert.equal(0, (tries(("operators = { groups = { %d } }"):format(OTHER))))
    end)
  end)

  it("shows the beginning of long arguments, and says that there is more; the approval is for all of them", function()
    local gate = serve()
    local client = gate:connect()
    local note = ("n"):rep(5000)
    local asked = pays(client, 500, "s", note)
    local one = waiting(gate)[1]
    assert.same({ true, true }, { one.arguments_cut, #one.arguments <= 2048 })
    assert.equal(one.arguments, ('{"amount":500,"note":"' .. note):sub(1, #one.arguments))
    local _, out = runs(gate, "approvals")
    assert.truthy(out:find("… (cut: deny it unless you know the rest)", 1, true), out)
    assert.equal(0, (runs(gate, "approve", asked.approval)))
    assert.equal("ask", (pays(client, 500, "s", note .. "more")).verdict)
    assert.equal("pass", (pays(client, 500, "s", note)).verdict)
  end)

  it("is shown on one line, and with the size and digest of what no line holds; no form puts such a question", function()
    local gate, client = daemon.open { policies = { ["say.lua"] = [==[
-- say: asks with the model's words.
return tool "say" { description = "Say it.", effects = "write", schema = params { words = str "What" },
  check = function(args) return ask("Say " .. args.words .. "?") end, run = function(args) return { said = #args.words } end }
]==] } }
    local words = "hello\n  question:  a forged line " .. ("x"):rep(5000)
    local meta = modern { ["io.modelcontextprotocol/clientCapabilities"] = { elicitation = { form = { x = 1 } } },
                          ["dev.toolgate/session"] = "other" }
    assert.is_nil(client:asks("tools/call", { name = "say", arguments = { words = words }, _meta = meta }).inputRequests)
    client = gate:connect()
    local asked = verdict(client:calls("say", { words = words }, session "s"))
    local _, out = runs(gate, "approvals")
    assert.is_nil(out:find("\n *question:  a forged line"), out)
    assert.truthy(out:find("… %(%d+ bytes more, digest %x+: deny it unless you know them%)"), out)
    assert.equal(0, (runs(gate, "approve", asked.approval)))
    assert.equal("pass", verdict(client:calls("say", { words = words }, session "s")).verdict)
  end)

  it("is bounded: who asks more pushes out its own questions that have no answer", function()
    local gate = serve()
    local client, other = gate:connect(), gate:connect()
    local kept = pays(other, 500, "other")
    local denied = pays(client, 600)
    assert.equal(0, (runs(gate, "deny", denied.approval)))
    local last
    for i = 1, 12 do last = pays(client, 600 + i) end
    local list = waiting(gate)
    assert.equal(8, #list) -- APPROVALS_SESSION_MAX, with the one that was denied; and that of the other session
    assert.equal(kept.approval, list[1].id)
    assert.equal(last.approval, list[8].id)
    assert.equal("declined", (pays(client, 600)).code)
    for i = 1, 40 do pays(client, 500, "s" .. i) end
    assert.equal(31, #waiting(gate)) -- APPROVALS_USER_MAX
  end)

  it("expires five minutes after the question, and an approval five minutes after the answer", function()
    if clocks.cannot then return pending(clocks.cannot) end
    local clock = clocks.new(0)
    local gate, client = daemon.open { policies = { ["pay.lua"] = PAY }, environment = clock.environment }
    local unanswered, approved = pays(client, 500), pays(client, 600)
    clock:shift(299)
    assert.equal(2, #waiting(gate))
    assert.equal(0, (runs(gate, "approve", approved.approval)))
    clock:shift(301)
    assert.equal(0, #waiting(gate))
    local code, _, err = runs(gate, "approve", unanswered.approval)
    assert.equal(1, code)
    assert.truthy(err:find("5 minutes are over", 1, true), err)
    clock:shift(598)
    assert.equal("ask", (pays(client, 500)).verdict)
    assert.equal("pass", (pays(client, 600)).verdict)
    approved = pays(client, 700)
    assert.equal(0, (runs(gate, "approve", approved.approval)))
    clock:shift(900)
    assert.equal("ask", (pays(client, 700)).verdict)
  end)

  describe("over a fleet", function()
    local server, a, b
    local function fleet()
      server = redis.start()
      local config = ("return { ledger = { redis = %q, timeout_ms = 10000 } }"):format(server:url())
      a, b = serve(config), serve(config)
    end

    it("is approved at one daemon and spent once at another", function()
      fleet()
      local v = pays(a:connect(), 500)
      assert.equal(0, (runs(b, "approve", v.approval)))
      local code = runs(a, "approve", v.approval)
      assert.equal(1, code)
      assert.equal("pass", (pays(b:connect(), 500)).verdict)
      assert.equal("ask", (pays(a:connect(), 500)).verdict)
    end)

    it("is spent by one of many calls that come at once", function()
      fleet()
      local first = a:connect()
      for round = 1, 5 do
        local v = pays(first, 500 + round, "r" .. round)
        assert.equal(0, (runs(b, "approve", v.approval)))
        local clients, paid = {}, 0
        for i = 1, 6 do
          clients[i] = (i % 2 == 0 and a or b):connect()
          clients[i]:begins(1, "pay", { amount = 500 + round }, session("r" .. round))
        end
        for i = 1, 6 do
          local result = clients[i]:answer(1).result
          if verdict(result).verdict == "pass" then paid = paid + 1 end
        end
        assert.equal(1, paid)
      end
    end)

    it("has two answers at once, of which one counts", function()
      fleet()
      local client = a:connect()
      for round = 1, 5 do
        local v = pays(client, 500 + round, "r" .. round)
        local command = ("'%s' %%s %s --socket '%%s' >/dev/null 2>&1; echo $?"):format(daemon.binary, v.approval)
        local yes, no = io.popen(command:format("approve", a.socket)), io.popen(command:format("deny", b.socket))
        local codes = { yes:read "*n", no:read "*n" }
        yes:close()
        no:close()
        table.sort(codes)
        assert.same({ 0, 1 }, codes)
      end
    end)

    it("cannot be approved while Redis is away, and says so; nothing runs", function()
      fleet()
      local client = a:connect()
      local v = pays(client, 500)
      assert.equal(0, (runs(a, "approve", v.approval)))
      server:kill()
      a:loses_redis()
      local said, words = pays(client, 500)
      assert.equal("ask", said.verdict)
      assert.is_nil(said.approval)
      assert.truthy(words:find("the ledger cannot be reached", 1, true), words)
      assert.equal(2, (runs(a, "approvals")))
    end)
  end)

  describe("of a client of the modern era", function()
    local gate, client
    local function begins()
      gate = serve()
      client = gate:connect()
    end

    local function meta(name)
      local m = modern { ["io.modelcontextprotocol/clientCapabilities"] = { elicitation = { form = { x = 1 } } } }
      for key, value in pairs(session(name or "s")) do m[key] = value end
      return m
    end

    local function calls(amount, more, name)
      local params = { name = "pay", arguments = { amount = amount }, _meta = meta(name) }
      for key, value in pairs(more or {}) do params[key] = value end
      return client:asks("tools/call", params)
    end

    local function accepted(value) return { ["toolgate/ask"] = { action = "accept", content = { answer = value } } } end

    it("is in the reply, and the call that repeats it brings the answer, once", function()
      begins()
      local result = calls(500)
      assert.equal("input_required", result.resultType)
      local key, request = next(result.inputRequests)
      assert.is_nil(next(result.inputRequests, key))
      assert.same({ "elicitation/create", "Pay 500?" }, { request.method, request.params.message })
      assert.same({ "pay", "keep" }, request.params.requestedSchema.properties.answer.enum)
      local again = { requestState = result.requestState, inputResponses = accepted "pay" }
      assert.equal('{"paid":500}', text(calls(500, again)):match "^[^\n]+")
      assert.equal("input_required", calls(500, again).resultType, "the same answer again asks anew")
      assert.equal(0, #waiting(gate), "it is no operator's business")
    end)

    it("is declined by any other answer", function()
      begins()
      for i, answer in ipairs { accepted "keep", { ["toolgate/ask"] = { action = "decline" } },
                                { ["toolgate/ask"] = { action = "cancel" } } } do
        local result = calls(500 + i)
        result = calls(500 + i, { requestState = result.requestState, inputResponses = answer })
        assert.equal("declined", verdict(result).code)
      end
    end)

    it("is not answered by a state that is made up, another's, or of other arguments", function()
      begins()
      local other = calls(700).requestState
      local elsewhere = calls(500, nil, "elsewhere").requestState
      for i, state in ipairs { "toolgate/ask/0123456789abcdef", "toolgate/ask/", "toolgate/ask/x", other, elsewhere } do
        local result = calls(500 + i, { requestState = state, inputResponses = accepted "pay" })
        assert.equal("input_required", result.resultType, state)
      end
    end)

    it("is asked again after garbage, and no answer runs it", function()
      begins()
      local state = calls(500).requestState
      for _, responses in ipairs { accepted "never offered", accepted(7), { ["toolgate/ask"] = "pay" }, { other = {} } } do
        local result = calls(500, { requestState = state, inputResponses = responses })
        assert.is_nil(text(result) and text(result):find("paid", 1, true))
      end
      local message = client:ask("tools/call", { name = "pay", arguments = { amount = 500 }, _meta = meta(),
                                                 requestState = state, inputResponses = "yes" })
      assert.equal(-32602, message.error.code)
    end)

    it("is put for each of several policies", function()
      begins()
      local more
      for _ = 1, 2 do
        local result = calls(5000, more)
        assert.equal("input_required", result.resultType)
        local schema = result.inputRequests["toolgate/ask"].params.requestedSchema.properties.answer
        more = { requestState = result.requestState,
                 inputResponses = accepted(schema.type == "boolean" and true or schema.enum[1]) }
      end
      assert.equal('{"paid":5000}', text(calls(5000, more)):match "^[^\n]+")
    end)

    it("is an operator's where the client has no elicitation", function()
      begins()
      local m = modern()
      for key, value in pairs(session "s") do m[key] = value end
      local result = client:asks("tools/call", { name = "pay", arguments = { amount = 500 }, _meta = m })
      assert.equal("complete", result.resultType)
      assert.is_string(verdict(result).approval)
    end)
  end)
end)
