-- The checks of toolgate doctor, in the order in which an operator wants to read them: the first that fails explains most
-- of the others. A check gets `d`: socket, program, status (of the daemon; nil: none answers, and no_status says why),
-- state (what the files hold, see cli.load), host (see cli.host), config and generation (of it), and adds findings.
local ui = require "ui"

local FINDINGS_MAX     = 512 -- further ones are left out: thousands of files may be broken
local MIB              = 1048576
local ROOM_WARN_MIB    = 1024 -- free on the state folder's disk
local ROOM_ERROR_MIB   = 64
local SKEW_MS          = 2000 -- between the clock of Redis and this host's
local CLOCK_LEAST_MS   = 1735689600000 -- 2025: an earlier time is a clock that was never set
local CLOCK_JUMP_MS    = 5000
local FILES_BESIDE     = 64 -- connections: log, Redis, upstreams, watches
local UNIT_FOLDERS     = "/etc/systemd/system:/run/systemd/system:/usr/local/lib/systemd/system:/usr/lib/systemd/system:"
                         .. "/lib/systemd/system"

local text = ui.text

local function number(object, name)
  local n = ui.number(object[name])
  return n == math.floor(n) and n or 0
end

-- `fix`: a command or an edit; nil: nothing to do.
local function add(d, level, area, code, fix, form, ...)
  if #d.findings == FINDINGS_MAX then
    d.left_out = d.left_out + 1
    return
  end
  d.findings[#d.findings + 1] = { level = level, area = area, code = code, fix = fix, what = form:format(...) }
end

-- A table of the daemon's status; empty if the status lacks it.
local function status(d, name) return ui.table(d.status and d.status[name]) end

-- The objects of a list in the daemon's status.
local function each(list)
  local i = 0
  list = ui.is_array(list) and list or {}
  return function()
    i = i + 1
    if list[i] ~= nil then return ui.table(list[i]) end
  end
end

-- ---- commands that fix ----
local function find_unit()
  local given = os.getenv "SYSTEMD_UNIT_PATH" -- as systemd itself reads it
  for folder in ((given or "") ~= "" and given or UNIT_FOLDERS):gmatch "[^:]+" do
    local path = folder .. "/toolgate.service"
    if cli.access(path, "r") then return path end
  end
end

local function is_of_systemd(d) return d.socket:sub(1, 14) == "/run/toolgate/" and find_unit() end

local function start_of(d)
  if is_of_systemd(d) then return "systemctl start toolgate.socket toolgate.service" end
  local file = d.config and d.config.file
  return ("toolgate serve%s --socket %s"):format(file and " -c " .. file or "", d.socket)
end

local function restart_of(d)
  if is_of_systemd(d) then return "systemctl restart toolgate.service" end
  local pid = number(d.status, "pid")
  return (pid > 1 and ("kill %d && "):format(pid) or "") .. start_of(d) -- `kill 0` would end the operator's shell
end

local function reload_of(d) return "toolgate reload --socket " .. d.socket end

-- The uid of the daemon's process; nil: that process is not visible.
local function daemon_user(d)
  local pid = d.status and number(d.status, "pid") or 0
  local process = pid ~= 0 and cli.stat(("/proc/%d"):format(pid))
  return process and process.uid or nil
end

-- ---- the daemon ----
local function check_config(d)
  local c, serving = d.config, text(status(d, "generation").config_hash)
  if not c then return end -- its errors are those of the policies' check, which loads it, too
  if serving ~= "" and serving ~= c.hash then
    return add(d, "warning", "config", "config_differs", reload_of(d), "the daemon serves another configuration than %s",
               c.file or "the default one")
  end
  add(d, "ok", "config", "config", nil, "%s%s", c.file or "no file: the defaults apply",
      serving ~= "" and ", as the daemon has it" or "")
end

-- Why no daemon answers.
local function check_no_daemon(d)
  local st, why, reason = cli.stat(d.socket)
  if not st then
    add(d, "error", "socket", reason == "missing" and "socket_missing" or "socket_unreachable", start_of(d),
        "%s: %s; no daemon runs there", d.socket, why)
  elseif not st.socket then
    add(d, "error", "socket", "socket_is_file", "name the daemon's socket with --socket", "%s is no socket", d.socket)
  elseif not cli.access(d.socket, "w") then
    local group = bit.band(st.mode, 16) ~= 0 and cli.group_name(st.gid) -- writable for it
    add(d, "error", "socket", "socket_forbidden", group and ("usermod -aG %s USER, and log in again"):format(group) or
        'set socket_mode = "0660" in the configuration, and restart the daemon',
        "%s has mode %04o: this user (uid %d) may not connect", d.socket, st.mode, cli.uid)
  else
    add(d, "error", "socket", "daemon_silent", start_of(d), "%s", d.no_status)
  end
end

local function check_socket(d)
  if not d.status then return check_no_daemon(d) end
  local st = cli.stat(d.socket)
  add(d, "ok", "socket", "socket", nil, "%s: a daemon answers (pid %d)", d.socket, number(d.status, "pid"))
  if d.config and not d.config.has_allow and st and bit.band(st.mode, 2) ~= 0 then
    add(d, "warning", "socket", "socket_open_to_all",
        'set socket_mode = "0660", or say who may call what with allow = { … }',
        "%s has mode %04o, and the configuration has no allow: every user of this host may call every tool", d.socket,
        st.mode)
  end
end

local function check_version(d)
  if not d.status then return end
  local version = text(d.status.version)
  if version == cli.version then
    add(d, "ok", "version", "version", nil, "the daemon is toolgate %s", version)
  else
    add(d, "warning", "version", "version_differs", restart_of(d), "the daemon is toolgate %s, this program is %s", version,
        cli.version)
  end
  if d.status.paths == nil then
    add(d, "warning", "version", "no_operator", "run toolgate doctor as root, or as the user that runs the daemon",
        "this user sees only part of the daemon's state: upstreams, paths and problems are not checked")
  end
end

local function check_connections(d)
  if not d.status or d.status.connections == nil then return end
  local connections = status(d, "connections")
  local open, most, refused = number(connections, "open"), number(connections, "most"), number(connections, "refused")
  if d.config and most < d.config.connections then
    add(d, "warning", "limits", "files_below_connections", "raise LimitNOFILE= of the service (systemctl edit "
        .. "toolgate.service), or ulimit -Hn, and restart the daemon",
        "limits.connections is %d, but the daemon's limit of open files allows %d", d.config.connections, most)
  elseif most > 0 and open >= most - math.floor(most / 10) then
    add(d, "warning", "limits", "connections_nearly_used", "raise limits.connections", "%d of %d connections are open", open,
        most)
  elseif refused ~= 0 then
    add(d, "warning", "limits", "connections_refused",
        "raise limits.connections, or add the user to allow; the daemon's log names them",
        "the daemon has refused %d connections since its start", refused)
  else
    add(d, "ok", "limits", "connections", nil, "%d of %d connections are open", open, most)
  end
end

-- ---- the state folder ----
-- The daemon's own answer first: systemd gives it a folder that this process does not know.
local function state_folder(d)
  local state = text(status(d, "paths").state)
  if state ~= "" then return state end
  if d.config and d.config.state then return d.config.state end
  local folder = d.socket:match "^(.*)/"
  return folder == "" and "/" or folder or "."
end

local function check_room(d, folder)
  local left = cli.disk_free(folder)
  if not left then return end
  local level = left < ROOM_ERROR_MIB * MIB and "error" or left < ROOM_WARN_MIB * MIB and "warning" or "ok"
  local low = level ~= "ok"
  add(d, level, "state", low and "disk_full" or "state",
      low and ("free space: df -h %s; or set state to a folder on another disk"):format(folder) or nil,
      "%s: %d MiB are free%s", folder, math.floor(left / MIB), low and ", and the decision log needs room" or "")
end

local function check_state(d)
  local folder = state_folder(d)
  local st, why = cli.stat(folder)
  if not st then
    return add(d, d.status and "error" or "warning", "state", "state_missing",
               ("install -d -m 0700 -o USER %s, with the user of the daemon"):format(folder),
               "%s: %s; quarantine, decision log and call ids have no place", folder, why)
  end
  local configured, user = d.config and d.config.state, daemon_user(d) or st.uid
  if configured and bit.band(st.mode, 18) ~= 0 and bit.band(st.mode, 512) == 0 then -- others write, and it is not sticky
    add(d, "error", "state", "state_open", "chmod 0700 " .. folder,
        "%s has mode %04o: others may replace the daemon's keys and records", folder, st.mode)
  end
  if configured and user ~= st.uid then
    add(d, "error", "state", "state_owner", ("chown -R %d %s"):format(user, folder),
        "%s belongs to uid %d, the daemon runs as uid %d", folder, st.uid, user)
  end
  check_room(d, folder)
end

-- ---- the decision log ----
local function check_sink(d, sink)
  local path, why, state, dropped = text(sink.path), text(sink.why), text(sink.state), number(sink, "dropped")
  local is_file = sink.kind == "file"
  local folder = is_file and path:match "^(.*)/[^/]*$"
  local st = folder and cli.stat(folder == "" and "/" or folder)
  if st and bit.band(st.mode, 2) ~= 0 and bit.band(st.mode, 512) == 0 then -- everybody writes, and it is not sticky
    add(d, "warning", "decisions", "decisions_folder_open", "chmod o-w " .. folder,
        "everybody may write into the folder of %s, and replace the log", path)
  end
  if state ~= "up" then
    add(d, "error", "decisions", "decisions_down",
        (is_file and "make %s writable for the daemon: ls -ld, df -h"
         or "start what reads %s, or see why it does not read: ss -xa"):format(path),
        "the decision log cannot be written: %s is %s%s%s", path, state, why ~= "" and ": " or "", why)
  elseif dropped ~= 0 then
    add(d, "warning", "decisions", "decisions_dropped", is_file and "look for a full or slow disk: df -h, iostat"
        or "look at what reads it: it was away or too slow",
        "%d records were dropped since the daemon's start (%s)", dropped, path)
  else
    add(d, "ok", "decisions", "decisions", nil, "%s: %d records written", path, number(sink, "written"))
  end
end

local function check_decisions(d)
  if d.config and not d.config.has_decisions then
    add(d, "warning", "decisions", "decisions_off", "remove decisions = false",
        "the decision log is off: nobody can say later which calls were refused, and why")
  end
  for sink in each(status(d, "decisions").sinks) do check_sink(d, sink) end
  local lines = d.status and number(d.status, "log_lines_dropped") or 0
  if lines > 0 then
    add(d, "warning", "log", "log_lines_dropped", "see whether its disk is full, or what reads it stands still",
        "the daemon's log has lost %d lines since its start", lines)
  end
end

-- ---- Redis ----
local REDIS_FIX = "systemctl status redis-server; then the address in ledger.redis, the firewall, and PrivateNetwork=, "
                  .. "RestrictAddressFamilies= of the unit"

local function is_local(host) return host == "localhost" or host == "::1" or host:sub(1, 4) == "127." end

-- Before a daemon runs: whether anybody listens there; of sentinels one is enough. It says nothing to it.
local function check_address(d, redis)
  local problem = "no host"
  if redis.path then
    problem = cli.connect(redis.path)
  else
    for _, host in ipairs(redis.hosts) do problem = problem and cli.connect(host.name, ("%d"):format(host.port)) end
  end
  if problem then return add(d, "error", "redis", "redis_down", REDIS_FIX, "%s: %s", redis.shown, problem) end
  add(d, "ok", "redis", "redis", nil,
      "%s accepts connections; a running daemon also checks its version, eviction and persistence", redis.shown)
end

local function check_ledger(d, ledger)
  local address, ahead_ms = text(ledger.address), number(ledger, "clock_ahead_ms")
  if ledger.connected ~= true then
    return add(d, "error", "redis", "redis_down", REDIS_FIX, "%s: %s", address, text(ledger.why_away))
  end
  add(d, "ok", "redis", "redis", nil, "%s at %s, median %d us", text(ledger.server), address, number(ledger, "median_us"))
  if math.abs(ahead_ms) > SKEW_MS then
    add(d, "warning", "redis", "redis_clock", "timedatectl set-ntp true, on both hosts",
        "the clock of Redis is %d s %s this host's: the ledger goes by the former, the records' times by the latter",
        math.floor(math.abs(ahead_ms) / 1000), ahead_ms < 0 and "behind" or "ahead of")
  end
  for _, warning in ipairs(ui.is_array(ledger.warnings) and ledger.warnings or {}) do
    add(d, "warning", "redis", "redis_warning", nil, "%s", text(warning))
  end
  if number(ledger, "lost") ~= 0 then
    add(d, "warning", "redis", "redis_lost", "keep Redis reachable; raise ledger.memory",
        "%d sessions of outages could not be merged", number(ledger, "lost"))
  end
end

local function check_redis(d)
  local ledger, redis = status(d, "ledger"), d.config and d.config.redis
  if redis and redis.problem then
    return add(d, "error", "redis", "redis_address", "correct ledger.redis", "ledger.redis: %s", redis.problem)
  end
  if ledger.on_outage ~= nil then
    check_ledger(d, ledger)
  elseif redis then
    check_address(d, redis)
  end
  for _, host in ipairs(redis and redis.tcp and redis.hosts or {}) do
    if not is_local(host.name) then
      add(d, "warning", "redis", "redis_plain", "put stunnel or a Unix socket between, as docs/scaling.md shows",
          "the connection to %s is not encrypted: goals, ids and the password of Redis travel in plain text", host.name)
    end
  end
end

-- ---- libcurl ----
-- What needs it: "the upstream far".
local function http_user(d)
  for _, upstream in ipairs(d.config.upstreams) do
    if not upstream.stdio then return "the upstream " .. upstream.name end
  end
  if d.generation and d.generation.http_tool ~= "" then return "the tool " .. d.generation.http_tool end
  return d.config.traces ~= "" and "traces.endpoint"
end

local function check_libcurl(d)
  local user = d.config and http_user(d)
  if not user then return end
  local why = d.host.libcurl_problem
  if not why then return add(d, "ok", "libcurl", "libcurl", nil, "libcurl is there, for %s", user) end
  add(d, "error", "libcurl", "libcurl_missing", "apt-get install libcurl4", "%s needs libcurl: %s", user, why)
end

-- ---- upstreams ----
local WORKING = { up = true, stopped = true, ready = true, [""] = true }

-- npx leaves a package that it was killed in half unpacked, and finds it so each time.
local function npx_folder(words)
  local broken = words:find "Cannot find module" or words:find "ENOTEMPTY" or words:find "ENOENT" or words:find "EEXIST"
  return broken and words:match "(/[^%s'\"]*/_npx/%x+)"
end

local function check_running(d, u)
  local name, state, why, breaker = text(u.name), text(u.state), text(u.last_error), text(u.breaker)
  local words = text(u.last_stderr)
  local folder = not WORKING[state] and npx_folder(words)
  if words ~= "" and not why:find(words, 1, true) then why = why .. (why ~= "" and "; " or "") .. "it wrote last: " .. words end
  if folder then
    add(d, "error", "upstreams", "npx_cache_corrupt", "rm -r " .. ui.word(folder), "%s is %s: %s", name, state, why)
  elseif state == "starting" and text(u.last_error) ~= "" then -- a reload would not make it answer
    add(d, "error", "upstreams", "upstream_starting", "run its command by hand: it must answer initialize, then tools/list",
        "%s is starting again: %s", name, why)
  elseif state == "starting" then
    add(d, "warning", "upstreams", "upstream_starting", "wait, then repeat this check",
        "%s is starting: its tools are missing until it has listed them%s", name, why ~= "" and "; " .. why or "")
  elseif not WORKING[state] then
    add(d, "error", "upstreams", "upstream_down", reload_of(d), "%s is %s: %s", name, state,
        why ~= "" and why or "it gave no reason")
  elseif breaker ~= "" and breaker ~= "closed" then
    add(d, "warning", "upstreams", "upstream_paused", "toolgate call one of its tools when it works again",
        "%s failed repeatedly, its breaker is %s: %s", name, breaker, why)
  else
    local tools = number(u, "tools")
    add(d, "ok", "upstreams", "upstream", nil, "%s is %s, %d tool%s", name, state ~= "" and state or "configured", tools,
        tools == 1 and "" or "s")
  end
end

local function check_upstreams(d)
  if d.status and d.status.upstreams ~= nil then
    for u in each(d.status.upstreams) do check_running(d, u) end
    return
  end
  for _, u in ipairs(d.config and d.config.upstreams or {}) do
    if not u.stdio then
      add(d, "ok", "upstreams", "upstream", nil, "%s is tried when the daemon runs", u.name)
    elseif u.problem then
      add(d, "error", "upstreams", "command_missing", "install it, or correct `command`", "%s: %s", u.name, u.problem)
    else
      add(d, "ok", "upstreams", "upstream", nil, "%s: its command is there", u.name)
    end
  end
end

-- ---- policies ----
-- Compares what `serve --check` reports of the files with what the daemon serves.
local function check_policies(d)
  local before, g = #d.findings, d.generation
  local serves_nothing = g and g.tools == 0 and #d.config.upstreams == 0 -- as after the installation
  for _, line in ipairs(d.state.errors) do
    add(d, "error", d.config and "policies" or "config", "load_error",
        "correct it; toolgate serve --check repeats this check", "%s", line)
  end
  for _, line in ipairs(d.state.warnings) do
    add(d, "warning", "policies", "load_warning",
        serves_nothing and "name a server in upstreams = { … }, or write a policy: toolgate new" or nil, "%s", line)
  end
  for _, mode in ipairs(g and g.expired or {}) do -- of the files as they are, not as they are served
    add(d, "warning", "policies", "shadow_expired", "toolgate shadow says whether it is safe to enforce", "%s: %s",
        mode.file, mode.sentence)
  end
  local failed = text(status(d, "reload").errors)
  if #d.state.errors == 0 and failed ~= "" then
    for _, line in ipairs(ui.lines(failed)) do
      add(d, "error", "policies", "reload_failed", reload_of(d),
          "the last reload failed, and the daemon serves what it had: %s", line)
    end
  end
  for one in each(status(d, "generation").unmatched) do
    local waits = one.state == "waiting"
    add(d, waits and "warning" or "error", "policies", waits and "policy_waits" or "policy_without_tool",
        waits and "start its upstream: see above" or "name a tool that the server has: toolgate tools lists them",
        "%s guards no tool: '%s' %s%s", text(one.file), text(one.tool), waits and "is not listed yet" or "", text(one.why))
  end
  for one in each(status(d, "quarantined")) do
    add(d, "error", "policies", "policy_quarantined",
        ("correct the file; or remove its lines from %s and restart"):format(text(one.list)), "%s is quarantined: %s",
        text(one.file), text(one.why))
  end
  for one in each(status(d, "policy_faults")) do
    add(d, "warning", "policies", "policy_fault", "correct the policy, and add the case as an example",
        "the policy of '%s' failed %d times, last: %s", text(one.tool) ~= "" and one.tool or text(one.gateway),
        number(one, "count"), text(one.last))
  end
  for one in each(status(d, "schema_lax")) do
    local tool, path = text(one.tool), text(one.path)
    add(d, "warning", "policies", "schema_lax", ("a policy of '%s' with %s makes it permanent, %s forbids it; or toolgate "
        .. "session --forget-lax %s"):format(tool, text(one.permanent), text(one.forbidden), ui.word(tool .. ":" .. path)),
        "the server of '%s' takes what its schema forbids at '%s' (%s): calls with it pass", tool, path,
        text(one.code))
  end
  if #d.findings == before and g then
    local examples = d.state.examples
    add(d, "ok", "policies", "policies", nil, "%d %s, %d %s", g.policies, g.policies == 1 and "policy loads" or "policies load",
        examples, examples == 1 and "example holds" or "examples hold")
  end
end

-- ---- traces and metrics ----
local function check_traces(d)
  if not d.status or d.status.traces == nil then return end
  local traces = status(d, "traces")
  local endpoint, why = text(traces.endpoint), text(traces.last_error)
  if traces.state == "down" then
    add(d, "warning", "traces", "traces_down", "start the collector, or correct traces.endpoint",
        "spans cannot be sent: %s", why ~= "" and why or endpoint)
  elseif number(traces, "rejected") ~= 0 then
    add(d, "warning", "traces", "traces_rejected", "correct traces.endpoint or traces.headers",
        "%s has rejected %d spans: %s", endpoint, number(traces, "rejected"), why)
  elseif number(traces, "dropped") ~= 0 then
    add(d, "warning", "traces", "traces_dropped", "lower traces.sample, or give the collector more room",
        "%d spans were dropped since the daemon's start", number(traces, "dropped"))
  else
    add(d, "ok", "traces", "traces", nil, "%s: %d spans sent", endpoint, number(traces, "sent"))
  end
end

local function check_metrics(d)
  local address = d.config and d.config.metrics or ""
  if address == "" or not d.status then return end
  local path, host, port = address:match "^unix:(.*)", address:match "^%[?(.-)%]?:(%d+)$"
  local problem = cli.connect(path or host, port)
  if problem then
    return add(d, "error", "metrics", "metrics_down",
               "read why in the daemon's log (http_endpoint…), then choose another metrics.listen",
               "%s does not accept: %s", address, problem)
  end
  add(d, "ok", "metrics", "metrics", nil, "%s accepts", address)
end

-- ---- the host ----
local function check_limits(d)
  if d.status or not d.config then return end -- a daemon says itself how many connections are possible
  local connections, may = d.config.connections, d.host.open_files_max
  if may and may < connections + FILES_BESIDE then
    return add(d, "warning", "limits", "files_below_connections",
               ("ulimit -Hn %d, or LimitNOFILE= in the unit"):format(connections + FILES_BESIDE),
               "limits.connections is %d, but a process started from here may open %d files", connections, may)
  end
  add(d, "ok", "limits", "limits", nil, "open files suffice for %d connections", connections)
end

local function check_clock(d)
  local now_ms = cli.now()
  if now_ms < CLOCK_LEAST_MS then
    return add(d, "error", "clock", "clock_unset", "timedatectl set-ntp true", "the clock says a time before 2025")
  end
  -- It was set if the time that it says has passed since the daemon's start is not what has.
  local ahead_ms = d.status and now_ms - number(d.status, "started_ms") - number(d.status, "uptime_s") * 1000 or 0
  if math.abs(ahead_ms) >= CLOCK_JUMP_MS then
    add(d, "warning", "clock", "clock_jumped",
        "timedatectl set-ntp true; read the records' times before the jump with care",
        "the clock was set %d s %s since the daemon started", math.floor(math.abs(ahead_ms) / 1000),
        ahead_ms < 0 and "back" or "ahead")
  end
  if not d.host.clock_is_synchronised then
    return add(d, "warning", "clock", "clock_unsynchronised", "timedatectl set-ntp true",
               "the kernel's clock is not synchronised: daemons that share a ledger need the same time")
  end
  add(d, "ok", "clock", "clock", nil, "the clock is synchronised")
end

-- The values of a unit's last lines "KEY=…".
local function read_unit(path)
  local values = {}
  for _, line in ipairs(ui.lines((cli.file(path)) or "")) do
    local key, value = line:match "^(%a+)=%s*(.-)%s*$"
    if key then values[key] = value end
  end
  return values
end

local function check_unit_program(d, unit, command)
  local path = command:match "^%S*"
  local real = cli.real_path(path)
  if not cli.access(path, "x") then
    add(d, "error", "systemd", "unit_program_missing",
        "install toolgate again, or correct ExecStart= (systemctl edit --full toolgate.service)",
        "%s starts %s, which cannot be run", unit, path)
  elseif d.program and real and real ~= d.program then
    add(d, "warning", "systemd", "unit_program_differs", "install one of them, and restart the service",
        "%s starts %s, this program is %s", unit, path, d.program)
  else
    add(d, "ok", "systemd", "unit", nil, "%s starts this program", unit)
  end
end

local function check_unit(d)
  local unit = find_unit()
  if not unit then
    local runs = cli.access("/run/systemd/system", "")
    return add(d, runs and "warning" or "ok", "systemd", "unit_missing", runs and "make install, or install the package" or nil,
               "no unit toolgate.service is installed")
  end
  local values = read_unit(unit)
  check_unit_program(d, unit, values.ExecStart or "")
  local may, connections = tonumber((values.LimitNOFILE or ""):match "^%d+") or 0, d.config and d.config.connections or 0
  if may ~= 0 and may < connections + FILES_BESIDE then
    add(d, "warning", "systemd", "unit_files_below_connections",
        ("systemctl edit toolgate.service, with [Service] LimitNOFILE=%d"):format(2 * connections),
        "%s has LimitNOFILE=%d, less than limits.connections (%d) needs", unit, may, connections)
  end
end

local function check_sandbox(d)
  local strict, lenient, as_daemon = 0, 0, 0
  for _, u in ipairs(d.config and d.config.upstreams or {}) do
    if u.sandbox == "strict" then strict = strict + 1 elseif u.sandbox then lenient = lenient + 1 end
    if u.as_daemon then as_daemon = as_daemon + 1 end
  end
  -- Even a confined process of root owns most files, and reads what its sandbox does not hide.
  if as_daemon > 0 and daemon_user(d) == 0 then
    add(d, "warning", "sandbox", "daemon_as_root", "run the daemon as a user of its own, as the unit of the package does, "
        .. "or name upstreams.NAME.user", "the daemon runs as root, and so do %d of its upstreams", as_daemon)
  end
  local abi, seccomp = d.host.landlock, d.host.seccomp
  if abi > 0 and seccomp then
    return add(d, "ok", "sandbox", "sandbox", nil, "Landlock ABI %d and seccomp: sandboxes hold%s", abi,
               abi < 6 and ", except for signals between processes of one user (Linux 6.12)" or "")
  end
  add(d, strict > 0 and "error" or lenient > 0 and "warning" or "ok", "sandbox", "sandbox_unsupported",
      strict + lenient > 0 and "Linux 5.13 or later, with landlock in the lsm= of its command line" or nil,
      "this kernel has no %s: %d upstreams with a sandbox do not start, %d run unconfined",
      abi > 0 and "seccomp filters" or "Landlock", strict, lenient)
end

return { check_config, check_socket, check_version, check_connections, check_state, check_decisions, check_redis,
         check_libcurl, check_upstreams, check_policies, check_traces, check_metrics, check_limits, check_clock, check_unit,
         check_sandbox }
