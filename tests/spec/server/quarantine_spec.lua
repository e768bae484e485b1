-- Quarantine: a policy that ended the process twice does not run again until its file changes. Nothing in the sandbox can
-- stall, so the specs write the watchdog's file themselves (tests/unit/sandbox/watchdog.c tests the watchdog).
local ffi = require "ffi"
local signal = require "posix.signal"

ffi.cdef [[
  typedef struct { uint64_t low, high; } toolgate_spec_hash;
  toolgate_spec_hash XXH3_128bits(const void *data, size_t length);
]]
local xxhash = ffi.load "libxxhash.so.0"

local function line_of(file, source)
  return bit.tohex(xxhash.XXH3_128bits(source, #source).low, 16) .. " stall " .. file .. "\n"
end

describe("a policy that stalled the process", function()
  local directory, policies, list
  before_each(function()
    directory = process.directory()
    policies, list = directory .. "/policies", directory .. "/s.state/quarantine"
    os.execute("mkdir " .. policies .. "; mkdir -m 700 " .. directory .. "/s.state")
    process.write(policies .. "/stuck.lua", (fixtures.echo:gsub("echo", "stuck")))
    process.write(policies .. "/echo.lua", fixtures.echo)
  end)

  local function two_stalls(source)
    return line_of(policies .. "/stuck.lua", source or process.read(policies .. "/stuck.lua")):rep(2)
  end

  local function tell(source)
    process.write(list, two_stalls(source))
  end

  local function start(more)
    local given = { policies = policies, socket = directory .. "/s" }
    for key, value in pairs(more or {}) do given[key] = value end
    return daemon.start(given)
  end

  it("fails its tool's calls as policy_error, leaves other tools alone, and is logged with the fix", function()
    tell()
    local gate = start()
    local client = gate:connect()
    local refused = client:calls("stuck", { text = "x" })
    assert.equal("policy_error", client_of.verdict(refused).error_class)
    assert.is_not_true(client:calls("echo", { text = "x" }).isError)
    local logged = gate:logs " policy_quarantined "
    assert.truthy(logged:find("stuck.lua", 1, true), logged)
    golden.check("log", "policy: quarantined", logged)
    local told = client:asks("toolgate/status").quarantined
    assert.same({ 1, "stuck", policies .. "/stuck.lua", list }, { #told, told[1].tool, told[1].file, told[1].list })
    local _, frame = process.run { daemon.binary, "top", "--once", "--socket", gate.socket }
    assert.matches("stuck.lua is quarantined: %S", frame)
  end)

  it("is not run at start, even if it would stall in an example", function()
    process.write(policies .. "/stuck.lua", [[
      while true do end
      return tool "stuck" { run = function() end, examples = { { "stalls", args = {}, gives = "pass" } } }]])
    tell()
    assert.is_true(start():connect():calls("stuck", {}).isError)
  end)

  it("is retried when its file changes, also by a running daemon", function()
    tell()
    local gate = start()
    local client = gate:connect()
    assert.is_true(client:calls("stuck", { text = "x" }).isError)
    process.write(policies .. "/stuck.lua", (fixtures.echo:gsub("echo", "stuck")) .. "-- fixed\n")
    gate:logs " quarantine_lifted "
    assert.truthy(text(client:calls("stuck", { text = "x" })):find("x", 1, true))
    assert.is_nil(client:asks("toolgate/status").quarantined)
    assert.equal("", process.read(list))
  end)

  it("stays quarantined over reloads and restarts that do not change it", function()
    tell()
    local gate = start()
    process.write(policies .. "/echo.lua", fixtures.echo .. "-- other\n")
    gate:logs " reload_done "
    assert.is_true(gate:connect():calls("stuck", { text = "x" }).isError)
    gate:stop()
    assert.is_true(start():connect():calls("stuck", { text = "x" }).isError)
  end)

  it("but was changed before the start is taken off the list", function()
    tell "what it was when it stalled"
    local gate = start()
    assert.is_not_true(gate:connect():calls("stuck", { text = "x" }).isError)
    gate:logs " quarantine_lifted "
    gate:stop()
    assert.is_nil(io.open(list)) -- an empty list is removed when the daemon stops
  end)

  it("is read from the configured state folder, or from systemd's", function()
    os.execute(("mkdir %s/kept %s/given"):format(directory, directory))
    process.write(directory .. "/kept/quarantine", two_stalls())
    process.write(directory .. "/given/quarantine", two_stalls())
    local by_config = start { config = ("return { state = '%s/kept' }"):format(directory) }
    assert.is_true(by_config:connect():calls("stuck", { text = "x" }).isError)
    by_config:stop()
    local by_systemd = start { environment = { STATE_DIRECTORY = directory .. "/given" } }
    assert.is_true(by_systemd:connect():calls("stuck", { text = "x" }).isError)
  end)

  it("stays quarantined behind malformed lines", function()
    process.write(list, "\n\1garbage\n" .. ("z"):rep(16) .. " x\n" .. ("a"):rep(16) .. " stall \n" .. two_stalls())
    local gate = start()
    assert.is_true(gate:connect():calls("stuck", { text = "x" }).isError)
    gate:logs " quarantine_line_ignored "
  end)

  it("stays quarantined behind an overlong line", function()
    process.write(list, ("z"):rep(200000) .. "\n" .. two_stalls())
    assert.is_true(start():connect():calls("stuck", { text = "x" }).isError)
  end)

  it("is recorded beside a socket whose folder does not exist yet", function()
    local gate = start { socket = directory .. "/made/toolgate.sock" }
    gate:logs " daemon_ready "
    assert.is_nil(gate:log():find("quarantine_unavailable", 1, true))
  end)

  it("cannot be recorded if the state folder is not writable, which is logged", function()
    process.write(directory .. "/file", "no folder")
    local gate = start { config = ("return { state = '%s/file/nowhere' }"):format(directory) }
    assert.truthy(gate:logs(" quarantine_unavailable "):find("state", 1, true))
    assert.is_not_true(gate:connect():calls("echo", { text = "x" }).isError)
  end)

  it("only once runs on, is logged, and is remembered", function()
    process.write(list, line_of(policies .. "/stuck.lua", process.read(policies .. "/stuck.lua")))
    for _ = 1, 2 do
      local gate = start()
      local client = gate:connect()
      assert.is_not_true(client:calls("stuck", { text = "x" }).isError)
      assert.is_nil(client:asks("toolgate/status").quarantined)
      golden.check("log", "policy: suspected", gate:logs " policy_suspected ")
      gate:stop()
    end
    assert.equal(1, select(2, process.read(list):gsub("\n", "\n")))
  end)

  it("only once is forgotten when its file changes", function()
    process.write(list, line_of(policies .. "/stuck.lua", process.read(policies .. "/stuck.lua")))
    local gate = start()
    gate:logs " policy_suspected "
    process.write(policies .. "/stuck.lua", (fixtures.echo:gsub("echo", "stuck")) .. "-- fixed\n")
    process.eventually("it is off the list", function() return process.read(list) == "" end)
  end)

  it("beside 300 others that did so once is quarantined", function()
    local lines = {}
    for i = 1, 300 do lines[i] = line_of("/p/" .. i .. ".lua", "text " .. i) end
    process.write(list, table.concat(lines) .. two_stalls())
    assert.is_true(start():connect():calls("stuck", { text = "x" }).isError)
  end)
end)

describe("a policy that crashes the process", function()
  local directory, policies, list
  before_each(function()
    directory = process.directory()
    policies, list = directory .. "/policies", directory .. "/s.state/quarantine"
    os.execute("mkdir " .. policies .. "; mkdir -m 700 " .. directory .. "/s.state")
    process.write(policies .. "/echo.lua", fixtures.echo)
  end)

  -- It computes until its deadline, which is a second: signals reach the daemon while it runs.
  local busy = [[return tool "busy" { schema = json '{"type":"object"}', run = function() while true do end end, %s }]]

  local function start(more)
    local given = { policies = policies, socket = directory .. "/s", config = "return { limits = { policy_ms = 1000 } }" }
    for key, value in pairs(more or {}) do given[key] = value end
    return daemon.start(given)
  end

  -- The processor time of a process, in hundredths of a second.
  local function cpu(pid)
    local after_name = process.read("/proc/" .. pid .. "/stat"):match "%) (.*)"
    local user, system = after_name:match(("%S+ "):rep(11) .. "(%d+) (%d+)")
    return user + system
  end

  local function crash(gate, number, idle)
    process.eventually("the daemon computes", function() return cpu(gate:pid()) >= idle + 10 end)
    gate:signal(number)
    local how, code = gate.child:wait()
    gate.stopped = true -- what stop_all would do
    process.remove(gate.directory)
    -- The sanitizer handles these signals, too, and exits with a report.
    assert.is_true((how == "killed" and code == number) or (how == "exited" and code ~= 0), how .. " " .. code)
  end

  local function lines_of_crashes()
    return select(2, process.read(list):gsub(" crash [^\n]*busy%.lua\n", ""))
  end

  it("is recorded with its file, and quarantined after the second time", function()
    process.write(policies .. "/busy.lua", busy:format "")
    for n, number in ipairs { signal.SIGSEGV, signal.SIGABRT } do
      local gate = start()
      local client, idle = gate:connect(), cpu(gate:pid())
      client:begins(1, "busy", {})
      crash(gate, number, idle)
      assert.equal(n, lines_of_crashes())
    end
    local client = start():connect()
    assert.equal("policy_error", client_of.verdict(client:calls("busy", {})).error_class)
    assert.is_not_true(client:calls("echo", { text = "x" }).isError)
    assert.matches("crashed the process 2 times", client:asks("toolgate/status").quarantined[1].why)
  end)

  it("while it is loaded does not crash the third start", function()
    process.write(policies .. "/busy.lua", busy:format [[examples = { { "computes", args = {}, gives = "pass" } }]])
    for _ = 1, 2 do crash(start { fails = true }, signal.SIGSEGV, 0) end
    assert.equal(2, lines_of_crashes())
    local client = start():connect()
    assert.equal("policy_error", client_of.verdict(client:calls("busy", {})).error_class)
    assert.is_not_true(client:calls("echo", { text = "x" }).isError)
  end)
end)
