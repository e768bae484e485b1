-- Langfuse: observations as exported (snake_case) or from its API (camelCase), or a trace with its observations. Those of
-- type TOOL are the calls.
local conversation = require "replay/conversation"
local each, text, is_object, is_array = conversation.each, conversation.text, conversation.is_object, conversation.is_array

local function is_observation(value)
  return type(value.type) == "string" and (value.trace_id ~= nil or value.traceId ~= nil)
         and (value.start_time ~= nil or value.startTime ~= nil)
end

local function is(value)
  local first = is_array(value.observations) and value.observations[1]
  return is_observation(value) or (is_object(first) and is_observation(first))
end

local function read_observation(o, state, session)
  local c = state.session(text(o, "session_id", "sessionId") or session or text(o, "trace_id", "traceId"))
  if o.type == "GENERATION" then c:usage(o.usage_details or o.usageDetails or o.usage or o) end
  if o.type ~= "TOOL" then return end
  local failed = o.level == "ERROR" and (o.status_message or o.statusMessage or true)
  c:message(o.start_time or o.startTime)
  local output = conversation.parsed(o.output)
  c:both(nil, o.name, conversation.parsed(o.input), not failed and (output == nil and "" or output) or nil, failed)
end

local function read(value, state)
  if is_observation(value) then read_observation(value, state) end
  for o in each(value.observations) do read_observation(o, state, text(value, "sessionId", "session_id")) end
  return true
end

return { name = "Langfuse", is = is, read = read }
