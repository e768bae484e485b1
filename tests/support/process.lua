-- Child processes and temporary directories for the specs: chosen environment and descriptors, stderr in a file, and
-- every child is waited for.
local unistd = require "posix.unistd"
local fcntl = require "posix.fcntl"
local stdlib = require "posix.stdlib"
local signal = require "posix.signal"
local wait = require "posix.sys.wait"
local time = require "posix.time"
local socket = require "socket"

local M = { PATIENCE_S = 60 }

function M.now()
  local t = time.clock_gettime(time.CLOCK_MONOTONIC)
  return t.tv_sec + t.tv_nsec / 1e9
end

-- Polls until the condition returns a true value, and returns it; the error at the timeout contains `what`. A poll uses up
-- a second of the patience at most: while the machine was suspended nobody has waited.
function M.eventually(what, condition, patience_s)
  local left, before = patience_s or M.PATIENCE_S, M.now()
  repeat
    local answer, why = condition()
    if answer then return answer end
    left, before = left - math.min(M.now() - before, 1), M.now()
    if left < 0 then
      error(("waited in vain until %s%s"):format(what, why and (": " .. tostring(why)) or ""), 2)
    end
    socket.select(nil, nil, 0.002) -- the polling interval
  until false
end

local directories = {}

-- A new temporary directory, removed with all that is in it when the spec file ends.
function M.directory()
  local directory = assert(stdlib.mkdtemp "/tmp/toolgate-spec-XXXXXX")
  directories[directory] = true
  return directory
end

function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

function M.read(path)
  local file = io.open(path, "rb")
  if not file then return "" end
  local text = file:read "*a"
  file:close()
  return text
end

-- The lines of a file that is being written: none that has no end yet.
function M.whole_lines(path)
  local list = {}
  for line in M.read(path):gmatch "([^\n]*)\n" do list[#list + 1] = line end
  return list
end

function M.remove(directory)
  assert(directory:match "^/tmp/toolgate%-spec%-......$", "not a directory of ours: " .. tostring(directory))
  directories[directory] = nil
  os.execute("rm -rf '" .. directory .. "'")
end

function M.remove_all()
  for directory in pairs(directories) do M.remove(directory) end
end

local function become(argv, options)
  for fd, number in pairs(options.descriptors or {}) do
    if fd == number then fcntl.fcntl(fd, fcntl.F_SETFD, 0) else unistd.dup2(fd, number) end
  end
  for name, value in pairs(options.environment or {}) do
    if value == "own pid" then value = tostring(unistd.getpid()) end
    stdlib.setenv(name, value or nil)
  end
  if options.directory then unistd.chdir(options.directory) end
  local arguments = {}
  for i = 2, #argv do arguments[i - 1] = argv[i] end
  unistd.execp(argv[1], arguments)
  unistd._exit(127)
end

-- A port without a listener. It lies below those that the kernel gives to outgoing connections, as does that of a Redis
-- Cluster's bus, 10,000 above it; and each process begins at another: spec files run side by side.
local next_port
function M.free_port()
  next_port = next_port or unistd.getpid() * 61
  for _ = 1, 1000 do
    next_port = next_port + 1
    local port = 10000 + next_port % 12000
    local server = socket.bind("127.0.0.1", port)
    if server then
      server:close()
      return port
    end
  end
  error "no free port"
end

local process = {}
process.__index = process

-- options: stdin, stdout, stderr = path or descriptor; environment; descriptors = { [ours] = theirs }; directory.
function M.start(argv, options)
  options = options or {}
  local descriptors = {}
  local opened = {}
  for name, number in pairs { stdin = 0, stdout = 1, stderr = 2 } do
    local target = options[name]
    if type(target) == "string" then
      local flags = name == "stdin" and fcntl.O_RDONLY or fcntl.O_WRONLY + fcntl.O_CREAT + fcntl.O_APPEND
      target = assert(fcntl.open(target, flags, 420))
      opened[#opened + 1] = target
    end
    if target then descriptors[target] = number end
  end
  for ours, theirs in pairs(options.descriptors or {}) do descriptors[ours] = theirs end
  local pid = assert(unistd.fork())
  if pid == 0 then
    become(argv, { descriptors = descriptors, environment = options.environment, directory = options.directory })
  end
  for _, fd in ipairs(opened) do unistd.close(fd) end
  return setmetatable({ pid = pid, name = argv[1] }, process)
end

-- nil while it runs; then "exited" or "killed", and the code.
function process:status()
  if not self.how then
    local pid, how, code = wait.wait(self.pid, wait.WNOHANG)
    if pid == self.pid and how ~= "running" then self.how, self.code = how, code end
  end
  return self.how, self.code
end

function process:signal(number)
  if not self:status() then signal.kill(self.pid, number) end
end

function process:wait(patience_s)
  M.eventually(self.name .. " ends", function() return self:status() end, patience_s)
  return self.how, self.code
end

-- Runs a command to its end; returns code, stdout, stderr.
function M.run(argv, options)
  options = options or {}
  local directory = M.directory()
  local given = options.input and M.write(directory .. "/in", options.input) or "/dev/null"
  local child = M.start(argv, { stdin = given, stdout = directory .. "/out", stderr = directory .. "/err",
                                environment = options.environment, directory = options.directory })
  local how, code = child:wait(options.patience_s)
  local out, err = M.read(directory .. "/out"), M.read(directory .. "/err")
  M.remove(directory)
  return how == "exited" and code or -code, out, err
end

-- Runs a command that must succeed; returns stdout and stderr.
function M.runs(argv, options)
  local code, out, err = M.run(argv, options)
  if code ~= 0 then error(("%s exited with %s:\n%s%s"):format(table.concat(argv, " "), tostring(code), out, err), 2) end
  return out, err
end

return M
