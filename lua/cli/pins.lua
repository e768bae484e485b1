-- toolgate pins: shows which definitions of upstreams' tools differ from the accepted ones, and accepts them.
-- The texts are the upstreams': they are printed escaped.
local ui = require "ui"
local print_diff = require "pin_diff"

local STATES = { changed = "its definition has changed", renamed = "a new name, while another tool has vanished",
                 new = "it is new", lost = "the state folder has lost what was accepted" }

-- The answer is taken exactly: null is a value.
local function there(value) if value ~= cli.null then return value end end

local function print_accept(o, name, digest)
  local word = cli.line(name):gsub("'", "'\\''") -- for a shell
  ui.say("  accept: %s pins accept '%s' %s%s", cli.program, word, digest, o.socket and " --socket " .. o.socket or "")
end

local function print_entry(o, entry)
  local name, was, now = entry.upstream .. "/" .. entry.tool, there(entry.was), there(entry.now) or {}
  ui.say("%s: %s; %s", ui.bold(cli.line(name)), STATES[entry.state] or "it differs",
         entry.held and ui.red "it is neither listed nor callable" or ui.yellow "it is served all the same")
  if was and was.tool ~= entry.tool then ui.say("  compared with the vanished tool %s", cli.line(was.tool)) end
  if there(now.definition) then
    print_diff(was and there(was.definition), now.definition)
    print_accept(o, name, now.digest)
  else
    ui.say "  (not shown: the answer was full; accept those above, and call this again)"
  end
  ui.say ""
end

local function print_pins(o, a)
  if not there(a.waiting) then return ui.say("pins are %s: no definition is compared", a.mode) end
  for _, upstream in ipairs(there(a.lost) or {}) do
    ui.say("%s: %s had accepted definitions, and %s does not have them: restore it and restart the daemon, or accept them "
           .. "again", ui.red "lost", cli.line(upstream), cli.line(a.file))
  end
  for _, entry in ipairs(a.waiting) do print_entry(o, entry) end
  ui.say('%s, %d waiting; pins = "%s"', ui.count(a.tools or 0, "tool"), #a.waiting, a.mode)
  if #a.waiting > 1 and a.complete then
    ui.say "all of them:"
    print_accept(o, "*", a.digest)
  end
end

local function accept(o)
  local params = { accept = { tool = o[2], digest = o[3] } }
  local a = rpc(o, "toolgate/pins", params)
  for _, why in ipairs(a.errors or {}) do cli.warn(cli.line(why)) end
  if a.ok and not o.json then
    ui.say("accepted: %s is served with this definition", o[2] == "*" and "everything that waited" or cli.line(o[2]))
  end
  return a.ok and 0 or 1
end

return command {
  name = "pins", operands = "[accept TOOL DIGEST]", summary = "show and accept changed definitions of upstreams' tools",
  about = [[
Shows which definitions of upstreams' tools differ from those that were accepted, by their first use
or by this command: the old and the new text, and the new digest. `accept TOOL DIGEST` accepts what
has this digest, at once; TOOL '*' with the digest at the end accepts everything that was shown. For
root and the daemon's user. What happens to a tool that waits, the configuration says: pins = "warn",
"changes" (changed tools are neither listed nor callable) or "all" (new ones, too).]],
  exits = [[
  0  nothing waits; it was accepted
  1  definitions wait; it has another digest, or there is no such tool
  2  usage, no daemon, another user's daemon]],
  example = [[
  toolgate pins
  toolgate pins accept files/search 5891b5b522d5df086d0ff0b110fbd9d2]],
  options = { socket, json },
  most = 3,

  run = function(o)
    if #o > 0 and (#o ~= 3 or o[1] ~= "accept") then
      fail("expected nothing, or: accept TOOL DIGEST, as `%s pins` prints it", cli.program)
    end
    if #o == 3 then return accept(o) end
    local a = o.json and rpc(o, "toolgate/pins") or cli.rpc(o.socket, "toolgate/pins", nil, "exact")
    if not o.json then print_pins(o, a) end
    return there(a.waiting) and #a.waiting > 0 and 1 or 0
  end,
}
