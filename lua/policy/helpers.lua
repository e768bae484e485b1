-- Small pure functions that many policies need.

local builtins, words = ...
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}

function M.set(given, ...)
  local members, count = builtins.mark({}, "set"), 0
  if type(given) ~= "table" then given = { given, ... } end
  for _, member in ipairs(given) do members[member], count = true, count + 1 end
  if builtins.loading() then builtins.only_list('set: expected its members in a list, set { "a", "b" }', given, count) end
  return members
end

function M.array(given)
  if given ~= nil and type(given) ~= "table" then
    raise("array: expected a list, got " .. builtins.kind(given))
  end
  return builtins.mark(given or {}, "array")
end

-- Lua's own does not say that a tool has failed, as error does.
function M.assert(value, message, ...)
  if not value then words.error(message == nil and "assertion failed!" or message, 2) end
  return value, message, ...
end

return M
