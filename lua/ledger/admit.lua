-- admit: a call asks to be let run. Counts it, whatever came of it so far, and says what the session allows.
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 turn (0: not told)   5-8 step label (zeros: none)   9-12 admission   13-15 tool   16-21 arguments
--          22 so far: 0 valid, 1 invalid, 2 fabricated id, 3 refused   23 1: advise only (anonymous)   24 reads
--          25 repair   26 1: a step label is told   27-28 wants facts, journal   29-32 reservation, ms   33-36 ttl, s
--          37 limits: 1 the tool's, 2 the session's; + 4: of 53 to 67 something is told; + 8: one of 41 to 46 is so low
--          that a call like no other may not pass. What follows is read of few calls:
--          38-40 writes, destructive, polls   41 same_call   42 transient   43 repeats   44 across_turns   45 poll_max
--          46 halt   47 anonymous_repeats (255 in a limit: none)   48 journal label   49-52 entries of the journal
--          53-56 a silence of so many seconds begins a turn, where none is told (0: none does)   57 1: it costs something
--          58-63 what   64-67 it may be asked every so many ms (0: at any pace)   then the tool's limits, then the session's,
--          24 bytes each, as limits.lua reads them
-- ARGV[2]  the tool's name   ARGV[3] ext, for its chain's log line   ARGV[4] candidate ids, 8 bytes each, at most 64;
--          the last ones that are empty are left out
--
-- Returns  1-4 turn   5-8 step label   9 says   10 code   11 would   12 attempt   13 attempts left   14 repeats
--          15 no progress   16 spent   17 transients   18 chain outcome   19 retries   20 1: ids complete
--          That is all where nothing more was asked for or is to be said. Else 8 bytes of unseen ids, one bit an id, lowest
--          first, then, each behind its length in 4 bytes: chains given up (retries, name, ext), the goal, lists of such
--          strings for facts (name, JSON) and tools (hash, name), the journal, open chains as session.lua packs them;
--          and where a limit or the pace speaks against it: whose limit (1 the tool's, 2 the session's), 6 bytes of what
--          is used up (calls, s, millionths of cost) or of the ms to wait.
--
-- At most once: an admission that is there already changes nothing and is answered as it was.

local VALID, IS_INVALID, IS_FABRICATED, IS_REFUSED = 0, 1, 2, 3

local a = ARGV[1]
local admission, key, tool = sub(a, 9, 12), sub(a, 13, 21), sub(a, 13, 15)
local so_far, advise, reads, repair, labelled, facts_too, journal_too, r1, r2, r3, r4, t1, t2, t3, t4, more = byte(a, 22, 37)
local reservation, ttl = ((r1 * 256 + r2) * 256 + r3) * 256 + r4, ((t1 * 256 + t2) * 256 + t3) * 256 + t4
local silence, every = 0, 0
if more % 8 >= 4 then silence, every = u32(a, 53), u32(a, 64) end

open()
local known = find(session, admission, 1, true) and seek(admission, 19)
local place
if known then
  place = sub(seldom, 4, 11)
else
  if reservations ~= "" then
    expire_reservations()
    forget_oldest()
  end
  place = begin(a, labelled, silence)
end
local low, current = turn % 256, step
if known then low, current = byte(session, known + 16, known + 17) end

-- On a tie between budget and loop, loop is what is said. Most calls are like no other of the window, and no limit is so
-- low that it had anything against those.
local code, worst, times, looping = 0, REFUSE, 1, false
local alone = not find(session, key, 1, true)
if alone and more == 0 then
  look_away()
else
  local writes, destructive, poll, same_call, transient, repeats, across_turns, poll_max, halt = byte(a, 38, 46)
  look(key, known, low, current, destructive == 1, nil)
  code, worst, times = find_loop(key, known, current, poll, repeats, halt, across_turns, poll_max)
  looping = code ~= 0
  if so_far == VALID and not looping then
    code = over_budget(writes + destructive, poll, same_call, transient, poll_max)
    code, worst = find_against(a, key, every, halt, code)
  end
end
local against = code

local says, would = RUN, 0
if so_far == IS_INVALID then says = REPAIR elseif so_far ~= VALID then says = REFUSE end

-- The repair chain. Asking again what was invalid just now is one more of its attempts, also where a loop is said.
local outcome, retries, attempt, left = 0, 0, 1, repair
if not known and (so_far == IS_INVALID or (looping and so_far == VALID and last_kind == INVALID)) then
  local word
  word, outcome, attempt, left = extend_chain(tool, ARGV[2], ARGV[3] or "", current, repair, again or so_far == VALID,
    advise == 1)
  if outcome ~= 0 then retries = attempt - 1 end
  if so_far == IS_INVALID and not looping and (word == REFUSE or (left == 0 and advise == 1)) then code = RETRY_BUDGET end
elseif chains ~= "" then
  local ended
  attempt, left, ended = attempts(tool, repair, so_far == IS_INVALID)
  if so_far == IS_INVALID and ended and not looping then code = RETRY_BUDGET end
  if so_far == IS_FABRICATED and not known then outcome, retries = end_chain_fabricated(tool, current) end
end

if code ~= 0 then
  says = worst
  if advise == 1 then
    would = code
    if code == LOOP and times >= byte(a, 47) then
      says = REFUSE
    else
      code = 0
      if so_far == VALID then says = RUN elseif so_far == IS_INVALID then says = REPAIR else says = REFUSE end
    end
  end
end

if known then
  local kind = byte(session, known + 15) % 32
  if kind == DENIED then
    says, code = byte(session, known + 13, known + 14)
  elseif kind <= RELEASED then
    says, code = RUN, 0
  end
else
  local kind, result = PENDING, NO_RESULT
  if code ~= 0 and (looping or so_far == VALID) then
    kind, result = DENIED, denied_result(key, says, code)
  elseif so_far ~= VALID then
    kind = INVALID + so_far - IS_INVALID
    result = REFUSED_RESULT .. char(kind)
  end
  remember_name(tool, ARGV[2], ttl)
  if kind == PENDING then
    reserve(admission, now + reservation, alone)
    book(a, key, more, ttl)
  else
    if code ~= TOO_SOON then fare_badly() end
    spoken = 1
    local label_told = byte(a, 48)
    if kind == DENIED then label_told = denied_label(code) end
    if says ~= REPAIR then note(tool, label_told, code, turn, current, retries) end
  end
  local most = 0
  if journal ~= "" then most = u32(a, 49) end
  close_with(most, ttl, key, result, kind + reads * 32, current, admission)
end

-- Wanted parts are read after the call was counted; the journal knows it only once it is settled.
local complete, rest = reply_rest(ARGV[4] or "", facts_too, journal_too, against >= CALLS_PER_TURN)
local reply = place .. char(says, code, would, attempt, left, run, idle, spent + 1, transients, outcome, retries, complete)
if rest == "" then return reply end
return reply .. rest .. reply_used(against, code, would)
