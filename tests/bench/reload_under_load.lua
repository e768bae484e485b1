-- The longest latency of calls while a daemon reloads a thousand policies, and the duration of the reload.
--   TOOLGATE=build/toolgate luajit tests/bench/reload_under_load.lua [POLICIES [CLIENTS [RELOADS]]]
package.path = "tests/support/?.lua;tests/bench/?.lua;" .. package.path
local daemon = require "daemon"
local many = require "many_policies"
local socket = require "socket"
local cjson = require "cjson"

local COUNT, CLIENTS, RELOADS = tonumber(arg[1]) or 1000, tonumber(arg[2]) or 16, tonumber(arg[3]) or 5
local QUIET_S = 1

local function policies()
  local all = {}
  for i = 1, COUNT do all[("find_items_%05d.lua"):format(i)] = many.text(i) end
  return all
end

local gate = daemon.start { policies = policies(), arguments = { "--no-watch" } }

-- Each client sends a call, waits for the answer, and sends the next.
local asking = {}
for i = 1, CLIENTS do
  local stream = gate:connect().stream
  stream:settimeout(0)
  asking[i] = stream
end
local question = 0
local function ask(stream, waits)
  question = question + 1
  waits[stream] = socket.gettime()
  stream:send(('{"jsonrpc":"2.0","id":%d,"method":"toolgate/check","params":{"name":"find_items_%05d","arguments":'
               .. '{"action":"by_ids","ids":["e%d"]}}}\n'):format(question, question % COUNT + 1, question))
end

local waits, rest = {}, {}
for _, stream in ipairs(asking) do ask(stream, waits) end

-- Runs until `done` returns true; returns the number of answers and the longest wait in ms.
local function run(done)
  local count, slowest = 0, 0
  repeat
    for _, stream in ipairs((socket.select(asking, nil, 0.05))) do
      local line, _, partial = stream:receive("*l", rest[stream])
      rest[stream] = not line and partial or nil
      if line then
        assert(line:find('"result"', 1, true), line)
        count = count + 1
        slowest = math.max(slowest, socket.gettime() - waits[stream])
        ask(stream, waits)
      end
    end
  until done()
  return count, slowest * 1000
end

local function for_seconds(seconds)
  local over = socket.gettime() + seconds
  return function() return socket.gettime() > over end
end

-- The reload is requested and answered on its own connection.
local operator = gate:connect()
operator.stream:settimeout(0)
local heard
local function answered()
  local line, _, partial = operator.stream:receive("*l", heard)
  heard = not line and partial or nil
  return line
end

print(("%d policies, %d clients, each asks for a check and waits for its answer"):format(COUNT, CLIENTS))
run(for_seconds(0.3))
for round = 1, RELOADS do
  local quiet, quiet_slowest = run(for_seconds(QUIET_S))
  gate:write_policy("find_items_00001.lua", many.text(1) .. ("-- round %d\n"):format(round))
  operator.stream:send '{"jsonrpc":"2.0","id":1,"method":"toolgate/reload"}\n'
  local line
  local busy, busy_slowest = run(function() line = answered() return line end)
  local result = cjson.decode(line).result
  assert(result.ok, line)
  local _, after_slowest = run(for_seconds(0.2))
  local log = gate:log():match(".*longest_us=(%d+)")
  local worst = math.max(busy_slowest, after_slowest) -- calls sent during the reload may be answered after it
  print(("without: %6d calls, slowest %5.1f ms | reload: %4d ms, %5d calls, slowest %5.1f ms; longest slice %.1f ms")
    :format(quiet, quiet_slowest, result.ms, busy, worst, tonumber(log) / 1000))
end

for _, stream in ipairs(asking) do stream:close() end
operator:close()
gate:stop()
