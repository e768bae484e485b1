-- Fair turns: a client that sends many slow calls at once does not keep others waiting. No spec looks at a clock: the
-- daemon is stopped while all clients send, and its own count of calls tells what it served before what.
local http = require "http"
local json = require "cjson"
local socket = require "socket"
local signal = require "posix.signal"
local unistd = require "posix.unistd"

local CALLS, OTHER = 200, 65534 -- nobody. So many calls fit into a socket's buffer
local PING = '{"jsonrpc":"2.0","id":3,"method":"ping"}\n'
local STATUS = '{"jsonrpc":"2.0","id":0,"method":"toolgate/status"}\n'

-- A policy whose check takes some milliseconds: longer than a turn.
local function slow(name)
  return ([==[
-- %s: takes long to judge. For specs.
return tool "%s" {
  description = "Wait.", effects = "read", schema = params {},
  check = function()
    local n = 0
    for i = 1, 600000 do n = n + i %% 7 end
  end,
}
]==]):format(name, name)
end

local function line(id, name)
  return ('{"jsonrpc":"2.0","id":%d,"method":"toolgate/check","params":{"name":"%s","arguments":{}}}\n'):format(id, name)
end

local function lines(count, name)
  local parts = {}
  for id = 1, count do parts[id] = line(id, name) end
  return table.concat(parts)
end

