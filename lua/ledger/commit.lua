-- Commits changes to a session if nobody else has committed since it was read.
-- KEYS: the core; for each write the key that it goes to; keys to renew. ARGV: what the core must begin with (empty: it
-- must not exist), the renewed keys' time to live in s, and for each write a command and two arguments.
-- Returns 1, or, with nothing written, the core that is there (false: none).
local call = redis.call
if call("GETRANGE", KEYS[1], "0", "8") ~= ARGV[1] then return call("GET", KEYS[1]) end
local key = 1
for at = 3, #ARGV, 3 do
  key = key + 1
  call(ARGV[at], KEYS[key], ARGV[at + 1], ARGV[at + 2])
end
for at = key + 1, #KEYS do call("EXPIRE", KEYS[at], ARGV[2]) end
return 1
