-- What one engine tells another about a session after the two were apart (a Redis that was away, and the engine that
-- stood in for it). Stands between limits.lua and the text of leave.lua and merge.lua; the other scripts go without.
--
-- The account that leave gives and merge takes it over. What is counted comes twice, now and as it was told last:
--   1-4 turn   5-12 calls   13-24 cost   25-32 calls of the turn   33-44 cost of the turn (now, before)
--   45 no progress   46 1: stuck   47 1: spoken   48 step   49-52 step label   53-56 s since the turn began
--   then, each behind its length in 4 bytes: calls that are new or came to something (22 bytes each, as in session.lua),
--   reservations (admission 4, ms left 4), chains (as in session.lua, with the calls they grew by), the goal, a list of
--   facts (name, JSON), a list of names of tools (hash, name), the journal, ids, a list of counts (tool, 56 bytes: the
--   count of limits.lua twice, its last 4 bytes s since then), calls with a pace (key 9, ms since 6).
-- In the hash of KEYS[3] "b" is what was told last: turn 4, calls 4, cost 6, calls of the turn 4, cost of the turn 6,
-- chains behind their length, calls; "c"+tool a count as it was told. "m" are the numbers of merges, 8 bytes each.

-- Whether `list`, of entries of `size` bytes, holds `entry` at their beginning, or in a later `column`.
local function holds(list, entry, size, column)
  local at = find(list, entry, 1, true)
  while at do
    if at % size == (column or 1) then return true end
    at = find(list, entry, at + 1, true)
  end
  return false
end

local leave, merge

-- Chains that calls over there ended, as they are told of one given up: retries, name, ext.
local ended_well = ""

-- ---- leaving --------------------------------------------------------------

do -- a chunk may have two hundred names
local told_turn, told_calls, told_cost, told_calls_turn, told_cost_turn, told_chains, told_window

local function read_told()
  local told = call("HGET", KEYS[3], "b")
  told_turn, told_calls, told_cost, told_calls_turn, told_cost_turn, told_chains, told_window = turn, 0, 0, 0, 0, "", ""
  if not told then return end
  told_turn, told_calls, told_cost = u32(told, 1), u32(told, 5), u48(told, 9)
  if told_turn == turn then told_calls_turn, told_cost_turn = u32(told, 15), u48(told, 19) end
  local length = u32(told, 25)
  told_chains, told_window = sub(told, 29, 28 + length), sub(told, 29 + length)
end

local function news_of_calls()
  local news = ""
  for at = base + 1, #session, RECORD do
    local record = sub(session, at, at + RECORD - 1)
    if not holds(told_window, record, RECORD) then news = news .. record end
  end
  return news
end

-- Whether a call of this tool ran and so ended its chain.
local function ran(calls_told, tool)
  for at = 1, #calls_told, RECORD do
    local kind = byte(calls_told, at + 15) % 32
    if kind >= OK and kind <= MISMATCH and sub(calls_told, at, at + 2) == tool then return true end
  end
  return false
end

-- How often a tool's chain had been told, and whether as ended.
local function told_chain(tool)
  local at = 1
  while at <= #told_chains do
    local count, ended, _, name = byte(told_chains, at + 3, at + 6)
    if sub(told_chains, at, at + 2) == tool then return count, ended end
    at = at + 8 + name + byte(told_chains, at + 7 + name)
  end
  return 0, 0
end

local function news_of_chains(calls_told)
  local news, at = "", 1
  while at <= #chains do
    local count, ended, in_step, name = byte(chains, at + 3, at + 6)
    local following = at + 8 + name + byte(chains, at + 7 + name)
    local tool = sub(chains, at, at + 2)
    local before, was_ended = told_chain(tool)
    if before > count or ran(calls_told, tool) then before, was_ended = 0, 0 end
    if count > before or ended ~= was_ended then
      news = news .. tool .. char(count - before, ended, in_step) .. sub(chains, at + 6, following - 1)
    end
    at = following
  end
  return news
end

-- Of the calls that are told now. What was told before is the other engine's to wait for, and may be settled there.
local function times_left(calls_told)
  local left = ""
  for at = 1, #reservations, RESERVATION do
    local admission, ms = sub(reservations, at, at + 3), time_left(at)
    if ms < 0 then ms = 0 end
    if holds(calls_told, admission, RECORD, 19) then left = left .. admission .. p32(ms) end
  end
  return left
