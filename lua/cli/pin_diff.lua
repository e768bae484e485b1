-- Where two definitions differ, whole: the daemon's own differences cut long values, and a definition may hide its point
-- at its end. The texts are the upstreams': each is printed on one line, escaped.
local ui = require "ui"

local function put(sign, path, words)
  ui.say("  %s%s %s%s", sign == "-" and cli.red or cli.green, sign, cli.line(path) .. ": " .. cli.line(words), cli.plain)
end

-- A long description that changes in one line is that line: equal ones before and after are left out.
local function put_texts(path, was, now)
  local old, new = ui.lines(was), ui.lines(now)
  local most, first, tail = math.min(#old, #new), 1, 0 -- one line of each stays
  while first < most and old[first] == new[first] do first = first + 1 end
  while first + tail < most and old[#old - tail] == new[#new - tail] do tail = tail + 1 end
  for i = first, #old - tail do put("-", path, old[i]) end
  for i = first, #new - tail do put("+", path, new[i]) end
  if first + tail > 1 then ui.say("    (%s)", ui.count(first - 1 + tail, "equal line")) end
end

local function put_value(sign, path, value)
  for _, line in ipairs(type(value) == "string" and ui.lines(value) or { cli.json(value) }) do put(sign, path, line) end
end

-- One of the two may be nil.
local function walk(path, was, now)
  local either = was == nil and now or was
  if was ~= nil and now ~= nil and cli.json(was) == cli.json(now) then return end
  if ui.is_object(either) and next(either) ~= nil and (was == nil or now == nil or ui.is_object(now)) then
    local function below(name) return path ~= "" and path .. "." .. name or name end
    for _, name in ipairs(was and cli.keys(was) or {}) do walk(below(name), was[name], now and now[name]) end
    for _, name in ipairs(now and cli.keys(now) or {}) do
      if not was or was[name] == nil then walk(below(name), nil, now[name]) end
    end
  elseif type(was) == "string" and type(now) == "string" then
    put_texts(path, was, now)
  else
    if was ~= nil then put_value("-", path, was) end
    if now ~= nil then put_value("+", path, now) end
  end
end

return function(was, now) walk("", was, now) end
