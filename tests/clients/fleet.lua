-- make soak: a fleet of daemons on one Redis for minutes, while daemons or Redis are killed or stopped. The assertions
-- on every answer are in tests/support/fleet_agents.lua; `make test` runs the same for a moment.
--
-- CALLS=200000 per story; AGENTS=64; DAEMONS=4; KILL_MS=200: interval of killing a daemon; REDIS_MS=1000: interval of
-- killing or stopping Redis; TIMEOUT_MS=50: the ledger's timeout, if Redis is stopped; SEED=1;
-- ONLY=whole,daemons,closed,local,stopped_closed,stopped_local,linear; ROUNDS=5: of the linearizability check's stories
-- (tests/support/linearizability.lua), 200 sessions each. Ends with `N passed, N failed`.
package.path = "tests/support/?.lua;" .. package.path
local agents = require "fleet_agents"
local daemon = require "daemon"
local fleets = require "fleet"
local linearizability = require "linearizability"
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
local THINK_MS = 20 -- pause between two calls if Redis is killed; see AWAY_PAUSE_MS in fleet_agents.lua
-- Without rewrites the append-only file grows, and Redis takes seconds to load it.
local KEEPS = { "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "4mb" }
local passed, failed = 0, 0

local function tally(good, text, ...)
  if good then passed = passed + 1 else failed = failed + 1 end
  print(("  %s - " .. text):format(good and "ok" or "not ok", ...))
end

local function load_now()
  return process.read("/proc/loadavg"):match "^%S+"
end

local function happened(count, what)
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

-- No verdict may come later than the timeout and LATE_MS; delays of this program's own loop are subtracted.
local function in_time(fleet)
  local d, late = fleet:distribution(), fleet.latest * 1000
  print(("  verdicts after, in ms: p50 %.1f, p99 %.1f, p99.9 %.1f, worst %.1f of %d; this program's delay up to %.1f"):format(
    d.p50, d.p99, d.p999, d.worst, d.count, late))
  tally(d.worst <= TIMEOUT_MS + LATE_MS + late, "no verdict later than %d ms plus this program's delay",
        TIMEOUT_MS + LATE_MS)
end

local STORIES = {
  { "whole", "without faults", {},
    judge = function(_, seen)
      all_answered(seen)
      exactly(seen)
    end },
  { "daemons", ("a daemon is killed every %d ms"):format(KILL_MS), {},
    faults = function(fleet) fleet:kills_daemons { ms = KILL_MS } end,
    judge = function(fleet, seen)
      happened(fleet:kills(), "a daemon was killed")
      print(("  %d calls were lost"):format(seen.lost))
      tally(seen.counted >= seen.passed and seen.counted <= seen.passed + seen.lost,
            "each lost call is counted at most once: %d passed, %d are counted", seen.passed, seen.counted)
    end },
  { "closed", ("Redis is killed every %d ms, closed"):format(REDIS_MS), { on_outage = "closed", redis = KEEPS },
    thinks_ms = THINK_MS,
    faults = function(fleet) fleet:kills_redis({ ms = REDIS_MS }, DOWN_MS) end,
    judge = function(fleet, seen)
      happened(fleet.redis_kills, "it was killed")
      print(("  %d calls found the ledger unavailable"):format(seen.unavailable))
      all_answered(seen)
      exactly(seen)
    end },
  { "local", ("Redis is killed every %d ms, with the local fallback"):format(REDIS_MS), { on_outage = "local", redis = KEEPS },
    stand_ins = DAEMONS, thinks_ms = THINK_MS,
    faults = function(fleet) fleet:kills_redis({ ms = REDIS_MS }, DOWN_MS) end,
    judge = function(fleet, seen)
      happened(fleet.redis_kills, "it was killed")
      all_answered(seen)
      exactly(seen)
    end },
  { "stopped_closed", ("Redis is stopped every %d ms for %d, closed"):format(REDIS_MS, STOP_MS),
    { on_outage = "closed", timeout_ms = TIMEOUT_MS }, measures = true,
    faults = function(fleet) fleet:stops_redis({ ms = REDIS_MS }, STOP_MS) end,
    judge = function(fleet, seen)
      happened(fleet.redis_stops, "it was stopped")
      print(("  %d calls found the ledger unavailable"):format(seen.unavailable))
      in_time(fleet)
      exactly(seen)
    end },
  { "stopped_local", ("Redis is stopped every %d ms for %d, with the local fallback"):format(REDIS_MS, STOP_MS),
    { on_outage = "local", timeout_ms = TIMEOUT_MS }, measures = true, stand_ins = DAEMONS,
    faults = function(fleet) fleet:stops_redis({ ms = REDIS_MS }, STOP_MS) end,
    judge = function(fleet, seen)
      happened(fleet.redis_stops, "it was stopped")
      in_time(fleet)
      exactly(seen)
    end },
}

local function live(story)
  local given = story[3]
  given.daemons, given.policies = DAEMONS, agents.policies
  local fleet = fleets.start(given)
  if story.faults then story.faults(fleet) end
  fleet.measures, fleet.thinks_ms = story.measures, story.thinks_ms
  local began = process.now()
  local seen, sessions = agents.live(fleet, AGENTS, CALLS, story.stand_ins)
  local took = process.now() - began
  fleet.measures = false
  fleet:calms_redis()
  fleet:until_all_is_merged()
  seen.sessions = #sessions
  seen.exact, seen.counted = agents.compare(fleet, sessions)
  print(("  %d calls of %d agents in %.1f s (%.0f/s, load %s): %d passed, %d refused"):format(
    seen.calls, AGENTS, took, seen.calls / took, load_now(), seen.passed, seen.refused))
  tally(#fleet.problems == 0, "every answer is right")
  for _, problem in ipairs(fleet.problems) do print("    " .. problem:sub(1, 600)) end
  story.judge(fleet, seen)
end

local function chosen(name)
  local only = os.getenv "ONLY"
  return not only or only == "" or ("," .. only .. ","):find("," .. name .. ",", 1, true)
end

-- ---- linearizability ----

local LINEAR = { sessions = 200, groups = 16, agents = 4, calls = 6 }
local STORM = { sessions = 40, groups = 2, agents = 8, calls = 3 } -- many agents on one session
local LINEAR_BOUND = 20000 -- of a search; what an outage leaves open can take many more
local UNDECIDED_MAX = 0.02   -- of the sessions

local function check_linearizability(story, size, round)
  local seen = linearizability.play(story, size, number("SEED", 1) + round, LINEAR_BOUND)
  print(("  %d sessions, %d calls: %d explained, %d by their totals, %d requests tried for %d; killed: %d daemons, %d times Redis"
        .. "; %d lost, %d unavailable, %d counted locally"):format(size.sessions, seen.calls, seen.explained, seen.totals,
        seen.tried, seen.requests, seen.kills, seen.redis_kills, seen.lost, seen.unavailable, seen.by_local))
  tally(#seen.problems == 0 and #seen.wrong == 0, "every session is explained by some order of its requests")
  tally(#seen.undecided <= size.sessions * UNDECIDED_MAX, "%d searches did not end", #seen.undecided)
  for _, list in ipairs { seen.problems, seen.wrong, seen.undecided } do
    if list[1] then print("    " .. list[1]) end
  end
end

local function clean_up()
  for _, stop in ipairs { linearizability.stop_all, fleets.stop_all, daemon.stop_all, redis.stop_all } do
    local clean, trouble = pcall(stop)
    if not clean then tally(false, "%s", trouble) end
  end
end

local function live_linear()
  for round = 1, number("ROUNDS", 5) do
    for _, story in ipairs(linearizability.STORIES) do
      for what, size in pairs { ["groups of four"] = LINEAR, ["a storm"] = story[1] == "killed" and STORM or nil } do
        if not story.is_wrong then
          print(("linearizability %d, %s: %s"):format(round, what, story[2]))
          local ok, why = xpcall(check_linearizability, debug.traceback, story, size, round)
          if not ok then tally(false, "%s", why) end
          clean_up()
        end
      end
    end
  end
end

math.randomseed(number("SEED", 1))
for _, story in ipairs(STORIES) do
  if chosen(story[1]) then
    print(("%s: %s"):format(story[1], story[2]))
    local ok, why = xpcall(live, debug.traceback, story)
    if not ok then tally(false, "%s", why) end
    clean_up()
  end
end
if chosen "linear" then live_linear() end

print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
