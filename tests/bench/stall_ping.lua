-- Pings a daemon until a file exists; prints the number of pings, the 99th percentile and the worst wait in ms.
--   luajit tests/bench/stall_ping.lua SOCKET STOP_FILE
package.path = "tests/support/?.lua;" .. package.path
local client_of = require "client"
local socket = require "socket"

local client = assert(client_of.connect(arg[1]))
local waits = {}
local function stopped()
  local file = io.open(arg[2])
  return file and file:close()
end
repeat
  local sent = socket.gettime()
  client:say_line '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  client:hears_line()
  waits[#waits + 1] = (socket.gettime() - sent) * 1000
  socket.sleep(0.001)
until stopped()
table.sort(waits)
print(("%d %.2f %.2f"):format(#waits, waits[math.ceil(#waits * 0.99)], waits[#waits]))
