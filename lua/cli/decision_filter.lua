-- Which records of the decision log are wanted, by the options of `toolgate decisions`. A word may be a glob, several stand
-- with commas between them.
local decision_log = require "decision_log"

local SECONDS = { s = 1, m = 60, h = 3600, d = 86400, w = 604800 }
local MOMENT_MAX_BYTES = 63

local function words_of(list)
  local words = {}
  if not list or list == "" then return words end
  for word in (list:gsub(",$", "") .. ","):gmatch "(.-)," do words[#words + 1] = word:match "^[ \t\r\n]*(.-)[ \t\r\n]*$" end
  return words
end

local function has_match(words, value)
  for i = 1, #words do
    if words[i] == value or cli.glob(words[i], value) then return true end
  end
  return false
end

-- Each word is, or as a glob matches, one of the names.
local function check_words(what, list, names)
  for _, word in ipairs(words_of(list)) do
    local known = false
    for _, name in ipairs(names) do known = known or cli.glob(word, name) end
    local near = not known and cli.suggest(word, names)
    if near then fail("no %s is called '%s' (did you mean '%s'?)", what, word, near) end
    if not known then fail("no %s is called '%s'; they are %s", what, word, table.concat(names, ", ")) end
  end
end

-- "90m", "1d", "2w" before now, in microseconds since 1970.
local function ago(given)
  local count, unit = given:match "^(%d%d?%d?%d?%d?%d?%d?)(%a)$"
  return SECONDS[unit] and (cli.now() - count * SECONDS[unit] * 1000) * 1000
end

-- "2026-11-20", "2026-11-20 14:30", "2026-11-20T14:30:00" of this host. A date alone is its first moment, with `is_end` the
-- first one of the next day.
local function local_time(given, is_end)
  local year, month, day, rest = given:match "^ *(%d%d?%d?%d?)%- *(%d%d?)%- *(%d%d?)(.*)$"
  if not year then return nil end
  local hour, minute, second = rest:match "^[T%s]%s*(%d%d?): *(%d%d?)(.*)$"
  if second and second ~= "" then second = second:match "^: *(%d%d?)$" else second = second and 0 end
  if rest ~= "" and not second then return nil end
  local t = { year = tonumber(year), month = tonumber(month), day = tonumber(day), hour = tonumber(hour or 0),
              min = tonumber(minute or 0), sec = tonumber(second or 0) }
  if t.month < 1 or t.month > 12 or t.day < 1 or t.hour > 23 or t.min > 59 or t.sec > 61 then return nil end
  local seconds = os.time(t)
  if not seconds or os.date("*t", seconds).day ~= t.day then return nil end -- a 31st of February is a day of March
  if is_end and rest == "" then
    t.day = t.day + 1
    seconds = os.time(t)
  end
  return seconds * 1000000
end

local function moment(option, given, is_end)
  if not given then return nil end
  local us = #given <= MOMENT_MAX_BYTES
             and (ago(given) or #given > 19 and cli.moment(given) or local_time(given, is_end))
  if not us then
    fail("--%s: expected a span before now, such as 90m, 12h, 1d or 2w, a date such as 2026-11-20, or a local time such as "
         .. "\"2026-11-20 14:30\", got '%s'", option, given)
  end
  return us >= 0 and us or nil
end

-- A function that says of a record whether it is wanted; and the moment from which on. An option that cannot be read ends
-- the command.
return function(o)
  local would, tests = o.would and "would" or nil, {}
  local since, till = moment("since", o.since, false), moment("until", o["until"], true)
  local verdicts, classes = cli.verdicts()
  check_words("verdict", o.verdict, verdicts)
  check_words("class", o.class, classes)

  local function when(given, test)
    if given and given ~= "" then tests[#tests + 1] = test end
  end
  local function when_words(list, name, inside)
    local words = words_of(list)
    when(list, function(log) return has_match(words, log:get(name, inside) or "") end)
  end
  when(o.would, function(log) return log:get("verdict", "would") end)
  when(o.refused, function(log) return decision_log.is_refused(log, would) end)
  when(since, function(log) return (log:time() or -1) >= since end)
  when(till, function(log) return (log:time() or till) < till end)
  when(o.turn, function(log) return decision_log.whole(log, "turn") == tostring(o.turn) end)
  when_words(o.tool, "tool")
  when_words(o.verdict, "verdict", would)
  when_words(o.class, "error_class", would)
  when_words(o.code, "code", would)
  when_words(o.session, "session")
  local users = words_of(o.user)
  when(o.user, function(log)
    local uid = decision_log.whole(log, "uid")
    return has_match(users, log:get "user" or "") or uid and has_match(users, uid)
  end)

  return function(log)
    for i = 1, #tests do
      if not tests[i](log) then return false end
    end
    return true
  end, since
end
