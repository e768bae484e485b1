-- Writes many typical policies, to measure their cost: about twenty lines, a schema of six fields, two rules, a check
-- and three examples.
--   luajit tests/bench/many_policies.lua FOLDER COUNT

local many = {}

-- A tool name with four digits, so that names differ and sort.
local template = [==[
-- find_items_%NNNN%: items of shelf %NNNN%, by id or by time span. Reads only.
return tool "find_items_%NNNN%" {
  description = "Find items of shelf %NNNN% by their ids, or by the span of time in which they changed.",
  schema = params {
    action = enum { "by_ids", "by_time_span", "Which way to look" },
    ids    = optional(list(str, "Ids from an earlier result")),
    start  = optional(datetime "From when on"),
    finish = optional(datetime "Until when"),
    limit  = optional(int { min = 1, max = 500, "At most so many" }),
    note   = optional(str { max = 200, "Why it is looked for" }),
  },
  effects = "read",
  rules = { when { action = "by_ids" } : needs "ids" : drops "limit",
            when { action = "by_time_span" } : needs "start, finish" },
  check = function(args)
    if args.start and args.finish and time(args.finish) < time(args.start) then
      return repair { path = "finish", code = "before_start", message = "must not be before 'start'" }
    end
  end,
  examples = {
    { "limit goes when reading by id", args = { action = "by_ids", ids = { "e1" }, limit = 10 },
      gives = "pass", becomes = { action = "by_ids", ids = { "e1" } } },
    { "ids are asked for", args = { action = "by_ids" }, gives = "repair", says = "ids" },
    { "no end before its start", args = { action = "by_time_span", start = "2026-05-02T10:00:00Z",
      finish = "2026-05-01T10:00:00Z" }, gives = "repair", says = "must not be before" },
  },
}
]==]

local short_template = [==[
-- find_items_%NNNN%: items of shelf %NNNN%. Reads only.
return tool "find_items_%NNNN%" {
  description = "Find items of shelf %NNNN% by their ids, or all that changed since a time.",
  schema = params {
    action = enum { "by_ids", "by_time_span", "Which way to look" },
    ids    = optional(list(str, "Ids from an earlier result")),
    start  = optional(datetime "From when on"),
    limit  = optional(int { min = 1, max = 500, "At most so many" }),
  },
  effects = "read",
  rules = { when { action = "by_ids" } : needs "ids" : drops "limit" },
  check = function(args)
    if args.limit and args.limit > 400 then
      return repair { path = "limit", code = "too_large", message = "must be at most 400" }
    end
  end,
  examples = {
    { "ids are asked for", args = { action = "by_ids" }, gives = "repair", says = "ids" },
  },
}
]==]

function many.text(number)
  return (template:gsub("%%NNNN%%", ("%05d"):format(number)))
end

function many.short_text(number)
  return (short_template:gsub("%%NNNN%%", ("%05d"):format(number)))
end

function many.write(folder, count)
  for i = 1, count do
    local file = assert(io.open(("%s/find_items_%05d.lua"):format(folder, i), "w"))
    file:write(many.text(i))
    file:close()
  end
end

if arg and arg[0] and arg[0]:find "many_policies.lua$" then
  many.write(assert(arg[1], "a folder is needed"), tonumber(arg[2]) or 1000)
end

return many
