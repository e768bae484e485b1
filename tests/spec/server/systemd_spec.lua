-- systemd: socket activation with descriptor 3, readiness notification, and valid unit files.
local sockets = require "posix.sys.socket"
local unistd = require "posix.unistd"
local signal = require "posix.signal"

describe("under systemd", function()
  -- Binds and listens as systemd does before it starts the daemon with the socket as descriptor 3.
  local function listening(path)
    local fd = assert(sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM, 0))
    assert(sockets.bind(fd, { family = sockets.AF_UNIX, path = path }))
    assert(sockets.listen(fd, 64))
    return fd
  end

  it("serves the inherited socket, and does not remove it", function()
    local directory = process.directory()
    local path = directory .. "/handed.sock"
    local fd = listening(path)
    local early = assert(client_of.connect(path)) -- a request before the daemon runs, as systemd allows
    early:say { jsonrpc = "2.0", id = 1, method = "ping" }
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, no_socket = true, socket = path,
                                descriptors = { [fd] = 3 }, environment = { LISTEN_FDS = "1", LISTEN_PID = "own pid" } }
    assert.equal(1, early:hears().id)
    early:close()
    gate:stop()
    local left = client_of.connect(path) -- still listening: the next start serves it
    assert.is_table(left)
    left:close()
    unistd.close(fd)
  end)

  it("ignores descriptors for another process", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo },
                                environment = { LISTEN_FDS = "1", LISTEN_PID = "1" } }
    assert.is_true(gate:connect():hears_only_a_ping())
  end)

  it("sends READY, RELOADING and STOPPING", function()
    local directory = process.directory()
    local path = directory .. "/notify.sock"
    local fd = assert(sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM, 0))
    assert(sockets.bind(fd, { family = sockets.AF_UNIX, path = path }))
    assert(sockets.setsockopt(fd, sockets.SOL_SOCKET, sockets.SO_RCVTIMEO, 20, 0))
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, environment = { NOTIFY_SOCKET = path } }

    local function notified(words)
      local heard = ""
      process.eventually("systemd was notified: " .. words, function()
        local message = sockets.recv(fd, 4096)
        heard = heard .. (message or "") .. "\n"
        return heard:find(words, 1, true)
      end)
      return heard
    end
    notified "READY=1"
    gate:signal(signal.SIGHUP)
    assert.truthy(notified("RELOADING=1"):find("MONOTONIC_USEC=", 1, true))
    notified "READY=1"
    gate:signal(signal.SIGTERM)
    notified "STOPPING=1"
    unistd.close(fd)
    gate:stop()
  end)
end)

describe("the units", function()
  local found = {}
  for path in io.popen("ls systemd/*.* 2>/dev/null"):lines() do found[#found + 1] = path end

  it("are a socket, a service and their templates", function()
    local names = {}
    for _, path in ipairs(found) do names[path:match "[^/]+$"] = true end
    for _, name in ipairs { "toolgate.socket", "toolgate.service", "toolgate@.socket", "toolgate@.service",
                           "toolgate-spawner.socket", "toolgate-spawner.service" } do
      assert(names[name], "systemd/" .. name .. " is missing")
    end
  end)

  it("are accepted by systemd-analyze verify", function()
    local directory = process.directory()
    -- verify requires the program to exist: replace the installed path
    for _, path in ipairs(found) do
      local unit = process.read(path):gsub("/usr/[%w/]*bin/toolgate", daemon.binary)
      local name = path:match("[^/]+$"):gsub("@%.", "@spec.")
      process.write(directory .. "/" .. name, unit)
    end
    local paths = {}
    for path in io.popen("ls " .. directory .. "/*"):lines() do paths[#paths + 1] = path end
    local out, err = process.runs({ "systemd-analyze", "verify", "--man=no", unpack(paths) },
                                  { environment = { SYSTEMD_UNIT_PATH = directory .. ":" } })
    for line in (out .. err):gmatch "[^\n]+" do
      assert.is_nil(line:find(directory, 1, true) or line:find("toolgate", 1, true), line)
    end
  end)

  it("of a user are accepted by systemd-analyze --user verify", function()
    local directory = process.directory()
    for _, name in ipairs { "toolgate.socket", "toolgate.service" } do
      process.write(directory .. "/" .. name, (process.read("systemd/user/" .. name):gsub("/usr/bin/toolgate", daemon.binary)))
    end
    local out, err = process.runs({ "systemd-analyze", "--user", "verify", "--man=no", directory .. "/toolgate.service" },
                                  { environment = { SYSTEMD_UNIT_PATH = directory .. ":", XDG_RUNTIME_DIR = directory } })
    assert.is_nil((out .. err):find("toolgate", 1, true), out .. err)
  end)

  it("are valid with the drop-in from docs/configuration.md", function()
    local directory = process.directory()
    local added = assert(process.read("docs/configuration.md"):match "\n```ini\n(.-)\n```")
    os.execute("mkdir " .. directory .. "/toolgate.service.d")
    for _, name in ipairs { "toolgate.service", "toolgate.socket" } do
      process.write(directory .. "/" .. name, (process.read("systemd/" .. name):gsub("/usr/[%w/]*bin/toolgate", daemon.binary)))
    end
    process.write(directory .. "/toolgate.service.d/upstreams.conf", added)
    local out, err = process.runs({ "systemd-analyze", "verify", "--man=no", directory .. "/toolgate.service" },
                                  { environment = { SYSTEMD_UNIT_PATH = directory .. ":" } })
    assert.is_nil((out .. err):find("upstreams.conf", 1, true), out .. err)
  end)

  it("expose little, by systemd's own measure", function()
    for unit, most in pairs { ["toolgate.service"] = 20, ["toolgate@.service"] = 20, ["toolgate-spawner.service"] = 25 } do
      local directory = process.directory()
      local path = directory .. "/" .. unit:gsub("@%.", "@spec.")
      process.write(path, (process.read("systemd/" .. unit):gsub("/usr/[%w/]*bin/toolgate", daemon.binary)))
      local code, out, err = process.run { "systemd-analyze", "security", "--offline=true", "--threshold=" .. most, path }
      process.remove(directory)
      assert.equal(0, code, unit .. "\n" .. out .. err)
    end
  end)

  it("give a reason for each directive", function()
    for path in io.popen("ls systemd/*.service systemd/user/*.service"):lines() do
      local reason
      for line in io.lines(path) do
        if line:find "^#" then reason = true
        elseif line:find "^%[" or line == "" then reason = nil
        elseif path:find "service" and line:find "^[%w]+=" then
          assert(reason, path .. ": no reason is given for " .. line)
        end
      end
    end
  end)
end)
