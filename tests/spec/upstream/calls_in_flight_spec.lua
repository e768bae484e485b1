-- Calls in flight over all connections: a slow tool takes only so many, and one user leaves room for the others.
local http_server = require "http_server"

local OTHER = 65534 -- nobody

local slow = [==[
-- slow: for specs.
return tool "slow" { description = "Waits.", effects = "read", schema = json [[{"type":"object"}]],
                     loop = { repeats = 100000, halt = 100000 },
                     http = { "GET %s/slow" } }
]==]

local server
local function start(keys, before)
  server = http_server.start { routes = { ["GET /slow"] = { hang = true } } }
  return daemon.start { policies = { ["slow.lua"] = slow:format(server.address) }, before = before,
                        config = "return { socket_mode = '0666', " .. (keys or "") .. " }" }
end

local function ask(client, id, name)
  client:say { jsonrpc = "2.0", id = id, method = "tools/call",
               params = { name = name or "slow", arguments = client_of.json.decode "{}",
                          _meta = { ["dev.toolgate/session"] = "s" .. id } } }
end

local function in_flight(gate) return gate:status().connections.calls_in_flight end

-- Another user's call, which must get a place: true as soon as it is in flight.
local function other_gets_in(gate)
  local line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}'
  local script = ([[
    local stream = require("socket.unix").stream()
    stream:settimeout(1)
    assert(stream:connect(%q))
    stream:send(%q .. "\n")
    print(stream:receive "*l" or "waits")
  ]]):format(gate.socket, line)
  local _, out, err = process.run { "setpriv", "--reuid=" .. OTHER, "--regid=" .. OTHER, "--clear-groups",
                                    "luajit", "-e", script }
  assert(out ~= "", err)
  return out
end

describe("calls in flight", function()
  it("of one user are at most half of limits.in_flight_all, and another user's call still gets a place", function()
    local gate = start "limits = { in_flight_all = 40 }"
    local clients = { gate:connect(), gate:connect() }
    for i = 1, 20 do ask(clients[i % 2 + 1], i) end
    process.eventually("20 calls are in flight", function() return in_flight(gate) == 20 end)
    ask(clients[1], 99)
    local refused = clients[1]:hears()
    assert.same({ 99, 1017, "too_many_calls_of_user", "limits.in_flight_user" },
                { refused.id, refused.error.code, refused.error.data.name, refused.error.data.key })
    golden.check("protocol", "too many calls of a user", (refused.error.message:gsub("user %S+ ", "user U ")))
    assert.equal("waits\n", other_gets_in(gate))
    clients[2]:asks "ping"
  end)

  it("of one user are at most limits.in_flight_user", function()
    local gate = start "limits = { in_flight_user = 3 }"
    local clients = { gate:connect(), gate:connect() }
    for i = 1, 3 do ask(clients[i % 2 + 1], i) end
    process.eventually("3 calls are in flight", function() return in_flight(gate) == 3 end)
    ask(clients[2], 4)
    assert.equal(1017, clients[2]:hears().error.code)
    assert.equal("waits\n", other_gets_in(gate))
  end)

  it("and wait for their server leave it room to start", function()
    local directory = process.directory()
    process.write(directory .. "/go", "")
    local client = daemon.start { config = ([[
return { limits = { in_flight = 5000 }, upstreams = { plain = {
  command = "sh", args = { "-c", "until [ -e %s/go ]; do sleep 0.05; done; exec luajit %s/tests/support/plain_server.lua" },
  env = { NOTES = "/dev/null" }, in_flight = 5000, timeout = "60s", start_timeout = "60s" } } }]])
      :format(directory, daemon.root) }:connect()
    process.eventually("its tools are listed", function() return #client:asks("tools/list").tools > 0 end)
    os.remove(directory .. "/go")
    client:calls("dies", {})
    for i = 1, 4100 do ask(client, i, "echo") end -- 4,096 may wait
    process.write(directory .. "/go", "")
    local answered = 0
    for _ = 1, 4100 do answered = answered + (client:hears().result.isError and 0 or 1) end
    assert.truthy(answered > 4000, answered) -- none, as long as they took the place of `initialize`
  end)

  it("hold only so many files as the limit of open files leaves to them, and clients can still connect", function()
    local gate = start(nil, { "sh", "-c", 'ulimit -n 256; exec "$@"', "-" }) -- a quarter of 192
    local client = gate:connect()
    for i = 1, 60 do ask(client, i) end
    local refused = {}
    for _ = 1, 60 - 24 do refused[#refused + 1] = client:hears() end
    for _, reply in ipairs(refused) do
      local v = verdict(reply.result)
      assert.same({ "unavailable", "busy", 1 }, { v.error_class, v.code, v.retry and v.retry.after_s or v.after_s })
    end
    golden.check("feedback", "upstream: too many open files", text(refused[1].result))
    assert.equal(24, in_flight(gate))
    for _ = 1, 50 do gate:connect():asks "ping" end
  end)
end)
