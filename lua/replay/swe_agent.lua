-- SWE-agent: *.traj. Its history has the calls as a model made them; without any there, the trajectory's actions are read.
local conversation = require "replay/conversation"
local each, is_object, is_array = conversation.each, conversation.is_object, conversation.is_array

-- A long document comes in its steps.
local function is_step(value) return type(value.action) == "string" and value.execution_time ~= nil end
local function is(value)
  return is_array(value.trajectory) and (is_array(value.history) or is_object(value.info)) or is_step(value)
end

local function read_step(c, step)
  c:message()
  if type(step.action) == "string" and step.action ~= "" then
    c:both(nil, step.action:match "^%S+" or "bash", { command = step.action }, step.observation)
  end
end

local function read_history(c, history)
  local calls = 0
  for m in each(history) do
    c:message()
    for call in each(m.tool_calls) do
      local f = call["function"]
      if is_object(f) then
        c:call(call.id, f.name, f.arguments)
        calls = calls + 1
      end
    end
    if m.role == "tool" and is_array(m.tool_call_ids) then
      local content = m.content
      if is_array(content) and is_object(content[1]) then content = content[1].text end
      c:result(m.tool_call_ids[1], type(content) == "string" and content:gsub("^OBSERVATION:\n", "") or content)
    elseif m.role == "user" and m.message_type ~= "observation" then
      c:begin_turn()
    end
  end
  return calls
end

local function read(value, state)
  local c = state.session()
  if is_object(value.info) then c:usage(value.info.model_stats) end
  if read_history(c, value.history) > 0 then return true end
  if is_step(value) then read_step(c, value) end
  for step in each(value.trajectory) do read_step(c, step) end
  return true
end

return { name = "SWE-agent", is = is, read = read }
