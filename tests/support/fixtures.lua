-- Small policies that the specs share, each as the source of one file.
local M = {}

-- Reads; returns its argument.
M.echo = [==[
-- echo: returns a string. Read only.
return tool "echo" {
  description = "Say a text back.",
  schema = json [[{"type":"object","properties":{"text":{"type":"string","description":"What to say"}},
                   "required":["text"]}]],
  effects = "read",
  run = function(args) return { said = args.text } end,
}
]==]

-- A closed schema, with one parameter for each kind of problem in the feedback.
M.create_task = [==[
-- create_task: files a task. Writes.
return tool "create_task" {
  description = "File a task in a project.",
  use_when = "the user wants something remembered as work",
  schema = json [[{"type":"object","additionalProperties":false,
    "properties":{
      "title":{"type":"string","minLength":1,"description":"What is to be done"},
      "count":{"type":"integer","description":"How many"},
      "name":{"type":"string"},
      "due_date":{"type":"string","format":"date-time"},
      "tags":{"type":"array","items":{"type":"string"}},
      "status":{"type":"string","enum":["placed","shipped","delivered"]},
      "items":{"type":"array","items":{"type":"object","properties":{"price":{"type":"number","minimum":0}}}}
    },
    "required":["title"]}]],
  effects = "write",
  run = function(args) return { id = "t-1", title = args.title } end,
}
]==]

-- A tool whose outcome is its argument.
M.outcome = [==[
-- outcome: returns the outcome that its argument names. For specs.
return tool "outcome" {
  description = "End as told.",
  schema = json [[{"type":"object","properties":{"how":{"type":"string"},"n":{"type":"integer"}},"required":["how"]}]],
  effects = "read",
  check = function(args)
    if args.how == "repair" then
      return repair { path = "how", code = "not_that", message = "must not be 'repair'", suggest = { how = "ok" } }
    end
    if args.how == "refuse" then return refuse("not_here", "this is not done here", "do something else") end
    if args.how == "ask" then return ask("which one?", { "red", "blue" }) end
    if args.how == "check_throws" then error("the check broke") end
  end,
  run = function(args)
    if args.how == "transient" then return transient("the shop is closed", 7) end
    if args.how == "failed" then return failed("no_such_order", "there is no order 12") end
    if args.how == "retry" then return retry "say it with other words" end
    if args.how == "throws" then error("the run broke") end
    return { how = args.how, n = args.n }
  end,
  result = function(result)
    if result.how == "partial" then return partial("more_pages", "more follow", { how = "partial", n = 2 }) end
    if result.how == "garbage" then return garbage("empty_first_page", "the page is empty", "widen the time span") end
    if result.how == "broken" then return broken("truncated_response", "the list ends in the middle") end
    if result.how == "need_user" then return need_user("which of the two?", { "a", "b" }) end
    if result.how == "facts" then
      return ok { coverage = "SATISFIED", facts = { colour = "red" },
                  follow_up = { tool = "echo", args = { text = "next" } } }
    end
    if result.how == "result_throws" then error("the judging broke") end
  end,
}
]==]

local ROOT = require("posix.unistd").getcwd()

-- The entry of an upstream that is tests/support/PROGRAM.py, as the configuration has it, with a comma behind it; `more`: its
-- further keys.
function M.upstream(name, program, environment, more)
  local words = {}
  for key, value in pairs(environment) do words[#words + 1] = ("%s = %q"):format(key, value) end
  return ("%s = { command = 'python3', args = { '-SE', '%s/tests/support/%s.py' }, env = { %s }, %s },"):format(name, ROOT,
    program, table.concat(words, ", "), more or "")
end

-- A configuration with this upstream alone.
function M.serving(...) return "return { upstreams = { " .. M.upstream(...) .. " } }" end

-- Definitions of tools that the agent runs, for --tools.
M.agent_tools = [==[
[{"name":"get_weather","description":"The weather in a city.",
  "inputSchema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},
                 "required":["city"],"additionalProperties":false},
  "annotations":{"readOnlyHint":true}},
 {"name":"book_table","description":"Book a table.",
  "inputSchema":{"type":"object","properties":{"where":{"type":"string"},"seats":{"type":"integer"}},
                 "required":["where"]}}]
]==]

return M
