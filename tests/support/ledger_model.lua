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
local function is_open(call) return let_run(call) and not call.class and not call.expired end

-- "Steps: calls of one model message are one step: by dev.toolgate/step, else whatever was admitted before the
-- feedback of its sibling was sent." The first feedback closes a step that nobody named: a model that has heard of one
-- call may be answering it.
-- A name is known until another comes.
local function step_of(session, place)
  if place.step ~= session.label then return session.steps + 1 end
  if place.step ~= "" then return session.steps end
  local siblings, closed = false, false
  for _, call in ipairs(of_turn(session)) do
    if call.step == session.steps then
      siblings = true
      if not is_open(call) then closed = true end
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
local function takes_budget(call)
  if not let_run(call) then return false end
  if not call.class then return is_open(call) or call.destructive end
  return CLASSES[call.class].budget and not call.changed
end

-- "Budgets and runs count steps, not calls."
local function steps_spent(session, ask)
  local steps, from = {}, re_armed_at(session, ask.tool)
  for _, call in ipairs(of_turn(session)) do
    if same_call(call, ask) and call.tick > from and takes_budget(call) then steps[call.step] = true end
  end
  return steps
end

local function same_call_budget(session, ask)
  if ask.limits.same_call == UNLIMITED or ask.limits.polls then return nil end
  local steps = steps_spent(session, ask)
  steps[ask.step] = nil
  if count_keys(steps) >= ask.limits.same_call then return "refuse", "same_call" end
end

