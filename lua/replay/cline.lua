-- Cline and Roo: api_conversation_history.json, Anthropic's messages, of which older ones have calls as XML in the text and
-- their results as a text "[tool for 'x'] Result:". From version 4 on {version, messages}.
local conversation = require "replay/conversation"
local blocks = require "replay/blocks"
local each, is_object, is_array = conversation.each, conversation.is_object, conversation.is_array

local TOOLS = {}
for name in ([[execute_command read_file write_to_file replace_in_file search_files list_files use_mcp_tool browser_action
               list_code_definition_names access_mcp_resource apply_diff insert_content search_and_replace new_task
               web_fetch fetch_instructions codebase_search switch_mode]]):gmatch "%S+" do TOOLS[name] = true end
local NAME = "api_conversation_history"

local function is(value, state)
  return state.name:find(NAME, 1, true) ~= nil and value.role ~= nil
         or (value.version == 1 and is_array(value.messages) and is_object(value.messages[1])
             and value.messages[1].metrics ~= nil)
end

-- <argument>value</argument>…, up to one without its end.
local function read_arguments(text)
  local arguments, at = {}, 1
  while true do
    local _, to, key = text:find("<([%a_]+)>", at)
    local close, after
    if to then close, after = text:find("</" .. key .. ">", to + 1, true) end
    if not close then return arguments end
    local value = text:sub(to + 1, close - 1)
    arguments[key] = value:sub(value:find "^\n" and 2 or 1, value:sub(-1) == "\n" and -2 or -1)
    at = after + 1
  end
end

-- The calls of a text: <tool><argument>value</argument>…</tool>. One pass over the text.
local function read_xml(c, text)
  local at = 1
  while true do
    local from, to, name = text:find("<([%a_]+)>", at)
    if not from then return end
    at = to + 1
    if TOOLS[name] then
      local close, after = text:find("</" .. name .. ">", at, true)
      if not close then return end
      local arguments = read_arguments(text:sub(at, close - 1))
      c.xml_calls = (c.xml_calls or 0) + 1
      c.xml_id = "xml " .. c.xml_calls
      c:call(c.xml_id, name, arguments)
      at = after + 1
    end
  end
end

local function text_of(content)
  if type(content) == "string" then return content end
  local out = {}
  for part in each(content) do
    if part.type == "text" and type(part.text) == "string" then out[#out + 1] = part.text end
  end
  return table.concat(out, "\n")
end

local function failed_text(text)
  return text:find("The tool execution failed", 1, true) ~= nil or text:find "^Error:" ~= nil
end

local function read_message(c, m)
  local text = text_of(m.content)
  c:message(m.ts)
  if m.role == "assistant" then
    blocks(c, m.content)
    read_xml(c, text)
    return c:usage(m.metrics)
  end
  -- A result that fails rarely says so but in its text.
  local answers = false
  for block in each(m.content) do
    if block.type == "tool_result" then
      c:result(block.tool_use_id, block.content, block.is_error or failed_text(text_of(block.content)))
      answers = true
    end
  end
  local result = c.xml_id and text:match "^%[[%a_]+[^\n]*%] Result:\n?(.*)$"
  if result then
    c:result(c.xml_id, result, failed_text(result))
    c.xml_id = nil
  elseif not answers then
    c:begin_turn()
  end
end

local function read_array(array, state)
  local c = state.session()
  for m in each(array) do read_message(c, m) end
  return true
end

local function read(value, state)
  if value.messages then return read_array(value.messages, state) end
  read_message(state.session(), value)
  return true
end

return { name = "Cline", is = is, read = read, read_array = read_array }
