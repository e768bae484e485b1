-- Replies as the APIs of models stream them, a piece a line: OpenAI's chat and Responses, Anthropic, Bedrock's ConverseStream,
-- the Vercel AI SDK's UI messages. The pieces of a call are joined; it counts when its end has come.
local conversation = require "replay/conversation"
local log = require "replay/log"
local messages = require "replay/messages"
local each, text, is_object, is_array = conversation.each, conversation.text, conversation.is_object, conversation.is_array

local BYTES_MAX = 67108864 -- of one reply's calls, as of a line
local CALLS_MAX = 1024     -- of one reply

local READ = {} -- by `type`

-- ---- calls that are not yet whole ----

local function new_reply() return { calls = {}, count = 0, bytes = 0 } end

-- What is open of a reply that ends; nil: nothing.
local function left_open(state)
  local s = state.stream
  local _, call = next(s and s.calls or {})
  state.stream = new_reply()
  return call and ("the reply ended within a call of %s"):format(call.name) or nil
end

local function open_call(s, key, id, name)
  if type(name) ~= "string" or name == "" then return end
  s.over = s.over or s.count == CALLS_MAX
  if s.over then return end
  s.calls[key], s.count = { id = id, name = name, pieces = {}, at = s.count }, s.count + 1
end

local function add_piece(s, key, piece)
  local call = s.calls[key]
  if not call or type(piece) ~= "string" then return end
  s.bytes = s.bytes + #piece
  s.over = s.over or s.bytes > BYTES_MAX
  if not s.over then call.pieces[#call.pieces + 1] = piece end
end

local function end_call(c, s, key)
  local call = s.calls[key]
  s.calls[key] = nil
  if not call or s.over then return end
  local arguments = table.concat(call.pieces)
  c:call(call.id, call.name, arguments == "" and "{}" or arguments)
end

-- ---- Anthropic, and Bedrock, whose events have their names as members ----

function READ.message_start(c, s, value)
  local m = is_object(value.message) and value.message or {}
  local u = is_object(m.usage) and m.usage or {}
  c:message()
  s.id = text(m, "id")
  s.usage = { input_tokens = u.input_tokens, cache_read_input_tokens = u.cache_read_input_tokens,
              cache_creation_input_tokens = u.cache_creation_input_tokens, output_tokens = u.output_tokens }
  c:usage(s.usage, s.id)
end

function READ.message_delta(c, s, value)
  if not s.usage or not is_object(value.usage) then return end
  s.usage.output_tokens = value.usage.output_tokens
  c:usage(s.usage, s.id)
end

function READ.content_block_start(_, s, value)
  local block = is_object(value.content_block) and value.content_block or {}
  if type(block.type) == "string" and block.type:find "tool_use$" then open_call(s, value.index, block.id, block.name) end
end

function READ.content_block_delta(_, s, value)
  if is_object(value.delta) then add_piece(s, value.index, value.delta.partial_json) end
end

function READ.content_block_stop(c, s, value) end_call(c, s, value.index) end
READ.message_stop, READ.ping = function() end, function() end

local function read_bedrock(c, s, value)
  local start, delta, stop = value.contentBlockStart, value.contentBlockDelta, value.contentBlockStop
  local use = is_object(start) and is_object(start.start) and start.start.toolUse
  local piece = is_object(delta) and is_object(delta.delta) and delta.delta.toolUse
  if is_object(value.messageStart) then c:message() end
  if is_object(use) then open_call(s, start.contentBlockIndex, use.toolUseId, use.name) end
  if is_object(piece) then add_piece(s, delta.contentBlockIndex, piece.input) end
  if is_object(stop) then end_call(c, s, stop.contentBlockIndex) end
  if is_object(value.metadata) then c:usage(value.metadata.usage) end
end

-- ---- OpenAI's chat ----

local function read_choice(c, s, choice)
  local delta, prefix = choice.delta, tostring(choice.index or 0) .. " "
  for piece in each(is_object(delta) and delta.tool_calls) do
    local f, key = is_object(piece["function"]) and piece["function"] or {}, prefix .. tostring(piece.index or 0)
    if f.name and not s.calls[key] then open_call(s, key, piece.id, f.name) end
    add_piece(s, key, f.arguments)
  end
  if not choice.finish_reason then return end
  local keys = {}
  for key in pairs(s.calls) do
    if key:sub(1, #prefix) == prefix then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b) return s.calls[a].at < s.calls[b].at end)
  for _, key in ipairs(keys) do end_call(c, s, key) end
end

-- ---- OpenAI's Responses: a call comes whole at its end ----

READ["response.output_item.added"] = function(_, s, value)
  local item = is_object(value.item) and value.item or {}
  if item.type == "function_call" or item.type == "custom_tool_call" then open_call(s, value.output_index, item.id, item.name) end
end

READ["response.output_item.done"] = function(c, s, value)
  s.calls[value.output_index or 0] = nil
  if is_object(value.item) then messages.read_item(c, value.item) end
end

READ["response.completed"] = function(c, _, value)
  if is_object(value.response) then c:usage(value.response.usage) end
end

-- ---- the Vercel AI SDK ----

READ["tool-input-available"] = function(c, _, value) c:call(value.toolCallId, value.toolName, value.input) end
READ["tool-input-error"] = READ["tool-input-available"]
READ["tool-output-available"] = function(c, _, value) c:result(value.toolCallId, value.output) end
READ["tool-output-error"] = function(c, _, value) c:result(value.toolCallId, nil, value.errorText or true) end

-- ---- any ----

local BEDROCK = { "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop" }

local function is_bedrock(value, state)
  for _, name in ipairs(BEDROCK) do
    if is_object(value[name]) then return true end
  end
  return state.bedrock and is_object(value.metadata) and is_object(value.metadata.usage)
end

local function choice_of(value)
  local choice = is_array(value.choices) and value.choices[1]
  return is_object(choice) and choice.delta ~= nil and choice or nil
end

local BARE = { ["type"] = true, ["type, messageId"] = true, ["messageId, type"] = true } -- the members of the SDK's first piece

local function is(value, state)
  local kind = type(value.type) == "string" and value.type or ""
  return READ[kind] ~= nil or (kind == "start" and BARE[log.keys(value, 3)]) or (kind == "finish" and state.stream ~= nil)
         or kind:find "^response%.%l" ~= nil or kind:find "^tool%-[io]%l+put%-" ~= nil
         or value.object == "chat.completion.chunk" or choice_of(value) ~= nil or is_bedrock(value, state)
         or (state.stream ~= nil and value.role == nil and kind:find "^%l+%-%l+" ~= nil)
end

local BEGINS = { message_start = true, ["response.created"] = true, start = true }

local function read(value, state)
  local c, id = state.session(), text(value, "id")
  local chunk = value.object == "chat.completion.chunk" or choice_of(value)
  local begins = BEGINS[value.type] or is_object(value.messageStart) or (chunk and id ~= state.stream_id)
  local why = begins and left_open(state) or nil
  if not state.stream then left_open(state) end
  local s = state.stream
  if chunk then
    if begins then c:message() end
    state.stream_id = id
    for choice in each(value.choices) do read_choice(c, s, choice) end
    c:usage(value.usage, id)
  elseif READ[value.type] then
    READ[value.type](c, s, value)
  elseif is_bedrock(value, state) then
    state.bedrock = true
    read_bedrock(c, s, value)
  end
  if s.over then why = "the calls of this reply are more, or longer, than is read" end
  return why or true
end

return { name = "streamed replies", is = is, read = read, left_open = left_open }
