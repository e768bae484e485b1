-- Real redis-servers and sentinels on temporary sockets and ports, stopped when the spec ends.
local process = require "process"
local signal = require "posix.signal"
local socket = require "socket"
local unix = require "socket.unix"

local M = { running = {} }
-- The errors of a connection to a killed Redis; for golden.check.
M.LOST = { ["Server closed the connection"] = "<why>", ["Connection reset by peer"] = "<why>", ["Broken pipe"] = "<why>",
           ["Connection refused; nothing listens there: start it, or name its address in ledger%.redis"] = "<why>" }

local server = {}
server.__index = server

M.free_port = process.free_port

-- ---- the protocol -----------------------------------------------------------

local function read_reply(stream)
  local line = assert(stream:receive "*l")
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "+" then return rest end
  if kind == "-" then return nil, rest end
  if kind == ":" then return tonumber(rest) end
  local count = tonumber(rest)
  if count < 0 then return false end
  if kind == "$" then
    local text = assert(stream:receive(count + 2))
    return text:sub(1, count)
  end
  local list = {}
  for i = 1, count do list[i] = read_reply(stream) end
  return list
end

function server:stream()
  local stream = self.port and socket.tcp() or unix.stream()
  stream:settimeout(process.PATIENCE_S)
  local ok
  if self.port then ok = stream:connect("127.0.0.1", self.port) else ok = stream:connect(self.socket) end
  if ok then return stream end
  stream:close()
end

