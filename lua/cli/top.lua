-- toolgate top: what the running daemon does, drawn again at each interval. It asks toolgate/status and toolgate/sessions on
-- one connection, and connects again after the daemon has restarted. It changes nothing in the daemon.
local figures = require "top_figures"
local frame_of = require "top_frame"

local INTERVAL_MAX_S = 3600
local LATE_US        = 3000000  -- after this the frame says that the daemon does not answer
local RESTARTED_US   = 10000000 -- so long it says that there is another process
local ONCE_COLUMNS   = 120      -- if stdout is no terminal
local KEYS = { r = "rate", f = "refusals", n = "name" }

-- ---- the daemon: `now` and `before` are snapshots, `next` is being received, `asked` is the open question ----
local function disconnect(top)
  if top.client then top.client:close() end
  top.client, top.asked = nil, nil
end

local function ask(top, method, params)
  local sent, why = top.client:ask(method, params)
  top.asked = method
  if not sent then
    top.why = why
    disconnect(top)
  end
  return sent
end

local function begin(top)
  top.asked_us = cli.mono_us()
  top.due_us = top.asked_us + top.interval_s * 1000000
  if not top.client then
    local client, why = cli.client(top.socket)
    top.client, top.why = client, why or top.why
  end
  top.next = {}
  return top.client and ask(top, "toolgate/status", "{}")
end

local function complete(top)
  top.asked = nil
  if top.now.status and not figures.is_same_process(top.now.status, top.next.status) then top.restarted_us = top.next.at_us end
  top.before, top.now = top.now, top.next
end

-- Reads one answer. False: there is no connection any more.
local function receive(top)
  local answer, why, wrong = top.client:answer "raw"
  if top.asked == "toolgate/status" and answer then
    top.next.status, top.next.at_us = answer, cli.mono_us()
    return ask(top, "toolgate/sessions", '{"loops":true,"limit":8}')
  end
  if top.asked == "toolgate/sessions" and (answer or type(wrong) == "number") then -- refused: there are none to show
    top.next.sessions = answer
    complete(top)
    return true
  end
  top.why = why
  disconnect(top)
  return false
end

local function frame(top, view)
  view.interval_s, view.order = top.interval_s, top.order
  return frame_of(view, top.now, top.now.status and figures.compute(top.before, top.now, top.order))
end

-- ---- one frame for scripts ----
local function snapshot(top)
  local going = begin(top)
  while going and top.asked do going = receive(top) end
  if not going then fail("%s", top.why) end
end

local function once(top)
  snapshot(top)
  cli.sleep_until(top.due_us)
  snapshot(top)
  io.write(table.concat(frame(top, { columns = cli.is_terminal and cli.terminal_size() or ONCE_COLUMNS })))
end

-- ---- live ----
local function notice_of(top)
  local now = cli.mono_us()
  if not top.client then return ("trying again every %d s: %s"):format(top.interval_s, top.why) end
  if top.asked and now - top.asked_us > LATE_US then
    return ("no answer for %d s; what follows is older"):format((now - top.asked_us) / 1000000)
  end
  return top.restarted_us and now - top.restarted_us < RESTARTED_US and "the daemon has restarted; it counts from zero" or nil
end

-- Replaces the lines of the screen. A line is erased before it is written: behind a full line the cursor still stands on its
-- last column.
local function show(top)
  local columns, rows = cli.terminal_size()
  local lines = frame(top, { columns = columns, rows = rows, notice = notice_of(top), keys = true })
  for i, line in ipairs(lines) do
    local is_last = i == #lines -- it is erased with all that is below
    lines[i] = (is_last and "\27[J" or "\27[K") .. line:sub(1, -2) .. (is_last and "\27[0m" or "\27[0m\r\n")
  end
  cli.draw("\27[H" .. table.concat(lines))
end

local function live(top)
  if not cli.open_terminal() then fail "this is no terminal; --once prints one frame" end
  local key, is_readable, is_ended
  repeat
    local is_due = cli.mono_us() >= top.due_us
    if is_due and not top.asked then
      begin(top)
    elseif is_due then -- late: the frame says so
      top.due_us = top.due_us + 1000000
    end
    show(top)
    key, is_readable, is_ended = cli.wait_terminal(top.client and top.client:descriptor(), top.due_us)
    if is_readable and top.asked then
      receive(top)
    elseif is_readable then
      disconnect(top) -- the daemon sends nothing on its own: it has closed the connection
    end
    top.order = KEYS[key] or top.order
  until is_ended or key == "q"
  cli.close_terminal()
end

return command {
  name = "top", summary = "watch calls, refusals, loops and upstreams live",
  about = [[
Draws what the running daemon does, once an interval: calls by verdict, tools with their refusals
and how many of them the model repaired, sessions in a loop, upstreams, ledger. Keys: r sorts by
rate, f by refusals, n by name, q quits. It connects again after the daemon has restarted.]],
  exits = [[
  0  quit; with --once: the frame was printed
  2  usage, no terminal, with --once: no daemon]],
  example = [[
  toolgate top --interval 2
  toolgate top --once | head]],
  options = {
    socket,
    number { name = "interval", letter = "i", argument = "SECONDS", words = "time between two frames (default 1)" },
    flag   { name = "once", words = "print one frame after one interval, then end" },
  },

  run = function(o)
    local interval_s = o.interval or 1
    if interval_s > INTERVAL_MAX_S then
      fail("--interval: expected at most %d seconds, got %d", INTERVAL_MAX_S, interval_s)
    end
    local top = { socket = o.socket, interval_s = interval_s, order = "rate", due_us = 0, why = "", before = {}, now = {} };
    (o.once and once or live)(top)
  end,
}
