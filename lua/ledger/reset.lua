-- reset: a person ends the runs of one tool, or has the whole session forgotten.
--
-- KEYS     the session's four, see session.lua.
-- ARGV[1]  1-4 ttl, s   5-8 entries of the journal   9-11 tool; absent: the whole session
--
-- Returns  "1", or "0" where there is no such session.

local ttl, most, tool = u32(ARGV[1], 1), u32(ARGV[1], 5), sub(ARGV[1], 9, 11)

-- Unread: what cannot be read is to be forgotten, too.
if tool == "" then
  if call("DEL", KEYS[1], KEYS[2], KEYS[3], KEYS[4]) == 0 then return "0" end
  return "1"
end
open()
if fresh then return "0" end
straighten()
-- Its calls keep their places, with arguments that no call has: without them others would stand in a row that never did.
local staying = ""
for at = base + 1, #session, RECORD do
  if sub(session, at, at + 2) == tool then
    staying = staying .. tool .. "\0\0" .. sub(session, at + 18, at + 21) .. sub(session, at + 9, at + RECORD - 1)
  else
    staying = staying .. sub(session, at, at + RECORD - 1)
  end
end
find_chain(tool)
if chain_at then drop_chain() end
session = sub(session, 1, base) .. staying
close(most, ttl)
return "1"
