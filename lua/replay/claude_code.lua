-- Claude Code: ~/.claude/projects/*/*.jsonl, a line for each piece of a message. A sub-agent's lines are in a file of their
-- own or among the others.
local conversation = require "replay/conversation"
local blocks = require "replay/blocks"
local is_object = conversation.is_object

local REMEMBERED = 65536
local once = conversation.remembered(REMEMBERED)

-- The sub-agent of a line: older versions do not name it, but its lines follow from the one that began it.
local function agent_of(value, state)
  if value.agentId or not value.isSidechain then return value.agentId end
  state.begun = state.begun or conversation.remembered(REMEMBERED)
  local agent = state.begun[value.parentUuid or ""] or value.uuid or "sub-agent"
  if value.uuid then state.begun[value.uuid] = agent end
  return agent
end

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
  local agent = agent_of(value, state)
  local c = state.session(nil, agent)
  c.once = once
  if kind == "system" and value.subtype == "compact_boundary" then c:compacted() end
  if (kind ~= "user" and kind ~= "assistant") or not is_object(message) then return true end
  local id = message.id
  if id == nil or id ~= c.message_id then c:message(value.timestamp) end -- a message is spread over several lines
  c.message_id, c.at = id, value.timestamp
  local answers = blocks(c, message.content)
  c:usage(message.usage, id)
  if kind == "user" and not answers and value.toolUseResult == nil and not value.isMeta and not value.isCompactSummary then
    c:begin_turn()
  end
  return true
end

return { name = "Claude Code", is = is, read = read }