end

local function ages_of_paced(paced)
  local ages = ""
  for at = 1, #paced, PACED do
    local ms = now - u48(paced, at + 9)
    if ms < 0 then ms = 0 end
    ages = ages .. sub(paced, at, at + 8) .. p48(ms)
  end
  return ages
end

local NO_COUNT = rep("\0", 28)

-- Lists of the hash: facts, names, counts, calls with a pace. What another engine knows from now on is let go of.
local function leave_hash(ttl)
  local kept, facts, names, counts, paced = call("HGETALL", KEYS[3]), "", "", "", ""
  local fields, values, n, before = {}, {}, 0, {}
  for i = 1, #kept, 2 do
    if byte(kept[i]) == 99 then before[sub(kept[i], 2)] = kept[i + 1] end
  end
  for i = 1, #kept, 2 do
    local field, value = kept[i], kept[i + 1]
    local sort, name = byte(field), sub(field, 2)
    if sort == 102 then
      facts = facts .. part(name) .. part(value)
    elseif sort == 108 or sort == 112 or sort == 116 or sort == 109 then
      n = n + 1
      fields[n], values[n] = field, value
    end
    if sort == 116 then names = names .. part(name) .. part(value) end
    if sort == 112 then paced = ages_of_paced(value) end
    if sort == 108 then
      local now_is = sub(value, 1, 24) .. p32(up_to(moved(second, -u32(value, 25)), 4294967295))
      counts = counts .. part(name) .. part(now_is .. (before[name] or NO_COUNT))
      n = n + 1
      fields[n], values[n] = "c" .. name, value
    end
  end
  call("DEL", KEYS[3])
  for i = 1, n do call("HSET", KEYS[3], fields[i], values[i]) end
  call("HSET", KEYS[3], "b", p32(turn) .. p32(calls) .. sub(seldom, 18, 23) .. p32(calls_turn) .. sub(seldom, 12, 17)
    .. part(chains) .. sub(session, base + 1))
  call("EXPIRE", KEYS[3], ttl)
  return facts, names, counts, paced
end

function leave(most, ttl)
  expire_reservations()
  read_told()
  local stuck = 0
  if has(STUCK_ONCE) then stuck = 1 end
  local told = p32(turn) .. p32(calls) .. p32(told_calls) .. sub(seldom, 18, 23) .. p48(told_cost) .. p32(calls_turn)
    .. p32(told_calls_turn) .. sub(seldom, 12, 17) .. p48(told_cost_turn) .. char(idle, stuck, spoken, step)
    .. sub(seldom, 8, 11) .. p32(moved(second, -u32(seldom, 24)))
  local news, goal = news_of_calls(), ""
  if has(GOAL) then goal = call("HGET", KEYS[3], "g") or "" end
  local grown, left = news_of_chains(news), times_left(news)
  local facts, names, counts, paced = leave_hash(ttl)
  told = told .. part(news) .. part(left) .. part(grown) .. part(goal) .. part(facts) .. part(names)
    .. part(read_journal() .. journal) .. part(call("GET", KEYS[4]) or "") .. part(counts) .. part(paced)
  call("DEL", KEYS[2], KEYS[4])
  journal, journal_at = "", 0
  if has(GOAL) then flags = flags - GOAL end
  set_ids(2)
  close(most, ttl)
  return told
end
end

-- ---- merging --------------------------------------------------------------

do
local MERGES, TAKEN_BACK, ACCOUNT = 32, 14, 56
local BOUNDARY = "\0\0\0\0\0\0\0\0\0" .. NO_RESULT .. char(UNKNOWN + 32)

-- A call that was let run and that the window has lost since; its reservation is still there to tell. In which turn it
-- was is not known any more.
local function take_back_lost(admission, tool, cost, counted, ttl)
  local before = #reservations
  release(admission)
  if #reservations == before then return end
  if counted then open_counter(tool) end
  move(-1, -cost, false, counted)
  if counted then close_counter(ttl) end
end

