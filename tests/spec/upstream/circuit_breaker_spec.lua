-- The circuit breaker: it opens after repeated failures, then lets one probe through, and closes if that succeeds.
local http_server = require "http_server"

local OPENS_AFTER = 5 -- src/upstream/circuit_breaker.h

describe("an upstream that fails", function()
  local gate, notes

  local function serves(timeout)
    gate = daemon.start { config = ([[
return { upstreams = { plain = { command = "luajit", args = { "%s/tests/support/plain_server.lua" }, timeout = "%s",
                                 env = { NOTES = "%s" } } } }
]]):format(daemon.root, timeout, notes) }
  end

  before_each(function()
    notes = process.directory() .. "/notes"
    serves "100ms"
  end)

  -- Each call has its own session, so that no budget interferes.
  local sessions = 0
  local function calls(tool)
    sessions = sessions + 1
    return gate:connect():calls(tool, tool == "echo" and { text = "x" } or {}, session("s" .. sessions))
  end

  local function upstream()
    return gate:status().upstreams[1]
  end

  local function noted(word)
    return select(2, process.read(notes):gsub(word .. "\n", ""))
  end

  local function opens()
    for _ = 1, OPENS_AFTER do assert.equal("timeout", verdict(calls "holds").code) end
    assert.equal("open", upstream().breaker)
  end

  it("five times in a row is not called any more, and the feedback gives the time of the next try", function()
    opens()
    gate:logs "breaker_open upstream=plain failures_in_a_row=5"
    local result = calls "echo"
    assert.same({ "refuse", "unavailable", "breaker_open", 1 }, { verdict(result).verdict, verdict(result).error_class,
                verdict(result).code, verdict(result).after_s })
    golden.check("feedback", "circuit breaker: open", text(result), { ["%d+ ms"] = "<ms> ms" })
    assert.equal(0, noted "echo")
  end)

  it("and is called again by one session costs it the transient budget, and works in its next turn",
     function()
    opens()
    local client = gate:connect()
    local function asks(turn)
      return verdict(client:calls("echo", { text = "x" }, session("waits", { turn = turn })))
    end
    for _ = 1, 3 do assert.equal("breaker_open", asks(1).code) end
    assert.same({ "refuse", "transient_budget" }, { asks(1).verdict, asks(1).code })
    process.eventually("it is asked again", function() return verdict(calls "echo").verdict == "pass" end)
    assert.equal("pass", asks(2).verdict)
  end)

  it("consumes no limits while the breaker is open", function()
    gate:stop()
    gate = daemon.start { config = ([[
return { upstreams = { plain = { command = "luajit", args = { "%s/tests/support/plain_server.lua" }, timeout = "100ms",
                                 env = { NOTES = "%s" } } } }
]]):format(daemon.root, notes), policies = { ["echo.lua"] = [[
-- echo: repeats a string, once. For specs.
return tool "echo" { upstream = "plain", effects = "read", limits = { calls_per_session = 1, cost_per_session = 5 }, cost = 5 }
]] } }
    opens()
    local client = gate:connect()
    local function asks() return verdict(client:calls("echo", { text = "x" }, session "limited")).code end
    assert.equal("breaker_open", asks())
    assert.equal("breaker_open", asks())
    process.eventually("it is asked again", function() return verdict(calls "echo").verdict == "pass" end)
    assert.equal(nil, asks())
    assert.equal("calls_per_session", asks())
  end)

  it("is probed by one call after the pause, and closes the breaker if that succeeds", function()
    opens()
    process.eventually("one is let through", function() return verdict(calls "echo").verdict == "pass" end)
    assert.equal("closed", upstream().breaker)
    gate:logs "breaker_probing upstream=plain"
    gate:logs "breaker_closed upstream=plain"
    process.eventually("calls pass", function() return verdict(calls "echo").verdict == "pass" end) -- within 100 ms each
  end)

  it("the probe too stays blocked for twice as long, and only one probe passes", function()
    opens()
    local clients = { gate:connect(), gate:connect(), gate:connect(), gate:connect() }
    process.eventually("one is let through", function()
      local through = 0
      for _, client in ipairs(clients) do
        sessions = sessions + 1
        client:begins(1, "holds", { n = 1 }, session("s" .. sessions))
      end
      for _, client in ipairs(clients) do
        local code = verdict(client:hears().result).code
        through = through + (code == "timeout" and 1 or 0)
        assert.truthy(code == "timeout" or code == "breaker_open", code)
      end
      assert.truthy(through <= 1)
      return through == 1
    end)
    gate:logs "breaker_open upstream=plain failures_in_a_row=5 for_ms=2000"
  end)

  it("by one crash under many calls has failed once", function()
    local client = gate:connect()
    for i = 1, OPENS_AFTER do
      client:begins(i, "holds", { n = i }, session("d" .. i))
    end
    assert.equal("crashed", verdict(calls "dies").code)
    for _ = 1, OPENS_AFTER do assert.equal("crashed", verdict(client:hears().result).code) end
    assert.equal("closed", upstream().breaker)
    assert.equal(1, upstream().failures)
  end)

  it("is not one that refuses calls", function()
    gate:stop()
    serves "60s"
    for _ = 1, OPENS_AFTER + 1 do
      assert.equal("tool_error", verdict(calls "refuses").error_class)
      assert.equal("tool_error", verdict(calls "fails").error_class)
    end
    assert.equal("closed", upstream().breaker)
    assert.equal(0, upstream().failures)
  end)

  it("now and then keeps its breaker closed", function()
    local late = 0 -- on a busy machine an echo may be late, too
    for i = 1, 2 * OPENS_AFTER do
      late = late + (verdict(calls(i % 2 == 1 and "holds" or "echo")).code == "timeout" and 1 or 0)
    end
    assert.equal("closed", upstream().breaker)
    assert.equal(late, upstream().failures)
  end)

  it("shows the breaker in its status", function()
    opens()
    local one = upstream()
    assert.same({ "plain", "stdio", "open", OPENS_AFTER, OPENS_AFTER },
                { one.name, one.kind, one.breaker, one.calls, one.failures })
    golden.check("feedback", "circuit breaker: last error in the status", one.last_error, { ["%d+ ms"] = "<ms> ms" })
    assert.truthy(one.breaker_after_s <= 1)
  end)
end)

