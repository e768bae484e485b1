-- The report of a replay as one self-contained page: no script, no request, light and dark. Whatever a recording holds is
-- escaped, and the page's own policy forbids everything but its style.
local view = require "report/view"

local ROWS = 200 -- of each table; --json has all

local HEAD = [[
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>toolgate replay</title>
<style>
:root{color-scheme:light dark;--line:#8884;--bar:#5b8def;--bad:#d9534f;--good:#3c9d5d;--warn:#c98a1b}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;]] .. [[
border-bottom:1px solid var(--line);overflow-wrap:anywhere}]] .. [[
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.bar{width:12rem;min-width:6rem}.b{height:.8rem;border-radius:.2rem;background:var(--bar);min-width:1px}
.refuse,.halt,.new_refusal{--bar:var(--bad)}.repair,.wait,.ask,.other_verdict{--bar:var(--warn)}]] .. [[
.pass,.new_pass{--bar:var(--good)}
.k{color:var(--bar);font-weight:600}
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}details{margin:.2rem 0}summary{cursor:pointer}
.quiet{opacity:.7;font-size:.9em}
</style></head><body>
]]

local ESCAPES = { ["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;", ['"'] = "&quot;" }

local function escape(words) return ((words or ""):gsub('[<>&"]', ESCAPES):gsub("[%z\1-\31\127]", " ")) end
local function cell(words) return "<td>" .. escape(words) .. "</td>" end
local function count(n) return ("<td class=n>%d</td>"):format(n) end

-- The share of `whole`, and a bar as long as `part` is of `longest`.
local function bar(part, whole, longest)
  local percent = longest > 0 and math.floor(part * 100 / longest) or 0
  return ('<td class=n>%s</td><td class=bar><div class=b style="width:%d%%"></div></td>'):format(view.share(part, whole),
                                                                                               percent)
end

local function examples(list)
  if #list == 0 then return "" end
  local out = { "<details><summary class=quiet>examples</summary>" }
  for _, e in ipairs(list) do
    out[#out + 1] = ("<div><span class=quiet>%s:%d %s</span> <code>%s</code> %s</div>"):format(escape(e.file), e.line,
      escape(e.session), escape(e.arguments), escape(e.detail))
  end
  return table.concat(out) .. "</details>"
end

local function summary(put, r)
  put("<h1>%d calls of %d sessions</h1>\n<table>", r.calls, r.sessions)
  for _, name in ipairs(cli.keys(r.verdicts)) do
    local n = r.verdicts[name]
    put("<tr class=%s><td class=k>%s</td>%s%s</tr>\n", name, name, count(n), bar(n, r.calls, r.calls))
  end
  put("</table>\n<p>%d calls would not have run: %d saved (repetitions that brought nothing new), %d would have lost a "
      .. "new result. The arguments of %d would have been repaired.</p>\n", r.refused, r.loops.calls_saved,
      r.lost_results, r.repaired)
end

local function difference(put, d)
  local recorded = d.recorded
  put("<tr class=%s>%s%s<td><span class=k>%s</span> <code>%s</code><br>%s → %s</td><td>%s%s</td>", d.change,
      count(d.calls), cell(d.tool), escape(d.code), escape(d.path), d.before, d.after, escape(d.reason),
      examples(d.examples))
  put("<td>%d well, %d badly, %d not, %d unknown</td><td>%d of %d</td></tr>\n", recorded.ran_well, recorded.ran_badly,
      recorded.not_run, recorded.unknown, d.recovered, d.retried)
end

local function differences(put, r)
  local against = r.against
  put("<h2>Differences: %s → %s</h2>\n<p>%d new refusals, %d calls with another verdict, %d no longer refused.</p>\n",
      escape(r.policies or "no policies"), escape(against.policies), against.new_refusals, against.other_verdicts,
      against.new_passes)
  if #against.differences == 0 then return end
  put("<table><tr><th class=n>calls<th>tool<th>code<th>reason<th>ran as recorded<th>next call passes</tr>\n")
  for i = 1, math.min(#against.differences, ROWS) do difference(put, against.differences[i]) end
  put("</table>\n")
end

local function loops(put, r)
  put("<h2>Loops</h2>\n<p>%d sessions repeated calls that could not help; %d of them ran away. %d calls would have been "
      .. "saved.</p>\n<table><tr><th class=n>saved<th class=n>calls<th class=n>share<th><th>tool<th>code<th>session</tr>\n",
      r.loops.sessions, r.loops.runaways, r.loops.calls_saved)
  for _, loop in ipairs(r.loops.list) do
    put("<tr class=halt>%s%s%s%s%s%s</tr>\n", count(loop.saved), count(loop.calls), bar(loop.saved, loop.calls, loop.calls),
        cell(loop.tool), cell(loop.code), cell(loop.session))
  end
  put("</table>\n")
end

local function rows(put, r, name, title)
  local list = r[name].rows
  if #list == 0 then return end
  put("<h2>%s</h2>\n<table><tr><th><th class=n>calls<th class=n>share<th><th class=n>refused<th>next call passes</tr>\n",
      title)
  for i = 1, math.min(#list, ROWS) do
    local row = list[i]
    put("<tr%s><td>%s %s %s %s %s</td>%s%s%s<td>", row.refused > 0 and " class=refuse" or "", escape(row.tool),
        escape(not row.tool and row.class), escape(row.code), escape(row.path), examples(row.examples), count(row.calls),
        bar(row.calls, r.calls, list[1].calls), count(row.refused))
    if row.retried > 0 then put("%d of %d", row.recovered, row.retried) end
    put("</td></tr>\n")
  end
  put("</table>\n")
  if #list > ROWS then put("<p class=quiet>and %d more, %d calls in all</p>\n", #list - ROWS, r.calls) end
end

return function(r, file)
  local function put(form, ...) file:write(form:format(...)) end
  file:write(HEAD)
  summary(put, r)
  if r.against then differences(put, r) end
  if r.loops.sessions > 0 then loops(put, r) end
  for _, row in ipairs(view.TABLES) do rows(put, r, row[1], row[2]) end
  view.each_fault(r, function(n, words, places)
    put("<p class=quiet>%d %s:", n, words)
    for _, p in ipairs(places) do put(" %s%s", escape(p.file), p.line > 0 and (":%d"):format(p.line) or "") end
    put("</p>\n")
  end)
  file:write "</body></html>\n"
end
