-- The report of a replay for a person at a terminal: what was found first, then the tables, then what could not be read.
local ui = require "ui"
local view = require "report/view"

local ROWS          = 20 -- of each table; --json has all
local LOOPS_MAX     = 100 -- REPLAY_LOOPS_MAX
local RUNAWAY_CALLS = 20 -- REPLAY_RUNAWAY_CALLS
local NAME_WIDTH    = 40

local function heading(words) ui.say("\n%s", ui.bold(words)) end

local function dim(words) return cli.dim .. words .. cli.plain end

local function padded(words, width)
  local shown = cli.line(words, width)
  local _, columns = shown:gsub("[^\128-\191]", "")
  return shown .. (" "):rep(width - columns)
end

local function place(file, line)
  local name, number = view.place(file, line)
  return cli.line(name) .. number
end

-- The place, and the session: one without a name is called by its place.
local function where(file, line, session, most)
  local at = place(file, line)
  return session == at and at or at .. "  " .. cli.line(session, most)
end

local function print_examples(examples, indent)
  for _, e in ipairs(examples) do
    io.write(indent, dim(where(e.file, e.line, e.session, 40) .. "  " .. cli.line(e.arguments or "", 100)), "\n")
  end
end

-- ---- the first screen: what would have been different ----

local STORIES = 3
local DAY_MS  = 86400000

-- "12 min", of two times; nil if they were not recorded.
local function lasted(first, last)
  local s = math.floor((last - first) / 1000)
  if first == 0 or s < 1 then return end
  return s < 120 and ("%d s"):format(s) or s < 7200 and ("%d min"):format(s / 60) or ("%d h"):format(s / 3600)
end

local function has(n, one, many) return n == 1 and one or many:format(n) end

