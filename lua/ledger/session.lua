-- The session that every ledger script works on: one packed string, read by `open`, written back by `close`.
-- The engines put this text before each script's own, so that both know one layout and one set of rules.
--
-- KEYS, the same four for every script, in one hash slot:
--   KEYS[1] s  the session: header, reservations, repair chains, window of calls
--   KEYS[2] h  the journal: one entry a logical call; read by people and by policies that ask
--   KEYS[3] d  a hash: "g" the turn's goal, "t"+tool names, "f"+name facts as JSON, "l"+tool and "p": see limits.lua;
--              "b", "c"+tool and "m": see away.lua
--   KEYS[4] i  seen ids, 8 bytes each, oldest first
--
-- Header (numbers are big-endian):
--   1 1: feedback was sent in this step; + 2 x the calls of the window that stand before the oldest
--   2 step   3 calls in a row without progress   4 reservations   5-6 bytes of chains   7 room for both, in dozens of bytes
--   8-9 entry of the journal that is written next
--   10 ids: 0 none seen, 1 all kept, 2 some forgotten; + 4: a goal was told; + 8: calls brought nothing new STUCK times in
--   a row in this turn
--   11-12 calls of the turn   13-15 calls, then what seldom changes, which is handed on as it is:
--   16-18 low bytes of the second of the last EXPIRE   19-22 turn   23-26 step label   27-32 cost of the turn   33-38 cost
--   39-42 second the turn began   43-46 second of the last call, where a silence begins a turn; else 0
-- Costs are in millionths. Then reservations, chains and what is left of their room, then the window.
--
-- A new string as long as a session costs more than all the rules: each byte of it is copied and hashed. So what has
-- become full is written in place from then on, window and journal: the next call takes the oldest one's. Both go back
-- into order where somebody wants them in order (straighten, read_journal). For the same reason most calls are settled
-- without a look at the window: their reservation says where they stand in it, and that nothing there is like them.
--
-- Reservation (12 bytes): admission 4, deadline in ms 5 (its low bytes), then of its call: place in the window + 32 if no
-- call of the same tool and arguments was there when it came (0: not known), turn 1, step 1.
-- Chain: tool 3, invalid calls 1, ended 1, step of the last one 1, name and ext (each a length byte and its bytes).
-- Call (22 bytes, at most WINDOW):
--   1-3 tool   4-9 arguments   10-15 result   16 class + 32 if the tool reads + 64 if the result had
--   changed (of an unknown one: if it may still be settled)
--   17 turn, its last byte: of a call that ends more than 255 turns after its own the history tells a wrong one
--   18 step   19-22 admission
--   The result of a call that ran is a hash; of one that was refused for what it is, the same for its kind; of one
--   that was denied, 0 0 0, how often in a row if it came too soon, what was said, code.
-- Journal entry (13 bytes): second 4, tool 3, label 1, code 1, turn 2, step 1, retries 1.
--
-- Only what Redis' Lua and LuaJIT agree on is used here; tests/spec/ledger/ledger_lint_spec.lua holds all of it to that.

local byte, char, find, rep, sub = string.byte, string.char, string.find, string.rep, string.sub
local call = redis.call

local WINDOW, RECORD, ENTRY = 32, 22, 13
local FULL = WINDOW * RECORD
local HEADER, RESERVATION = 46, 12
local ROOM = RESERVATION -- for reservations and chains, at first
local ALONE = 32
local IDS_MAX, NAMES_MAX, CHAINS_BYTES = 512, 256, 2048
local UNLIMITED = 255

-- Classes of a call. Up to TRANSIENT it was let run, up to TOOL_ERROR it ran (or runs); REFUSED is the gate's word
-- (unknown tool, forbidden, a policy), DENIED the ledger's own.
local PENDING, OK, PARTIAL, GARBAGE, MISMATCH, TOOL_ERROR, UNKNOWN, TRANSIENT = 0, 1, 2, 3, 4, 5, 6, 7
local RELEASED, INVALID, FABRICATED, REFUSED, DENIED = 8, 9, 10, 11, 12

