-- The linearizability check of a fleet: four daemons on one Redis, agents that share sessions and change the daemon with
-- every request, and faults. The spec plays each story for a moment, `make soak` for minutes.
local agents = require "history_agents"
local fleets = require "fleet"
local proxies = require "redis_proxy"
local redis = require "redis"

local M = { DAEMONS = 4 }

-- Persist each write, also across a kill.
local KEEPS = { "--appendonly", "yes", "--appendfsync", "always" }
local DOWN_MS, STOP_MS = 30, 400

-- lenient: Redis may be away; faults: of the proxies; kills: how often a daemon is killed, {calls = …} or {ms = …};
-- redis_kills, redis_stops: Redis; measures: the time of each answer counts.
M.STORIES = {
  { "whole", "without faults" },
  { "killed", "with delays, while daemons are killed", faults = { delay = 0.2 }, kills = { calls = 300 } },
  { "closed", "with a closed ledger, while requests and replies are lost, Redis stalls, and both are killed",
    faults = { delay = 0.1, lose = 0.001, lose_reply = 0.002, stall = 0.0005 },
    kills = { calls = 500 }, redis_kills = { calls = 400 }, on_outage = "closed", timeout_ms = 200, lenient = true },
  { "local", "with the local fallback, while requests and replies are lost, Redis stalls and is killed",
    faults = { delay = 0.1, lose = 0.001, lose_reply = 0.002, stall = 0.0005 },
    redis_kills = { calls = 600 }, on_outage = "local", timeout_ms = 200, lenient = true },
  { "hangs", "with the local fallback, while Redis hangs", redis_stops = { calls = 400 }, on_outage = "local",
    timeout_ms = 50, lenient = true },
  { "split", "on two Redis instead of one", is_wrong = true },
}

local function between(story, seed)
  local proxy, other
  local function address(store, number)
    if story.is_wrong then
      other = other or redis.start()
      return number <= M.DAEMONS / 2 and store:url() or other:url()
    elseif not story.faults then
      return store:url()
    end
    proxy = proxy or proxies.start(store, M.DAEMONS, story.faults, seed)
    return proxy:url(number)
  end
  return address, function() if proxy then proxy:calms() end end
end

-- size: { sessions, groups, agents, calls }. Returns what world:check returns, and the numbers of faults.
function M.play(story, size, seed, bound)
  math.randomseed(seed)
  local address, calm = between(story, seed)
  -- What several agents of a session wrote to one connection would be taken for one message of a model.
  local fleet = fleets.start { daemons = M.DAEMONS, lanes = size.agents, policies = agents.policies(),
                               tools = agents.definitions(), on_outage = story.on_outage, timeout_ms = story.timeout_ms,
                               redis = story.redis_kills and KEEPS, between = address }
  fleet:until_all_is_merged() -- before its first connection a daemon cannot read the callIds of the others
  if story.kills then fleet:kills_daemons(story.kills) end
  if story.redis_kills then fleet:kills_redis(story.redis_kills, DOWN_MS) end
  if story.redis_stops then fleet:stops_redis(story.redis_stops, STOP_MS) end
  local world = agents.new(fleet, { lenient = story.lenient })
  fleet.measures = story.measures
  world:plays(size)
  fleet.measures = false
  calm()
  fleet:calms_redis()
  fleet:until_all_is_merged()
  world:views()
  local out = world:check(bound)
  out.problems, out.kills, out.redis_kills = fleet.problems, fleet:kills(), fleet.redis_kills or 0
  out.redis_stops, out.late_s, out.times = fleet.redis_stops or 0, fleet.latest, story.measures and fleet:distribution()
  out.lost, out.unavailable, out.by_local, out.calls = world.lost, world.unavailable, world.by_local, world.made
  return out
end

function M.stop_all()
  fleets.stop_all()
  proxies.stop_all()
end

return M
