-- The ledger's rules a second time, written from the text alone (what every worker of a fleet remembers together) and
-- not from the scripts: slow and obvious. A session is the list of all its calls; each rule is a function that reads
-- the list again for every question. Nothing here is packed, counted ahead or forgotten before the text says so.
local M = {}

local WINDOW        = 32     -- "a window of 32": what budgets and loops are told from
local SEEN_MAX      = 512
local RESERVATION   = 60000
local STUCK         = 6
local UNLIMITED     = 4294967295

-- ---- classes: the columns of the table "what happened" ----
-- ran: the tool was carried out and its result is known. budget: takes one of the same-call budget. run: counts in the
-- loop run. progress: 0 ends the row without progress, 1 lengthens it, nil leaves it alone. ends: ends a repair chain.
local CLASSES = {
  ok              = { ran = true, budget = true, run = true, progress = 0, ends = true },
  garbage         = { ran = true, budget = true, run = true, progress = 1, ends = true },
  partial         = { ran = true, budget = true, run = true, progress = 0, ends = true },
  schema_mismatch = { ran = true, budget = true, run = true, progress = 1, ends = true },
  tool_error      = { ran = true, budget = true, run = true, progress = 1 },
  transient       = { ran = false },
  invalid         = { run = true, progress = 1 },
  fabricated      = { run = true, progress = 1 },
  released        = {},
  refused         = { run = true, progress = 1 },
}

-- ---- reading the list of calls ----
local function same_call(a, b) return a.tool == b.tool and a.args == b.args end

