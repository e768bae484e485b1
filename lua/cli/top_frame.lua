-- One frame of `toolgate top` as text: lines that fit the terminal, the most important first: a summary, what needs attention,
-- the tools, the sessions in a loop. What clients, models and upstreams sent passes cli.clip.
local ui = require "ui"
local number = require "top_figures".number

local ATTENTION_LINES, SESSION_LINES, TOOL_LINES_LEAST = 4, 6, 3
local TITLE_COLUMNS, NAME_COLUMNS_LEAST, NAME_COLUMNS_MOST = 10, 12, 36

-- ---- one line ----
local Frame = {}
Frame.__index = Frame

function Frame:add(bytes) self.out[#self.out + 1] = bytes end

function Frame:put(text, ...)
  local shown, used = cli.clip(select("#", ...) > 0 and text:format(...) or text or "", self.left)
  self:add(shown)
  self.left = self.left - used
end

function Frame:put_in(colour, text, ...)
  self:add(colour)
  self:put(text, ...)
  self:add(cli.plain)
end

function Frame:put_padded(text, columns)
  columns = math.min(columns, self.left)
  self:add(ui.clip(text or "", columns, true))
  self.left = self.left - columns
end

function Frame:end_line()
  self:add "\n"
  self.left, self.lines = self.columns, self.lines + 1
end

function Frame:title(text)
  self:add(cli.bold)
  self:put_padded(text, TITLE_COLUMNS)
  self:add(cli.plain)
end

-- "3 d 4 h", "2 h 14 min", "40 s"
local function duration(s)
  if s >= 86400 then return ("%d d %d h"):format(s / 86400, s % 86400 / 3600) end
  if s >= 3600 then return ("%d h %d min"):format(s / 3600, s % 3600 / 60) end
  return s >= 60 and ("%d min"):format(s / 60) or ("%d s"):format(s)
end

-- ---- the summary ----
local function put_header(f, view, status)
  local generation = status.generation
  f:add(cli.bold)
  f:put "toolgate "
  f:put(status.version)
  f:add(cli.plain)
  f:put "  up "
  f:put(duration(number(status, "uptime_s")))
  f:put("  %s, every %d s  generation %d, %d tools  ", os.date "%H:%M:%S", view.interval_s, number(generation, "number"),
        number(generation, "tools"))
  f:put(status.socket)
  f:end_line()
end

local function put_calls(f, figures)
  f:title "calls"
  f:put("%s/s", cli.fixed(figures.calls_s, 1))
  for _, verdict in ipairs(figures.verdicts) do
    if verdict.total ~= 0 then
      f:put "  "
      if verdict.per_s > 0 then f:add(ui.verdict_colour(verdict.name)) end
      f:put(verdict.name)
      f:put(" %s/s", cli.fixed(verdict.per_s, 1))
      if verdict.per_s > 0 then f:add(cli.plain) end
    end
  end
  if figures.seconds <= 0 then f:put "  (since the start)" end
  f:end_line()
end

local function put_recovery(f, status, figures)
  local loops = number(status.counters, "loops")
  f:title "recovery"
  if figures.chains ~= 0 then
    f:put("%s %% of %d repair chains ended with a call that passed", cli.fixed(100 * figures.recovered / figures.chains, 0),
          figures.chains)
  else
    f:put "no repair chain has ended yet"
  end
  if loops ~= 0 then
    f:put(", %d loop%s found, %d calls saved", loops, loops == 1 and "" or "s", number(status.counters, "calls_saved"))
  end
  f:end_line()
end

local function put_ledger(f, ledger)
  f:title "ledger"
  if not ledger.on_outage then
    f:put("local, sessions: %d", number(ledger, "sessions"))
  elseif ledger.connected == true then
    f:put_in(cli.green, "redis, connected")
    f:put(", median %d us, slowest %d us", number(ledger, "median_us"), number(ledger, "worst_us"))
  else
    f:put_in(cli.red, "redis, down: ")
    f:put(ledger.why_away)
  end
  f:end_line()
end

local function put_decisions(f, decisions)
  if not decisions then return end
  local sinks, dropped, written = decisions.sinks or {}, number(decisions, "dropped"), 0
  for _, sink in ipairs(sinks) do written = written + number(sink, "written") end
  f:title "decisions"
  if #sinks == 0 then f:put "not written" else f:put("%d written, ", written) end
  if dropped ~= 0 then f:put_in(cli.red, "dropped: ") end
  f:put(dropped ~= 0 and "%d" or "none dropped", dropped)
  f:end_line()
end

local function put_upstreams(f, list)
  if #list == 0 then return end
  local up, starting, calls = 0, 0, 0
  for _, u in ipairs(list) do
    up = up + ((u.state == "up" or u.state == "ready") and 1 or 0)
    starting = starting + (u.state == "starting" and 1 or 0)
    calls = calls + number(u, "in_flight")
  end
  f:title "upstreams"
  f:put("%d of %d up", up, #list)
  if starting > 0 then f:put(", %d starting", starting) end
  f:put(", %d calls in flight", calls)
  f:end_line()
end

-- ---- what needs attention: one line each ----

-- { what, how, the error } of each
local function attentions_of(status)
  local all = {}
  local function add(...) all[#all + 1] = { ... } end
  local reload = status.reload
  if reload and reload.ok ~= true then
    add("the last reload failed; the generation before it serves: ", "", reload.errors)
  end
  for _, u in ipairs(status.upstreams or {}) do
    if u.state == "down" or u.state == "failed" then
      add(u.name, " is down: ", u.last_error)
    elseif u.breaker == "open" then
      add(u.name, " is not called after failures: ", u.last_error)
    end
  end
  for _, q in ipairs(status.quarantined or {}) do add(q.file, " is quarantined: ", q.last) end
  for _, fault in ipairs(status.policy_faults or {}) do add(fault.tool, ": the policy failed: ", fault.last) end
  for _, problem in ipairs(status.problems or {}) do add(problem.code, ": ", problem.last) end
  return all
end

local function put_attention(f, status)
  local all = attentions_of(status)
  for i = 1, math.min(#all, ATTENTION_LINES) do
    f:put_in(cli.red, "! ")
    for part = 1, 3 do f:put(all[i][part]) end
    f:end_line()
  end
  if #all > ATTENTION_LINES then
    f:put("  and %d more: toolgate status", #all - ATTENTION_LINES)
    f:end_line()
  end
end

-- ---- the tools ----

-- Width, and the width of the terminal that shows it: a narrow one leaves out whole columns. "CALLS/S" that is cut is another
-- title, and 0.4 another number.
local COLUMNS = { calls = { "CALLS", 9, 40 }, rate = { "CALLS/S", 9, 21 }, refused_rate = { "REF/S", 8, 29 },
                  refused = { "REFUSED", 9, 54 }, recovered = { "RECOVERED", 11, 66 }, codes = { "  MOST FREQUENT", 15, 90 } }
local IN_ORDER = { "calls", "rate", "refused_rate", "refused", "recovered", "codes" }

local function shows(f, column) return f.columns >= COLUMNS[column][3] end

local function name_columns(f)
  local left = f.columns
  for _, column in ipairs(IN_ORDER) do left = left - (shows(f, column) and COLUMNS[column][2] or 0) end
  return math.max(NAME_COLUMNS_LEAST, math.min(left, shows(f, "codes") and NAME_COLUMNS_MOST or f.columns))
end

local function put_cell(f, column, text)
  if shows(f, column) then f:put("%" .. COLUMNS[column][2] .. "s", text) end
end

local function percent(part) return part and cli.fixed(100 * part, 0) .. " %" or "-" end

local function put_tool(f, tool)
  f:put_padded(tool.name, name_columns(f))
  put_cell(f, "calls", ("%d"):format(tool.calls))
  put_cell(f, "rate", cli.fixed(tool.calls_s, 1))
  if tool.refused_s > 0 then f:add(cli.yellow) end
  put_cell(f, "refused_rate", cli.fixed(tool.refused_s, 1))
  if tool.refused_s > 0 then f:add(cli.plain) end
  put_cell(f, "refused", percent(tool.refused_share))
  put_cell(f, "recovered", percent(tool.recovered_share))
  if shows(f, "codes") then
    f:put "  "
    for i, code in ipairs(tool.codes) do
      f:put(i > 1 and ", " or "")
      f:put(code.code)
      f:put(" %d", code.count)
    end
  end
  f:end_line()
end

-- `lines`: that are left for them; nil: all.
local function put_tools(f, view, status, tools, lines)
  f:add(cli.bold)
  f:put_padded("TOOL, by " .. view.order, name_columns(f))
  for _, column in ipairs(IN_ORDER) do put_cell(f, column, COLUMNS[column][1]) end
  f:add(cli.plain)
  f:end_line()
  if #tools == 0 then
    f:put(status.tools and "no tool has been called yet" or "this daemon does not count by tool")
    f:end_line()
  end
  local fit = lines and #tools > lines and lines - 1 or #tools
  for i = 1, fit do put_tool(f, tools[i]) end
  if fit < #tools then
    f:put_in(cli.dim, "and ")
    f:put("%d more tools", #tools - fit)
    f:end_line()
  end
end

-- ---- sessions in a loop ----
local function put_sessions(f, list, count)
  f:put_in(cli.bold, "SESSIONS IN A LOOP")
  f:end_line()
  local fit = count > SESSION_LINES and SESSION_LINES - 1 or #list
  for i = 1, math.min(fit, #list) do
    local session, loop = list[i], list[i].loop or {}
    f:put "  "
    f:put_padded(session.session, math.floor(f.columns / 3))
    f:put " "
    f:put_padded(loop.tool, math.floor(f.columns / 4))
    f:put(" %d times in a row, ", number(loop, "times"))
    f:put((loop.code or "") ~= "" and loop.code or "let run so far")
    f:end_line()
  end
  if fit < count then
    f:put("  and %d more: toolgate sessions --loops", count - fit)
    f:end_line()
  end
end

-- ---- the whole ----

-- view: columns, rows (nil: as many as there is to show), order, interval_s, notice (why there is no newer answer; nil: it is
-- up to date), keys (whether to show what they do). `now` without a status: only the notice.
return function(view, now, figures)
  local f = setmetatable({ out = {}, columns = view.columns, left = view.columns, lines = 0 }, Frame)
  local status, list = now.status, now.sessions and now.sessions.sessions or {}
  if view.notice then
    f:put_in(cli.yellow, view.notice)
    f:end_line()
  end
  if status then
    put_header(f, view, status)
    put_calls(f, figures)
    put_recovery(f, status, figures)
    put_ledger(f, status.ledger or {})
    put_decisions(f, status.decisions)
    put_upstreams(f, status.upstreams or {})
    put_attention(f, status)
    f:end_line()
    local others = f.lines + 1 + (#list > 0 and 2 + math.min(#list, SESSION_LINES) or 0) + (view.keys and 2 or 0)
    put_tools(f, view, status, figures.tools, view.rows and math.max(TOOL_LINES_LEAST, view.rows - others))
    if #list > 0 then
      f:end_line()
      put_sessions(f, list, number(now.sessions, "in_loop"))
    end
  end
  if view.keys then
    f:put_in(cli.dim, "r rate  f refusals  n name  q quit")
    f:end_line()
  end
  local lines, text = {}, table.concat(f.out)
  for line in text:gmatch "[^\n]*\n" do
    if #lines == view.rows then break end
    lines[#lines + 1] = line
  end
  return lines
end