local function http_request(what, body)
  return ("%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s")
    :format(what, #(body or ""), body or "")
end

local function checks_of(status, name)
  for _, tool in ipairs(status.tools) do if tool.tool == name then return tool.calls end end
  return 0
end

describe("a turn", function()
  local gate, address, directory
  before_each(function()
    directory = process.directory()
    address = ("unix:%s/metrics.sock"):format(directory)
    gate = daemon.start { policies = { ["slow.lua"] = slow "slow", ["other.lua"] = slow "other" },
      config = ("return { socket_mode = '0666', metrics = { listen = %q, page = true } }"):format(address) }
  end)

  local function sends_many(client)
    assert(client.stream:send(lines(CALLS, "slow")))
  end

  -- All that `send` sends waits when the daemon looks, however busy the machine is.
  local function while_it_stops(send)
    gate.child:signal(signal.SIGSTOP)
    send()
    gate.child:signal(signal.SIGCONT)
  end

  -- What was sent is answered, in its order.
  local function hears_all(client)
    for id = 1, CALLS do
      local message = client:hears()
      assert.equal(id, message.id)
      assert.truthy(message.result)
    end
  end

  local function is_early(status)
    local done = checks_of(status, "slow")
    assert.is_true(done < CALLS / 2, done .. " calls were served first")
  end

  it("ends by time: a ping and a status come before the rest of 200 calls, which are all answered in order", function()
    local many, one = gate:connect(), gate:connect()
    while_it_stops(function()
      sends_many(many)
      assert(one.stream:send((PING .. STATUS):rep(5)))
    end)
    for _ = 1, 5 do
      assert.same({}, one:hears().result)
      is_early(one:hears().result)
    end
    hears_all(many)
    assert.equal(CALLS, checks_of(one:asks "toolgate/status", "slow"))
  end)

  it("ends by time on each of four connections", function()
    local many, one = {}, gate:connect()
    for i = 1, 4 do many[i] = gate:connect() end
    while_it_stops(function()
      for _, client in ipairs(many) do assert(client.stream:send(lines(CALLS / 4, "slow"))) end
      assert(one.stream:send(STATUS:rep(5)))
    end)
    for _ = 1, 5 do is_early(one:hears().result) end
    for _, client in ipairs(many) do
      for id = 1, CALLS / 4 do assert.equal(id, client:hears().id) end
    end
  end)

  it("comes to the metrics and the page while calls wait", function()
    local many, metrics, page, check = gate:connect(), http.connect(address), http.connect(address), http.connect(address)
    while_it_stops(function()
      sends_many(many)
      assert(metrics:send(http_request "GET /metrics"))
      assert(page:send(http_request "GET /api/status.json"))
      assert(check:send(http_request("POST /api/check.json", '{"tool":"other","arguments":{}}')))
    end)
    local text = http.receive(metrics).body
    local served = 0
    for count in text:gmatch '\ntoolgate_calls_total{[^}]*tool="slow"[^}]*} (%d+)' do served = served + count end
    assert.is_true(served < CALLS / 2, served .. " calls were served before the metrics")
    served = json.decode(http.receive(page).body).counters.checks
    assert.is_true(served < CALLS / 2, served .. " calls were served before the page")
    assert.equal(200, http.receive(check).status)
    hears_all(many)
  end)

  it("ends between two HTTP requests, too", function()
    local one, streams = gate:connect(), {}
    while_it_stops(function()
      for i = 1, 200 do
        streams[i] = http.connect(address)
        assert(streams[i]:send(http_request("POST /api/check.json", '{"tool":"slow","arguments":{}}')))
      end
      assert(one.stream:send(STATUS:rep(4)))
    end)
    for _ = 1, 4 do
      local counts = one:hears().result.metrics
      local done = counts.requests - counts.open
      assert.is_true(done < #streams / 2, done .. " requests were served first")
    end
    for _, stream in ipairs(streams) do assert.equal(200, http.receive(stream).status) end
    assert.equal(#streams, one:asks "toolgate/status".metrics.requests)
  end)

  it("handles what a client has sent before it closed", function()
    local many = gate:connect()
    sends_many(many)
    many.stream:close()
    local one = gate:connect()
    process.eventually("all is served", function() return checks_of(one:asks "toolgate/status", "slow") == CALLS end)
    process.eventually("it is gone", function() return one:asks "toolgate/status".connections.open == 1 end)
  end)

  it("answers a client that sends no more before its answers come", function()
    local many = gate:connect()
    sends_many(many)
    many.stream:shutdown "send"
    hears_all(many)
    assert.same({}, many:hears_the_end())
  end)

  describe("of tools that are registered", function()
    local TOOLS = 150

    -- Each with patterns of its own, which take long to compile.
    local function registration(id)
      local tools = {}
      for i = 1, TOOLS do
        local properties = {}
        for k = 1, 20 do properties[k] = ('"p%d":{"type":"string","pattern":"^(a%d|b%d)+x?$"}'):format(k, i, k) end
        tools[i] = ('{"name":"own_%d","inputSchema":{"type":"object","properties":{%s}}}')
          :format(i, table.concat(properties, ","))
      end
      return ('{"jsonrpc":"2.0","id":%d,"method":"toolgate/register","params":{"tools":[%s]}}')
        :format(id, table.concat(tools, ","))
    end

    local function answers_in_order(client)
      assert.equal(TOOLS, #client:answer(1).result.tools)
      assert.equal("pass", client:answer(2).result.verdict)
      assert.is_table(client:answer(3).result)
    end

    it("ends between two of them: others are answered, while the connection's own lines wait", function()
      local one, was_first = gate:connect(), false
      for _ = 1, 20 do -- a busy machine may hold up whoever asks until all are registered
        local many = gate:connect()
        while_it_stops(function()
          assert(many.stream:send(registration(1) .. "\n" .. line(2, "own_150") .. PING))
          assert(one.stream:send(PING:rep(4)))
        end)
        for _ = 1, 4 do one:hears() end
        was_first = #socket.select({ many.stream }, nil, 0) == 0
        answers_in_order(many)
        if was_first then break end
      end
      assert.is_true(was_first)
    end)

    it("ends with its client, or when that sends no more", function()
      local gone, many = gate:connect(), gate:connect()
      assert(gone.stream:send(registration(1) .. "\n" .. line(2, "own_150")))
      gone.stream:close()
      assert(many.stream:send(registration(1) .. "\n" .. line(2, "own_150") .. PING))
      many.stream:shutdown "send"
      answers_in_order(many)
      assert.same({}, many:hears_the_end())
      local one = gate:connect()
      process.eventually("both are gone", function() return one:asks "toolgate/status".connections.open == 1 end)
    end)

    it("does not end inside a batch, whose messages are served in their order", function()
      local client = gate:connect()
      client:ask("initialize", { protocolVersion = "2025-03-26", capabilities = {},
                                 clientInfo = { name = "x", version = "1" } })
      local batch = { registration(1), line(2, "own_150"):sub(1, -2), PING:sub(1, -2) }
      assert(client.stream:send("[" .. table.concat(batch, ",") .. "]\n"))
      answers_in_order(client)
    end)
  end)

  if unistd.geteuid() ~= 0 then
    pending("is a user's first: needs root, to change the user")
    return
  end

  it("is a user's first, then a connection's: four connections get no more than another user's one", function()
    local script = ([[
      local streams, line = {}, %q
      for i = 1, 4 do
        streams[i] = require("socket.unix").stream()
        assert(streams[i]:connect(%q))
      end
      for i = 1, 4 do streams[i]:send(line:rep(%d)) end
      io.read()
    ]]):format(line(1, "slow"), gate.socket, CALLS)
    local other = process.start { "setpriv", "--reuid=" .. OTHER, "--regid=" .. OTHER, "--clear-groups", "luajit", "-e", script }
    local one, count = gate:connect(), 100
    process.eventually("the other user is served", function() return checks_of(one:asks "toolgate/status", "slow") > 8 end)
    assert(one.stream:send(STATUS .. lines(count, "other") .. STATUS))
    local before = checks_of(one:hears().result, "slow")
    for id = 1, count do assert.equal(id, one:hears().id) end
    local during = checks_of(one:hears().result, "slow") - before
    assert.is_true(during > count / 3 and during < count * 3, during .. " calls of the other user")
    other:signal(signal.SIGKILL)
    other:wait()
  end)
end)
