-- Spans: what the collector gets for each kind of call, and that no collector can hold up a call.
local otlp = require "otlp"

local TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
local function parent(flags) return ("00-%s-%s-%s"):format(TRACE, SPAN, flags or "01") end

local POLICIES = { ["echo.lua"] = [==[
-- echo: answers with its text. Read only.
return tool "echo" { schema = params { text = str "Text" }, effects = "read", run = function(args) return args.text end }
]==], ["mine.lua"] = [==[
-- mine: run by the agent. Read only.
return tool "mine" { schema = params { text = str "Text" }, effects = "read" }
]==], ["tell.lua"] = [==[
-- tell: what a command has in its environment.
return tool "tell" { description = "For specs.", effects = "read", schema = json [[{"type":"object"}]],
  exec = { "env" } }
]==], ["fails.lua"] = [==[
-- fails: a command that fails.
return tool "fails" { description = "For specs.", effects = "read", schema = json [[{"type":"object"}]],
  exec = { "sh", "-c", "echo no such customer hunter2 >&2; exit 3" } }
]==] }

local function count_of(list, wanted)
  local count = 0
  for _, item in ipairs(list) do if wanted(item) then count = count + 1 end end
  return count
end

describe("the spans of calls", function()
  local gate, agent, collector

  local function starts(more, given)
    given = given or {}
    collector = otlp.start(given.answers)
    gate, agent = daemon.open { policies = POLICIES, environment = given.environment, config =
      ('return { traces = { endpoint = "%s", batch = 0.05%s }%s }'):format(given.endpoint or collector.endpoint, more or "",
                                                                 given.config or "") }
  end

  local function traces() return gate:status().traces end

  it("are one for the call and one for each stage, as OTLP wants them", function()
    starts()
    agent:asks("initialize", { protocolVersion = "2025-06-18", capabilities = {}, clientInfo = { name = "spec" } })
    agent:calls("echo", { text = "a secret text" }, session "chat-7")
    local call, children = collector:call "tools/call echo"
    assert.is_nil(call.parentSpanId)
    assert.same({}, call.status)
    local a = call.attributes
    assert.same({ "tools/call", "execute_tool", "echo", "chat-7", "2025-06-18", "unix", "pass", "ok" },
                { a["mcp.method.name"], a["gen_ai.operation.name"], a["gen_ai.tool.name"], a["mcp.session.id"],
                  a["mcp.protocol.version"], a["network.transport"], a["toolgate.verdict"], a["toolgate.error_class"] })
    assert.is_nil(a["error.type"])
    assert.equal("toolgate", call.resource["service.name"])
    assert.truthy(call.resource["service.version"])
    assert.truthy(call.resource["service.instance.id"])
    local names = {}
    for _, child in ipairs(children) do
      names[#names + 1] = child.name
      assert.same({ call.traceId, 1 }, { child.traceId, child.kind })
      assert.is_true(child.startTimeUnixNano >= call.startTimeUnixNano and child.endTimeUnixNano <= call.endTimeUnixNano)
    end
    assert.same({ "stage known", "stage schema", "stage rules", "stage admit", "stage known", "stage check", "stage run",
                  "stage judge", "stage retry", "stage settle" }, names)
    assert.is_nil(json.encode(collector:requests()):find("a secret text", 1, true))
  end)

  it("have the service's name that is configured", function()
    starts(', service_name = "gate of support"')
    agent:calls("echo", { text = "x" })
    assert.equal("gate of support", collector:call("tools/call echo").resource["service.name"])
  end)

  it("name the class of a refusal, and its stage", function()
    starts()
    agent:calls("echo", {}, session "s")
    local call, children = collector:call "tools/call echo"
    assert.equal(2, call.status.code)
    local a = call.attributes
    assert.same({ "invalid_arguments", "repair", "invalid_arguments", "invalid_arguments", "schema" },
                { a["error.type"], a["toolgate.verdict"], a["toolgate.error_class"], a["toolgate.code"], a["toolgate.stage"] })
    assert.equal(0, count_of(children, function(span) return span.name == "stage run" end))
  end)

  it("of an unknown tool have no name that the client invented", function()
    starts()
    agent:calls("no_such_tool", {})
    local call = collector:call "tools/call"
    assert.equal("no_such_tool", call.attributes["gen_ai.tool.name"])
    assert.equal("unknown_tool", call.attributes["error.type"])
  end)

  it("of checks and reports name their methods, and a person's dry run has none", function()
    starts()
    agent:checks("mine", { text = "dry" }, { ["dev.toolgate/trace"] = true })
    local check = agent:checks("mine", { text = "x" }, session "s")
    agent:asks("toolgate/report", { callId = check.callId, result = { ok = true }, _meta = session "s" })
    collector:call "toolgate/report mine"
    assert.equal("toolgate/check", collector:call("toolgate/check mine").attributes["mcp.method.name"])
    assert.equal(1, count_of(collector:spans(), function(span) return span.name == "toolgate/check mine" end))
  end)

  it("of a check and its report are one trace, with session and cost, whatever else runs", function()
    starts()
    gate:write_policy("mine.lua", [==[
-- mine: run by the agent. Read only.
return tool "mine" { schema = params { text = str "Text" }, effects = "read", cost = 0.5,
  result = function(result) return ok { cost = result.cost } end }
]==])
    gate:reload()
    local other = agent:checks("mine", { text = "other" }, session "other")
    local check = agent:checks("mine", { text = "x" }, session "chat-7")
    gate:connect():asks("toolgate/report", { callId = other.callId, result = { cost = 3 } })
    gate:connect():asks("toolgate/report", { callId = check.callId, result = { cost = 1.25 } })
    collector:gets("both reports", function(span) return span.name == "toolgate/report mine" end, 2)
    local found = {}
    for _, span in ipairs(collector:spans()) do
      if span.name == "toolgate/check mine" or span.name == "toolgate/report mine" then
        local name = span.attributes["mcp.session.id"]
        found[name] = found[name] or {}
        found[name][span.name:match "/(%a+)"] = span
      end
    end
    for name, cost in pairs { ["chat-7"] = 1.25, other = 3 } do
      local pair = found[name]
      assert.same({ pair.check.traceId, pair.check.spanId }, { pair.report.traceId, pair.report.parentSpanId })
      assert.is_nil(pair.check.parentSpanId)
      assert.same({ 0.5, cost }, { pair.check.attributes["toolgate.cost"], pair.report.attributes["toolgate.cost"] })
    end
    assert.not_equal(found["chat-7"].check.traceId, found.other.check.traceId)
  end)

  it("are sampled both or neither", function()
    starts(", sample = 0.5")
    for n = 1, 40 do
      local check = agent:checks("mine", { text = "x" .. n }, session("s" .. n))
      agent:asks("toolgate/report", { callId = check.callId, result = n })
    end
    agent:calls("echo", { text = "last" }, { traceparent = parent() })
    collector:call "tools/call echo"
    local traces_of = { ["toolgate/check mine"] = {}, ["toolgate/report mine"] = {} }
    for _, span in ipairs(collector:spans()) do
      if traces_of[span.name] then traces_of[span.name][span.traceId] = true end
    end
    assert.same(traces_of["toolgate/check mine"], traces_of["toolgate/report mine"])
    assert.truthy(next(traces_of["toolgate/check mine"]))
  end)

  -- ---- upstreams ----

  local function is_child_for(upstream_parent, call, children)
    local clients = {}
    for _, child in ipairs(children) do if child.kind == 3 then clients[#clients + 1] = child end end
    assert.equal(1, #clients)
    assert.equal(("00-%s-%s-01"):format(call.traceId, clients[1].spanId), upstream_parent)
    return clients[1]
  end

  for _, era in ipairs { "legacy", "modern" } do
    it("make an MCP server's span a child of toolgate's, in the " .. era .. " era", function()
      starts("", { config = ", upstreams = { " .. fixtures.upstream("fake", "fake_upstream", { FAKE = era }) .. " }" })
      local meta = { traceparent = parent(), tracestate = "a=1", baggage = "b=2", ["dev.toolgate/session"] = "s" }
      local seen = json.decode(text(agent:calls("meta", {}, meta)))
      local call, children = collector:call "tools/call meta"
      assert.same({ TRACE, SPAN, "a=1", 0x301 }, { call.traceId, call.parentSpanId, call.traceState, call.flags })
      local client = is_child_for(seen.traceparent, call, children)
      assert.same({ "a=1", "b=2" }, { seen.tracestate, seen.baggage })
      local a = client.attributes
      assert.same({ "tools/call meta", "tools/call", "meta", "pipe", "fake" },
                  { client.name, a["mcp.method.name"], a["gen_ai.tool.name"], a["network.transport"], a["toolgate.upstream"] })
    end)
  end

  it("begin a trace for an upstream whose client has none", function()
    starts()
    local seen = text(agent:calls("tell", {})):match "TRACEPARENT=(%S+)"
    local call, children = collector:call "tools/call tell"
    assert.is_nil(call.parentSpanId)
    is_child_for(seen, call, children)
  end)

  it("name what an upstream did wrong", function()
    starts()
    local result = agent:calls("fails", {})
    assert.equal("tool_error", verdict(result).error_class)
    local call, children = collector:call "tools/call fails"
    assert.equal("tool_error", call.attributes["error.type"])
    for _, child in ipairs(children) do
      if child.kind == 3 then assert.same({ "exit_3", 2 }, { child.attributes["error.type"], child.status.code }) end
    end
    assert.is_nil(json.encode(collector:requests()):find("hunter2", 1, true))
  end)

  -- ---- sampling ----

  it("are made by the client's sampled flag, and else what came is passed on", function()
    starts(", sample = 0")
    local unsampled = text(agent:calls("tell", {}, { traceparent = parent "00" }))
    assert.equal(parent "00", unsampled:match "TRACEPARENT=(%S+)")
    assert.is_nil(text(agent:calls("tell", {})):match "TRACEPARENT=")
    agent:calls("echo", { text = "x" }, { traceparent = parent "01" })
    assert.equal(TRACE, collector:call("tools/call echo").traceId)
    assert.equal(1, count_of(collector:spans(), function(span) return span.kind == 2 end))
  end)

  it("are a share of the traces that begin here", function()
    starts(", sample = 0.5", { config = ", defaults = { loop = { repeats = 900, halt = 1000 } }" })
    for i = 1, 200 do agent:calls("echo", { text = "x" .. i }, session("s" .. i)) end
    gate:stop()
    local share = count_of(collector:spans(), function(span) return span.kind == 2 end)
    assert.is_true(share > 50 and share < 150, share)
  end)

  -- ---- the collector ----

  it("carry the configured headers, with secrets of files", function()
    local file = os.tmpname()
    process.write(file, "Bearer token-of-file\n")
    starts((', headers = { Authorization = "${file:%s}" }'):format(file))
    agent:calls("echo", { text = "x" })
    collector:call "tools/call echo"
    os.remove(file)
    assert.equal("Bearer token-of-file", collector:requests()[1].headers.authorization)
  end)

  it("are all sent at SIGTERM", function()
    starts()
    for i = 1, 20 do agent:calls("echo", { text = "x" .. i }, session("s" .. i)) end
    gate:stop()
    assert.equal(20, count_of(collector:spans(), function(span) return span.kind == 2 end))
  end)

  it("wait for a collector that is away, which holds up nothing, and are sent when it returns", function()
    starts("", { answers = { { status = 503, headers = { ["Retry-After"] = "1" }, body = {} }, { body = {} } } })
    agent:calls("echo", { text = "x" })
    gate:logs "traces_down"
    agent:calls("echo", { text = "y" })
    gate:logs "traces_up"
    process.eventually("both are sent", function() return traces().sent >= 22 end)
    assert.same({ "up", 0, 0 }, { traces().state, traces().dropped, traces().rejected })
  end)

  it("of an unreachable collector are dropped beyond a bound, counted, and logged once", function()
    starts("", { endpoint = "http://127.0.0.1:1/v1/traces", config = ", limits = { in_flight = 10000 }" })
    local sent = 0
    local long = ("s"):rep(200)
    process.eventually("spans are dropped", function()
      for i = 1, 500 do
        agent:begins(sent + i, "echo", { text = "x" .. i }, { ["dev.toolgate/session"] = long .. (sent + i) })
      end
      for _ = 1, 500 do agent:hears() end
      sent = sent + 500
      agent.last_id = sent
      return traces().dropped > 0
    end)
    local _, lines = gate:log():gsub("traces_dropped", "")
    assert.equal(1, lines)
    local _, downs = gate:log():gsub("traces_down", "")
    assert.equal(1, downs)
    assert.equal("down", traces().state)
    gate:stop()
    assert.truthy(daemon.last_words[#daemon.last_words]:find("traces_lost", 1, true))
  end)

  it("that the collector rejects are counted, and not sent again", function()
    starts("", { answers = { status = 400, body = { code = 3, message = "no such field" } } })
    agent:calls("echo", { text = "x" })
    gate:logs "no such field"
    process.eventually("they are counted", function() return traces().rejected == 11 end)
    assert.same({ 0, 0 }, { traces().sent, traces().waiting })
  end)

  it("that the collector takes in part are counted", function()
    starts("", { answers = { body = { partialSuccess = { rejectedSpans = "3", errorMessage = "too old" } } } })
    agent:calls("echo", { text = "x" })
    process.eventually("they are counted", function() return traces().rejected == 3 and traces().sent == 8 end)
    gate:logs "too old"
  end)

  it("do not delay the daemon's end when the collector hangs", function()
    starts("", { answers = { hang = true } })
    agent:calls("echo", { text = "x" })
    gate:stop() -- fails after its patience
    assert.truthy(daemon.last_words[#daemon.last_words]:find("traces_lost", 1, true))
  end)

  it("are off by default, and are switched by a reload", function()
    starts()
    process.write(gate.directory .. "/toolgate.lua", "return {}")
    gate:reload()
    assert.is_nil(traces())
    agent:calls("echo", { text = "unseen" })
    process.write(gate.directory .. "/toolgate.lua", ('return { traces = { endpoint = "%s" } }'):format(collector.endpoint))
    gate:reload()
    agent:calls("tell", {})
    collector:call "tools/call tell"
    assert.equal(0, count_of(collector:spans(), function(span) return span.name == "tools/call echo" end))
  end)

  local WRONG = {
    ['traces = { endpoint = "127.0.0.1:4318" }'] = "traces.endpoint: expected the OTLP/HTTP address",
    ['traces = { endpoint = "http://127.0.0.1:4318" }'] = "usually http://127.0.0.1:4318/v1/traces",
    ['traces = { endpoint = "http://u:p@h/v1/traces" }'] = "without user and password",
    ['traces = { sample = 2, endpoint = "http://h/v1/traces" }'] = "traces.sample: expected a share from 0 to 1",
    ['traces = { sample = 0.5 }'] = "traces: has no endpoint",
    ['traces = { endpiont = "http://h/v1/traces" }'] = "did you mean 'traces.endpoint'",
    ['traces = { endpoint = "http://h/v1/traces", headers = { A = "x\\ny" } }'] = "must not hold a line break",
    ['traces = { endpoint = "http://h/v1/traces", service_name = "" }'] = "traces.service_name: expected a name",
  }
  for source, why in pairs(WRONG) do
    it("are not configured by " .. source, function()
      local said = daemon.fails { config = "return { " .. source .. " }" }
      assert.truthy(said:find(why, 1, true), said)
    end)
  end
end)
