-- Reads several parts of a session at once. KEYS: the parts. ARGV: for each the command that reads it (GET, HGETALL).
-- Returns what they return, in that order.
local parts = {}
for i = 1, #KEYS do parts[i] = redis.call(ARGV[i], KEYS[i]) end
return parts
