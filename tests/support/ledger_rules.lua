-- The ledger's rules a second time, written from the specification and not from the scripts: slow and obvious. A session
-- (ledger_model.lua) is the list of all its calls; each rule reads the list again for every question, and quotes the
-- sentence it comes from. A comment states the decision if the specification is open.
local WINDOW    = 32 -- "a window of 32": the calls that budgets and loops count
local UNLIMITED = 4294967295

-- ---- classes: the columns of the table of outcomes ----
-- ran: the tool ran and its result is known. budget: counts in the same-call budget. run: counts in the loop run.
-- progress: 0 resets the count without progress, 1 increments it, nil keeps it. ends: ends a repair chain.
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

-- The calls in the window, oldest first.
local function window(session)
  local out = {}
  for i = math.max(1, #session.calls - WINDOW + 1), #session.calls do out[#out + 1] = session.calls[i] end
  return out
end

-- The calls of a turn, by default the current one; "with no turn signal, per-turn budgets count over the last 32 calls".
local function of_turn(session, turn)
  local out = {}
  for _, call in ipairs(window(session)) do
    if call.turn == (turn or session.turn) then out[#out + 1] = call end
  end
  return out
end

local function let_run(call) return call.said == "run" end
local function is_open(call) return let_run(call) and not call.class and not call.expired end

-- "Steps: calls of one model message are one step: by dev.toolgate/step, else all calls admitted before the feedback of
-- a sibling was sent." The first feedback closes an unnamed step, because the model may already react to it.
-- A step's name is valid until another name comes.
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
-- the tick from which calls of this tool count. A partial result is a success, too. Concurrent calls count in the order
-- of admission.
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

-- "transient: own cap (3), wait doubled": failures since the last other result.
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
-- The outcome of a call, for comparing two calls; nil: unknown ("judged by arguments alone").
local function outcome(call)
  if call.denied then return nil end
  if call.class then return CLASSES[call.class].ran and "result " .. call.result or call.class end
  if call.so_far ~= "valid" then return call.so_far end
  return nil
end

-- True if the call ran, may have run, or may still run; false if it was released before.
local function admitted(call)
  return let_run(call) and (not call.class or CLASSES[call.class].ran or call.class == "transient")
end

local function counts_in_run(call)
  if not call.class then return true end
  return CLASSES[call.class].run
end

-- Calls in order, grouped by step.
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
-- row. "Any other admitted call ends the run of refusals": calls that were not admitted do not. `any`: with any results.
local function run_steps(ask, calls, from, any)
  local row, known, gap = {}, nil, false
  if ask.class then known = outcome(ask) end
  local counted = {}
  for _, call in ipairs(calls) do
    -- The call's own transient failures do not count; another call's transient failure still interrupts the row.
    local own = same_call(call, ask)
    if call.tick > from and (counts_in_run(call) or not own and call.class == "transient") then counted[#counted + 1] = call end
  end
  local steps = in_steps(counted)
  for i = #steps, 1, -1 do
    local step, newest, other = steps[i], nil, false
    for n = #step, 1, -1 do
      local call = step[n]
      if same_call(call, ask) then
        -- "Only a row of refusals": the last one before the other call was refused.
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

-- "Cycles of 2-5 calls repeated three times with the same results (A B A B A B) are loops too." Refused calls continue
-- a cycle as they continue a run; calls that re-arm runs are often part of it. `repeats` and `halt` count rounds here.
local function rounds(session, ask)
  local row = {}
  for _, call in ipairs(of_turn(session)) do
    local last = row[#row]
    local twin = last and same_call(last, call) and last.step == call.step -- duplicates of one step are one call
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

-- If a run and a cycle apply, the longer one gives the code.
local function loop(session, ask)
  local says, code = loop_run(session, ask)
  if not says then says, code = loop_across_turns(session, ask) end
  local also, cycling, _, _, round = cycle(session, ask)
  if cycling and round > repeats(session, ask) + 1 then return also, cycling end
  return says, code
end

-- ---- limits in use ----
-- "Admitted calls. A call that is refused, or released before it ran, is given back."
local function was_used(call)
  if not let_run(call) then return false end
  return not (call.class == "invalid" or call.class == "fabricated" or call.class == "released" or call.class == "refused")
end

-- ---- polling ----
-- "Result differs from last time (a poll): starts anew, up to loop.poll.max (20)": the length of such a row. Of siblings
-- the last one counts.
local function changed_in_row(session, ask)
  local row, newest, count = run_steps(ask, of_turn(session), re_armed_at(session, ask.tool), true), {}, 0
  for _, call in ipairs(of_turn(session)) do
    if same_call(call, ask) and counts_in_run(call) and call.code ~= "too_soon" then newest[call.step] = call end
  end
  for step, call in pairs(newest) do
    if row[call.turn .. "." .. step] and step ~= ask.step and call.changed then count = count + 1 end
  end
  return count
end

-- "A tool that is meant to be asked again, with the same arguments, at most max times in a row." If `loop.repeats` and
-- `loop.halt` differ, the same number of further calls gets a halt.
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

-- The steps of early polls in a row; the last of them has the set.
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

-- "And not sooner than `every` after the last time … that uses nothing up, but after five early polls the run ends."
-- A released call starts no pause, and removes the one before it.
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
      if not call.orphan then calls = calls + 1 end -- never admitted, but its cost counts
      cost = cost + call.cost
    end
  end
  return calls, cost
end

local function second_of(ms) return math.floor(ms / 1000) end

-- Seconds "from the tool's first call of a turn on; of a session: from the start of the turn". If all calls were
-- released there is no first one.
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

-- The first limit that is reached gives the code.
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
-- The chain of a tool in a turn, replayed from its events: attempts so far, the step of the last one, and whether it has
-- ended. A late result of an earlier turn's call counts in the current turn; the earlier turn's chains have ended.
local function fresh() return { attempts = 0, over = false } end

-- True if the feedback of the chain's last call was sent before this call was admitted, judged by steps: a call of a
-- later step knows it.
local function heard_of(chain, call) return call.step > chain.step end

local CHAIN = {}

function CHAIN.invalid(chain, event, call)
  if chain.over then return chain end
  if chain.step == call.step then return chain end
  chain.attempts, chain.step, chain.last = chain.attempts + 1, call.step, call
  -- "Budgets and loops advise" without a session: an anonymous session exhausts nothing.
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

-- "A chain left open when its turn ends is llm_gave_up." Ordered by their last event.
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

return {
  CLASSES = CLASSES, UNLIMITED = UNLIMITED, same_call = same_call, window = window, of_turn = of_turn,
  let_run = let_run, step_of = step_of, re_armed_at = re_armed_at, count_keys = count_keys, steps_spent = steps_spent,
  same_call_budget = same_call_budget, duplicate_in_step = duplicate_in_step, already_broken = already_broken,
  transient_count = transient_count, transient_budget = transient_budget, outcome = outcome, run_steps = run_steps,
  repeats = repeats, loop = loop, was_used = was_used, poll_budget = poll_budget, hammered = hammered,
  too_soon = too_soon, used = used, second_of = second_of, limits = limits, chain_of = chain_of,
  left_open = left_open,
}
