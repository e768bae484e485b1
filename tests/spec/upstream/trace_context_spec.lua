-- traceparent, tracestate and baggage: passed on to every kind of upstream as they came, or dropped with a warning.
local http_server = require "http_server"

local PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
local GIVEN = { traceparent = PARENT, tracestate = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
                baggage = "userId=alice,serverNode=DF%2028;prop=\"x y\",isProduction=false" }

local function posts(method)
  return function(request) return request.method == "POST" and (not method or request.body.method == method) end
end

-- A client's _meta of either era with the keys; each call has its own session, so that no budget interferes.
local sessions = 0
local function meta_of(era, keys)
  sessions = sessions + 1
  local meta = era == "modern" and client_of.modern() or {}
  meta["dev.toolgate/session"] = "s" .. sessions
  for key, value in pairs(keys) do meta[key] = value end
  return meta
end

local function trace_of(meta)
  return { traceparent = meta.traceparent, tracestate = meta.tracestate, baggage = meta.baggage }
end

describe("the trace context of a call", function()
  local gate, client, server

  -- Each transport: starts the daemon; returns a function that calls a tool and returns what the upstream saw.
  local TRANSPORTS = {}

  local function stdio(fake)
    return function()
      gate, client = daemon.open { config = fixtures.serving("fake", "fake_upstream", { FAKE = fake }) }
      return function(meta) return trace_of(json.decode(text(client:calls("meta", {}, meta)))) end
    end
  end
  TRANSPORTS["an MCP server of the legacy era over stdio"] = stdio ""
  TRANSPORTS["an MCP server of the modern era over stdio"] = stdio "modern"

  for _, era in ipairs { "legacy", "modern" } do
    TRANSPORTS["an MCP server of the " .. era .. " era over HTTP"] = function()
      server = http_server.mcp { era = era }
      gate, client = daemon.open { config = ('return { upstreams = { far = { url = "%s" } } }'):format(server.url) }
      local calls = 0
      return function(meta)
        calls = calls + 1
        client:calls("say", { text = tostring(calls) }, meta)
        local request = server:sees("the call", posts "tools/call", calls)[calls]
        local seen = trace_of(request.body.params._meta or {})
        assert.same(seen, trace_of(request.headers))
        return seen
      end
    end
  end

  TRANSPORTS["an HTTP endpoint"] = function()
    server = http_server.start { routes = { ["POST /x"] = { echo = true } } }
    gate, client = daemon.open { policies = { ["endpoint.lua"] = ([==[
-- endpoint: for specs.
return tool "endpoint" { description = "For specs.", effects = "read", schema = json [[{"type":"object"}]],
  http = { "POST %s/x" } }
]==]):format(server.address) } }
    return function(meta) return trace_of(json.decode(text(client:calls("endpoint", {}, meta))).headers) end
  end

  TRANSPORTS["a command"] = function()
    gate, client = daemon.open { policies = { ["tell.lua"] = [==[
-- tell: for specs.
return tool "tell" { description = "For specs.", effects = "read",
  schema = json [[{"type":"object"}]], exec = { "env" } }
]==] } }
    return function(meta)
      local seen = {}
      for name, value in text(client:calls("tell", {}, meta)):gmatch "([%w_]+)=([^\n]*)" do seen[name:lower()] = value end
      return trace_of(seen)
    end
  end

  for name, start in pairs(TRANSPORTS) do
    it("reaches " .. name .. " as it came, from clients of both eras", function()
      local call = start()
      for _, era in ipairs { "legacy", "modern" } do
        assert.same(GIVEN, call(meta_of(era, GIVEN)))
        assert.same({ traceparent = PARENT }, call(meta_of(era, { traceparent = PARENT, progressToken = 7 })))
        assert.same({ baggage = "a=1" }, call(meta_of(era, { baggage = "a=1" })))
        assert.same({}, call(meta_of(era, {})))
      end
      assert.same({}, gate:status().problems)
    end)
  end

  it("is not written over what the operator configures", function()
    server = http_server.mcp { era = "legacy" }
    gate, client = daemon.open { config = ('return { upstreams = { far = { url = "%s", headers = { Baggage = "own=1" } } } }')
      :format(server.url), policies = { ["tell.lua"] = [==[
-- tell: for specs.
return tool "tell" { description = "For specs.", effects = "read", schema = json [[{"type":"object"}]],
  exec = { "sh", "-c", "echo $TRACEPARENT $BAGGAGE", env = { TRACEPARENT = "mine" } } }
]==] } }
    client:calls("say", { text = "x" }, meta_of("legacy", GIVEN))
    local request = server:sees("the call", posts "tools/call")[1]
    assert.equal("own=1", request.headers.baggage)
    assert.equal(PARENT, request.headers.traceparent)
    assert.equal(GIVEN.baggage, request.body.params._meta.baggage)
    assert.equal("mine a=1", text(client:calls("tell", {}, meta_of("legacy", { traceparent = PARENT, baggage = "a=1" }))))
  end)

  it("is never expanded as a reference to a secret", function()
    local call = TRANSPORTS["a command"]()
    assert.same({ baggage = "a=${HOME}" }, call(meta_of("legacy", { baggage = "a=${HOME}" })))
  end)

  -- ---- what is dropped ----

  local WRONG = {
    ["no hyphens"] = { traceparent = PARENT:gsub("-", "_") },
    ["upper case"] = { traceparent = PARENT:upper() },
    ["version ff"] = { traceparent = "ff" .. PARENT:sub(3) },
    ["more than version 00 has"] = { traceparent = PARENT .. "-00" },
    ["a trace id of zeros"] = { traceparent = "00-" .. ("0"):rep(32) .. "-00f067aa0ba902b7-01" },
    ["a span id of zeros"] = { traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-" .. ("0"):rep(16) .. "-01" },
    ["too short"] = { traceparent = PARENT:sub(1, -2) },
    ["no string"] = { traceparent = 7 },
    ["empty"] = { traceparent = "" },
    ["a tracestate without traceparent"] = { tracestate = "a=1" },
    ["a tracestate that is too long"] = { traceparent = PARENT, tracestate = ("a"):rep(8193) },
    ["baggage that is too long"] = { baggage = ("a"):rep(8193) },
    ["baggage with a line break"] = { baggage = "a=1\r\nX-Evil: 1" },
    ["baggage beyond ASCII"] = { baggage = "a=ü" },
    ["baggage with NUL"] = { baggage = "a=\0" },
  }

  it("is dropped with a warning if it cannot be passed on, and the call goes on", function()
    local call = TRANSPORTS["a command"]()
    local count = 0
    for name, keys in pairs(WRONG) do
      local result = client:calls("tell", {}, meta_of("legacy", keys))
      assert.is_nil(result.isError, name)
      assert.equal(1, #(verdict(result).warnings or {}), name)
      count = count + 1
      local seen = call(meta_of("legacy", keys))
      count = count + 1
      for key, value in pairs(keys) do
        if key ~= "traceparent" or value ~= PARENT then assert.is_nil(seen[key], name) end
      end
    end
    local problem = gate:status().problems[1]
    assert.same({ "invalid_trace_context", count }, { problem.code, problem.count })
    gate:logs "code=invalid_trace_context"
  end)

  it("that is broken refuses no program, either", function()
    TRANSPORTS["a command"]()
    local reply = client:checks("tell", {}, { traceparent = "x" })
    assert.equal("pass", reply.verdict)
    assert.equal(1, #reply.warnings)
  end)

  it("of a later version, and of 8,192 bytes, is passed on", function()
    local call = TRANSPORTS["a command"]()
    local later = "cc" .. PARENT:sub(3) .. "-what-the-future-holds"
    local long = "a=" .. ("x"):rep(8190)
    assert.same({ traceparent = later, tracestate = long, baggage = long },
                call(meta_of("legacy", { traceparent = later, tracestate = long, baggage = long })))
  end)
end)
