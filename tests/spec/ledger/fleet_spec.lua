-- Calls of one session on several daemons around an outage of Redis. The soak test found most cases;
-- linearizability_spec.lua plays many more at random.
local redis = require "redis"

local POLICIES = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task, ["once.lua"] = [==[
-- once: reads, once in a turn.
return tool "once" {
  description = "Once.", effects = "read", limits = { calls_per_turn = 1 },
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}]],
  run = function(args) return { n = args.n } end,
}]==], ["thrice.lua"] = [==[
-- thrice: reads, three times in a session.
return tool "thrice" {
  description = "Thrice.", effects = "read", limits = { calls_per_session = 3 },
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}]],
  run = function(args) return { n = args.n } end,
}]==] }

describe("around an outage", function()
  local store, gates, clients

  -- Starts one daemon for each timeout.
  local function begin(on_outage, ...)
    store = redis.start { arguments = { "--appendonly", "yes", "--appendfsync", "always" } }
    gates, clients = {}, {}
    for i, timeout_ms in ipairs { ... } do
      gates[i] = daemon.start { policies = POLICIES, tools = fixtures.agent_tools,
        config = ("return { ledger = { redis = '%s', timeout_ms = %d, on_outage = '%s' } }"):format(store:url(), timeout_ms,
                                                                                                 on_outage) }
      clients[i] = gates[i]:connect()
    end
  end

  local function goes()
    store:kill()
    for _, gate in ipairs(gates) do gate:loses_redis() end
  end

  local function all_is_merged()
    for _, gate in ipairs(gates) do gate:has_merged() end
  end

  local function returns()
    store:start_again()
    all_is_merged()
  end

  local labels = 0
  local function place(turn)
    labels = labels + 1
    return client_of.session("s", { turn = turn, step = "m" .. labels })
  end

  local function echo(i, text) return verdict(clients[i]:calls("echo", { text = text }, place(1))) end

  local function reports(i, checked, name, arguments)
    return clients[i]:asks("toolgate/report", { callId = checked.callId, name = name, arguments = arguments, _meta = place(1),
                                                result = { content = { { type = "text", text = "done" } } } })
  end

  local function known() return clients[1]:asks("toolgate/session", { session = "s" }) end

  it("the same call on three daemons, merged one after the other, is not a cycle", function()
    begin("local", 5000, 5000, 5000)
    goes()
    for i = 1, 3 do assert.equal("local", echo(i, "same").ledger) end
    returns()
    local again = echo(1, "same")
    assert.same({ "pass", "redis" }, { again.verdict, again.ledger })
    assert.same({ 4, 4 }, { known().budgets.calls, #known().history })
  end)

  it("a budget is spent at most once more by each daemon, and afterwards by none", function()
    begin("local", 5000, 5000)
    local n = 0
    local function spends(i)
      local ran = 0
      for _ = 1, 5 do
        n = n + 1
        local said = verdict(clients[i]:calls("thrice", { n = n }, place(1)))
        if said.verdict == "pass" then ran = ran + 1 else assert.equal("calls_per_session", said.code) end
      end
      return ran
    end
    local ran = 0
    goes()
    for i = 1, 2 do
      local of_one = spends(i)
      assert.is_true(of_one <= 3, of_one)
      ran = ran + of_one
    end
    returns()
    assert.equal(ran, known().budgets.calls)
    for i = 1, 2 do assert.equal(0, spends(i)) end
  end)

  it("a call that one daemon admits and another settles is counted once", function()
    begin("local", 5000, 5000)
    goes()
    local checked = clients[1]:checks("book_table", { where = "here" }, place(1))
    assert.same({ "pass", "local" }, { checked.verdict, checked.ledger })
    reports(2, checked, "book_table", { where = "here" })
    returns()
    assert.same({ 1, 0 }, { known().budgets.calls, known().budgets.waiting })
  end)

  it("calls that Redis denied after the timeout, while local engines admitted them, are counted once", function()
    begin("local", 50, 50)
    echo(1, "a")
    store:freeze()
    local checked = {}
    for i = 1, 2 do
      checked[i] = clients[i]:checks("once", { n = i }, place(1))
      assert.same({ "pass", "local" }, { checked[i].verdict, checked[i].ledger })
    end
    for i = 1, 2 do reports(3 - i, checked[i], "once", { n = i }) end
    store:thaw()
    all_is_merged()
    assert.same({ 3, 0 }, { known().budgets.calls, known().budgets.waiting })
  end)

  it("an invalid call from before the outage does not shorten the repair chain of a later turn", function()
    begin("closed", 50, 5000)
    local function wrong(name, turn) return { name = "create_task", arguments = { name = name }, _meta = place(turn) } end
    echo(1, "a")
    store:freeze()
    assert.equal("ledger_unavailable", clients[1]:asks("toolgate/check", wrong("a", 1)).code)
    clients[2]:say { jsonrpc = "2.0", id = "second", method = "toolgate/check", params = wrong("b", 2) }
    store:thaw()
    assert.equal(2, clients[2]:answer("second").result.attempts_left)
    all_is_merged()
    assert.equal(1, clients[2]:asks("toolgate/check", wrong("c", 2)).attempts_left)
  end)
end)

describe("a denied call", function()
  it("is counted if the agent ran it anyway", function()
    local client = daemon.start { policies = POLICIES, tools = fixtures.agent_tools }:connect()
    local function place(step) return client_of.session("s", { turn = 1, step = step }) end
    client:calls("once", { n = 1 }, place "m1")
    local denied = client:checks("once", { n = 2 }, place "m2")
    assert.equal("calls_per_turn", denied.code)
    client:asks("toolgate/report", { callId = denied.callId, name = "once", arguments = { n = 2 }, _meta = place "m2",
                                     result = { content = { { type = "text", text = "done" } } } })
    assert.equal(2, client:asks("toolgate/session", { session = "s" }).budgets.calls)
  end)
end)
