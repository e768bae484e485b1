-- Commits changes to a session if nobody else has committed since it was read, or reads it.
-- KEYS: its core, and those of its journal, ids (strings) and details (a hash, ends in "d") that exist or are written.
-- ARGV: what the core must begin with (empty: it must not exist; "-": only read), then, to commit, the keys' time to
-- live in s (0: as it is), and for each write a command, the number of its key and two arguments.
-- Returns 1, or, with nothing written, what is there of each key.
local call = redis.call
if call("GETRANGE", KEYS[1], "0", "8") ~= ARGV[1] then
  local found = {}
  for at, key in ipairs(KEYS) do found[at] = call(key:sub(-1) == "d" and "HGETALL" or "GET", key) end
  return found
end
for at = 3, #ARGV, 4 do call(ARGV[at], KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3]) end
if ARGV[2] ~= "0" then
  for at = 1, #KEYS do call("EXPIRE", KEYS[at], ARGV[2]) end
end
return 1
