-- A fleet of daemons on one Redis under concurrent calls, while daemons or Redis are killed.
local redis = require "redis"
local signal = require "posix.signal"

local DAEMONS, SESSIONS, BUDGET = 4, 8, 30

-- Each call is different, so that only the limit can refuse it.
local POLICIES = { ["work.lua"] = ([==[
-- work: does a piece of work. Reads.
return tool "work" {
  description = "Do a piece of work.",
  schema = json [[{"type":"object","properties":{"n":{"type":"integer","description":"Which"}},"required":["n"]}]],
  effects = "read",
  limits = { calls_per_session = %d },
  run = function(args) return { did = args.n } end,
}
]==]):format(BUDGET) }

describe("a fleet", function()
  local store, gates, clients, n

  local function start(i)
    gates[i] = daemon.start { policies = POLICIES, config = gates.config }
    clients[i] = gates[i]:connect()
  end

  -- A busy machine is not an outage, except if the spec is about timeouts.
  local PATIENT = ", timeout_ms = 5000"

  local function begin(words)
    store = redis.start { arguments = { "--appendonly", "yes", "--appendfsync", "always" } }
    gates = { config = ("return { ledger = { redis = 'unix:%s'%s } }"):format(store.socket, words or "") }
    clients, n = {}, 0
    for i = 1, DAEMONS do start(i) end
  end

  -- Sends one call of session s on daemon i, without waiting for the reply.
  local function says(i, s)
    n = n + 1
    clients[i]:say { jsonrpc = "2.0", id = n, method = "tools/call",
                     params = { name = "work", arguments = { n = n }, _meta = session("s" .. s, { turn = 1 }) } }
  end

  -- Rounds in which every session calls on every daemon at once, in alternating order. Returns how many calls of each
  -- session ran; `disturb` runs between sending and receiving, and may return a daemon that it killed.
  local function rounds(count, disturb)
    local ran, heard = {}, 0
    for s = 1, SESSIONS do ran[s] = 0 end
    for round = 1, count do
      local of = {}
      for i = 1, DAEMONS do
        for s = 1, SESSIONS do
          local who = round % 2 == 0 and s or SESSIONS + 1 - s
          says(i, who)
          of[n] = who
        end
      end
      local dead = disturb and disturb(round)
      for i = 1, DAEMONS do
        for _ = 1, i == dead and 0 or SESSIONS do
          local reply = clients[i]:hears()
          heard = heard + 1
          if not reply.result.isError then ran[of[reply.id]] = ran[of[reply.id]] + 1 end
        end
      end
    end
    return ran, heard
  end

  local function all_have_merged()
    for i = 1, DAEMONS do
      process.eventually("daemon " .. i .. " has merged everything", function()
        local ledger = gates[i]:status().ledger
        return ledger.connected and ledger.waiting == 0
      end)
    end
  end

  local function counted(s)
    return clients[1]:asks("toolgate/session", { session = "s" .. s }).budgets.calls
  end

  it("spends a budget exactly, on any daemon", function()
    begin(PATIENT)
    local ran, heard = rounds(12)
    assert.equal(12 * DAEMONS * SESSIONS, heard)
    for s = 1, SESSIONS do assert.same({ BUDGET, BUDGET }, { ran[s], counted(s) }) end
  end)

  it("with killed daemons spends no more, and counts each call at most once", function()
    begin(PATIENT)
    local victim = 0
    local ran = rounds(16, function(round)
      if round % 4 ~= 0 then return end
      victim = victim % DAEMONS + 1
      gates[victim].child:signal(signal.SIGKILL)
      gates[victim].child:wait()
      gates[victim].stopped = true
      process.remove(gates[victim].directory)
      clients[victim]:close()
      start(victim)
      return victim
    end)
    for s = 1, SESSIONS do
      assert.truthy(ran[s] <= BUDGET, "session " .. s .. " ran " .. ran[s])
      assert.truthy(counted(s) <= BUDGET and counted(s) >= ran[s])
    end
  end)

  it("with a closed ledger is exact while Redis is killed repeatedly, and refuses calls in between", function()
    begin(PATIENT .. ", on_outage = 'closed'")
    local ran, heard = rounds(16, function(round)
      if round % 3 ~= 0 then return end
      store:kill()
      store:start_again()
    end)
    assert.equal(16 * DAEMONS * SESSIONS, heard)
    all_have_merged()
    for s = 1, SESSIONS do
      assert.truthy(ran[s] <= BUDGET, "session " .. s .. " ran " .. ran[s])
      local what = ("session %d ran %d and counts %d: what was refused while Redis had it is taken back")
      process.eventually(what:format(s, ran[s], counted(s)), function() return counted(s) == ran[s] end)
    end
  end)

  it("with a local fallback spends a budget at most once more per daemon while Redis is killed repeatedly", function()
    begin(PATIENT)
    local ran, heard = rounds(20, function(round)
      if round % 3 ~= 0 then return end
      store:kill()
      store:start_again()
    end)
    assert.equal(20 * DAEMONS * SESSIONS, heard)
    all_have_merged()
    for s = 1, SESSIONS do
      assert.truthy(ran[s] <= BUDGET * (1 + DAEMONS), "session " .. s .. " ran " .. ran[s])
      assert.equal(ran[s], counted(s))
    end
  end)

  it("counts every call once while Redis hangs repeatedly", function()
    begin()
    local ran, heard = rounds(10, function(round)
      if round % 3 ~= 0 then return end
      store:freeze()
      local noticed = gates[1]:connect():calls("work", { n = 0 }, session "somebody has to notice")
      assert.equal("local", client_of.verdict(noticed).ledger)
      store:thaw()
    end)
    assert.equal(10 * DAEMONS * SESSIONS, heard)
    all_have_merged()
    for s = 1, SESSIONS do assert.equal(ran[s], counted(s)) end
  end)
end)
