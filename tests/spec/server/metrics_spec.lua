-- The metrics: after a dialogue every series has its count, and peers cannot make them many.
local http = require "http"
local metrics = require "metrics"

local POLICIES = {
  ["book.lua"] = [[return tool "book" {
    description = "Books.", effects = "write",
    schema = params { day = int { "Day", min = 1, max = 31 } },
    run = function(args) return { booked = args.day } end }]],
  ["fails.lua"] = [[return tool "fails" {
    description = "Fails.", schema = params {}, run = function() return failed "no luck" end }]],
}

local function start(config)
  local gate = daemon.start { policies = POLICIES, config = config or "return { metrics = { listen = 'unix:metrics.sock' } }" }
  return gate, "unix:" .. gate.directory .. "/metrics.sock"
end

local function call(client, method, session, tool, arguments)
  return client:asks(method, { name = tool, arguments = arguments, _meta = session and { ["dev.toolgate/session"] = session } })
end

describe("the metrics", function()
  it("count every call by tool, verdict and class", function()
    local gate, address = start()
    local client = gate:connect()
    call(client, "tools/call", "a", "book", { day = 1 })
    call(client, "tools/call", "a", "book", { day = 2 })
    call(client, "tools/call", "b", "book", { day = 40 })
    call(client, "tools/call", "b", "book", { day = 3 })
    call(client, "tools/call", "b", "nope", {})
    call(client, "tools/call", "c", "fails", {})
    local found = metrics.scrape(address)
    assert.same({
      ['toolgate_calls_total{tool="book",method="tools/call",verdict="pass",class="ok"}'] = 3,
      ['toolgate_calls_total{tool="book",method="tools/call",verdict="repair",class="invalid_arguments"}'] = 1,
      ['toolgate_calls_total{tool="unknown",method="tools/call",verdict="refuse",class="unknown_tool"}'] = 1,
      ['toolgate_calls_total{tool="fails",method="tools/call",verdict="repair",class="tool_error"}'] = 1,
    }, metrics.of(found, "toolgate_calls_total"))
    assert.equal(1, found.samples['toolgate_problems_total{tool="book",code="maximum"}'])
    assert.equal(1, found.samples['toolgate_problems_total{tool="unknown",code="unknown_tool"}'])
    assert.same({ ['toolgate_repair_chains_total{tool="book",outcome="success"}'] = 1 },
      metrics.of(found, "toolgate_repair_chains_total"))
    assert.same({ ['toolgate_calls_not_run_total{tool="book"}'] = 1, ['toolgate_calls_not_run_total{tool="unknown"}'] = 1 },
      metrics.of(found, "toolgate_calls_not_run_total"))
    assert.equal(6, found.samples["toolgate_call_seconds_count"])
    assert.equal(4, found.samples['toolgate_stage_seconds_count{stage="upstream"}'])
    assert.equal(5, found.samples['toolgate_stage_seconds_count{stage="schema"}'])
    assert.equal(6, found.samples['toolgate_ledger_requests_total{engine="local"}'])
    local operation = 'mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",'
                      .. 'gen_ai_operation_name="execute_tool",gen_ai_tool_name="book"'
    assert.equal(3, found.samples[operation .. "}"])
    assert.equal(1, found.samples[operation .. ',error_type="tool_error"}'])
  end)

  it("count a loop once, and each call that it would have cost", function()
    local gate, address = start()
    local client = gate:connect()
    for _ = 1, 8 do call(client, "tools/call", "a", "fails", {}) end
    local found = metrics.scrape(address)
    local refused = 0
    for series, value in pairs(metrics.of(found, "toolgate_calls_total")) do
      if series:find('class="loop"', 1, true) then refused = refused + value end
    end
    assert.is_true(refused > 0)
    assert.equal(refused, found.samples['toolgate_calls_saved_total{tool="fails"}'])
    assert.equal(1, found.samples['toolgate_loops_total{tool="fails"}'])
    assert.equal(1, found.samples["toolgate_sessions_looping"])
    call(client, "tools/call", "a", "book", { day = 1 })
    assert.equal(0, metrics.scrape(address).samples["toolgate_sessions_looping"])
  end)

  it("count checks and reports apart, and what was not enforced", function()
    local gate, address = start "return { defaults = { mode = 'shadow' }, metrics = { listen = 'unix:metrics.sock' } }"
    local client = gate:connect()
    call(client, "toolgate/check", "a", "book", { day = 40 })
    local checked = call(client, "toolgate/check", "a", "book", { day = 1 })
    client:asks("toolgate/report", { callId = checked.callId, result = { booked = 1 } })
    local found = metrics.scrape(address)
    assert.equal(2, found.samples['toolgate_calls_total{tool="book",method="toolgate/check",verdict="pass",class="ok"}'])
    assert.equal(1, found.samples['toolgate_calls_total{tool="book",method="toolgate/report",verdict="pass",class="ok"}'])
    assert.equal(1, found.samples['toolgate_calls_not_enforced_total{tool="book"}'])
  end)

  it("have one label for all unknown tools", function()
    local gate, address = start()
    local client = gate:connect()
    for i = 1, 500 do call(client, "toolgate/check", "s" .. i, "made_up_" .. i, {}) end
    local found = metrics.scrape(address)
    assert.same({ ['toolgate_calls_total{tool="unknown",method="toolgate/check",verdict="refuse",class="unknown_tool"}'] = 500 },
      metrics.of(found, "toolgate_calls_total"))
    assert.is_nil(found.text:find("made_up_", 1, true))
  end)

  it("are of the daemon, too: connections, generations, reloads, policies", function()
    local gate, address = start()
    local client = gate:connect()
    client:asks "ping"
    local found = metrics.scrape(address)
    assert.equal(2, found.samples.toolgate_tools)
    assert.equal(2, found.samples.toolgate_policies)
    assert.equal(1, found.samples.toolgate_connections)
    assert.equal(1, found.samples.toolgate_last_reload_successful)
    gate:write_policy("book.lua", "return tool 'book' {")
    gate:reload()
    found = metrics.scrape(address)
    assert.equal(0, found.samples.toolgate_last_reload_successful)
    assert.is_true(found.samples['toolgate_reloads_total{result="failed"}'] >= 1) -- the changed file causes one, too
    assert.is_true(found.samples.process_resident_memory_bytes > 1e6)
    assert.is_true(found.samples.process_start_time_seconds > 1.7e9)
  end)

  it("show a Redis that is away", function()
    local gate, address = start [[return { metrics = { listen = 'unix:metrics.sock' },
                                           ledger = { redis = 'unix:/nonexistent/redis.sock' } }]]
    call(gate:connect(), "tools/call", "a", "book", { day = 1 })
    local found = metrics.scrape(address)
    assert.equal(0, found.samples['toolgate_ledger_up{engine="redis"}'])
    assert.equal(1, found.samples['toolgate_ledger_requests_total{engine="local"}'])
    assert.equal("histogram", found.types.toolgate_ledger_redis_seconds)
  end)
end)

