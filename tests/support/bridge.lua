-- A client behind toolgate connect, as dialogue: bridge:say{…}, bridge:hears(). Its daemons come and go:
-- bridge:serves{…} starts one, bridge:kills() ends it with SIGKILL.
local daemon = require "daemon"
local process = require "process"
local json = require("client").json
local signal = require "posix.signal"
local unistd = require "posix.unistd"

local M = { all = {} }
local bridge = {}
bridge.__index = bridge

-- More arguments are those of toolgate connect. The socket exists once a daemon serves.
function M.start(...)
  local self = setmetatable({ directory = process.directory(), taken = 0 }, bridge)
  os.execute("chmod 755 " .. self.directory)
  self.socket = self.directory .. "/s"
  local reading, writing = unistd.pipe()
  local fcntl = require "posix.fcntl"
  fcntl.fcntl(writing, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  self.child = process.start({ daemon.binary, "connect", self.socket, ... },
                             { stdin = reading, stdout = self.directory .. "/out", stderr = self.directory .. "/err" })
  unistd.close(reading)
  self.input = writing
  M.all[#M.all + 1] = self
  return self
end

function bridge:serves(given)
  given.socket = self.socket
  given.policies = given.policies or self.policies
  self.policies = given.policies
  self.gate = daemon.start(given)
  return self.gate
end

function bridge:kills()
  self.gate:signal(signal.SIGKILL)
  self.gate.child:wait()
  self.gate.stopped = true
  process.remove(self.gate.directory)
end

function bridge:say(message)
  message.jsonrpc = "2.0"
  unistd.write(self.input, json.encode(message) .. "\n")
end

function bridge:call(id, name, arguments)
  self:say { id = id, method = "tools/call", params = { name = name, arguments = arguments } }
end

-- The next line on stdout.
function bridge:hears()
  local line = process.eventually("the bridge says something", function()
    return process.read(self.directory .. "/out"):sub(self.taken + 1):match "^([^\n]*)\n"
  end)
  self.taken = self.taken + #line + 1
  return json.decode(line), line
end

function bridge:err()
  return process.read(self.directory .. "/err")
end

-- Ends the input; returns the exit code and the lines that nobody has heard.
function bridge:ends()
  if self.input then unistd.close(self.input) end
  self.input = nil
  local _, code = self.child:wait()
  return code, process.read(self.directory .. "/out"):sub(self.taken + 1)
end

-- A ping's answer comes next: nothing else is said.
function bridge:has_nothing_to_say()
  self.pings = (self.pings or 0) + 1
  self:say { id = "nothing-left-" .. self.pings, method = "ping" }
  local message, line = self:hears()
  if message.id ~= "nothing-left-" .. self.pings then error("expected the answer to a ping, got " .. line, 2) end
end

function M.stop_all()
  local all = M.all
  M.all = {}
  for _, one in ipairs(all) do
    if not one.child:status() then one:ends() end
  end
end

return M
