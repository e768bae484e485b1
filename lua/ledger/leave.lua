-- leave: what was counted here since this was asked last, for another engine to take over (merge.lua).
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 ttl, s   5-8 entries of the journal
--
-- Returns  empty where there is no such session; else the account, as away.lua has it. Goal, facts, journal and ids are
--          handed over; budgets stay, so that the next time both engines are apart finds them used up.

open()
if fresh then return "" end
straighten()
return leave(u32(ARGV[1], 5), u32(ARGV[1], 1))
