-- What the views of a replay's report share. The report itself is src/replay/replay_report.c; docs/replay.md lists its names.
local ui = require "ui"

local view = {}

local STORIES = 3
local DAY_MS  = 86400000

-- The tables in the order in which every view shows them.
view.TABLES = {
  { "problems", "Why calls were stopped or failed" }, { "repairs", "Repairs" }, { "tools", "Tools" },
  { "classes", "Classes" }, { "codes", "Codes" }, { "unknown_tools", "Tools that nothing describes" },
}

-- What became of the calls: a class of the page, words and the number of each kind. What is asked about has not run either.
function view.outcomes(report)
  local passed, asked = report.verdicts.pass or 0, report.asked
  return { { "pass", "ran well", passed }, { "repair", "ran and failed", report.calls - report.refused - passed },
           { "ask", "you are asked first", asked }, { "refuse", "would not have run", report.refused - asked } }
end

-- "950", "45,000", "1.2 million"
function view.number(n)
  if n >= 999500 then return cli.fixed(n / 1e6, 1) .. " million" end
  if n >= 1e4 then n = math.floor(n / 1000 + 0.5) * 1000 end
  return (("%d"):format(n):gsub("^(%d+)(%d%d%d)$", "%1,%2"))
end

-- What the models read and wrote, as a sentence; nil: the recording does not say it.
function view.tokens(report)
  local t = report.tokens
  if t.input + t.output == 0 then return end
  local cached = t.cached > 0 and (" (%s of them from a cache)"):format(view.number(t.cached)) or ""
  return ("The models read %s tokens%s and wrote %s"):format(view.number(t.input), cached, view.number(t.output))
end

-- "48 calls in 6 sessions, over 2 days"
function view.size(r)
  local days = r.first_ms > 0 and ", over " .. ui.count(math.floor((r.last_ms - r.first_ms) / DAY_MS) + 1, "day") or ""
  return ui.count(r.calls, "call") .. " in " .. ui.count(r.sessions, "session") .. days
end

-- ---- what would have been different ----

local function has(n, one, many) return n == 1 and one or many:format(n) end

-- "12 min", of two times; nil if they were not recorded.
local function lasted(first, last)
  local s = math.floor((last - first) / 1000)
  if first == 0 or s < 1 then return end
  return s < 120 and ("%d s"):format(s) or s < 7200 and ("%d min"):format(s / 60) or ("%d h"):format(s / 3600)
end

local function story_of(loop)
  local others, time = loop.saved - loop.times, lasted(loop.first_ms, loop.last_ms)
  local cost = { time, loop.tokens > 0 and view.number(loop.tokens) .. " tokens" or nil }
  if not time then cost = { cost[2] } end
  return has(loop.times, "once for nothing", "%d times for nothing")
         .. (others > 0 and ", " .. has(others, "1 other call", "%d other calls") .. " likewise" or "")
         .. (cost[1] and ": " .. table.concat(cost, " and ") or "") .. ", in a session of " .. ui.count(loop.calls, "call")
         .. (loop.halted and "; toolgate would have told the agent to end" or "")
end

