-- Conditions of rules on one argument: above, below, at_least, at_most, between, none_of, given, absent, and is for a
-- function. They are data; src/policy/rule.c evaluates them.

local builtins = ...
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}

local WORDS_MAX_BYTES = 200 -- of a predicate's description, which a model reads in every refusal

local function condition(fields)
  return builtins.mark(fields, "condition")
end

-- Numbers compare as numbers, times as times: a bound is one of the two.
local function bound(word, given)
  if type(given) == "number" and given - given == 0 then return "numbers" end
  if type(given) == "string" and builtins.time(given) then return "times" end
  raise(word .. ': expected a number, or a time such as "2026-05-01T10:00:00Z", got ' .. builtins.kind(given))
end

function M.above(n) return condition { kind = bound("above", n), low = n, low_open = true } end
function M.below(n) return condition { kind = bound("below", n), high = n, high_open = true } end
function M.at_least(n) return condition { kind = bound("at_least", n), low = n } end
function M.at_most(n) return condition { kind = bound("at_most", n), high = n } end

function M.between(low, high)
  local kind = bound("between", low)
  if bound("between", high) ~= kind then
    raise("between: expected two numbers or two times, got " .. builtins.kind(low) .. " and " .. builtins.kind(high))
  end
  local from, to = low, high
  if kind == "times" then from, to = builtins.time(low), builtins.time(high) end
  if from > to then
    raise("between: expected the lesser bound first, got (" .. builtins.kind(low) .. ", " .. builtins.kind(high)
          .. "): the range is empty")
  end
  return condition { kind = kind, low = low, high = high }
end

-- none_of { "a", "b" }, none_of("a", "b") and none_of "a"; a set is taken, too.
function M.none_of(given, ...)
  local values = given
  if type(given) ~= "table" then values = { given, ... }
  elseif select("#", ...) > 0 then raise 'none_of: expected one list of values, as in none_of { "draft", "spam" }, got more' end
  if next(values) == nil then raise('none_of: expected values, as in none_of { "draft", "spam" }, got nothing') end
  return condition { kind = "none_of", values = values }
end

-- Shared by all policies and therefore read-only; each use is a condition of its own.
M.given = builtins.constant({}, "given")
M.absent = builtins.constant({}, "absent")

function M.is(words, test)
  if type(words) ~= "string" or type(test) ~= "function" then
    raise('is: expected what the value is in words, and a function that decides it, as in is("on a weekend", '
          .. "function(value, args) … end); got (" .. builtins.kind(words) .. ", " .. builtins.kind(test)
          .. "). A plain value is written as it is: when { mode = \"fast\" }")
  end
  if words:find("^%s*$") or words:find("%c") or #words > WORDS_MAX_BYTES then
    raise("is: expected one line of words, at most " .. WORDS_MAX_BYTES .. " bytes, got " .. builtins.kind(words))
  end
  return condition { kind = "is", words = words, test = test }
end

-- ---- what when { … } takes ------------------------------------------------------------------------------------

local bare = {} -- words that were written without their arguments
for _, word in ipairs { "above", "below", "at_least", "at_most", "between", "none_of", "is" } do bare[M[word]] = word end

-- A list may hold plain values only, no conditions.
local function check_values(name, values)
  for _, value in pairs(values) do
    local mark = builtins.marked(value)
    local plain = mark == nil or mark == "array" or mark == "object"
    if not plain or type(value) == "function" or value == M.given or value == M.absent then
      raise("when: '" .. name .. "': expected plain values in the list, got " .. (mark and "a " .. mark or "a word")
            .. ": a condition stands alone, as in when { limit = above(100) }")
    end
  end
end

-- The condition on the argument `name` as the rule keeps it; raises an error if it is none.
function M.condition_on(name, wanted)
  if wanted == M.given then return condition { kind = "given" } end
  if wanted == M.absent then return condition { kind = "absent" } end
  if type(wanted) == "function" then
    raise("when: '" .. name .. "': " .. (bare[wanted]
      and bare[wanted] .. " needs its arguments, as in " .. bare[wanted] .. "(…)"
      or 'a function needs words that describe it: is("on a weekend", function(value, args) … end)'))
  end
  local mark = builtins.marked(wanted)
  if mark == "condition" then
    if wanted.kind == "none_of" and builtins.marked(wanted.values) ~= "set" then check_values(name, wanted.values) end
  elseif mark and mark ~= "set" and mark ~= "array" and mark ~= "object" then
    raise("when: '" .. name .. "': expected a value, a list of values, or a condition (above, between, given, …), got a " .. mark)
  elseif type(wanted) == "table" and mark ~= "set" and mark ~= "object" then
    check_values(name, wanted)
  end
  return wanted
end

return M
