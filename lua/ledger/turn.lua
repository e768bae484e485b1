-- turn: the user has spoken. Chains left open end as given up, runs and budgets of a turn start anew.
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 turn (0: the next one; one that is past changes nothing)   5-8 ttl, s   9-12 entries of the journal
-- ARGV[2]  the goal in words; empty: none told
--
-- Returns  1-4 the turn, then the parts of admit's reply, of which only chains given up are filled.

local told, ttl, most = u32(ARGV[1], 1), u32(ARGV[1], 5), u32(ARGV[1], 9)

open()
if told == 0 then told = turn + 1 end
if told > turn then begin_turn(told) end
end_silence() -- what was told needs no silence to tell it again
if told == turn then
  if ARGV[2] ~= "" then
    local kept = call("HLEN", KEYS[3])
    call("HSET", KEYS[3], "g", ARGV[2])
    if kept == 0 then call("EXPIRE", KEYS[3], ttl) end
    raise(GOAL)
  end
  close(most, ttl)
end
return p32(turn) .. collect(false, false, false)
