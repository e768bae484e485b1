-- What call and check share: a call's arguments and the members of its _meta, from the command line or stdin.
local ui = require "ui"
local params = {}

-- JSON on one line, and its value.
local function read(given, otherwise)
  local value, parts, json, fault = cli.parse(given)
  if value == nil then fault = parts end
  if fault then fail(otherwise, fault) end
  return json, value
end

-- `given`: JSON; "-": JSON on stdin; nil: {}. As JSON of one line.
function params.arguments(given)
  return (read(given == "-" and cli.stdin() or given or "{}",
               "the arguments are not JSON: %s; quote them for the shell: '{\"key\": \"value\"}'"))
end

-- --context as JSON of one line; nil: not given.
function params.context(given)
  if not given then return end
  local json, value = read(given, "--context: expected JSON: %s")
  if not ui.is_object(value) then fail "--context: expected an object, as in '{\"role\": \"guest\"}'" end
  return json
end

-- The params of tools/call and toolgate/check, as JSON. `trace`: with each stage.
function params.request(o, arguments, context, trace)
  local meta = {}
  local function add(name, json) meta[#meta + 1] = ('"dev.toolgate/%s":%s'):format(name, json) end
  if o.session then add("session", cli.json(o.session)) end
  if o.goal then add("goal", cli.json(o.goal)) end
  if context then add("context", context) end
  if o.turn then add("turn", cli.json(o.turn)) end
  if trace then add("trace", "true") end
  return ('{"name":%s,"arguments":%s%s}'):format(cli.json(o[1]), arguments,
         #meta > 0 and ',"_meta":{' .. table.concat(meta, ",") .. "}" or "")
end

params.goal    = text { name = "goal", argument = "TEXT", words = "the user's request, in words" }
params.said    = text { name = "context", argument = "JSON", words = "what the agent's program says of the call: call.context" }
params.turn    = number { name = "turn", argument = "N", words = "the user turn of the call" }

return params
