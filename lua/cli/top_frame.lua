-- One frame of `toolgate top` as text: lines that fit the terminal, the most important first: a summary, what needs attention,
-- the tools, the sessions in a loop. What clients, models and upstreams sent passes cli.clip.
local ui = require "ui"
local number = require "top_figures".number

local ATTENTION_LINES, SESSION_LINES, TOOL_LINES_LEAST = 4, 6, 3
local TITLE_COLUMNS, NAME_COLUMNS_LEAST, NAME_COLUMNS_MOST = 10, 12, 36

-- ---- one line ----
local Frame = {}
Frame.__index = Frame

function Frame:put(words)
  local shown, used = cli.clip(words or "", self.left)
  self.out[#self.out + 1] = shown
  self.left = self.left - used
end

function Frame:put_padded(words, columns)
  columns = math.min(columns, self.left)
  self.out[#self.out + 1] = ui.clip(words or "", columns, true)
  self.left = self.left - columns
end

-- Each piece is a text, which may be nil, or a list of them behind a colour. What others sent is a piece of its own.
function Frame:put_all(...)
  for i = 1, select("#", ...) do
    local piece = select(i, ...)
    if type(piece) ~= "table" then
      self:put(piece)
    else
      self.out[#self.out + 1] = piece[1]
      for k = 2, #piece do self:put(piece[k]) end
      self.out[#self.out + 1] = cli.plain
    end
  end
end

function Frame:line(...)
  self:put_all(...)
  self.out[#self.out + 1] = "\n"
  self.left, self.lines = self.columns, self.lines + 1
end

function Frame:titled(title, ...)
  self.out[#self.out + 1] = cli.bold
  self:put_padded(title, TITLE_COLUMNS)
  self.out[#self.out + 1] = cli.plain
  self:line(...)
end

-- "3 d 4 h", "2 h 14 min", "40 s"
local function duration(s)
  if s >= 86400 then return ("%d d %d h"):format(s / 86400, s % 86400 / 3600) end
  if s >= 3600 then return ("%d h %d min"):format(s / 3600, s % 3600 / 60) end
  return s >= 60 and ("%d min"):format(s / 60) or ("%d s"):format(s)
end

-- ---- the summary ----
local function put_header(f, view, status)
  f:line({ cli.bold, "toolgate ", status.version or "" }, "  up ", duration(number(status, "uptime_s")),
         ("  %s, every %d s  generation %d, %d tools  "):format(os.date "%H:%M:%S", view.interval_s,
           number(status.generation, "number"), number(status.generation, "tools")), status.socket)
end

local function put_calls(f, figures)
  local pieces = { cli.fixed(figures.calls_s, 1) .. "/s" }
  local function add(piece) pieces[#pieces + 1] = piece end
  for _, verdict in ipairs(figures.verdicts) do
    local rate = " " .. cli.fixed(verdict.per_s, 1) .. "/s"
    if verdict.total ~= 0 then add "  " end
    if verdict.total ~= 0 and verdict.per_s > 0 then
      add { ui.verdict_colour(verdict.name), verdict.name, rate }
    elseif verdict.total ~= 0 then
      add(verdict.name)
      add(rate)
    end
  end
  add(figures.seconds <= 0 and "  (since the start)" or "")
  f:titled("calls", unpack(pieces))
end

local function put_recovery(f, status, figures)
  local loops, chains = number(status.counters, "loops"), figures.chains
  f:titled("recovery",
           chains == 0 and "no repair chain has ended yet"
           or ("%s %% of %d repair chains ended with a call that passed"):format(
             cli.fixed(100 * figures.recovered / chains, 0), chains),
           loops ~= 0 and (", %d loop%s found, %d calls saved"):format(loops, loops == 1 and "" or "s",
             number(status.counters, "calls_saved")) or "")
end

local function put_ledger(f, ledger)
  if not ledger.on_outage then
    f:titled("ledger", ("local, sessions: %d"):format(number(ledger, "sessions")))
  elseif ledger.connected == true then
    f:titled("ledger", { cli.green, "redis, connected" },
             (", median %d us, slowest %d us"):format(number(ledger, "median_us"), number(ledger, "worst_us")))
  else
    f:titled("ledger", { cli.red, "redis, down: " }, ledger.why_away)
  end
end

local function put_decisions(f, decisions)
  if not decisions then return end
  local sinks, dropped, written = decisions.sinks or {}, number(decisions, "dropped"), 0
  for _, sink in ipairs(sinks) do written = written + number(sink, "written") end
  local state = #sinks == 0 and "not written" or ("%d written, "):format(written)
  if dropped == 0 then return f:titled("decisions", state, "none dropped") end
  f:titled("decisions", state, { cli.red, "dropped: " }, ("%d"):format(dropped))
end

local function put_upstreams(f, list)
  if #list == 0 then return end
  local up, starting, calls = 0, 0, 0
  for _, u in ipairs(list) do
    up = up + ((u.state == "up" or u.state == "ready") and 1 or 0)
    starting = starting + (u.state == "starting" and 1 or 0)
    calls = calls + number(u, "in_flight")
  end
  f:titled("upstreams", ("%d of %d up"):format(up, #list), starting > 0 and (", %d starting"):format(starting) or "",
           (", %d calls in flight"):format(calls))
end

-- ---- what needs attention: one line each ----
local function put_attention(f, status)
  local count = 0
  local function attend(...)
    count = count + 1
    if count <= ATTENTION_LINES then f:line({ cli.red, "! " }, ...) end
  end
  if status.reload and status.reload.ok ~= true then
    attend("the last reload failed; the generation before it serves: ", status.reload.errors)
  end
  for _, u in ipairs(status.upstreams or {}) do
    if u.state == "down" or u.state == "failed" then
      attend(u.name, " is down: ", u.last_error)
    elseif u.breaker == "open" then
      attend(u.name, " is not called after failures: ", u.last_error)
    end
  end
  for _, q in ipairs(status.quarantined or {}) do attend(q.file, " is quarantined: ", q.why) end
  for _, bad in ipairs(status.policy_faults or {}) do attend(bad.tool or bad.gateway, ": the policy failed: ", bad.last) end
  for _, problem in ipairs(status.problems or {}) do attend(problem.code, ": ", problem.last) end
  if count > ATTENTION_LINES then f:line(("  and %d more: toolgate status"):format(count - ATTENTION_LINES)) end
end

-- ---- the tools ----

-- Title, width, and the width of the terminal that shows it: a narrow one leaves out whole columns. "CALLS/S" that is cut is
-- another title, and 0.4 another number.
local COLUMNS = { { "CALLS", 9, 40 }, { "CALLS/S", 9, 21 }, { "REF/S", 8, 29 }, { "REFUSED", 9, 54 }, { "RECOVERED", 11, 66 },
                  { "  MOST FREQUENT", 15, 90 } }
local CALLS, RATE, REFUSED_RATE, REFUSED, RECOVERED, CODES = 1, 2, 3, 4, 5, 6

local function shows(f, column) return f.columns >= COLUMNS[column][3] end

local function name_columns(f)
  local left = f.columns
  for i, column in ipairs(COLUMNS) do left = left - (shows(f, i) and column[2] or 0) end
  return math.max(NAME_COLUMNS_LEAST, math.min(left, shows(f, CODES) and NAME_COLUMNS_MOST or f.columns))
end

local function cell(f, column, words)
  return shows(f, column) and ("%" .. COLUMNS[column][2] .. "s"):format(words) or ""
end

local function percent(part) return part and cli.fixed(100 * part, 0) .. " %" or "-" end

local function put_tool(f, tool)
  local refused_rate = cell(f, REFUSED_RATE, cli.fixed(tool.refused_s, 1))
  f:put_padded(tool.name, name_columns(f))
  f:put_all(cell(f, CALLS, ("%d"):format(tool.calls)), cell(f, RATE, cli.fixed(tool.calls_s, 1)),
            tool.refused_s > 0 and { cli.yellow, refused_rate } or refused_rate, cell(f, REFUSED, percent(tool.refused_share)),
            cell(f, RECOVERED, percent(tool.recovered_share)), shows(f, CODES) and "  " or "")
  for i, code in ipairs(shows(f, CODES) and tool.codes or {}) do
    f:put_all(i > 1 and ", " or "", code.code, (" %d"):format(code.count))
  end
  f:line()
end

-- `lines`: that are left for them; nil: all.
local function put_tools(f, view, status, tools, lines)
  f.out[#f.out + 1] = cli.bold
  f:put_padded("TOOL, by " .. view.order, name_columns(f))
  for i, column in ipairs(COLUMNS) do f:put(cell(f, i, column[1])) end
  f.out[#f.out + 1] = cli.plain
  f:line()
  if #tools == 0 then
    f:line(status.tools and "no tool has been called yet" or "this daemon does not count by tool")
  end
  local fit = lines and #tools > lines and lines - 1 or #tools
  for i = 1, fit do put_tool(f, tools[i]) end
  if fit < #tools then f:line({ cli.dim, "and " }, ("%d more tools"):format(#tools - fit)) end
end

-- ---- sessions in a loop ----
local function put_sessions(f, list, count)
  local fit = count > SESSION_LINES and SESSION_LINES - 1 or #list
  f:line { cli.bold, "SESSIONS IN A LOOP" }
  for i = 1, math.min(fit, #list) do
    local loop = list[i].loop or {}
    f:put "  "
    f:put_padded(list[i].session, math.floor(f.columns / 3))
    f:put " "
    f:put_padded(loop.tool, math.floor(f.columns / 4))
    f:line((" %d times in a row, "):format(number(loop, "times")), (loop.code or "") == "" and "let run so far" or loop.code,
           loop.not_enforced and ", let run in mode shadow" or loop.halted and ", told to end the run" or "")
  end
  if fit < count then f:line(("  and %d more: toolgate sessions --loops"):format(count - fit)) end
end

-- ---- the whole ----

-- view: columns, rows (nil: as many as there is to show), order, interval_s, notice (why there is no newer answer; nil: it is
-- up to date), keys (whether to show what they do). `now` without a status: only the notice. Returns the lines.
return function(view, now, figures)
  local f = setmetatable({ out = {}, columns = view.columns, left = view.columns, lines = 0 }, Frame)
  local status, list = now.status, now.sessions and now.sessions.sessions or {}
  if view.notice then f:line { cli.yellow, view.notice } end
  if status then
    put_header(f, view, status)
    put_calls(f, figures)
    put_recovery(f, status, figures)
    put_ledger(f, status.ledger or {})
    put_decisions(f, status.decisions)
    put_upstreams(f, status.upstreams or {})
    put_attention(f, status)
    f:line()
    local others = f.lines + 1 + (#list > 0 and 2 + math.min(#list, SESSION_LINES) or 0) + (view.keys and 2 or 0)
    put_tools(f, view, status, figures.tools, view.rows and math.max(TOOL_LINES_LEAST, view.rows - others))
    if #list > 0 then
      f:line()
      put_sessions(f, list, number(now.sessions, "in_loop"))
    end
  end
  if view.keys then f:line { cli.dim, "r rate  f refusals  n name  q quit" } end
  local lines = {}
  for line in table.concat(f.out):gmatch "[^\n]*\n" do
    if #lines == view.rows then break end
    lines[#lines + 1] = line
  end
  return lines
end
