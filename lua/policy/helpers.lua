-- Small pure functions that many policies need.

local builtins = ...
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}

-- Words by which a user asks for everything, and phrases in which they do not mean that.
local EVERYTHING = { all = true, every = true, everyone = true, everybody = true, everything = true, entire = true,
                     whole = true, each = true }
local PHRASES = { "at all", "after all", "all right", "first of all", "above all" }

function M.wants_all(goal)
  if type(goal) ~= "string" then return false end
  local text = goal:lower()
  for _, phrase in ipairs(PHRASES) do text = text:gsub(phrase, " ") end
  for word in text:gmatch("%a+") do
    if EVERYTHING[word] then return true end
  end
  return false
end

function M.set(given, ...)
  local members = builtins.mark({}, "set")
  if type(given) ~= "table" then given = { given, ... } end
  for _, member in ipairs(given) do members[member] = true end
  return members
end

function M.array(given)
  if given ~= nil and type(given) ~= "table" then
    raise("array: expected a list, got " .. builtins.kind(given))
  end
  return builtins.mark(given or {}, "array")
end

-- Times compare as times, numbers as numbers, other strings by their bytes.
local function is_later(a, b)
  if type(a) == "string" and type(b) == "string" then
    local at, bt = builtins.time(a), builtins.time(b)
    if at and bt then a, b = at, bt end
  end
  return type(a) == type(b) and a > b
end

function M.newest(list, field)
  if type(list) ~= "table" or type(field) ~= "string" then
    raise("newest: expected (list, field), got (" .. builtins.kind(list) .. ", " .. builtins.kind(field) .. ")")
  end
  local best, position
  for at, item in ipairs(list) do
    local value = type(item) == "table" and item[field] or nil
    if (type(value) == "string" or type(value) == "number") and (not best or is_later(value, best[field])) then
      best, position = item, at
    end
  end
  return best, position
end

return M
