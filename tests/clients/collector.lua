-- The spans of real calls in a real OpenTelemetry collector (tests/clients/collector), which prints what it took.
local client_of = require "client"
local daemon = require "daemon"
local process = require "process"
local redis = require "redis" -- for a free port
local signal = require "posix.signal"

local CONFIG = [[
receivers: { otlp: { protocols: { http: { endpoint: "127.0.0.1:%d" } } } }
exporters: { debug: { verbosity: detailed } }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { traces: { receivers: [otlp], exporters: [debug] } }
]]

local TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

-- The blocks "Span #…" of the collector's output, by their names.
local function spans_in(output)
  local found = {}
  for block in (output .. "Span #"):gmatch "(%s*Trace ID.-)Span #" do
    local name = block:match "Name +: ([^\n]+)"
    found[name] = found[name] or block
  end
  return found
end

-- `binary`: the collector; `tally(good, line)`.
return function(binary, tally)
  local folder, port = process.directory(), redis.free_port()
  process.write(folder .. "/collector.yaml", CONFIG:format(port))
  local collector = process.start({ binary, "--config", folder .. "/collector.yaml" },
                                  { stdout = folder .. "/out", stderr = folder .. "/out" })
  local function output() return process.read(folder .. "/out") end
  process.eventually("the collector serves", function() return output():find("Everything is ready", 1, true) end)
  local gate = daemon.start { policies = {}, config = ([[return {
    traces = { endpoint = "http://127.0.0.1:%d/v1/traces" },
    upstreams = { fake = { command = "python3", args = { "-SE", "%s/tests/support/fake_upstream.py" } } } }]])
    :format(port, daemon.root) }
  process.eventually("the upstream is up", function() return gate:status().upstreams[1].state == "up" end)
  local client = gate:connect()
  client:calls("echo", { text = "hello" }, { traceparent = ("00-%s-%s-01"):format(TRACE, SPAN) })
  client:calls("slow", { ms = "no number" }, client_of.session "s")
  local status
  process.eventually("the spans are sent", function()
    status = gate:status().traces
    return status.sent > 0 and status.waiting == 0
  end)
  tally(status.rejected == 0 and status.dropped == 0, "ok - the collector takes every span")
  local found = process.eventually("the collector prints them", function()
    local spans = spans_in(output())
    return spans["tools/call slow"] and spans
  end)
  local call, refused = found["tools/call echo"], found["tools/call slow"]
  local function has(name, block, ...)
    local good = block ~= nil
    for _, words in ipairs { ... } do good = good and block:find(words, 1, true) ~= nil end
    tally(good, (good and "ok - " or "not ok - ") .. name .. (good and "" or ":\n" .. tostring(block)))
  end
  has("a call is a child of its client's span", call, TRACE, SPAN, "Kind           : Server",
      "gen_ai.operation.name: Str(execute_tool)", "toolgate.verdict: Str(pass)")
  has("a refusal has its class and an error", refused, "error.type: Str(invalid_arguments)", "Status code    : Error")
  has("a stage is a span", found["stage schema"], "Kind           : Internal")
  gate:stop()
  collector:signal(signal.SIGTERM)
  collector:wait()
  process.remove(folder)
end
