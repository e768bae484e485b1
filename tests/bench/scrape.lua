-- How long a scrape of the metrics takes, how large it is, and what 1,000 at once take, after each of TOOLS tools has been
-- called, checked with wrong arguments and checked with right ones.
--   TOOLGATE=build/toolgate luajit tests/bench/scrape.lua [TOOLS=10000]
package.path = "tests/support/?.lua;" .. package.path
local daemon = require "daemon"
local http = require "http"
local process = require "process"

local TOOLS = tonumber(arg[1]) or 10000
local TIMES, AT_ONCE, OPEN = 40, 1000, 200

local list = {}
for i = 1, TOOLS do
  list[i] = ([[{"name":"tool_with_a_usual_name_%05d","description":"d",
                "inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}}]]):format(i)
end
local gate = daemon.start {
  tools = "[" .. table.concat(list, ",") .. "]",
  config = "return { log = { level = 'error' }, decisions = false, metrics = { listen = 'unix:metrics.sock' } }",
}
local address, client = "unix:" .. gate.directory .. "/metrics.sock", gate:connect()

local function call(i, method, value)
  client:say(([[{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"tool_with_a_usual_name_%05d","arguments":{"a":%s},]]
              .. [["_meta":{"dev.toolgate/session":"s%d"}}}]]):format(i, method, i, value, i))
  client:answer(i)
end

for _, one in ipairs { { "toolgate/check", "1" }, { "toolgate/check", "[]" }, { "tools/call", "1" } } do
  for i = 1, TOOLS do call(i, one[1], one[2]) end
end

-- User and system time of the daemon, in seconds.
local function cpu()
  local fields = {}
  for field in process.read("/proc/" .. gate:pid() .. "/stat"):match("%) (.*)"):gmatch "%S+" do fields[#fields + 1] = field end
  return (fields[12] + fields[13]) / 100
end

local took, bytes, spent = {}, nil, cpu()
for i = 1, TIMES do
  local began = process.now()
  bytes = #http.get(address, "/metrics").body
  took[i] = process.now() - began
end
table.sort(took)
print(("%d tools: %d bytes; the daemon works %.1f ms for a scrape; %.1f ms until it is read (median of %d)"):format(TOOLS,
  bytes, (cpu() - spent) / TIMES * 1e3, took[TIMES / 2] * 1e3, TIMES))

-- Several scrapes are open at a time, and calls go on between them.
local began, waits, done = process.now(), {}, 0
while done < AT_ONCE do
  local streams = {}
  for i = 1, OPEN do
    streams[i] = http.connect(address)
    streams[i]:send "GET /metrics HTTP/1.0\r\n\r\n"
  end
  for i = 1, OPEN do
    local before = process.now()
    call(1, "toolgate/check", "1")
    waits[#waits + 1] = process.now() - before
    assert(http.receive(streams[i]).status == 200)
  end
  done = done + OPEN
end
table.sort(waits)
print(("%d scrapes, %d open at a time: %.1f s; a check meanwhile takes %.2f ms (median), %.1f ms (99 %%)"):format(done, OPEN,
  process.now() - began, waits[#waits / 2] * 1e3, waits[math.floor(#waits * 0.99)] * 1e3))
print(("the daemon's memory peaked at %s kB"):format(process.read("/proc/" .. gate:pid() .. "/status"):match "VmHWM:%s*(%d+)"))
daemon.stop_all()
