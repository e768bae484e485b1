-- The local engine's `redis.call`: just the commands that the ledger scripts use, over tables of this state, with
-- times to live and a cap on memory. Runs with the JIT on and is trusted; policies live in another state.
--
-- Chunk arguments: the memory cap in bytes. Returns `prepare(text)` -> a script as a function, `run(script, now_ms)` ->
-- its reply, `usage()` -> sessions and bytes. The host fills KEYS and ARGV of the environment `env` before each run.
--
-- A session's keys differ in their last letter only, and its first, "s", stands for all: when it is dropped, because
-- its time is over or because it is the one untouched for longest while memory is short, the others go with it.

local cap = ...
local setfenv, loadstring, error = setfenv, loadstring, error
local sub = string.sub

-- What a key costs beyond its bytes and its value's: the entry, its place in the tables, the strings' heads.
local KEY_BYTES, FIELD_BYTES = 240, 96

local entries = {} -- key -> { value, expires_ms, bytes, key, older, newer }; value is a string or a hash
local oldest, newest -- sessions by last touch
local sessions, bytes = 0, 0
local now = 0

local function unlink(entry)
  local older, newer = entry.older, entry.newer
  if older then older.newer = newer else oldest = newer end
  if newer then newer.older = older else newest = older end
  entry.older, entry.newer = nil, nil
end

local function link(entry)
  entry.older, entry.newer = newest, nil
  if newest then newest.newer = entry else oldest = entry end
  newest = entry
end

local function touch(entry)
  if newest ~= entry then
    unlink(entry)
    link(entry)
  end
end

local function drop(entry)
  entries[entry.key] = nil
  bytes = bytes - entry.bytes
  if entry.session then
    sessions = sessions - 1
    unlink(entry)
    local stem = sub(entry.key, 1, -2)
    local h, d, i = entries[stem .. "h"], entries[stem .. "d"], entries[stem .. "i"]
    if h then drop(h) end
    if d then drop(d) end
    if i then drop(i) end
  end
end

local function get(key)
  local entry = entries[key]
  if entry then
    if entry.expires <= now then
      drop(entry)
      return nil
    end
    return entry
  end
end

local function weigh(entry, size)
  size = size + #entry.key + KEY_BYTES
  bytes = bytes + size - entry.bytes
  entry.bytes = size
end

local function new(key, value)
  local entry = { key = key, value = value, expires = math.huge, bytes = 0, session = sub(key, -1) == "s" }
  entries[key] = entry
  if entry.session then
    sessions = sessions + 1
    link(entry)
  end
  return entry
end

local function hash(key)
  local entry = get(key)
  if not entry then
    entry = new(key, { fields = {}, at = {}, count = 0, size = 0 })
    weigh(entry, 0)
  end
  return entry, entry.value
end

local commands = {}
local time = { 0, 0 }

function commands.TIME()
  local ms = now % 1000
  time[1], time[2] = (now - ms) / 1000, ms * 1000
  return time
end

-- What was appended waits in pieces until it is asked for, or until there are many.
local PIECES = 32

local function whole(entry)
  if entry.pieces then
    entry.value = entry.value .. table.concat(entry.pieces)
    entry.pieces = nil
  end
  return entry.value
end

function commands.GET(key)
  local entry = get(key)
  return entry and whole(entry) or false
end

function commands.SET(key, value, option, seconds)
  local entry = get(key) or new(key, value)
  entry.value, entry.pieces, entry.length = value, nil, #value
  weigh(entry, #value)
  if option == "EX" then entry.expires = now + seconds * 1000 elseif option ~= "KEEPTTL" then entry.expires = math.huge end
  if entry.session then touch(entry) end
end

function commands.APPEND(key, value)
  local entry = get(key)
  if not entry then
    entry = new(key, "")
    entry.length = 0
  end
  local pieces = entry.pieces
  if not pieces then
    pieces = {}
    entry.pieces = pieces
  end
  pieces[#pieces + 1] = value
  if #pieces == PIECES then whole(entry) end
  entry.length = entry.length + #value
  weigh(entry, entry.length)
  return entry.length
end

function commands.EXPIRE(key, seconds)
  local entry = get(key)
  if not entry then return 0 end
  entry.expires = now + seconds * 1000
  return 1
end

function commands.DEL(...)
  local gone = 0
  for i = 1, select("#", ...) do
    local entry = get((select(i, ...)))
    if entry then
      drop(entry)
      gone = gone + 1
    end
  end
  return gone
end

-- A hash keeps its fields in the order they came, which is also HGETALL's.
function commands.HSET(key, field, value)
  local entry, h = hash(key)
  local at = h.at[field]
  if at then
    h.size = h.size + #value - #h.fields[at + 1]
    h.fields[at + 1] = value
  else
    at = h.count * 2 + 1
    h.fields[at], h.fields[at + 1], h.at[field] = field, value, at
    h.count, h.size = h.count + 1, h.size + #field + #value + FIELD_BYTES
  end
  weigh(entry, h.size)
  return at and 0 or 1
end

function commands.HGET(key, field)
  local entry = get(key)
  local at = entry and entry.value.at[field]
  return at and entry.value.fields[at + 1] or false
end

function commands.HGETALL(key)
  local entry = get(key)
  return entry and entry.value.fields or {}
end

function commands.HLEN(key)
  local entry = get(key)
  return entry and entry.value.count or 0
end

local env = {
  string = string,
  tonumber = tonumber,
  redis = {
    call = function(name, ...)
      local command = commands[name]
      if not command then error("the local ledger has no command " .. name) end
      return command(...)
    end,
  },
}

-- `common` is run once: what it defines stays the same for all runs of `body`.
local function prepare(common, body, name)
  local made, fault = loadstring(common .. "\nreturn function()\n" .. body .. "\nend", name)
  if not made then error(fault) end
  return setfenv(made, env)()
end

local function run(script, now_ms)
  now = now_ms
  local reply = script()
  while oldest and (oldest.expires <= now or (bytes > cap and oldest ~= newest)) do drop(oldest) end
  return reply
end

local function usage()
  return sessions, bytes
end

return env, prepare, run, usage