describe("an HTTP upstream of several tools", function()
  local function tools(address, names)
    local files = {}
    for _, name in ipairs(names) do
      files[name .. ".lua"] = ([[
-- %s: for specs.
return tool "%s" { description = "For specs.", effects = "read", upstream = "api", http = "GET /%s",
                   schema = json '{"type":"object"}' }
]]):format(name, name, name)
    end
    return daemon.start { policies = files, config = ('return { upstreams = { api = { rest = "%s" } } }'):format(address) }
  end

  it("keeps its breaker closed on status 429, which gives its own delay", function()
    local server = http_server.start { routes = { ["GET /one"] = { status = 429, headers = { ["Retry-After"] = "3" } } } }
    local gate = tools(server.address, { "one" })
    for i = 1, OPENS_AFTER + 1 do
      local said = verdict(gate:connect():calls("one", {}, session("s" .. i)))
      assert.same({ "transient", "http_429", 3 }, { said.error_class, said.code, said.after_s })
    end
    assert.equal("closed", gate:status().upstreams[1].breaker)
  end)

  it("opens its breaker for all tools if it is unreachable", function()
    local client = tools("http://127.0.0.1:1", { "one", "other" }):connect()
    for i = 1, OPENS_AFTER do
      assert.equal("unreachable", verdict(client:calls("one", {}, session("s" .. i))).code)
    end
    assert.equal("breaker_open", verdict(client:calls("other", {}, session "t")).code)
  end)
end)
