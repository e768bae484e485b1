-- The ledger's rules a second time, written from the specification and not from the C code: slow and obvious. A session
-- (ledger_model.lua) is the list of its last calls; each rule reads the list again for every question, and quotes the
-- sentence it comes from. A comment states the decision if the specification is open.
local UNLIMITED      = 4294967295
local PROBLEMS_MAX   = 16 -- pairs of (path, code) of one attempt; with more it is comparable to nothing
local FREE_ATTEMPTS  = 4  -- of a chain: attempts that make progress and cost nothing
local ATTEMPTS_MAX   = 254

-- How often each decision was reached, for the walk that must reach all of them.
local met = {}
local function meet(what) met[what] = (met[what] or 0) + 1 end

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

-- The calls in the window that belong to a turn, by default the current one; "with no turn signal, per-turn budgets count
-- over the last 32 calls".
local function of_turn(session, turn)
  local out = {}
  turn = turn or session.turn
  for _, call in ipairs(session.calls) do
    if call.turn == turn then out[#out + 1] = call end
  end
  return out
end

local function let_run(call) return call.said == "run" end
local function is_open(call) return let_run(call) and not call.class and not call.expired end
local function ran(call) return call.class and CLASSES[call.class].ran end

-- A partial result is a success, too.
local function succeeded(call) return call.class == "ok" or call.class == "partial" end

-- "A tool that writes or destroys (declared, annotated or by its verb)."
local function writes(call) return call.effects == "write" or call.effects == "destructive" end

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

-- ---- re-arming ----
-- The last time that the tool ran this very call, in whatever turn, it failed.
local function failed_last(session, ask, before)
  local failed = false
  for _, call in ipairs(session.calls) do
    if before and call.tick >= before then break end
    if same_call(call, ask) and ran(call) then failed = call.class == "tool_error" end
  end
  return failed
end

-- "After an error, any successful call not known to read re-arms. After a success: reads and unknown tools as today", that is
-- "a successful call of a different tool that is not read; so does a successful call of the same unknown tool with other
-- arguments (a shell: test, edit, test again)"; "a write only by a success of a tool known to write; a destructive call only
-- by a new turn". A write's own other calls do not re-arm it. "Known local edits also by a shell's success." "Where only an
-- annotation says destructive, a success of the same tool with other arguments re-arms it"; otherwise it counts as a write.
local function re_arms(call, ask, failed)
  if not succeeded(call) or same_call(call, ask) then return false end
  local other = call.tool ~= ask.tool
  if failed then
    meet(call.effects == "read" and "re-arms no error" or "re-arms after an error")
    return call.effects ~= "read"
  end
  if ask.effects == "destructive" and ask.limits.hinted then
    meet "re-arms a hinted tool"
    return not other or writes(call)
  end
  if ask.effects == "destructive" then
    if other and writes(call) then meet "re-arms nothing that destroys" end
    return false
  end
  if ask.effects == "write" then
    if other and ask.limits.edits_files and call.effects == "unknown" then
      meet "a shell re-arms an edit"
      return true
    end
    if other and not writes(call) and call.effects ~= "read" then meet "a shell re-arms no write" end
    return other and writes(call)
  end
  if other then return call.effects ~= "read" end
  if call.effects == "unknown" then meet "a shell re-arms" end
  return call.effects == "unknown"
end

-- The tick from which calls count. Concurrent calls count in the order of admission.
local function re_armed_at(session, ask, before)
  local at, failed = 0, nil
  for _, call in ipairs(session.calls) do
    if before and call.tick >= before then break end
    if succeeded(call) and failed == nil then failed = failed_last(session, ask, before) end
    if re_arms(call, ask, failed) then at = call.tick end
  end
  return at
end

local function count_keys(set)
  local n = 0
  for _ in pairs(set) do n = n + 1 end
  return n
end

-- ---- same-call budget ----
-- "A result that differs from last time, and the tool reads, polls or is unknown: does not count. A tool that writes or
-- destroys: +1, a write that returns a new id each time is still the same write." "loop.compare = "arguments" ignores
-- results for any tool."
local function is_excused(call)
  if call.limits.compare_arguments then
    meet "changed, arguments compared"
    return false
  end
  if call.limits.polls or not writes(call) then return true end
  meet "changed, a write"
  return false
end

-- "What is never settled frees its same-call budget (not for destructive: it may have run)."
local function takes_budget(call, ask)
  if not let_run(call) then return false end
  if not call.class then return is_open(call) or call.effects == "destructive" end
  return CLASSES[call.class].budget and (ask and ask.limits.same_call_hard or not call.changed and not call.under_way)
end

-- "Budgets and runs count steps, not calls", but for the calls of this step and those in flight: "within one step,
-- identical calls beyond same_call are refused (16 identical slow reads in flight all ran)." "A guessed turn never re-arms
-- destructive calls": where nobody ever named a turn, their budget counts over the whole window. "A same_call that a policy
-- or defaults writes is hard: every run of this (tool, arguments) in the turn counts, whatever its result and whatever ran
-- between."
local function spent_entry(session, call)
  for i, entry in ipairs(session.spent) do
    if same_call(entry.call, call) then return entry, i end
  end
end

local function steps_spent(session, ask)
  local steps, at_once, from = {}, 0, re_armed_at(session, ask)
  local calls = session.calls
  if session.told or ask.effects ~= "destructive" or ask.limits.hinted then calls = of_turn(session) end
  for _, call in ipairs(calls) do
    if same_call(call, ask) and (call.tick > from or ask.limits.same_call_hard) and takes_budget(call, ask) then
      if call.changed or call.tick <= from then meet "a hard budget" end
      if call.step == ask.step or is_open(call) then
        at_once = at_once + 1
      else
        steps[call.step] = true
      end
      if call.turn ~= session.turn then meet "budget of earlier guessed turns" end
    end
  end
  local before = spent_entry(session, ask)
  if before then meet "a count outlasts the window" end
  return count_keys(steps) + (before and before.count or 0), at_once
end

-- "Counts of writes, destructive calls and of every tool whose same_call is written live outside the ring": a call that
-- leaves the window in its turn leaves its count. Of the calls of one step the last one to leave counts. What re-arms it
-- later, and is no reset, is a success that `re_arms` it, unless its same_call is written.
-- Where turns are guessed, none gives back what destroys.
local function counts_on(session, call)
  local destroys = call.effects == "destructive" and not call.limits.hinted
  return (call.turn == session.turn or destroys and not session.told) and (writes(call) or call.limits.same_call_hard)
         and takes_budget(call, call) and not call.reset
end

local function drop_re_armed(session, entry, other)
  local call = entry.call
  if call.limits.same_call_hard or not re_arms(other, call, call.class == "tool_error") then return end
  meet "a count is re-armed"
  local _, i = spent_entry(session, call)
  if i then table.remove(session.spent, i) end
end

local function spend(session, gone, at)
  if not counts_on(session, gone) then return end
  local newer = { unpack(session.calls, at + 1) }
  for _, call in ipairs(newer) do
    if same_call(call, gone) and call.step == gone.step and counts_on(session, call) then return end
  end
  local entry = spent_entry(session, gone)
  if not entry then
    entry = { count = 0 }
    table.insert(session.spent, entry)
  end
  entry.call, entry.count = gone, math.min(entry.count + 1, 255)
  for _, call in ipairs(newer) do drop_re_armed(session, entry, call) end
end

local function spent_settled(session, call)
  for i = #session.spent, 1, -1 do drop_re_armed(session, session.spent[i], call) end
end

-- Of a tool, or (nil) of all; `keeps`: what destroys keeps its count, unless an annotation alone says that it does.
local function drop_spent(session, tool, keeps)
  for i = #session.spent, 1, -1 do
    local call = session.spent[i].call
    local destroys = call.effects == "destructive" and not call.limits.hinted
    if (not tool or call.tool == tool) and not (keeps and destroys) then table.remove(session.spent, i) end
  end
end

-- "The same-call budget of reads only advises where silence begins turns, since 'this turn' is a guess."
local is_poll
local function same_call_budget(session, ask)
  if ask.limits.same_call == UNLIMITED or ask.limits.polls then return nil end
  local steps, at_once = steps_spent(session, ask)
  if not ask.limits.same_call_hard and at_once < ask.limits.same_call and is_poll(session, ask) then return nil end
  if steps + at_once < ask.limits.same_call then return nil end
  if steps < ask.limits.same_call then meet "a budget spent at once" end
  local guessed = not session.told and ask.turn_idle_s > 0
  if not guessed or ask.effects ~= "read" or at_once >= ask.limits.same_call then return "refuse", "same_call" end
  meet "read advised"
  return "advise", "same_call"
end

-- "Of identical writes in one step one runs and the others are refused." "Only adjacent duplicates of a step are duplicates:
-- A, B, A all run." A call that was given back was never made.
local function duplicate_in_step(session, ask)
  if not writes(ask) then return nil end
  local calls = of_turn(session)
  for i = #calls, 1, -1 do
    local call = calls[i]
    if call.step == ask.step and not same_call(call, ask) and call.class ~= "released" then
      meet "no adjacent duplicate"
      return nil
    end
    local runs = is_open(call) or let_run(call) and not call.class and call.effects == "destructive"
    if same_call(call, ask) and call.step == ask.step and (runs or ran(call)) then
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
  for _, call in ipairs(session.calls) do
    if turn and call.tick > ask.tick then break end
    if call.turn == (turn or session.turn) and same_call(call, ask) and call.class then
      if call.class == "transient" then n = n + 1 elseif ran(call) then n = 0 end
    end
  end
  return n
end

local function transient_budget(session, ask)
  if transient_count(session, ask) >= ask.limits.transient then return "refuse", "transient_budget" end
end

-- ---- the same failure, other arguments ----
-- "Same tool, same masked error, no success of any tool between", in one turn, before `ask` (an admit: before now) and
-- together with `text` and `count` (a settle: those of the call itself). Calls whose result is unknown, and calls that did
-- not run, neither count nor end the row. An error without a text equals no other. "A person can end it": calls before a
-- reset do not count.
local function failures_in_row(session, ask, turn, text, count)
  local calls = of_turn(session, turn)
  for i = #calls, 1, -1 do
    local call = calls[i]
    if call.tick < ask.tick and succeeded(call) then
      if count > 0 then meet "a success ends failures" end
      return count
    elseif call.tick < ask.tick and not call.reset then
      if call.tool == ask.tool and ran(call) then
        if call.class ~= "tool_error" or call.masked == "" or text and call.masked ~= text then return count end
        text, count = call.masked, count + 1
        if count == 3 then meet "3 failures alike" end
      end
    end
  end
  return count
end

local function failures_with(session, call)
  if call.class ~= "tool_error" or call.masked == "" then return 0 end
  return failures_in_row(session, call, call.turn, call.masked, 1)
end

-- "Backstop: an identical call with the same failure, between whose runs nothing known to write succeeded: refused from the
-- 12th." Within the turn; a declared poll is no such call. Errors that differ in a number alone are the same.
local function failures_alike(session, ask)
  local calls, count, failure = of_turn(session), 0, nil
  for i = #calls, 1, -1 do
    local call = calls[i]
    if not same_call(call, ask) then
      if succeeded(call) and writes(call) then return count end
    elseif ran(call) then
      if call.class ~= "tool_error" or call.masked == "" or failure and call.masked ~= failure then return count end
      failure, count = call.masked, count + 1
    end
  end
  return count
end

-- "Refused from the 10th by default (`loop.same_failure = N | "note" | "refuse"`, the last meaning 6)."
local function same_failure(session, ask)
  local alike = failures_alike(session, ask)
  if alike >= 11 and not ask.limits.polls then
    meet "the 12th failure alike"
    return "refuse", "same_failure", alike
  end
  if ask.limits.same_failure == UNLIMITED then return nil end
  local count = failures_in_row(session, ask, session.turn, nil, 0)
  if count >= ask.limits.same_failure - 1 then return "refuse", "same_failure", count end
end

-- ---- polls ----
-- "Where the last result says that something is under way", in whatever turn, "an identical call of a tool that reads, of a
-- known poll, or of a shell command that …, is a poll": the gate tells of which results that is so.
function is_poll(session, ask)
  if ask.limits.polls then return true end
  local under_way
  for _, call in ipairs(session.calls) do
    if same_call(call, ask) and ran(call) then under_way = call.under_way end
  end
  if under_way then meet "a poll by result" end
  return under_way
end

-- ---- loops ----
-- The outcome of a call, for comparing two calls; nil: unknown ("judged by arguments alone").
local function outcome(call)
  if call.denied then return nil end
  if call.class then
    if not ran(call) then return call.class end
    return call.result ~= "" and "result " .. call.result or nil
  end
  if call.so_far ~= "valid" then return call.so_far end
  return nil
end

-- "Same but for the first list: reads at half weight. Same but for other digits: unknown tools at half weight": the gate says
-- what is left of a result without them. nil: nothing is known.
local function nearly(call)
  if not ran(call) or call.class == "schema_mismatch" or call.masked == "" then return nil end
  return (call.class == "tool_error" and "failed " or "") .. call.masked
end

-- "Results of writes are not compared": nothing of such a call is but its arguments.
local function outcome_in_cycle(call)
  if writes(call) then return nil end
  return outcome(call)
end

-- "For a tool that does not read: with any result": of one that writes or destroys. "loop.compare = "arguments" ignores
-- results for any tool."
local function ignores_results(ask) return writes(ask) or ask.limits.compare_arguments end

-- True if the call ran, may have run, or may still run; false if it was released before.
local function admitted(call)
  return let_run(call) and (not call.class or CLASSES[call.class].ran or call.class == "transient")
end

local function counts_in_run(call)
  return not call.class or CLASSES[call.class].run
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
  local row, how, known, gap = {}, {}, nil, false -- how: by step, whether its outcome is that of the newest known
  any = any or ignores_results(ask)
  if ask.class and outcome(ask) then known = ask end
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
        if not newest and gap and not call.denied then return row, how end
        if call.code == "poll_budget" and not any then return row, how end -- what was under way then may have ended since
        local result, like = outcome(call), nil
        if result and not any then
          like = (not known or result == outcome(known)) and "same" or nearly(call) and nearly(call) == nearly(known) and "nearly"
          if not like then return row, how end
        elseif result and known and result ~= outcome(known) and ignores_results(ask) then
          meet "results ignored"
        end
        known, newest = known or result and call, call
        if call.code ~= "too_soon" and not row[step.name] then row[step.name], how[step.name] = call.at, like end
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
  return row, how
end

-- How often the call would be made in a row: nearly the same counts half, and so does everything else unless two were the same.
local function weighed(row, how)
  local steps, alike, half = 0, 0, 0
  for name in pairs(row) do
    steps = steps + 1
    if how[name] == "same" then alike = alike + 1 elseif how[name] == "nearly" then half = half + 1 end
  end
  if half == 0 then return steps + 1 end
  meet "results nearly alike"
  return math.floor(alike <= 1 and (steps + 1) / 2 or steps + 1 - half / 2)
end

local function repeats(session, ask)
  local steps = run_steps(ask, of_turn(session), re_armed_at(session, ask))
  steps[session.turn .. "." .. ask.step] = nil
  return count_keys(steps)
end

local function times_in_row(session, ask)
  local row, how = run_steps(ask, of_turn(session), re_armed_at(session, ask))
  row[session.turn .. "." .. ask.step] = nil
  return weighed(row, how)
end

-- "The 2nd passes, the 3rd and 4th are refused before they run, the 5th and later are halt."
local function loop_run(session, ask)
  local length = times_in_row(session, ask)
  if length >= ask.limits.halt + (ask.patience or 0) then return "halt", "loop" end
  if length >= ask.limits.repeats then return "refuse", "loop" end
end

local function second_of(ms) return math.floor(ms / 1000) end

-- "A new user turn starts the run anew, but loop.across_turns (5) still ends what goes on turn after turn." "Between other
-- turns calls count only within loop.across_within (10 minutes, by the ledger's clock)."
local function loop_across_turns(session, ask)
  local steps, how = run_steps(ask, session.calls, re_armed_at(session, ask))
  steps[session.turn .. "." .. ask.step] = nil
  local names, lately, newer = {}, {}, second_of(ask.at)
  for name in pairs(steps) do names[#names + 1] = name end
  table.sort(names, function(a, b) return steps[a] > steps[b] end)
  for _, name in ipairs(names) do
    if newer - second_of(steps[name]) > 600 then break end
    lately[name], newer = steps[name], second_of(steps[name])
  end
  if weighed(lately, how) >= ask.limits.across_turns then return "refuse", "loop" end
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
    local one, other = outcome_in_cycle(a), outcome_in_cycle(b)
    if same_call(a, b) and writes(a) and outcome(a) ~= outcome(b) then meet "results of writes in a cycle" end
    if not same_call(a, b) then return nil end
    if a == ask or not one or not other or one == other then return "same" end
    return nearly(a) and nearly(a) == nearly(b) and "nearly"
  end
  local most = 1
  for period = 2, 5 do
    local length, same, mixed = period, period, false
    while #row - length >= 1 and length < 5 * 5 + 1 do -- calls that are looked at
      local like = alike(row[#row - length + period], row[#row - length])
      if not like then break end
      mixed = mixed or not same_call(row[#row - length], ask)
      length, same = length + 1, like == "same" and same == length and same + 1 or same
    end
    local count = math.floor(same / period)
    if same < length then count = math.max(count, math.floor(math.floor(length / period) / 2)) end -- half, as in a run
    if mixed and count >= 3 then most = math.max(most, count) end
  end
  return most
end

local function cycle(session, ask)
  local round = rounds(session, ask)
  if round < ask.limits.repeats then return nil end
  return round >= ask.limits.halt + (ask.patience or 0) and "halt" or "refuse", "cycle", nil, nil, round
end

-- If a run and a cycle apply, the longer one gives the code.
local function loop(session, ask)
  if is_poll(session, ask) then return nil end
  local says, code = loop_run(session, ask)
  if not says then says, code = loop_across_turns(session, ask) end
  local also, cycling, _, _, round = cycle(session, ask)
  local row, how = run_steps(ask, of_turn(session), re_armed_at(session, ask))
  row[session.turn .. "." .. ask.step] = nil
  if cycling and round > weighed(row, how) then return also, cycling end
  return says, code
end

-- ---- limits in use ----
-- "Admitted calls. A call that is refused, or released before it ran, is given back."
local function was_used(call)
  if not let_run(call) then return false end
  return not (call.class == "invalid" or call.class == "fabricated" or call.class == "released" or call.class == "refused")
end

-- ---- polling ----
-- "Result differs from last time, and the tool reads, polls or is unknown: starts anew, up to loop.poll.max (20)": the
-- length of such a row. Of siblings the last one counts.
local function changed_in_row(session, ask)
  local row, newest, count = run_steps(ask, of_turn(session), re_armed_at(session, ask), true), {}, 0
  for _, call in ipairs(of_turn(session)) do
    if same_call(call, ask) and counts_in_run(call) and call.code ~= "too_soon" then newest[call.step] = call end
  end
  for step, call in pairs(newest) do
    if row[call.turn .. "." .. step] and step ~= ask.step and call.changed then count = count + 1 end
  end
  return count
end

-- How often in a row the call has been made, with any results, however long ago: what was written down when it was judged
-- last. `calls`, `from`: as in run_steps.
local function asked_ever(ask, calls, from)
  local row = run_steps(ask, calls, from, true)
  for i = #calls, 1, -1 do
    local call = calls[i]
    if same_call(call, ask) and call.asked and call.tick > from and row[call.turn .. "." .. call.step] then return call.asked end
  end
  return 0
end

-- "Up to `loop.poll.max`, then is refused, never 'end this run'." "Polls at least 20 s after the last answer do not count
-- until the 200th."
local function poll_budget(session, ask)
  local calls, from, poll = of_turn(session), re_armed_at(session, ask), is_poll(session, ask)
  local row = run_steps(ask, calls, from, true)
  row[session.turn .. "." .. ask.step] = nil
  local times, count, paced = { [0] = second_of(ask.at) }, 0, false
  for _, at in pairs(row) do times[#times + 1] = second_of(at) end
  table.sort(times, function(a, b) return a > b end)
  for i = 1, #times do
    local waited = times[i - 1] - times[i] >= 20
    if i == 1 then paced = waited end
    count = count + (waited and i > 1 and 0 or 1)
  end
  local ever = asked_ever(ask, calls, from)
  if not poll then count = changed_in_row(session, ask) end
  if poll and paced and count >= ask.limits.poll_max then meet "a poll that has waited" end
  if ask.limits.poll_max == UNLIMITED or ever < 200 and (paced or count < ask.limits.poll_max) then return nil end
  return "refuse", "poll_budget", ever
end

-- "A declared poll that is asked too early is refused with the wait and never halts", and that uses nothing up.
-- A released call starts no pause, and removes the one before it.
local function too_soon(session, ask, now)
  local wait = 0
  for _, paced in ipairs(session.paced) do
    if same_call(paced, ask) then wait = paced.at + ask.limits.poll_every_ms - now end
  end
  if ask.limits.poll_every_ms == 0 or wait <= 0 then return nil end
  return "refuse", "too_soon", wait
end

-- ---- limits ----
-- Calls and cost of a tool, or of all, in this turn or ever: of the calls in the window, and of those that left it
-- (session.left), with whose outcome nothing can happen any more.
local function used(session, in_turn, tool)
  local calls, cost = 0, 0
  for name, sums in pairs(session.left) do
    if not tool or name == tool then
      calls, cost = calls + sums.calls, cost + sums.cost
      if in_turn then calls, cost = calls - sums.calls_before, cost - sums.cost_before end
    end
  end
  for _, call in ipairs(session.calls) do
    if (not in_turn or call.turn == session.turn) and (not tool or call.tool == tool) and was_used(call) then
      if not call.orphan then calls = calls + 1 end -- never admitted, but its cost counts
      cost = cost + call.cost
    end
  end
  return calls, cost
end

-- Seconds "from the tool's first call of a turn on; of a session: from the start of the turn". If all calls were
-- released there is no first one.
local function seconds(session, tool, now)
  if not tool then return second_of(now) - second_of(session.turn_began) end
  local in_use = session.in_use[tool]
  return in_use and in_use.calls > 0 and second_of(now) - second_of(in_use.first) or 0
end

-- The first limit that is reached gives the code.
local function allowance(session, ask, allowed, tool, now)
  if not next(allowed) then return nil end
  local calls_turn, cost_turn = used(session, true, tool)
  local calls_session, cost_session = used(session, false, tool)
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

-- A rate's bucket is asked before the session: the request carries how long it has no room for.
local function rate_limit(_, ask)
  if (ask.rate_wait_ms or 0) > 0 then return "refuse", "rate_limit", ask.rate_wait_ms end
end

-- ---- repair chains ----
-- True if the feedback of the chain's last call was sent before this call was admitted, judged by steps: a call of a
-- later step knows it. Numbers of steps are kept in one byte, and repeat.
local function heard_of(chain, call)
  local later = (call.step - chain.step) % 256
  return later > 0 and later < 128
end

-- What was wrong with an attempt: the set of its pairs of (path, code), "kept as bounded hashes". `more`: what is known of
-- siblings of its step. The set is never changed afterwards.
local function set_of(problems, more)
  local set = { count = 0, cut = false, pairs = {} }
  local function add(path, code)
    local name = path .. "\0" .. code
    if set.pairs[name] then return end
    if set.count == PROBLEMS_MAX then
      if not set.cut then meet "17 problems" end
      set.cut = true
      return
    end
    set.pairs[name], set.count = path, set.count + 1
  end
  for name, path in pairs(more and more.pairs or {}) do add(path, name:sub(#path + 2)) end
  for _, problem in ipairs(problems) do add(problem.path, problem.code) end
  set.cut = set.cut or more and more.cut or false
  return set
end

-- "Equals or extends": items[0] extends items and the empty path, and items2 does not.
local function extends(path, known)
  if path == known or known == "" then return true end
  local following = path:sub(#known + 1, #known + 1)
  return path:sub(1, #known) == known and (following == "." or following == "[")
end

-- "An attempt is progress if each remaining problem's path equals or extends one of the last attempt's and the set of
-- (path, code) differs." Where one of both is empty or was cut nobody can tell, so it is not progress.
local function is_progress(set, last)
  if set.cut or last.cut or set.count == 0 or last.count == 0 then return false end
  local differs = set.count ~= last.count
  for name, path in pairs(set.pairs) do
    local found = false
    for _, known in pairs(last.pairs) do found = found or extends(path, known) end
    if not found then return false end
    differs = differs or not last.pairs[name]
  end
  return differs
end

-- "Where a client repeats dev.toolgate/call on its retries, the chain belongs to that id." Otherwise "a call with a new id
-- continues the open chain of its tool. Only siblings of one step open chains side by side, at most 8 of a tool (a further
-- one continues the oldest); a later call continues the sibling that it resembles most, else the oldest": the one that has
-- most problems (path, code) in common. "When every chain of the tool is exhausted", it continues an exhausted one.
-- session.chains is in the order in which they were extended.
local SIBLINGS_MAX = 8

local function shared(set, other)
  local n = 0
  for name in pairs(set and set.pairs or {}) do if other.pairs[name] then n = n + 1 end end
  return n
end

local function chain_of(session, call, set)
  local own, open, over, count = nil, {}, nil, 0
  for i, chain in ipairs(session.chains) do
    if chain.tool == call.tool then
      count = count + 1
      if chain.call == call.call then own = i end
      if chain.over then over = over or i else open[#open + 1] = i end
    end
  end
  if own then return session.chains[own], own end
  local best, most = nil, -1
  for _, i in ipairs(open) do
    local chain = session.chains[i]
    if chain.step ~= call.step % 256 and shared(set, chain.problems) > most then
      best, most = i, shared(set, chain.problems)
    end
  end
  if not best and #open == 0 then best = over end
  if not best and #open > 0 and count >= SIBLINGS_MAX then best = open[1] end
  if best then meet(call.call ~= "" and "a new id continues a chain" or "a call without an id continues a chain") end
  if best then return session.chains[best], best end
  if #open > 0 then meet "siblings open chains side by side" end
end

-- Invalid arguments: the chain of the call begins or goes on; calls of one step count once. `problems` nil: it is not known
-- what is wrong with them, and what was known of the last attempt stays. Returns the chain, its outcome if it ended now
-- with its retries, whether the attempt was free ("progress spends nothing, at most 4 times"), and whether it is one too many.
local function extend_chain(session, call, problems, again)
  local chain, at = chain_of(session, call, problems and set_of(problems))
  if chain and chain.over then -- it goes on, until it is a halt
    if chain.step ~= call.step % 256 then chain.attempts = math.min(chain.attempts + 1, ATTEMPTS_MAX) end
    chain.step = call.step % 256
    return chain, "", 0, false, true
  end
  if at then table.remove(session.chains, at) end -- the chain that was extended last is the last one
  chain = chain or { tool = call.tool, call = call.call, attempts = 0, free = 0, over = false, problems = set_of {} }
  session.chains[#session.chains + 1] = chain
  chain.call = call.call
  local sibling = chain.step == call.step % 256
  local set = problems and set_of(problems, sibling and chain.problems or nil)
  local free = set and not sibling and chain.attempts > 0 and is_progress(set, chain.problems)
  if free and call.limits.repair_hard then -- "where a policy writes retry.repair, progress counts, too"
    meet "progress that counts"
    free = false
  end
  if free and chain.free == FREE_ATTEMPTS then
    meet "5th progress"
    free = false
  end
  if sibling and set and set.count > 0 then meet "problems of siblings" end
  chain.problems, chain.step = set or chain.problems, call.step % 256
  if free then
    meet "progress"
    chain.free = chain.free + 1
    return chain, "", 0, true
  end
  if not sibling then chain.attempts = chain.attempts + 1 end
  -- "Budgets and loops advise" without a session: an anonymous session exhausts nothing.
  if sibling or chain.attempts <= call.limits.repair then return chain, "", 0, false, false end
  if call.anonymous then return chain, "", 0, false, true end
  chain.over = true
  return chain, again and "redundant" or "exhausted", chain.attempts - 1, false, true
end

-- ---- insistence ----
-- "If a model insists on the same problem (tool, code, path) a second time in a session and nothing else is wrong, the call
-- passes." A session remembers the last 16 problems that it has asked about: { tool, problem, state, step, admission }.
-- state: "asked", then "accepted" or "refused" by the server. admission: of the last call that was let run with it.
local LAX_MAX = 16

local function lax_entry(session, tool, problem)
  for i, entry in ipairs(session.lax) do
    if entry.tool == tool and entry.problem == problem then return entry, i end
  end
end

-- The problems that may be insisted on, in their order, each once; `known`: the fleet has learnt it. nil: there are none, or
-- too many to remember, or the tool destroys.
local function lax_problems(ask)
  local out = {}
  if not ask.lax or ask.effects == "destructive" then return nil end
  for _, problem in ipairs(ask.problems) do
    local name, again = problem.path .. "\0" .. problem.code, false
    for _, other in ipairs(out) do
      if other.name == name then other.known, again = other.known or problem.known, true end
    end
    if not again then out[#out + 1] = { name = name, known = problem.known } end
  end
  if #out == 0 or #out > LAX_MAX then return nil end
  return out
end

-- "at once": the server has accepted all of them, in this session or in others. "insists": the rest was asked about in an
-- earlier step, whatever became of the chain. nil: the call is refused.
local function lax_kind(session, ask)
  local problems, insists = lax_problems(ask), false
  if not problems then return nil end
  for _, problem in ipairs(problems) do
    local entry = lax_entry(session, ask.tool, problem.name)
    if entry and entry.state == "refused" then return nil end
    if not problem.known and not (entry and entry.state == "accepted") then
      if not entry or entry.step == ask.step % 256 then return nil end
      insists = true
    end
  end
  return insists and "insists" or "at once"
end

-- The call is refused for them, or (admission) let run with them. The entry touched last is the last one.
local function lax_remember(session, ask, admission)
  for _, problem in ipairs(lax_problems(ask) or {}) do
    local entry, i = lax_entry(session, ask.tool, problem.name)
    if i and admission then table.remove(session.lax, i) end
    if not entry then
      entry = { tool = ask.tool, problem = problem.name, state = "asked", step = ask.step % 256 }
    end
    if not i or admission then table.insert(session.lax, entry) end
    entry.admission = admission or entry.admission
    if #session.lax > LAX_MAX then
      table.remove(session.lax, 1)
      meet "17th problem asked about"
    end
  end
end

-- "It is attempt 2 of the chain and spends it." It neither begins a chain nor ends one.
local function lax_spend(session, ask)
  local chain = chain_of(session, ask)
  if chain then chain.attempts = chain.attempts + 1 end
end

-- "If the result's class is ok, the session stops asking. If a passed call then fails with the server's argument error, the
-- session does not learn and the next is refused again": of the problems that its error names. "What was accepted is never
-- demoted." True if the session has learnt it now.
local function lax_settle(session, call, request)
  local learnt, class, refused = false, request.class, {}
  for i, problem in ipairs(request.problems or {}) do
    if math.floor((request.refused or 0) / 2 ^ (i - 1)) % 2 == 1 then refused[problem.path .. "\0" .. problem.code] = true end
  end
  for _, entry in ipairs(session.lax) do
    if entry.admission == call.admission then
      entry.admission = nil
      if class == "ok" or class == "partial" then
        learnt = learnt or entry.state ~= "accepted"
        entry.state = "accepted"
      elseif entry.state == "asked" and refused[entry.problem] then
        entry.state = "refused"
        meet "insisted in vain"
      end
    end
  end
  if learnt then meet "learnt" end
  return learnt
end

-- "Never a retry: refused; fabricated_id_on_retry if in a chain."
local function end_chain_fabricated(session, call)
  local chain, at = chain_of(session, call)
  if not chain or chain.over or not heard_of(chain, call) then return "", 0 end
  table.remove(session.chains, at)
  return "fabricated_id_on_retry", chain.attempts
end

-- "Ends: success if it had begun, else no_retry"; "a success ends only a chain whose feedback was sent before it was
-- admitted". "An exhausted chain refuses until the turn ends or a valid one runs."
local function end_chain_ran(session, call)
  local chain, at = chain_of(session, call)
  local repaired = chain and not chain.over and heard_of(chain, call)
  if repaired then table.remove(session.chains, at) end
  for i = #session.chains, 1, -1 do
    local other = session.chains[i]
    if other.tool == call.tool and other.over and heard_of(other, call) then table.remove(session.chains, i) end
  end
  if not repaired then return "no_retry", 0 end
  return "success", chain.attempts
end

return {
  met = met, meet = meet, succeeded = succeeded, spend = spend, spent_settled = spent_settled, drop_spent = drop_spent,
  CLASSES = CLASSES, UNLIMITED = UNLIMITED, same_call = same_call, of_turn = of_turn, let_run = let_run, step_of = step_of,
  re_armed_at = re_armed_at, count_keys = count_keys, is_excused = is_excused, steps_spent = steps_spent,
  same_call_budget = same_call_budget, duplicate_in_step = duplicate_in_step, already_broken = already_broken,
  transient_count = transient_count, transient_budget = transient_budget, failures_with = failures_with,
  same_failure = same_failure, outcome = outcome, run_steps = run_steps, repeats = repeats, loop = loop,
  times_in_row = times_in_row,
  was_used = was_used, is_poll = is_poll, asked_ever = asked_ever, poll_budget = poll_budget, too_soon = too_soon, used = used,
  second_of = second_of, limits = limits, rate_limit = rate_limit, chain_of = chain_of, extend_chain = extend_chain,
  end_chain_fabricated = end_chain_fabricated, end_chain_ran = end_chain_ran, lax_kind = lax_kind,
  lax_remember = lax_remember, lax_spend = lax_spend, lax_settle = lax_settle,
}
