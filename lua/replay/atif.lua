-- ATIF, the format of agent trajectories that Harbor writes: steps with calls and what was observed. It has no mark of a
-- failure but in `extra`.
local conversation = require "replay/conversation"
local each, is_object, is_array = conversation.each, conversation.is_object, conversation.is_array

local function is_step(value) return value.step_id ~= nil and value.source ~= nil end -- a long document comes in its steps
local function is(value) return type(value.schema_version) == "string" and is_array(value.steps) or is_step(value) end

local function read_step(c, step)
  c:message(step.timestamp)
  if step.source == "user" then c:begin_turn() end
  for call in each(step.tool_calls) do c:call(call.tool_call_id, call.function_name, call.arguments) end
  c:usage(step.metrics)
  local seen = is_object(step.observation) and step.observation.results
  for result in each(seen) do
    c:result(result.source_call_id, result.content, is_object(result.extra) and result.extra.is_error)
  end
end

local function read(value, state)
  local c = state.session(conversation.text(value, "session_id", "trajectory_id"))
  if is_step(value) then read_step(c, value) end
  for step in each(value.steps) do read_step(c, step) end
  return true
end

return { name = "ATIF", is = is, read = read }
