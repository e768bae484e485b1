-- Four daemons on one Redis, and 64 agents whose sessions are on another daemon with every call: what each is told is
-- exact to the call, also while daemons or Redis are killed. For a moment here; for minutes, and with the clock held to
-- it, in `make soak`.
local agents = require "fleet_agents"
local daemon = require "daemon"
local fleets = require "fleet"
local redis = require "redis"

local CALLS, AGENTS, DAEMONS = 5000, 64, 4
local KEEPS = { "--appendonly", "yes", "--appendfsync", "always" }

describe("a fleet of agents", function()
  local fleet

  after_each(function()
    fleets.stop_all()
    daemon.stop_all()
    redis.stop_all()
  end)

  local function starts(given)
    given.daemons, given.policies = DAEMONS, agents.policies
    fleet = fleets.start(given)
  end

  -- What was seen, and what Redis has in the end: of how many sessions exactly what passed, of how many in all.
  local function lives(stand_ins)
    local seen, sessions = agents.live(fleet, AGENTS, CALLS, stand_ins)
    fleet:calms_redis()
    fleet:until_all_is_told()
    seen.exact, seen.counted = agents.compare(fleet, sessions)
    seen.sessions = #sessions
    assert.same({}, fleet.problems)
    assert.is_true(seen.calls >= CALLS)
    return seen
  end

  it("is told of budgets, loops, chains and twins as if it were on one daemon", function()
    starts {}
    local seen = lives()
    assert.same({ 0, 0 }, { seen.lost, seen.unavailable })
    assert.same({ seen.sessions, seen.passed }, { seen.exact, seen.counted })
  end)

  it("loses calls only with the daemon that was killed, and none is counted twice", function()
    starts {}
    fleet:kills_daemons { calls = 500 }
    local seen = lives()
    assert.is_true(fleet:kills() > 0)
    assert.is_true(seen.counted >= seen.passed and seen.counted <= seen.passed + seen.lost)
  end)

  it("is exact in a closed ledger whose Redis is killed again and again", function()
    starts { on_outage = "closed", redis = KEEPS }
    fleet:kills_redis({ calls = 1500 }, 20)
    local seen = lives()
    assert.is_true(fleet.redis_kills > 0 and seen.unavailable > 0)
    assert.same({ 0, seen.sessions, seen.passed }, { seen.lost, seen.exact, seen.counted })
  end)

  it("spends a budget once more for each daemon at most while local engines stand in, and all of it is merged", function()
    starts { on_outage = "local", redis = KEEPS }
    fleet:kills_redis({ calls = 1500 }, 20)
    local seen = lives(DAEMONS)
    assert.is_true(fleet.redis_kills > 0)
    assert.same({ 0, 0, seen.sessions, seen.passed }, { seen.lost, seen.unavailable, seen.exact, seen.counted })
  end)
end)
