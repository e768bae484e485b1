-- Agents of a fleet, each in its own session and some in a shared one, and the assertions on every answer. A call that
-- was lost with its daemon, or refused during an outage of Redis, may have been counted or not: both are accepted.
-- Everything else is exact.
--
--   sure    calls that were answered        maybe    calls that may or may not have been counted
--
-- With a local fallback (`stand_ins` > 0) each daemon may grant a budget once more, and no daemon knows all calls; but
-- none may have counted more than there were.
local M = {}

M.CALLS_PER_TURN, M.SAME_CALL, M.SHARED = 5, 1, 40

-- The pause after a call that Redis did not count. It keeps a session from making more calls in an outage than its
-- window of 32 holds: the merge cannot compare calls that left the window.
local AWAY_PAUSE_MS = 400

M.policies = {
  ["look.lua"] = [==[
-- look: reads. Returns its argument.
return tool "look" {
  description = "Look.", effects = "read",
  schema = json [[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}]],
  run = function(args) return { seen = args.at } end,
}]==],
  ["note.lua"] = [==[
-- note: writes.
return tool "note" {
  description = "Note.", effects = "write",
  schema = json [[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}]],
  run = function(args) return { noted = args.at } end,
}]==],
  ["spend.lua"] = [==[
-- spend: reads, five times a turn.
return tool "spend" {
  description = "Spend.", effects = "read", limits = { calls_per_turn = 5 },
  schema = json [[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}]],
  run = function(args) return { spent = args.at } end,
}]==],
  ["share.lua"] = [==[
-- share: reads, forty times a session.
return tool "share" {
  description = "Share.", effects = "read", limits = { calls_per_session = 40 },
  schema = json [[{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}]],
  run = function(args) return { shared = args.at } end,
}]==],
}

local agent = {}
agent.__index = agent

-- ---- calls ------------------------------------------------------------------------

local function outcome_of(line)
  if not line then return { lost = true } end
  local verdict = line:match '"verdict":"(%a+)"'
  local out = { verdict = verdict, line = line, left = tonumber(line:match '"attempts_left":(%d+)') }
  if verdict ~= "pass" then out.code = line:match '"code":"([%w_]+)"' end
  out.unavailable = line:find('"ledger_unavailable"', 1, true) ~= nil
  return out
end

local function params_of(self, tool, arguments, step)
  self.labels = self.labels + 1
  return ('{"name":"%s","arguments":%s,"_meta":{"dev.toolgate/session":"%s","dev.toolgate/turn":%d,"dev.toolgate/step":"%s"}')
    :format(tool, arguments, self.session.name, self.turn, step or ("%d.%d"):format(self.number, self.labels))
end

-- Reports a call that the agent runs itself until a daemon answers: a second report must not count.
local function report(self, params, line)
  local told = ('%s,"callId":"%s","result":{"content":[{"type":"text","text":"done"}]}}'):format(
    params, line:match '"callId":"([^"]*)"')
  repeat
    local heard = self.fleet:ask(self, "toolgate/report", told)
    if heard and not heard:find('"verdict":"pass"', 1, true) and not heard:find("ledger_unavailable", 1, true) then
      self.fleet:problem("a report was answered %s", heard)
    end
  until heard
end

function agent:call(tool, arguments, step)
  local session, fleet, tally = self.session, self.fleet, self.tally
  local params = params_of(self, tool, arguments, step)
  local itself = self.itself
  local line = fleet:ask(self, itself and "toolgate/check" or "tools/call", params .. "}")
  local out = outcome_of(line)
  if not out.unavailable then tally.calls = tally.calls + 1 end
  if line and line:find('"ledger":"local"', 1, true) then fleet:pause(AWAY_PAUSE_MS)
  elseif fleet.thinks_ms then fleet:pause(math.random(2 * fleet.thinks_ms)) end
  if out.lost then
    session.lost, tally.lost = session.lost + 1, tally.lost + 1
  elseif out.unavailable then
    session.unavailable, tally.unavailable = session.unavailable + 1, tally.unavailable + 1
    fleet:pause(AWAY_PAUSE_MS)
  elseif out.verdict == "pass" then
    session.passed, tally.passed = session.passed + 1, tally.passed + 1
    if itself then report(self, params, line) end
  elseif not out.verdict then
    fleet:problem("a call was answered %s", line)
  else
    tally.refused = tally.refused + 1
  end
  return out
end

local function at(self) -- unique arguments
  self.said = self.said + 1
  return ('{"at":"%d-%d"}'):format(self.number, self.said)
end

-- ---- assertions ---------------------------------------------------------------------

local function unknown(out) return out.lost or out.unavailable end