-- Nothing is known of a result: equals anything.
local NO_RESULT = "\0\0\0\0\0\0"
local NO_LABEL = "\0\0\0\0"
local REFUSED_RESULT = "\0\0\0\1\0" -- and the class

local RUN, REPAIR, REFUSE, HALT = 0, 1, 2, 3

-- Codes of a refusal; ledger/words.c has the same list in words.
local RETRY_BUDGET, SAME_CALL, LOOP, CYCLE, TRANSIENT_BUDGET, DUPLICATE, BROKEN, POLL_BUDGET = 1, 2, 3, 4, 5, 6, 7, 8
local CALLS_PER_TURN = 9 -- up to 13: see limits.lua
local GAVE_UP_CODE, TOO_SOON = 14, 15

-- How a repair chain ended.
local NO_RETRY, SUCCESS, REDUNDANT, EXHAUSTED, FABRICATED_ON_RETRY = 1, 2, 3, 4, 6

-- Journal labels that the scripts choose themselves; for what is denied, see denied_label.
local LABEL_UNKNOWN, LABEL_INVALID = 0, 7

-- Flags of the header, beside what is known of ids.
local GOAL, STUCK_ONCE = 4, 8

local now, second
local fresh, flags, spoken, turn, step, idle
local calls_turn, calls
local seldom, reservations, chains, session, base, journal
local turned, room, journal_at, renewed, stored, stored_base, partly -- see read_head
local gave_up

