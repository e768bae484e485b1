-- What a hook costs, process start included, beside a process that does nothing.
--   TOOLGATE=build/toolgate luajit tests/bench/hook.lua [ROUNDS]
package.path = "tests/support/?.lua;" .. package.path
local daemon = require "daemon"
local process = require "process"
local socket = require "socket"

local ROUNDS = tonumber(arg[1]) or 200
local gate = daemon.start { policies = daemon.root .. "/policies/assistant" }
local folder = process.directory()
local event = process.write(folder .. "/event", '{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash",'
                            .. '"tool_input":{"command":"ls"}}')

local function time(command)
  local began = socket.gettime()
  os.execute(("for i in $(seq %d); do %s < '%s' > /dev/null; done"):format(ROUNDS, command, event))
  return (socket.gettime() - began) / ROUNDS * 1000
end

local hook = ("XDG_RUNTIME_DIR='%s' '%s' hook --socket '%s'"):format(folder, daemon.binary, gate.socket)
local nothing = "/bin/true"
time(hook)
local a, b = time(nothing), time(hook)
print(("a process that does nothing: %.2f ms, a hook: %.2f ms"):format(a, b))
daemon.stop_all()
process.remove(folder)
