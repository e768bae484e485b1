-- OpenHands: a list of actions and observations (version 0), or an event a file or line (version 1).
local conversation = require "replay/conversation"
local parsed, is_object = conversation.parsed, conversation.is_object

local KINDS = { ActionEvent = true, ObservationEvent = true, AgentErrorEvent = true, UserRejectObservation = true,
                MessageEvent = true, Condensation = true, SystemPromptEvent = true }
-- Actions that are no calls of a tool.
local NO_CALLS = { message = true, system = true, change_agent_state = true, recall = true, think = true, finish = true,
                   condensation = true, null = true }

local function is(value)
  return KINDS[value.kind] ~= nil
         or (value.source ~= nil and (value.action ~= nil or value.observation ~= nil)
             and (value.args ~= nil or value.extras ~= nil or value.cause ~= nil or value.content ~= nil))
end

local function read_usage(c, value, meta)
  local metrics, reply = value.llm_metrics, meta.model_response
  if is_object(metrics) then return c:usage(metrics.accumulated_token_usage, "total") end
  if is_object(reply) then c:usage(reply.usage, conversation.text(reply, "id")) end
end

local function read_event(c, value)
  local kind, id = value.kind, value.tool_call_id
  c:message(value.timestamp)
  if kind == "ActionEvent" then
    local call = value.tool_call
    local arguments = is_object(call) and (call.arguments or (is_object(call["function"]) and call["function"].arguments))
    c:call(id, value.tool_name, arguments or value.action)
  elseif kind == "ObservationEvent" then
    local seen = value.observation
    c:result(id, is_object(seen) and seen.content or parsed(seen), is_object(seen) and seen.is_error)
  elseif kind == "AgentErrorEvent" then
    c:result(id, value.error, value.error or true)
  elseif kind == "UserRejectObservation" then
    c:result(id, value.rejection_reason or value.reason, true)
  elseif kind == "MessageEvent" and value.source == "user" then
    c:begin_turn()
  elseif kind == "Condensation" then
    c:compacted()
  end
end

local function read(value, state)
  local c = state.session(conversation.text(value, "conversation_id", "sid"))
  if value.kind then
    read_event(c, value)
    return true
  end
  local meta = is_object(value.tool_call_metadata) and value.tool_call_metadata or {}
  if value.action then
    c:message(value.timestamp)
    if value.action == "message" and value.source == "user" then c:begin_turn() end
    if NO_CALLS[value.action] or value.source == "user" then return true end
    c:call(meta.tool_call_id or conversation.text(value, "id"), meta.function_name or value.action, value.args)
    read_usage(c, value, meta)
  elseif meta.tool_call_id or value.cause then
    local exit = is_object(value.extras) and is_object(value.extras.metadata) and value.extras.metadata.exit_code
    local failed = value.observation == "error" or value.success == false or (type(exit) == "number" and exit > 0)
    c:result(meta.tool_call_id or conversation.text(value, "cause"), value.content or value.message, failed)
  end
  return true
end

return { name = "OpenHands", is = is, read = read }
