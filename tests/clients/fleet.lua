-- make soak: a fleet of daemons on one Redis for minutes, while its members are killed or stopped. What must be true of
-- every answer stands in tests/support/fleet_agents.lua; `make test` does the same for a moment.
--
-- CALLS=200000 of each story; AGENTS=64; DAEMONS=4; KILL_MS=200: how often a daemon is killed; REDIS_MS=1000: how often
-- Redis is, or is stopped; TIMEOUT_MS=50: the ledger's, where Redis is stopped; SEED=1;
-- ONLY=whole,daemons,closed,local,stopped_closed,stopped_local. Ends with `N passed, N failed`.
package.path = "tests/support/?.lua;" .. package.path
local agents = require "fleet_agents"
local daemon = require "daemon"
local fleets = require "fleet"
local process = require "process"
local redis = require "redis"

local function number(name, otherwise)
  local text = os.getenv(name)
  return text and text ~= "" and assert(tonumber(text), name .. " is not a number") or otherwise
end

local CALLS, AGENTS, DAEMONS = number("CALLS", 200000), number("AGENTS", 64), number("DAEMONS", 4)
local KILL_MS, REDIS_MS, TIMEOUT_MS = number("KILL_MS", 200), number("REDIS_MS", 1000), number("TIMEOUT_MS", 50)
local LATE_MS = 20 -- how much later than its timeout a verdict may come
local DOWN_MS, STOP_MS = 100, 400
local THINK_MS = 20 -- of an agent between two calls where Redis is killed: as said in fleet_agents.lua of outages
-- A file that grows unbounded takes seconds to be read again.
local KEEPS = { "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb" }
local passed, failed = 0, 0

local function tally(good, text, ...)
  if good then passed = passed + 1 else failed = failed + 1 end
  print(("  %s - " .. text):format(good and "ok" or "not ok", ...))
end

local function load_now()
  return process.read("/proc/loadavg"):match "^%S+"
end

local function befell(count, what)
  tally(count > 0, "%d times %s", count, what)
end

local function exactly(seen)
  tally(seen.exact == seen.sessions and seen.counted == seen.passed,
        "Redis counted exactly the %d calls that passed, in each of %d sessions (%d, in %d)", seen.passed, seen.sessions,
        seen.counted, seen.exact)
end

local function all_answered(seen)
  tally(seen.lost == 0, "every call was answered")
end

-- Later than its timeout and LATE_MS no verdict may come; but what the loop that measures was late itself is not the
-- daemon's.
local function in_time(fleet)
  local d, late = fleet:distribution(), fleet.latest * 1000
  print(("  verdicts after, in ms: p50 %.1f, p99 %.1f, p99.9 %.1f, worst %.1f of %d; this program late by up to %.1f"):format(
    d.p50, d.p99, d.p999, d.worst, d.count, late))
  tally(d.worst <= TIMEOUT_MS + LATE_MS + late, "no verdict later than %d ms and what this program was late",
        TIMEOUT_MS + LATE_MS)
end

local STORIES = {
  { "whole", "nothing befalls the fleet", {},
    judge = function(_, seen)
      all_answered(seen)
      exactly(seen)
    end },
  { "daemons", ("a daemon is killed every %d ms"):format(KILL_MS), {},
    befalls = function(fleet) fleet:kills_daemons { ms = KILL_MS } end,
    judge = function(fleet, seen)
      befell(fleet:kills(), "a daemon was killed")
      print(("  %d calls were lost with them"):format(seen.lost))
      tally(seen.counted >= seen.passed and seen.counted <= seen.passed + seen.lost,
            "of the lost ones each is counted once or not at all: %d passed, %d are counted", seen.passed, seen.counted)
    end },
  { "closed", ("Redis is killed every %d ms, closed"):format(REDIS_MS), { on_outage = "closed", redis = KEEPS },
    thinks_ms = THINK_MS,
    befalls = function(fleet) fleet:kills_redis({ ms = REDIS_MS }, DOWN_MS) end,
    judge = function(fleet, seen)
      befell(fleet.redis_kills, "it was killed")
      print(("  %d calls found the ledger away"):format(seen.unavailable))
      all_answered(seen)
      exactly(seen)
    end },
  { "local", ("Redis is killed every %d ms, local engines stand in"):format(REDIS_MS), { on_outage = "local", redis = KEEPS },
    stand_ins = DAEMONS, thinks_ms = THINK_MS,
    befalls = function(fleet) fleet:kills_redis({ ms = REDIS_MS }, DOWN_MS) end,
    judge = function(fleet, seen)
      befell(fleet.redis_kills, "it was killed")
      all_answered(seen)
      exactly(seen)
    end },
  { "stopped_closed", ("Redis is stopped every %d ms for %d, closed"):format(REDIS_MS, STOP_MS),
    { on_outage = "closed", timeout_ms = TIMEOUT_MS }, measures = true,
    befalls = function(fleet) fleet:stops_redis({ ms = REDIS_MS }, STOP_MS) end,
    judge = function(fleet, seen)
      befell(fleet.redis_stops, "it was stopped")
      print(("  %d calls found the ledger away"):format(seen.unavailable))
      in_time(fleet)
      exactly(seen)
    end },
  { "stopped_local", ("Redis is stopped every %d ms for %d, local engines stand in"):format(REDIS_MS, STOP_MS),
    { on_outage = "local", timeout_ms = TIMEOUT_MS }, measures = true, stand_ins = DAEMONS,
    befalls = function(fleet) fleet:stops_redis({ ms = REDIS_MS }, STOP_MS) end,
    judge = function(fleet, seen)
      befell(fleet.redis_stops, "it was stopped")
      in_time(fleet)
      exactly(seen)
    end },
}

local function live(story)
  local given = story[3]
  given.daemons, given.policies = DAEMONS, agents.policies
  local fleet = fleets.start(given)
  if story.befalls then story.befalls(fleet) end
  fleet.measures, fleet.thinks_ms = story.measures, story.thinks_ms
  local began = process.now()
  local seen, sessions = agents.live(fleet, AGENTS, CALLS, story.stand_ins)
  local took = process.now() - began
  fleet.measures = false
  fleet:calms_redis()
  fleet:until_all_is_told()
  seen.sessions = #sessions
  seen.exact, seen.counted = agents.compare(fleet, sessions)
  print(("  %d calls of %d agents in %.1f s (%.0f/s, load %s): %d passed, %d refused"):format(
    seen.calls, AGENTS, took, seen.calls / took, load_now(), seen.passed, seen.refused))
  tally(#fleet.problems == 0, "every answer is one that must be given")
  for _, problem in ipairs(fleet.problems) do print("    " .. problem:sub(1, 600)) end
  story.judge(fleet, seen)
end

local function chosen(name)
  local only = os.getenv "ONLY"
  return not only or only == "" or ("," .. only .. ","):find("," .. name .. ",", 1, true)
end

math.randomseed(number("SEED", 1))
for _, story in ipairs(STORIES) do
  if chosen(story[1]) then
    print(("%s: %s"):format(story[1], story[2]))
    local ok, why = xpcall(live, debug.traceback, story)
    if not ok then tally(false, "%s", why) end
    for _, stop in ipairs { fleets.stop_all, daemon.stop_all, redis.stop_all } do
      local clean, trouble = pcall(stop)
      if not clean then tally(false, "%s", trouble) end
    end
  end
end

print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
