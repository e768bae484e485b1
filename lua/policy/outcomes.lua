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

local function meant(name, names)
  local closest = builtins.closest(name, names)
  return closest and " (did you mean '" .. closest .. "'?)" or ""
end

local function text(word, name, value)
  if type(value) == "number" then value = tostring(value) end
  if type(value) == "string" then return value end
  raise(word .. ": " .. name .. ": expected a string, got " .. builtins.kind(value))
end

-- The words that take their values in order, not by name.
local function in_order(word, form, first)
  if type(first) == "table" then
    raise(word .. ": expected its values in order, " .. word .. form .. ", got a table")
  end
end

local function optional_text(word, name, value)
  if value == nil then return nil end
  if type(value) == "number" then value = tostring(value) end
  if type(value) == "string" then return value end
  raise(word .. ": " .. name .. ": expected a string or nothing, got " .. builtins.kind(value))
end

-- Raises an error for a field that the vocabulary does not document.
local function taking(word, of)
  local names, known = builtins.fields(of or word), {}
  for _, name in ipairs(names) do known[name] = true end
  return function(fields)
    for name in pairs(fields) do
      if not known[name] then
        raise(word .. ": unknown field '" .. tostring(name) .. "'" .. meant(tostring(name), names))
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
  optional_text("repair", "path", given.path)
  optional_text("repair", "code", given.code)
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

function M.refuse(code, message, hint)
  in_order("refuse", "(code, message, hint)", code)
  if message == nil then code, message = "refused", code end
  return outcome("refuse", { code = text("refuse", "code", code), detail = text("refuse", "message", message),
                             hint = optional_text("refuse", "hint", hint) })
end

function M.ask(question, choices)
  in_order("ask", "(question, choices)", question)
  if choices ~= nil then a_table("ask", choices, "a list of choices") end
  return outcome("ask", { detail = text("ask", "question", question), choices = choices })
end

M.need_user = M.ask

function M.retry(message, hint)
  in_order("retry", "(message, hint)", message)
  return outcome("retry", { detail = text("retry", "message", message), hint = optional_text("retry", "hint", hint) })
end

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
        .. meant(tostring(coverage), COVERAGE))
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
                              next_args = next_args, hint = optional_text("partial", "hint", hint) })
end

function M.garbage(code, detail, hint)
  in_order("garbage", "(code, detail, hint)", code)
  return outcome("garbage", { code = text("garbage", "code", code), detail = text("garbage", "detail", detail),
                              hint = optional_text("garbage", "hint", hint) })
end

function M.broken(code, detail)
  in_order("broken", "(code, detail)", code)
  return outcome("broken", { code = text("broken", "code", code), detail = text("broken", "detail", detail) })
end

function M.transient(detail, after)
  in_order("transient", "(detail, after_seconds)", detail)
  if after ~= nil and (type(after) ~= "number" or after < 0) then
    raise("transient: after: expected seconds (a number from 0), got " .. builtins.kind(after))
  end
  return outcome("transient", { detail = text("transient", "detail", detail), after_s = after })
end

function M.failed(code, detail, hint)
  in_order("failed", "(code, detail, hint)", code)
  if detail == nil then code, detail = "failed", code end
  return outcome("failed", { code = text("failed", "code", code), detail = text("failed", "detail", detail),
                             hint = optional_text("failed", "hint", hint) })
end

return M
