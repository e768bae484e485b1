-- LangSmith: exported runs. Those of type tool are the calls.
local conversation = require "replay/conversation"
local is_object = conversation.is_object

local function is(value) return type(value.run_type) == "string" and (value.inputs ~= nil or value.trace_id ~= nil) end

local function read(value, state)
  local extra = is_object(value.extra) and is_object(value.extra.metadata) and value.extra.metadata or {}
  local c = state.session(conversation.text(extra, "thread_id", "session_id", "conversation_id")
                          or conversation.text(value, "thread_id", "trace_id"))
  if value.run_type == "llm" then
    c:usage(is_object(value.outputs) and value.outputs.usage_metadata)
    c:usage(value)
  end
  if value.run_type ~= "tool" then return true end
  c:message(value.start_time)
  local inputs, output = value.inputs, value.outputs
  local inner = is_object(inputs) and conversation.parsed(inputs.input)
  if is_object(inner) then inputs = inner end -- as older tracers write the arguments
  output = is_object(output) and output.output or output
  local failed = is_object(output) and output.status == "error"
  if is_object(output) and output.tool_call_id ~= nil then output = output.content end
  c:both(nil, value.name, inputs, value.error == nil and output or nil, value.error or failed)
  return true
end

return { name = "LangSmith", is = is, read = read }
