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
