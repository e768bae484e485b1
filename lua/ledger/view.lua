-- view: all that is known of a session, changing nothing.
--
-- KEYS     the session's four, see session.lua.
--
-- Returns  empty where there is no such session, else the parts of admit's reply, then each behind its length in 4
--          bytes: the session as packed, the seen ids, the counts of tools with limits (tool, count as in limits.lua).

open()
if fresh then return "" end
local kept, counts = call("HGETALL", KEYS[3]), ""
for i = 1, #kept, 2 do
  if byte(kept[i]) == 108 then counts = counts .. part(sub(kept[i], 2)) .. part(kept[i + 1]) end
end
return collect(true, true, true) .. part(call("GET", KEYS[1])) .. part(call("GET", KEYS[4]) or "") .. part(counts)
