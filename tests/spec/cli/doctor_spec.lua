-- toolgate doctor: each fault is produced, and found with its code and a way out; nothing is changed.
local bit = require "bit"
local ffi = require "ffi"
local clocks = require "clock"
local redis = require "redis"
local signal = require "posix.signal"
local unistd = require "posix.unistd"

ffi.cdef [[ typedef struct { uint64_t low, high; } doctor_hash128;
            doctor_hash128 XXH3_128bits(const void *input, size_t length); ]]

local function doctor(arguments, options)
  local argv = { daemon.binary, "doctor", "--json" }
  for _, argument in ipairs(arguments) do argv[#argv + 1] = argument end
  local code, out, err = process.run(argv, options)
  assert.equal("", err)
  local said = json.decode(out)
  assert.equal(said.errors > 0 and 1 or 0, code)
  return said, code
end

local function find(said, code)
  for _, finding in ipairs(said.findings) do
    if finding.code == code then return finding end
  end
end

-- Asserts that a fault is found with its level; an error or a warning of ours says what to do.
local function finds(said, code, level)
  local finding = find(said, code)
  assert(finding, code .. " is not among " .. json.encode(said.findings))
  assert.equal(level, finding.level, json.encode(finding))
  return finding
end

describe("toolgate doctor", function()
  local directory
  before_each(function() directory = process.directory() end)

  local function config(source) return process.write(directory .. "/toolgate.lua", source) end
  local function start(given)
    return daemon.start(given or { policies = { ["echo.lua"] = fixtures.echo }, config = "return {}" })
  end
  local function of(gate, options) return doctor({ "--socket", gate.socket }, options) end
  -- A thread makes it; until it fails, the status says "up".
  local function has_its_log(gate) return unistd.access(gate:status().decisions.sinks[1].path) == 0 end

  -- With and without the daemon's own options.
  it("finds the mcpServers files of the daemon's command line, and warns of nothing else", function()
    process.write(directory .. "/offer.json", '[{"name":"one","inputSchema":{"type":"object"}}]')
    process.write(directory .. "/mcp.json", json.encode { mcpServers = { files = {
      command = "python3", args = { daemon.root .. "/tests/support/offering.py" },
      env = { OFFER = directory .. "/offer.json" } } } })
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo },
                                arguments = { "--mcp-config", directory .. "/mcp.json" } }
    for _, more in ipairs { {}, { "--mcp-config", directory .. "/mcp.json" } } do
      local said = doctor { "--socket", gate.socket, unpack(more) }
      assert.is_nil(find(said, "config_differs"), json.encode(said.findings))
      assert.is_nil(find(said, "load_warning"), json.encode(said.findings))
      assert.equal(0, said.errors)
    end
  end)

  it("finds no error in a daemon that works, and changes nothing", function()
    local gate = start()
    local function state()
      return select(2, process.run { "find", gate.directory, "-printf", "%p %T@ %m %s\n" })
    end
    process.eventually("the log has its file", function() return has_its_log(gate) end)
    local before = state()
    local said = of(gate)
    assert.equal(0, said.errors, json.encode(said))
    for _, code in ipairs { "socket", "version", "config", "connections", "state", "decisions", "policies" } do
      finds(said, code, "ok")
    end
    assert.equal(before, state())
    assert.matches("^1 policy loads, ", find(said, "policies").what)
  end)

  it("prints a line for each check, and what to do below it", function()
    local code, out = process.run { daemon.binary, "doctor", "--socket", directory .. "/none.sock",
                                    "--config", config "return {}" }
    assert.equal(1, code)
    assert.truthy(out:match "\nerror +socket +[^\n]*none.sock[^\n]*\n +do: toolgate serve ", out)
    assert.truthy(out:match "\n1 error, %d warnings?\n$", out)
  end)

  -- ---- socket and daemon ----

  it("says that no daemon runs, and how to start it", function()
    local file = config "return {}"
    local missing = finds(doctor { "--socket", directory .. "/none.sock", "--config", file }, "socket_missing", "error")
    assert.equal(("toolgate serve -c %s --socket %s/none.sock"):format(file, directory), missing["do"])
    process.write(directory .. "/file", "")
    finds(doctor { "--socket", directory .. "/file", "--config", file }, "socket_is_file", "error")
    local gate = start()
    process.run { "cp", "-a", gate.socket, directory .. "/left.sock" } -- a socket without a listener
    gate:stop()
    finds(doctor { "--socket", directory .. "/left.sock", "--config", file }, "daemon_silent", "error")
  end)

  it("finds a socket that this user may not use", function()
    if unistd.geteuid() ~= 0 then return pending "needs root, to be another user" end
    local gate = start()
    os.execute("chmod 711 " .. directory)
    local argv = { "setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", daemon.binary, "doctor", "--json",
                   "--socket", gate.socket, "--policies", "policies" }
    local _, out = process.run(argv, { directory = "/" })
    local finding = finds(json.decode(out), "socket_forbidden", "error")
    assert.truthy(finding["do"]:find("usermod", 1, true))
  end)

  it("finds a socket that everybody may use", function()
    local gate = start { config = 'return { socket_mode = "0666" }' }
    finds(of(gate), "socket_open_to_all", "warning")
  end)

  it("finds a configuration that the daemon does not have", function()
    local gate = start { config = "return { watch = false }" }
    finds(of(gate), "config", "ok")
    process.write(gate.directory .. "/toolgate.lua", "return { watch = false, turn_idle_s = 5 }")
    assert.equal("toolgate reload --socket " .. gate.socket, finds(of(gate), "config_differs", "warning")["do"])
  end)

  it("finds a limit of open files below the connections", function()
    local gate = start { config = "return { limits = { connections = 3000 } }",
                         before = { "sh", "-c", 'ulimit -n 1000; exec "$@"', "-" } }
    finds(of(gate), "files_below_connections", "warning")
    local code, out = process.run { "sh", "-c", 'ulimit -n 1000; exec "$@"', "-", daemon.binary, "doctor", "--json",
                                    "--socket", directory .. "/none.sock", "--config", config "return {}" }
    assert.equal(1, code)
    finds(json.decode(out), "files_below_connections", "warning")
  end)

  it("finds a daemon of another version", function()
    local version = process.read(daemon.root .. "/src/base/version.h"):match 'TOOLGATE_VERSION "([^"]+)"'
    local other = version:gsub("%d", "9", 1)
    local binary = process.write(directory .. "/toolgate", (process.read(daemon.binary):gsub(
      version:gsub("%p", "%%%0"), other)))
    os.execute("chmod 755 " .. binary)
    local said = of(start { config = "return {}", before = { "sh", "-c", 'shift; exec "' .. binary .. '" "$@"', "-" } })
    local finding = finds(said, "version_differs", "warning")
    assert.truthy(finding.what:find(version, 1, true) and finding.what:find(other, 1, true), finding.what)
  end)

  -- ---- files ----

  it("finds a configuration and policies that do not load", function()
    local file = config "return { limits = { dpeth = 3 } }"
    finds(doctor { "--socket", directory .. "/s", "--config", file }, "load_error", "error")
    os.execute("mkdir " .. directory .. "/policies")
    process.write(directory .. "/policies/broken.lua", "return tool 'x' {")
    local said = doctor { "--socket", directory .. "/s", "--policies", directory .. "/policies" }
    local finding = finds(said, "load_error", "error")
    assert.truthy(finding.what:find("broken.lua:1", 1, true))
  end)

  it("finds a reload that failed", function()
    local gate = start { policies = { ["echo.lua"] = fixtures.echo }, config = "return { watch = false }" }
    gate:write_policy("broken.lua", "return tool 'x' {")
    gate:reload()
    os.remove(gate.policies .. "/broken.lua")
    finds(of(gate), "reload_failed", "error")
  end)

  it("finds a policy whose tool the server does not have", function()
    local gate = start { policies = { ["nowhere.lua"] = [==[
-- nowhere: for specs.
return tool "nowhere" { upstream = "fake/nowhere", examples = {} }
]==] }, config = fixtures.serving("fake", "fake_upstream", {}) }
    process.eventually("the tools are listed", function() return gate:status().upstreams[1].state == "up" end)
    finds(of(gate), "policy_without_tool", "error")
  end)

  it("finds a quarantined policy, without running it", function()
    local policies, source = directory .. "/policies", fixtures.echo
    os.execute("mkdir " .. policies)
    process.write(policies .. "/echo.lua", source)
    local hash = bit.tohex(ffi.load "libxxhash.so.0".XXH3_128bits(source, #source).low, 16)
    os.execute("mkdir -p -m 700 " .. directory .. "/s.state")
    process.write(directory .. "/s.state/quarantine", (hash .. " stall " .. policies .. "/echo.lua\n"):rep(2))
    local gate = start { policies = policies, socket = directory .. "/s" }
    local finding = finds(of(gate), "policy_quarantined", "error")
    assert.truthy(finding["do"]:find(directory .. "/s.state/quarantine", 1, true))
  end)

  it("sends nothing to the terminal that could control it", function()
    local _, out, err = process.run { daemon.binary, "doctor", "--socket", directory .. "/s\27[2J\194\155" }
    assert.truthy(out:find("\\x1b[2J", 1, true), out)
    assert.is_nil((out .. err):find("[\27\194]"))
  end)

  it("finds a state folder that is missing, or open to others", function()
    local file = config(("return { state = '%s/state' }"):format(directory))
    finds(doctor { "--socket", directory .. "/s", "--config", file }, "state_missing", "warning")
    os.execute("mkdir -m 0777 " .. directory .. "/state")
    assert.equal("chmod 0700 " .. directory .. "/state",
                 finds(doctor { "--socket", directory .. "/s", "--config", file }, "state_open", "error")["do"])
  end)

  it("finds a state folder of another user", function()
    if unistd.geteuid() ~= 0 then return pending "needs root, to be another user" end
    local state = directory .. "/state"
    os.execute("chmod 755 " .. directory .. " && mkdir -m 0700 " .. state)
    local gate = start { config = ("return { state = '%s' }"):format(state) }
    os.execute("chown 54321 " .. state) -- a daemon does not start on it
    assert.equal("chown -R 0 " .. state, finds(of(gate), "state_owner", "error")["do"])
  end)

  it("finds a decision log in a folder where everybody may write", function()
    os.execute("mkdir -m 777 " .. directory .. "/shared")
    local gate = start { config = ("return { decisions = { file = '%s/shared/d.ndjson' } }"):format(directory) }
    gate:logs "decisions_folder_open"
    finds(of(gate), "decisions_folder_open", "warning")
  end)

  it("finds a decision log that is off, or cannot be written", function()
    finds(of(start { config = "return { decisions = false }" }), "decisions_off", "warning")
    local gate = start { policies = { ["echo.lua"] = fixtures.echo },
                         config = ("return { decisions = { file = '%s/log/d.ndjson' } }"):format(directory),
                         before = { "sh", "-c", 'mkdir "' .. directory .. '/log"; exec "$@"', "-" } }
    process.eventually("the log has its file", function() return has_its_log(gate) end)
    os.execute("rm -r " .. directory .. "/log")
    process.write(directory .. "/log", "") -- a file in the folder's place
    gate:signal(signal.SIGUSR1)
    gate:connect():calls("echo", { text = "x" })
    process.eventually("the sink is down", function() return gate:status().decisions.sinks[1].state ~= "up" end)
    finds(of(gate), "decisions_down", "error")
  end)

  it("finds a disk that is full", function()
    local state = directory .. "/state"
    local file = config(("return { state = %q }"):format(state))
    local script = ("mkdir -m 700 %s && mount -t tmpfs -o size=1m,mode=700 tmpfs %s && exec %s doctor --json --socket %s/s -c %s")
      :format(state, state, daemon.binary, directory, file)
    local code, out, err = process.run { "unshare", "-m", "sh", "-c", script }
    if err:find("unshare", 1, true) or err:find("mount", 1, true) then return pending "needs to mount" end
    assert.equal(1, code)
    local finding = finds(json.decode(out), "disk_full", "error")
    assert.truthy(finding["do"]:find("df -h " .. state, 1, true))
  end)

  -- ---- what the daemon talks to ----

  it("finds a Redis that is away, with and without a daemon", function()
    local file = config(("return { ledger = { redis = 'unix:%s/redis.sock' } }"):format(directory))
    finds(doctor { "--socket", directory .. "/s", "--config", file }, "redis_down", "error")
    finds(of(start { config = process.read(file) }), "redis_down", "error")
  end)

  it("finds what is wrong with a Redis that is there", function()
    local store = redis.start { arguments = { "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru" } }
    local source = ("return { ledger = { redis = '%s' } }"):format(store:url())
    finds(doctor { "--socket", directory .. "/s", "--config", config(source) }, "redis", "ok")
    local said = of(start { config = source })
    finds(said, "redis", "ok")
    assert.truthy(finds(said, "redis_warning", "warning").what:find("evict", 1, true))
  end)

  it("warns of a Redis on another host without encryption", function()
    local file = config "return { ledger = { redis = 'redis://192.0.2.1:6379' } }"
    finds(doctor { "--socket", directory .. "/s", "--config", file }, "redis_plain", "warning")
  end)

  it("warns of a daemon of root whose upstreams run as root, too", function()
    if unistd.geteuid() ~= 0 then pending "needs root" return end
    local gate = start { config = "return { upstreams = { a = { command = 'cat' } } }" }
    finds(of(gate), "daemon_as_root", "warning")
  end)

  it("finds records that the decision log has dropped, and a reader of it that does not read", function()
    local big = ("x"):rep(100000)
    local function drops(decisions, before)
      local gate = start { policies = { ["echo.lua"] = fixtures.echo }, before = before,
                           config = "return { decisions = " .. decisions .. " }" }
      local client = gate:connect()
      for turn = 1, 450 do client:calls("echo", { text = big .. turn }, client_of.session("s", { turn = turn })) end
      assert.is_true(gate:status().decisions.dropped > 0)
      return gate
    end
    local gate = drops(('{ file = "%s/log", arguments = "full" }'):format(directory),
                       { "prlimit", "--fsize=30000:unlimited" })
    finds(of(gate), "decisions_down", "error")
    process.run { "prlimit", "--pid", tostring(gate:pid()), "--fsize=unlimited" }
    gate:logs "decision_log_up"
    assert.truthy(finds(of(gate), "decisions_dropped", "warning")["do"]:find("disk", 1, true))
    gate:stop()
    gate = drops(('{ file = false, journald = "%s/nobody", arguments = "full" }'):format(directory))
    assert.truthy(finds(of(gate), "decisions_down", "error")["do"]:find("reads", 1, true))
  end)

  it("says what to do where nothing is served, as after the installation", function()
    process.run { "mkdir", directory .. "/policies" }
    local file = config(('return { policies = "%s/policies" }'):format(directory))
    assert.truthy(finds(doctor { "--socket", directory .. "/s", "--config", file }, "load_warning", "warning")["do"])
  end)

  it("finds an upstream that has not answered yet", function()
    local gate = start { late = true, config = [[return { upstreams = { slow = { command = "sleep", args = { "600" } } } }]] }
    assert.equal("starting", gate:status().upstreams[1].state)
    finds(of(gate), "upstream_starting", "warning")
  end)

  it("finds an upstream whose command is missing, with and without a daemon", function()
    local source = "return { upstreams = { gone = { command = 'no-such-command' } } }"
    finds(doctor { "--socket", directory .. "/s", "--config", config(source) }, "command_missing", "error")
    local gate = start { config = source }
    local down = process.eventually("it is down, and is not tried just now", function()
      local found, finding = pcall(finds, of(gate), "upstream_down", "error")
      return found and finding
    end)
    assert.truthy(down.what:find("no-such-command", 1, true))
  end)

  it("finds an upstream whose breaker is open", function()
    local gate = start { policies = { ["far.lua"] = [==[
-- far: for specs.
return tool "far" { description = "For specs.", effects = "read", upstream = "far", schema = json [[{"type":"object"}]],
  http = { "GET /x" } }
]==] }, config = 'return { upstreams = { far = { rest = "http://127.0.0.1:1" } } }' }
    local client = gate:connect()
    process.eventually("the breaker opens", function()
      client:calls("far", {}, client_of.session(tostring(client.last_id)))
      return gate:status().upstreams[1].breaker ~= "closed"
    end)
    finds(of(gate), "upstream_paused", "warning")
  end)

  it("finds that libcurl is missing for what needs it", function()
    process.write(directory .. "/libcurl.so.4", "no library")
    process.write(directory .. "/libcurl-gnutls.so.4", "no library")
    local file = config "return { upstreams = { far = { rest = 'http://127.0.0.1:1' } } }"
    local arguments = { "--socket", directory .. "/s", "--config", file }
    finds(doctor(arguments), "libcurl", "ok")
    local said = doctor(arguments, { environment = { LD_LIBRARY_PATH = directory } })
    assert.equal("apt-get install libcurl4", finds(said, "libcurl_missing", "error")["do"])
    assert.is_nil(find(doctor { "--socket", directory .. "/s", "--config", config "return {}" }, "libcurl"))
  end)

  it("finds a collector of spans that is away", function()
    local gate = start { policies = { ["echo.lua"] = fixtures.echo },
                         config = 'return { traces = { endpoint = "http://127.0.0.1:1/v1/traces" } }' }
    gate:connect():calls("echo", { text = "x" })
    gate:logs "traces_down"
    finds(of(gate), "traces_down", "warning")
  end)

  it("finds a metrics endpoint that does not accept", function()
    local path = directory .. "/metrics.sock"
    local gate = start { config = ('return { metrics = { listen = "unix:%s" } }'):format(path) }
    finds(of(gate), "metrics", "ok")
    os.remove(path)
    finds(of(gate), "metrics_down", "error")
  end)

  -- ---- the host ----

  it("finds a clock that was set since the start, and one that is not that of Redis", function()
    if clocks.cannot then return pending(clocks.cannot) end
    local store = redis.start()
    for offset, word in pairs { [3600] = "back", [-3600] = "ahead" } do
      local gate = start { policies = { ["echo.lua"] = fixtures.echo },
                           config = ("return { ledger = { redis = '%s', timeout_ms = 5000 } }"):format(store:url()),
                           environment = clocks.new(offset).environment }
      local said = of(gate)
      assert.matches("3%d%d%d s " .. word, finds(said, "clock_jumped", "warning").what)
      assert.matches(offset > 0 and "behind" or "ahead of", finds(said, "redis_clock", "warning").what)
    end
    local said = of(start { config = ("return { ledger = { redis = '%s', timeout_ms = 5000 } }"):format(store:url()) })
    assert.is_nil(find(said, "clock_jumped"))
    assert.is_nil(find(said, "redis_clock"))
  end)

  it("finds a unit of systemd that does not start this program, or gives it too few files", function()
    local file = config "return {}"
    local function unit(text)
      process.write(directory .. "/toolgate.service", "[Service]\n" .. text)
      return doctor({ "--socket", directory .. "/s", "--config", file },
                    { environment = { SYSTEMD_UNIT_PATH = directory } })
    end
    finds(unit("ExecStart=" .. daemon.binary .. " serve\nLimitNOFILE=65536\n"), "unit", "ok")
    finds(unit("ExecStart=/nowhere/toolgate serve\n"), "unit_program_missing", "error")
    finds(unit("ExecStart=/bin/sh serve\n"), "unit_program_differs", "warning")
    finds(unit("ExecStart=" .. daemon.binary .. "\nLimitNOFILE=1024\n"), "unit_files_below_connections", "warning")
  end)
end)