-- Sends one command on its own connection; returns the reply, or nil and the error.
function server:tries(...)
  local stream = self:stream()
  if not stream then return nil, "not there" end
  local words = { ... }
  if self.password and words[1] ~= "AUTH" then
    assert(stream:send(("*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n"):format(#self.password, self.password)))
    read_reply(stream)
  end
  local text = { ("*%d\r\n"):format(#words) }
  for i, word in ipairs(words) do
    word = tostring(word)
    text[i + 1] = ("$%d\r\n%s\r\n"):format(#word, word)
  end
  assert(stream:send(table.concat(text)))
  local ok, reply, why = pcall(read_reply, stream)
  stream:close()
  if not ok then return nil, reply end
  return reply, why
end

function server:does(...)
  local reply, why = self:tries(...)
  if reply == nil then error(("redis %s: %s"):format(table.concat({ ... }, " "), tostring(why)), 2) end
  return reply
end

-- Sends a command without waiting for the reply, for commands that block.
function server:sends(...)
  local stream = assert(self:stream())
  local words = { ... }
  local text = { ("*%d\r\n"):format(#words) }
  for i, word in ipairs(words) do text[i + 1] = ("$%d\r\n%s\r\n"):format(#tostring(word), tostring(word)) end
  assert(stream:send(table.concat(text)))
  self.sent = self.sent or {}
  table.insert(self.sent, stream)
  return stream
end

-- Retries if the connection is closed, as during a failover.
function server:info(name)
  local text = process.eventually("redis answers INFO", function() return self:tries "INFO" end)
  return text:match("\n" .. name .. ":([^\r\n]*)")
end

-- How often the server has run a command.
function server:calls(command)
  return tonumber((self:does("INFO", "commandstats")):match("cmdstat_" .. command .. ":calls=(%d+)")) or 0
end

local OF_NO_SESSION = { ["tg2:callid_key"] = true, ["tg2:{C60lN-NmKnQAAAAAAAAAAA}s"] = true } -- the latter: src/ledger/fleet.c

-- The keys of sessions and rates.
function server:keys()
  local keys = {}
  for _, key in ipairs(self:does("KEYS", "tg2:*")) do
    if not OF_NO_SESSION[key] then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

-- ---- start and stop -----------------------------------------------------------

local function spawn(self)
  local argv = { "redis-server" }
  if self.sentinel then
    argv = { "redis-server", self.directory .. "/sentinel.conf", "--sentinel" }
  else
    for _, word in ipairs { "--dir", self.directory, "--port", self.port or 0, "--save", "",
                            "--enable-debug-command", "yes" } do argv[#argv + 1] = tostring(word) end
    if not self.port then
      argv[#argv + 1] = "--unixsocket"
      argv[#argv + 1] = self.socket
    end
    for _, word in ipairs(self.arguments) do argv[#argv + 1] = tostring(word) end
  end
  self.child = process.start(argv, { stdin = "/dev/null", stdout = self.directory .. "/log",
                                     stderr = self.directory .. "/log" })
end

local function launch(self)
  spawn(self)
  process.eventually("redis answers", function()
    local how = self.child:status()
    if how then error("redis-server ended:\n" .. process.read(self.directory .. "/log"), 0) end
    local reply, why = self:tries "PING"
    return reply == "PONG" or (why and (why:find "LOADING" or why:find "NOAUTH" or why:find "MASTERDOWN"))
  end)
  return self
end

-- given: port (true: any free port; else a Unix socket), arguments, password, sentinel (a function that returns its
-- configuration).
function M.start(given)
  given = given or {}
  local self = setmetatable({ directory = process.directory() }, server)
  self.socket = self.directory .. "/s"
  self.port = given.port == true and M.free_port() or given.port
  self.arguments = given.arguments or {}
  self.password = given.password
  self.sentinel = given.sentinel
  if self.password then
    for _, word in ipairs { "--requirepass", self.password } do table.insert(self.arguments, word) end
  end
  if given.sentinel then process.write(self.directory .. "/sentinel.conf", given.sentinel(self)) end
  table.insert(M.running, self)
  return launch(self)
end

-- A sentinel that watches `master` as "cache" with a quorum of one.
function M.sentinel(master, password)
  return M.start { port = true, password = password, sentinel = function(self)
    return table.concat({ "port " .. self.port, "dir " .. self.directory, password and 'requirepass "' .. password .. '"' or "",
      ("sentinel monitor cache 127.0.0.1 %d 1"):format(master.port),
      "sentinel down-after-milliseconds cache 300", "sentinel failover-timeout cache 3000" }, "\n") .. "\n"
  end }
end

-- Masters of a cluster, each with its part of the slots, that know each other.
function M.cluster(masters, ...)
  local nodes = {}
  for i = 1, masters do
    nodes[i] = M.start { port = true, arguments = { "--cluster-enabled", "yes", "--cluster-node-timeout", "3000",
                                                    "--cluster-config-file", "nodes.conf",
                                                    "--repl-diskless-sync-delay", "0", ... } }
    nodes[i]:does("CLUSTER", "ADDSLOTSRANGE", math.floor((i - 1) * 16384 / masters), math.floor(i * 16384 / masters) - 1)
    nodes[i]:does("CLUSTER", "SET-CONFIG-EPOCH", i)
    if i > 1 then nodes[1]:does("CLUSTER", "MEET", "127.0.0.1", nodes[i].port) end
  end
  M.cluster_is_well(nodes)
  return nodes
end

function M.cluster_is_well(nodes)
  for _, node in ipairs(nodes) do
    process.eventually("the cluster is well", function()
      local info = node:does("CLUSTER", "INFO")
      return info:find("cluster_state:ok", 1, true) and info:find("cluster_known_nodes:" .. #nodes, 1, true)
    end)
  end
end

-- A replica of the first node of a cluster.
function M.replica_in(nodes)
  local replica = M.start { port = true, arguments = { "--cluster-enabled", "yes", "--cluster-node-timeout", "3000",
                                                       "--cluster-config-file", "nodes.conf" } }
  nodes[1]:does("CLUSTER", "MEET", "127.0.0.1", replica.port)
  M.cluster_is_well { replica, unpack(nodes) }
  replica:does("CLUSTER", "REPLICATE", nodes[1]:does("CLUSTER", "MYID"))
  process.eventually("all know that the replica follows", function()
    for i = 2, #nodes do
      if not nodes[i]:does("CLUSTER", "NODES"):find("slave", 1, true) then return false end
    end
    return replica:info "master_link_status" == "up"
  end)
  return replica
end

-- The address for --redis.
function server:url(db)
  if self.port then
    local who = self.password and (":" .. self.password .. "@") or ""
    return ("redis://%s127.0.0.1:%d%s"):format(who, self.port, db and "/" .. db or "")
  end
  return "unix:" .. self.socket .. (db and "?db=" .. db or "")
end

function server:kill()
  self.child:signal(signal.SIGKILL)
  self.child:wait()
end

function server:start_again()
  os.remove(self.socket)
  return launch(self)
end

-- As start_again, without waiting.
function server:begin_again()
  os.remove(self.socket)
  spawn(self)
end

function server:freeze() self.child:signal(signal.SIGSTOP) end
function server:thaw() self.child:signal(signal.SIGCONT) end

function server:log() return process.read(self.directory .. "/log") end

function server:stop()
  self.child:signal(signal.SIGKILL)
  pcall(self.child.wait, self.child)
  process.remove(self.directory)
end

function M.stop_all()
  local running = M.running
  M.running = {}
  for _, one in ipairs(running) do one:stop() end
end

return M
