-- Conversations as they go to and come from a model's API, or as an SDK keeps them: OpenAI's chat and Responses, Anthropic,
-- Gemini, Bedrock's Converse, LangChain, pydantic-ai, the Vercel AI SDK. One message is read by what it is.
local conversation = require "replay/conversation"
local blocks = require "replay/blocks"
local log = require "replay/log"
local each, text, is_object, is_array = conversation.each, conversation.text, conversation.is_object, conversation.is_array

-- ---- messages ----

-- An item of the Responses API that is no message; nil: it is not one.
local function read_item(c, m)
  local kind = m.type
  local calls = kind == "function_call" or kind == "custom_tool_call"
  if calls and not c.in_calls then c:message() end
  c.in_calls = calls
  if calls then
    c:call(m.call_id or m.id, m.name, m.arguments or m.input)
  elseif kind == "function_call_output" or kind == "custom_tool_call_output" then
    c:result(m.call_id, m.output)
  elseif kind == "mcp_call" then -- the API has run it
    c:both(m.id, m.name, m.arguments, m.output, m.error)
  elseif type(kind) == "string" and kind ~= "message" and not m.role then
    return kind == "reasoning" or kind:find "_call$" ~= nil or nil
  else
    return nil
  end
  return true
end

-- pydantic-ai: {kind: request | response, parts}.
local function read_pydantic(c, m)
  c:message(m.timestamp)
  for part in each(m.parts) do
    local kind, id = part.part_kind, part.tool_call_id
    if kind == "tool-call" then
      c:call(id, part.tool_name, part.args)
    elseif kind == "tool-return" then
      c:result(id, part.content, part.outcome ~= nil and part.outcome ~= "success")
    elseif kind == "retry-prompt" and part.tool_name then
      c:result(id, part.content, type(part.content) == "string" and part.content or true)
    elseif kind == "user-prompt" then
      c:begin_turn()
    end
  end
end

-- A part of the Vercel AI SDK's UI messages.
local function read_ui_part(c, part)
  local kind = type(part.type) == "string" and part.type or ""
  local name = kind == "dynamic-tool" and part.toolName or kind:match "^tool%-(.+)$"
  if not name or not part.toolCallId then return end
  local state = part.state
  if state == "output-error" then
    c:both(part.toolCallId, name, part.input or part.rawInput, nil, part.errorText or true)
  elseif state == "output-denied" then
    c:both(part.toolCallId, name, part.input, nil, "denied")
  else
    c:both(part.toolCallId, name, part.input, part.output)
  end
end

-- Gemini's parts have no ids: calls of one name are answered in their order.
local function read_gemini_part(c, part)
  local call, answer = part.functionCall or part.function_call, part.functionResponse or part.function_response
  c.asked, c.answered = c.asked or {}, c.answered or {}
  if is_object(call) and call.name then
    c.asked[call.name] = (c.asked[call.name] or 0) + 1
    c:call(call.id or call.name .. " " .. c.asked[call.name], call.name, call.args)
  elseif is_object(answer) and answer.name then
    local name, response = answer.name, answer.response
    local failed = is_object(response) and response.error
    c.answered[name] = (c.answered[name] or 0) + 1
    if is_object(response) and (response.result ~= nil or response.output ~= nil) then
      local result = response.result
      response = result == nil and response.output or result
    end
    c:result(answer.id or name .. " " .. c.answered[name], response, failed)
    return true
  end
end

local function read_parts_message(c, m)
  local answers = false
  c:message(m.timestamp or m.createdAt)
  for part in each(m.parts) do
    answers = read_gemini_part(c, part) or answers
    read_ui_part(c, part)
  end
  if m.role == "user" and not answers then c:begin_turn() end
end

-- LangChain: {type: ai | human | tool | system, content, …}, perhaps in `data` or `kwargs`.
local CHAINS = { ai = true, human = true, tool = true, system = true, AIMessageChunk = true }

local function read_chain(c, m)
  local kind = m.type
  c:message()
  if kind == "human" then
    c:begin_turn()
  elseif kind == "tool" then
    c:result(m.tool_call_id, m.content, m.status == "error")
  elseif kind ~= "system" then
    for call in each(m.tool_calls) do c:call(call.id, call.name, call.args) end
    -- What is no JSON is judged as the text that the model sent.
    for call in each(m.invalid_tool_calls) do c:call(call.id, call.name, call.args) end
  end
end

local function unwrapped(m)
  local inner = (m.lc ~= nil and m.kwargs) or (CHAINS[m.type] and m.data) or m
  return is_object(inner) and inner or m
end

local function read_assistant(c, m)
  for call in each(m.tool_calls) do
    local f = call["function"] or call.custom
    if is_object(f) then c:call(call.id, f.name, f.arguments or f.input) end
  end
  local older = m.function_call -- it has no id: the name joins the call to its result
  if is_object(older) then c:call(older.name, older.name, older.arguments) end
  blocks(c, m.content)
end

