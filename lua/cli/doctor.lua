-- toolgate doctor: what is wrong with this installation, and the command that fixes it. It reads files, limits and the
-- running daemon's toolgate/status, and changes nothing. The checks are doctor_checks.lua.
local ui = require "ui"
local checks = require "doctor_checks"

local FILES_MAX = 64 -- of one option

local function ask(d) d.status, d.no_status = cli.ask(d.socket, "toolgate/status", nil, "exact") end

-- Files that the daemon's command line names, or its configuration, which then has them already.
local function files_of(list)
  local out = {}
  for i = 1, ui.is_array(list) and math.min(#list, FILES_MAX) or 0 do out[i] = ui.text(list[i]) end
  return out
end

-- The configuration of the command line, else the one that the daemon names.
local function choose_config(d, o)
  if o.config then return end
  local paths = ui.table(d.status and d.status.paths)
  if not (o.policies or o.tools or o["mcp-config"]) then
    o.tools, o["mcp-config"] = files_of(paths.tools), files_of(paths.mcp_configs)
  end
  local config, policies = ui.text(paths.config), ui.text(paths.policies)
  if config ~= "" then o.config = config end
  if policies ~= "" and not o.policies then o.policies = policies end
end

local COLOURS = { ok = "green", warning = "yellow", error = "red" }

local function print_finding(f)
  ui.say("%s%-7s%s  %-9s  %s", cli[COLOURS[f.level]], f.level, cli.plain, f.area, cli.lines(f.what))
  if f.fix then ui.say("         %-9s  %sdo: %s%s", "", cli.bold, cli.lines(f.fix), cli.plain) end
end

local function print_json(d, errors, warnings)
  local list = {}
  for i, f in ipairs(d.findings) do
    list[i] = ('{"level":%s,"area":%s,"code":%s,"what":%s%s}'):format(cli.json(f.level), cli.json(f.area), cli.json(f.code),
              cli.json(f.what), f.fix and ',"do":' .. cli.json(f.fix) or "")
  end
  ui.say('{"errors":%d,"warnings":%d,"findings":[%s]%s}', errors, warnings, table.concat(list, ","),
         d.left_out > 0 and ',"left_out":' .. d.left_out or "")
end

return command {
  name = "doctor", summary = "check the installation, and say what to do",
  about = [[
Checks the socket, the daemon behind it, its state folder, decision log, Redis, upstreams, policies,
traces and limits, the clock, and the systemd unit. Each line says what is right or wrong, and what
to do. Works with and without a running daemon, and changes nothing. Without --config it checks the
configuration that the daemon serves.]],
  exits = [[
  0  no error; there may be warnings
  1  errors
  2  usage]],
  example = [[
  toolgate doctor
  toolgate doctor --config /etc/toolgate/toolgate.lua --json]],
  options = { socket, files, flag { name = "json", words = "print the findings as JSON" } },

  run = function(o)
    local d = { findings = {}, left_out = 0, program = cli.read_link "/proc/self/exe", host = cli.host() }
    d.socket = o.socket or not o.config and cli.default_socket() -- nil: its own
    if d.socket then ask(d) end
    choose_config(d, o)
    local would_stall = d.status and d.status.quarantined ~= nil -- this process, too
    o.only_config, o.log = would_stall, "off"
    d.state = cli.load(o)
    d.config, d.generation = d.state.config, d.state.generation
    if not d.socket then
      d.socket = d.config and d.config.socket or cli.default_socket()
      ask(d)
    end
    for _, check in ipairs(checks) do check(d) end
    local counts = { ok = 0, warning = 0, error = 0 }
    for _, f in ipairs(d.findings) do counts[f.level] = counts[f.level] + 1 end
    if o.json then
      print_json(d, counts.error, counts.warning)
    else
      for _, f in ipairs(d.findings) do print_finding(f) end
      ui.say("%s, %s", ui.count(counts.error, "error"), ui.count(counts.warning, "warning"))
      if d.left_out > 0 then ui.say("%d further findings are left out", d.left_out) end
    end
    return counts.error > 0 and 1 or 0
  end,
}
