-- Outages of Redis: the fallback by ledger.on_outage, and that no call is lost or counted twice.
local redis = require "redis"

local POLICIES = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                   ["create_task.lua"] = fixtures.create_task:gsub('effects = "write"', '%0, retry = { same_call = 2 }') }

-- Persist each write, also across a kill.
local KEEPS = { "--appendonly", "yes", "--appendfsync", "always" }

-- At the beginning of the function that commits: so many commits to sessions meet another daemon's.
local CONFLICTS = [[
if ARGV[1] ~= "-" and #KEYS > 1 and tonumber(redis.call("GET", "conflicts") or 0) > 0 then
  redis.call("DECR", "conflicts")
  ARGV[1] = "the guard of an older version"
end
]]

describe("during an outage of Redis", function()
  local store, gate, client

  local function gate_with(words)
    return daemon.start { policies = POLICIES, tools = fixtures.agent_tools,
                          config = ("return { ledger = { redis = '%s', timeout_ms = 300%s } }"):format(store:url(), words or "") }
  end

  local function begin(words)
    store = redis.start { arguments = KEEPS }
    gate = gate_with(words)
    client = gate:connect()
  end

  local function goes()
    store:kill()
    gate:loses_redis()
  end

  local function returns()
    store:start_again()
    return gate:has_merged()
  end

  local function echo(text, meta) return client:calls("echo", { text = text }, meta or session("s", { turn = 1 })) end
  local function known(name) return client:asks("toolgate/session", { session = name or "s" }) end
  local function reports(checked)
    client:asks("toolgate/report", { callId = checked.callId, name = "book_table", arguments = { where = "here" },
                                     result = { content = { { type = "text", text = "done" } } }, _meta = session "s" })
  end

  describe("the local engine", function()
    it("answers, is named in the verdict, and is merged afterwards", function()
      begin()
      assert.equal("redis", verdict(echo "a").ledger)
      goes()
      assert.equal("local", verdict(echo "b").ledger)
      assert.equal("local", verdict(echo "c").ledger)
      assert.truthy(gate:logs("redis_down"):find("on_outage=local", 1, true))
      assert.equal(1, returns().merged)
      assert.equal("redis", verdict(echo "d").ledger)
      local session_now = known()
      assert.equal(4, session_now.budgets.calls)
      assert.equal(4, session_now.budgets.calls_in_turn)
      assert.equal(4, #session_now.history)
      assert.equal(0, session_now.budgets.waiting)
    end)

    it("knows the sessions it has served before, and reports the outage for others", function()
      begin()
      echo "a"
      goes()
      local now = known()
      assert.same({ 1, true }, { now.budgets.calls, now.stand_in })
      local message = client:ask("toolgate/session", { session = "another" }).error.message
      golden.check("protocol", "toolgate/session: Redis is down, and the session is not known", message)
    end)

    it("logs at the daemon's end how many sessions were not merged", function()
      begin()
      goes()
      echo "a"
      returns()
      goes()
      echo "b"
      echo("c", session("other", { turn = 1 }))
      gate:stop()
      local said = daemon.last_words[#daemon.last_words]
      assert.truthy(said:find("warn ledger_sessions_lost sessions=2 ", 1, true), said)
    end)

    it("gives the same feedback: repeats, notes and loops", function()
      begin()
      goes()
      echo "same"
      local second = echo "same"
      assert.equal(2, verdict(second).repeats)
      assert.equal(2, #second.content, "the second reply has a note for the model")
      assert.same({ "refuse", "loop" }, { verdict(echo "same").verdict, verdict(echo "same").error_class })
    end)

    it("is merged once per outage", function()
      begin()
      for i = 1, 3 do
        echo("here " .. i)
        goes()
        echo("away " .. i)
        returns()
      end
      assert.equal(6, known().budgets.calls)
      assert.equal(6, #known().history)
    end)

    it("is merged whole if other daemons commit to the session all the time", function()
      begin()
      echo "a"
      local library, code = store:does("FUNCTION", "LIST", "WITHCODE")[1], nil
      for i = 1, #library, 2 do code = library[i] == "library_code" and library[i + 1] or code end
      local changed, count = code:gsub("_com', function%(KEYS, ARGV%)\n", "%0" .. CONFLICTS)
      assert.equal(1, count)
      store:does("FUNCTION", "LOAD", "REPLACE", changed)
      store:does("SET", "conflicts", "17")
      goes()
      for i = 1, 20 do assert.equal("local", verdict(echo("away " .. i)).ledger) end
      returns()
      assert.equal(21, known().budgets.calls)
      assert.equal(0, known().budgets.waiting)
      assert.truthy(gate:logs "ledger_conflicts")
      assert.equal("0", store:does("GET", "conflicts"))
    end)

    it("spends budgets that stay spent", function()
      begin()
      local function files() return verdict(client:calls("create_task", { title = "t" }, session("s", { turn = 1 }))) end
      assert.equal("pass", files().verdict)
      goes()
      assert.equal("pass", files().verdict)
      returns()
      local third = files()
      assert.same({ "refuse", "same_call" }, { third.verdict, third.code })
    end)

    it("does not grant a budget again in every outage", function()
      begin()
      local function files() return verdict(client:calls("create_task", { title = "t" }, session("s", { turn = 1 }))) end
      goes()
      assert.equal("pass", files().verdict)
      returns()
      goes()
      assert.equal("pass", files().verdict)
      returns()
      goes()
      assert.equal("refuse", files().verdict)
    end)

    it("is forgotten in runs of identical calls after the outage", function()
      begin()
      for _ = 1, 2 do assert.equal("pass", verdict(echo "same").verdict) end
      goes()
      assert.equal("pass", verdict(echo "same").verdict)
      returns()
      for _ = 1, 2 do assert.equal("pass", verdict(echo "same").verdict) end
    end)

    it("continues a repair chain", function()
      begin()
      local function wrong(name) return verdict(client:calls("create_task", { name = name }, session("s", { turn = 1 }))) end
      assert.equal(2, wrong("a").attempts_left)
      goes()
      assert.equal("repair", wrong("b").verdict)
      returns()
      assert.equal("retry_budget_exceeded", wrong("c").code)
    end)

    it("ends an earlier repair chain as success, which is logged", function()
      begin()
      client:calls("create_task", { name = "a" }, session("s", { turn = 1 }))
      goes()
      client:calls("create_task", { title = "a" }, session("s", { turn = 1 }))
      returns()
      assert.truthy(gate:logs("validation_retry_outcome tool=create_task"):find("outcome=success", 1, true))
      assert.same({}, known().budgets.chains)
    end)

    it("gives a repair chain up once, also one that Redis knows", function()
      begin()
      client:calls("create_task", { name = "a" }, session("s", { turn = 1 }))
      goes()
      client:asks("toolgate/turn", { _meta = session "s", turn = 2 })
      returns()
      assert.equal(1, select(2, gate:log():gsub("outcome=llm_gave_up", "")))
    end)

    it("begins turns and stores facts and goals, which are merged", function()
      begin()
      echo "a"
      goes()
      client:asks("toolgate/turn", { _meta = session "s", turn = 2, goal = "find it" })
      client:calls("outcome", { how = "facts" }, session("s", { turn = 2 }))
      returns()
      local now = known()
      assert.same({ 2, "find it", { colour = "red" } }, { now.turn, now.goal, now.facts })
      assert.equal(1, now.budgets.calls_in_turn)
      assert.equal(2, now.budgets.calls)
    end)

    it("is used from the start if Redis is unreachable", function()
      store = redis.start { arguments = KEEPS }
      store:kill()
      gate = gate_with()
      client = gate:connect()
      assert.equal("local", verdict(echo "a").ledger)
      returns()
      assert.equal(1, known().budgets.calls)
    end)

    it("hands a call in flight over to Redis, which settles it", function()
      begin()
      goes()
      local checked = client:checks("book_table", { where = "here" }, session "s")
      assert.equal("local", checked.ledger)
      returns()
      assert.equal(1, known().budgets.waiting)
      reports(checked)
      local now = known()
      assert.same({ 0, 1 }, { now.budgets.waiting, now.budgets.calls })
      assert.equal("ok", now.history[1].class)
    end)

    it("settles its own calls", function()
      begin()
      goes()
      local checked = client:checks("book_table", { where = "here" }, session "s")
      reports(checked)
      returns()
      local now = known()
      assert.same({ 0, 1, 1 }, { now.budgets.waiting, now.budgets.calls, #now.history })
      assert.equal("ok", now.history[1].class)
    end)

    it("forgets a session in Redis too", function()
      begin()
      for _ = 1, 3 do echo "same" end
      goes()
      echo "b"
      client:asks("toolgate/session", { session = "s", forget = true })
      returns()
      assert.equal(1014, client:ask("toolgate/session", { session = "s" }).error.code)
      assert.same({}, store:keys())
    end)
  end)

  it("a session that this daemon does not know is not forgotten later, after an error", function()
    begin()
    echo "a"
    local other = gate_with()
    goes()
    other:loses_redis()
    local operator = other:connect()
    assert.equal(1014, operator:ask("toolgate/session", { session = "s", forget = true }).error.code)
    assert.equal(1014, operator:ask("toolgate/session", { session = "s", reset = "echo" }).error.code)
    returns()
    other:has_merged()
    assert.equal(1, known().budgets.calls)
  end)

  describe("a call admitted by Redis", function()
    it("is settled after the outage", function()
      begin()
      local checked = client:checks("book_table", { where = "here" }, session "s")
      assert.equal("redis", checked.ledger)
      goes()
      reports(checked)
      returns()
      local now = known()
      assert.same({ 0, 1, 1 }, { now.budgets.waiting, now.budgets.calls, #now.history })
      assert.equal("ok", now.history[1].class)
    end)

    it("without a reply is not counted twice", function()
      for _, words in ipairs { "", ", on_outage = 'closed'", ", on_outage = 'open'" } do
        begin(words)
        echo "a"
        store:freeze() -- requests now wait in its socket
        local said = verdict(echo "b")
        gate:loses_redis()
        store:thaw()
        gate:has_merged()
        local counted = said.ledger == "local" and 2 or 1
        assert.equal(counted, known().budgets.calls, words)
        assert.equal(0, known().budgets.waiting, words)
        daemon.stop_all()
        redis.stop_all()
      end
    end)
  end)

  describe("a closed ledger", function()
    it("refuses calls, names the fix, and counts nothing", function()
      begin ", on_outage = 'closed'"
      echo "a"
      goes()
      local refused = echo "b"
      assert.same({ "refuse", "unavailable", "ledger_unavailable", "none" },
                  { verdict(refused).verdict, verdict(refused).error_class, verdict(refused).code, verdict(refused).ledger })
      golden.check("feedback", "ledger: calls cannot be counted", client_of.text(refused))
      local reset = client:ask("toolgate/session", { session = "s", reset = "echo" })
      golden.check("protocol", "toolgate/session: Redis is down, and nothing is reset", reset.error.message,
                   redis.LOST)
      assert.truthy(client:ask("toolgate/turn", { _meta = session "s" }).error.message:find("ledger", 1, true))
      returns()
      assert.equal("pass", verdict(echo "c").verdict)
      assert.equal(2, known().budgets.calls)
    end)
  end)

  describe("an open ledger", function()
    it("passes calls uncounted, each logged", function()
      begin ", on_outage = 'open'"
      echo "a"
      goes()
      local passed = echo "b"
      assert.same({ "pass", "none" }, { verdict(passed).verdict, verdict(passed).ledger })
      assert.truthy(gate:logs("ledger_uncounted"):find("tool=echo session=uid:%d+/s"))
      returns()
      assert.equal(1, known().budgets.calls)
      assert.equal(1, #known().history)
    end)
  end)

  -- A turn's goal makes the longest command, so a few hundred fill the output buffer of a blocked connection. The
  -- sessions are cached, so that the turns need no load first.
  it("calls beyond the output buffer of a blocked Redis are counted locally at once", function()
    store = redis.start()
    gate = daemon.start { policies = POLICIES,
                          config = ("return { ledger = { redis = '%s', timeout_ms = 10000 }, limits = { in_flight = 4096 } }")
                                     :format(store:url()) }
    client = gate:connect()
    local TURNS, GOAL = 900, ("find it "):rep(1024)
    local function begin_turns(goal)
      for i = 1, TURNS do
        client:say { jsonrpc = "2.0", id = i, method = "toolgate/turn", params = { _meta = session("s" .. i), goal = goal } }
      end
    end
    begin_turns "first"
    for _ = 1, TURNS do assert.equal(1, client:hears().result.turn) end
    store:freeze()
    begin_turns(GOAL)
    local here = { client:hears() }
    assert.truthy(here[1].id > TURNS / 3, "the buffer has no room for the last commands: " .. here[1].id)
    local ledger = gate:status().ledger
    assert.same({ true, 0 }, { ledger.connected, ledger.outages })
    store:thaw()
    for _ = 2, TURNS do assert.equal(2, client:hears().result.turn) end
    assert.equal(0, gate:has_merged().outages)
    assert.equal("find it ", known("s" .. TURNS).goal:sub(1, 8))
  end)

  it("calls beyond the outage queue are counted locally, and the loss is logged once and counted", function()
    store = redis.start()
    gate = gate_with ", memory = 1048576"
    client = gate:connect()
    store:kill()
    gate:loses_redis()
    for i = 1, 1500 do assert.equal("local", verdict(client:calls("echo", { text = "n" .. i }, session "s")).ledger) end
    assert.is_true(gate:status().ledger.lost > 0)
    golden.check("log", "ledger: the outage queue is full", gate:logs("ledger_requests_dropped"), { ["=%d+"] = "=<n>" })
    assert.equal(1, select(2, gate:log():gsub("ledger_requests_dropped", "")))
  end)

  it("a Redis that hangs is given up after 50 ms by default", function()
    store = redis.start()
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() } }
    store:freeze()
    gate:connect():calls("echo", { text = "a" }, session "s")
    golden.check("log", "Redis: no answer in time", gate:logs("redis_down"))
    store:thaw()
  end)

  it("a Redis that hangs is given up, and its old connection is closed when it wakes", function()
    begin()
    for i = 1, 20 do
      client:begins(i, "echo", { text = "n" .. i }, session("s", { turn = 1 }))
      if i == 10 then store:freeze() end
    end
    for _ = 1, 20 do assert.truthy(client:hears().result) end
    gate:loses_redis()
    store:thaw()
    gate:has_merged()
    assert.equal(20, known().budgets.calls)
    assert.equal(0, known().budgets.waiting)
  end)
end)
