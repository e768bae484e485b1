-- toolgate sessions: the sessions that the daemon served last, and which agents are stuck.
local ui = require "ui"

local NAME_COLUMNS, USER_COLUMNS, TOOL_COLUMNS = 40, 16, 40

local function name_of(session) return session.session end

-- Whose session it is: in a shared namespace, everybody's.
local function user_of(session)
  return session.uid and (cli.user_name(session.uid) or tostring(session.uid)) or "-"
end

local function what_came_of(loop)
  if loop.not_enforced then return ui.yellow "let run in mode shadow" end
  return ui.red(loop.halted and "told to end the run" or "refused")
end

local function in_a_loop(loop)
  if not loop then return "" end
  return ui.format("  %s, %d times%s", ui.clip((loop.tool or "") ~= "" and loop.tool or "a tool", TOOL_COLUMNS), loop.times,
                                     loop.code and ui.format(", %s [%s]", what_came_of(loop), cli.line(loop.code)) or "")
end

local function print_list(list)
  local names, users = ui.widest(list, 7, NAME_COLUMNS, name_of), ui.widest(list, 4, USER_COLUMNS, user_of)
  ui.say("%s%-" .. names .. "s  %-" .. users .. "s  %-12s %5s %7s %8s  %s%s", cli.bold, "SESSION", "USER", "LAST CALL", "TURN",
         "CALLS", "REFUSED", "IN A LOOP", cli.plain)
  for _, s in ipairs(list) do
    ui.say("%s  %s  %-12s %5d %7d %8d%s", ui.clip(name_of(s), names, true), ui.clip(user_of(s), users, true),
           ui.ago(s.last_ms), s.turn, s.calls, s.refusals, in_a_loop(s.loop))
  end
end

return command {
  name = "sessions", summary = "list the sessions, and which are in a loop",
  about = [[
Lists the sessions that the daemon served last (at most 1024), for root and the daemon's user: the
time of the last call, the turn, calls that were let run (by all daemons on one Redis), calls that
this daemon refused or sent back for repair (no questions, nothing in mode shadow), and the loop that
the last call is in: made 3 times without anything new, or refused for it.]],
  exits = [[
  0  the daemon answered
  2  usage, no daemon, another user's daemon]],
  example = [[
  toolgate sessions --loops
  toolgate sessions --sort refusals --limit 10]],
  options = {
    flag   { name = "loops", letter = "l", words = "only sessions whose last call is in a loop" },
    choice { name = "sort", argument = "recent|refusals|calls", words = "which come first (default recent)" },
    number { name = "limit", letter = "n", argument = "N", words = "how many at most (default 50, at most 1000)" },
    socket, json,
  },

  run = function(o)
    local params = { sort = o.sort, loops = o.loops, limit = o.limit }
    if o.json then return rpc(o, "toolgate/sessions", params) and 0 end
    local a = cli.rpc(o.socket, "toolgate/sessions", params, "raw") -- names are clipped, not escaped
    local list = a.sessions or {}
    if #list == 0 then
      return ui.say((a.known or 0) > 0 and "no session is in a loop" or "no session has made a call yet")
    end
    print_list(list)
    ui.say("\n%s, %d in a loop, %s refused%s%s", ui.count(a.known, "session"), a.in_loop, ui.count(a.refusals, "call"),
           a.known == a.most and ui.format("; the daemon remembers the last %d", a.most) or "",
           a.engine == "redis" and "; of this daemon alone: each of the fleet lists those that it served" or "")
    local listed = (o.loops and a.in_loop or a.known) or 0
    if #list < listed then ui.say("%d more: --limit %d", listed - #list, listed) end
    ui.say("one of them: %s session ID%s", cli.program, o.socket and " --socket " .. o.socket or "")
  end,
}