local function u32(s, at)
  local a, b, c, d = byte(s, at, at + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

local function p32(n)
  local d = n % 256
  n = (n - d) / 256
  local c = n % 256
  n = (n - c) / 256
  local b = n % 256
  return char((n - b) / 256 % 256, b, c, d)
end

local function u48(s, at)
  local a, b, c, d, e, f = byte(s, at, at + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local function p48(n)
  local f = n % 256
  n = (n - f) / 256
  local e = n % 256
  n = (n - e) / 256
  local d = n % 256
  n = (n - d) / 256
  local c = n % 256
  n = (n - c) / 256
  local b = n % 256
  return char((n - b) / 256 % 256, b, c, d, e, f)
end

local function up_to(n, most)
  if n > most then return most end
  return n
end

-- The first byte of a call that has `needle` in its column, behind `from`, or any; nil where none has. Calls are read
-- where they stand in the session's string, behind `base`.
local function seek(needle, column, from)
  local at = find(session, needle, (from or base) + 1, true)
  while at do
    if (at - base - column) % RECORD == 0 then return at - column + 1 end
    at = find(session, needle, at + 1, true)
  end
end

-- How many bytes of calls are older than the one at `at`; nil: than one to come.
local function older(at)
  if at then return (at - base - 1 - turned) % (#session - base) end
  return #session - base
end

-- The window in order, oldest first. What was found in it stands elsewhere afterwards.
local function straighten()
  if turned == 0 then return end
  session = sub(session, 1, base) .. sub(session, base + turned + 1) .. sub(session, base + 1, base + turned)
  turned = 0
end

local note

do -- a chunk may have two hundred names
local noted, noted_packed -- many calls are settled in one second

-- One journal entry for one logical call.
function note(tool, what, code, in_turn, in_step, retries)
  if second ~= noted then noted, noted_packed = second, p32(second) end
  local low = in_turn % 256
  journal = journal .. noted_packed .. tool
    .. char(what, code, (in_turn - low) / 256 % 256, low, in_step, retries) -- a chain counts no further than 254
end
end

-- Whether the header has a flag, and the same with it.
local function has(flag)
  return flags % (2 * flag) >= flag
end

local function raise(flag)
  if not has(flag) then flags = flags + flag end
end

-- What is known of ids: 0 none seen, 1 all kept, 2 some forgotten.
local function set_ids(state)
  flags = flags - flags % 4 + state
end

-- ---- opening and closing --------------------------------------------------

-- Gives up the oldest chains until at most `most` bytes are left; at a turn's end, all. Each that was still open is
-- told once, with the name and ext it was called by.
local function give_up_chains(most)
  while #chains > most do
    local count, ended, in_step, name = byte(chains, 4, 7)
    local following = 9 + name + byte(chains, 8 + name)
    if ended == 0 then
      gave_up = gave_up .. char(count - 1) .. sub(chains, 7, following - 1)
      note(sub(chains, 1, 3), LABEL_INVALID, GAVE_UP_CODE, turn, in_step, count - 1)
    end
    chains = sub(chains, following)
  end
end

local begin_turn

do
-- Turn numbers are kept as one byte in the window: what would be mistaken for a call of this turn is let go.
local function forget_namesakes()
  local low = turn % 256
  if not seek(char(low), 17) then return end
  straighten()
  for at = #session - RECORD + 1, base + 1, -RECORD do
    if byte(session, at + 16) == low then
      base = at + RECORD - 1
      return
    end
  end
end

function begin_turn(number)
  give_up_chains(0)
  turn = number
  calls_turn, flags, spoken = 0, flags % GOAL, 1
  if stored and room > ROOM then stored = nil end -- a good time to give back what the turn needed
  seldom = sub(seldom, 1, 3) .. p32(turn) .. NO_LABEL .. NO_RESULT .. sub(seldom, 18, 23) .. p32(second) .. sub(seldom, 28)
  forget_namesakes()
end
end

-- Calls of one model message are one step: those of one label, else those admitted before a sibling's feedback.
local function begin_step(told)
  local label = sub(seldom, 8, 11)
  if told == NO_LABEL then
    if spoken == 0 and label == NO_LABEL then return end
  elseif told == label then
    return
  end
  step, spoken = (step + 1) % 256, 0
  if told ~= label then seldom = sub(seldom, 1, 7) .. told .. sub(seldom, 12) end
end

-- Begins turn and step that a call is told to be of: the first 8 bytes of `a`, with a step label or without. Returns
-- what the session is at then, packed alike.
local function begin(a, labelled, silence)
  local place = sub(seldom, 4, 11)
  if silence == 0 and sub(a, 1, 8) == place then
    if spoken == 1 and labelled == 0 then step, spoken = (step + 1) % 256, 0 end
    return place
  end
  local told = u32(a, 1)
  if told == 0 and silence > 0 then
    local last = u32(seldom, 28)
    if last > 0 and second - last >= silence then told = turn + 1 end
  end
  if told > turn then begin_turn(told) end
  if silence > 0 then seldom = sub(seldom, 1, 27) .. p32(second) end
  begin_step(sub(a, 5, 8))
  return sub(seldom, 4, 11)
end

-- The first byte of a call's reservation; nil where it has none.
local function seek_reservation(admission)
  local at = find(reservations, admission, 1, true)
  while at do
    if at % RESERVATION == 1 then return at end
    at = find(reservations, admission, at + 1, true)
  end
end

local open, open_at, fetch

do
local HEAD_LAST = "105" -- of the bytes that most calls are settled by: the header and five reservations

local second_told -- as a server did it last: it is made a number once in a second only

-- What time it is: `second` and, in the server's words, what is left of it.
local function tell_second()
  local time = call("TIME")
  local told = time[1]
  if told ~= second_told then second_told, second = told, tonumber(told) end
  return time[2]
end

local function begin_session()
  fresh, flags, spoken, turn, step, idle, calls_turn, calls = true, 0, 1, 0, 0, 0, 0, 0
  renewed = second % 16777216
  seldom = sub(p32(renewed), 2) .. NO_LABEL .. NO_LABEL .. NO_RESULT .. NO_RESULT .. p32(second) .. NO_LABEL
  reservations, chains, session, base, turned, room, journal_at, stored = "", "", "", 0, 0, ROOM, 0, nil
end

-- Reads what stands before the window. Returns how long it is, without room that is free.
local function read_head()
  local said, held, b1, b2, dozens, j1, j2, n1, n2, c1, c2, c3, e1, e2, e3, t1, t2, t3, t4
  said, step, idle, held, b1, b2, dozens, j1, j2, flags, n1, n2, c1, c2, c3, e1, e2, e3, t1, t2, t3, t4 = byte(session, 1, 22)
  fresh, spoken = false, said % 2
  turned, journal_at, room = (said - said % 2) / 2 * RECORD, j1 * 256 + j2, dozens * 12
  calls_turn, calls = n1 * 256 + n2, (c1 * 256 + c2) * 256 + c3
  renewed, turn = (e1 * 256 + e2) * 256 + e3, ((t1 * 256 + t2) * 256 + t3) * 256 + t4
  base = HEADER + room
  seldom, reservations, chains = sub(session, 16, HEADER), "", ""
  local chains_at = HEADER + held * RESERVATION
  local behind = chains_at + b1 * 256 + b2
  if held > 0 then reservations = sub(session, HEADER + 1, chains_at) end
  if behind > chains_at then chains = sub(session, chains_at + 1, behind) end
  stored, stored_base = session, base
  return behind
end

function open()
  local us = tell_second() + 0 -- a third of the price of tonumber
  now = second * 1000 + (us - us % 1000) / 1000
  journal, gave_up, partly = "", "", false
  session = call("GET", KEYS[1])
  if session then read_head() else begin_session() end
end

-- Reads the window of a session of which only the head was read.
function fetch()
  if not partly then return end
  session, partly = call("GET", KEYS[1]), false
  stored = session
end

-- Opens a session to settle a call. Where it `may` do and nothing in the window is like that call, the window is not read:
-- then returns where the call stands in it, its turn and its step. Settling needs no more of the time than the second.
function open_at(admission, may)
  if not may then return open() end
  tell_second()
  journal, gave_up = "", ""
  session = call("GETRANGE", KEYS[1], "0", HEAD_LAST)
  partly = session ~= ""
  if not partly then return begin_session() end
  if read_head() > #session then
    fetch()
    read_head()
    return
  end
  local at = seek_reservation(admission)
  if at then
    local place, in_turn, in_step = byte(reservations, at + 9, at + 11)
    if place >= ALONE then return base + 1 + (place - ALONE) * RECORD, in_turn, in_step end
  end
  fetch()
end
end

local function set(key, value, new, ttl)
  if new then call("SET", key, value, "EX", ttl) else call("SET", key, value, "KEEPTTL") end
end

-- All entries of the journal that were written, oldest first.
local function read_journal()
  local whole, at = call("GET", KEYS[2]) or "", journal_at * ENTRY
  if at >= #whole then return whole end
  return sub(whole, at + 1) .. sub(whole, 1, at)
end

-- A name by which people know a tool, kept when it comes into the window.
local function remember_name(tool, name, ttl)
  if seek(tool, 1) then return end
  local held = call("HLEN", KEYS[3])
  if held >= NAMES_MAX then return end
  call("HSET", KEYS[3], "t" .. tool, name)
  if held == 0 then call("EXPIRE", KEYS[3], ttl) end
end

local close, close_with, close_at

do
local ROOM_MORE, ROOM_SPARE = 48, 96 -- by how much room grows, and how much of it may be unused

-- Numbers as text: a server prints one for many times the price of looking it up.
local DIGITS = {}

local function digits(n)
  local text = DIGITS[n]
  if not text then
    text = n .. ""
    DIGITS[n] = text
  end
  return text
end

-- Puts the journal in order, with `more` behind it, and keeps its last `most` entries.
local function order_journal(more, most, ttl)
  local whole = read_journal() .. more
  if #whole > most * ENTRY then whole = sub(whole, #whole - most * ENTRY + 1) end
  call("SET", KEYS[2], whole, "EX", ttl)
  journal_at = #whole / ENTRY
end

-- Adds to the journal. Once it has `most` entries, each takes the oldest one's place.
local function write_journal(most, ttl)
  local at, full = journal_at * ENTRY, most * ENTRY
  if at == full then at = 0 end
  local behind = at + #journal
  if behind > full then
    order_journal(journal, most, ttl)
    return
  end
  local length = call("SETRANGE", KEYS[2], digits(at), journal)
  journal_at = behind / ENTRY
  if length == #journal then call("EXPIRE", KEYS[2], ttl) end
  if length ~= full and length ~= behind then order_journal("", most, ttl) end -- `most` is another than it was
  if length == full and behind == full then order_journal("", most, ttl) end -- it takes no more memory than it needs
end

-- What stands before the window, without room that is free.
local function head()
  if calls > 16777215 then calls = 16777215 end
  local n2, c3, c23, b2, j2 = calls_turn % 256, calls % 256, calls % 65536, #chains % 256, journal_at % 256
  return char(spoken + turned / RECORD * 2, step, idle, #reservations / RESERVATION, (#chains - b2) / 256, b2, room / 12,
      (journal_at - j2) / 256, j2, flags, (calls_turn - n2) / 256, n2, (calls - c23) / 65536, (c23 - c3) / 256, c3)
    .. seldom .. reservations .. chains
end

-- Whether the window is as it was read, and what stands before it has room there, and not far too much.
local function keeps_place()
  local free = room - #reservations - #chains
  return session == stored and base == stored_base and free >= 0 and free <= ROOM_SPARE
end

-- Says anew where calls stand that nothing is like; of one that the window has lost, nothing.
local function place_reservations()
  for at = 1, #reservations, RESERVATION do
    if byte(reservations, at + 9) >= ALONE then
      local record, place = seek(sub(reservations, at, at + 3), 19), 0
      if record then place = ALONE + (record - base - 1) / RECORD end
      reservations = sub(reservations, 1, at + 8) .. char(place) .. sub(reservations, at + 10)
    end
  end
end

-- Writes all but the window, and that, too, unless it `stays`.
local function write(stays, most, ttl)
  -- The life of the keys is renewed now and then, not with every call.
  local renew = (second - renewed) % 16777216 * 32 > ttl
  if renew then seldom = sub(p32(second), 2) .. sub(seldom, 4) end
  if journal ~= "" and most > 0 then write_journal(most, ttl) end
  if stays then
    call("SETRANGE", KEYS[1], "0", head())
  else
    straighten()
    place_reservations()
    local needed = #reservations + #chains
    room = ROOM
    if needed > ROOM then room = needed + ROOM_MORE - 1 - (needed - ROOM - 1) % ROOM_MORE end
    set(KEYS[1], head() .. rep("\0", room - needed) .. sub(session, base + 1), fresh, ttl)
  end
  if renew then
    call("EXPIRE", KEYS[1], ttl)
    call("EXPIRE", KEYS[2], ttl)
    call("EXPIRE", KEYS[3], ttl)
    call("EXPIRE", KEYS[4], ttl)
  end
end

-- Writes the session.
function close(most, ttl)
  write(keeps_place(), most, ttl)
end

-- Writes the session with one more call; the oldest one goes when the window is full.
function close_with(most, ttl, key, result, class, in_step, admission)
  local record = key .. result .. char(class, turn % 256, in_step) .. admission
  local full = #session - base >= FULL
  local stays = full and keeps_place()
  if stays then
    local at = base + turned
    call("SETRANGE", KEYS[1], DIGITS[at] or digits(at), record)
    turned = (turned + RECORD) % FULL
  else
    if full then
      straighten()
      base = #session - FULL + RECORD
    end
    session = session .. record
  end
  write(stays, most, ttl)
end

-- Writes the session with what came of the call at `at`: result and class.
function close_at(at, came, most, ttl)
  local stays = keeps_place()
  if stays then
    call("SETRANGE", KEYS[1], DIGITS[at + 8] or digits(at + 8), came)
  else
    fetch()
    session = sub(session, 1, at + 8) .. came .. sub(session, at + 16)
  end
  write(stays, most, ttl)
end
end

local fare_badly

do
local STUCK = 6

-- Nothing new came of a call. A session that is stuck is so for the rest of its turn: what it is shown then, it may use.
function fare_badly()
  idle = up_to(idle + 1, 255)
  if idle >= STUCK then raise(STUCK_ONCE) end
end
end

-- A tool at work is no silence.
local function end_silence()
  if sub(seldom, 28) ~= NO_LABEL then seldom = sub(seldom, 1, 27) .. p32(second) end
end

-- ---- reservations ---------------------------------------------------------

-- A call is let run, and comes into the window next; `alone` if nothing there is like it. At most as many reservations as
-- the window has calls: an older one's call is no longer there to be released.
local function reserve(admission, deadline, alone)
  if #reservations >= WINDOW * RESERVATION then reservations = sub(reservations, RESERVATION + 1) end
  local e = deadline % 256
  local rest = (deadline - e) / 256
  local d = rest % 256
  rest = (rest - d) / 256
  local c = rest % 256
  rest = (rest - c) / 256
  local b, place = rest % 256, 0
  if alone then place = ALONE + turned / RECORD end
  reservations = reservations .. admission .. char((rest - b) / 256 % 256, b, c, d, e, place, turn % 256, step)
end

-- How long the reservation at `at` is held for yet, in ms; below 0: its time is over. What is kept of a deadline comes
-- round in 34 years.
local function time_left(at)
  local a, b, c, d, e = byte(reservations, at + 4, at + 8)
  local left = ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e - now) % 1099511627776
  if left >= 549755813888 then return left - 1099511627776 end
  return left
end

-- The oldest call's place in the window is about to be another's.
local function forget_oldest()
  if #session - base < FULL then return end
  local oldest = base + turned + 1
  local at = seek_reservation(sub(session, oldest + 18, oldest + 21))
  if at then reservations = sub(reservations, 1, at + 8) .. "\0" .. sub(reservations, at + 10) end
end

local release, expire_reservations

do
local function drop(at)
  reservations = sub(reservations, 1, at - 1) .. sub(reservations, at + RESERVATION)
end

function release(admission)
  local at = seek_reservation(admission)
  if at and #reservations == RESERVATION then reservations = "" elseif at then drop(at) end
end

-- What was admitted and never settled in its time: it may have run, nobody knows with what result. Its step waits for
-- it no longer: an agent that never reports is told by its arguments alone, call by call.
function expire_reservations()
  local at = 1
  while at <= #reservations do
    if time_left(at) < 0 then
      local record = seek(sub(reservations, at, at + 3), 19)
      if record then
        local class, in_turn, in_step = byte(session, record + 15, record + 17)
        if in_step == step then spoken = 1 end
        session = sub(session, 1, record + 14) .. char(class % 64 - class % 32 + UNKNOWN + 64) .. sub(session, record + 16)
        note(sub(session, record, record + 2), LABEL_UNKNOWN, 0, turn - (turn % 256 + 256 - in_turn) % 256, in_step, 0)
      end
      drop(at)
    else
      at = at + RESERVATION
    end
  end
end
end

local NO_IDS = "\0\0\0\0\0\0\0\0"


-- ---- seen ids -------------------------------------------------------------

local add_ids, find_unseen

do
local function has_id(ids, id)
  local at = find(ids, id, 1, true)
  while at do
    if at % 8 == 1 then return true end
    at = find(ids, id, at + 1, true)
  end
  return false
end

function add_ids(more, ttl)
  local ids = call("GET", KEYS[4])
  local new = not ids
  local state = flags % 4
  if new then
    if state == 1 then state = 2 end
    ids = ""
  elseif state == 0 then
    state = 2
  end
  local before = #ids
  for at = 1, #more, 8 do
    local id = sub(more, at, at + 7)
    if not has_id(ids, id) then ids = ids .. id end
  end
  local grown = #ids > before
  if grown and state == 0 then state = 1 end
  if #ids > IDS_MAX * 8 then
    ids = sub(ids, #ids - IDS_MAX * 8 + 1)
    state = 2
  end
  set_ids(state)
  if not grown then return end
  set(KEYS[4], ids, new, ttl)
end

-- One bit an id, lowest first: 1 where it was never seen; and 1 if the record of what was seen is whole.
function find_unseen(asked_for)
  if asked_for == "" then
    if flags % 4 == 2 then return NO_IDS, 0 end
    return NO_IDS, 1
  end
  local ids, out, complete = call("GET", KEYS[4]), "", 1
  local state = flags % 4
  if state == 2 or (state == 1) == not ids then complete = 0 end
  if not ids then ids = "" end
  for group = 1, 512, 64 do
    local bits, weight = 0, 1
    for at = group, up_to(group + 56, #asked_for - 7), 8 do
      if not has_id(ids, sub(asked_for, at, at + 7)) then bits = bits + weight end
      weight = weight * 2
    end
    out = out .. char(bits)
  end
  return out, complete
end
end

-- ---- facts, and what a reply carries besides ------------------------------

local merge_facts

do
local FACTS_BYTES = 16384

-- Sets list[first] = list[first + 1] and so on. Returns how many found no room.
function merge_facts(list, first, ttl)
  local kept, size, sizes, dropped = call("HGETALL", KEYS[3]), 0, {}, 0
  for i = 1, #kept, 2 do
    if byte(kept[i]) == 102 then
      sizes[kept[i]] = #kept[i + 1]
      size = size + #kept[i] + #kept[i + 1]
    end
  end
  for i = first, #list, 2 do
    local field, value = "f" .. list[i], list[i + 1]
    local grown = size + #value - (sizes[field] or -#field)
    if grown > FACTS_BYTES then
      dropped = dropped + 1
    else
      call("HSET", KEYS[3], field, value)
      size, sizes[field] = grown, #value
    end
  end
  if #kept == 0 then call("EXPIRE", KEYS[3], ttl) end
  return dropped
end
end

local function part(s)
  return p32(#s) .. s
end

-- Chains given up, goal, facts, names of tools, journal, open chains: each behind its length.
local function collect(wants_goal, wants_facts, wants_journal)
  local goal, facts, names, entries = "", "", "", ""
  if wants_facts or wants_journal then
    local kept = call("HGETALL", KEYS[3])
    for i = 1, #kept, 2 do
      local sort = byte(kept[i])
      local pair = part(sub(kept[i], 2)) .. part(kept[i + 1])
      if sort == 102 then facts = facts .. pair elseif sort == 116 then names = names .. pair end
    end
  end
  if wants_goal and has(GOAL) then goal = call("HGET", KEYS[3], "g") or "" end
  if wants_journal then entries = read_journal() end
  return part(gave_up) .. part(goal) .. part(facts) .. part(names) .. part(entries) .. part(chains)
end

-- How admit's reply ends: whether the record of ids is whole, then ids not in it and what else was asked for; nothing of
-- that where nothing was, unless it is `wanted` all the same.
local function reply_rest(asked_for, wants_facts, wants_journal, wanted)
  local quiet = asked_for == "" and gave_up == "" and wants_facts + wants_journal == 0 and flags % STUCK_ONCE < GOAL
  if quiet and not wanted then
    if flags % 4 == 2 then return 0, "" end
    return 1, ""
  end
  local unseen, complete = find_unseen(asked_for)
  return complete, unseen .. collect(true, wants_facts == 1, wants_journal == 1)
end
