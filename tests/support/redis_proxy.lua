-- Starts redis_proxy.py between the daemons of a fleet and their Redis: delays, lost requests and replies, stalls.
local process = require "process"
local signal = require "posix.signal"

local M = { running = {} }

local proxy = {}
proxy.__index = proxy

-- faults: { delay = share, lose = share, lose_reply = share, stall = share }; see redis_proxy.py.
function M.start(store, count, faults, seed)
  local self = setmetatable({ directory = process.directory() }, proxy)
  local words = {}
  for name, share in pairs(faults) do words[#words + 1] = name .. "=" .. share end
  table.sort(words)
  self.child = process.start({ "python3", "tests/support/redis_proxy.py", store.socket, self.directory .. "/p", tostring(count),
                               tostring(seed), table.concat(words, ",") },
                             { stdin = "/dev/null", stdout = self.directory .. "/out", stderr = self.directory .. "/err" })
  table.insert(M.running, self)
  process.eventually("the proxy listens", function()
    if self.child:status() then error("the proxy ended:\n" .. process.read(self.directory .. "/err"), 0) end
    return process.read(self.directory .. "/out"):find("ready", 1, true)
  end)
  return self
end

function proxy:url(number) return ("unix:%s/p%d"):format(self.directory, number) end

-- Ends all faults.
function proxy:calms() self.child:signal(signal.SIGUSR1) end

function M.stop_all()
  local running = M.running
  M.running = {}
  for _, one in ipairs(running) do
    one.child:signal(signal.SIGKILL)
    pcall(one.child.wait, one.child)
    process.remove(one.directory)
  end
end

return M
