-- The cost of toolgate between a client and a real server: `echo` of server-everything called directly, through two
-- `cat`s and a relay (the minimum for two processes, or an event loop, in between), through a forwarder of the official
-- SDK (its minimum), through toolgate's socket and through `toolgate connect`; one call at a time, and 32 in flight.
-- The ways alternate, so that a busy machine affects all of them.
--   TOOLGATE=build/toolgate RELAY=build/bench/relay CLIENTS=build/clients luajit tests/bench/upstream.lua [ROUNDS [CALLS]]
package.path = "tests/support/?.lua;tests/clients/?.lua;" .. package.path
local daemon = require "daemon"
local process = require "process"
local client = require "client"
local packages = require "packages"
local dirent = require "posix.dirent"
local ffi = require "ffi"

ffi.cdef [[
  typedef struct { long s, ns; } moment;
  int clock_gettime(int clock, moment *now);
  int pipe2(int ends[2], int flags);
  int socket(int domain, int type, int protocol);
  struct unix_address { unsigned short family; char path[108]; };
  int connect(int fd, const struct unix_address *address, unsigned length);
  long read(int fd, void *into, size_t most);
  long write(int fd, const void *from, size_t count);
  int close(int fd);
  struct pollfd { int fd; short events, revents; };
  int poll(struct pollfd *of, unsigned long count, int ms);
  void *memchr(const void *where, int what, size_t count);
  void *memmem(const void *where, size_t count, const void *what, size_t of);
  void *memmove(void *to, const void *from, size_t count);
]]
local C = ffi.C
local ROUNDS, CALLS = tonumber(arg[1]) or 20, tonumber(arg[2]) or 1000
local IN_FLIGHT = 32
local O_CLOEXEC, AF_UNIX, SOCK_STREAM, CLOCK_MONOTONIC, POLLIN = 524288, 1, 1, 1, 1

local node = packages.node
local server = packages.modules .. "/@modelcontextprotocol/server-everything/dist/index.js"

-- The tool uses every stage of the gate: the server's schema, rules, a check, budgets, a result hook.
local POLICY = [[
-- echo: returns its argument. Read only; measured by tests/bench/upstream.lua.
return tool "echo" {
  upstream = "everything",
  effects  = "read",
  limits   = { calls_per_session = 1000000000 },
  rules    = { always : needs "message" },
  check = function(args, call)
    if args.message == "" then return repair { path = "message", code = "empty", message = "must say something" } end
  end,
  result = function(result, call)
    if not result.text then return garbage("no_text", "it said nothing", "say something else") end
  end,
}
]]

-- ---- a client that costs almost nothing, the same for every way: two descriptors, one message per line ----

local moment = ffi.new "moment"
local function now_us()
  C.clock_gettime(CLOCK_MONOTONIC, moment)
  return tonumber(moment.s) * 1e6 + tonumber(moment.ns) / 1e3
end

local SIZE = 1048576
local way = {}
way.__index = way

local function new_way(name, out, input, pid, child)
  return setmetatable({ name = name, out = out, input = input, pid = pid, child = child, kept = 0,
                        buffer = ffi.new("char[?]", SIZE), waits = ffi.new("struct pollfd", { input, POLLIN }) }, way)
end

