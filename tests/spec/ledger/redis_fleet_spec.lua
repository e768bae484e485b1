-- Daemons on one Redis under concurrent calls, while it hangs. fleet_spec.lua kills daemons and Redis.
local redis = require "redis"

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

  local function begin()
    store = redis.start { arguments = { "--appendonly", "yes", "--appendfsync", "always" } }
    gates, clients, n = {}, {}, 0
    for i = 1, DAEMONS do
      gates[i] = daemon.start { policies = POLICIES,
                                config = ("return { ledger = { redis = 'unix:%s' } }"):format(store.socket) }
      clients[i] = gates[i]:connect()
    end
  end

  -- Sends one call of session s on daemon i, without waiting for the reply.
  local function says(i, s)
    n = n + 1
    clients[i]:say { jsonrpc = "2.0", id = n, method = "tools/call",
                     params = { name = "work", arguments = { n = n }, _meta = session("s" .. s, { turn = 1 }) } }
  end

  -- Rounds in which every session calls on every daemon at once, in alternating order. Returns how many calls of each
  -- session ran; `disturb` runs between sending and receiving.
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
      disturb(round)
      for i = 1, DAEMONS do
        for _ = 1, SESSIONS do
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