-- "Of identical writes in one step one runs and the others are refused."
local function duplicate_in_step(session, ask)
  if not (ask.limits.writes or ask.limits.destructive) then return nil end
  for _, call in ipairs(of_turn(session)) do
    local runs = is_open(call) or let_run(call) and not call.class and call.destructive
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
-- row. "Any other admitted call ends the run of refusals": what was not admitted does not end those. `any`: with whatever
-- results.
local function run_steps(ask, calls, from, any)
  local row, known, gap = {}, nil, false
  if ask.class then known = outcome(ask) end
  local counted = {}
  for _, call in ipairs(calls) do
    -- Its own transient failures do not count; another call that failed so stood between all the same.
    local own = same_call(call, ask)
    if call.tick > from and (counts_in_run(call) or not own and call.class == "transient") then counted[#counted + 1] = call end
  end
  local steps = in_steps(counted)
  for i = #steps, 1, -1 do
    local step, newest, other = steps[i], nil, false
    for n = #step, 1, -1 do
      local call = step[n]
      if same_call(call, ask) then
        -- "Only a row of refusals": what stands at its end, before the other call, was refused.
        if not newest and gap and not call.denied then return row end
        local result = outcome(call)
        if result and known and result ~= known and not any then return row end
        known, newest = known or result, call
        if call.code ~= "too_soon" then row[step.name] = true end -- "that uses nothing up"
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
  return row
end

local function repeats(session, ask)
  local steps = run_steps(ask, of_turn(session), re_armed_at(session, ask.tool))
  steps[session.turn .. "." .. ask.step] = nil
  return count_keys(steps)
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
  local steps = run_steps(ask, window(session), re_armed_at(session, ask.tool))
  steps[session.turn .. "." .. ask.step] = nil
  if count_keys(steps) + 1 >= ask.limits.across_turns then return "refuse", "loop" end
end

-- "Cycles of 2-5 calls repeated three times with the same results (A B A B A B) are loops too." What was refused goes on
-- with them, as it goes on with a run; what re-arms runs is often a part of them. `repeats` and `halt` are rounds here.
local function rounds(session, ask)
  local row = {}
  for _, call in ipairs(of_turn(session)) do
    local last = row[#row]
    local twin = last and same_call(last, call) and last.step == call.step -- what one message asks twice is one call
    if counts_in_run(call) then row[twin and #row or #row + 1] = call end
  end
  local last = row[#row]
  row[last and same_call(last, ask) and last.step == ask.step and #row or #row + 1] = ask
  local function alike(a, b)
    return same_call(a, b) and (a == ask or not outcome(a) or not outcome(b) or outcome(a) == outcome(b))
  end
  local most = 1
  for period = 2, 5 do
    local length, mixed = period, false
    while #row - length >= 1 and length < 5 * 5 and alike(row[#row - length + period], row[#row - length]) do
      mixed = mixed or not same_call(row[#row - length], ask)
      length = length + 1
    end
    if mixed and length >= 3 * period then most = math.max(most, math.floor(length / period)) end
  end
  return most
end

local function cycle(session, ask)
  if ask.limits.polls then return nil end
  local round = rounds(session, ask)
  if round < ask.limits.repeats then return nil end
  return round >= ask.limits.halt and "halt" or "refuse", "cycle", nil, nil, round
end

-- A run and a cycle at once: what goes on longer is said.
local function loop(session, ask)
  local says, code = loop_run(session, ask)
  if not says then says, code = loop_across_turns(session, ask) end
  local also, cycling, _, _, round = cycle(session, ask)
  if cycling and round > repeats(session, ask) + 1 then return also, cycling end
  return says, code
end

-- ---- what is used up ----
-- "Calls that were let run. What is refused, by whomever, or asked back before it ran is given back."
local function was_used(call)
  if not let_run(call) then return false end
  return not (call.class == "invalid" or call.class == "fabricated" or call.class == "released" or call.class == "refused")
end

-- ---- polling ----
-- "Result differs from last time (a poll): starts anew, up to loop.poll.max (20)": such results in a row.
local function changed_in_row(session, ask)
  local steps, row = {}, run_steps(ask, of_turn(session), re_armed_at(session, ask.tool), true)
  for _, call in ipairs(of_turn(session)) do
    if row[call.turn .. "." .. call.step] and same_call(call, ask) and call.changed then steps[call.step] = true end
  end
  steps[ask.step] = nil
  return count_keys(steps)
end

-- "A tool that is meant to be asked again, with the same arguments, at most max times in a row." Where `loop.repeats` and
-- `loop.halt` stand apart, who goes on that long is told to end the run.
local function poll_budget(session, ask)
  if not ask.limits.polls then
    if changed_in_row(session, ask) >= ask.limits.poll_max then return "refuse", "poll_budget" end
    return nil
  end
  local row = run_steps(ask, of_turn(session), re_armed_at(session, ask.tool), true)
  row[session.turn .. "." .. ask.step] = nil
  local asked = count_keys(row)
  if asked < ask.limits.poll_max then return nil end
  return asked >= ask.limits.poll_max + ask.limits.halt - ask.limits.repeats and "halt" or "refuse", "poll_budget"
end

-- How often in a row this call came too soon, in steps: the last one of them knows.
local function hammered(session, ask)
  local calls, from = {}, re_armed_at(session, ask.tool)
  for _, call in ipairs(of_turn(session)) do
    if call.tick > from then calls[#calls + 1] = call end
  end
  local steps, out = in_steps(calls), {}
  for i = #steps, 1, -1 do
    local step, other = steps[i], false
    for n = #step, 1, -1 do
      local call = step[n]
      if not same_call(call, ask) then
        other = other or admitted(call)
      elseif call.code == "too_soon" then
        for number in pairs(call.soon) do out[number] = true end
        return out
      elseif call.class ~= "transient" and call.class ~= "released" then
        return out
      end
    end
    if other and step.name ~= ask.turn .. "." .. ask.step then return out end
  end
  return out
end

-- "And not sooner than `every` after the last time … that uses nothing up, but who hammers five times is told to end the
-- run." What was not let run after all starts no pause, and takes the one before with it.
local function too_soon(session, ask, now)
  local last = session.paced[ask.tool .. " " .. ask.args]
  local wait = last and last + ask.limits.poll_every_ms - now or 0
  if ask.limits.poll_every_ms == 0 or wait <= 0 then return nil end
  local steps = hammered(session, ask)
  steps[ask.step] = nil
  return count_keys(steps) + 1 >= ask.limits.halt and "halt" or "refuse", "too_soon", wait
end

-- ---- limits ----
local function used(session, turn, tool)
  local calls, cost = 0, 0
  for _, call in ipairs(session.calls) do
    if (not turn or call.turn == turn) and (not tool or call.tool == tool) and was_used(call) then
      if not call.orphan then calls = calls + 1 end -- nobody let it run; what it cost it cost
      cost = cost + call.cost
    end
  end
  return calls, cost
end

local function second_of(ms) return math.floor(ms / 1000) end

-- Seconds "from the tool's first call of a turn on; of a session: from where the turn began". Calls that were all given
-- back leave no first one.
local function seconds(session, tool, now)
  if not tool then return second_of(now) - second_of(session.turn_began) end
  local first, calls = nil, 0
  for _, use in ipairs(session.uses) do
    if use.call.turn == session.turn and use.call.tool == tool then
      if calls == 0 then first = use.at end
      calls = calls + use.by
    end
  end
  return calls > 0 and second_of(now) - second_of(first) or 0
end

-- The first of these limits that is reached is the one that is told.
local function allowance(session, ask, allowed, tool, now)
  local calls_turn, cost_turn = used(session, session.turn, tool)
  local calls_session, cost_session = used(session, nil, tool)
  local function over_cost(limit, spent)
    return (limit or 0) > 0 and ask.limits.costs and (spent >= limit or spent + ask.limits.cost > limit)
  end
  local function over(limit, spent) return (limit or 0) > 0 and spent >= limit end
  local spent = seconds(session, tool, now)
  if over(allowed.calls_per_turn, calls_turn) then return "calls_per_turn", calls_turn end
  if over(allowed.calls_per_session, calls_session) then return "calls_per_session", calls_session end
  if over(allowed.seconds_per_turn, spent) then return "seconds_per_turn", spent end
  if over_cost(allowed.cost_per_turn, cost_turn) then return "cost_per_turn", cost_turn end
  if over_cost(allowed.cost_per_session, cost_session) then return "cost_per_session", cost_session end
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
  if chain.over then return chain end
  if chain.step == call.step then return chain end
  chain.attempts, chain.step, chain.last = chain.attempts + 1, call.step, call
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

-- "A chain left open when its turn ends is llm_gave_up." Those that went on last come last.
local function left_open(session)
  local tools, open = {}, {}
  for i = #session.events, 1, -1 do
    local event = session.events[i]
    if event.chain == "invalid" and not tools[event.call.tool] then
      tools[event.call.tool] = true
      local chain = chain_of(session, session.turn, event.call.tool)
      if chain.attempts > 0 and not chain.over then table.insert(open, 1, chain) end
    end
  end
  return open
end

-- ---- sessions and turns ----
local function new_session(now)
  return { calls = {}, events = {}, seen = {}, forgotten = false, facts = {}, goal = "", turn = 0, steps = 0, label = "", tick = 0, uses = {}, journal = {}, paced = {},
           no_progress = 0, stuck = false, turn_began = now, touched = now }
end

function M.new(options) return { sessions = {}, now = 0, ttl_ms = options.ttl_s * 1000, history = options.history } end

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
  table.insert(session.journal, { tool = call.tool, class = class, code = code ~= "" and code or nil, turn = turn, step = call.step % 256,
                                  retries = retries, at_ms = second_of(now) * 1000 })
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

-- "A late turn number counts in the current turn"; "where no turn is told: a silence as long begins one". A silence ends
-- with a call, a result and a turn that is told.
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
-- "What is never settled … its history entry stays, 'result unknown'."
local function expire(session, now)
  for _, call in ipairs(window(session)) do
    if let_run(call) and not call.class and not call.expired and now > call.expires then
      call.expired = true
      note(session, call, "unknown", "", call.turn, 0, now)
    end
  end
end

-- "On a tie between budget and loop, loop is what is said."
local function poll_row(session, ask) if ask.limits.polls then return poll_budget(session, ask) end end
local AGAINST = { loop, poll_row, already_broken, duplicate_in_step, same_call_budget, transient_budget, poll_budget,
                  limits }
local LOOPS = { loop, poll_row }

local function first_against(rules, session, ask, now)
  for _, rule in ipairs(rules) do
    local says, code, amount, of_session = rule(session, ask, now)
    if says then return says, code, amount, of_session end
  end
end

local function find(session, admission)
  for _, call in ipairs(window(session)) do
    if call.admission == admission then return call end
  end
end

-- What this call was found to be, whenever anybody looked, oldest first.
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

-- "The same invalid arguments again": they were found so before, in this turn.
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
  local says, code, amount, of_session = first_against(LOOPS, session, ask, now)
  if not says and not already_broken(session, ask) then says, code, amount = too_soon(session, ask, now) end
  if not says then says, code, amount, of_session = first_against(AGAINST, session, ask, now) end
  answer.says, answer.code, answer.used, answer.of_session = says or "run", code or "", amount or 0, of_session or false
  -- "The same invalid arguments again: the same": also where the check that found them so is not reached any more.
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
  if answer.code == "loop" and answer.repeats + 1 >= place.anonymous_repeats then
    answer.says, answer.advise_only, answer.would = "refuse", nil, nil -- what is told besides is open
    return
  end
  answer.advise_only, answer.would = true, answer.code
  answer.says, answer.code = "run", ""
  if ask.so_far == "invalid" then answer.says = "repair" end
  if ask.so_far == "fabricated" or ask.so_far == "refused" then answer.says = "refuse" end
end

-- What people read of a call that the ledger itself refused.
local function denied_class(call)
  if not call.denied then return nil end
  if call.code == "loop" or call.code == "cycle" then return "loop" end
  return call.code == "too_soon" and "transient" or "retry_budget"
end

-- The whole journal, of which the ledger keeps the end, and chains that are still open.
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
  local place, l = request, request.limits
  return { admission = request.admission, tool = request.tool, args = request.args, so_far = request.so_far,
           turn = session.turn, label = place.step, step = step_of(session, place), at = now, tick = session.tick,
           anonymous = place.anonymous, expires = now + ((request.reservation_ms or 0) > 0 and request.reservation_ms or RESERVATION), limits = l,
           reads = l.reads, writes = l.writes, destructive = l.destructive, cost = l.cost or 0 }
end

function M.admit(model, request)
  local session, now = session_of(model, request.session), model.now
  local before = find(session, request.admission)
  -- "Idempotent by it": it counts once. What a repair chain says may have changed meanwhile, and is told as it is now.
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
  if request.anonymous then advise(session, ask, answer, request) end
  ask.denied = answer.says ~= "run" and answer.code ~= "" and answer.code ~= "retry_budget_exceeded"
  ask.said, ask.code, ask.answer = answer.says, answer.code, answer
  if answer.says == "run" then
    local steps = steps_spent(session, ask)
    steps[ask.step] = true
    answer.spent = count_keys(steps)
  else
    progress(session, answer.code ~= "too_soon" and 1 or nil)
  end
  -- "That uses nothing up": one that comes too soon again takes the place of the one before it.
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

-- "A settle without its admit is counted as `unknown`": it stands in the row of calls, and nothing is known of it.
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
  -- "this one included": of what does not count nothing is said.
  answer.repeats = class.run and repeats_with(session, call) or nil
  answer.transient_count = request.class == "transient" and transient_count(session, call, call.turn) or nil
  answer.no_progress = session.no_progress
  end_silence(session, now)
  call.settle_answer = answer
  return answer
end

-- ---- the rest ----
-- A turn that is over changes nothing, nor does what was its goal.
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
  see(session_of(model, request.session), request.ids)
  return {}
end

function M.peek(model, request)
  local session = known(model, request.session)
  if not session then return { turn = 0, no_progress = 0, stuck = false, goal = "" } end
  return { turn = session.turn, no_progress = session.no_progress, stuck = session.stuck, goal = session.goal }
end

-- "A person can end it": the runs, budgets and the chain of the tool begin anew, its calls stay where they stood; without a
-- tool the session is forgotten.
function M.reset(model, request)
  local session = known(model, request.session)
  if not session then return {} end
  if request.tool == "" then
    model.sessions[request.session] = nil
    return {}
  end
  session.tick, session.touched = session.tick + 1, model.now
  for _, call in ipairs(session.calls) do
    if call.tool == request.tool then
      call.args = "before reset " .. call.admission
    end
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
