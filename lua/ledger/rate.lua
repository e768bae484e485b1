-- Takes one call from a bucket of rates if each has room (GCRA, with bursts of a whole count), else none.
-- A bucket lives for 60 s at least, so that a lost reply can be asked for again; without rates it goes at once.
-- KEYS: the bucket, a hash: "COUNT/SECONDS" is that rate's level, in µs (src/ledger/store_memory.c has the arithmetic);
-- "taken" the latest admissions that took a call, 8 bytes each. ARGV: the admission, how many of them to remember, 0 (or,
-- to give the call back, for how many µs it was held, at least 1), then count and window in s of each rate. Returns 0 if a
-- call is taken, was by this admission, or is given back; else the milliseconds until there is room.
local call, bucket, admission, held = redis.call, KEYS[1], ARGV[1], tonumber(ARGV[3])
local taken = call("HGET", bucket, "taken") or ""
for at = 1, #taken, 8 do
  if taken:sub(at, at + 7) == admission then
    if held == 0 then return 0 end
    call("HSET", bucket, "taken", taken:sub(1, at - 1) .. ("\0"):rep(8) .. taken:sub(at + 8))
    for rate = 4, #ARGV, 2 do
      local name, step = ARGV[rate] .. "/" .. ARGV[rate + 1], math.ceil(ARGV[rate + 1] * 1000000 / ARGV[rate])
      local level = tonumber(call("HGET", bucket, name) or 0)
      call("HSET", bucket, name, level - math.max(0, step - held))
    end
  end
end
if held > 0 then return 0 end
local time = call("TIME")
local now, wait, lives = time[1] * 1000000 + time[2], 0, #ARGV > 3 and 60000000 or 0
local fields = { "taken", (taken .. admission):sub(-8 * ARGV[2]) }
for at = 4, #ARGV, 2 do
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
