-- A second ledger to compare the real one with: sessions as plain lists of all their calls, judged by ledger_rules.lua.
-- It is written from the specification, not from the scripts; it packs, precomputes and forgets nothing early. It
-- answers as ledger.h does; fields that the specification leaves open are nil.
local rules = require "ledger_rules"

local M = {}

local SEEN_MAX    = 512
local RESERVATION = 60000
local STUCK       = 6

local CLASSES, UNLIMITED = rules.CLASSES, rules.UNLIMITED
local same_call, window, of_turn, let_run = rules.same_call, rules.window, rules.of_turn, rules.let_run
local step_of, re_armed_at, count_keys, outcome = rules.step_of, rules.re_armed_at, rules.count_keys, rules.outcome
local steps_spent, transient_count, was_used, used = rules.steps_spent, rules.transient_count, rules.was_used, rules.used
local run_steps, repeats, hammered, second_of = rules.run_steps, rules.repeats, rules.hammered, rules.second_of
local chain_of, left_open = rules.chain_of, rules.left_open

-- ---- sessions and turns ----
local function new_session(now)
  return {
    calls = {},      -- all of them, in the order of admission
    events = {},     -- for the repair chains of this turn
    uses = {},       -- admitted and released calls
    journal = {}, seen = {}, facts = {}, goal = "", paced = {},
    turn = 0, turn_began = now, steps = 0, label = "", -- the last step's number and name
    no_progress = 0, stuck = false, forgotten = false,
    tick = 0,        -- the number of operations on the session
    touched = now,   -- time of the last use; `heard`: start of the current idle time
  }
end

function M.new(options) return { sessions = {}, now = 0, ttl_ms = options.ttl_s * 1000 } end

function M.clock(model, now) model.now = now end

-- "Sessions expire after 24 h (configurable)."
local function known(model, name)
  local session = model.sessions[name]
  if session and model.now - session.touched >= model.ttl_ms then session, model.sessions[name] = nil, nil end
  return session
end

local function session_of(model, name)
  local session = known(model, name) or new_session(model.now)
  model.sessions[name] = session
  session.tick, session.touched = session.tick + 1, model.now
  return session
end

-- "However many retries, the session's journal holds one entry for the logical call."
local function note(session, call, class, code, turn, retries, now)
  table.insert(session.journal, {
    tool = call.tool, class = class, code = code ~= "" and code or nil, turn = turn, step = call.step % 256,
    retries = retries, at_ms = second_of(now) * 1000,
  })
end

local function begin_turn(session, turn, now)
  local gave_up = left_open(session)
  for _, chain in ipairs(gave_up) do
    note(session, chain.last, "invalid_arguments", "llm_gave_up", session.turn, chain.attempts - 1, now)
  end
  gave_up, session.events = #gave_up, {}
  session.turn, session.turn_began, session.stuck, session.label = turn, now, false, ""
  session.goal = ""
  return gave_up
end

-- "A late turn number counts in the current turn"; "without a turn number an idle time begins one". Calls, results and
-- turns reset the idle time.
local function come_to_turn(session, place, now)
  local gave_up = 0
  local quiet = session.heard and second_of(now) - second_of(session.heard) or 0
  if place.turn > session.turn then
    gave_up = begin_turn(session, place.turn, now)
  elseif place.turn == 0 and place.turn_idle_s > 0 and quiet >= place.turn_idle_s then
    gave_up = begin_turn(session, session.turn + 1, now)
  end
  if place.turn_idle_s > 0 then session.heard = now end
  return gave_up
end

local function end_silence(session, now) session.heard = session.heard and now end

local function progress(session, change)
  if change == 0 then session.no_progress = 0 end
  if change == 1 then session.no_progress = math.min(session.no_progress + 1, 255) end
  if change == 1 and session.no_progress >= STUCK then session.stuck = true end
end

-- ---- seen ids ----
local function has_seen(session, id)
  for _, known_id in ipairs(session.seen) do
    if known_id == id then return true end
  end
  return false
end

