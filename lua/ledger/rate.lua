-- Takes one call from a bucket of rates if each has room (GCRA, with bursts of a whole count), else none.
-- A bucket lives for 60 s at least, so that a lost reply can be asked for again; without rates it goes at once.
-- KEYS: the bucket, a hash: "COUNT/SECONDS" is that rate's level, in µs (src/ledger/store_memory.c has the arithmetic);
-- "taken" the latest admissions that took a call, 8 bytes each. ARGV: the admission, how many of them to remember, then
-- count and window in s of each rate. Returns 0 if a call is taken, or was by this admission; else the milliseconds
-- until there is room.
local call, bucket, admission = redis.call, KEYS[1], ARGV[1]
local taken = call("HGET", bucket, "taken") or ""
for at = 1, #taken, 8 do
  if taken:sub(at, at + 7) == admission then return 0 end
end
local time = call("TIME")
local now, wait, lives = time[1] * 1000000 + time[2], 0, #ARGV > 2 and 60000000 or 0
local fields = { "taken", (taken .. admission):sub(-8 * ARGV[2]) }
for at = 3, #ARGV, 2 do
  local name, step = ARGV[at] .. "/" .. ARGV[at + 1], math.ceil(ARGV[at + 1] * 1000000 / ARGV[at])
  local room = step * ARGV[at]
  local level = math.min(math.max(tonumber(call("HGET", bucket, name) or 0), now), now + room) + step
  wait, lives = math.max(wait, level - room - now), math.max(lives, level - now)
  fields[#fields + 1] = name
  fields[#fields + 1] = level
end
if wait > 0 then return math.ceil(wait / 1000) end
call("HSET", bucket, unpack(fields))
call("PEXPIRE", bucket, math.ceil(lives / 1000))
return 0
