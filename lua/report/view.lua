-- What the views of a replay's report share. The report itself is src/replay/replay_report.c; docs/replay.md lists its names.
local view = {}

-- The tables in the order in which every view shows them.
view.TABLES = {
  { "problems", "Why calls were refused or failed" }, { "repairs", "Repairs" }, { "tools", "Tools" },
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
  if n >= 1e6 then return cli.fixed(n / 1e6, 1) .. " million" end
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

-- "4.2 %"; empty if the whole is 0.
function view.share(part, whole) return whole > 0 and cli.fixed(100 * part / whole, 1) .. " %" or "" end

-- "trajectories-tau2.ndjson", without the folder, and ":17"; line 0 is the file as a whole.
function view.place(file, line) return file:match "[^/]*$", line > 0 and (":%d"):format(line) or "" end

-- What could not be read: calls each(count, what it is, places).
function view.each_fault(report, each)
  for _, name in ipairs(cli.keys(report.skipped)) do
    local fault = report.skipped[name]
    each(fault.count, fault.text, fault.places)
  end
end

return view
