-- opencode: `opencode export`, a session with its messages and parts; a message with its parts, or a part, by itself.
local conversation = require "replay/conversation"
local each, is_object, is_array = conversation.each, conversation.is_object, conversation.is_array

local function is_part(value) return value.type == "tool" and value.callID ~= nil and is_object(value.state) end
local function is_message(value) return is_object(value.info) and is_array(value.parts) and value.info.role ~= nil end

local function is(value)
  local first = is_array(value.messages) and value.messages[1]
  return is_part(value) or is_message(value) or (is_object(first) and is_message(first))
         or (value.sessionID ~= nil and value.messageID ~= nil)
end

local function read_part(c, part)
  local state = part.state
  if part.type == "compaction" then c:compacted() end
  if part.type == "step-finish" then c:usage(part.tokens) end
  if not is_part(part) then return part.type == "step-finish" end
  local time = is_object(state.time) and state.time.start
  c.at = time or c.at
  if state.status == "error" then
    c:both(part.callID, part.tool, state.input, nil, state.error or true)
  else
    c:both(part.callID, part.tool, state.input, state.output)
  end
end

-- A sub-agent's session names its parent's.
local function session_of(state, value)
  local parent = value.parentSession or state.parent
  return state.session(parent or value.sessionID, parent and value.sessionID)
end

local function read_message(state, message)
  local info = message.info
  local c = session_of(state, info)
  c:message(is_object(info.time) and info.time.created or nil)
  if info.role == "user" then c:begin_turn() end
  local is_counted = false
  for part in each(message.parts) do is_counted = read_part(c, part) or is_counted end
  if not is_counted then c:usage(info.tokens) end
end

local function read(value, state)
  local session = value.session or value.info
  if is_object(session) and is_array(value.messages) then state.id, state.parent = session.id, session.parentID end
  for message in each(value.messages) do read_message(state, message) end
  if is_message(value) then
    read_message(state, value)
  elseif value.messageID then
    local c = session_of(state, value)
    if c.message_id ~= value.messageID then c:message() end
    c.message_id = value.messageID
    read_part(c, value)
  end
  return true
end

return { name = "opencode", is = is, read = read }
