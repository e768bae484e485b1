-- The return values of hooks, as marked tables that src/policy/policy_hooks.c reads: decisions (repair, refuse, ask, retry)
-- and judgements (ok, partial, garbage, …). Each word checks its arguments, so that an example finds a mistake.

local builtins = ...
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}

local COVERAGE = { "SATISFIED", "NEEDS_MORE_TOOLS", "NEED_USER_INPUT", "FAILED" }

local function outcome(kind, fields)
  fields.kind = kind
  return builtins.mark(fields, "outcome")
end

local function text(word, name, value, is_optional)
  if is_optional and value == nil then return nil end
  if type(value) == "number" then value = tostring(value) end
  if type(value) == "string" then return value end
  raise(word .. ": " .. name .. ": expected a string" .. (is_optional and " or nothing" or "") .. ", got "
        .. builtins.kind(value))
end

-- The words that take their values in order, not by name.
local function in_order(word, form, first)
  if type(first) == "table" then
    raise(word .. ": expected its values in order, " .. word .. form .. ", got a table")
  end
end

-- A word of strings alone: their names, and the code if only the second is given. A message is the outcome's detail.
local function word_of_texts(word, names, code)
  local form = "(" .. table.concat(names, ", ") .. ")"
  M[word] = function(first, second, third)
    in_order(word, form, first)
    if code and second == nil then first, second = code, first end
    local given, fields = { first, second, third }, {}
    for at, name in ipairs(names) do
      fields[name == "message" and "detail" or name] = text(word, name, given[at], name == "hint")
    end
    return outcome(word, fields)
  end
end

-- Raises an error for a field that the vocabulary does not document.
local function taking(word, of)
  local names, known = builtins.fields(of or word), {}
  for _, name in ipairs(names) do known[name] = true end
  return function(fields)
    for name in pairs(fields) do
      if not known[name] then
        raise(word .. ": unknown field '" .. tostring(name) .. "'" .. builtins.hint(tostring(name), names))
      end
    end
  end
end

local only_problem, only_ok, only_tool_return = taking "repair", taking "ok", taking "tool_return"
local only_follow_up = taking("ok: follow_up", "ok.follow_up")

local function a_table(word, value, form)
  if type(value) ~= "table" then
    raise(word .. ": expected " .. form .. ", got " .. builtins.kind(value))
  end
  return value
end

-- ---- deciding ----------------------------------------------------------------------------------------------

local function problem(given)
  a_table("repair", given, "{ path = …, message = … }")
  only_problem(given)
  text("repair", "message", given.message)
  text("repair", "path", given.path, true)
  text("repair", "code", given.code, true)
  return given
end

function M.repair(given)
  if type(given) == "string" then given = { message = given } end
  a_table("repair", given, "{ path = …, message = … } or a list of them")
  local problems = {}
  if given[1] == nil then
    problems[1] = problem(given)
  else
    for at, one in ipairs(given) do problems[at] = problem(one) end
  end
  return outcome("repair", { problems = problems })
end

word_of_texts("refuse", { "code", "message", "hint" }, "refused")
word_of_texts("retry", { "message", "hint" })

function M.ask(question, choices)
  in_order("ask", "(question, choices)", question)
  if choices ~= nil then a_table("ask", choices, "a list of choices") end
  return outcome("ask", { detail = text("ask", "question", question), choices = choices })
end

M.need_user = M.ask

-- ---- running -----------------------------------------------------------------------------------------------

function M.tool_return(given)
  a_table("tool_return", given, "{ value = …, content = …, metadata = … }")
  only_tool_return(given)
  if given.content ~= nil then
    a_table("tool_return: content", given.content, "a list of blocks like { type = \"text\", text = \"…\" }")
    local fault = builtins.content_fault(given.content)
    if fault then raise("tool_return: " .. fault) end
  end
  if given.metadata ~= nil then a_table("tool_return: metadata", given.metadata, "a table with names") end
  return outcome("value", { value = given.value, content = given.content, metadata = given.metadata })
end

-- ---- judging -----------------------------------------------------------------------------------------------

local function coverage_of(word, coverage)
  if coverage == nil then return nil end
  for _, name in ipairs(COVERAGE) do
    if coverage == name then return name end
  end
  raise(word .. ": coverage: expected " .. table.concat(COVERAGE, ", ") .. ", got " .. tostring(coverage)
        .. builtins.hint(tostring(coverage), COVERAGE))
end

local function follow_up_of(follow_up)
  if follow_up == nil then return nil end
  a_table("ok", follow_up, "follow_up = { tool = …, args = … }")
  only_follow_up(follow_up)
  text("ok: follow_up", "tool", follow_up.tool)
  return follow_up
end

local function cost_of(cost)
  if cost == nil or (type(cost) == "number" and cost >= 0 and cost <= 1e8) then return cost end
  raise("ok: cost: expected a number from 0 to 100000000, got "
        .. (type(cost) == "number" and tostring(cost) or builtins.kind(cost)))
end

function M.ok(given)
  if type(given) == "string" then given = { coverage = given } end
  given = given or {}
  a_table("ok", given, "{ coverage = …, facts = …, follow_up = … }")
  only_ok(given)
  return outcome("ok", { coverage = coverage_of("ok", given.coverage), facts = given.facts,
                         follow_up = follow_up_of(given.follow_up), cost = cost_of(given.cost) })
end

function M.partial(code, detail, next_args, hint)
  in_order("partial", "(code, detail, next_args, hint)", code)
  if next_args ~= nil then a_table("partial", next_args, "next_args as a table of arguments") end
  return outcome("partial", { code = text("partial", "code", code), detail = text("partial", "detail", detail),
                              next_args = next_args, hint = text("partial", "hint", hint, true) })
end

word_of_texts("garbage", { "code", "detail", "hint" })
word_of_texts("broken", { "code", "detail" })
word_of_texts("failed", { "code", "detail", "hint" }, "failed")

function M.transient(detail, after)
  in_order("transient", "(detail, after_seconds)", detail)
  if after ~= nil and (type(after) ~= "number" or after < 0) then
    raise("transient: after: expected seconds (a number from 0), got " .. builtins.kind(after))
  end
  return outcome("transient", { detail = text("transient", "detail", detail), after_s = after })
end

return M