local function print_circles(r)
  local loops = r.loops
  if loops.calls_saved == 0 then return end
  ui.say("  %s went round in circles; toolgate saves %s that brought nothing new", ui.count(loops.sessions, "session"),
         ui.count(loops.calls_saved, "call"))
  for i = 1, math.min(#loops.list, STORIES) do
    local loop = loops.list[i]
    local time = lasted(loop.first_ms, loop.last_ms)
    io.write("    ", ui.bold(cli.line(loop.tool, NAME_WIDTH)), "  ", cli.line(loop.arguments, 90), "\n      ",
             has(loop.saved, "once", "%d times"), time and " in " .. time or "",
             loop.tokens > 0 and " and " .. view.number(loop.tokens) .. " tokens" or "", " for nothing, of ",
             ui.count(loop.calls, "call"), " in its session", loop.halted and "; toolgate tells the agent to end" or "",
             "\n      ",
             dim(where(loop.file, loop.line, loop.session, 60)), "\n")
  end
end

-- Rows of problems whose calls would not have run: those that a person is asked about, or the others.
local function rows_of(r, asked)
  local rows, calls = {}, 0
  for _, row in ipairs(r.problems.rows) do
    local asks = (row.verdicts.ask or 0) > 0
    local wrong = row.class == "invalid_arguments"
    if row.refused > 0 and (asked and asks or not asked and wrong and not asks) then
      rows[#rows + 1], calls = row, calls + row.refused
    end
  end
  return rows, calls
end

local function print_rows(rows)
  for i = 1, math.min(#rows, STORIES) do
    local first = rows[i].examples[1]
    ui.say("    %s  %s", ui.bold(cli.line(rows[i].tool, NAME_WIDTH)), cli.line(first and first.arguments or "", 90))
    if first and first.detail then ui.say("      %s", cli.line(first.detail, 140)) end
    if first then ui.say("      %s", dim(where(first.file, first.line, first.session, 60))) end
  end
end

-- What speaks against toolgate: calls that it would have kept from something new.
local function print_lost(r)
  local rows, lost = r.lost.rows, r.lost_results
  if r.refused > 0 or lost > 0 then
    ui.say("  %s refused that had brought something new",
           has(lost, "1 call would have been", lost == 0 and "no call would have been" or "%d calls would have been"))
  end
  for i = 1, math.min(#rows, STORIES) do
    local first = rows[i].examples[1]
    if first then
      ui.say("    %s  %s  %s\n      %s", ui.bold(cli.line(rows[i].tool, NAME_WIDTH)), cli.line(rows[i].code or "", 40),
             cli.line(first.arguments or "", 80), dim(where(first.file, first.line, first.session, 60)))
    end
  end
end

local function print_summary(r)
  local seconds, days = r.us / 1000000, math.floor((r.last_ms - r.first_ms) / DAY_MS) + 1
  io.write(ui.bold(ui.count(r.calls, "call")), " of ", ui.count(r.sessions, "session"),
           r.first_ms > 0 and " in " .. ui.count(days, "day") or "",
           seconds > 0 and ui.format("  %s(%s s, %s calls/s)%s", cli.dim, cli.fixed(seconds, 1),
                                                                 cli.fixed(r.calls / seconds, 0), cli.plain) or "", "\n")
  for i, row in ipairs(view.outcomes(r)) do
    if i == 1 or row[3] > 0 then ui.say("  %-20s %8d  %s", row[2], row[3], view.share(row[3], r.calls)) end
  end
  if view.tokens(r) then ui.say("  %s", view.tokens(r)) end
  heading "What would have been different"
  local wrong, wrong_calls = rows_of(r, false)
  local asked, asked_calls = rows_of(r, true)
  print_circles(r)
  if r.failures_unmarked > 0 then
    ui.say("  %s recorded as success: toolgate tells the model that the call failed",
           has(r.failures_unmarked, "1 failure was", "%d failures were"))
  end
  if wrong_calls > 0 then
    ui.say("  %s wrong arguments, and the model would have read what to change",
           has(wrong_calls, "1 call had", "%d calls had"))
    print_rows(wrong)
  end
  if r.repaired > 0 then ui.say("  the arguments of %s would have been repaired", ui.count(r.repaired, "call")) end
  if asked_calls > 0 then
    ui.say("  you would have been asked about %s", has(asked_calls, "1 call before it ran", "%d calls before they ran"))
    print_rows(asked)
  end
  if r.refused == 0 and r.repaired == 0 and r.failures_unmarked == 0 then
    ui.say "  nothing: every call would have run as it did"
  end
  print_lost(r)
end

local function print_row(row, whole, has_examples)
  io.write("  ", padded(row.tool or row.class or row.code or "", NAME_WIDTH),
           (" %8d %8s"):format(row.calls, view.share(row.calls, whole)))
  if row.tool and row.code then
    io.write("  ", ui.yellow(cli.line(row.code, 40)), row.path and "  " or "", cli.line(row.path or "", 60))
  end
  if row.refused > 0 then io.write(("  %d refused"):format(row.refused)) end
  io.write((row.retried > 0 or row.refused > 0) and ", " or "")
  if row.retried > 0 then
    io.write(("%d of %d retries pass"):format(row.recovered, row.retried))
  elseif row.refused > 0 then
    io.write "never retried"
  end
  io.write "\n"
  if not has_examples then return end
  local first = row.examples[1]
  if first and first.detail then ui.say("      %s", cli.line(first.detail, 160)) end
  print_examples(row.examples, "      ")
end

-- `refused` true: rows of calls that did not run; false: of those that did; nil: all, without examples.
local function print_table(r, name, title, refused)
  local rows, other, shown = r[name].rows, r[name].other, {}
  for _, row in ipairs(rows) do
    if row.calls > 0 and (refused == nil or (row.refused > 0) == refused) then shown[#shown + 1] = row end
  end
  if #shown == 0 then return end
  heading(title)
  for i = 1, math.min(#shown, ROWS) do print_row(shown[i], r.calls, refused ~= nil) end
  if #shown >= ROWS and #rows > ROWS then ui.say("  %s", dim(("and %d more; --json has them"):format(#rows - ROWS))) end
  if other then ui.say("  %s", dim(("and %d calls that share no row of their own"):format(other.calls))) end
end

local function print_loops(r)
  local loops = r.loops
  heading "Loops"
  ui.say("  %s repeated calls that could not help: %s saved", ui.count(loops.sessions, "session"),
         ui.count(loops.calls_saved, "call"))
  if loops.runaways > 0 then ui.say("  %d ran away: %d calls or more", loops.runaways, RUNAWAY_CALLS) end
  for i = 1, math.min(#loops.list, ROWS) do
    local loop = loops.list[i]
    io.write(("  %6d of %d calls  "):format(loop.saved, loop.calls), cli.line(loop.tool, NAME_WIDTH), " ",
             ui.yellow(cli.line(loop.code, 40)), "  ", dim(where(loop.file, loop.line, loop.session, 80)), "\n")
  end
  if loops.sessions > #loops.list or #loops.list > ROWS then
    ui.say("  %s", dim(("and others; --json has up to %d"):format(LOOPS_MAX)))
  end
end

-- What a change is called, what has its count in the report, and its colour.
local CHANGES = { { "new_refusal", "New refusals", "new_refusals", cli.red },
                  { "other_verdict", "Another verdict", "other_verdicts", cli.yellow },
                  { "new_pass", "No longer refused", "new_passes", cli.green } }

local function print_difference(d, colour)
  local recorded = d.recorded
  io.write("  ", colour, ("%6d"):format(d.calls), cli.plain, "  ", cli.line(d.tool, NAME_WIDTH), "  ", colour,
           cli.line(d.code, 40), cli.plain, "  ", cli.line(d.path or "", 60), "  ", d.before, " → ", d.after,
           "\n          ", cli.line(d.reason or "", 200),
           ("\n          recorded: %d ran well, %d failed, %d did not run, %d unknown"):format(recorded.ran_well,
             recorded.ran_badly, recorded.not_run, recorded.unknown))
  if d.change ~= "new_pass" then
    io.write(("; called again %d times, of which %d pass"):format(d.retried, d.recovered))
  end
  io.write "\n"
  print_examples(d.examples, "          ")
end

local function print_differences(r)
  local against, at = r.against, 1
  heading "Differences"
  ui.say("  %s → %s: %s, %d with another verdict, %d no longer refused", r.policies or "no policies", against.policies,
         ui.count(against.new_refusals, "new refusal"), against.other_verdicts, against.new_passes)
  for _, change in ipairs(CHANGES) do
    local shown = 0
    if against[change[3]] > 0 then heading(change[2]) end
    while against.differences[at] and against.differences[at].change == change[1] do
      shown = shown + 1
      if shown <= ROWS then print_difference(against.differences[at], change[4]) end
      at = at + 1
    end
    if shown > ROWS then ui.say("  %s", dim(("and %d more; --json has them"):format(shown - ROWS))) end
  end
end

local NOTES = {
  { "without_result", "calls have no recorded result: for repetitions of them nobody can tell whether it changed" },
  { "unjudged_results", "results were not recorded: output schemas and result hooks were not judged for them" },
  { "without_arguments", "calls were recorded without their arguments and not judged; record them with "
                         .. 'decisions = { arguments = "masked" }' },
  { "without_check", "results belong to calls that the recording does not have" },
  { "masked", "calls have a problem at a masked value, which does not count" },
  { "evicted_sessions", "sessions were forgotten for want of memory: their budgets and loops began anew" },
  { "backwards", "calls are older than the one before them in their session: name the files in the order of "
                 .. "their times, the oldest first" },
}

local function print_notes(r)
  local begun = false
  local function note(count, words)
    if not begun then heading "Notes" end
    begun = true
    ui.say("  %8d %s", count, words)
  end
  for _, row in ipairs(NOTES) do
    if r[row[1]] > 0 then note(r[row[1]], row[2]) end
  end
  view.each_fault(r, function(count, words, places)
    note(count, words)
    for _, p in ipairs(places) do
      io.write("           ", place(p.file, p.line), p.why and ": " or "", cli.line(p.why or "", 120), "\n")
    end
  end)
end

return function(r)
  if r.calls > 0 then print_summary(r) end
  if r.against then print_differences(r) end
  if r.loops.sessions > 0 then print_loops(r) end
  print_table(r, "problems", "Refused before they ran", true)
  print_table(r, "problems", "Ran and failed", false)
  print_table(r, "repairs", "Repairs")
  print_table(r, "tools", "Tools")
  print_table(r, "classes", "Classes")
  print_table(r, "codes", "Codes")
  print_table(r, "unknown_tools",
              "Tools that nothing describes: only the rules against loops judge them (--tools FILE)")
  print_notes(r)
end
