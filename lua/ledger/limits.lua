-- What a tool and a session may use up: calls, cost, seconds of a turn, and the pace at which a tool may be asked
-- again. Stands between rules.lua and each script's own text.
--
-- The session's own sums stand in its header. A tool that has limits is counted in the hash of KEYS[3]:
--   "l"+tool  turn 4   calls of the turn 4   calls 4   cost of the turn 6   cost 6   second of the turn's first call 4
--   "p"       calls of tools with a pace, the one let run last at the end: tool and arguments 9, when in ms 6
-- Costs are in millionths of whatever the operator counts in. A call's declared cost is taken when it is let run, so
-- that parallel calls cannot overspend together; settle puts what it really cost in its place.

local PACED_MAX, PACED = 32, 15

local counter, tool_calls_turn, tool_calls, tool_cost_turn, tool_cost, tool_began

-- How much of the limit that speaks against a call is used up, and whose limit it is: 1 the tool's, 2 the session's.
-- Of a call that comes too soon: the ms to wait.
local used, whose

local function keep(field, value, ttl)
  if call("HSET", KEYS[3], field, value) == 1 and call("HLEN", KEYS[3]) == 1 then call("EXPIRE", KEYS[3], ttl) end
end

local open_counter

do
local COUNTED_MAX = 8192 -- fields of the hash; tools beyond share one count

function open_counter(tool)
  counter = "l" .. tool
  local kept = call("HGET", KEYS[3], counter)
  if not kept and call("HLEN", KEYS[3]) >= COUNTED_MAX then
    counter = "l"
    kept = call("HGET", KEYS[3], counter)
  end
  tool_calls_turn, tool_calls, tool_cost_turn, tool_cost, tool_began = 0, 0, 0, 0, second
  if not kept then return end
  tool_calls, tool_cost = u32(kept, 9), u48(kept, 19)
  if u32(kept, 1) == turn then
    tool_calls_turn, tool_cost_turn = u32(kept, 5), u48(kept, 13)
    if tool_calls_turn > 0 then tool_began = u32(kept, 25) end
  end
end
end

local function close_counter(ttl)
  keep(counter, p32(turn) .. p32(tool_calls_turn) .. p32(tool_calls) .. p48(tool_cost_turn) .. p48(tool_cost)
    .. p32(tool_began), ttl)
end

-- A sum that has something added or given back, and stays one.
local function moved(sum, by)
  sum = sum + by
  if sum < 0 then return 0 end
  return up_to(sum, 281474976710655)
end

-- One more call, or one less, and what it costs, in the session's sums and the tool's, where `counted`.
local function move(calls_by, cost_by, this_turn, counted)
  calls = up_to(moved(calls, calls_by), 4294967295)
  if this_turn then calls_turn = up_to(moved(calls_turn, calls_by), 65535) end
  if cost_by ~= 0 then
    local cost_turn = u48(seldom, 12)
    if this_turn then cost_turn = moved(cost_turn, cost_by) end
    seldom = sub(seldom, 1, 11) .. p48(cost_turn) .. p48(moved(u48(seldom, 18), cost_by)) .. sub(seldom, 24)
  end
  if not counted then return end
  tool_calls, tool_cost = up_to(moved(tool_calls, calls_by), 4294967295), moved(tool_cost, cost_by)
  if this_turn then
    tool_calls_turn = up_to(moved(tool_calls_turn, calls_by), 4294967295)
    tool_cost_turn = moved(tool_cost_turn, cost_by)
  end
end

local over_limits

do
local CALLS_PER_SESSION, COST_PER_TURN, COST_PER_SESSION, SECONDS_PER_TURN = 10, 11, 12, 13

-- The limits in `a` from `at` on, against what is used up: calls a turn, calls a session, seconds a turn (4 bytes
-- each), cost a turn, cost a session (6 each). `price` is nil for a tool that costs nothing.
local function over(a, at, in_turn, ever, since, cost_turn, cost_ever, price)
  if in_turn >= u32(a, at) then
    used = in_turn
    return CALLS_PER_TURN
  end
  if ever >= u32(a, at + 4) then
    used = ever
    return CALLS_PER_SESSION
  end
  if since >= u32(a, at + 8) then
    used = since
    return SECONDS_PER_TURN
  end
  if not price then return 0 end
  local most_turn, most_ever = u48(a, at + 12), u48(a, at + 18)
  if cost_turn >= most_turn or cost_turn + price > most_turn then
    used = cost_turn
    return COST_PER_TURN
  end
  if cost_ever >= most_ever or cost_ever + price > most_ever then
    used = cost_ever
    return COST_PER_SESSION
  end
  return 0
