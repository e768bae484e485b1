-- view: all that is known of a session, changing nothing.
--
-- KEYS     the session's four, see session.lua.
--
-- Returns  empty where there is no such session, else the parts of admit's reply, then each behind its length in 4
--          bytes: the session as packed, the seen ids.

open()
if fresh then return "" end
return collect(true, true, true) .. part(call("GET", KEYS[1])) .. part(call("GET", KEYS[4]) or "")