-- What was admitted in an answer that nobody heard, as if it had never been. What another daemon has settled meanwhile
-- stays, and so does word of a call that came to nothing here: the account that follows counts both.
local function take_back(list, ttl)
  for at = 1, #list, TAKEN_BACK do
    local admission, tool, limited = sub(list, at, at + 3), sub(list, at + 4, at + 6), byte(list, at + 13)
    local record, cost, counted = seek(admission, 19), u48(list, at + 7), limited % 2 == 1
    if record then
      local class, in_turn = byte(session, record + 15, record + 16)
      local kind = class % 32
      local never_came = kind == UNKNOWN and class < 64
      local settled = kind >= OK and kind <= TRANSIENT and kind ~= UNKNOWN
      if kind <= TRANSIENT and not never_came then
        if counted then open_counter(tool) end
        move(-1, -cost, in_turn == turn % 256, counted)
        if counted then close_counter(ttl) end
        if limited >= 2 and not settled then set_paced(sub(session, record, record + 8), false, ttl) end
        release(admission)
      elseif kind == INVALID and in_turn == turn % 256 then
        find_chain(tool)
        if chain_at then
          local rest = sub(chains, chain_at + 5, chain_next - 1)
          local count = chain_count - 1
          drop_chain()
          if count > 0 then chains = chains .. tool .. char(count, 0) .. rest end
        end
      end
      if not settled and not never_came then session = sub(session, 1, record - 1) .. sub(session, record + RECORD) end
    else
      take_back_lost(admission, tool, cost, counted, ttl)
    end
  end
end

local account, account_at

local function next_part()
  local length = u32(account, account_at)
  local text = sub(account, account_at + 4, account_at + 3 + length)
  account_at = account_at + 4 + length
  return text
end

-- A list of pairs, as a table.
local function pairs_of(list)
  local out, n, at = {}, 0, 1
  while at <= #list do
    local length = u32(list, at)
    n = n + 1
    out[n] = sub(list, at + 4, at + 3 + length)
    at = at + 4 + length
  end
  return out
end

local function take_sums()
  local theirs = u32(account, 1)
  if theirs > turn then
    begin_turn(theirs)
    seldom = sub(seldom, 1, 23) .. p32(moved(second, -u32(account, 53))) .. sub(seldom, 28)
  end
  calls = up_to(moved(calls, u32(account, 5) - u32(account, 9)), 4294967295)
  calls_turn = up_to(moved(calls_turn, u32(account, 25) - u32(account, 29)), 65535)
  seldom = sub(seldom, 1, 11) .. p48(moved(u48(seldom, 12), u48(account, 33) - u48(account, 39)))
    .. p48(moved(u48(seldom, 18), u48(account, 13) - u48(account, 19))) .. sub(seldom, 24)
end

-- Calls that are not here come behind those that are, and then a boundary, of a step like no other, at which every run
-- of calls ends: nobody knows in which order the engines' calls were made. Returns by how much their steps have moved.
local function take_calls(news, left)
  local turn_by, shift, more = turn - u32(account, 1), 0, ""
  for at = 1, #news, RECORD do
    local admission, kind = sub(news, at + 18, at + 21), byte(news, at + 15) % 32
    local known = seek(admission, 19)
    if known then
      local mine = byte(session, known + 15) % 32
      if mine == PENDING or (mine == UNKNOWN and kind ~= PENDING) then
        session = sub(session, 1, known + 8) .. sub(news, at + 9, at + 15) .. sub(session, known + 16)
        if kind ~= PENDING then release(admission) end
      end
    else
      local in_turn, in_step = byte(news, at + 16, at + 17)
      if more == "" then shift = step + 1 - in_step end
      more = more .. sub(news, at, at + 15) .. char((in_turn + turn_by) % 256, (in_step + shift) % 256) .. admission
    end
  end
  if more == "" then return 0 end
  for at = 1, #left, 8 do
    if not seek(sub(left, at, at + 3), 19) then reserve(sub(left, at, at + 3), now + u32(left, at + 4)) end
  end
  idle, spoken, step = byte(account, 45), byte(account, 47), (byte(account, 48) + shift) % 256
  session = session .. more .. BOUNDARY .. char(turn % 256, (step + 128) % 256) .. NO_LABEL
  if #session - base > WINDOW * RECORD then base = #session - WINDOW * RECORD end
  seldom = sub(seldom, 1, 7) .. sub(account, 49, 52) .. sub(seldom, 12)
  return shift
end

