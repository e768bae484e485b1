-- A real daemon in a temporary directory: ready when start() returns, stopped when the spec ends, even on failure.
-- tests/support/helper.lua prints its stderr if the spec fails.
local process = require "process"
local client = require "client"
local signal = require "posix.signal"

local M = { running = {}, last_words = {} }
M.binary = os.getenv "TOOLGATE" or "build/toolgate"
if M.binary:sub(1, 1) ~= "/" then M.binary = require("posix.unistd").getcwd() .. "/" .. M.binary end
M.bench = M.binary .. "-bench" -- the bench program lies beside the binary
M.root = require("posix.unistd").getcwd()

local daemon = {}
daemon.__index = daemon

local function write_all(directory, files)
  os.execute("mkdir -p '" .. directory .. "'")
  for name, text in pairs(files) do
    if name:find "/" then os.execute("mkdir -p '" .. directory .. "/" .. name:match "(.*)/" .. "'") end
    process.write(directory .. "/" .. name, text)
  end
  return directory
end

-- given.policies is a table of files or a folder's name; given.tools is JSON; given.config is Lua.
local function arguments_of(self, given)
  local argv = given.before or {}
  argv[#argv + 1] = M.binary
  argv[#argv + 1] = "serve"
  if not given.no_socket then
    argv[#argv + 1] = "--socket"
    argv[#argv + 1] = self.socket
  end
  local policies = given.policies
  if type(policies) == "table" then policies = write_all(self.directory .. "/policies", policies) end
  if policies == nil then policies = write_all(self.directory .. "/policies", {}) end
  self.policies = policies
  if policies then
    argv[#argv + 1] = "--policies"
    argv[#argv + 1] = policies
  end
  if given.tools then
    argv[#argv + 1] = "--tools"
    argv[#argv + 1] = given.tools:sub(1, 1) == "/" and given.tools
                      or process.write(self.directory .. "/tools.json", given.tools)
  end
  if given.config then
    argv[#argv + 1] = "-c"
    argv[#argv + 1] = process.write(self.directory .. "/toolgate.lua", given.config)
  end
  for _, argument in ipairs(given.arguments or {}) do argv[#argv + 1] = argument end
  return argv
end

local LATE_S = 20 -- for upstreams that a busy machine starts too slowly

-- The daemon opens its socket after 5 s even if an upstream has not listed its tools.
local function wait_for_late_upstreams(self)
  local late = self:log():match "upstreams_not_ready upstreams=(%S+)"
  for name in (late or ""):gmatch "[^,]+" do
    pcall(process.eventually, name .. " is up", function()
      local log = self:log()
      return log:find("upstream_up upstream=" .. name, 1, true) and log:find("cause=upstream ", 1, true)
    end, LATE_S)
  end
end

-- given: policies, tools, config, arguments, before (a command that runs the daemon), environment, descriptors, fails, or
-- late: an upstream is meant to be slow.
function M.start(given)
  given = given or {}
  local self = setmetatable({ directory = process.directory(), clients = {} }, daemon)
  os.execute("chmod 755 " .. self.directory)
  self.socket = given.socket or self.directory .. "/toolgate.sock"
  self.stderr = self.directory .. "/stderr"
  self.child = process.start(arguments_of(self, given), {
    stdin = "/dev/null", stdout = self.directory .. "/stdout", stderr = self.stderr, directory = M.root,
    environment = given.environment, descriptors = given.descriptors,
  })
  table.insert(M.running, self)
  if not given.fails then
    process.eventually("the daemon accepts", function()
      local how, code = self.child:status()
      if how then error(("the daemon %s with %d:\n%s"):format(how, code, self:log()), 0) end
      local probe = client.connect(self.socket)
      if probe then probe:close() end
      return probe
    end)
    if not given.late then wait_for_late_upstreams(self) end
  end
  return self
end

-- The daemon, and a connection to it.
function M.open(given)
  local self = M.start(given)
  return self, self:connect()
end

-- Starts a daemon that must fail; returns its stderr and exit code.
function M.fails(given)
  given.fails = true
  local self = M.start(given)
  local _, code = self.child:wait()
  self.expected_code = code
  return self:log(), code
end

function daemon:connect()
  local connection = assert(client.connect(self.socket))
  table.insert(self.clients, connection)
  return connection
end

function daemon:log()
  return process.read(self.stderr)
end

-- Waits until the log contains `words`; returns the rest of that line.
function daemon:logs(words)
  return process.eventually("the log contains " .. words, function()
    local from = self:log():find(words, 1, true)
    return from and self:log():match("([^\n]*)\n", from)
  end)
end

function daemon:write_policy(name, text)
  return process.write(self.policies .. "/" .. name, text)
end

function daemon:signal(number)
  self.child:signal(number)
end

-- Its connection is closed again: a condition that is waited for asks thousands of times on a busy machine.
function daemon:status()
  local asking = self:connect()
  local status = asking:asks "toolgate/status"
  asking:close()
  return status
end

function daemon:loses_redis()
  process.eventually("Redis is down", function() return not self:status().ledger.connected end)
end

-- Waits until Redis is up and has everything; returns the ledger's status.
function daemon:has_merged()
  return process.eventually("Redis is up and everything is merged", function()
    local ledger = self:status().ledger
    return ledger.connected and ledger.waiting == 0 and ledger
  end)
end

-- Sends SIGHUP and waits until a reload that began after it is logged as done, failed or unchanged. The daemon also sees
-- files change: the next reload to end may have begun before, unless it says that SIGHUP caused it.
function daemon:reload()
  local function reloads()
    local count, of_signal = 0, 0
    for event, rest in self:log():gmatch " (reload_%a+) ([^\n]*)" do
      if event == "reload_done" or event == "reload_failed" or event == "reload_unchanged" then
        count = count + 1
        of_signal = of_signal + (rest:find("cause=SIGHUP", 1, true) and 1 or 0)
      end
    end
    return count, of_signal
  end
  local before, of_signal_before = reloads()
  self:signal(signal.SIGHUP)
  process.eventually("the reload is logged", function()
    local count, of_signal = reloads()
    return of_signal > of_signal_before or count > before + 1
  end)
end

function daemon:pid()
  return self.child.pid
end

-- Sends SIGTERM; every daemon must exit with code 0 (a sanitizer's report changes the code).
function daemon:stop()
  if self.stopped then return end
  self.stopped = true
  for _, connection in ipairs(self.clients) do connection:close() end
  self:signal(signal.SIGTERM)
  local ok, how, code = pcall(self.child.wait, self.child)
  if not ok then
    signal.kill(self.child.pid, signal.SIGKILL)
    self.child:wait()
    how, code = "hung, was killed", 9
  end
  table.insert(M.last_words, self:log())
  process.remove(self.directory)
  if how ~= "exited" or code ~= (self.expected_code or 0) then
    error(("the daemon %s with %s; its log:\n%s"):format(tostring(how), tostring(code), M.last_words[#M.last_words]), 0)
  end
end

function M.stop_all()
  local running, trouble = M.running, nil
  M.running = {}
  for _, one in ipairs(running) do
    local ok, why = pcall(one.stop, one)
    if not ok then trouble = trouble or why end
  end
  if trouble then error(trouble, 0) end
end

return M
