-- Sessions as a client sees them: repairs, loops, steps, and eviction.

describe("a session", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                                              ["create_task.lua"] = fixtures.create_task },
                                 tools = fixtures.agent_tools }
  end)

  local function attempts(tool, arguments, meta)
    local said = verdict(client:calls(tool, arguments, meta))
    return { said.verdict, said.attempts_left }
  end

  describe("with invalid arguments", function()
    it("gets two repairs, then a refusal", function()
      assert.same({ "repair", 2 }, attempts("create_task", { name = "a" }, session "s"))
      assert.same({ "repair", 1 }, attempts("create_task", { name = "b" }, session "s"))
      local last = client:calls("create_task", { name = "c" }, session "s")
      assert.equal("refuse", verdict(last).verdict)
      assert.equal("retry_budget_exceeded", verdict(last).code)
      assert.is_true(last.isError)
      assert.truthy(gate:logs("validation_retry_outcome"):find("outcome=exhausted", 1, true))
    end)

    it("always passes with valid ones afterwards", function()
      for _ = 1, 4 do client:calls("create_task", { name = "a" }, session "s") end
      assert.is_not_true(client:calls("create_task", { title = "a" }, session "s").isError)
    end)

    it("counts per tool and per session", function()
      assert.same({ "repair", 2 }, attempts("create_task", { name = "a" }, session "one"))
      assert.same({ "repair", 2 }, attempts("create_task", { name = "a" }, session "two"))
      assert.same({ "repair", 2 }, attempts("echo", { txt = "a" }, session "one"))
      assert.same({ "repair", 1 }, attempts("create_task", { name = "b" }, session "one"))
    end)
  end)

  describe("that makes the same call with the same result", function()
    local function again()
      return client:calls("echo", { text = "same" }, session("s", { turn = 1 }))
    end

    it("gets a note the second time, a refusal the third and fourth, and a halt from the fifth on", function()
      assert.is_not_true(again().isError)
      local second = again()
      assert.is_not_true(second.isError)
      assert(#second.content > 1, "the second reply has a note for the model")
      for _ = 3, 4 do
        local refused = again()
        assert.is_true(refused.isError)
        assert.same({ "refuse", "loop" }, { verdict(refused).verdict, verdict(refused).error_class })
      end
      for _ = 5, 6 do assert.same({ "halt", "loop" }, { verdict(again()).verdict, verdict(again()).error_class }) end
    end)

    it("may repeat it after another write", function()
      for _ = 1, 3 do again() end
      assert.is_not_true(client:calls("create_task", { title = "x" }, session("s", { turn = 1 })).isError)
      assert.is_not_true(again().isError)
    end)

    it("may repeat it in a new turn", function()
      for _ = 1, 3 do again() end
      assert.is_not_true(client:calls("echo", { text = "same" }, session("s", { turn = 2 })).isError)
    end)

    it("is recognised with another order of keys and another spelling of numbers", function()
      client:say_line('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"outcome",'
        .. '"arguments":{"how":"ok","n":1},"_meta":{"dev.toolgate/session":"k"}}}')
      client:hears()
      client:say_line('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outcome",'
        .. '"arguments":{"n":1.0,"how":"ok"},"_meta":{"dev.toolgate/session":"k"}}}')
      client:hears()
      client:say_line('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outcome",'
        .. '"arguments":{ "how" : "ok", "n":1e0},"_meta":{"dev.toolgate/session":"k"}}}')
      assert.equal("loop", verdict(client:hears().result).error_class)
    end)

    it("is the same on every connection", function()
      again()
      client = gate:connect()
      again()
      client = gate:connect()
      assert.equal("loop", verdict(again()).error_class)
    end)
  end)

  it("that alternates between two calls is stopped", function()
    local stopped
    for i = 1, 8 do
      local result = client:calls("echo", { text = i % 2 == 0 and "a" or "b" }, session("s", { turn = 1 }))
      if result.isError then stopped = stopped or { i, verdict(result).error_class } end
    end
    assert.not_nil(stopped)
    assert.equal("loop", stopped[2])
    assert(stopped[1] >= 5, "not before the circle was closed twice: " .. stopped[1])
  end)

  it("without a name gets advice, and a refusal only at the eighth repetition", function()
    local refused_at
    for i = 1, 10 do
      local result = client:calls("echo", { text = "same" })
      if result.isError and not refused_at then refused_at = i end
      if i == 5 then assert.equal("loop", verdict(result).would) end
    end
    assert.equal(8, refused_at)
  end)

  describe("that repeats a write with other calls in between", function()
    local buy = [==[
-- buy: buys. Run by the agent.
return tool "buy" { description = "Buy.", effects = "write", retry = { same_call = 2 }, schema = params { what = str "What" } }
]==]

    before_each(function()
      client = daemon.start { policies = { ["buy.lua"] = buy, ["echo.lua"] = fixtures.echo } }:connect()
    end)

    local function buys(meta)
      local checked = client:checks("buy", { what = "tea" }, meta)
      client:asks("toolgate/report", { callId = checked.callId, name = "buy", arguments = { what = "tea" },
                                       result = { bought = "tea" }, _meta = meta })
      client:calls("echo", { text = checked.callId }, meta)
      return checked
    end

    it("gets a note with the last permitted call, and then a refusal", function()
      local meta = session("s", { turn = 1 })
      assert.is_nil(buys(meta).advice)
      local second = buys(meta)
      assert.equal("pass", second.verdict)
      golden.check("feedback", "loop: advice with a call that passes for the last time", second.advice)
      assert.same({ "refuse", "same_call" }, { client:checks("buy", { what = "tea" }, meta).verdict,
                                               client:checks("buy", { what = "tea" }, meta).code })
    end)

    it("gets only advice without a session name", function()
      for _ = 1, 2 do buys() end
      local third = buys()
      assert.same({ "pass", "same_call" }, { third.verdict, third.would })
      golden.check("feedback", "loop: advice in shadow mode", third.advice)
    end)
  end)

  it("without progress reports no_progress from the sixth call on", function()
    for i = 1, 5 do
      assert.is_nil(verdict(client:calls("outcome", { how = "failed", n = i }, session("s", { turn = 1 }))).no_progress)
    end
    assert.equal(6, verdict(client:calls("outcome", { how = "failed", n = 6 }, session("s", { turn = 1 }))).no_progress)
    assert.is_nil(verdict(client:calls("outcome", { how = "ok" }, session("s", { turn = 1 }))).no_progress)
  end)

  it("may have any characters in its name, and names do not collide", function()
    for _, name in ipairs { "a:b", "a", "{a}", "a\nb", "ä", ("x"):rep(200) } do
      assert.same({ "repair", 2 }, attempts("create_task", { name = "a" }, session(name)))
    end
  end)
end)