function way:send(text)
  local sent = 0
  while sent < #text do
    local count = tonumber(C.write(self.out, ffi.cast("const char *", text) + sent, #text - sent))
    assert(count > 0, self.name .. " takes no more")
    sent = sent + count
  end
end

-- Waits for input; returns the number of answers in it, without notifications.
function way:hear()
  C.poll(self.waits, 1, -1) -- like an event loop; a process in read() would also wake when its peer reads
  local count = tonumber(C.read(self.input, self.buffer + self.kept, SIZE - self.kept))
  assert(count > 0, self.name .. " says nothing any more")
  local answers, from, left = 0, self.buffer, self.kept + count
  while true do
    local ending = C.memchr(from, 10, left)
    if ending == nil then break end
    local length = ffi.cast("char *", ending) + 1 - from
    if C.memmem(from, length, '"id":', 5) ~= nil then answers = answers + 1 end
    self.line, self.length = from, length -- the last answer
    from, left = from + length, left - length
  end
  if left > 0 then C.memmove(self.buffer, from, left) end
  self.kept = left
  return answers
end

local question = 0
local function request()
  question = question + 1
  return ('{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello %d"},'
          .. '"_meta":{"dev.toolgate/session":"bench"}}}\n'):format(question, question)
end

function way:ask(text)
  self:send(text)
  while self:hear() == 0 do end
  return ffi.string(self.line, self.length)
end

function way:opens()
  local hello = self:ask('{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25",'
                         .. '"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n')
  assert(hello:find('"serverInfo"', 1, true), hello)
  self:send '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
  local heard = self:ask(request())
  assert(heard:find("Echo: hello", 1, true) and not heard:find('"isError":true', 1, true), heard)
  return self
end

-- The median time of consecutive calls, in µs.
function way:one_at_a_time(calls)
  local took = {}
  for i = 1, calls do
    local text = request()
    local from = now_us()
    self:send(text)
    while self:hear() == 0 do end
    took[i] = now_us() - from
  end
  table.sort(took)
  return took[math.ceil(calls / 2)]
end

-- Calls per second.
function way:many_at_once(calls)
  local texts = {}
  for i = 1, IN_FLIGHT do texts[i] = request() end
  local sent, heard = IN_FLIGHT, 0
  local from = now_us()
  self:send(table.concat(texts))
  while heard < calls do
    local lines = self:hear()
    heard = heard + lines
    texts = {}
    while lines > 0 and sent < calls do
      texts[#texts + 1] = request()
      sent, lines = sent + 1, lines - 1
    end
    if #texts > 0 then self:send(table.concat(texts)) end
  end
  return calls / (now_us() - from) * 1e6
end

-- ---- the ways ----

-- `pid`: the process whose CPU time is measured.
local function by_pipes(name, argv, pid) -- true: the child's
  local to, from = ffi.new "int[2]", ffi.new "int[2]"
  assert(C.pipe2(to, O_CLOEXEC) == 0 and C.pipe2(from, O_CLOEXEC) == 0)
  local child = process.start(argv, { stdin = to[0], stdout = from[1], stderr = "/dev/null" })
  C.close(to[0])
  C.close(from[1])
  return new_way(name, to[1], from[0], pid == true and child.pid or pid, child):opens()
end

local function by_socket(name, path, pid)
  local fd = C.socket(AF_UNIX, SOCK_STREAM, 0)
  local address = ffi.new("struct unix_address", { AF_UNIX, path })
  assert(C.connect(fd, address, ffi.sizeof(address)) == 0, "cannot connect to " .. path)
  return new_way(name, fd, fd, pid):opens()
end

local function cpu_us(pid) -- of all its threads
  local sum = 0
  for _, thread in ipairs(pid and dirent.dir(("/proc/%d/task"):format(pid)) or {}) do
    local said = thread:find "^%d+$" and process.read(("/proc/%d/task/%s/schedstat"):format(pid, thread)) or ""
    sum = sum + (tonumber(said:match "%d+") or 0) / 1e3
  end
  return sum
end

local function rss_mb(pid)
  return tonumber(process.read(("/proc/%d/status"):format(pid)):match "VmRSS:%s+(%d+)") / 1024
end

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

-- ---- measurements ----

-- An idle core wakes up in 10 to 60 µs, which varies. An idle-priority process on each core keeps it awake, and yields
-- to all others.
local awake = {}
for i = 1, require("posix.unistd").sysconf(84) do
  awake[i] = process.start { "setpriv", "--pdeathsig", "KILL", "chrt", "--idle", "0", "sh", "-c", "while :; do :; done" }
end

packages.npm()
local gate = daemon.start {
  policies = { ["echo.lua"] = POLICY },
  config = ("return { upstreams = { everything = { command = %q, args = { %q, 'stdio' } } } }"):format(node, server),
}
process.eventually("the upstream is up", function()
  local one = gate:status().upstreams[1]
  return one.state == "up", client.json.encode(one)
end)
local relayed = process.directory()
local relay = process.start({ os.getenv "RELAY" or "build/bench/relay", relayed .. "/socket", node, server, "stdio" }, {})
process.eventually("the relay listens", function() return require("posix.unistd").access(relayed .. "/socket", "f") end)
local direct = by_pipes("direct", { node, server, "stdio" })
local ways = {
  direct,
  by_pipes("two cats", { "sh", "-c", 'cat | "$0" "$@" | cat', node, server, "stdio" }),
  by_socket("relay", relayed .. "/socket", relay.pid),
  by_pipes("forwarder", { node, packages.place .. "/npm/forwarder.mjs", node, server, "stdio" }, true),
  by_socket("socket", gate.socket, gate:pid()),
  by_pipes("connect", { daemon.binary, "connect", gate.socket }, gate:pid()),
}
for _, one in ipairs(ways) do
  one:one_at_a_time(2 * CALLS) -- node compiles hot code
  one:many_at_once(2 * CALLS)
  one.added, one.ratio, one.median, one.rate, one.cpu, one.cpu_many = {}, {}, {}, {}, {}, {}
end

for round = 1, ROUNDS do
  local base_us, base_rate
  for i = 1, #ways do
    -- the direct way first, the others in a different order in each round
    local one = i == 1 and direct or ways[2 + (i + round) % (#ways - 1)]
    local before = cpu_us(one.pid)
    local us = one:one_at_a_time(CALLS)
    local between = cpu_us(one.pid)
    local rate = one:many_at_once(CALLS)
    local after = cpu_us(one.pid)
    if one == direct then base_us, base_rate = us, rate end
    table.insert(one.median, us)
    table.insert(one.rate, rate)
    table.insert(one.added, us - base_us)
    table.insert(one.ratio, rate / base_rate)
    table.insert(one.cpu, (between - before) / CALLS)
    table.insert(one.cpu_many, (after - between) / CALLS)
  end
end

print(("echo of server-everything, %d rounds of %d calls each way; medians"):format(ROUNDS, CALLS))
print("             one at a time:         its own        32 in flight:          its own")
print("             µs       added µs     CPU µs a call   calls/s   of direct   CPU µs a call")
for _, one in ipairs(ways) do
  print(("%-10s %6.1f   %10s   %13s   %9.0f   %9.2f   %13s"):format(one.name, median(one.median),
    one == direct and "-" or ("%.1f"):format(median(one.added)), one.pid and ("%.1f"):format(median(one.cpu)) or "-",
    median(one.rate), median(one.ratio), one.pid and ("%.1f"):format(median(one.cpu_many)) or "-"))
end
print(("the gateway's memory: %.1f MB"):format(rss_mb(gate:pid())))

for _, one in ipairs(ways) do
  C.close(one.out)
  if one.input ~= one.out then C.close(one.input) end
  if one.child then
    one.child:signal(15)
    one.child:wait()
  end
end
for _, one in ipairs(awake) do
  one:signal(9)
  one:wait()
end
relay:signal(9)
relay:wait()
process.remove(relayed)
gate:stop()
