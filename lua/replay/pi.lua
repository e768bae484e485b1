-- pi: ~/.pi/agent/sessions/*/*.jsonl, an entry a line after one of what the session is. Entries form a tree: of a branch that
-- was left the calls were made, too.
local conversation = require "replay/conversation"
local each, is_object = conversation.each, conversation.is_object

local KINDS = { message = true, compaction = true, branch_summary = true, model_change = true, thinking_level_change = true,
                custom = true, custom_message = true, label = true, session_info = true }

local function is(value)
  local kind = value.type
  return kind == "session" and value.cwd ~= nil or (KINDS[kind] and value.id ~= nil and value.timestamp ~= nil
         and (kind ~= "message" or is_object(value.message))) or false
end

local function read(value, state)
  local kind, m = value.type, value.message
  if kind == "session" then state.id = value.id end
  local c = state.session()
  if kind == "compaction" then c:compacted() end
  if kind ~= "message" then return true end
  c:message(value.timestamp)
  if m.role == "toolResult" then
    c:result(m.toolCallId, m.content, m.isError)
  elseif m.role == "assistant" then
    for part in each(m.content) do
      if part.type == "toolCall" then c:call(part.id, part.name, part.arguments) end
    end
    c:usage(m.usage)
  elseif m.role == "user" then
    c:begin_turn()
  end
  return true
end

return { name = "pi", is = is, read = read }
