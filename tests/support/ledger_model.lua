-- A second ledger to compare the real one with: sessions as plain lists of their calls, judged by ledger_rules.lua.
-- It is written from the specification, not from the C code; it packs and precomputes nothing. It answers as ledger.h
-- does; fields that the specification leaves open are nil.
--
-- A linearizability checker needs three more functions: M.clone, M.apply and M.difference, at the end of this file.
local rules = require "ledger_rules"

local M = { met = rules.met, meet = rules.meet } -- how often each decision was reached

local WINDOW      = 32 -- "a window of 32": the calls that budgets and loops count
local SEEN_MAX    = 512
local CHAINS_MAX  = 16
local PACED_MAX   = 32
local RESERVATION = 60000
local STUCK       = 6
local RUNAWAY     = 20 -- invalid attempts beyond the repairs

local CLASSES, UNLIMITED = rules.CLASSES, rules.UNLIMITED
local same_call, of_turn, let_run = rules.same_call, rules.of_turn, rules.let_run
local step_of, re_armed_at, count_keys, outcome = rules.step_of, rules.re_armed_at, rules.count_keys, rules.outcome
local steps_spent, transient_count, was_used, used = rules.steps_spent, rules.transient_count, rules.was_used, rules.used
local run_steps, repeats, second_of = rules.run_steps, rules.repeats, rules.second_of
local chain_of, extend_chain = rules.chain_of, rules.extend_chain

