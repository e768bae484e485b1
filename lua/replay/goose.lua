-- goose: the rows of its table `messages`, whose content is JSON in a text; its older *.jsonl, messages with created.
local conversation = require "replay/conversation"
local blocks = require "replay/blocks"
local each, parsed, is_array = conversation.each, conversation.parsed, conversation.is_array

local function content_of(value)
  local content = value.content_json or (value.created ~= nil and value.content) or nil
  return is_array(content) and content or parsed(content)
end

local function is(value)
  return value.role ~= nil and (value.content_json ~= nil or (value.created ~= nil and is_array(value.content)))
         or (value.working_dir ~= nil and value.description ~= nil)
end

local function read(value, state)
  local id, agent = conversation.text(value, "session_id"), nil
  if value.session_type == "sub_agent" then id, agent = conversation.text(value, "parent_session_id") or id, id end
  local c = state.session(id, agent)
  if not value.role then -- what the session is
    c:usage(value)
    return true
  end
  local content = content_of(value)
  c:message(value.created_timestamp or value.created)
  if blocks(c, content) or value.role ~= "user" then return true end
  for part in each(content) do
    if part.type == "text" then return c:begin_turn() or true end
  end
  return true
end

return { name = "goose", is = is, read = read }