-- The first of the rows as stories, each by its first example.
local function stories_of(rows)
  local stories = {}
  for i = 1, math.min(#rows, STORIES) do
    local e = rows[i].examples[1]
    if e then
      stories[i] = { tool = rows[i].tool, arguments = e.arguments, words = e.detail or rows[i].code, file = e.file, line = e.line,
                     session = e.session }
    end
  end
  return stories
end

-- Rows of problems whose calls would not have run: those that a person is asked about, or the others.
local function rows_of(r, asked)
  local rows, calls = {}, 0
  for _, row in ipairs(r.problems.rows) do
    local asks = (row.verdicts.ask or 0) > 0
    if row.refused > 0 and (asked and asks or not asked and row.class == "invalid_arguments" and not asks) then
      rows[#rows + 1], calls = row, calls + row.refused
    end
  end
  return rows, calls
end

-- Sentences, each with up to three stories { tool, arguments, words, file, line, session }. The last one speaks against
-- toolgate: calls that it would have kept from something new.
function view.findings(r)
  local found, loops = {}, r.loops
  local function add(words, stories) found[#found + 1] = { words = words, stories = stories or {} } end
  if loops.calls_saved > 0 then
    local stories = {}
    for i = 1, math.min(#loops.list, STORIES) do
      local l = loops.list[i]
      stories[i] = { tool = l.tool, arguments = l.arguments, words = story_of(l), file = l.file, line = l.line,
                     session = l.session }
    end
    add(ui.count(loops.sessions, "session") .. " went round in circles: toolgate would have stopped "
        .. ui.count(loops.calls_saved, "call") .. " that brought nothing new", stories)
  end
  if r.failures_unmarked > 0 then
    add(has(r.failures_unmarked, "1 failure was", "%d failures were")
        .. " recorded as success: toolgate would have told the model that the call failed")
  end
  local wrong, wrong_calls = rows_of(r, false)
  if wrong_calls > 0 then
    add(has(wrong_calls, "1 call had", "%d calls had") .. " wrong arguments, and the model would have read what to change",
        stories_of(wrong))
  end
  if r.repaired > 0 then add("the arguments of " .. ui.count(r.repaired, "call") .. " would have been repaired") end
  local asked, asked_calls = rows_of(r, true)
  if asked_calls > 0 then
    add("you would have been asked about " .. has(asked_calls, "1 call before it ran", "%d calls before they ran"),
        stories_of(asked))
  end
  if #found == 0 and r.refused == 0 then add "nothing: every call would have run as it did" end
  if r.refused > 0 or r.lost_results > 0 then
    add(has(r.lost_results, "1 call would have been stopped that had brought something new", r.lost_results == 0
            and "no call would have been stopped that had brought something new"
            or "%d calls would have been stopped that had brought something new"), stories_of(r.lost.rows))
  end
  return found
end

-- "4.2 %"; empty if the whole is 0.
function view.share(part, whole) return whole > 0 and cli.fixed(100 * part / whole, 1) .. " %" or "" end

-- "trajectories-tau2.ndjson", without the folder, and ":17"; line 0 is the file as a whole.
function view.place(file, line) return file:match "[^/]*$", line > 0 and (":%d"):format(line) or "" end

-- ---- what limits the answer ----

-- The member of the report, and what is said of one call and of several.
local NOTES = {
  { "without_result", "call has no recorded result", "calls have no recorded result",
    "whether a repetition of it changed nothing, nobody can tell" },
  { "unjudged_results", "result was not recorded", "results were not recorded",
    "output schemas and result hooks were not judged for it" },
  { "without_arguments", "call was recorded without its arguments", "calls were recorded without their arguments",
    "it was not judged" },
  { "without_check", "result belongs to a call", "results belong to calls", "the recording does not have it" },
  { "masked", "call has a problem at a masked value", "calls have a problem at a masked value", "it does not count" },
  { "evicted_sessions", "session was forgotten for want of memory", "sessions were forgotten for want of memory",
    "its budgets and loops began anew" },
  { "backwards", "call is older than the one before it in its session",
    "calls are older than the one before them in their session", "name the files in the order of their times, the oldest first" },
}

local ONE = { lines = "line", records = "record", files = "file", are = "is", ["end"] = "ends" }

-- Calls each(count, words, places) with what could not be judged or read; places is nil for the former.
function view.each_note(report, each)
  for _, note in ipairs(NOTES) do
    local n = report[note[1]]
    if n > 0 then each(n, ("%s: %s"):format(n == 1 and note[2] or note[3], note[4])) end
  end
  for _, name in ipairs(cli.keys(report.skipped)) do
    local fault = report.skipped[name]
    each(fault.count, fault.count == 1 and fault.text:gsub("%a+", ONE) or fault.text, fault.places)
  end
end

return view
