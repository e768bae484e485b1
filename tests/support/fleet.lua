-- Several daemons on one Redis, and an event loop that drives many agents over them. history_agents.lua has agents whose
-- answers are checked.
--
-- An agent is a coroutine. fleet:ask(…) sends a request to a running daemon and returns the line that answers it, or
-- nil if that daemon was killed in between.
local daemon = require "daemon"
local process = require "process"
local redis = require "redis"
local errno = require "posix.errno"
local fcntl = require "posix.fcntl"
local poll = require "posix.poll"
local signal = require "posix.signal"
local sockets = require "posix.sys.socket"
local unistd = require "posix.unistd"

local M = { running = {} }

local TICK_MS = 2          -- interval of timers and reconnects
local ANSWER_WITHIN_S = 60 -- a call that takes longer is lost
local SETTLE_WITHIN_S = 60 -- until every daemon has merged into Redis

local now = process.now

local fleet = {}
fleet.__index = fleet

-- ---- the daemons ----------------------------------------------------------------

local function gate_config(self, given, number)
  local url = given.between and given.between(self.store, number) or self.store:url()
  return ("return { socket_mode = '0600', log = { level = %q }, ledger = { redis = %q, timeout_ms = %d, on_outage = %q } }")
    :format(given.log or "error", url, given.timeout_ms or 5000, given.on_outage or "closed")
end

local function start_gate(self, gate)
  gate.daemon = daemon.start { fails = true, socket = gate.path, policies = self.policies, tools = self.tools,
                               config = gate.config }
end

-- given: daemons, on_outage, timeout_ms, policies (a table of files), tools (JSON), redis (arguments), log, between (a
-- function of the Redis and a daemon's number: the address of what is between the two), lanes: connections to each daemon
-- (an agent has one of them by its own `lane`).
function M.start(given)
  local self = setmetatable({ gates = {}, lanes = {}, waiting = {}, sleepers = {}, timers = {}, problems = {},
                              latencies = {}, agents = 0, unanswered = 0, asked = 0, directory = process.directory() }, fleet)
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)
  self.store = redis.start { arguments = given.redis or {} }
  self.policies, self.tools = self.directory .. "/policies", given.tools
  os.execute("mkdir " .. self.policies)
  for name, text in pairs(given.policies) do process.write(self.policies .. "/" .. name, text) end
  for i = 1, given.daemons do
    local gate = { number = i, path = ("%s/%d.sock"):format(self.directory, i), kills = 0, lanes = {},
                   config = gate_config(self, given, i) }
    self.gates[i] = gate
    for n = 1, given.lanes or 1 do
      local lane = setmetatable({ gate = gate, pending = {}, last_id = 0 }, { __index = gate })
      gate.lanes[n] = lane
      table.insert(self.lanes, lane)
    end
    start_gate(self, gate)
  end
  table.insert(M.running, self)
  self:until_all_are_up()
  return self
end

-- Kills a daemon with SIGKILL and starts it again at once. Its pending requests are lost.
function fleet:kill(gate)
  gate.kills = gate.kills + 1
  for _, lane in ipairs(gate.lanes) do lane.killed = true end
  gate.daemon.child:signal(signal.SIGKILL)
  gate.daemon.child:wait()
  gate.daemon.stopped = true
  process.remove(gate.daemon.directory)
  start_gate(self, gate)
end

function fleet:stop()
  for _, lane in ipairs(self.lanes) do
    if lane.fd then unistd.close(lane.fd) end
    lane.fd = nil
  end
  for _, gate in ipairs(self.gates) do gate.daemon:stop() end
  process.remove(self.directory)
end

function M.stop_all()
  local running = M.running
  M.running = {}
  for _, one in ipairs(running) do one:stop() end
end

-- ---- connections ------------------------------------------------------------------

function fleet:problem(...)
  if #self.problems < 20 then self.problems[#self.problems + 1] = string.format(...) end
end

