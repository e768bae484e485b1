-- gemini-cli: ~/.gemini/tmp/*/chats/session-*.jsonl, a message a line after one of metadata; before, one object with
-- messages. A message that is written again with the same id replaces the one before: its calls are read once.
local conversation = require "replay/conversation"
local each, is_object, is_array = conversation.each, conversation.is_object, conversation.is_array

local SEEN_MAX = 65536

local KINDS = { user = true, gemini = true, info = true, error = true, warning = true }

local function is(value, state)
  local kind = value.type
  return kind == "gemini" or (value.sessionId ~= nil and (value.projectHash ~= nil or value.kind == "main"
         or value.kind == "subagent")) or (state.gemini and (value["$set"] ~= nil or value["$rewindTo"] ~= nil
         or KINDS[kind])) or false
end

local function read_call(c, seen, call)
  if call.id and seen[call.id] then return end
  if call.status ~= nil and call.status ~= "success" and call.status ~= "error" and call.status ~= "cancelled" then return end
  if call.id then seen[call.id] = true end
  local result = call.result
  local response = is_array(result) and is_object(result[1]) and result[1].functionResponse
  if is_object(response) and response.response ~= nil then
    result = is_object(response.response) and response.response.output or response.response
  end
  c:both(call.id, call.name, call.args, result or call.resultDisplay, call.status == "error" or call.status == "cancelled")
end

local function read_message(c, state, message)
  c:message(message.timestamp)
  state.seen = state.seen or conversation.remembered(SEEN_MAX)
  for call in each(message.toolCalls) do read_call(c, state.seen, call) end
  c:usage(message.tokens, conversation.text(message, "id"))
  if message.type == "user" then c:begin_turn() end
end

local function read(value, state)
  state.gemini = true
  if value.sessionId then
    state.id = value.sessionId
    if value.kind == "subagent" then -- it lies in a folder that has its parent's name
      state.id, state.agent = state.file:match "/chats/([^/]+)/[^/]+$" or state.id, state.name
    end
  end
  local c = state.session(nil, state.agent)
  if value.type then read_message(c, state, value) end
  for message in each(value.messages) do read_message(c, state, message) end
  return true
end

return { name = "gemini-cli", is = is, read = read }
