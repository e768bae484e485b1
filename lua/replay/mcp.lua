-- JSON-RPC of MCP: one message a line in both directions, perhaps inside of {ts, session, message}. tools/call and its reply
-- are one call; a tools/list reply gives the tools of what follows in the file.
local conversation = require "replay/conversation"
local log = require "replay/log"
local text, is_object, is_array = conversation.text, conversation.is_object, conversation.is_array

local function message_of(value)
  local inner = value.message
  return is_object(inner) and inner.jsonrpc ~= nil and inner or value.jsonrpc ~= nil and value or nil
end

local function is(value) return message_of(value) ~= nil end

local function read(value, state)
  local m = message_of(value)
  if not m then return "it is no JSON-RPC message" end
  local id, params = m.id, is_object(m.params) and m.params or {}
  local result = m.result
  local key = ("%s %s %s"):format(type(id), state.name, tostring(id)) -- the reply names no session
  local at = value.ts or value.timestamp or value.time
  local session = text(value, "session", "session_id", "sessionId", "mcp-session-id")
  if m.method == "tools/call" and id ~= nil then
    local meta = is_object(params._meta) and params._meta or {}
    local c = state.session(text(meta, "dev.toolgate/session") or session)
    c.at, c.step, c.turn = at, text(meta, "dev.toolgate/step") or "", tonumber(meta["dev.toolgate/turn"]) or 0
    c:call(key, params.name, params.arguments)
  elseif m.method == nil and id ~= nil and is_object(result) and is_array(result.tools) then
    log.keep_tools(result.tools)
  elseif m.method == nil and id ~= nil then
    local c = state.session(session)
    c.at, c.perhaps = at, true -- it may answer something else than a call
    c:result(key, result, m.error or (is_object(result) and result.isError))
  end
  return true
end

return { name = "MCP's JSON-RPC", is = is, read = read }