local function reach(lane)
  local fd = assert(sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM, 0))
  local done = sockets.connect(fd, { family = sockets.AF_UNIX, path = lane.path })
  if not done then
    unistd.close(fd)
    return false
  end
  fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.O_NONBLOCK)
  fcntl.fcntl(fd, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  lane.fd, lane.input, lane.output, lane.killed = fd, "", "", false
  return true
end

local function resume(self, agent, line)
  local ok, why = coroutine.resume(agent, line)
  if not ok then
    self.agents = self.agents - 1
    self:problem("an agent: %s", debug.traceback(agent, why))
  elseif coroutine.status(agent) == "dead" then
    self.agents = self.agents - 1
  end
end

-- Resumes every agent that waits for this daemon, without an answer.
local function lose(self, lane)
  local pending = lane.pending
  unistd.close(lane.fd)
  lane.fd, lane.pending = nil, {}
  if not lane.killed then self:problem("daemon %d closed the connection: %s", lane.number, lane.gate.daemon:log():sub(-500)) end
  for _, call in pairs(pending) do
    self.unanswered = self.unanswered + 1
    resume(self, call.agent, nil)
  end
end

local function write_out(self, lane)
  while lane.output ~= "" do
    local sent, _, number = sockets.send(lane.fd, lane.output)
    if not sent then
      if number ~= errno.EAGAIN then lose(self, lane) end
      return
    end
    lane.output = lane.output:sub(sent + 1)
  end
end

local function answered(self, lane, line)
  local id = tonumber(line:match '^{"jsonrpc":"2.0","id":(%d+)')
  local call = id and lane.pending[id]
  if not call then return self:problem("daemon %d sent an unsolicited line: %s", lane.number, line) end
  lane.pending[id] = nil
  if self.measures then self.latencies[#self.latencies + 1] = now() - call.began end
  resume(self, call.agent, line)
end

local function read_in(self, lane)
  local text, _, number = sockets.recv(lane.fd, 262144)
  if not text and number == errno.EAGAIN then return end
  if not text or text == "" then return lose(self, lane) end
  local from, all, fd = 1, lane.input .. text, lane.fd
  while true do
    local stop = all:find("\n", from, true)
    if not stop then break end
    local line = all:sub(from, stop - 1)
    from = stop + 1
    answered(self, lane, line)
    if lane.fd ~= fd then return end -- the resumed agent killed the daemon
  end
  lane.input = all:sub(from)
end

-- ---- requests ---------------------------------------------------------------------

-- A running daemon other than the agent's last one, if there is another.
local function choose(self, place)
  local alive, last, n = {}, place.gate, place.lane or 1
  for _, gate in ipairs(self.gates) do
    if gate.lanes[n].fd and gate ~= last then alive[#alive + 1] = gate end
  end
  if #alive > 0 then return alive[math.random(#alive)] end
  return last and last.lanes[n].fd and last
end

-- Called in an agent's coroutine. `place` belongs to the agent: { gate = its last daemon, lane = of its connections }.
function fleet:ask(place, method, params)
  local gate = choose(self, place)
  while not gate do
    table.insert(self.waiting, coroutine.running())
    coroutine.yield()
    gate = choose(self, place)
  end
  place.gate = gate
  local lane = gate.lanes[place.lane or 1]
  lane.last_id = lane.last_id + 1
  lane.pending[lane.last_id] = { agent = coroutine.running(), began = now() }
  lane.output = lane.output .. ('{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n'):format(lane.last_id, method, params)
  self.asked = self.asked + 1
  return (coroutine.yield())
end

-- Several concurrent requests, each over its own daemon; returns when all are answered.
function fleet:at_once(bodies)
  local left, me, out, waits = #bodies, coroutine.running(), {}, false
  for i, body in ipairs(bodies) do
    self:begin(function()
      out[i] = body()
      left = left - 1
      if left == 0 and waits then self.waiting[#self.waiting + 1] = me end
    end)
  end
  waits = true
  while left > 0 do coroutine.yield() end
  return out
end

function fleet:begin(body)
  self.agents = self.agents + 1
  resume(self, coroutine.create(body))
end

-- Called in an agent's coroutine.
function fleet:pause(ms)
  table.insert(self.sleepers, { agent = coroutine.running(), until_then = now() + ms / 1000 })
  coroutine.yield()
end

-- ---- the loop ---------------------------------------------------------------------

-- Calls act every `often` = {ms = …} or {calls = …} (requests made), until fleet:calm().
function fleet:every(often, act)
  local timer = { act = act }
  local function set()
    timer.at = often.ms and now() + often.ms / 1000
    timer.asked = often.calls and self.asked + often.calls
  end
  function timer.again()
    set()
    act()
  end
  set()
  table.insert(self.timers, timer)
end

function fleet:once_in(ms, act)
  local timer = { at = now() + ms / 1000 }
  function timer.again()
    timer.at = nil
    act()
  end
  table.insert(self.timers, timer)
end

function fleet:calm()
  self.timers = {}
end

local function look_after_time(self, at)
  for _, lane in ipairs(self.lanes) do
    if not lane.fd then reach(lane) end
  end
  for _, timer in ipairs(self.timers) do
    if (timer.at and at >= timer.at) or (timer.asked and self.asked >= timer.asked) then timer.again() end
  end
end

local function wake_sleepers(self, at)
  local sleepers = self.sleepers
  self.sleepers = {}
  for _, one in ipairs(sleepers) do
    if at >= one.until_then then resume(self, one.agent) else table.insert(self.sleepers, one) end
  end
end

local function wake_waiting(self)
  local waiting = self.waiting
  if #waiting == 0 then return end
  self.waiting = {}
  for _, agent in ipairs(waiting) do resume(self, agent) end
end

local function poll_once(self, ms)
  local fds = {}
  for _, lane in ipairs(self.lanes) do
    if lane.fd and lane.output ~= "" then write_out(self, lane) end
    if lane.fd then fds[lane.fd] = { events = { IN = true, OUT = lane.output ~= "" }, lane = lane } end
  end
  local before = now()
  poll.poll(fds, ms)
  local late = now() - before - ms / 1000
  if late > (self.latest or 0) then self.latest = late end
  for fd, one in pairs(fds) do
    local seen = one.revents
    if seen and one.lane.fd == fd and (seen.IN or seen.HUP or seen.ERR) then read_in(self, one.lane) end
  end
end

local function complain_of_silence(self)
  for _, lane in ipairs(self.lanes) do
    for id, call in pairs(lane.pending) do
      if now() - call.began > ANSWER_WITHIN_S then
        self:problem("daemon %d lives and has not answered call %d for %d s", lane.number, id, ANSWER_WITHIN_S)
        self.gave_up = true
        return
      end
    end
  end
end

-- Runs until every agent has ended.
function fleet:run()
  local next_look, next_complaint = 0, now() + 1
  while self.agents > 0 and not self.gave_up do
    poll_once(self, TICK_MS)
    local at = now()
    if at >= next_look then
      look_after_time(self, at)
      wake_sleepers(self, at)
      next_look = at + TICK_MS / 1000
    end
    wake_waiting(self)
    if at >= next_complaint then
      complain_of_silence(self)
      next_complaint = at + 1
    end
  end
end

function fleet:until_all_are_up()
  process.eventually("every daemon accepts", function()
    for _, gate in ipairs(self.gates) do
      local how, code = gate.daemon.child:status()
      if how then error(("daemon %d %s with %d: %s"):format(gate.number, how, code, gate.daemon:log()), 0) end
      for _, lane in ipairs(gate.lanes) do
        if not lane.fd and not reach(lane) then return false end
      end
    end
    return true
  end)
end

-- Waits until every daemon is connected to Redis and has merged everything.
function fleet:until_all_is_merged()
  self:until_all_are_up()
  for _, gate in ipairs(self.gates) do
    process.eventually(("daemon %d has merged everything into Redis"):format(gate.number), function()
      -- A daemon that was killed last may not listen again yet: its broken connection is noticed only on reading.
      local asked, status = pcall(gate.daemon.status, gate.daemon)
      if not asked then return false, status end
      local ledger = status.ledger
      for _, connection in ipairs(gate.daemon.clients) do connection:close() end
      gate.daemon.clients = {}
      return ledger.connected and ledger.waiting == 0, ("waiting %d, %s"):format(ledger.waiting, ledger.why_away or "")
    end, SETTLE_WITHIN_S)
  end
end

-- ---- faults -------------------------------------------------------------------------

function fleet:kills_daemons(often)
  self:every(often, function() self:kill(self.gates[math.random(#self.gates)]) end)
end

-- Repeats `act` on Redis and undoes it after for_ms; self[count] counts how often.
local function disturbs_redis(self, count, often, for_ms, act, undo)
  self[count] = 0
  self:every(often, function()
    if self.redis_down then return end
    self[count], self.redis_down = self[count] + 1, true
    act(self.store)
    self:once_in(for_ms, function()
      self.redis_down = false
      undo(self.store)
    end)
  end)
end

function fleet:kills_redis(often, down_ms)
  disturbs_redis(self, "redis_kills", often, down_ms, self.store.kill, self.store.begin_again)
end

function fleet:stops_redis(often, for_ms)
  disturbs_redis(self, "redis_stops", often, for_ms, self.store.freeze, self.store.thaw)
end

-- Ends all faults of Redis.
function fleet:calms_redis()
  self:calm()
  self.store:thaw()
  if self.store.child:status() then self.store:begin_again() end
  self.redis_down = false
end

function fleet:kills()
  local count = 0
  for _, gate in ipairs(self.gates) do count = count + gate.kills end
  return count
end

-- The latencies' distribution, in ms: median, p99, p99.9, worst.
function fleet:distribution()
  local list = self.latencies
  table.sort(list)
  local function at(share) return list[math.max(1, math.ceil(#list * share))] * 1000 end
  return { count = #list, p50 = at(0.5), p99 = at(0.99), p999 = at(0.999), worst = at(1) }
end

return M