local function take_chains(news, grown, shift)
  for at = 1, #news, RECORD do
    local kind = byte(news, at + 15) % 32
    if kind >= OK and kind <= MISMATCH then
      find_chain(sub(news, at, at + 2))
      if chain_at then
        if chain_ended == 0 then ended_well = ended_well .. char(chain_count) .. sub(chains, chain_at + 6, chain_next - 1) end
        drop_chain()
      end
    end
  end
  local at = 1
  while at <= #grown do
    local count, ended, in_step, name = byte(grown, at + 3, at + 6)
    local following = at + 8 + name + byte(grown, at + 7 + name)
    find_chain(sub(grown, at, at + 2))
    if chain_ended == 1 then ended = 1 end
    count = up_to(count + chain_count, 254)
    if chain_at then drop_chain() end
    give_up_chains(CHAINS_BYTES)
    chains = chains .. sub(grown, at, at + 2) .. char(count, ended, (in_step + shift) % 256)
      .. sub(grown, at + 6, following - 1)
    at = following
  end
end

local function take_names(list, ttl)
  local names = pairs_of(list)
  for i = 1, #names, 2 do
    if call("HLEN", KEYS[3]) < NAMES_MAX then keep("t" .. names[i], names[i + 1], ttl) end
  end
end

local function take_counts(list, ttl)
  local counts, theirs = pairs_of(list), u32(account, 1)
  for i = 1, #counts, 2 do
    local c = counts[i + 1]
    local calls_by, cost_by, before, before_cost = 0, 0, 0, 0
    if u32(c, 1) == theirs then
      if u32(c, 29) == theirs then before, before_cost = u32(c, 33), u48(c, 41) end
      calls_by, cost_by = u32(c, 5) - before, u48(c, 13) - before_cost
    end
    open_counter(counts[i])
    if tool_calls_turn == 0 then tool_began = moved(second, -u32(c, 25)) end
    tool_calls_turn = up_to(moved(tool_calls_turn, calls_by), 4294967295)
    tool_cost_turn = moved(tool_cost_turn, cost_by)
    tool_calls = up_to(moved(tool_calls, u32(c, 9) - u32(c, 37)), 4294967295)
    tool_cost = moved(tool_cost, u48(c, 19) - u48(c, 47))
    close_counter(ttl)
  end
end

local function take_paced(ages, ttl)
  if ages == "" then return end
  local paced = call("HGET", KEYS[3], "p") or ""
  for at = 1, #ages, PACED do
    local key, ran_at = sub(ages, at, at + 8), moved(now, -u48(ages, at + 9))
    local mine = seek_paced(paced, key)
    if mine and u48(paced, mine + 9) > ran_at then ran_at = u48(paced, mine + 9) end
    if mine then paced = sub(paced, 1, mine - 1) .. sub(paced, mine + PACED) end
    paced = paced .. key .. p48(ran_at)
  end
  if #paced > PACED_MAX * PACED then paced = sub(paced, #paced - PACED_MAX * PACED + 1) end
  keep("p", paced, ttl)
end

local function take_over(told, ttl)
  if told == "" then return end
  account, account_at = told, ACCOUNT + 1
  local stuck = byte(account, 46)
  take_sums()
  local news, left, grown, goal, facts = next_part(), next_part(), next_part(), next_part(), next_part()
  take_chains(news, grown, take_calls(news, left))
  if stuck == 1 then raise(STUCK_ONCE) end
  if goal ~= "" then
    keep("g", goal, ttl)
    raise(GOAL)
  end
  if facts ~= "" then merge_facts(pairs_of(facts), 1, ttl) end
  take_names(next_part(), ttl)
  journal = journal .. next_part()
  local ids = next_part()
  if ids ~= "" then add_ids(ids, ttl) end
  if #ids >= IDS_MAX * 8 then set_ids(2) end
  take_counts(next_part(), ttl)
  take_paced(next_part(), ttl)
end

-- False where this merge was made before.
function merge(number, back, told, most, ttl)
  local made = call("HGET", KEYS[3], "m") or ""
  ended_well = ""
  if holds(made, number, 8) then return false end
  take_back(back, ttl)
  take_over(told, ttl)
  made = made .. number
  if #made > MERGES * 8 then made = sub(made, 9) end
  keep("m", made, ttl)
  close(most, ttl)
  return true
end
end
