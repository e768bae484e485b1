-- Four daemons on one Redis, and 64 agents that change the daemon with every call: verdicts are exact to the call, also
-- while daemons or Redis are killed. This spec runs for a moment; `make soak` runs for minutes and limits the latency.
local agents = require "fleet_agents"
local fleets = require "fleet"

local CALLS, AGENTS, DAEMONS = 5000, 64, 4
local KEEPS = { "--appendonly", "yes", "--appendfsync", "always" }

describe("a fleet of agents", function()
  local fleet

  local function starts(given)
    given.daemons, given.policies = DAEMONS, agents.policies
    fleet = fleets.start(given)
  end

  -- Runs the agents and compares with Redis: how many sessions match exactly, and how many calls are counted.
  local function lives(stand_ins)
    local seen, sessions = agents.live(fleet, AGENTS, CALLS, stand_ins)
    fleet:calms_redis()
    fleet:until_all_is_merged()
    seen.exact, seen.counted = agents.compare(fleet, sessions)
    seen.sessions = #sessions
    assert.same({}, fleet.problems)
    assert.is_true(seen.calls >= CALLS)
    return seen
  end

  it("gets the same budgets, loops, repair chains and duplicates as on one daemon", function()
    starts {}
    local seen = lives()
    assert.same({ 0, 0 }, { seen.lost, seen.unavailable })
    assert.same({ seen.sessions, seen.passed }, { seen.exact, seen.counted })
  end)

  it("loses calls only with a killed daemon, and no call is counted twice", function()
    starts {}
    fleet:kills_daemons { calls = 500 }
    local seen = lives()
    assert.is_true(fleet:kills() > 0)
    assert.is_true(seen.counted >= seen.passed and seen.counted <= seen.passed + seen.lost)
  end)

  it("is exact with a closed ledger while Redis is killed repeatedly", function()
    starts { on_outage = "closed", redis = KEEPS }
    fleet:kills_redis({ calls = 1500 }, 20)
    local seen = lives()
    assert.is_true(fleet.redis_kills > 0 and seen.unavailable > 0)
    assert.same({ 0, seen.sessions, seen.passed }, { seen.lost, seen.exact, seen.counted })
  end)

  it("spends a budget at most once more per daemon during outages, and all calls are merged", function()
    starts { on_outage = "local", redis = KEEPS }
    fleet:kills_redis({ calls = 1500 }, 20)
    local seen = lives(DAEMONS)
    assert.is_true(fleet.redis_kills > 0)
    assert.same({ 0, 0, seen.sessions, seen.passed }, { seen.lost, seen.unavailable, seen.exact, seen.counted })
  end)
end)
