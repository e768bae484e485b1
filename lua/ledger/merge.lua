-- merge: takes over what another engine counted while this one was away, and takes back what was admitted here in
-- answers that nobody heard.
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 ttl, s   5-8 entries of the journal   9-16 the merge's own number
-- ARGV[2]  what to take back, 14 bytes each: admission 4, tool 3, the cost taken for it 6, 1 if the tool has limits + 2
--          if it has a pace
-- ARGV[3]  the account that leave gave; empty: none
--
-- Returns  1 "1", or "0" where this merge was made before   then, each behind its length in 4 bytes: chains given up,
--          chains that ended in success (retries, name, ext)
--
-- At most once: by its number, however often it is asked for.

open()
if fresh and ARGV[3] == "" then return "1" .. part("") .. part("") end
straighten()
local made = merge(sub(ARGV[1], 9, 16), ARGV[2], ARGV[3], u32(ARGV[1], 5), u32(ARGV[1], 1))
if not made then return "0" .. part("") .. part("") end
return "1" .. part(gave_up) .. part(ended_well)
