-- What call and check share: a call's arguments and the members of its _meta, from the command line or stdin.
local params = {}

-- `given`: JSON; "-": JSON on stdin; nil: {}. As JSON of one line.
function params.arguments(given)
  local value, parts, json, fault = cli.parse(given == "-" and cli.stdin() or given or "{}")
  if value == nil then fault = parts end
  if fault then
    fail("the arguments are not JSON: %s; quote them for the shell: '{\"key\": \"value\"}'", fault)
  end
  return json
end

-- --context as JSON of one line; nil: not given.
function params.context(given)
  if not given then return end
  local value, parts, json, fault = cli.parse(given)
  if value == nil then fault = parts end
  if fault then fail("--context: expected JSON: %s", fault) end
  if type(value) ~= "table" or not cli.keys(value) then
    fail "--context: expected an object, as in '{\"role\": \"guest\"}'"
  end
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
params.said    = text { name = "context", argument = "JSON",
                        words = "what the agent's program says of the call: call.context" }
params.turn    = number { name = "turn", argument = "N", words = "the user turn of the call" }

return params
