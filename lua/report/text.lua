-- The report of a replay for a person at a terminal: what was found first, then the tables, then what could not be read.
local ui = require "ui"
local view = require "report/view"

local ROWS          = 20 -- of each table; --json has all
local LOOPS_MAX     = 100 -- REPLAY_LOOPS_MAX
local RUNAWAY_CALLS = 20 -- REPLAY_RUNAWAY_CALLS
local NAME_WIDTH    = 40

local function heading(words) ui.say("\n%s", ui.bold(words)) end

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
    io.write(indent, ui.dim(where(e.file, e.line, e.session, 40) .. "  " .. cli.line(e.arguments or "", 100)), "\n")
  end
end

-- ---- the first screen: what would have been different ----

local function print_summary(r)
  local seconds = r.us / 1000000
  io.write(ui.bold(view.size(r)), seconds > 0 and ui.format("  %s(%s s, %s calls/s)%s", cli.dim, cli.fixed(seconds, 1),
                                                           cli.fixed(r.calls / seconds, 0), cli.plain) or "", "\n")
  for i, row in ipairs(view.outcomes(r)) do
    if i == 1 or row[3] > 0 then ui.say("  %-20s %8d  %s", row[2], row[3], view.share(row[3], r.calls)) end
  end
  if view.tokens(r) then ui.say("  %s", view.tokens(r)) end
  heading "What would have been different"
  for _, finding in ipairs(view.findings(r)) do
    ui.say("  %s", finding.words)
    for _, story in ipairs(finding.stories) do
      ui.say("    %s  %s", ui.bold(cli.line(story.tool, NAME_WIDTH)), cli.line(story.arguments or "", 90))
      if story.words then ui.say("      %s", cli.line(story.words, 160)) end
      ui.say("      %s", ui.dim(where(story.file, story.line, story.session, 60)))
    end
  end
end

local function print_row(row, whole, has_examples)
  io.write("  ", padded(row.tool or row.class or row.code or "", NAME_WIDTH),
           (" %8d %8s"):format(row.calls, view.share(row.calls, whole)))
  if row.tool and row.code then
    io.write("  ", ui.yellow(cli.line(row.code, 40)), row.path and "  " or "", cli.line(row.path or "", 60))
  end
  if has_examples == nil then return io.write "\n" end
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
  local has_examples -- nil: not even what became of the calls, which this table does not count
  if name ~= "unknown_tools" then has_examples = refused ~= nil end
  for i = 1, math.min(#shown, ROWS) do print_row(shown[i], r.calls, has_examples) end
  if #shown >= ROWS and #rows > ROWS then ui.say("  %s", ui.dim(("and %d more; --json has them"):format(#rows - ROWS))) end
  if other then ui.say("  %s", ui.dim(("and %d calls that share no row of their own"):format(other.calls))) end
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
             ui.yellow(cli.line(loop.code, 40)), "  ", ui.dim(where(loop.file, loop.line, loop.session, 80)), "\n")
  end
  if loops.sessions > #loops.list or #loops.list > ROWS then
    ui.say("  %s", ui.dim(("and others; --json has up to %d"):format(LOOPS_MAX)))
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
    if shown > ROWS then ui.say("  %s", ui.dim(("and %d more; --json has them"):format(shown - ROWS))) end
  end
end

local function print_notes(r)
  local begun = false
  view.each_note(r, function(count, words, places)
    if not begun then heading "Notes" end
    begun = true
    ui.say("  %8d %s", count, words)
    for _, p in ipairs(places or {}) do
      io.write("           ", place(p.file, p.line), p.why and ": " or "", cli.line(p.why or "", 120), "\n")
    end
  end)
end

-- `first`: the first screen alone.
return function(r, first)
  if r.calls > 0 then print_summary(r) end
  if first then return print_notes(r) end
  if r.against then print_differences(r) end
  if r.loops.sessions > 0 then print_loops(r) end
  print_table(r, "problems", "Refused before they ran", true)
  print_table(r, "problems", "Ran and failed", false)
  print_table(r, "repairs", "Repairs")
  print_table(r, "tools", "Tools")
  print_table(r, "classes", "Classes")
  print_table(r, "codes", "Codes")
  print_table(r, "unknown_tools", "Tools that nothing describes: only the rules against loops judge them (--tools FILE)")
  print_notes(r)
end
