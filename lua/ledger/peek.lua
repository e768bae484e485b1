-- peek: what a list of tools depends on, changing nothing.
--
-- KEYS     the session's four, see session.lua.
--
-- Returns  1-4 turn   5 calls in a row without progress   6 1: it was stuck in this turn
--          then the goal, behind its length in 4 bytes; a session that nobody knows is at turn 0 and has none.

open()
local goal = ""
if has(GOAL) then goal = call("HGET", KEYS[3], "g") or "" end
local stuck = 0
if has(STUCK_ONCE) then stuck = 1 end
return p32(turn) .. char(idle, stuck) .. part(goal)
