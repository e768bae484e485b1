-- Runs each command that the other scripts use, so that a missing right is found, and named, when a daemon connects.
-- KEYS: a core, which has a time to live, and details. ARGV: that time in s.
-- Returns 1, or the first command that failed and its error.
local core, details = KEYS[1], KEYS[2]
for _, command in ipairs {
  { "GETRANGE", core, "0", "8" }, { "SET", core, "a core", "KEEPTTL" }, { "SETRANGE", core, "0", "A" }, { "GET", core },
  { "EXPIRE", core, ARGV[1] }, { "PEXPIRE", core, ARGV[1] .. "000" }, { "TIME" }, { "HSET", details, "goal", "none" },
  { "EXPIRE", details, ARGV[1] }, { "HGET", details, "goal" }, { "HGETALL", details }, { "HDEL", details, "goal", "goal" },
} do
  local done = redis.pcall(unpack(command))
  if type(done) == "table" and done.err then return { command[1], done.err } end
end
return 1
