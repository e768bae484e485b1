-- Reads a line of a transcript: finds its format by its content, and asks that format's reader. A format is a table:
--   name    for people
--   is      (value, state): whether the value, an object, is of it
--   read    (value, state): reads it; false, or why: it is not understood
--   read_array  (array, state): an array of such values, if they are read together
-- `state` is of one file: `name` the file's, `line`, and session(id, agent), a conversation (lua/replay/conversation.lua).
local log = require "replay/log"
local conversation = require "replay/conversation"
local text = conversation.text

local WHOLE, ITEM, LIST_BEGINS, LIST_ENDS = 0, 1, 2, 3 -- enum recording_part
local SESSIONS_MAX = 65536 -- of one file; then they are counted anew

local FORMATS = {}
for _, name in ipairs { "claude_code", "codex", "gemini_cli", "opencode", "goose", "pi", "openhands", "swe_agent", "atif",
                        "cline", "langsmith", "langfuse", "otel", "mcp", "stream", "messages" } do
  FORMATS[#FORMATS + 1] = require("replay/" .. name)
end
local MESSAGES = FORMATS[#FORMATS]
local STREAM = FORMATS[#FORMATS - 1]
local MCP = FORMATS[#FORMATS - 2]

local function new_state(file)
  local sessions, count = {}, 0
  local state = { file = file, name = file:match "[^/]*$" }
  function state.session(id, agent)
    id = id or state.id or state.name
    local key = agent and id .. "\0" .. agent or id
    if not sessions[key] then
      if count == SESSIONS_MAX then sessions, count = {}, 0 end
      sessions[key], count = conversation.new(id, agent), count + 1
    end
    return sessions[key]
  end
  return state
end

local function format_of(value, state)
  local last = state.format
  if last and last.is(value, state) then return last end
  for _, format in ipairs(FORMATS) do
    if format.is(value, state) then
      state.format = format
      return format
    end
  end
end

local function read_object(value, state)
  local format = format_of(value, state)
  return format and format.read(value, state) or false
end

-- An array is one conversation, or holds records or conversations.
local function read_array(array, state)
  local first = array[1]
  if log.kind(first) == "object" then
    local format = format_of(first, state)
    if not format then return false end
    if format.read_array then return format.read_array(array, state) end
  end
  local any = false
  for i = 1, #array do
    local item = array[i]
    local kind = log.kind(item)
    if kind == "object" then
      state.item = i
      local read = read_object(item, state)
      any = read == true or any or read
    elseif kind == "array" then
      state.item = i
      any = MESSAGES.read_array(item, state) or any
    end
  end
  state.item = nil
  return any
end

-- The members of a long object beside its list: what follows is of its conversation.
local function read_members(value, state, part)
  if part == LIST_BEGINS then
    state.id = text(value, "session_id", "session", "conversation_id", "thread_id", "chat_id", "trace_id", "id")
               or ("%s:%d"):format(state.name, state.line)
    state.in_list = true
  end
  if not read_object(value, state) then state.session():usage(value.usage) end
  return true
end

-- The function that reads a line; with nil, the file has ended: a text says what it leaves unfinished. `forced`: what --format
-- says.
local function new(forced)
  local state
  local function read(value)
    if forced == "mcp" and log.kind(value) == "object" then return MCP.read(value, state) end
    if forced == "openai" or forced == "anthropic" then state.format = MESSAGES end
    if log.kind(value) == "array" then return read_array(value, state) end
    return read_object(value, state)
  end
  return function(value, file, number, part)
    if not state or state.file ~= file or part == LIST_BEGINS or (state.in_list and part == WHOLE) then
      state = new_state(file)
    end
    if value == nil then return STREAM.left_open(state) end
    state.line = number
    if part == LIST_BEGINS or part == LIST_ENDS then return read_members(value, state, part) end
    state.items = part == ITEM and (state.items or 0) + 1 or nil -- of the array that the file is
    state.item = state.items
    local understood = read(value)
    if understood then return understood end
    local keys = log.kind(value) == "object" and log.keys(value, 8) or ""
    return keys ~= "" and "it is no call in a format that is known: it has " .. keys or false
  end
end

local names = {}
for i, format in ipairs(FORMATS) do names[i] = format.name end

return { new = new, names = names }
