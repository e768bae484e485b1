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
*{box-sizing:border-box}
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
.t{display:flex;height:.9rem;border-radius:.2rem;overflow:hidden;background:var(--line);max-width:100%}
.t i{min-width:2px}.w{background:var(--good)}.f{background:var(--warn)}.r{background:var(--bad)}.a{background:var(--bar)}
.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin:0 .3rem 0 .8rem}
.s{margin:.6rem 0}.story{margin:.8rem 0;border-left:3px solid var(--bad);padding-left:.7rem}
@media(max-width:40rem){table,tbody,tr{display:block}th{display:none}td{display:inline-block;border:0;padding:.1rem .3rem}]] .. [[
tr{border-bottom:1px solid var(--line);padding:.3rem 0}td.bar{display:block}td[data-h]:before{content:attr(data-h) " "}}
</style></head><body>
]]

local ESCAPES = { ["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;", ['"'] = "&quot;" }

local function escape(words) return ((words or ""):gsub('[<>&"]', ESCAPES):gsub("[%z\1-\31\127]", " ")) end
local function cell(words) return "<td>" .. escape(words) .. "</td>" end
local function count(n, head) return ("<td class=n%s>%d</td>"):format(head and " data-h=" .. head or "", n) end

-- The share of `whole`, and a bar as long as `part` is of `longest`.
local function bar(part, whole, longest)
  local percent = longest > 0 and math.floor(part * 100 / longest) or 0
  return ('<td class=n>%s</td><td class=bar><div class=b style="width:%d%%"></div></td>'):format(view.share(part, whole), percent)
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
  put("<h1>%s</h1>\n<p>toolgate stands between an assistant and its tools. This is what it would have done with these calls; "
      .. "none was run again.</p>\n<table>", view.size(r))
  for _, row in ipairs(view.outcomes(r)) do
    put("<tr class=%s><td class=k>%s</td>%s%s</tr>\n", row[1], row[2], count(row[3]), bar(row[3], r.calls, r.calls))
  end
  put "</table>\n"
  if view.tokens(r) then put("<p>%s.</p>\n", view.tokens(r)) end
  put "<h2>What would have been different</h2>\n"
  for _, finding in ipairs(view.findings(r)) do
    put("<p>%s</p>\n", finding.words:gsub("^%l", string.upper))
    for _, story in ipairs(finding.stories) do
      put("<div class=story><strong>%s</strong> <code>%s</code><br>%s<br><span class=quiet>%s:%d %s</span></div>\n",
          escape(story.tool), escape(story.arguments), escape(story.words), escape(story.file:match "[^/]*$"), story.line,
          escape(story.session))
    end
  end
end

local MARKS = { w = "ran well", f = "failed", r = "would not have run", a = "asked about first" }

local function runs(marks)
  local out, at = {}, 1
  while at <= #marks do
    local mark = marks:sub(at, at)
    local last = at
    while marks:sub(last + 1, last + 1) == mark do last = last + 1 end
    out[#out + 1] = ('<i class=%s style="flex:%d" title="%d %s"></i>'):format(mark, last - at + 1, last - at + 1, MARKS[mark])
    at = last + 1
  end
  return table.concat(out)
end

-- A bar for each session, its calls from left to right; those with refused calls first.
local function timelines(put, r)
  if #r.timelines == 0 then return end
  put "<h2>Sessions</h2>\n<p class=\"quiet key\">Each bar is a session, its calls from left to right:"
  for _, mark in ipairs { "w", "f", "r", "a" } do put("<i class=%s></i>%s", mark, MARKS[mark]) end
  put "</p>\n"
  local bad, good = {}, {}
  for _, t in ipairs(r.timelines) do
    local list = t.marks:find "[ra]" and bad or good
    if t.calls > 0 then list[#list + 1] = t end
  end
  for _, list in ipairs { bad, good } do
    for _, t in ipairs(list) do
      put('<div class=s><span class=quiet>%s%s · %d call%s%s%s%s</span><div class=t>%s</div></div>\n', escape(t.session),
          t.agent ~= "" and " › " .. escape(t.agent) or "", t.calls, t.calls == 1 and "" or "s",
          t.calls > #t.marks and (", the first %d shown"):format(#t.marks) or "",
          t.tokens > 0 and " · " .. view.number(t.tokens) .. " tokens" or "",
          t.first_ms > 0 and os.date(" · %Y-%m-%d %H:%M", math.floor(t.first_ms / 1000)) or "", runs(t.marks))
    end
  end
  if r.sessions > #r.timelines then put("<p class=quiet>the first %d sessions of %d</p>\n", #r.timelines, r.sessions) end
end

local function difference(put, d)
  local recorded = d.recorded
  put("<tr class=%s>%s%s<td><span class=k>%s</span> <code>%s</code><br>%s → %s</td><td>%s%s</td>", d.change,
      count(d.calls, "calls"), cell(d.tool), escape(d.code), escape(d.path), d.before, d.after, escape(d.reason),
      examples(d.examples))
  put("<td data-h=\"ran as recorded\">%d well, %d badly, %d not, %d unknown</td>", recorded.ran_well, recorded.ran_badly,
      recorded.not_run, recorded.unknown)
  put("<td data-h=\"next call passes\">%d of %d</td></tr>\n", d.recovered, d.retried)
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
  put("<h2>Loops</h2>\n<table><tr><th class=n>stopped<th class=n>of<th class=n>share<th><th>tool<th>code<th>session</tr>\n")
  for _, loop in ipairs(r.loops.list) do
    put("<tr class=halt>%s%s%s%s%s%s</tr>\n", count(loop.saved, "stopped"), count(loop.calls, "of"),
        bar(loop.saved, loop.calls, loop.calls),
        "<td>" .. escape(loop.tool) .. " <code>" .. escape(loop.arguments) .. "</code></td>", cell(loop.code),
        cell(loop.session))
  end
  put("</table>\n")
end

local function rows(put, r, name, title)
  local list = r[name].rows
  if #list == 0 then return end
  put("<h2>%s</h2>\n<table><tr><th><th class=n>calls<th class=n>share<th><th class=n>stopped<th>next call passes</tr>\n", title)
  for i = 1, math.min(#list, ROWS) do
    local row = list[i]
    put("<tr%s><td>%s %s %s %s %s</td>%s%s%s", row.refused > 0 and " class=refuse" or "", escape(row.tool),
        escape(not row.tool and row.class), escape(row.code), escape(row.path), examples(row.examples), count(row.calls, "calls"),
        bar(row.calls, r.calls, list[1].calls), count(row.refused, "stopped"))
    put(row.retried > 0 and "<td data-h=\"next call passes\">%d of %d</td></tr>\n" or "<td></td></tr>\n", row.recovered,
        row.retried)
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
  timelines(put, r)
  for _, row in ipairs(view.TABLES) do rows(put, r, row[1], row[2]) end
  view.each_note(r, function(n, words, places)
    put("<p class=quiet>%d %s", n, escape(words))
    for _, p in ipairs(places or {}) do put(" %s%s", escape(p.file), p.line > 0 and (":%d"):format(p.line) or "") end
    put "</p>\n"
  end)
  file:write "</body></html>\n"
end
