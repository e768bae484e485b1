-- settle: what became of a call that was admitted.
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 turn   5-8 step label (both unused where the call is known)   9-12 admission   13-15 tool   16-21 arguments
--          22-27 result   28 class, as in session.lua, + 32 if the tool reads   29 reads   30 destructive   31 repair
--          32 journal label
--          33-38 cost   39-42 ttl, s   43-46 entries of the journal   47 1: advise only (anonymous)
--          48 1: the tool has limits; + 2: of 33 to 38 or 50 to 55 something is told; + 4: it was not even begun, and
--          uses nothing up   49 1: it has a pace
--          50-55 the cost that admit took for it
-- ARGV[2]  the tool's name   ARGV[3] ext   ARGV[4] ids it gave, 8 bytes each   ARGV[5…] facts: name, JSON, name, …;
--          the last ones that are empty are left out
--
-- Returns  1 says   2 1: unchanged   3 repeats   4 no progress   5 attempt   6 attempts left   7 transients
--          8 chain outcome   9 retries   10 facts that found no room
--
-- At most once: what is settled already is not counted again. What was never admitted, or so long ago that the window
-- has lost it, is counted as unknown.

local a = ARGV[1]
local admission, tool = sub(a, 9, 12), sub(a, 13, 15)
local class, reads, destructive, repair, label_told, _, _, _, _, _, _, t1, t2, t3, t4, m1, m2, m3, m4, anonymous,
  more = byte(a, 28, 48)
local ttl, most = ((t1 * 256 + t2) * 256 + t3) * 256 + t4, ((m1 * 256 + m2) * 256 + m3) * 256 + m4
local kind, advise = class % 32, anonymous == 1

-- Most calls ran, and nothing in the window is like them: then that is all there is to know, but for putting sums right.
local at, in_turn, in_step = open_at(admission, kind < UNKNOWN and more < 2)
local alone, settled, taken, denied, key = at, false, true, false, nil
if not alone then
  at, key = seek(admission, 19), sub(a, 13, 21)
  if not at then
    at = add_unknown(sub(a, 5, 8), admission, key, reads, ARGV[2], ttl)
    kind, label_told, taken = UNKNOWN, LABEL_UNKNOWN, false
  else
    local was = byte(session, at + 15)
    key = sub(session, at, at + 8) -- a report may spell the arguments as they were before they were mended
    denied = was % 32 == DENIED
    taken = not denied
    settled = was % 32 ~= PENDING and was % 32 ~= DENIED and (was % 32 ~= UNKNOWN or was < 64)
  end
  in_turn, in_step = byte(session, at + 16, at + 17)
end

local came = sub(a, 22, 28)
local changed, unchanged = 0, 0
if alone then
  look_away()
else
  local result = sub(came, 1, 6)
  if kind >= UNKNOWN and kind <= RELEASED then
    result = NO_RESULT
  elseif kind > RELEASED then
    result = REFUSED_RESULT .. char(kind)
  end
  local ref = result
  if ref == NO_RESULT then ref = nil end
  look(key, at, in_turn, in_step, destructive == 1, ref)
  if kind >= OK and kind <= TOOL_ERROR and held > 0 then
    local last = last_result(key, at, in_turn, in_step)
    if last == result then unchanged = 1 elseif last and kind <= PARTIAL then changed = 1 end
  end
  came = result .. char(kind + reads * 32 + changed * 64)
end

local says, outcome, retries, attempt, left, dropped = RUN, 0, 0, 1, repair, 0

if settled then
  if kind == INVALID then
    find_chain(tool)
    says, attempt, left = REPAIR, chain_count, up_to(repair, 254) + 1 - chain_count
    if chain_ended == 1 or left < 0 then says, left = REFUSE, 0 end
  end
else
  -- The repair chain: what ran ends it, if its feedback was out before this call was admitted.
  if kind == INVALID then
    says, outcome, attempt, left = extend_chain(tool, ARGV[2], ARGV[3] or "", in_step, repair, again, advise)
    if outcome ~= 0 then retries = attempt - 1 end
  elseif kind >= OK and kind <= MISMATCH then
    outcome = NO_RETRY
    if chains ~= "" then
      find_chain(tool)
      if chain_at and heard(in_step) then
        if chain_ended == 0 then outcome, retries = SUCCESS, chain_count end
        drop_chain()
      end
    end
  elseif kind == FABRICATED then
    outcome, retries = end_chain_fabricated(tool, in_step)
  end
  release(admission)
  if in_step == step then spoken = 1 end
  end_silence()
  if kind == PARTIAL or (kind == OK and unchanged == 0) then
    idle = 0
  elseif kind ~= TRANSIENT and kind ~= RELEASED and kind ~= UNKNOWN then
    fare_badly()
  end
  if kind >= RELEASED or denied or more >= 2 then
    local counts_as = kind
    if more >= 4 then counts_as = RELEASED end
    settle_sums(a, key, counts_as, taken, denied, in_turn == turn % 256, ttl)
  end
  if says ~= REPAIR then
    local code = 0
    if says == REFUSE then code = RETRY_BUDGET end
    note(tool, label_told, code, turn - (turn % 256 + 256 - in_turn) % 256, in_step, retries)
  end
  if ARGV[4] and ARGV[4] ~= "" then add_ids(ARGV[4], ttl) end
  if #ARGV > 4 then dropped = merge_facts(ARGV, 5, ttl) end
  close_at(at, came, most, ttl)
end
if kind == TRANSIENT then transients = up_to(transients + 1, 255) end
return char(says, unchanged, run + 1, idle, attempt, left, transients, outcome, retries, dropped)