-- ---- sessions and turns ----
local function new_session(now)
  return {
    calls = {},      -- the window: the last calls, in the order of admission
    left = {},       -- by tool: calls and cost of those that left the window, and how much of it is of earlier turns
    chains = {},     -- repair chains of this turn, the one extended last at the end
    in_use = {},     -- by tool: calls of this turn that were let run and not given back, and when the first one was
    spent = {},      -- counts of the turn that outlast the window: see ledger_rules.lua
    lax = {},        -- problems that were asked about: see ledger_rules.lua, insistence
    paced = {},      -- the last time of calls with a pace, the one let run last at the end
    journal = {}, seen = {}, facts = {}, goal = "",
    turn = 0, turn_began = now, steps = 0, label = "", -- the last step's number and name
    told = false,    -- somebody named a turn; else all turns were guessed
    no_progress = 0, stuck = false, forgotten = false,
    tick = 0,        -- the number of operations on the session
    last = now,      -- time of the last request that counted
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

-- "However many retries, the session's journal holds one entry for the logical call"; it counts fifteen of them.
local function note(session, call, class, code, turn, retries, now, halted)
  table.insert(session.journal, {
    tool = call.tool, class = class, code = code ~= "" and code or nil, turn = turn, step = call.step % 256,
    retries = math.min(retries, 15), at_ms = second_of(now) * 1000, halted = halted or nil,
  })
end

-- "A chain left open when its turn ends is llm_gave_up; when toolgate/turn {end: true} closes the conversation, too."
local function give_up(session, chain, now)
  if chain.over then return 0 end
  note(session, chain, "invalid_arguments", "llm_gave_up", session.turn, chain.attempts - 1, now)
  return 1
end

local function give_up_all(session, now)
  local gave_up = 0
  for _, chain in ipairs(session.chains) do gave_up = gave_up + give_up(session, chain, now) end
  session.chains = {}
  return gave_up
end

-- A call keeps one byte of its turn's number: if it ends more than 255 turns later, the journal shows a later turn.
local function turn_in_journal(session, call) return session.turn - (session.turn - call.turn) % 256 end

-- A call leaves the window. Its sums stay.
local function drop_call(session, at)
  local gone = table.remove(session.calls, at)
  local sums = session.left[gone.tool] or { calls = 0, cost = 0, calls_before = 0, cost_before = 0 }
  session.left[gone.tool] = sums
  if not was_used(gone) then return end
  local one, before = gone.orphan and 0 or 1, gone.turn ~= session.turn
  sums.calls, sums.cost = sums.calls + one, sums.cost + gone.cost
  if before then sums.calls_before, sums.cost_before = sums.calls_before + one, sums.cost_before + gone.cost end
end

-- The window knows one byte of a turn's number: calls that would be mistaken for calls of the turn that begins, and those
-- before them, leave it.
local function forget_turn(session, turn)
  for i = #session.calls, 1, -1 do
    if session.calls[i].turn % 256 == turn % 256 then
      for _ = 1, i do drop_call(session, 1) end
      return
    end
  end
end

-- "Between other turns calls count only within loop.across_within (10 minutes)": a turn that begins after such a pause
-- begins all runs anew. Calls stay in the list, as after a reset.
local function begin_turn(session, turn, now)
  if now - session.last >= 600000 then
    M.meet "a turn after a pause"
    for _, call in ipairs(session.calls) do
      if call.effects ~= "destructive" then call.args, call.reset = "before a pause " .. call.admission, true end
    end
  end
  if now - session.last >= 600000 then rules.drop_spent(session, nil, true) end
  rules.drop_spent(session, nil, not session.told)
  local gave_up = give_up_all(session, now)
  session.turn, session.turn_began, session.stuck, session.label = turn, now, false, ""
  session.goal, session.in_use = "", {}
  for _, sums in pairs(session.left) do sums.calls_before, sums.cost_before = sums.calls, sums.cost end
  forget_turn(session, turn)
  return gave_up
end

-- "A late turn number counts in the current turn"; without any turn number an idle time begins one. "Sessions without
-- turn numbers: a silence of turn_idle_s begins a turn": sessions in which nobody ever named one. Calls, results and
-- turns reset the idle time.
local function come_to_turn(session, place, now)
  local gave_up = 0
  local quiet = session.heard and second_of(now) - second_of(session.heard) or 0
  if place.turn > 0 then session.told = true end
  if place.turn > session.turn then
    gave_up = begin_turn(session, place.turn, now)
  elseif not session.told and place.turn_idle_s > 0 and quiet >= place.turn_idle_s then
    gave_up = begin_turn(session, session.turn + 1, now)
    M.meet "silence begins a turn"
  elseif place.turn == 0 and place.turn_idle_s > 0 and quiet >= place.turn_idle_s then
    M.meet "silence in a told session"
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
  local seen = session.seen
  for _, id in ipairs(ids or {}) do
    if not has_seen(session, id) then
      if session.seen == seen then session.seen = { unpack(seen) } end -- a clone still has the old list
      table.insert(session.seen, id)
    end
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
  for _, call in ipairs(session.calls) do
    if let_run(call) and not call.class and not call.expired and now > call.expires then
      call.expired = true
      note(session, call, "unknown", "", turn_in_journal(session, call), 0, now)
    end
  end
end

-- "If budget and loop apply, the code is loop." A declared poll that repeats too often counts as a loop.
local function poll_row(session, ask)
  if rules.is_poll(session, ask) then return rules.poll_budget(session, ask) end
end
local LOOPS = { rules.loop, poll_row }
-- The first that has something against a valid call gives the code.
local BUDGETS = { rules.already_broken, rules.too_soon, rules.same_failure, rules.duplicate_in_step,
                  rules.same_call_budget, rules.transient_budget, rules.poll_budget, rules.limits, rules.rate_limit }

-- What a rule says, its code, how much is used up, whether of the session's limit; last the code of a rule that only
-- advises: those behind it are still asked.
local function first_of(list, session, ask, now)
  local would
  for _, rule in ipairs(list) do
    local says, code, amount, of_session = rule(session, ask, now)
    if says == "advise" then
      would = code
    elseif says then
      return says, code, amount, of_session
    end
  end
  return nil, nil, nil, nil, would
end

local function find(session, admission)
  for _, call in ipairs(session.calls) do
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

-- One more invalid attempt. "Bounds: 16 chains, the oldest is given up: logged and in the journal as at a turn's end."
local function attempt_again(session, call, problems, again, answer, now)
  local chain, ended, retries, free, one_too_many =
    extend_chain(session, call, problems, again or invalid_before(session, call))
  answer.chain, answer.chain_retries = ended, retries
  if #session.chains > CHAINS_MAX then
    M.meet "17th chain"
    answer.gave_up = (answer.gave_up or 0) + give_up(session, table.remove(session.chains, 1), now)
  end
  return chain, free, one_too_many
end

-- "1st and 2nd repair (left 2, 1)."
local function left_after(repair, attempts)
  if repair == UNLIMITED then return nil end
  return math.max(0, repair + 1 - attempts)
end

local DECIDE = {}

-- What the model insists on, or the server accepts, is judged as if it were valid.
function DECIDE.lax(session, ask, answer, now)
  local kind = rules.lax_kind(session, ask)
  if not kind then return false end
  DECIDE.valid(session, ask, answer, now)
  ask.so_far, ask.lax_kind = "valid", kind
  return true
end

function DECIDE.valid(session, ask, answer, now)
  local says, code, amount, of_session, would = first_of(LOOPS, session, ask, now)
  local looping = says ~= nil
  if not says then says, code, amount, of_session, would = first_of(BUDGETS, session, ask, now) end
  answer.says, answer.code, answer.used, answer.of_session = says or "run", code or "", amount or 0, of_session or false
  -- "Where several reasons apply": advice is only told where nothing refuses.
  if would then answer.advise_only, answer.would = true, would end
  -- "The same invalid arguments again: the same": also if the loop rule comes before the check of arguments. What is wrong
  -- with them was not looked at.
  local before = found(ask, of_turn(session))
  if looping and before[#before] == "invalid" then
    local chain = attempt_again(session, ask, nil, true, answer, now)
    M.meet "a loop extends a chain"
    answer.attempt, answer.attempts_left = chain.attempts, left_after(ask.limits.repair, chain.attempts)
  end
end

-- "Invalid: 1st and 2nd repair (left 2, 1), 3rd refuse retry_budget_exceeded." Returns true if the attempt made progress.
-- A free attempt of an anonymous session is not advised about either, however many attempts there were.
-- "Halt comes later where what is repeated is invalid arguments that shrink": by as many calls as made progress before. And
-- invalid arguments that go on after the end of their chain are a halt from the 20th refused attempt on.
function DECIDE.invalid(session, ask, answer, now)
  local before = chain_of(session, ask)
  ask.patience = before and before.free or 0
  local chain, free, one_too_many = attempt_again(session, ask, ask.problems, false, answer, now)
  answer.attempt = chain.attempts
  answer.attempts_left = left_after(ask.limits.repair, chain.attempts)
  answer.says = "repair"
  if one_too_many then answer.says, answer.code = "refuse", "retry_budget_exceeded" end
  if answer.says == "refuse" and chain.over and chain.attempts >= ask.limits.repair + RUNAWAY then
    answer.says = "halt"
  end
  local says, code, amount = first_of(LOOPS, session, ask, now)
  if says then answer.says, answer.code, answer.used = says, code, amount or 0 end
  return free
end

-- A fabricated id, or a refusal by the gate: only a loop has precedence.
function DECIDE.refused(session, ask, answer, now)
  local says, code, amount = first_of(LOOPS, session, ask, now)
  answer.says, answer.code, answer.used = says or "refuse", code or "", amount or 0
end

function DECIDE.fabricated(session, ask, answer, now)
  answer.chain, answer.chain_retries = rules.end_chain_fabricated(session, ask)
  DECIDE.refused(session, ask, answer, now)
end

-- "With no session key … budgets and loops advise there, and refuse only at anonymous_repeats (8) identical calls in a
-- row with an identical result."
local function advise(session, ask, answer, place)
  if answer.code == "" or answer.says == "run" then return end
  if answer.code == "loop" and rules.times_in_row(session, ask) >= place.anonymous_repeats then
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
  return (call.code == "too_soon" or call.code == "rate_limit") and "transient" or "retry_budget"
end

-- The complete journal, of which the ledger keeps the end, and the open chains.
local function history(session)
  local out = {}
  for i, entry in ipairs(session.journal) do out[i] = entry end
  for _, chain in ipairs(session.chains) do
    if not chain.over then
      out[#out + 1] = { tool = chain.tool, class = "invalid_arguments", open = true, step = chain.step,
                        retries = chain.attempts - 1 }
    end
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
    lax = request.lax, call = request.call or "", problems = request.problems or {}, rate_wait_ms = request.rate_wait_ms,
    turn = session.turn, label = request.step, step = step_of(session, request), at = now, tick = session.tick,
    anonymous = request.anonymous, turn_idle_s = request.turn_idle_s, expires = now + lasts, limits = l,
    effects = l.effects, cost = l.cost,
  }
end

-- The oldest call leaves the window, but what may have changed the world only after all that it re-arms, and a call whose
-- result is still to come last, for 128 steps.
local function leaving(session, step)
  local at, least = 1, math.huge
  for i, call in ipairs(session.calls) do
    local comes = let_run(call) and not call.class and not call.orphan and (step - call.step) % 256 < 128
    local changed = i > 1 and rules.succeeded(call) and call.effects ~= "read"
    local against = (comes and 4 or 0) + (changed and 2 or 0)
    if against < least then at, least = i, against end
  end
  return at
end

-- A call comes into the window.
local function remember(session, call)
  if #session.calls == WINDOW then
    local at = leaving(session, call.step)
    rules.spend(session, session.calls[at], at)
    drop_call(session, at)
  end
  table.insert(session.calls, call)
end

local function forget_pace(session, call)
  for i, paced in ipairs(session.paced) do
    if same_call(paced, call) then return table.remove(session.paced, i) end
  end
end

-- "And not sooner than `every` after the last time": the last 32 calls with a pace.
local function remember_pace(session, call, now)
  if call.limits.poll_every_ms == 0 then return end
  forget_pace(session, call)
  table.insert(session.paced, { tool = call.tool, args = call.args, at = now })
  if #session.paced > PACED_MAX then table.remove(session.paced, 1) end
end

local function use(session, call, now)
  local in_use = session.in_use[call.tool] or { calls = 0 }
  session.in_use[call.tool] = in_use
  if in_use.calls == 0 then in_use.first = now end
  in_use.calls = in_use.calls + 1
  remember_pace(session, call, now)
end

local function give_back(session, call)
  local in_use = session.in_use[call.tool]
  if call.turn == session.turn then in_use.calls = in_use.calls - 1 end
  if call.limits.poll_every_ms > 0 then forget_pace(session, call) end
end

function M.admit(model, request)
  local session, now = session_of(model, request.session), model.now
  local before = find(session, request.admission)
  -- "Idempotent by it": it counts once. The state of a repair chain may have changed, and is reported as it is now.
  if before then
    M.meet "admitted again"
    local first = before.answer or {}
    local told = request.so_far ~= "invalid" or before.denied or first.lax
    return { says = told and first.says or nil, code = told and first.code or nil, turn = session.turn,
             no_progress = session.no_progress, chain = "" }
  end
  expire(session, now)
  local gave_up = come_to_turn(session, request, now)
  session.last = now
  local ask = new_call(session, request, now)
  local answer = { code = "", would = "", chain = "", chain_retries = 0, of_session = false, advise_only = false,
                   used = 0, turn = session.turn, gave_up = gave_up, goal = session.goal,
                   unseen = unseen(session, request.ids), ids_complete = not session.forgotten }
  local chain = chain_of(session, ask)
  answer.attempt = (chain and chain.attempts or 0) + 1
  answer.attempts_left = left_after(ask.limits.repair, answer.attempt)
  answer.repeats = repeats(session, ask)
  answer.transient_count = transient_count(session, ask)
  local lax = request.so_far == "invalid" and DECIDE.lax(session, ask, answer, now)
  local free = not lax and DECIDE[request.so_far](session, ask, answer, now)
  if request.anonymous then advise(session, ask, answer, request) end
  answer.lax = lax and answer.says == "run" or false
  if answer.lax then
    M.meet("lax, " .. ask.lax_kind)
    if ask.lax_kind == "insists" then
      rules.lax_spend(session, ask)
      local spent = chain_of(session, ask)
      answer.attempt = spent and spent.attempts or 1
      answer.attempts_left = left_after(ask.limits.repair, answer.attempt)
    end
    rules.lax_remember(session, ask, ask.admission)
  end
  ask.denied = answer.says ~= "run" and answer.code ~= "" and answer.code ~= "retry_budget_exceeded"
  ask.said, ask.code, ask.answer = answer.says, answer.code, answer
  if ask.denied and ask.code ~= "too_soon" then
    ask.asked = math.min(255, rules.asked_ever(ask, of_turn(session), re_armed_at(session, ask)) + 1)
  end
  if ask.so_far == "invalid" and not ask.denied then rules.lax_remember(session, ask) end
  if answer.says == "run" then
    local steps, at_once = steps_spent(session, ask)
    answer.spent = steps + at_once + 1
  elseif answer.code ~= "too_soon" and answer.code ~= "rate_limit" then
    -- "Progress: 0", unless it is refused as a loop all the same.
    progress(session, free and answer.code == "" and 0 or 1)
  end
  -- "That uses nothing up": a repeated too_soon replaces the one before it.
  local last = session.calls[#session.calls]
  if ask.code == "too_soon" and last and last.code == "too_soon" and same_call(last, ask) then
    session.calls[#session.calls] = nil
  end
  remember(session, ask)
  answer.no_progress = session.no_progress
  session.steps, session.label = ask.step, ask.label
  if answer.says == "run" then use(session, ask, now) end
  if answer.says == "refuse" or answer.says == "halt" then
    note(session, ask, denied_class(ask) or request.refused_as, answer.code, session.turn, answer.chain_retries, now,
         answer.says == "halt")
  end
  if request.wants_history then answer.history = history(session) end
  if request.wants_facts then answer.facts = facts_of(session) end
  return answer
end

-- ---- settle ----
local function calls_before(session, call)
  local before = {}
  for _, other in ipairs(of_turn(session, call.turn)) do
    if other == call then break end
    before[#before + 1] = other
  end
  return before
end

-- "Identical calls with identical results in a row, this one included."
local function repeats_with(session, call)
  local before = calls_before(session, call)
  local steps = run_steps(call, before, re_armed_at(session, call, call.tick))
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
  M.meet "orphan"
  local call = new_call(session, request, now)
  call.said, call.code, call.orphan, call.expired, call.settle_answer = "run", "", true, true, {}
  call.cost = request.cost_told and request.cost or request.limits.cost
  call.so_far = "valid"
  remember(session, call)
  session.steps, session.label = call.step, call.label
  note(session, call, "unknown", "", session.turn, 0, now)
  see(session, request.gives_ids)
  if request.fact ~= "" then session.facts[request.fact] = true end
  end_silence(session, now)
  return { no_progress = session.no_progress, chain = "", same_failure = 0 }
end

-- "In failures every other digit, too": errors that differ in numbers alone are the same error.
local function masked(request) return (request.result:gsub("%d+", "#")) end

function M.settle(model, request)
  local session, now = session_of(model, request.session), model.now
  local call = find(session, request.admission)
  if not call then
    session.last = now
    return orphan(session, request, now)
  end
  if call.settle_answer then M.meet "settled again" end
  if call.settle_answer then return { no_progress = session.no_progress, chain = "" } end
  session.last = now
  local class = CLASSES[request.class]
  local last = class.ran and last_result(session, call)
  call.class, call.result, call.masked = request.class, request.result, masked(request)
  call.cost = request.cost_told and request.cost or call.cost
  if class.ran then
    local ever = rules.asked_ever(call, calls_before(session, call), re_armed_at(session, call, call.tick))
    call.asked, call.under_way = math.min(255, ever + 1), request.under_way
  end
  rules.spent_settled(session, call)
  local unchanged = last and last.result == call.result or false
  -- Only a success brings something new: another error text does not.
  local success = request.class == "ok" or request.class == "partial"
  call.changed = last and not unchanged and success and rules.is_excused(call) or false
  local learnt = rules.lax_settle(session, call, request)
  local answer = { lax_learnt = learnt, unchanged = unchanged, chain = "", chain_retries = 0,
                   same_failure = rules.failures_with(session, call), asked = call.asked }
  local free
  if class.ends then
    answer.chain, answer.chain_retries = rules.end_chain_ran(session, call)
  elseif request.class == "fabricated" then
    answer.chain, answer.chain_retries = rules.end_chain_fabricated(session, call)
  elseif request.class == "invalid" then
    local chain
    chain, free = attempt_again(session, call, request.problems or {}, false, answer, now)
    answer.attempt, answer.attempts_left = chain.attempts, left_after(call.limits.repair, chain.attempts)
    answer.says = chain.over and "refuse" or "repair"
  end
  if let_run(call) and not was_used(call) then give_back(session, call) end
  if answer.says ~= "repair" then
    local code = answer.says == "refuse" and "retry_budget_exceeded" or ""
    note(session, call, request.label, code, turn_in_journal(session, call), answer.chain_retries, now)
  end
  local change = class.progress
  if request.class == "ok" and unchanged then change = 1 end
  if free then change = 0 end
  if free then M.meet "progress, settled" end
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
-- A turn number in the past changes nothing, nor does its goal; and it names no turn, because none begins. The end of a
-- conversation begins no turn: only open chains end.
function M.turn(model, request)
  local session, now = session_of(model, request.session), model.now
  local gave_up, turn = 0, request.turn > 0 and request.turn or session.turn + 1
  if request["end"] then
    gave_up = give_up_all(session, now)
    if gave_up > 0 then M.meet "chains end with the conversation" end
  else
    session.told = true
    if turn > session.turn then gave_up = begin_turn(session, turn, now) end
    if turn == session.turn and request.goal ~= "" then session.goal = request.goal end
  end
  session.last = now
  end_silence(session, now)
  return { turn = session.turn, gave_up = gave_up }
end

function M.see(model, request)
  if #request.ids == 0 then return {} end
  see(session_of(model, request.session), request.ids)
  return {}
end

-- Changes nothing: a session is not touched by it, and expired reservations stay.
function M.peek(model, request)
  local session = known(model, request.session)
  if not session then return { turn = 0, step = 0, no_progress = 0, stuck = false, goal = "" } end
  return { turn = session.turn, step = session.steps % 256, no_progress = session.no_progress, stuck = session.stuck,
           goal = session.goal, history = request.wants_history and history(session) or nil,
           facts = request.wants_facts and facts_of(session) or nil }
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
  session.tick, session.touched, session.last = session.tick + 1, model.now, model.now
  for _, call in ipairs(session.calls) do
    if call.tool == request.tool then call.args, call.reset = "before reset " .. call.admission, true end
  end
  rules.drop_spent(session, request.tool)
  for _, list in ipairs { session.chains, session.lax } do
    for i = #list, 1, -1 do
      if list[i].tool == request.tool then table.remove(list, i) end
    end
  end
  return {}
end

function M.view(model, request)
  local session = known(model, request.session)
  if not session then return {} end
  local calls, cost = used(session)
  local calls_in_turn, cost_in_turn = used(session, true)
  return { session = {
    turn = session.turn, step = session.steps % 256, goal = session.goal ~= "" and session.goal or nil,
    history = history(session), facts = facts_of(session),
    ids = { seen = #session.seen, complete = not session.forgotten },
    budgets = { calls = calls, calls_in_turn = calls_in_turn, no_progress = session.no_progress,
                cost = cost / 1e6, cost_in_turn = cost_in_turn / 1e6, turn_began_ms = second_of(session.turn_began) * 1000 },
  } }
end

-- ---- for a linearizability checker ----
local function flat(list)
  local copy = {}
  for name, value in pairs(list) do copy[name] = value end
  return copy
end

local function flat_each(list)
  local copy = {}
  for name, value in pairs(list) do copy[name] = flat(value) end
  return copy
end

-- A copy of the model and all its sessions: what is applied to either does not change the other. Costs a few
-- microseconds a session: what is never changed once it is there (answers, journal entries, lists of seen ids, problems,
-- limits) is shared.
function M.clone(model)
  local copy = flat(model)
  copy.sessions = {}
  for name, session in pairs(model.sessions) do
    local one = flat(session)
    one.calls, one.chains = flat_each(session.calls), flat_each(session.chains)
    one.left, one.in_use = flat_each(session.left), flat_each(session.in_use)
    one.lax, one.spent = flat_each(session.lax), flat_each(session.spent)
    one.journal, one.facts, one.paced = flat(session.journal), flat(session.facts), flat(session.paced)
    copy.sessions[name] = one
  end
  return copy
end

-- Applies one request to the model and returns the answer that it must have. op.kind is the name of the request ("admit",
-- "settle", "turn", "see", "peek", "view", "reset", or "clock", which only sets the time), and the other fields are those
-- of ledger.h's structs (ledger_walk.lua builds them all). op.now, if given: the time in ms; it never goes back.
-- A request that was applied before is answered as a repeated one: most fields of that answer are nil, which is open.
function M.apply(model, op)
  if op.now then M.clock(model, math.max(op.now, model.now)) end
  if op.kind == "clock" then return {} end
  return M[op.kind](model, op)
end

local alike

-- The ledger keeps the last entries of a journal only, at least `kept`. Returns the first entries that differ.
local function alike_histories(got, expected, kept)
  if #got > #expected or #got < math.min(#expected, kept) then return false end
  for i = 1, #got do
    local other = expected[#expected - #got + i]
    if not alike(got[i], other, kept) then return false, got[i], other end
  end
  return true
end

-- Fields that the model leaves nil are open in the specification.
function alike(got, expected, kept)
  if type(expected) ~= "table" or type(got) ~= "table" then return got == expected, got, expected end
  if not expected[1] and next(expected) then
    for name, value in pairs(expected) do
      local compare = name == "history" and alike_histories or alike
      local same, a, b = compare(got[name], value, kept)
      if not same then return false, a or got[name], b or value end
    end
    return true
  end
  return alike_histories(got, expected, kept)
end

-- Compares an answer with the model's, field by field: those that either leaves nil are not compared. Returns nil where
-- they agree, else the name of the first field that differs and both values. `kept`: entries of a journal that the ledger
-- keeps at least.
function M.difference(got, expected, kept)
  local names = {}
  for name in pairs(got) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local same, a, b = true, nil, nil
    if expected[name] ~= nil then same, a, b = alike(got[name], expected[name], kept) end
    if not same then
      if a == nil and b == nil then a, b = got[name], expected[name] end
      return name, a, b
    end
  end
end

return M
