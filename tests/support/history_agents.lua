-- Agents that share sessions over all daemons of a fleet (fleet.lua) and record what they sent and heard, for the check
-- by linearize.lua. They run their tools themselves: a call is toolgate/check and, if it passes, toolgate/report; between
-- calls they begin turns and reset tools. Each request goes to another daemon than the agent's last one.
local client = require "client"
local histories = require "ledger_history"
local linearize = require "linearize"

local M = {}
local json = client.json

local AWAY_PAUSE_MS = 300 -- after a call that Redis did not count: an outage must not fill the history
local PAUSE_MS = 4       -- between a check and its report, now and then
local TURN_IDLE_S = 90   -- the configuration's default
local SPENT = { calls_per_turn = 5, calls_per_session = 12 }

-- Tools with their declarations, as a policy writes them and as the model takes them.
M.TOOLS = {
  { name = "look", effects = "read" },
  { name = "note", effects = "write" },
  { name = "wipe", effects = "destructive" },
  { name = "shell", effects = "unknown" },
  { name = "spend", effects = "read", policy = "limits = { calls_per_turn = 5, calls_per_session = 12 }",
    limits = { tool = SPENT } },
  { name = "watch", effects = "read", policy = "loop = { poll = { max = 4 } }", limits = { polls = true, poll_max = 4 } },
  { name = "verify", effects = "read", policy = [[loop = { compare = "arguments" }]], limits = { compare_arguments = true } },
  { name = "brittle", effects = "unknown", policy = [[loop = { same_failure = "refuse" }]], limits = { same_failure = 6 } },
}
for _, tool in ipairs(M.TOOLS) do tool.limits = histories.limits(tool.effects, tool.limits) end

-- The hook ends a call as its result tells.
local POLICY = [==[
-- %s: recorded by the linearizability check.
return tool %q {
  %s %s
  result = function(result)
    if result.how == "partial" then return partial("more", "more follow") end
    if result.how == "garbage" then return garbage("empty", "nothing there", "look elsewhere") end
    if result.how == "broken" then return broken("cut", "it ends in the middle") end
  end,
}
]==]

function M.policies()
  local files = {}
  for _, tool in ipairs(M.TOOLS) do
    local effects = tool.effects ~= "unknown" and ("effects = %q,"):format(tool.effects) or ""
    files[tool.name .. ".lua"] = POLICY:format(tool.name, tool.name, effects, tool.policy and tool.policy .. "," or "")
  end
  return files
end

function M.definitions()
  local list = {}
  for i, tool in ipairs(M.TOOLS) do
    list[i] = { name = tool.name, description = "For the linearizability check.", _meta = { ["dev.toolgate/schema"] = "strict" },
                inputSchema = { type = "object", properties = { at = { type = "string" } }, required = { "at" } } }
  end
  return json.encode(list)
end

-- ---- recording ------------------------------------------------------------------------

local world = {}
world.__index = world

-- `lenient`: Redis may be away, and then reports, turns and resets are answered before Redis has them.
function M.new(fleet, given)
  return setmetatable({ fleet = fleet, lenient = given.lenient, sessions = {}, seen = {}, position = 0, lost = 0,
                        made = 0, unavailable = 0, by_local = 0 }, world)
end

function world:now()
  self.position = self.position + 1
  return self.position
end