-- The next call in a row of equal ones: `expected(n)` judges the answer to the n-th.
local function judge_nth(self, row, out, expected, what)
  if unknown(out) then
    row.maybe = row.maybe + 1
    return
  end
  local first = self.fleet.stand_ins > 0 and 1 or row.sure + 1
  row.sure = row.sure + 1
  for n = first, row.sure + row.maybe do
    if expected(n, out) then return end
  end
  if self.fleet.stand_ins > 0 and out.verdict ~= "pass" then return end
  self.fleet:problem("%s: after %d calls and perhaps %d more the answer is %s", what, row.sure - 1, row.maybe, out.line)
end

-- A call under a budget of `limit`: `row.sure` counts the calls that passed.
local function judge_budget(self, row, out, limit, codes, what)
  if unknown(out) then
    row.maybe = row.maybe + 1
  elseif out.verdict == "pass" then
    row.sure = row.sure + 1
    if row.sure > limit * (1 + self.fleet.stand_ins) then
      self.fleet:problem("%s: %d of %d passed: %s", what, row.sure, limit, out.line)
    end
  elseif not codes[out.code] then
    self.fleet:problem("%s: %s", what, out.line)
  else
    row.refusals = (row.refusals or 0) + 1
    row.refused = out.line
  end
end

-- A refusal for a spent budget must be justified. Budgets of a turn are not checked with a local fallback: calls of an
-- earlier turn may be merged in a later one, and count there.
local function judge_spent(self, row, limit, what)
  local late = self.fleet.stand_ins > 0 and limit ~= M.SHARED
  if not late and row.refused and row.sure + row.maybe < limit then
    self.fleet:problem("%s: refused after %d of %d, and perhaps %d more: %s", what, row.sure, limit, row.maybe, row.refused)
  end
end

-- ---- what an agent does in a turn ------------------------------------------------

local function looping(n, out)
  if n <= 2 then return out.verdict == "pass" end
  return out.verdict == (n <= 4 and "refuse" or "halt") and out.code == "loop"
end

local function runs_in_circles(self)
  local same, row = at(self), { sure = 0, maybe = 0 }
  for _ = 1, 6 do judge_nth(self, row, self:call("look", same), looping, "a loop") end
end

local function repairing(n, out)
  if n <= 2 then return out.verdict == "repair" and out.left == 3 - n end
  return out.verdict == "refuse"
end

local function gets_it_wrong(self)
  local row = { sure = 0, maybe = 0 }
  for i = 1, 4 do
    judge_nth(self, row, self:call("note", ('{"wrong":"%d-%d"}'):format(self.said, i)), repairing, "a repair chain")
  end
  local right = self:call("note", at(self))
  if not unknown(right) and right.verdict ~= "pass" then
    self.fleet:problem("valid arguments after a repair chain: %s", right.line)
  end
end

local function repeats_a_write(self)
  local same, row = at(self), { sure = 0, maybe = 0 }
  for _ = 1, 4 do
    judge_budget(self, row, self:call("note", same), M.SAME_CALL, { same_call = true, loop = true }, "a write")
    self:call("look", at(self))
  end
  judge_spent(self, row, M.SAME_CALL, "a write")
end

local SPENT = { calls_per_turn = true, calls_per_session = true }

local function spends(self)
  local row = { sure = 0, maybe = 0 }
  for _ = 1, 7 do
    judge_budget(self, row, self:call("spend", at(self)), M.CALLS_PER_TURN, SPENT, "calls of a turn")
    judge_spent(self, row, M.CALLS_PER_TURN, "calls of a turn")
  end
end

-- All calls of one step, concurrently, over all daemons.
local function spends_at_once(self)
  local row, bodies = { sure = 0, maybe = 0 }, {}
  for i = 1, 8 do
    local one, where = at(self), "all " .. self.said
    bodies[i] = function() return self:beside():call("spend", one, where) end
  end
  for _, out in ipairs(self.fleet:at_once(bodies)) do
    judge_budget(self, row, out, M.CALLS_PER_TURN, SPENT, "calls at once")
  end
  judge_spent(self, row, M.CALLS_PER_TURN, "calls at once")
end

local TWIN = { duplicate_in_step = true, same_call = true, loop = true }

local function writes_twins(self)
  local same, row, bodies = at(self), { sure = 0, maybe = 0 }, {}
  for i = 1, 4 do bodies[i] = function() return self:beside():call("note", same, "twins") end end
  for _, out in ipairs(self.fleet:at_once(bodies)) do judge_budget(self, row, out, 1, TWIN, "twins of a step") end
  judge_spent(self, row, 1, "twins of a step")
end

local SCENES = { runs_in_circles, gets_it_wrong, repeats_a_write, spends, spends_at_once, writes_twins }

