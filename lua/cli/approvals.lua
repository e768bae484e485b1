-- toolgate approvals: what policies have asked of users whom nobody could ask.
local ui = require "ui"

local function print_approval(o, a)
  ui.say("%s  %s, of %s (uid %d, pid %d) in session %s", ui.bold(a.id or ""), cli.line(a.tool or ""), a.user, a.uid, a.pid,
         cli.line(a.session or "")) -- a name that a client chose begins no line
  ui.say("  question:  %s", cli.line(a.question or ""))
  ui.say("  arguments: %s%s", a.arguments, a.arguments_cut and "… (cut: deny it unless you know the rest)" or "")
  local used = a.state == "spent"
  if a.state ~= "pending" then
    return ui.say("  %s by %s%s", used and "approved" or a.state, a.answered_by, used and "; it has run" or "")
  end
  ui.say("  asked %d s ago; answer within %d s: %s approve %s%s", a.asked_s, a.expires_s, cli.program, a.id,
         o.socket and " --socket " .. o.socket or "")
end

return command {
  name = "approvals", summary = "list the calls that wait for a person's yes",
  about = [[
Lists the calls that a policy has asked about, and whose client has no user to ask: tool, arguments,
question and id, with those answered in the last minutes. For operators: those that the
configuration names, else the daemon's user; and root.]],
  exits = [[
  0  nothing waits
  1  calls wait
  2  usage, no daemon, no operator]],
  example = [[
  toolgate approvals
  toolgate approvals --json]],
  options = { socket, json },

  run = function(o)
    local list, pending = rpc(o, "toolgate/approvals").approvals, 0
    for _, a in ipairs(list or {}) do
      if not o.json then print_approval(o, a) end
      if a.state == "pending" then pending = pending + 1 end
    end
    if pending == 0 and not o.json then ui.say "nothing waits for an approval" end
    return pending > 0 and 1 or 0
  end,
}
