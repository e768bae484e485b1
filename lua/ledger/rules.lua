-- The rules that admit and settle share: repair chains, what the window says of a call, and what speaks against it.
-- Stands between session.lua and limits.lua.

-- ---- repair chains --------------------------------------------------------

local chain_at, chain_next, chain_count, chain_ended, chain_step

local function find_chain(tool)
  local at = 1
  chain_at, chain_next, chain_count, chain_ended, chain_step = nil, nil, 0, 0, -1
  while at <= #chains do
    local count, ended, in_step, name = byte(chains, at + 3, at + 6)
    local ext = byte(chains, at + 7 + name)
    local following = at + 8 + name + ext
    if sub(chains, at, at + 2) == tool then
      chain_at, chain_next, chain_count, chain_ended, chain_step = at, following, count, ended, in_step
      return
    end
    at = following
  end
end

local function drop_chain()
  chains = sub(chains, 1, chain_at - 1) .. sub(chains, chain_next)
  chain_at = nil
end

-- Invalid arguments in step `in_step`: the chain begins or goes on; calls of one step count once.
-- Returns what to say, the chain's outcome if it ended now (else 0), attempt and attempts left.
local function extend_chain(tool, name, ext, in_step, repair, again, advise)
  find_chain(tool)
  if chain_ended == 1 then return REFUSE, 0, chain_count, 0 end
  local count = chain_count
  if chain_step ~= in_step then count = up_to(count + 1, 254) end
  local over = repair ~= UNLIMITED and count > repair
  local ended = 0
  if over and not advise then ended = 1 end
  if chain_at then drop_chain() end
  give_up_chains(CHAINS_BYTES)
  chains = chains .. tool .. char(count, ended, in_step, #name) .. name .. char(#ext) .. ext
  if ended == 1 then
    if again then return REFUSE, REDUNDANT, count, 0 end
    return REFUSE, EXHAUSTED, count, 0
  end
  local left = 0
  if repair == UNLIMITED then left = UNLIMITED elseif not over then left = repair - count + 1 end
  return REPAIR, 0, count, left
end

-- The attempt that a call of this tool is in its chain, how many are left, and whether the chain has ended.
local function attempts(tool, repair, invalid)
  find_chain(tool)
  if not chain_at then return 1, repair, false end
  local attempt, left = chain_count, repair
  if not invalid then attempt = attempt + 1 end
  if repair ~= UNLIMITED then left = repair + 1 - attempt end
  if left < 0 then left = 0 end
  return attempt, left, chain_ended == 1
end

-- ---- what the window says of one call -------------------------------------

local run, across, polls, asked, early, held, spent, transients, twin, broken, again, last_kind

-- What `look` says where nothing is like a call.
local function look_away()
  run, across, polls, asked, early, held, spent, transients = 0, 0, 0, 0, 0, 0, 0, 0
  twin, broken, again, last_kind = false, false, false, nil
end

-- Looks back from before the record at `from` (nil: from the newest on), of turn `low`, over calls of (tool, arguments) =
-- key. Sets
--   run, across   steps in a row that hold it with one result, of this turn and of any
--   polls, asked  how often in that row its result had changed, and how often it was asked at all, in this turn
--   early         how often in a row it was asked sooner than it may be, just now; those count nowhere else
--   held          how often this turn has it
--   spent         steps of its same-call budget in this turn
--   transients    transient failures since it last answered otherwise
--   twin, broken  it runs or ran in step `current`; its result did not match its schema in this turn
--   again         its arguments were invalid before, in this turn
-- A successful call of another tool that is not declared read re-arms run, across, polls, asked and spent.
-- `ref` is the result to compare with, nil for the newest there is.
local function look(key, from, low, current, destructive, ref)
  look_away()
  local first = seek(key, 1)
  if not first then return end
  if turned > 0 then first = seek(key, 1, base + turned) or first end
  local tool = sub(key, 1, 3)
  local row, same, armed, failing, hammering = true, true, true, true, true
  local row_step, own_step, spent_step, ran_step, refused_step = current, current, current, nil, nil
  local at, left = from or base + turned + 1, older(from) - older(first)
  while left > 0 do
    at, left = at - RECORD, left - RECORD
    if at <= base then at = at + #session - base end
    local class, in_turn, in_step = byte(session, at + 15, at + 17)
    local kind, here = class % 32, in_turn == low
    if not here and not row then return end
    if sub(session, at, at + 8) == key then
      if kind == TRANSIENT then
        if here and failing then transients = transients + 1 end
      elseif kind ~= RELEASED then
        if here and kind ~= DENIED and not last_kind then last_kind = kind end
        if kind >= OK and kind <= TOOL_ERROR then failing = false end
        if here then
          held = held + 1
          if kind == MISMATCH then broken = true end
          if kind == INVALID then again = true end
          if in_step == current and (kind <= TOOL_ERROR or (kind == UNKNOWN and destructive)) then twin = true end
          if armed and in_step ~= spent_step
            and ((kind <= TOOL_ERROR and class < 64) or (kind == UNKNOWN and destructive)) then
            spent, spent_step = spent + 1, in_step
          end
        end
        -- Another call stood between two of its steps: only a row of refusals outlasts that, and only what wasn't
        -- let run either.
        if ran_step and ran_step ~= in_step then row = false end
        if refused_step and refused_step ~= in_step and kind ~= DENIED then row = false end
        if row then
          own_step, ran_step, refused_step = in_step, nil, nil
          if kind ~= DENIED and same then
            local result = sub(session, at + 9, at + 14)
            if result ~= NO_RESULT then
              if not ref then ref = result elseif ref ~= result then same = false end
            end
          end
          if kind == DENIED and byte(session, at + 14) == TOO_SOON then
            if here and hammering then
              early, hammering = byte(session, at + 12), false
              if in_step == current then early = early - 1 end
            end
          else
            hammering = false
            if in_step ~= row_step then
              row_step = in_step
              if same then across = across + 1 end
              if here then
                if same then run = run + 1 end
                if class >= 64 and kind <= PARTIAL then polls = polls + 1 end
                asked = asked + 1
              end
            end
          end
        end
      end
    elseif kind ~= RELEASED then
      if row and in_step ~= own_step then
        if kind <= TRANSIENT then
          if ran_step and ran_step ~= in_step then row = false end
          ran_step = in_step
        elseif refused_step and refused_step ~= in_step then
          refused_step = -1
        else
          refused_step = in_step
        end
      end
      if class ~= 0 and class % 64 <= PARTIAL and sub(session, at, at + 2) ~= tool then row, armed = false, false end
    end
  end
end

-- Puts a call into the window that was never admitted, or so long ago that the window has lost it. Returns where.
local function add_unknown(label, admission, key, reads, name, ttl)
  begin_step(label)
  straighten()
  remember_name(sub(key, 1, 3), name, ttl)
  session = session .. key .. NO_RESULT .. char(UNKNOWN + reads * 32, turn % 256, step) .. admission
  if #session - base > WINDOW * RECORD then base = base + RECORD end
  return #session - RECORD + 1
end

-- The result that the call at `at` had the last time it ran, in an earlier step of its turn.
local function last_result(key, at, in_turn, in_step)
  local left = older(at)
  while left > 0 do
    at, left = at - RECORD, left - RECORD
    if at <= base then at = at + #session - base end
    local class, turn_then, step_then = byte(session, at + 15, at + 17)
    if turn_then ~= in_turn then return nil end
    if class % 32 >= OK and class % 32 <= TOOL_ERROR and step_then ~= in_step and sub(session, at, at + 8) == key then
      return sub(session, at + 9, at + 14)
    end
  end
end

local find_loop

do
-- How often a cycle of 2 to 5 calls has been gone round, were `key` called now: calls of this turn with equal
-- results, transient failures and what was released left out, a step's twins taken once.
local function rounds(key, from, current)
  local keys, results, n, low = {}, {}, 0, turn % 256
  local at, left, newer_key, newer_step = from or base + turned + 1, older(from), key, current
  while left > 0 and n < 25 do
    at, left = at - RECORD, left - RECORD
    if at <= base then at = at + #session - base end
    local class, in_turn, in_step = byte(session, at + 15, at + 17)
    if in_turn ~= low then break end
    local kind = class % 32
    if kind == UNKNOWN and sub(session, at + 18, at + 21) == NO_LABEL then break end -- where engines met: see away.lua
    if kind ~= TRANSIENT and kind ~= RELEASED then
      local this = sub(session, at, at + 8)
      if this ~= newer_key or in_step ~= newer_step then
        n = n + 1
        keys[n] = this
        if kind == DENIED then results[n] = NO_RESULT else results[n] = sub(session, at + 9, at + 14) end
      end
      newer_key, newer_step = this, in_step
    end
  end
  keys[0], results[0] = key, NO_RESULT
  local most = 1
  for period = 2, 5 do
    local i, mixed = 0, false
    while i + period <= n and keys[i] == keys[i + period] do
      local a, b = results[i], results[i + period]
      if a ~= b and a ~= NO_RESULT and b ~= NO_RESULT then break end
      if keys[i] ~= key then mixed = true end
      i = i + 1
    end
    local length = i + period
    if mixed and length >= 3 * period then
      local times = (length - length % period) / period
      if times > most then most = times end
    end
  end
  return most
end

-- ---- what speaks against a call -------------------------------------------

-- A loop, after `look`: its code (0: none), what to say, how often it would have been called in a row.
function find_loop(key, from, current, poll, repeats, halt, across_turns, poll_max)
  local times, code, says = run + 1, 0, REFUSE
  if poll == 1 then -- a tool that is meant to be asked again
    if asked < poll_max then return 0, REFUSE, times end
    code = POLL_BUDGET
    if asked >= poll_max + halt - repeats then says = HALT end
    return code, says, times
  end
  if times >= repeats or across + 1 >= across_turns then code = LOOP end
  if held >= 2 then
    local round = rounds(key, from, current)
    if round >= repeats and round > times then code, times = CYCLE, round end
  end
  if code ~= 0 and times >= halt then says = HALT end
  return code, says, times
end
end

-- The budgets of a valid call that is in no loop, after `look`; 0: within all of them.
local function over_budget(changes, poll, same_call, transient, poll_max)
  if broken then return BROKEN end
  if twin and changes > 0 then return DUPLICATE end
  if same_call ~= UNLIMITED and poll == 0 and spent >= same_call then return SAME_CALL end
  if transient ~= UNLIMITED and transients >= transient then return TRANSIENT_BUDGET end
  if poll_max ~= UNLIMITED and polls >= poll_max then return POLL_BUDGET end
  return 0
end

-- Was the chain's last feedback sent before a call of step `in_step` was admitted? Steps are one byte, and come round.
local function heard(in_step)
  local later = (in_step + 256 - chain_step) % 256
  return later > 0 and later < 128
end

-- An id nobody gave, in a retry: the chain ends, and its retries are returned.
local function end_chain_fabricated(tool, in_step)
  find_chain(tool)
  if not chain_at or chain_ended == 1 or not heard(in_step) then return 0, 0 end
  drop_chain()
  return FABRICATED_ON_RETRY, chain_count
end

local denied_label

do
local LABEL_TRANSIENT, LABEL_LOOP, LABEL_BUDGET = 6, 12, 13

-- The journal's label of what the ledger itself denies.
function denied_label(code)
  if code == TOO_SOON then return LABEL_TRANSIENT end
  if code == LOOP or code == CYCLE then return LABEL_LOOP end
  return LABEL_BUDGET
end
end
