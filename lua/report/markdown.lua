-- The report of a replay as Markdown, for a merge request or a ticket: the differences first, then what the figures are.
local view = require "report/view"

local ROWS = 50 -- of each table; --json has all

local function put(form, ...) io.write(form:format(...)) end

-- Text of a recording, which may be anything: no line breaks, and nothing that Markdown or HTML reads as its own.
local function plain(words)
  return (cli.line(words or ""):gsub("[\\|`*_%[%]~#!]", "\\%0"):gsub("&", "&amp;"):gsub("<", "&lt;"))
end

local function cell(words) return " " .. plain(words) .. " |" end

local function place(file, line)
  local name, number = view.place(file, line)
  return " " .. plain(name) .. number
end

local function put_more(list)
  if #list > ROWS then put("\nAnd %d more.\n", #list - ROWS) end
end

local function put_summary(r)
  put("# Replay\n\n%s.\n\n| | calls | share |\n|---|---:|---:|\n", view.size(r))
  for _, row in ipairs(view.outcomes(r)) do put("| %s | %d | %s |\n", row[2], row[3], view.share(row[3], r.calls)) end
  if view.tokens(r) then put("\n%s.\n", view.tokens(r)) end
  put "\n## What would have been different\n\n"
  for _, finding in ipairs(view.findings(r)) do
    put("- %s\n", finding.words)
    for _, story in ipairs(finding.stories) do
      io.write("  - **", plain(story.tool), "** ", plain(story.arguments), story.words and ": " or "", plain(story.words),
               " (", place(story.file, story.line):sub(2), ")\n")
    end
  end
end

local function put_difference(d)
  local recorded = d.recorded
  io.write("| ", d.change, (" | %d |"):format(d.calls), cell(d.tool), cell(d.code), cell(d.path), " ", d.before, " → ",
           d.after, " |", cell(d.reason))
  put(" %d well, %d badly, %d not, %d unknown | %d of %d |", recorded.ran_well, recorded.ran_badly, recorded.not_run,
      recorded.unknown, d.recovered, d.retried)
  io.write(d.examples[1] and cell(d.examples[1].arguments) or " |", "\n")
end

local function put_differences(r)
  local against = r.against
  io.write("\n## Differences\n\n", plain(r.policies or "no policies"), " → ", plain(against.policies))
  put(": **%d new refusals**, %d calls with another verdict, %d no longer refused.\n", against.new_refusals,
      against.other_verdicts, against.new_passes)
  if #against.differences == 0 then return end
  io.write "\n| change | calls | tool | code | path | verdict | reason | ran as recorded | next call passes | example |\n"
  io.write "|---|---:|---|---|---|---|---|---|---|---|\n"
  for i = 1, math.min(#against.differences, ROWS) do put_difference(against.differences[i]) end
  put_more(against.differences)
end

local function put_loops(r)
  local loops = r.loops
  put("\n## Loops\n\n%d sessions repeated calls that could not help; %d of them ran away. %d calls would have been "
      .. "saved.\n\n| saved | calls | tool | code | session | from |\n|---:|---:|---|---|---|---|\n", loops.sessions,
      loops.runaways, loops.calls_saved)
  for i = 1, math.min(#loops.list, ROWS) do
    local loop = loops.list[i]
    put("| %d | %d |", loop.saved, loop.calls)
    io.write(cell(loop.tool), cell(loop.code), cell(loop.session), place(loop.file, loop.line), " |\n")
  end
end

-- Columns that a table does not have are left out.
local function put_table(r, name, title)
  local rows, refused = r[name].rows, name ~= "repairs" and name ~= "unknown_tools"
  local first = rows[1]
  if not first then return end
  local has = { tool = first.tool, class = first.class and not first.tool, code = first.code, path = first.tool and first.code }
  local head, rule = "|", "|"
  for _, column in ipairs { "tool", "class", "code", "path" } do
    if has[column] then head, rule = head .. " " .. column .. " |", rule .. "---|" end
  end
  put("\n## %s\n\n%s calls | share |%s\n%s---:|---:|%s\n", title, head, refused and " refused | next call passes |" or "",
      rule, refused and "---:|---:|" or "")
  for i = 1, math.min(#rows, ROWS) do
    local row = rows[i]
    io.write "|"
    for _, column in ipairs { "tool", "class", "code", "path" } do
      if has[column] then io.write(cell(row[column])) end
    end
    put(" %d | %s |", row.calls, view.share(row.calls, r.calls))
    if refused then put(" %d | %d of %d |", row.refused, row.recovered, row.retried) end
    io.write "\n"
  end
  put_more(rows)
end

return function(r)
  put_summary(r)
  if r.against then put_differences(r) end
  if r.loops.sessions > 0 then put_loops(r) end
  for _, row in ipairs(view.TABLES) do put_table(r, row[1], row[2]) end
  view.each_note(r, function(count, words, places)
    put("\n- %d %s", count, words)
    for _, p in ipairs(places or {}) do io.write(place(p.file, p.line)) end
  end)
  io.write "\n"
end
