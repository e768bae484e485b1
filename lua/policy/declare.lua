-- tool, gateway, rules and ids: what a policy declares, as data. src/policy/rule.c evaluates the rules.

local builtins, words = ... -- the words of the files before this one
local condition_on = words.condition_on -- conditions.lua
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}

function M.tool(name)
  if type(name) ~= "string" or name == "" then
    raise('tool: expected a name, as in tool "get_events" { … }, got ' .. builtins.kind(name))
  end
  return function(fields)
    if type(fields) ~= "table" then
      raise('tool "' .. name .. '": expected { … } after the name, got ' .. builtins.kind(fields))
    end
    return builtins.mark({ what = "tool", name = name, fields = fields }, "declaration")
  end
end

function M.policy(fields)
  if type(fields) ~= "table" then
    raise('policy: expected { tools = { … }, … }, got ' .. builtins.kind(fields)
          .. (type(fields) == "string" and ': for one tool, write tool "' .. fields .. '" { … }' or ""))
  end
  return builtins.mark({ what = "policy", fields = fields }, "declaration")
end

function M.gateway(fields)
  if type(fields) ~= "table" then raise("gateway: expected { … }, got " .. builtins.kind(fields)) end
  return builtins.mark({ what = "gateway", fields = fields }, "declaration")
end

-- ---- rules -------------------------------------------------------------------------------------------------

-- "start, end", ("start", "end") and {"start", "end"} name the same two arguments.
local function names(word, least, ...)
  local found = {}
  local function add(given)
    if type(given) == "table" then
      local count = 0
      for _, one in ipairs(given) do
        add(one)
        count = count + 1
      end
      builtins.only_list(word .. ": expected names of arguments in a list", given, count)
    elseif type(given) == "string" then
      for name in given:gmatch("[^,%s]+") do found[#found + 1] = name end
    else
      raise(word .. ": expected names of arguments, got " .. builtins.kind(given))
    end
  end
  for at = 1, select("#", ...) do add((select(at, ...))) end
  if #found < least then
    raise(word .. ": expected at least " .. (least == 1 and "one name" or "two names") .. " of arguments, got "
          .. (#found == 0 and "none" or "only '" .. found[1] .. "'"
          .. (word == "needs_one_of" and ': for one argument write needs "' .. found[1] .. '"' or "")))
  end
  local twice = {}
  for _, name in ipairs(found) do
    if twice[name] then raise(word .. ": '" .. name .. "' is named twice: once is enough") end
    twice[name] = true
  end
  return found
end

local methods = {}

-- A rule is built by its methods: `when { … } . needs "x"` passes "x" for the rule.
local function check_self(self, word)
  if builtins.marked(self) ~= "rule" then
    raise(word .. ": expected a colon after the rule, not a dot: write when { … } : " .. word .. " …")
  end
end

-- The fields of a rule have other names than the methods that fill them.
local function rule(condition)
  return builtins.mark({ condition = condition, line = builtins.line(), required = {}, dropped = {}, values = {}, one_of = {},
                       at_most_one = {} }, "rule")
end

for word, field in pairs { needs = "required", drops = "dropped" } do
  methods[word] = function(self, ...)
    check_self(self, word)
    local list = self[field]
    for _, name in ipairs(names(word, 1, ...)) do list[#list + 1] = name end
    return self
  end
end

-- Words by themselves, too.
for word, field in pairs { needs_one_of = "one_of", exclusive = "at_most_one" } do
  methods[word] = function(self, ...)
    check_self(self, word)
    local list = self[field]
    list[#list + 1] = names(word, 2, ...)
    return self
  end
  M[word] = function(...) return methods[word](rule(nil), ...) end
end

function methods.defaults(self, values)
  check_self(self, "defaults")
  if type(values) ~= "table" then raise("defaults: expected { name = value }, got " .. builtins.kind(values)) end
  for name, value in pairs(values) do
    if type(name) ~= "string" then raise("defaults: expected { name = value }, got a list") end
    self.values[name] = value
  end
  return self
end

function methods.refuses(self, code, message, hint)
  check_self(self, "refuses")
  if message == nil then code, message = "refused", code end
  if type(code) ~= "string" or type(message) ~= "string" or (hint ~= nil and type(hint) ~= "string") then
    raise("refuses: expected (code, message, hint) or a message, as strings")
  end
  self.refusal = { code = code, message = message, hint = hint }
  return self
end

builtins.methods("rule", methods)

function M.when(condition)
  if type(condition) ~= "table" or next(condition) == nil then
    raise("when: expected { argument = value }, got " .. builtins.kind(condition))
  end
  local conditions = {}
  for name, wanted in pairs(condition) do
    if type(name) ~= "string" then raise("when: expected { argument = value }, got a list") end
    conditions[name] = condition_on(name, wanted)
  end
  return rule(conditions)
end

-- `always : needs "x"`: each method begins a rule of its own.
local beginnings = {}
for name, method in pairs(methods) do
  beginnings[name] = function(self, ...)
    if self ~= M.always then
      raise(name .. ": expected a colon after always, not a dot: write always : " .. name .. " …")
    end
    return method(rule(nil), ...)
  end
end
M.always = builtins.constant(beginnings, "always")

-- ---- ids ---------------------------------------------------------------------------------------------------

function M.shape(given)
  local prefix = type(given) == "table" and given.prefix
  if type(prefix) == "string" and prefix ~= "" then given = "prefix:" .. prefix end
  if type(given) ~= "string" then
    raise('shape: expected a name, as in shape "uuid", or { prefix = "evt_" }, got ' .. builtins.kind(given))
  end
  if not builtins.is_shape(given) then
    raise("shape: expected one of uuid, integer, digits, hex, slug, email, url, { prefix = \"…\" }, got '" .. given .. "'")
  end
  return builtins.mark({ shape = given }, "id")
end

function M.seen(given)
  given = given or {}
  if type(given) ~= "table" then raise("seen: expected { look_up = …, shape = …, strict = … }, got " .. builtins.kind(given)) end
  for name in pairs(given) do
    if name ~= "look_up" and name ~= "shape" and name ~= "strict" then
      local hint = builtins.hint(tostring(name), { "look_up", "shape", "strict" })
      raise("seen: unknown field '" .. tostring(name) .. "'" .. (hint ~= "" and hint or ": it takes look_up, shape and strict"))
    end
  end
  if given.look_up ~= nil and type(given.look_up) ~= "string" then
    raise("seen: look_up: expected a string, got " .. builtins.kind(given.look_up))
  end
  local shape = given.shape
  if type(shape) == "string" then shape = M.shape(shape) end
  if shape ~= nil and builtins.marked(shape) ~= "id" then
    raise('seen: shape: expected a name or shape "…", got ' .. builtins.kind(shape))
  end
  if given.strict ~= nil and type(given.strict) ~= "boolean" then
    raise("seen: strict: expected true or false, got " .. builtins.kind(given.strict))
  end
  return builtins.mark({ seen = true, strict = given.strict, look_up = given.look_up, shape = shape and shape.shape }, "id")
end

return M