describe("the metrics endpoint", function()
  it("answers a request of HTTP/1.0 and closes", function()
    local _, address = start()
    local reply = http.send(address, "GET /metrics HTTP/1.0\r\n\r\n")
    assert.equal(200, reply.status)
    assert.equal("1.0", reply.version)
    assert.equal("close", reply.headers.connection)
    assert.equal(#reply.body, tonumber(reply.headers["content-length"]))
    assert.equal("text/plain; version=0.0.4; charset=utf-8", reply.headers["content-type"])
    metrics.parse(reply.body)
  end)

  it("has a socket that only its owner and group may use", function()
    local _, address = start()
    local mode = require("posix.sys.stat").stat(address:match ":(.*)").st_mode
    assert.equal(tonumber("660", 8), mode % 512)
  end)

  it("takes GET and HEAD of known paths alone", function()
    local _, address = start()
    local head = http.ask(address, "HEAD", "/metrics")
    assert.equal(200, head.status)
    assert.equal("", head.body)
    assert.is_true(tonumber(head.headers["content-length"]) > 1000)
    assert.equal(404, http.get(address, "/").status)
    assert.equal(404, http.get(address, "/metrics/").status)
    assert.equal(200, http.get(address, "/metrics?x=1").status)
    local posted = http.ask(address, "POST", "/metrics", {}, "{}")
    assert.equal(405, posted.status)
    assert.equal("GET, HEAD", posted.headers.allow)
  end)

  it("refuses what it cannot read, and goes on", function()
    local _, address = start()
    assert.equal(400, http.send(address, "hello\r\n\r\n").status)
    assert.equal(400, http.send(address, "GET /metrics HTTP/1.1\r\n\r\n").status)
    assert.equal(431, http.send(address, "GET /metrics HTTP/1.1\r\nX: " .. ("x"):rep(9000) .. "\r\n\r\n").status)
    assert.equal(413, http.send(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n").status)
    assert.equal(501, http.send(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").status)
    local stream = http.connect(address) -- ends in the middle of its request
    stream:send "GET /metr"
    stream:shutdown "send"
    assert.equal("", (select(3, stream:receive "*a")) or "")
    assert.equal(200, http.get(address, "/metrics").status)
  end)

  it("answers the first request of a pipeline", function()
    local _, address = start()
    local reply = http.send(address, ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):rep(3))
    assert.equal(200, reply.status)
    assert.equal(#reply.body, tonumber(reply.headers["content-length"]))
  end)

  it("reads a request that comes in pieces", function()
    local _, address = start()
    local stream = http.connect(address)
    for piece in ("GET /metrics HTTP/1.0\r\nA: b\r\n\r\n"):gmatch "." do stream:send(piece) end
    assert.equal(200, http.receive(stream).status)
  end)

  it("answers many at once while calls go on", function()
    local gate, address = start()
    local client, streams = gate:connect(), {}
    for i = 1, 400 do
      streams[i] = http.connect(address)
      streams[i]:send "GET /metrics HTTP/1.0\r\n\r\n"
      if i % 40 == 0 then call(client, "tools/call", "s" .. i, "book", { day = 1 }) end
    end
    for i = 1, 400 do
      local reply = http.receive(streams[i])
      assert.equal(200, reply.status)
      assert.equal(#reply.body, tonumber(reply.headers["content-length"]))
    end
  end)

  it("drops clients that send or read too slowly, while others are served", function()
    local many = {}
    for i = 1, 300 do
      many[i] = ('{"name":"tool_%d","inputSchema":{"type":"object"}}'):format(i)
    end
    local gate = daemon.start { tools = "[" .. table.concat(many, ",") .. "]",
                                config = "return { metrics = { listen = 'unix:metrics.sock' } }" }
    local address, client = "unix:" .. gate.directory .. "/metrics.sock", gate:connect()
    for i = 1, 300 do call(client, "tools/call", "s", "tool_" .. i, {}) end
    local slow = {}
    for i = 1, 30 do
      slow[i] = http.connect(address)
      if i <= 10 then slow[i]:send "GET /metrics HTTP/1.0\r\n\r\n" end -- and never reads its 700 kB
    end
    local refused = {}
    process.eventually("all of them are dropped", function()
      for i = 11, 20 do slow[i]:send "x" end -- 11 to 20 send a byte now and then, 21 to 30 nothing
      local found = metrics.scrape(address)
      assert.is_true(found.text:len() > 500000)
      call(client, "tools/call", "s", "tool_1", {})
      return found.samples.toolgate_http_timed_out_total == 30
    end)
    for i = 21, 30 do refused[#refused + 1] = http.receive(slow[i]).status end
    assert.same({ 408, 408, 408, 408, 408, 408, 408, 408, 408, 408 }, refused)
    for i = 1, 20 do slow[i]:close() end
  end)

  it("is served on TCP to this host's names alone", function()
    local port = http.free_port()
    local gate = start(("return { metrics = { listen = '127.0.0.1:%d' } }"):format(port))
    local address = "127.0.0.1:" .. port
    gate:logs "metrics_listening"
    for _, host in ipairs { "localhost", "127.0.0.1", address, "localhost:" .. port, "[::1]:1" } do
      assert.equal(200, http.get(address, "/metrics", { "Host: " .. host }).status, host)
    end
    for _, host in ipairs { "evil.example", "evil.example:" .. port, "127.0.0.1.evil.example",
                            "10.0.0.1", "localhost.evil.example", "", "[::1].evil.example", "localhost:1@evil.example",
                            "localhost:evil" } do
      assert.equal(403, http.get(address, "/metrics", { "Host: " .. host }).status, host)
    end
    assert.equal(200, http.send(address, "GET /metrics HTTP/1.0\r\n\r\n").status)
    assert.equal(200, http.get(address, "/metrics", { "Host: " .. address, "Origin: http://" .. address }).status)
    for _, origin in ipairs { "http://evil.example", "null", "http://127.0.0.1:1", "http://" .. address .. ".evil.example" } do
      assert.equal(403, http.get(address, "/metrics", { "Host: " .. address, "Origin: " .. origin }).status, origin)
    end
  end)

  it("needs a token of some length that others cannot read", function()
    local port = http.free_port()
    local function fails(token, mode)
      local file = process.write("/tmp/toolgate-spec-token-" .. port, token)
      os.execute("chmod " .. mode .. " " .. file)
      local words, code = daemon.fails { config =
        ("return { metrics = { listen = '127.0.0.1:%d', token_file = '%s' } }"):format(port, file) }
      os.remove(file)
      assert.equal(1, code)
      return words
    end
    assert.truthy(fails("short", "600"):find("at least 16 characters", 1, true))
    assert.truthy(fails(("x"):rep(32), "644"):find("every user can read", 1, true))
  end)

  it("replaces the socket of a daemon that crashed, and removes its own", function()
    local gate, address = start()
    local path = address:match ":(.*)"
    gate:signal(9)
    gate.child:wait()
    gate.stopped = true
    assert.truthy(require("posix.unistd").access(path))
    local again = daemon.start { socket = gate.socket, config = ("return { metrics = { listen = '%s' } }"):format(address) }
    assert.equal(200, http.get(address, "/metrics").status)
    again:stop()
    assert.is_nil((require("posix.unistd").access(path)))
  end)

  it("is an error at start where another process listens", function()
    local port = http.free_port()
    local config = ("return { metrics = { listen = '127.0.0.1:%d' } }"):format(port)
    start(config)
    local words, code = daemon.fails { config = config }
    assert.equal(1, code)
    assert.truthy(words:find("another process listens on this port", 1, true), words)
  end)

  it("changes with a reload, and stays if the new address cannot be used", function()
    local gate, address = start()
    local other = address .. "2"
    local function configure(listen)
      process.write(gate.directory .. "/toolgate.lua", ("return { metrics = { listen = '%s' } }"):format(listen))
      return gate:connect():asks "toolgate/reload"
    end
    configure(other)
    assert.equal(200, http.get(other, "/metrics").status)
    assert.is_nil((require("posix.unistd").access(address:match ":(.*)")))
    local reply = configure("unix:" .. gate.socket)
    assert.truthy(table.concat(reply.warnings, "\n"):find("metrics are served as before", 1, true))
    gate:logs "metrics_not_changed"
    assert.equal(200, http.get(other, "/metrics").status)
    assert.equal(other, gate:status().metrics.listen)
    process.write(gate.directory .. "/toolgate.lua", "return {}")
    gate:connect():asks "toolgate/reload"
    assert.is_nil(gate:status().metrics)
  end)
end)
