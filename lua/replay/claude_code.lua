-- Claude Code: ~/.claude/projects/*/*.jsonl, a line for each piece of a message. A sub-agent's lines are in a file of their
-- own or among the others.
local conversation = require "replay/conversation"
local blocks = require "replay/blocks"
local is_object = conversation.is_object

local function is(value)
  local kind = value.type
  return type(kind) == "string" and (value.sessionId ~= nil or value.parentUuid ~= nil or value.leafUuid ~= nil
         or kind == "file-history-snapshot" or kind == "queue-operation"
         or ((kind == "user" or kind == "assistant") and is_object(value.message) and value.message.role ~= nil))
         and value.kind == nil and value.payload == nil
end

local function read(value, state)
  local kind, message = value.type, value.message
  state.id = value.sessionId or state.id
  local agent = value.agentId or (value.isSidechain and "sidechain") or nil
  local c = state.session(nil, agent)
  if kind == "system" and value.subtype == "compact_boundary" then c:compacted() end
  if (kind ~= "user" and kind ~= "assistant") or not is_object(message) then return true end
  local id = message.id
  if id == nil or id ~= c.message_id then c:message(value.timestamp) end -- a message is spread over several lines
  c.message_id, c.at = id, value.timestamp
  local answers = blocks(c, message.content)
  if kind == "user" and not answers and value.toolUseResult == nil and not value.isMeta and not value.isCompactSummary
     and not agent then
    c:begin_turn()
  end
  return true
end

return { name = "Claude Code", is = is, read = read }