end

-- What admit's 37th byte and those behind the 67th say, the tool's own first.
function over_limits(a, tool)
  local limits, price, at, code = byte(a, 37), nil, 68, 0
  if byte(a, 57) == 1 then price = u48(a, 58) end
  if limits % 2 == 1 then
    open_counter(tool)
    whose, at = 1, 92
    code = over(a, 68, tool_calls_turn, tool_calls, second - tool_began, tool_cost_turn, tool_cost, price)
  end
  if code == 0 and limits % 4 >= 2 then
    whose = 2
    code = over(a, at, calls_turn, calls, second - u32(seldom, 24), u48(seldom, 12), u48(seldom, 18), price)
  end
  return code
end
end

-- ---- pace -----------------------------------------------------------------

-- The first byte of a call's entry among the paced ones; nil where it has none.
local function seek_paced(paced, key)
  local at = find(paced, key, 1, true)
  while at do
    if at % PACED == 1 then return at end
    at = find(paced, key, at + 1, true)
  end
end

-- How long this call has to wait, in ms, if it may be asked every `every` ms.
local function to_wait(key, every)
  local paced = call("HGET", KEYS[3], "p")
  if not paced then return 0 end
  local at = seek_paced(paced, key)
  if not at then return 0 end
  local since = now - u48(paced, at + 9)
  if since < 0 then since = 0 end
  if since >= every then return 0 end
  return every - since
end

-- Remembers that a call is let run now, or forgets that it was.
local function set_paced(key, runs, ttl)
  local paced = call("HGET", KEYS[3], "p") or ""
  local at = seek_paced(paced, key)
  if at then paced = sub(paced, 1, at - 1) .. sub(paced, at + PACED) end
  if runs then paced = paced .. key .. p48(now) end
  if #paced > PACED_MAX * PACED then paced = sub(paced, PACED + 1) end
  keep("p", paced, ttl)
end

-- ---- admit and settle -----------------------------------------------------

-- What speaks against a valid call that is in no loop, after over_budget: its code (0: nothing) and what to say.
local function find_against(a, key, every, halt, code)
  used, whose = 0, 0
  if every > 0 and not broken then used = to_wait(key, every) end
  if used > 0 then
    if early + 1 >= halt then return TOO_SOON, HALT end
    return TOO_SOON, REFUSE
  end
  if code == 0 and byte(a, 37) % 4 > 0 then code = over_limits(a, sub(key, 1, 3)) end
  return code, REFUSE
end

-- The result of a call that is denied. One that comes too soon again takes the place of the one before: hammering
-- must not push out of the window what the session remembers.
local function denied_result(key, says, code)
  local count = 0
  if code == TOO_SOON then
    straighten()
    local last = #session - RECORD + 1
    count = up_to(early + 1, 255)
    if last > base and sub(session, last, last + 8) == key and byte(session, last + 15) % 32 == DENIED
      and byte(session, last + 14) == TOO_SOON then
      session = sub(session, 1, last - 1)
    end
  end
  return "\0\0\0" .. char(count, says, code)
end

-- A call is let run: it is counted with what it is said to cost.
local function book(a, key, more, ttl)
  if more % 8 == 0 then -- nothing is counted of most tools but this
    calls, calls_turn = calls + 1, up_to(calls_turn + 1, 65535)
    return
  end
  local counted = more % 2 == 1
  if counted then open_counter(sub(key, 1, 3)) end
  move(1, u48(a, 58), true, counted)
  if counted then close_counter(ttl) end
  if u32(a, 64) > 0 then set_paced(key, true, ttl) end
end

local function reply_used(against, code, would)
  if against < CALLS_PER_TURN or (against ~= code and against ~= would) then return "" end
  return char(whose) .. p48(used)
end

-- What admit took for a call makes room for what it came to; one that was not let run after all costs nothing.
local function settle_sums(a, key, kind, taken, denied, this_turn, ttl)
  local counted, calls_by, cost_by = byte(a, 48) % 2 == 1, 0, u48(a, 33)
  if kind >= RELEASED then cost_by = 0 elseif denied then calls_by = 1 end
  if taken then
    cost_by = cost_by - u48(a, 50)
    if kind >= RELEASED then
      calls_by = -1
      if byte(a, 49) == 1 then set_paced(key, false, ttl) end
    end
  end
  if calls_by == 0 and cost_by == 0 then return end
  local tool = sub(key, 1, 3)
  if counted then open_counter(tool) end
  move(calls_by, cost_by, this_turn, counted)
  if counted then close_counter(ttl) end
end