local function read_message(c, m)
  if not is_object(m) then return false end
  m = unwrapped(m)
  c.at = m.timestamp or m.ts or m.created_at or c.at
  c:usage(m.usage or m.usage_metadata or (is_object(m.metadata) and m.metadata.usage), text(m, "id"))
  if CHAINS[m.type] and not m.role then return read_chain(c, m) end
  if m.kind and is_array(m.parts) then return read_pydantic(c, m) end
  if is_array(m.parts) then return read_parts_message(c, m) end
  local item = read_item(c, m)
  if item ~= nil then return end
  local role = m.role
  if not role then return false end
  c:message()
  if role == "tool" then
    if not (is_array(m.content) and blocks(c, m.content)) then c:result(m.tool_call_id, m.content) end
  elseif role == "function" then
    c:result(m.name, m.content)
  elseif role == "assistant" then
    read_assistant(c, m)
  elseif not blocks(c, m.content) and role == "user" then
    c:begin_turn()
  end
end

local function read_messages(c, list)
  local any = false
  for m in each(list) do any = read_message(c, m) ~= false or any end
  return any
end

-- Messages of OpenTelemetry's GenAI: {role, parts: [{type: tool_call, …}]}. What `seen` has is left out.
local function read_parts(c, list, seen)
  for m in each(list) do
    c:message()
    for part in each(m.parts) do
      local id = part.id
      if part.type == "tool_call" and not (id and seen[id]) then
        c:call(id, part.name, part.arguments)
        if id then seen[id] = true end
      elseif part.type == "tool_call_response" and not (id and seen["r" .. id]) then
        local response = part.response
        c:result(id, response == nil and part.result or response)
        if id then seen["r" .. id] = true end
      end
    end
  end
end

-- ---- conversations ----

local LISTS = { "messages", "items", "contents", "input", "output" }

-- The first choice of a reply of OpenAI's chat API, or what Gemini and Bedrock reply; nil: it is none.
local function reply_of(value)
  if not is_object(value) then return end
  local choice = is_array(value.choices) and value.choices[1]
  if is_object(choice) then return choice.message end
  local candidate = is_array(value.candidates) and value.candidates[1]
  if is_object(candidate) then return candidate.content end
  return is_object(value.output) and value.output.message or nil
end

local function has_list(value)
  if not is_object(value) then return false end
  for _, name in ipairs(LISTS) do
    if is_array(value[name]) then return true end
  end
  return false
end

local function is_conversation(value)
  return has_list(value) or has_list(value.request) or reply_of(value) ~= nil or reply_of(value.response) ~= nil
end

local function session_of(value, state)
  local named = is_object(value) and text(value, "session", "session_id", "conversation_id", "thread_id", "chat_id",
                                          "trace_id", "run_id", "task_id", "id")
  local part = state.item and "." .. state.item or ""
  return named or is_object(value) and text(value, "responseId") or ("%s:%d%s"):format(state.name, state.line, part)
end

local function read_array(array, state)
  return read_messages(state.session(session_of(nil, state)), array)
end

local function read_conversation(value, state)
  local streamed = text(value, "responseId") -- Gemini's reply comes in parts, each of which has the figures so far
  local c = (streamed or state.in_list) and state.session(streamed) or conversation.new(session_of(value, state))
  local request, response = value.request, value.response
  c.at = value.ts or value.timestamp or value.created_at or value.created
  if is_array(value.tools) then c.tools = value.tools end
  if state.in_list and c.tools then
    log.keep_tools(c.tools)
    c.tools = nil -- it dies with this line, and the calls are in others
  end
  if is_object(request) then
    if is_array(request.tools) then c.tools = request.tools end
    for _, name in ipairs(LISTS) do read_messages(c, request[name]) end
  end
  for _, name in ipairs(LISTS) do read_messages(c, value[name]) end
  c:usage(value.usage or value.usageMetadata or (is_object(response) and (response.usage or response.usageMetadata)), streamed)
  -- The reply beside a request, as proxies record it: a choice, items, or a message.
  local reply = reply_of(value) or reply_of(response)
  if reply then
    read_message(c, reply)
  elseif is_object(response) and is_array(response.output) then
    read_messages(c, response.output)
  elseif is_object(response) and response.role then
    read_message(c, response)
  end
  return true
end

local function is(value)
  return is_conversation(value) or type(value.role) == "string" or is_array(value.parts)
         or CHAINS[value.type] or value.lc ~= nil
         or value.type == "message" or value.type == "reasoning"
         or (type(value.type) == "string" and (value.type:find "_call$" or value.type:find "_call_output$"))
end

local function read(value, state)
  if is_conversation(value) then return read_conversation(value, state) end
  if not is(value) then return false end
  -- A file of messages, one a line, is one conversation unless the messages name theirs.
  local c = state.session(text(value, "session", "session_id", "conversation_id", "thread_id"))
  return read_message(c, value) ~= false
end

-- An array of messages is one conversation; one of conversations is several.
local function read_list(array, state)
  if is_conversation(array[1]) then
    for i = 1, #array do
      state.item = i
      if is_object(array[i]) then read(array[i], state) else read_array(array[i], state) end
    end
    state.item = nil
    return true
  end
  return read_array(array, state)
end

return { name = "messages of OpenAI, Anthropic, Gemini, Bedrock, LangChain, pydantic-ai or the Vercel AI SDK", is = is,
         read = read, read_array = read_list, read_parts = read_parts, read_item = read_item }
