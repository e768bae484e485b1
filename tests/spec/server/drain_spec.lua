-- A daemon that stops answers what its connections have sent already; what they send later fails at the sender.
local signal = require "posix.signal"
local sockets = require "posix.sys.socket"
local unistd = require "posix.unistd"

local ECHO = { policies = { ["echo.lua"] = fixtures.echo } }
local CALL = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}\n'

local function assert_results(count, lines)
  assert.equal(count, #lines, lines[#lines])
  for _, line in ipairs(lines) do assert.truthy(line:find('"result"', 1, true), line) end
end

describe("a daemon that stops", function()
  it("makes the calls that were sent before, also those that it has not read", function()
    local gate, client = daemon.open(ECHO)
    assert.is_true(client:hears_only_a_ping())
    gate:signal(signal.SIGSTOP)
    client.stream:send(CALL:format(1):rep(300)) -- their replies fit the queue of a client that does not read yet
    gate:signal(signal.SIGTERM)
    gate:signal(signal.SIGCONT)
    assert_results(300, client:hears_the_end())
    assert.same({ "exited", 0 }, { gate.child:wait() })
    assert.is_nil(io.open(gate.socket))
  end)

  it("accepts the connections that wait", function()
    local gate = daemon.start(ECHO)
    gate:signal(signal.SIGSTOP)
    local waiting = {}
    for i = 1, 100 do
      waiting[i] = gate:connect()
      waiting[i].stream:send(CALL:format(i))
    end
    gate:signal(signal.SIGTERM)
    gate:signal(signal.SIGCONT)
    for _, client in ipairs(waiting) do assert_results(1, client:hears_the_end()) end
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)

  it("hears the first line of a connection that it has accepted just now", function()
    local gate = daemon.start(ECHO)
    local operator, client = gate:connect(), gate:connect()
    process.eventually("both are accepted", function() return operator:asks("toolgate/status").connections.open == 2 end)
    gate:signal(signal.SIGTERM)
    gate:logs " daemon_stopping "
    client.stream:send(CALL:format(1))
    assert_results(1, client:hears_the_end())
  end)

  it("ends at the second signal, also with a request at a server", function()
    local directory = process.directory()
    process.write(directory .. "/library.json", '{"resources":[{"uri":"book:///slow"}]}')
    local gate = daemon.start { config = ([[return { upstreams = { books = { command = "python3",
      args = { "-SE", "%s/tests/support/library_server.py" }, env = { LIBRARY = "%s/library.json" } } } }]])
      :format(daemon.root, directory) }
    local client, operator = gate:connect(), gate:connect()
    process.eventually("it is listed", function() return #client:asks("resources/list", {}).resources == 1 end)
    client:say { jsonrpc = "2.0", id = 1, method = "resources/read", params = { uri = "book:///slow" } }
    process.eventually("it is asked", function()
      return operator:asks("toolgate/status").connections.calls_in_flight == 1
    end)
    gate:signal(signal.SIGTERM)
    gate:logs " daemon_stopping "
    gate:signal(signal.SIGTERM)
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)

  it("also makes a call that comes as it would have ended for want of clients", function()
    local gate = daemon.start { arguments = { "--idle", "2" }, policies = { ["slow.lua"] = [[return tool "slow" {
      description = "Wait.", effects = "read", schema = params {}, exec = { "sleep", "3" } }]] } }
    gate:signal(signal.SIGSTOP)
    local client = gate:connect()
    client.stream:send((CALL:format(1):gsub('"echo","arguments":{"text":"x"}', '"slow"')))
    gate:signal(signal.SIGTERM)
    gate:signal(signal.SIGCONT)
    assert_results(1, client:hears_the_end())
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)

  it("lets fail at the sender what comes later", function()
    local gate = daemon.start { policies = { ["slow.lua"] = [[return tool "slow" { description = "Wait.", effects = "read",
      schema = params {}, exec = { "sleep", "1" } }]] } }
    local busy, idle = gate:connect(), gate:connect()
    busy.stream:send((CALL:format(1):gsub('"echo","arguments":{"text":"x"}', '"slow"')))
    process.eventually("the call is in flight", function()
      return idle:asks("toolgate/status").connections.calls_in_flight == 1
    end)
    gate:signal(signal.SIGTERM)
    assert.same({}, idle:hears_the_end())
    process.eventually("the busy one is drained", function() return not busy.stream:send "\n" end)
    assert_results(1, busy:hears_the_end())
  end)
end)

-- As systemd does it: the socket stays, one daemon takes the place of another.
describe("a daemon that takes the place of another", function()
  local ROUNDS, CALLERS = 6, 2

  it("gets the calls that the other did not get: none is lost", function()
    local directory = process.directory()
    local path = directory .. "/handed.sock"
    local fd = assert(sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM, 0))
    assert(sockets.bind(fd, { family = sockets.AF_UNIX, path = path }))
    assert(sockets.listen(fd, 64))
    local function start()
      return daemon.start { policies = ECHO.policies, no_socket = true, socket = path, descriptors = { [fd] = 3 },
                            environment = { LISTEN_FDS = "1", LISTEN_PID = "own pid" } }
    end
    local callers = {}
    for i = 1, CALLERS do
      callers[i] = process.start({ "sh", "-c", ([[
        while [ ! -e %s/over ]; do
          "%s" call echo '{"text":"here"}' --socket %s >> %s/got 2>> %s/lost
        done]]):format(directory, daemon.binary, path, directory, directory) }, { environment = { TOOLGATE_X = "" } })
    end
    local got = 0
    for _ = 1, ROUNDS do
      local gate = start()
      gate:logs " daemon_ready "
      process.eventually("calls go on", function()
        local now = #process.read(directory .. "/got")
        local more = now > got
        got = now
        return more
      end)
      gate:stop()
    end
    local last = start()
    last:logs " daemon_ready "
    process.write(directory .. "/over", "")
    for _, caller in ipairs(callers) do caller:wait() end
    last:stop()
    assert.equal("", process.read(directory .. "/lost"))
    unistd.close(fd)
  end)
end)