local function see(session, ids)
  for _, id in ipairs(ids or {}) do
    if not has_seen(session, id) then session.seen[#session.seen + 1] = id end
  end
  while #session.seen > SEEN_MAX do -- the one first seen longest ago
    table.remove(session.seen, 1)
    session.forgotten = true
  end
end

local function unseen(session, ids)
  local bits = 0
  for i, id in ipairs(ids or {}) do
    if not has_seen(session, id) then bits = bits + 2 ^ (i - 1) end
  end
  return bits
end

-- ---- admit ----
-- "What is never settled … its history entry stays, 'result unknown'."
local function expire(session, now)
  for _, call in ipairs(window(session)) do
    if let_run(call) and not call.class and not call.expired and now > call.expires then
      call.expired = true
      note(session, call, "unknown", "", call.turn, 0, now)
    end
  end
end

-- "If budget and loop apply, the code is loop." A declared poll that repeats too often counts as a loop.
local function poll_row(session, ask)
  if ask.limits.polls then return rules.poll_budget(session, ask) end
end
local LOOPS = { rules.loop, poll_row }
local BUDGETS = { rules.already_broken, rules.duplicate_in_step, rules.same_call_budget, rules.transient_budget,
                  rules.poll_budget, rules.limits }

local function first_of(list, session, ask, now)
  for _, rule in ipairs(list) do
    local says, code, amount, of_session = rule(session, ask, now)
    if says then return says, code, amount, of_session end
  end
end

local function find(session, admission)
  for _, call in ipairs(window(session)) do
    if call.admission == admission then return call end
  end
end

-- The outcomes of this call at any time, oldest first.
local function found(ask, calls)
  local out = {}
  for _, call in ipairs(calls) do
    if call.tick < ask.tick and same_call(call, ask) and not call.denied and call.class ~= "transient"
       and call.class ~= "released" then
      out[#out + 1] = outcome(call) or "running"
    end
  end
  return out
end

-- "The same invalid arguments again": the same call was invalid before in this turn.
local function invalid_before(session, ask)
  for _, what in ipairs(found(ask, of_turn(session, ask.turn))) do
    if what == "invalid" then return true end
  end
  return false
end

local function remember_event(session, call, chain, again)
  local event = { call = call, chain = chain, turn = session.turn, again = again or invalid_before(session, call) }
  session.events[#session.events + 1] = event
  return event, chain_of(session, session.turn, call.tool)
end

-- "1st and 2nd repair (left 2, 1)."
local function left_after(repair, attempts)
  if repair == UNLIMITED then return nil end
  return math.max(0, repair + 1 - attempts)
end

local DECIDE = {}

function DECIDE.valid(session, ask, answer, now)
  local says, code, amount, of_session = first_of(LOOPS, session, ask, now)
  if not says and not rules.already_broken(session, ask) then says, code, amount = rules.too_soon(session, ask, now) end
  if not says then says, code, amount, of_session = first_of(BUDGETS, session, ask, now) end
  answer.says, answer.code, answer.used, answer.of_session = says or "run", code or "", amount or 0, of_session or false
  -- "The same invalid arguments again: the same": also if the loop rule comes before the check of arguments.
  local before = found(ask, of_turn(session))
  if (code == "loop" or code == "cycle" or code == "poll_budget" and ask.limits.polls) and before[#before] == "invalid" then
    local event, chain = remember_event(session, ask, "invalid", true)
    answer.attempt, answer.attempts_left = chain.attempts, left_after(ask.limits.repair, chain.attempts)
    answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
  end
end

-- "Invalid: 1st and 2nd repair (left 2, 1), 3rd refuse retry_budget_exceeded."
function DECIDE.invalid(session, ask, answer, now)
  local event, chain = remember_event(session, ask, "invalid")
  answer.attempt = chain.attempts
  answer.attempts_left = left_after(ask.limits.repair, chain.attempts)
  answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
  answer.says = "repair"
  if chain.attempts > ask.limits.repair then answer.says, answer.code = "refuse", "retry_budget_exceeded" end
  local says, code = first_of(LOOPS, session, ask, now)
  if says then answer.says, answer.code = says, code end
end

-- A fabricated id, or a refusal by the gate: only a loop has precedence.
function DECIDE.refused(session, ask, answer, now)
  local says, code = first_of(LOOPS, session, ask, now)
  answer.says, answer.code = says or "refuse", code or ""
end

function DECIDE.fabricated(session, ask, answer, now)
  local event = remember_event(session, ask, "fabricated")
  answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
  DECIDE.refused(session, ask, answer, now)
end

-- "With no session key … budgets and loops advise there, and refuse only at anonymous_repeats (8) identical calls in a
-- row with an identical result."
local function advise(ask, answer, place)
  if answer.code == "" or answer.says == "run" then return end
  if answer.code == "loop" and answer.repeats + 1 >= place.anonymous_repeats then
    answer.says, answer.advise_only, answer.would = "refuse", nil, nil -- the other fields are open
    return
  end
  answer.advise_only, answer.would = true, answer.code
  answer.says, answer.code = "run", ""
  if ask.so_far == "invalid" then answer.says = "repair" end
  if ask.so_far == "fabricated" or ask.so_far == "refused" then answer.says = "refuse" end
end

-- The class in the journal of a call that the ledger itself refused.
local function denied_class(call)
  if not call.denied then return nil end
  if call.code == "loop" or call.code == "cycle" then return "loop" end
  return call.code == "too_soon" and "transient" or "retry_budget"
end

-- The complete journal, of which the ledger keeps the end, and the open chains.
local function history(session)
  local out = {}
  for i, entry in ipairs(session.journal) do out[i] = entry end
  for _, chain in ipairs(left_open(session)) do
    out[#out + 1] = { tool = chain.last.tool, class = "invalid_arguments", open = true, step = chain.step % 256,
                      retries = chain.attempts - 1 }
  end
  return out
end

local function facts_of(session)
  local out = {}
  for name in pairs(session.facts) do out[name] = true end
  return out
end

local function new_call(session, request, now)
  local l, lasts = request.limits, request.reservation_ms
  if not lasts or lasts == 0 then lasts = RESERVATION end
  return {
    admission = request.admission, tool = request.tool, args = request.args, so_far = request.so_far,
    turn = session.turn, label = request.step, step = step_of(session, request), at = now, tick = session.tick,
    anonymous = request.anonymous, expires = now + lasts, limits = l,
    reads = l.reads, destructive = l.destructive, cost = l.cost,
  }
end

function M.admit(model, request)
  local session, now = session_of(model, request.session), model.now
  local before = find(session, request.admission)
  -- "Idempotent by it": it counts once. The state of a repair chain may have changed, and is reported as it is now.
  if before then
    local first = before.answer or {}
    local told = request.so_far ~= "invalid" or before.denied
    return { says = told and first.says or nil, code = told and first.code or nil, turn = session.turn,
             no_progress = session.no_progress, chain = "" }
  end
  expire(session, now)
  local gave_up = come_to_turn(session, request, now)
  local ask = new_call(session, request, now)
  local answer = { code = "", would = "", chain = "", chain_retries = 0, of_session = false, advise_only = false,
                   used = 0, turn = session.turn, gave_up = gave_up, goal = session.goal,
                   unseen = unseen(session, request.ids), ids_complete = not session.forgotten }
  local chain = chain_of(session, session.turn, ask.tool)
  answer.attempt, answer.attempts_left = chain.attempts + 1, left_after(ask.limits.repair, chain.attempts + 1)
  answer.repeats = repeats(session, ask)
  answer.transient_count = transient_count(session, ask)
  DECIDE[request.so_far](session, ask, answer, now)
  if request.anonymous then advise(ask, answer, request) end
  ask.denied = answer.says ~= "run" and answer.code ~= "" and answer.code ~= "retry_budget_exceeded"
  ask.said, ask.code, ask.answer = answer.says, answer.code, answer
  if answer.says == "run" then
    local steps = steps_spent(session, ask)
    steps[ask.step] = true
    answer.spent = count_keys(steps)
  else
    progress(session, answer.code ~= "too_soon" and 1 or nil)
  end
  -- "That uses nothing up": a repeated too_soon replaces the one before it.
  local last = session.calls[#session.calls]
  if ask.code == "too_soon" then
    ask.soon = hammered(session, ask)
    ask.soon[ask.step] = true
    if last and last.code == "too_soon" and same_call(last, ask) then session.calls[#session.calls] = nil end
  end
  session.calls[#session.calls + 1] = ask
  answer.no_progress = session.no_progress
  session.steps, session.label = ask.step, ask.label
  if answer.says == "run" then
    table.insert(session.uses, { call = ask, by = 1, at = now })
    session.paced[ask.tool .. " " .. ask.args] = now
  end
  if answer.says == "refuse" or answer.says == "halt" then
    note(session, ask, denied_class(ask) or request.refused_as, answer.code, session.turn, answer.chain_retries, now)
  end
  if request.wants_history then answer.history = history(session) end
  if request.wants_facts then answer.facts = facts_of(session) end
  return answer
end

-- ---- settle ----
-- "Identical calls with identical results in a row, this one included."
local function repeats_with(session, call)
  local before = {}
  for _, other in ipairs(of_turn(session, call.turn)) do
    if other == call then break end
    before[#before + 1] = other
  end
  local steps = run_steps(call, before, re_armed_at(session, call.tool, call.tick))
  steps[call.turn .. "." .. call.step] = true
  return count_keys(steps)
end

-- The result of the same call before this one, in an earlier step of the turn: siblings do not count.
local function last_result(session, call)
  local last
  for _, other in ipairs(of_turn(session, call.turn)) do
    local ran = other.class and CLASSES[other.class].ran
    if other.tick < call.tick and other.step ~= call.step and same_call(other, call) and ran then last = other end
  end
  return last
end

-- "A settle without its admit is counted as `unknown`": it is in the list of calls, without an outcome.
local function orphan(session, request, now)
  local call = new_call(session, request, now)
  call.said, call.code, call.orphan, call.expired, call.settle_answer = "run", "", true, true, {}
  call.cost = request.cost_told and request.cost or request.limits.cost
  call.so_far = "valid"
  session.calls[#session.calls + 1] = call
  session.steps, session.label = call.step, call.label
  note(session, call, "unknown", "", session.turn, 0, now)
  see(session, request.gives_ids)
  if request.fact ~= "" then session.facts[request.fact] = true end
  end_silence(session, now)
  return { no_progress = session.no_progress, chain = "" }
end

function M.settle(model, request)
  local session, now = session_of(model, request.session), model.now
  local call = find(session, request.admission)
  if not call then return orphan(session, request, now) end
  if call.settle_answer then return { no_progress = session.no_progress, chain = "" } end
  local class = CLASSES[request.class]
  local last = class.ran and last_result(session, call)
  call.class, call.result = request.class, request.result
  call.cost = request.cost_told and request.cost or call.cost
  local unchanged = last and last.result == call.result or false
  -- Only a successful poll brings something new: another error text does not.
  call.changed = last and not unchanged and (request.class == "ok" or request.class == "partial") or false
  local answer = { unchanged = unchanged, chain = "", chain_retries = 0 }
  local chain = class.ends and "ran" or (request.class == "invalid" or request.class == "fabricated") and request.class
  if chain then
    local event, state = remember_event(session, call, chain)
    answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
    if request.class == "invalid" then
      answer.attempt, answer.attempts_left = state.attempts, left_after(call.limits.repair, state.attempts)
      answer.says = state.attempts > call.limits.repair and not call.anonymous and "refuse" or "repair"
    end
  end
  if not was_used(call) and let_run(call) then
    table.insert(session.uses, { call = call, by = -1, at = now })
    session.paced[call.tool .. " " .. call.args] = nil
  end
  if answer.says ~= "repair" then
    local code = answer.says == "refuse" and "retry_budget_exceeded" or ""
    note(session, call, request.label, code, call.turn, answer.chain_retries, now)
  end
  local change = class.progress
  if request.class == "ok" and unchanged then change = 1 end
  progress(session, change)
  see(session, request.gives_ids)
  if request.fact ~= "" then session.facts[request.fact] = true end
  -- "this one included": nil for classes that do not count.
  answer.repeats = class.run and repeats_with(session, call) or nil
  answer.transient_count = request.class == "transient" and transient_count(session, call, call.turn) or nil
  answer.no_progress = session.no_progress
  end_silence(session, now)
  call.settle_answer = answer
  return answer
end

-- ---- the rest ----
-- A turn number in the past changes nothing, nor does its goal.
function M.turn(model, request)
  local session, now = session_of(model, request.session), model.now
  local gave_up = 0
  local turn = request.turn > 0 and request.turn or session.turn + 1
  if turn > session.turn then gave_up = begin_turn(session, turn, now) end
  if turn == session.turn and request.goal ~= "" then session.goal = request.goal end
  end_silence(session, now)
  return { turn = session.turn, gave_up = gave_up }
end

function M.see(model, request)
  if #request.ids == 0 then return {} end
  see(session_of(model, request.session), request.ids)
  return {}
end

function M.peek(model, request)
  local session = known(model, request.session)
  if not session then return { turn = 0, no_progress = 0, stuck = false, goal = "" } end
  return { turn = session.turn, no_progress = session.no_progress, stuck = session.stuck, goal = session.goal }
end

-- "A person can end it": the tool's runs, budgets and chain restart, and its calls stay in the list; without a tool the
-- session is deleted.
function M.reset(model, request)
  local session = known(model, request.session)
  if not session then return {} end
  if request.tool == "" then
    model.sessions[request.session] = nil
    return {}
  end
  session.tick, session.touched = session.tick + 1, model.now
  for _, call in ipairs(session.calls) do
    if call.tool == request.tool then call.args = "before reset " .. call.admission end
  end
  for _, event in ipairs(session.events) do
    if event.call.tool == request.tool then event.chain = nil end
  end
  return {}
end

function M.view(model, request)
  local session = known(model, request.session)
  if not session then return {} end
  local calls, cost = used(session)
  local calls_in_turn, cost_in_turn = used(session, session.turn)
  return { session = {
    turn = session.turn, step = session.steps % 256, goal = session.goal ~= "" and session.goal or nil,
    history = history(session), facts = facts_of(session),
    ids = { seen = #session.seen, complete = not session.forgotten },
    budgets = { calls = calls, calls_in_turn = calls_in_turn, no_progress = session.no_progress,
                cost = cost / 1e6, cost_in_turn = cost_in_turn / 1e6, turn_began_ms = second_of(session.turn_began) * 1000 },
  } }
end

return M