-- The calls that are remembered hot, oldest first.
local function window(session)
  local out = {}
  for i = math.max(1, #session.calls - WINDOW + 1), #session.calls do out[#out + 1] = session.calls[i] end
  return out
end

-- Those of a turn, else of the current one; "with no turn signal, per-turn budgets count over the last 32 calls".
local function of_turn(session, turn)
  local out = {}
  for _, call in ipairs(window(session)) do
    if call.turn == (turn or session.turn) then out[#out + 1] = call end
  end
  return out
end

local function let_run(call) return call.said == "run" end
local function is_open(call, now) return let_run(call) and not call.class and now < call.expires end

-- "Steps: calls of one model message are one step: by dev.toolgate/step, else whatever was admitted before the
-- feedback of its sibling was sent." The first feedback closes a step that nobody named: a model that has heard of one
-- call may be answering it.
local function step_of(session, place, now)
  local calls = of_turn(session)
  if place.step ~= "" then
    for _, call in ipairs(calls) do
      if call.label == place.step then return call.step end
    end
    return session.steps + 1
  end
  local siblings, closed = false, false
  for _, call in ipairs(calls) do
    if call.step == session.steps then
      siblings = true
      if not is_open(call, now) then closed = true end
    end
  end
  return siblings and not closed and session.steps or session.steps + 1
end

-- "A successful call of a different tool not declared `read` re-arms the runs and same-call budgets of the session":
-- the moment from which calls of this tool count. A page of a longer result is a success, too. The text does not say
-- what comes first of calls side by side: here as everywhere it is what was admitted first.
local function re_armed_at(session, tool, before)
  local at = 0
  for _, call in ipairs(window(session)) do
    if before and call.tick >= before then break end
    if (call.class == "ok" or call.class == "partial") and call.tool ~= tool and not call.reads then at = call.tick end
  end
  return at
end

local function count_keys(set)
  local n = 0
  for _ in pairs(set) do n = n + 1 end
  return n
end

-- ---- same-call budget ----
-- "What is never settled frees its same-call budget (not for destructive: it may have run)"; "a result that differs
-- from last time does not count".
local function takes_budget(call, now)
  if not let_run(call) then return false end
  if not call.class then return now < call.expires or call.destructive end
  return CLASSES[call.class].budget and not call.changed
end

-- "Budgets and runs count steps, not calls."
local function steps_spent(session, ask, now)
  local steps, from = {}, re_armed_at(session, ask.tool)
  for _, call in ipairs(of_turn(session)) do
    if same_call(call, ask) and call.tick > from and takes_budget(call, now) then steps[call.step] = true end
  end
  return steps
end

local function same_call_budget(session, ask, now)
  if ask.limits.same_call == UNLIMITED or ask.limits.polls then return nil end
  local steps = steps_spent(session, ask, now)
  steps[ask.step] = nil
  if count_keys(steps) >= ask.limits.same_call then return "refuse", "same_call" end
end

-- "Of identical writes in one step one runs and the others are refused."
local function duplicate_in_step(session, ask, now)
  if not (ask.limits.writes or ask.limits.destructive) then return nil end
  for _, call in ipairs(of_turn(session)) do
    local runs = let_run(call) and not call.class and (now < call.expires or call.destructive)
    if same_call(call, ask) and call.step == ask.step and (runs or call.class and CLASSES[call.class].ran) then
      return "refuse", "duplicate_in_step"
    end
  end
end

-- "schema_mismatch: spent, the same call is refused for the rest of the turn."
local function already_broken(session, ask)
  for _, call in ipairs(of_turn(session)) do
    if same_call(call, ask) and call.class == "schema_mismatch" then return "refuse", "already_broken" end
  end
end

-- "transient: own cap (3), wait doubled": failures since it last answered otherwise.
local function transient_count(session, ask, turn)
  local n = 0
  for _, call in ipairs(window(session)) do
    if turn and call.tick > ask.tick then break end
    if call.turn == (turn or session.turn) and same_call(call, ask) and call.class then
      if call.class == "transient" then n = n + 1 elseif CLASSES[call.class].ran then n = 0 end
    end
  end
  return n
end

local function transient_budget(session, ask)
  if transient_count(session, ask) >= ask.limits.transient then return "refuse", "transient_budget" end
end

-- "result differs from last time (a poll): starts anew, up to loop.poll.max (20)"; a tool declared with loop.poll is
-- asked again "at most max times in a row".
local function poll_budget(session, ask)
  local n, calls = 0, of_turn(session)
  for i = #calls, 1, -1 do
    local call = calls[i]
    if same_call(call, ask) and let_run(call) and call.class and CLASSES[call.class].ran then
      if not (call.changed or ask.limits.polls) then break end
      n = n + 1
    end
  end
  if n >= ask.limits.poll_max then return "refuse", "poll_budget" end
end

-- "and not sooner than `every` after the last time … that uses nothing up, but who hammers five times is told to end
-- the run."
local function too_soon(session, ask, now)
  if not (ask.limits.polls and ask.limits.poll_every_ms > 0) then return nil end
  local calls, hammered = of_turn(session), 0
  for i = #calls, 1, -1 do
    local call = calls[i]
    if same_call(call, ask) then
      if call.code == "too_soon" then hammered = hammered + 1
      elseif let_run(call) then
        local wait = call.at + ask.limits.poll_every_ms - now
        if wait <= 0 then return nil end
        return hammered + 1 >= ask.limits.halt and "halt" or "refuse", "too_soon", wait
      end
    end
  end
end

-- ---- loops ----
-- What a call came to, for the question whether two were identical; nil: nobody knows ("judged by arguments alone").
local function outcome(call)
  if call.denied then return nil end
  if call.class then return CLASSES[call.class].ran and "result " .. call.result or call.class end
  if call.so_far ~= "valid" then return call.so_far end
  return nil
end

-- Was it carried out, or may it have been, or be yet? What was called off before it ran was not.
local function admitted(call)
  return let_run(call) and (not call.class or CLASSES[call.class].ran or call.class == "transient")
end

local function counts_in_run(call)
  if call.code == "too_soon" then return false end
  if not call.class then return true end
  return CLASSES[call.class].run
end

-- Calls in order, those of one step together.
local function in_steps(calls)
  local steps, by_number = {}, {}
  for _, call in ipairs(calls) do
    local name = call.turn .. "." .. call.step
    if not by_number[name] then
      by_number[name] = { name = name }
      steps[#steps + 1] = by_number[name]
    end
    table.insert(by_number[name], call)
  end
  return steps
end

-- "Identical (tool, canonical arguments) in a row with an identical result", in steps: a step without this call ends the
-- row. "Any other admitted call ends the run of refusals": what was not admitted does not end those.
local function run_steps(session, ask, calls, from)
  local row, known, gap = {}, nil, false
  if ask.class then known = outcome(ask) end
  local counted = {}
  for _, call in ipairs(calls) do
    -- Its own transient failures do not count; another call that failed so stood between all the same.
    local between = not same_call(call, ask) and call.class == "transient"
    if call.tick > from and (counts_in_run(call) or between) then counted[#counted + 1] = call end
  end
  local steps = in_steps(counted)
  for i = #steps, 1, -1 do
    local step, newest, other = steps[i], nil, false
    for n = #step, 1, -1 do
      local call = step[n]
      if same_call(call, ask) then
        -- "Only a row of refusals": what stands at its end, before the other call, was refused.
        if not newest and gap and not call.denied then return row, known end
        local result = outcome(call)
        if result and known and result ~= known then return row, known end
        known, newest = known or result, call
        row[step.name] = true
      elseif admitted(call) then
        other = true
      end
    end
    if newest then
      gap = false
    elseif step.name ~= ask.turn .. "." .. ask.step then
      if other then break end
      gap = true
    end
  end
  return row, known
end

local function repeats(session, ask)
  local steps, known = run_steps(session, ask, of_turn(session), re_armed_at(session, ask.tool))
  steps[session.turn .. "." .. ask.step] = nil
  return count_keys(steps), known ~= nil
end

-- "The 2nd passes, the 3rd and 4th are refused before they run, the 5th and later are halt."
local function loop_run(session, ask)
  if ask.limits.polls then return nil end
  local length = repeats(session, ask) + 1
  if length >= ask.limits.halt then return "halt", "loop" end
  if length >= ask.limits.repeats then return "refuse", "loop" end
end

-- "A new user turn starts the run anew, but loop.across_turns (5) still ends what goes on turn after turn."
local function loop_across_turns(session, ask)
  if ask.limits.polls then return nil end
  local steps = run_steps(session, ask, window(session), re_armed_at(session, ask.tool))
  steps[session.turn .. "." .. ask.step] = nil
  if count_keys(steps) + 1 >= ask.limits.across_turns then return "refuse", "loop" end
end

-- "Cycles of 2-5 calls repeated three times with the same results (A B A B A B) are loops too." What was refused goes on
-- with them, as it goes on with a run.
local function cycle(session, ask)
  if ask.limits.polls then return nil end
  local row, from = {}, re_armed_at(session, ask.tool)
  for _, call in ipairs(of_turn(session)) do
    local last = row[#row]
    local twin = last and same_call(last, call) and last.step == call.step -- what one message asks twice is one call
    if call.tick > from and counts_in_run(call) then row[twin and #row or #row + 1] = call end
  end
  local last = row[#row]
  if last and same_call(last, ask) and last.step == ask.step then row[#row] = nil end
  local function alike(a, b)
    return same_call(a, b) and (not outcome(a) or not outcome(b) or outcome(a) == outcome(b))
  end
  row[#row + 1] = ask
  for period = 2, 5 do
    local whole = #row >= 3 * period
    for i = #row, #row - 2 * period + 1, -1 do
      if not whole then break end
      whole = alike(row[i], row[i - period])
    end
    if whole then
      for i = #row, #row - period + 2, -1 do
        if not same_call(row[i], row[i - 1]) then return "refuse", "cycle" end
      end
    end
  end
end

-- ---- limits ----
-- "Calls that were let run. What is refused, by whomever, or asked back before it ran is given back."
local function was_used(call)
  if not let_run(call) then return false end
  return not (call.class == "invalid" or call.class == "fabricated" or call.class == "released" or call.class == "refused")
end

local function used(session, turn, tool)
  local calls, cost = 0, 0
  for _, call in ipairs(session.calls) do
    if (not turn or call.turn == turn) and (not tool or call.tool == tool) and was_used(call) then
      calls, cost = calls + 1, cost + call.cost
    end
  end
  return calls, cost
end

-- Seconds "from the tool's first call of a turn on; of a session: from where the turn began".
local function seconds(session, tool, now)
  local first = session.turn_began
  if tool then
    first = nil
    for _, call in ipairs(session.calls) do
      if call.turn == session.turn and call.tool == tool and let_run(call) then first = first or call.at end
    end
  end
  return first and math.floor((now - first) / 1000) or 0
end

local function allowance(session, ask, allowed, tool, now)
  local calls_turn, cost_turn = used(session, session.turn, tool)
  local calls_session, cost_session = used(session, nil, tool)
  local function over_cost(limit, spent)
    return (limit or 0) > 0 and ask.limits.costs and (spent >= limit or spent + ask.limits.cost > limit)
  end
  if (allowed.calls_per_turn or 0) > 0 and calls_turn >= allowed.calls_per_turn then
    return "calls_per_turn", calls_turn
  end
  if (allowed.calls_per_session or 0) > 0 and calls_session >= allowed.calls_per_session then
    return "calls_per_session", calls_session
  end
  if over_cost(allowed.cost_per_turn, cost_turn) then return "cost_per_turn", cost_turn end
  if over_cost(allowed.cost_per_session, cost_session) then return "cost_per_session", cost_session end
  local spent = seconds(session, tool, now)
  if (allowed.seconds_per_turn or 0) > 0 and spent >= allowed.seconds_per_turn then return "seconds_per_turn", spent end
end

local function limits(session, ask, now)
  local code, spent = allowance(session, ask, ask.limits.tool or {}, ask.tool, now)
  if code then return "refuse", code, spent, false end
  code, spent = allowance(session, ask, ask.limits.session or {}, nil, now)
  if code then return "refuse", code, spent, true end
end

-- ---- repair chains ----
-- The chain of a tool in a turn, told again from what happened: attempts so far, the step of the last one, and whether it
-- has ended. What is heard late of an earlier turn's call belongs to the current turn, whose beginning ended that
-- turn's chains.
local function fresh() return { attempts = 0, over = false } end

-- Was the chain's feedback, that of its last call, sent before this call was admitted? Told by steps: a call of a later
-- message than that one knows of it.
local function heard_of(chain, call) return call.step > chain.step end

local CHAIN = {}

function CHAIN.invalid(chain, event, call)
  if chain.over or chain.step == call.step then return chain end
  chain.attempts, chain.step = chain.attempts + 1, call.step
  -- "Budgets and loops advise" without a session: who is asked to repair once more has not exhausted anything.
  if chain.attempts <= call.limits.repair or call.anonymous then return chain end
  event.ended, event.retries = event.again and "redundant" or "exhausted", chain.attempts - 1
  chain.over = true
  return chain
end

-- "Never a retry: refused; fabricated_id_on_retry if in a chain."
function CHAIN.fabricated(chain, event, call)
  if chain.attempts == 0 or chain.over or not heard_of(chain, call) then return chain end
  event.ended, event.retries = "fabricated_id_on_retry", chain.attempts
  return fresh()
end

-- "Ends: success if it had begun, else no_retry"; "a success ends only a chain whose feedback was sent before it was
-- admitted".
function CHAIN.ran(chain, event, call)
  if chain.attempts > 0 and not heard_of(chain, call) then
    event.ended, event.retries = "no_retry", 0
    return chain
  end
  local begun = chain.attempts > 0 and not chain.over
  event.ended, event.retries = begun and "success" or "no_retry", begun and chain.attempts or 0
  return fresh()
end

local function chain_of(session, turn, tool)
  local chain = fresh()
  for _, event in ipairs(session.events) do
    if event.turn == turn and event.call.tool == tool and event.chain then
      event.ended, event.retries = nil, nil
      chain = CHAIN[event.chain](chain, event, event.call)
    end
  end
  return chain
end

-- "A chain left open when its turn ends is llm_gave_up."
local function left_open(session)
  local tools, open = {}, 0
  for _, event in ipairs(session.events) do
    if event.turn == session.turn then tools[event.call.tool] = true end
  end
  for tool in pairs(tools) do
    local chain = chain_of(session, session.turn, tool)
    if chain.attempts > 0 and not chain.over then open = open + 1 end
  end
  return open
end

-- ---- sessions and turns ----
local function new_session(now)
  return { calls = {}, events = {}, seen = {}, forgotten = false, facts = {}, goal = "", turn = 0, steps = 0, tick = 0,
           no_progress = 0, stuck = false, turn_began = now, heard = now }
end

function M.new(options) return { sessions = {}, now = 0, ttl_ms = options.ttl_s * 1000, history = options.history } end

function M.clock(model, now) model.now = now end

-- "Sessions expire after 24 h (configurable)."
local function known(model, name)
  local session = model.sessions[name]
  if session and model.now - session.heard >= model.ttl_ms then session, model.sessions[name] = nil, nil end
  return session
end

local function session_of(model, name)
  local session = known(model, name) or new_session(model.now)
  model.sessions[name] = session
  session.tick = session.tick + 1
  return session
end

local function begin_turn(session, turn, now)
  local gave_up = left_open(session)
  session.turn, session.turn_began, session.stuck = turn, now, false
  session.goal = ""
  return gave_up
end

-- "A late turn number counts in the current turn"; "where no turn is told: a silence as long begins one".
local function come_to_turn(session, place, now)
  if place.turn > session.turn then return begin_turn(session, place.turn, now) end
  if place.turn == 0 and place.turn_idle_s > 0 and now - session.heard >= place.turn_idle_s * 1000 then
    return begin_turn(session, session.turn + 1, now)
  end
  return 0
end

local function progress(session, change)
  if change == 0 then session.no_progress = 0 end
  if change == 1 then session.no_progress = session.no_progress + 1 end
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
    if #session.seen > SEEN_MAX then
      table.remove(session.seen, 1)
      session.forgotten = true
    end
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
-- "On a tie between budget and loop, loop is what is said."
local AGAINST = { loop_run, loop_across_turns, cycle, already_broken, duplicate_in_step, same_call_budget,
                  transient_budget, poll_budget, too_soon, limits }
local LOOPS = { loop_run, loop_across_turns, cycle }

local function first_against(rules, session, ask, now)
  for _, rule in ipairs(rules) do
    local says, code, amount, of_session = rule(session, ask, now)
    if says then return says, code, amount, of_session end
  end
end

local function find(session, admission)
  for _, call in ipairs(session.calls) do
    if call.admission == admission then return call end
  end
end

-- What this call was found to be, whenever anybody looked, oldest first.
local function found(session, ask, calls)
  local out = {}
  for _, call in ipairs(calls) do
    if call.tick < ask.tick and same_call(call, ask) and not call.denied and call.class ~= "transient"
       and call.class ~= "released" then
      out[#out + 1] = outcome(call) or "running"
    end
  end
  return out
end

-- "The same invalid arguments again": they were found so before, in this turn.
local function invalid_before(session, ask)
  for _, what in ipairs(found(session, ask, of_turn(session, ask.turn))) do
    if what == "invalid" then return true end
  end
  return false
end

local function remember_event(session, call, chain, again)
  local event = { call = call, chain = chain, turn = session.turn, again = again or invalid_before(session, call) }
  session.events[#session.events + 1] = event
  return event, chain_of(session, session.turn, call.tool)
end

local DECIDE = {}

function DECIDE.valid(session, ask, answer, now)
  local says, code, amount, of_session = first_against(AGAINST, session, ask, now)
  answer.says, answer.code, answer.used, answer.of_session = says or "run", code or "", amount or 0, of_session or false
  -- "The same invalid arguments again: the same": also where the check that found them so is not reached any more.
  local before = found(session, ask, of_turn(session))
  if (code == "loop" or code == "cycle") and before[#before] == "invalid" then
    local event, chain = remember_event(session, ask, "invalid", true)
    answer.attempt, answer.attempts_left = chain.attempts, math.max(0, ask.limits.repair + 1 - chain.attempts)
    answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
  end
end

-- "Invalid: 1st and 2nd repair (left 2, 1), 3rd refuse retry_budget_exceeded."
function DECIDE.invalid(session, ask, answer, now)
  local event, chain = remember_event(session, ask, "invalid")
  answer.attempt = chain.attempts
  answer.attempts_left = math.max(0, ask.limits.repair + 1 - chain.attempts)
  answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
  answer.says = "repair"
  if chain.attempts > ask.limits.repair then answer.says, answer.code = "refuse", "retry_budget_exceeded" end
  local says, code = first_against(LOOPS, session, ask, now)
  if says then answer.says, answer.code = says, code end
end

function DECIDE.fabricated(session, ask, answer, now)
  local event = remember_event(session, ask, "fabricated")
  answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
  answer.says = "refuse"
  local says, code = first_against(LOOPS, session, ask, now)
  if says then answer.says, answer.code = says, code end
end

function DECIDE.refused(session, ask, answer, now)
  answer.says = "refuse"
  local says, code = first_against(LOOPS, session, ask, now)
  if says then answer.says, answer.code = says, code end
end

-- "With no session key … budgets and loops advise there, and refuse only at anonymous_repeats (8) identical calls in a
-- row with an identical result."
local function advise(session, ask, answer, place)
  if answer.code == "" or answer.says == "run" then return end
  if answer.repeats + 1 >= place.anonymous_repeats then
    answer.says, answer.advise_only, answer.would = "refuse", nil, nil -- what is told besides is open
    return
  end
  answer.advise_only, answer.would = true, answer.code
  answer.says, answer.code = "run", ""
  if ask.so_far == "invalid" then answer.says = "repair" end
  if ask.so_far == "fabricated" or ask.so_far == "refused" then answer.says = "refuse" end
end

local function new_call(session, request, now)
  local place, l = request, request.limits
  return { admission = request.admission, tool = request.tool, args = request.args, so_far = request.so_far,
           turn = session.turn, label = place.step, step = step_of(session, place, now), at = now, tick = session.tick,
           anonymous = place.anonymous, expires = now + (request.reservation_ms > 0 and request.reservation_ms or RESERVATION), limits = l,
           reads = l.reads, writes = l.writes, destructive = l.destructive, cost = l.cost or 0 }
end

function M.admit(model, request)
  local session, now = session_of(model, request.session), model.now
  local before = find(session, request.admission)
  if before then return before.answer end
  local gave_up = come_to_turn(session, request, now)
  local ask = new_call(session, request, now)
  local answer = { code = "", would = "", chain = "", chain_retries = 0, of_session = false, advise_only = false,
                   used = 0, turn = session.turn, gave_up = gave_up, goal = session.goal,
                   unseen = unseen(session, request.ids), ids_complete = not session.forgotten }
  local chain = chain_of(session, session.turn, ask.tool)
  answer.attempt, answer.attempts_left = chain.attempts + 1, math.max(0, ask.limits.repair - chain.attempts)
  local known_result
  answer.repeats, known_result = repeats(session, ask)
  --answer.unchanged = answer.repeats > 0 and known_result
  answer.transient_count = transient_count(session, ask)
  DECIDE[request.so_far](session, ask, answer, now)
  if request.anonymous then advise(session, ask, answer, request) end
  ask.denied = answer.says ~= "run" and answer.code ~= "" and answer.code ~= "retry_budget_exceeded"
  ask.said, ask.code, ask.answer = answer.says, answer.code, answer
  if answer.says == "run" then
    local steps = steps_spent(session, ask, now)
    steps[ask.step] = true
    answer.spent = count_keys(steps)
  else
    progress(session, answer.code ~= "too_soon" and 1 or nil)
  end
  session.calls[#session.calls + 1] = ask
  answer.no_progress = session.no_progress
  session.steps, session.heard = math.max(session.steps, ask.step), now
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
  local steps = run_steps(session, call, before, re_armed_at(session, call.tool, call.tick))
  steps[call.turn .. "." .. call.step] = true
  return count_keys(steps)
end

-- The same call's result before this one, of an earlier step of the turn: siblings do not know of each other.
local function last_result(session, call)
  local last
  for _, other in ipairs(of_turn(session, call.turn)) do
    if other.step ~= call.step and same_call(other, call) and other.class and CLASSES[other.class].ran and other.tick < call.tick then
      last = other
    end
  end
  return last
end

function M.settle(model, request)
  local session, now = session_of(model, request.session), model.now
  local call = find(session, request.admission)
  if not call then return nil end -- "a settle without its admit is counted as unknown"
  if call.settle_answer then return call.settle_answer end
  local class = CLASSES[request.class]
  local last = class.ran and last_result(session, call)
  call.class, call.label_out, call.result, call.settled = request.class, request.label, request.result, session.tick
  call.cost = request.cost_told and request.cost or call.cost
  local unchanged = last and last.result == call.result or false
  -- A poll is what brings something new: an error in other words is an error.
  call.changed = last and not unchanged and (request.class == "ok" or request.class == "partial") or false
  local answer = { unchanged = unchanged, chain = "", chain_retries = 0 }
  local chain = class.ends and "ran" or (request.class == "invalid" or request.class == "fabricated") and request.class
  if chain then
    local event, state = remember_event(session, call, chain)
    answer.chain, answer.chain_retries = event.ended or "", event.retries or 0
    if request.class == "invalid" then
      answer.attempt, answer.attempts_left = state.attempts, math.max(0, call.limits.repair + 1 - state.attempts)
      answer.says = state.attempts > call.limits.repair and not call.anonymous and "refuse" or "repair"
    end
  end
  local change = class.progress
  if request.class == "ok" and unchanged then change = 1 end
  progress(session, change)
  see(session, request.gives_ids)
  if request.fact and request.fact ~= "" then session.facts[request.fact] = true end
  -- "this one included": of what does not count nothing is said.
  answer.repeats = class.run and repeats_with(session, call) or nil
  answer.transient_count = request.class == "transient" and transient_count(session, call, call.turn) or nil
  answer.no_progress = session.no_progress
  session.heard = now
  call.settle_answer = answer
  return answer
end

-- ---- the rest ----
function M.turn(model, request)
  local session, now = session_of(model, request.session), model.now
  local gave_up = 0
  local turn = request.turn > 0 and request.turn or session.turn + 1
  if turn > session.turn then gave_up = begin_turn(session, turn, now) end
  session.goal, session.heard = request.goal, now
  return { turn = session.turn, gave_up = gave_up }
end

function M.see(model, request)
  local session = session_of(model, request.session)
  see(session, request.ids)
  session.heard = model.now
  return {}
end

function M.peek(model, request)
  local session = known(model, request.session)
  if not session then return { turn = 0, no_progress = 0, stuck = false, goal = "" } end
  return { turn = session.turn, no_progress = session.no_progress, stuck = session.stuck, goal = session.goal }
end

-- "A person can end it": the tool's runs and budgets begin anew; without a tool the session is forgotten.
function M.reset(model, request)
  if request.tool == "" then model.sessions[request.session] = nil end
  return {}
end

return M