-- ---- sessions -------------------------------------------------------------------------

local function new_session(self, name)
  local session = { name = name, passed = 0, lost = 0, unavailable = 0 }
  table.insert(self.sessions, session)
  return session
end

-- A second request of the same agent at the same time.
function agent:beside()
  return setmetatable({ gate = false }, { __index = self, __newindex = function(hand, key, value)
    if key == "gate" then rawset(hand, key, value) else self[key] = value end
  end })
end

-- Plays turns, twenty per session, until the fleet has made enough calls.
local function lives(self)
  while self.tally.calls < self.tally.wanted and not self.fleet.gave_up do
    self.lives = self.lives + 1
    self.session = new_session(self, ("agent %d, life %d"):format(self.number, self.lives))
    for turn = 1, 20 do
      if self.tally.calls >= self.tally.wanted then return end
      self.turn, self.itself = turn, math.random(3) == 1 -- in this turn it runs its tools itself
      SCENES[math.random(#SCENES)](self)
    end
  end
end

-- Eight agents spend the budget of one session.
local function shares(self, pool)
  self.session, self.turn = pool.session, 1
  pool.takers = pool.takers + 1
  local out
  repeat
    out = self:call("share", at(self))
    judge_budget(self, pool.row, out, M.SHARED, SPENT, "a budget of many agents")
  until (not unknown(out) and out.verdict ~= "pass") or self.fleet.gave_up
  pool.takers = pool.takers - 1
  if pool.takers == 0 then judge_spent(self, pool.row, M.SHARED, "a budget of many agents") end
end

-- Runs agents until they have made `calls` calls; returns the tally and the sessions.
function M.live(fleet, agents, calls, stand_ins)
  local tally = { calls = 0, passed = 0, refused = 0, lost = 0, unavailable = 0, wanted = calls }
  local sessions = {}
  fleet.stand_ins = stand_ins or 0
  local function born(number)
    return setmetatable({ fleet = fleet, number = number, tally = tally, sessions = sessions, labels = 0, said = 0, lives = 0 },
                        agent)
  end
  local pool
  for i = 1, agents do
    local one = born(i)
    if i % 8 == 1 then
      pool = { takers = 0, row = { sure = 0, maybe = 0 }, session = new_session(one, "shared by " .. i) }
      pool.session.is_shared = true
    end
    local mine = pool
    fleet:begin(function()
      shares(one, mine)
      lives(one)
    end)
  end
  fleet:run()
  return tally, sessions
end

-- ---- afterwards ------------------------------------------------------------------------

-- The rest of a shared session's budget can be spent, and no more.
local function spend_the_rest(fleet, place, session, calls)
  local rest, line = 0
  repeat
    rest = rest + 1
    line = fleet:ask(place, "tools/call", ('{"name":"share","arguments":{"at":"rest %d"},"_meta":%s}'):format(
      rest, ('{"dev.toolgate/session":"%s","dev.toolgate/turn":2}'):format(session.name)))
  until not line:find('"verdict":"pass"', 1, true)
  if calls + rest - 1 ~= math.max(calls, M.SHARED) then
    fleet:problem("'%s': %d calls were counted, and %d more passed: %s", session.name, calls, rest - 1, line)
  end
end

local function compare_one(fleet, place, session)
  local line = fleet:ask(place, "toolgate/session", ('{"session":"%s"}'):format(session.name))
  local calls, waiting = tonumber(line:match '"calls":(%d+)'), tonumber(line:match '"waiting":(%d+)')
  if line:find('"error"', 1, true) and session.passed == 0 then calls, waiting = 0, 0 end
  if not calls or calls < session.passed or calls > session.passed + session.lost then
    fleet:problem("'%s': %d passed, %d were lost, %d found the ledger away; Redis counted %s: %s", session.name,
                  session.passed, session.lost, session.unavailable, tostring(calls), line:sub(1, 400))
  elseif waiting > session.lost then
    fleet:problem("'%s': %d calls wait to be settled, %d were lost", session.name, waiting, session.lost)
  end
  if calls and session.is_shared then spend_the_rest(fleet, place, session, calls) end
  return calls or 0
end

-- Compares the sessions in Redis after all merges: as many calls as passed, and at most each lost one once. Returns the
-- number of exact sessions, and of all counted calls.
function M.compare(fleet, sessions)
  local exact, counted = 0, 0
  fleet:begin(function()
    local place = {}
    for _, session in ipairs(sessions) do
      local calls = compare_one(fleet, place, session)
      exact = exact + (calls == session.passed and 1 or 0)
      counted = counted + calls
    end
  end)
  fleet:run()
  return exact, counted
end

return M