function world:new_session(kind)
  local session = { name = ("linear %d"):format(#self.sessions + 1), history = {}, turn = kind.told and 1 or 0, kind = kind,
                    labels = 0, passed = 0, lost = 0 }
  table.insert(self.sessions, session)
  return session
end

-- Requests whose effect may come after their answer, if Redis was away. If their daemon was killed meanwhile, it may never
-- come.
local function defer(request, gate)
  request.deferred = { gate = gate, kills = gate.kills }
end

-- What the answers tell of a daemon's Redis: at which positions it was there, and at which it was not.
local function watch(self, request, gate, was_there)
  local seen = self.seen[gate.number] or {}
  self.seen[gate.number] = seen
  table.insert(seen, { inv = request.inv, ret = self.position, was_there = was_there })
end

-- A refused check may have reached Redis before the outage; then the daemon takes it back. That it did is in the session's
-- last view, unless the daemon was killed with what it still had to take back.
local function take_back(session, request, gate)
  local release = { kind = "settle", session = request.session, admission = request.admission, tool = request.tool,
                    args = request.args, limits = request.limits, turn = request.turn, step = request.step, class = "released",
                    label = "cancelled", result = "", fact = "", cost_told = false, inv = request.inv, after = request,
                    turn_idle_s = TURN_IDLE_S, optional = true, takes_back = { gate = gate, kills = gate.kills } }
  table.insert(session.history, release)
end

local function keep_answer(self, session, request, gate, line)
  local heard = line and histories.heard_of(request.kind, line)
  if line and line:find('"error":{"code":', 1, true) then -- an unknown session is not reset; else the ledger is away
    heard = line:find('"code":1014,', 1, true) and request.kind == "reset" and {} or nil
    if not heard and not line:find('"code":1015,', 1, true) then self.fleet:problem("a request was answered %s", line) end
  end
  if not line then
    request.optional = true
    self.lost = self.lost + 1
  elseif not heard then
    request.optional, request.unavailable = true, true
    self.unavailable = self.unavailable + 1
    watch(self, request, gate, false)
    if request.kind == "admit" and request.so_far == "valid" then take_back(session, request, gate) end
  else
    request.ret, request.heard = self:now(), heard
    local is_local = line:find('"ledger":"local"', 1, true)
    if is_local then session.counted_locally, self.by_local = true, self.by_local + 1 end
    if request.kind == "admit" then watch(self, request, gate, not is_local) end
    if self.lenient and request.kind ~= "admit" then defer(request, gate) end
  end
  return heard
end

local agent = {}
agent.__index = agent

function agent:asks(request, method, params)
  local session, all = self.session, self.world
  request.session, request.inv = session.name, all:now()
  table.insert(session.history, request)
  local line = all.fleet:ask(self, method, params)
  request.daemon = self.gate.number
  local heard = keep_answer(all, session, request, self.gate, line)
  if line and (not heard or line:find('"ledger":"local"', 1, true)) then all.fleet:pause(AWAY_PAUSE_MS) end
  return heard, line
end

-- ---- requests ---------------------------------------------------------------------------

local function one_of(list) return list[math.random(#list)] end
local function now_and_then(n) return math.random(n) == 1 end

local function meta_of(session, place)
  local parts = { ('"dev.toolgate/session":"%s"'):format(session.name) }
  if place.turn > 0 then parts[#parts + 1] = ('"dev.toolgate/turn":%d'):format(place.turn) end
  if place.call ~= "" then parts[#parts + 1] = ('"dev.toolgate/call":"%s"'):format(place.call) end
  if place.step ~= "" then parts[#parts + 1] = ('"dev.toolgate/step":"%s"'):format(place.step) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local OUTCOMES = {
  { class = "ok", label = "ok" }, { class = "ok", label = "ok" }, { class = "ok", label = "ok" },
  { class = "ok", label = "ok" }, { class = "tool_error", label = "tool_error" },
  { class = "transient", label = "transient" }, { class = "partial", label = "partial_data" },
  { class = "garbage", label = "semantic_garbage" }, { class = "schema_mismatch", label = "schema_mismatch" },
}
local HOW = { ok = "ok", partial = "partial", garbage = "garbage", schema_mismatch = "broken" }

local function outcome_of(self)
  local outcome = one_of(OUTCOMES)
  local what = one_of { "r", "r", "r", "q", "new" }
  if what == "new" then what = "new " .. self.world.position end
  if outcome.class == "tool_error" or outcome.class == "transient" then
    return outcome, outcome.class .. " " .. what,
           ('"error":{"message":"%s","transient":%s}'):format(what, tostring(outcome.class == "transient"))
  end
  return outcome, HOW[outcome.class] .. " " .. what, ('"result":{"how":"%s","what":"%s"}'):format(HOW[outcome.class], what)
end

local function reports(self, admit, call_id)
  local outcome, result, told = outcome_of(self)
  local again
  repeat
    local request = { kind = "settle", admission = admit.admission, tool = admit.tool, args = admit.args,
                      limits = admit.limits, turn = admit.turn, step = admit.step, turn_idle_s = TURN_IDLE_S,
                      call = admit.call, class = outcome.class, label = outcome.label, result = result, fact = "",
                      cost_told = false }
    local _, line = self:asks(request, "toolgate/report", ('{"callId":"%s","name":"%s","arguments":%s,%s,"_meta":%s}')
      :format(call_id, admit.tool, admit.json, told, meta_of(self.session, admit)))
    again = not line -- a report that was lost with its daemon is sent again: it must not count twice
  until not again
end

local VALID = '{"at":"%s"}'
-- Another problem in the same place is progress in a repair chain.
local PROBLEMS = { { code = "missing", json = '{"wrong":"%s","more":1}' }, { code = "type", json = '{"at":{"x":"%s"}}' } }

local function calls(self, place)
  local session, all = self.session, self.world
  local tool = one_of(M.TOOLS)
  local args = one_of { "a", "a", "a", "b", "c" }
  local problem = now_and_then(6) and one_of(PROBLEMS)
  all.made = all.made + 1
  local request = { kind = "admit", admission = ("unheard %d"):format(all.made), tool = tool.name, limits = tool.limits,
                    args = problem and problem.code .. " " .. args or args, so_far = problem and "invalid" or "valid",
                    json = (problem and problem.json or VALID):format(args), call = place.call,
                    refused_as = problem and "invalid_arguments" or "", reservation_ms = 0, turn = place.turn,
                    step = place.step, turn_idle_s = TURN_IDLE_S,
                    problems = problem and { { path = "at", code = problem.code } } or nil }
  local heard, line = self:asks(request, "toolgate/check", ('{"name":"%s","arguments":%s,"_meta":%s}'):format(
    tool.name, request.json, meta_of(session, place)))
  local id = line and line:match '"callId":"([^"]*)"'
  if not line then session.lost = session.lost + 1 end
  if not heard or heard.verdict ~= "pass" then
    if id and heard then request.admission = id end
    return
  end
  request.admission = id
  session.passed = session.passed + 1
  if now_and_then(3) then all.fleet:pause(math.random(PAUSE_MS)) end
  if not now_and_then(25) then reports(self, request, id) end -- else it is never settled
end

local function next_place(self)
  local session = self.session
  if session.kind.labelled and not now_and_then(8) then session.labels = session.labels + 1 end
  local turn = session.turn
  if turn > 1 and now_and_then(10) then turn = turn - 1 end -- a late call of the last turn
  if turn > 0 and now_and_then(20) then
    session.turn = session.turn + 1
    turn = session.turn
  end
  return { turn = turn, step = session.kind.labelled and "m" .. session.labels or "",
           call = now_and_then(4) and "c1" or "" }
end

local function begins_turn(self)
  local session = self.session
  if session.turn > 0 then session.turn = session.turn + 1 end
  local request = { kind = "turn", turn = session.turn, goal = "" }
  self:asks(request, "toolgate/turn", ('{"turn":%d,"_meta":{"dev.toolgate/session":"%s"}}'):format(
    session.turn, session.name):gsub('"turn":0,', ""))
end

local function resets(self)
  local tool = one_of(M.TOOLS).name
  self:asks({ kind = "reset", tool = tool }, "toolgate/session",
            ('{"session":"%s","reset":"%s"}'):format(self.session.name, tool))
end

function agent:lives(count)
  for _ = 1, count do
    if self.world.fleet.gave_up then return end
    local roll = math.random(100)
    if roll <= 5 then begins_turn(self)
    elseif roll <= 8 then resets(self)
    else calls(self, next_place(self)) end
  end
end

-- ---- the workload -----------------------------------------------------------------------

-- Agents of a session without step names: there the journal tells too little of the order for a search among more.
local UNNAMED_AGENTS = 3

-- Plays `sessions` sessions, `groups` at once, each with `agents` agents that make `calls` calls each.
function world:plays(given)
  local left = given.sessions
  for _ = 1, given.groups do
    self.fleet:begin(function()
      while left > 0 and not self.fleet.gave_up do
        left = left - 1
        local session = self:new_session { told = not now_and_then(4), labelled = not now_and_then(3) }
        local bodies = {}
        for i = 1, session.kind.labelled and given.agents or math.min(given.agents, UNNAMED_AGENTS) do
          bodies[i] = function() setmetatable({ world = self, session = session, lane = i }, agent):lives(given.calls) end
        end
        self.fleet:at_once(bodies)
      end
    end)
  end
  self.fleet:run()
end

-- Asks for every session after everything is merged.
function world:views()
  self.merged = self:now()
  self.fleet:begin(function()
    local place = {}
    for _, session in ipairs(self.sessions) do
      local request = { kind = "view", session = session.name, inv = self:now() }
      local line = self.fleet:ask(place, "toolgate/session", ('{"session":"%s"}'):format(session.name))
      local message = json.decode(line)
      request.daemon, request.ret = place.gate.number, self:now()
      if message.result then
        request.heard = histories.view_of(message.result)
        session.final = request.heard
        table.insert(session.history, request)
      elseif session.passed > 0 then
        self.fleet:problem("'%s': %s", session.name, line)
      end
    end
  end)
  self.fleet:run()
end

-- ---- the verdict --------------------------------------------------------------------------

-- The times at which a daemon may have been without Redis: from the last call before an answer that says so to the first
-- call after it that Redis counted.
local function outages_of(seen)
  local list, open, last = {}, nil, 0
  table.sort(seen, function(a, b) return a.ret < b.ret end)
  for _, one in ipairs(seen) do
    if one.was_there then
      if open and one.inv > open.told then
        list[#list + 1] = { from = open.from, to = one.ret }
        open = nil
      end
      if not open then last = one.inv end
    else
      open = open or { from = last }
      open.told = one.ret
    end
  end
  if open then list[#list + 1] = { from = open.from, to = math.huge } end
  return list
end

local function overlaps(request, outages)
  for _, outage in ipairs(outages or {}) do
    if request.inv <= outage.to and request.ret >= outage.from then return true end
  end
  return false
end

-- The history with other assumptions: may_be_late(request): of a deferred one; may_have_happened(request): of one that
-- found the ledger unavailable.
local function relaxed(session, merged, may_be_late, may_have_happened)
  local out, twins = {}, {}
  for _, request in ipairs(session.history) do
    local twin, deferred = request, request.deferred
    if deferred and may_be_late(request) then
      twin = setmetatable({}, { __index = function(_, name)
        if name ~= "ret" and name ~= "heard" then return request[name] end
      end })
      if deferred.gate.kills > deferred.kills then twin.optional = true else twin.by = merged end
    elseif request.after then
      twin = setmetatable({ after = twins[request.after] }, { __index = request })
    end
    local never = request.unavailable and not may_have_happened(request)
    if not never and not (request.after and not twin.after) then out[#out + 1], twins[request] = twin, twin end
  end
  return out
end

local function always() return true end

-- The tools of which the journal tells that a call was taken back.
local function taken_back(session)
  local tools = {}
  for _, entry in ipairs(session.final and session.final.journal or {}) do
    local tool = entry:match "^(%S+) cancelled "
    if tool then tools[tool] = true end
  end
  return tools
end

local QUICK_BOUND = 3000 -- of the searches with more assumptions

-- An order in which few effects come late, and few refused calls happened after all, explains a history as well as any
-- other, and is found sooner.
local function check_one(self, session, bound)
  local tools, seen = taken_back(session), nil
  local function in_outage(request) return overlaps(request, self.outages[request.deferred.gate.number]) end
  local function in_journal(request) return request.so_far == "valid" and tools[request.tool] end
  local tries = { { in_outage, in_journal, QUICK_BOUND }, { in_outage, always, QUICK_BOUND }, { always, in_journal, bound },
                  { always, always, bound } }
  for i = self.lenient and 1 or #tries, #tries do
    local history = relaxed(session, self.merged, tries[i][1], tries[i][2])
    seen = linearize.check(history, histories.specification(session.name, session.final, history), tries[i][3], i == #tries)
    if seen.result == "explained" then return seen end
  end
  return seen
end

-- A session of which a daemon counted calls in its own ledger: no call is lost, none is counted twice.
local function totals_agree(session)
  local counted = session.final and session.final.calls or 0
  if counted >= session.passed and counted <= session.passed + session.lost then return true end
  return false, ("'%s': %d calls passed, %d were lost, %d are counted"):format(session.name, session.passed, session.lost,
                                                                              counted)
end

-- Checks each session. Returns how many were explained, of how many only the totals were checked, and the stories of
-- those that are wrong or undecided.
function world:check(bound)
  local out = { explained = 0, totals = 0, wrong = {}, undecided = {}, tried = 0, requests = 0 }
  self.outages = {}
  for number, seen in pairs(self.seen) do self.outages[number] = outages_of(seen) end
  for _, session in ipairs(self.sessions) do
    if session.counted_locally then
      local ok, why = totals_agree(session)
      out.totals = out.totals + 1
      if not ok then table.insert(out.wrong, why) end
    else
      local seen = check_one(self, session, bound)
      out.tried, out.requests = out.tried + seen.tried, out.requests + #session.history
      if seen.result == "explained" then out.explained = out.explained + 1
      else table.insert(out[seen.result], ("'%s': %s"):format(session.name, seen.story)) end
    end
  end
  return out
end

return M
