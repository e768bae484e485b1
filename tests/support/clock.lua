-- A daemon's clock of the day, which a spec sets as an operator or NTP would: clock_shift.c is preloaded into the daemon.
local daemon = require "daemon"
local process = require "process"

-- `cannot`: why it cannot be done in this build.
local M = { cannot = daemon.binary:find("build-san", 1, true) and "cannot be preloaded before the sanitizers' own library" }
local clock = {}
clock.__index = clock

-- clock.environment is the daemon's. `seconds`: how far it is ahead of the machine's; behind if negative.
function M.new(seconds)
  local folder = process.directory()
  local code, _, err = process.run { "cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-o", folder .. "/clock_shift.so",
                                     daemon.root .. "/tests/support/clock_shift.c", "-ldl" }
  assert(code == 0, err)
  local self = setmetatable({ path = process.write(folder .. "/shift", "") }, clock)
  self.environment = { LD_PRELOAD = folder .. "/clock_shift.so", CLOCK_SHIFT = self.path }
  self:shift(seconds)
  return self
end

-- Also while the daemon runs, which has mapped the file: 8 bytes, the least first.
function clock:shift(seconds)
  local file = assert(io.open(self.path, "r+"))
  for _ = 1, 8 do
    file:write(string.char(seconds % 256))
    seconds = math.floor(seconds / 256)
  end
  file:close()
end

return M
