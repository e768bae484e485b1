-- make soak: a fleet of daemons on one Redis for minutes, while daemons or Redis are killed or stopped, or the network
-- between them is bad. Every answer must be that of one ledger (tests/support/linearizability.lua); `make test` plays the
-- same for a moment.
--
-- CALLS=24000 per story, of AGENTS=64; KILL_MS=200: interval of killing a daemon; REDIS_MS=1000: interval of killing or
-- stopping Redis; TIMEOUT_MS=50: the ledger's timeout, if Redis is stopped; ROUNDS=5: of the stories with a bad network,
-- 200 sessions each; SEED=1; ONLY=whole,daemons,closed,local,stopped_closed,stopped_local,linear. Ends with
-- `N passed, N failed`.
package.path = "tests/support/?.lua;" .. package.path
local daemon = require "daemon"
local linearizability = require "linearizability"
local redis = require "redis"

local function number(name, otherwise)
  local text = os.getenv(name)
  return text and text ~= "" and assert(tonumber(text), name .. " is not a number") or otherwise
end

local CALLS, AGENTS, SEED, ROUNDS = number("CALLS", 24000), number("AGENTS", 64), number("SEED", 1), number("ROUNDS", 5)
local KILL_MS, REDIS_MS, TIMEOUT_MS = number("KILL_MS", 200), number("REDIS_MS", 1000), number("TIMEOUT_MS", 50)
local LATE_MS = 20         -- how much later than its timeout a verdict may come
local BOUND = 20000        -- of a search; what an outage leaves open can take many more
local UNDECIDED_MAX = 0.02 -- of the sessions

local OF_SESSION, CALLS_EACH = 4, 6 -- agents, and calls of each
local SIZE = { sessions = math.ceil(CALLS / OF_SESSION / CALLS_EACH), groups = math.ceil(AGENTS / OF_SESSION),
               agents = OF_SESSION, calls = CALLS_EACH }
local ROUND = { sessions = 200, groups = 16, agents = OF_SESSION, calls = CALLS_EACH }
local STORM = { sessions = 40, groups = 2, agents = 8, calls = 3 } -- many agents on one session

local STORIES = {
  { "whole", "without faults" },
  { "daemons", ("a daemon is killed every %d ms"):format(KILL_MS), kills = { ms = KILL_MS } },
  { "closed", ("Redis is killed every %d ms, closed"):format(REDIS_MS), redis_kills = { ms = REDIS_MS },
    on_outage = "closed", lenient = true },
  { "local", ("Redis is killed every %d ms, with the local fallback"):format(REDIS_MS), redis_kills = { ms = REDIS_MS },
    on_outage = "local", lenient = true },
  { "stopped_closed", ("Redis is stopped every %d ms, closed"):format(REDIS_MS), redis_stops = { ms = REDIS_MS },
    on_outage = "closed", lenient = true, timeout_ms = TIMEOUT_MS, measures = true },
  { "stopped_local", ("Redis is stopped every %d ms, with the local fallback"):format(REDIS_MS),
    redis_stops = { ms = REDIS_MS }, on_outage = "local", lenient = true, timeout_ms = TIMEOUT_MS, measures = true },
}

io.stdout:setvbuf "line"
local passed, failed = 0, 0

local function tally(good, text, ...)
  if good then passed = passed + 1 else failed = failed + 1 end
  print(("  %s - " .. text):format(good and "ok" or "not ok", ...))
end

-- No verdict may come later than the timeout and LATE_MS; delays of this program's own loop are subtracted.
local function judge_times(seen)
  local d, late = seen.times, seen.late_s * 1000
  print(("  verdicts after, in ms: p50 %.1f, p99 %.1f, p99.9 %.1f, worst %.1f of %d; this program's delay up to %.1f"):format(
    d.p50, d.p99, d.p999, d.worst, d.count, late))
  tally(d.worst <= TIMEOUT_MS + LATE_MS + late, "no verdict later than %d ms plus this program's delay",
        TIMEOUT_MS + LATE_MS)
end

local function judge(story, size, seen)
  print(("  %d sessions, %d calls: %d explained, %d by their totals, %d requests tried for %d; %d lost, %d unavailable, "
         .. "%d counted locally"):format(size.sessions, seen.calls, seen.explained, seen.totals, seen.tried, seen.requests,
         seen.lost, seen.unavailable, seen.by_local))
  tally(#seen.problems == 0 and #seen.wrong == 0, "every session is explained by some order of its requests")
  tally(#seen.undecided <= size.sessions * UNDECIDED_MAX, "%d searches did not end", #seen.undecided)
  for _, list in ipairs { seen.problems, seen.wrong, seen.undecided } do
    if list[1] then print("    " .. list[1]) end
  end
  for _, fault in ipairs { "kills", "redis_kills", "redis_stops" } do
    if story[fault] then tally(seen[fault] > 0, "%d %s", seen[fault], fault) end
  end
  if not story.kills and not story.faults then tally(seen.lost == 0, "every call was answered") end
  if story.measures then judge_times(seen) end
end

local function play(title, story, size, seed)
  print(("%s: %s"):format(title, story[2]))
  local ok, why = xpcall(function() judge(story, size, linearizability.play(story, size, seed, BOUND)) end, debug.traceback)
  if not ok then tally(false, "%s", why) end
  for _, stop in ipairs { linearizability.stop_all, daemon.stop_all, redis.stop_all } do
    local clean, trouble = pcall(stop)
    if not clean then tally(false, "%s", trouble) end
  end
end

local function chosen(name)
  local only = os.getenv "ONLY"
  return not only or only == "" or ("," .. only .. ","):find("," .. name .. ",", 1, true)
end

for _, story in ipairs(STORIES) do
  if chosen(story[1]) then play(story[1], story, SIZE, SEED) end
end
for round = 1, chosen "linear" and ROUNDS or 0 do
  for _, story in ipairs(linearizability.STORIES) do
    if not story.is_wrong then play(("bad network %d"):format(round), story, ROUND, SEED + round) end
    if story[1] == "killed" then play(("a storm %d"):format(round), story, STORM, SEED + round) end
  end
end

print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
