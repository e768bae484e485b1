-- OpenTelemetry's spans of GenAI: OTLP as JSON, or a span a line as exporters to a console or a file write it. Spans of
-- execute_tool are the calls; of a document without any, what its chat spans have recorded.
local conversation = require "replay/conversation"
local messages = require "replay/messages"
local log = require "replay/log"
local each, is_object, is_array, parsed = conversation.each, conversation.is_object, conversation.is_array, conversation.parsed

local SEEN_MAX = 65536 -- calls and traces that are remembered

local KEPT = { ["gen_ai.operation.name"] = true, ["gen_ai.tool.name"] = true, ["gen_ai.tool.call.id"] = true,
               ["gen_ai.tool.call.arguments"] = true, ["gen_ai.tool.call.result"] = true, ["error.type"] = true,
               ["gen_ai.conversation.id"] = true, ["mcp.session.id"] = true, ["session.id"] = true,
               ["gen_ai.usage.input_tokens"] = true, ["gen_ai.usage.output_tokens"] = true,
               ["gen_ai.usage.cache_read.input_tokens"] = true,
               ["gen_ai.input.messages"] = true, ["gen_ai.output.messages"] = true }

-- A value of OTLP, which names its type; a list of keys and values becomes a table.
local function plain(value)
  if not is_object(value) then return value end
  local list = is_object(value.kvlistValue) and value.kvlistValue.values
  if not is_array(list) then
    if is_object(value.arrayValue) then
      local out = {}
      for item in each(value.arrayValue.values) do out[#out + 1] = plain(item) end
      return out
    end
    local whole = value.intValue
    return value.stringValue or (whole and tonumber(whole)) or value.doubleValue or value.boolValue
  end
  local out = {}
  for pair in each(list) do out[pair.key] = plain(pair.value) end
  return out
end

local function attributes_of(span)
  local given, out = span.attributes, {}
  if is_array(given) then
    for pair in each(given) do
      if KEPT[pair.key] then out[pair.key] = plain(pair.value) end
    end
  elseif is_object(given) then
    for name in pairs(KEPT) do out[name] = given[name] end
  end
  return out
end

local function is_span(value)
  if (value.attributes == nil) or value.name == nil then return false end
  return value.start_time ~= nil or value.startTimeUnixNano ~= nil or value.startTime ~= nil or value.traceId ~= nil
         or value.context ~= nil
end

-- A long document comes in its parts.
local function is(value) return is_array(value.resourceSpans) or is_array(value.scopeSpans) or is_span(value) end

local function trace_of(span)
  return span.traceId or span.trace_id or (is_object(span.context) and span.context.trace_id) or nil
end

local function session_of(span, a, state)
  local trace = trace_of(span)
  local id = a["gen_ai.conversation.id"] or a["session.id"] or a["mcp.session.id"]
  state.traces = state.traces or conversation.remembered(SEEN_MAX)
  if id and trace then state.traces[trace] = id end
  return state.session(id or (trace and state.traces[trace]) or trace)
end

local function read_tool(span, a, state)
  local c = session_of(span, a, state)
  local status = is_object(span.status) and span.status or {}
  local code = status.code or status.status_code
  local failed = a["error.type"] ~= nil or code == 2 or code == "ERROR" or code == "STATUS_CODE_ERROR"
  c:message(span.startTimeUnixNano or span.start_time or span.startTime)
  local result = a["gen_ai.tool.call.result"]
  if failed then failed = status.message or status.description or (result == nil and a["error.type"]) or true end
  c:both(a["gen_ai.tool.call.id"], a["gen_ai.tool.name"], a["gen_ai.tool.call.arguments"], result, failed)
end

-- The span of an agent has the sum of those of its chats.
local function read_usage(span, a, state)
  local operation, input, output = a["gen_ai.operation.name"], a["gen_ai.usage.input_tokens"], a["gen_ai.usage.output_tokens"]
  if (input or output) and operation ~= "invoke_agent" and operation ~= "create_agent" then
    session_of(span, a, state):usage { input_tokens = input, output_tokens = output,
                                       cached_tokens = a["gen_ai.usage.cache_read.input_tokens"] }
  end
end

-- What a chat span has recorded, each call and result once: the next span's input repeats them.
local function read_chat(span, a, state)
  local c = session_of(span, a, state)
  c.seen = c.seen or conversation.remembered(SEEN_MAX)
  c.at = span.startTimeUnixNano or span.start_time or c.at
  messages.read_parts(c, parsed(a["gen_ai.input.messages"]), c.seen)
  messages.read_parts(c, parsed(a["gen_ai.output.messages"]), c.seen)
end

local function each_span(value, visit)
  local function visit_resource(resource)
    for scope in each(resource.scopeSpans) do
      for span in each(scope.spans) do visit(span) end
    end
  end
  if is_array(value.scopeSpans) then return visit_resource(value) end
  if not is_array(value.resourceSpans) then return visit(value) end
  for resource in each(value.resourceSpans) do visit_resource(resource) end
end

local function read(value, state)
  local tools, chats = state.otel_tools or 0, 0
  each_span(value, function(span)
    local a = attributes_of(span)
    read_usage(span, a, state)
    if a["gen_ai.tool.name"] then
      tools = tools + 1
      read_tool(span, a, state)
    elseif a["gen_ai.output.messages"] or a["gen_ai.input.messages"] then
      chats = chats + 1
    end
  end)
  state.otel_tools = tools
  if tools == 0 and chats > 0 then
    each_span(value, function(span) read_chat(span, attributes_of(span), state) end)
  end
  return log.kind(value) == "object"
end

return { name = "OpenTelemetry GenAI", is = is, read = read }
