-- make demo: an agent and the real daemon, on a socket in a temporary directory, with policies/ and the local ledger.
-- The list below is what the agent sends; demo_stage.lua sends it, shows the replies and compares the verdicts with the
-- expected ones. The exit code is 0 only if every verdict matches.
--
--   luajit tests/support/demo.lua build/toolgate

local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = here .. "/?.lua;" .. package.path
local stage = require "demo_stage"

local function turn(goal) return { goal = goal } end
local function call(tool, arguments, expected, because)
  return { tool = tool, arguments = arguments, expected = expected, because = because }
end
local own = stage.own_tool

local GARDEN = "9d0e6f52-1c3b-4e8a-8f27-7b5a4c3d2e11"
local FRIDAY = '{"action":"by_time_span","start":"2026-05-08T00:00:00Z","end":"2026-05-09T00:00:00Z"}'
local function roses(due)
  return ('{"title":"Prune the roses","project_id":"%s","due_date":"%s"}'):format(GARDEN, due)
end

local dialogue = {
  turn "What is on Monday, and how do I reach the people who come?",
  call("get_events", '{"action":"by_time_span","start":"Monday","end":"2026-05-05T00:00:00Z"}',
       "repair invalid_arguments", "a date in words"),
  call("get_events", '{"action":"by_time_span","start":"2026-05-04T00:00:00Z","end":"2026-05-05T00:00:00Z"}',
       "pass ok", "corrected on the second try"),
  call("get_events", '{"action":"by_ids","ids":"e2","limit":"10"}',
       "pass ok", "repaired by the gateway: one id becomes a list of one, and by_ids drops limit"),
  call("lookup_contact", '{"action":"get","contact_id":"chloe-martin"}',
       "refuse fabricated_id", "an id that neither a tool nor the user gave"),
  call("lookup_contact", '{"action":"search","query":"chloe"}',
       "pass ok", "the agent looks her up; the result names the next call"),
  call("lookup_contact", '{"action":"Get","contact_id":"c4"}',
       "pass ok", "the session has seen this id; the capital is repaired"),
  call("lookup_contact_place", '{"contact_query":"Ben"}',
       "refuse unknown_tool", "a tool that does not exist"),
  call("lookup_contact_places", '{"contact_query":"Ben"}',
       "ask need_user_input", "two people have that name: the user decides"),

  call("create_task", '{"title":"Call Ben"}',
       "refuse unknown_tool", "the user asked a question, so tools that change something are hidden (policies/gateway.lua)"),

  turn "Has everything that customer cust-7 ordered been delivered?",
  call("search_orders", '{"custommer_id":"cust-7","status":"deliverd"}',
       "repair invalid_arguments", "two mistakes, reported at once"),
  call("search_orders", '{"customer_id":"cust-7","status":"delivered"}',
       "repair semantic_garbage", "an empty first page of a longer list"),
  call("search_orders", '{"customer_id":"cust-7","status":"delivered","page":2}',
       "pass ok", "the next page"),
  call("search_orders", '{"customer_id":"cust-7"}',
       "pass partial_data", "there is more, and the result has the arguments that fetch it"),

  turn "Am I free on Friday?",
  call("get_events", FRIDAY, "pass ok", "nothing on Friday"),
  call("get_events", FRIDAY, "pass ok", "the same call: it passes, with a note"),
  call("get_events", FRIDAY, "refuse loop", "a third time: refused before it runs"),
  call("get_events", FRIDAY, "refuse loop", "a fourth time"),
  call("get_events", FRIDAY, "halt loop", "a fifth time: end the run"),

  turn "Write down a task for Friday: prune the roses",
  call("create_task", roses "Friday", "repair invalid_arguments", "two attempts are left"),
  call("create_task", roses "next Friday", "repair invalid_arguments", "one attempt is left"),
  call("create_task", roses "8.5.2026", "refuse invalid_arguments", "no attempt is left"),
  call("create_task", roses "2026-05-08T17:00:00Z", "pass ok", "valid arguments pass in any case"),

  turn "Get the house ready for the evening",
  call("home_assistant", '{"action":"call_tool","tool_name":"light_turn_on","arguments":{"entity_id":"light.hall"}}',
       "pass ok", "a lamp needs no confirmation"),
  call("home_assistant", '{"action":"call_tool","tool_name":"lock_unlock","arguments":{"entity_id":"lock.front_door"}}',
       "ask need_user_input", "a door does: the user did not ask to unlock it"),

  turn "What will the weather be in Brno?",
  own.registers('{"name":"forecast","description":"Weather of the next days","inputSchema":{"type":"object",'
                .. '"properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}'),
  own.checks("forecast", '{"city":"Brno","days":"2"}', "pass ok", "the agent runs this tool itself, and checks first"),
  own.reports('{"result":{"days":[{"sky":"clear"},{"sky":"rain"}]}}', "pass ok", "then it reports the result"),
  own.checks("forecast", '{"city":"Brno","days":3}', "pass ok", "another call"),
  own.reports('{"error":{"message":"upstream timed out after 30 s","transient":true}}',
              "wait transient", "which fails for the moment"),
}

local root = here:gsub("tests/support$", "")
os.exit(stage.play(dialogue, { binary = arg[1] or "build/toolgate", policies = root .. "policies" }))
