-- What a message's content holds, in the forms of the APIs: Anthropic's tool_use and tool_result, Bedrock's toolUse and
-- toolResult, the Vercel AI SDK's tool-call and tool-result, goose's toolRequest and toolResponse.
local conversation = require "replay/conversation"
local log = require "replay/log"
local each, is_object = conversation.each, conversation.is_object

local BLOCKS = {} -- each returns true if the block is a result

function BLOCKS.tool_use(c, b) c:call(b.id, b.name, b.input) end
BLOCKS.server_tool_use, BLOCKS.mcp_tool_use = BLOCKS.tool_use, BLOCKS.tool_use

function BLOCKS.tool_result(c, b)
  c:result(b.tool_use_id, log.raw(b, "content"), b.is_error)
  return true
end
BLOCKS.mcp_tool_result = BLOCKS.tool_result

BLOCKS["tool-call"] = function(c, b) c:call(b.toolCallId, b.toolName, b.input or b.args) end
BLOCKS["tool-result"] = function(c, b)
  local output = b.output
  local kind = is_object(output) and output.type or ""
  local value = output
  if is_object(output) and output.type then value = output.value or output.reason end
  if value == nil then value = b.result end
  local failed = kind == "execution-denied" or kind:find "^error" ~= nil or b.isError
  c:result(b.toolCallId, value, failed)
  return true
end

function BLOCKS.toolRequest(c, b)
  local call = b.toolCall or {}
  local value = call.value or (call.name and call) or {}
  if value.name then return c:call(b.id, value.name, value.arguments) end
  -- The provider could not read what the model sent: the call never was one.
  c:call(b.id, "unreadable call", nil)
  c.unread = b.id
end

function BLOCKS.toolResponse(c, b)
  local answer = b.toolResult or {}
  local value = answer.value
  if b.id and b.id == c.unread then return true end
  if answer.status == "error" then c:result(b.id, answer.error, answer.error or true)
  else c:result(b.id, value, is_object(value) and value.isError) end
  return true
end

-- Reads the blocks. True: some are results, so that the message is not one of the user's.
return function(c, content)
  local answers = false
  for b in each(content) do
    local read, result = BLOCKS[b.type], b.toolResult
    if read then
      answers = read(c, b) or answers
    elseif is_object(b.toolUse) then -- Bedrock's Converse
      c:call(b.toolUse.toolUseId, b.toolUse.name, b.toolUse.input)
    elseif is_object(result) then
      c:result(result.toolUseId, result.content, result.status == "error")
      answers = true
    end
  end
  return answers
end
