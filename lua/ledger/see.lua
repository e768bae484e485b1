-- see: ids that became known otherwise than by a result, e.g. from the goal's words.
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 ttl, s   5-8 entries of the journal   ARGV[2] ids, 8 bytes each
--
-- Returns  nothing of interest.

local ttl, most = u32(ARGV[1], 1), u32(ARGV[1], 5)

open()
add_ids(ARGV[2], ttl)
close(most, ttl)
return ""