describe("sessions beyond the ledger's memory", function()
  local function with(words)
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo },
                                config = ("return { ledger = { memory = 1048576, %s } }"):format(words or "") }
    return gate, gate:connect()
  end

  local function status_of(gate)
    return (select(2, process.run { daemon.binary, "status", "--socket", gate.socket }))
  end

  it("are evicted least recently used first, which is counted and logged once", function()
    local gate, client = with()
    for i = 1, 6000 do
      client:calls("echo", { text = "a" }, session("s" .. i, { turn = 1 }))
      if i % 600 == 0 then client:calls("echo", { text = "n" .. i }, session("steady", { turn = 1 })) end
    end
    local ledger = gate:status().ledger
    assert.is_true(ledger.forgotten > 0)
    assert.equal(6001, ledger.sessions + ledger.forgotten)
    assert.equal(10, client:asks("toolgate/session", { session = "steady" }).budgets.calls)
    assert.not_nil(client:ask("toolgate/session", { session = "s1" }).error)
    assert.equal(1, select(2, gate:log():gsub("ledger_evicted", "")))
    golden.check("log", "ledger: sessions are forgotten", gate:logs("ledger_evicted"), { ["=%d+"] = "=<n>" })
    golden.check("cli", "status: sessions forgotten, local ledger", status_of(gate):match "[^\n]*evicted[^\n]*",
                 { ["%d+"] = "<n>" })
  end)

  it("are evicted during an outage of Redis as well, and the status reports it", function()
    local gate, client = with "redis = 'unix:/nowhere'"
    for i = 1, 6000 do client:calls("echo", { text = "a" }, session("s" .. i, { turn = 1 })) end
    local forgotten = gate:status().ledger.forgotten
    assert.is_true(forgotten > 0)
    golden.check("cli", "status: sessions forgotten during an outage of Redis", status_of(gate):match "[^\n]*evicted[^\n]*",
                 { [": %d+"] = ": <n>" })
  end)
end)
