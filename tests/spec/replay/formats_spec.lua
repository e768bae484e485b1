-- The formats that toolgate replay reads: found out by each line, or forced with --format.
local recordings = require "recordings"
local replay, row = recordings.replay, recordings.row

-- A tool that refuses a limit of more than 50, in each provider's form.
local SCHEMA = [[{"type":"object","properties":{"limit":{"type":"integer","maximum":50}}}]]
local TOOLS = {
  mcp = [[{"tools":[{"name":"list_orders","inputSchema":%s}]}]],
  openai = [=[[{"type":"function","function":{"name":"list_orders","parameters":%s}}]]=],
  responses = [=[[{"type":"function","name":"list_orders","parameters":%s}]]=],
  anthropic = [=[[{"name":"list_orders","input_schema":%s}]]=],
}

local OPENAI = [[{"id":"run-1","messages":[
  {"role":"system","content":"Help."},
  {"role":"user","content":"List my orders."},
  {"role":"assistant","content":null,"tool_calls":[
    {"id":"c1","type":"function","function":{"name":"list_orders","arguments":"{\"limit\": 80}"}},
    {"id":"c2","type":"function","function":{"name":"list_orders","arguments":"{\"limit\": 8}"}}]},
  {"role":"tool","tool_call_id":"c1","content":"too many"},
  {"role":"tool","tool_call_id":"c2","content":"[]"},
  {"role":"assistant","tool_calls":[
    {"id":"c3","type":"function","function":{"name":"list_orders","arguments":"{\"limit\": 50}"}}]},
  {"role":"tool","tool_call_id":"c3","content":"[]"}%s]%s}]]

local RESPONSES = [[{"id":"run-1","input":[
  {"role":"user","content":"List my orders."},
  {"type":"function_call","call_id":"c1","name":"list_orders","arguments":"{\"limit\": 80}"},
  {"type":"function_call","call_id":"c2","name":"list_orders","arguments":"{\"limit\": 8}"},
  {"type":"function_call_output","call_id":"c1","output":"too many"},
  {"type":"function_call_output","call_id":"c2","output":"[]"},
  {"type":"function_call","call_id":"c3","name":"list_orders","arguments":"{\"limit\": 50}"},
  {"type":"function_call_output","call_id":"c3","output":"[]"}]}]]

local ANTHROPIC = [[{"id":"run-1","messages":[
  {"role":"user","content":"List my orders."},
  {"role":"assistant","content":[{"type":"text","text":"Let me see."},
    {"type":"tool_use","id":"c1","name":"list_orders","input":{"limit":80}},
    {"type":"tool_use","id":"c2","name":"list_orders","input":{"limit":8}}]},
  {"role":"user","content":[
    {"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"too many"},
    {"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"[]"}]}]},
  {"role":"assistant","content":[{"type":"tool_use","id":"c3","name":"list_orders","input":{"limit":50}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"c3","content":"[]"}]}]}]]

local MCP = [[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_orders","arguments":{"limit":80}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_orders","arguments":{"limit":8}}}
{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"[]"}]}}
{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"too many"}],"isError":true}}
{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"list_orders","arguments":{"limit":50}}}
{"jsonrpc":"2.0","id":"2","result":{"content":[]}}
]]

local function one_line(document) return (document:gsub("\n%s*", "")) end

describe("toolgate replay reads", function()
  local folder

  before_each(function() folder = recordings.new() end)

  local function tools(form) return folder:file("tools.json", TOOLS[form]:format(SCHEMA)) end

  -- Three calls of one session, of which the first would have been refused; no result is missing.
  local function expect(report, err)
    assert.truthy(report, err)
    assert.same({ 3, 1, 1, 0, 0 },
                { report.calls, report.sessions, report.refused, report.without_result, report.without_check })
    local refused = row(report.codes, { code = "maximum" })
    assert.same({ 1, 1, 1 }, { refused.calls, refused.retried, refused.recovered }) -- by the third call: the second is parallel
    assert.same({}, report.skipped)
  end

  for name, given in pairs {
    ["OpenAI's chat messages"] = { text = OPENAI:format("", ""), form = "openai", format = "openai" },
    ["OpenAI's Responses items"] = { text = RESPONSES, form = "responses", format = "openai" },
    ["Anthropic's messages"] = { text = ANTHROPIC, form = "anthropic", format = "anthropic" },
    ["MCP's JSON-RPC"] = { text = MCP, form = "mcp", format = "mcp" },
  } do
    it(name, function()
      local file = folder:file("run.json", given.text)
      local _, report, err = replay(file, "--tools", tools(given.form))
      expect(report, err)
      _, report, err = replay("--format", given.format, file, "--tools", tools(given.form))
      expect(report, err)
    end)
  end

  for name, wrap in pairs {
    ["a document over several lines"] = function(document) return document end,
    ["one conversation a line"] = function(document) return one_line(document) .. "\n" end,
    ["an array of conversations"] = function(document) return "[" .. document .. "]" end,
    ["an array of messages"] = function(document) return document:match '"messages":(%[.*%])}$' end,
    ["one message a line"] = function(document)
      local lines = {}
      for _, message in ipairs(require("client").json.decode(document).messages) do
        message.content = message.content or "" -- cjson's null
        if type(message.content) ~= "string" then message.content = nil end
        lines[#lines + 1] = require("client").json.encode(message)
      end
      return table.concat(lines, "\n") .. "\n"
    end,
  } do
    it("a conversation as " .. name, function()
      local _, report, err = replay(folder:file("run.json", wrap(OPENAI:format("", ""))), "--tools", tools "openai")
      expect(report, err)
    end)
  end

  it("a reply of the chat API alone, and a request beside its reply", function()
    local reply = [[{"object":"chat.completion","choices":[{"message":{"role":"assistant","tool_calls":[
      {"id":"%s","type":"function","function":{"name":"list_orders","arguments":"{\"limit\": 80}"}}]}}]}]]
    local file = folder:file("reply.json", reply:format "c1")
    local code, report, err = replay(file, "--format", "openai", "--tools", tools "openai")
    assert.equal(0, code, err)
    assert.same({ 1, 1, {} }, { report.calls, report.refused, report.skipped })
    local exchange = [[{"request":{"messages":[{"role":"user","content":"x"}],"tools":%s},"response":%s}]]
    file = folder:file("proxy.ndjson", exchange:format(TOOLS.openai:format(SCHEMA), one_line(reply:format "c2")))
    code, report, err = replay(file, "--format", "openai")
    assert.equal(0, code, err)
    assert.same({ 1, 1, {} }, { report.calls, report.refused, report.skipped })
  end)

  local STREAMED = {
    ["OpenAI's chat"] = {
      '{"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Let me"}}]}',
      '{"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":'
        .. '"function","function":{"name":"list_orders","arguments":""}}]}}]}',
      '{"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":'
        .. '{"arguments":"{\\"limit\\""}}]}}]}',
      '{"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":'
        .. '{"name":"list_orders","arguments":"{\\"limit\\":8}"}},{"index":0,"function":{"arguments":":80}"}}]}}]}',
      '{"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
      '{"id":"r","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9}}' },
    ["OpenAI's Responses"] = {
      '{"type":"response.created","response":{"id":"r"}}',
      '{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","name":"list_orders"}}',
      '{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\\"limit\\""}',
      '{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","id":"i",'
        .. '"name":"list_orders","arguments":"{\\"limit\\":80}"}}',
      '{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"b","id":"j",'
        .. '"name":"list_orders","arguments":"{\\"limit\\":8}"}}',
      '{"type":"response.completed","response":{"id":"r","output":[],"usage":{"input_tokens":50,"output_tokens":9}}}' },
    Anthropic = {
      '{"type":"message_start","message":{"id":"m","role":"assistant","usage":{"input_tokens":50,"output_tokens":1}}}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}', '{"type":"ping"}',
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me"}}',
      '{"type":"content_block_stop","index":0}',
      '{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"list_orders","input":{}}}',
      '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"limit\\""}}',
      '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":80}"}}',
      '{"type":"content_block_stop","index":1}',
      '{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"list_orders","input":{}}}',
      '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"limit\\":8}"}}',
      '{"type":"content_block_stop","index":2}',
      '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}', '{"type":"message_stop"}' },
    Bedrock = {
      '{"messageStart":{"role":"assistant"}}',
      '{"contentBlockStart":{"start":{"toolUse":{"toolUseId":"a","name":"list_orders"}},"contentBlockIndex":0}}',
      '{"contentBlockDelta":{"delta":{"toolUse":{"input":"{\\"limit\\":"}},"contentBlockIndex":0}}',
      '{"contentBlockDelta":{"delta":{"toolUse":{"input":"80}"}},"contentBlockIndex":0}}',
      '{"contentBlockStop":{"contentBlockIndex":0}}',
      '{"contentBlockStart":{"start":{"toolUse":{"toolUseId":"b","name":"list_orders"}},"contentBlockIndex":1}}',
      '{"contentBlockDelta":{"delta":{"toolUse":{"input":"{\\"limit\\":8}"}},"contentBlockIndex":1}}',
      '{"contentBlockStop":{"contentBlockIndex":1}}', '{"messageStop":{"stopReason":"tool_use"}}',
      '{"metadata":{"usage":{"inputTokens":50,"outputTokens":9}}}' },
    ["Gemini"] = {
      '{"responseId":"r","candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"list_orders","args":'
        .. '{"limit":80}}}]}}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":4}}',
      '{"responseId":"r","candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"list_orders","args":'
        .. '{"limit":8}}}]}}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":9}}' },
    ["the Vercel AI SDK"] = {
      '{"type":"start"}', '{"type":"start-step"}', '{"type":"tool-input-start","toolCallId":"a","toolName":"list_orders"}',
      '{"type":"tool-input-delta","toolCallId":"a","inputTextDelta":"{"}',
      '{"type":"tool-input-available","toolCallId":"a","toolName":"list_orders","input":{"limit":80}}',
      '{"type":"tool-input-available","toolCallId":"b","toolName":"list_orders","input":{"limit":8}}',
      '{"type":"tool-output-available","toolCallId":"a","output":"[]"}',
      '{"type":"tool-output-error","toolCallId":"b","errorText":"no"}', '{"type":"finish-step"}', '{"type":"finish"}' },
  }

  for name, pieces in pairs(STREAMED) do
    it("a reply that was streamed, from its pieces: " .. name, function()
      local events = {}
      for i, piece in ipairs(pieces) do events[i] = "event: " .. i .. "\n: note\ndata: " .. piece .. "\n\n" end
      for _, text in ipairs { table.concat(pieces, "\n") .. "\n", table.concat(events) .. "data: [DONE]\n" } do
        local _, report, err = replay(folder:file("stream", text), "--tools", tools "mcp")
        assert.truthy(report, err)
        local tokens = name == "the Vercel AI SDK" and { 0, 0 } or { 50, 9 }
        assert.same({ 2, 1, 1, {}, tokens }, { report.calls, report.sessions, report.refused, report.skipped,
                                               { report.tokens.input, report.tokens.output } })
      end
    end)
  end

  it("the calls of a streamed reply in the model's order, also those after the tenth", function()
    local calls, page = {}, folder.path .. "/page.html"
    for i = 1, 12 do
      calls[i] = ('{"index":%d,"id":"c%d","function":{"name":"list_orders","arguments":"{\\"limit\\":%d}"}}'):format(i - 1, i,
        i == 12 and 80 or i)
    end
    local file = folder:file("stream", ('{"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":'
      .. '[%s]},"finish_reason":"tool_calls"}]}\n'):format(table.concat(calls, ",")))
    local _, _, err = process.run { daemon.binary, "replay", file, "--tools", tools "mcp", "--html", page }
    assert.truthy(process.read(page):find 'flex:11" title="11 [^"]*"></i><i class=r ', err .. process.read(page))
  end)

  it("no call whose pieces end too early, and counts it", function()
    for name, last in pairs { ["OpenAI's chat"] = 4, ["OpenAI's Responses"] = 3, Anthropic = 7, Bedrock = 3 } do
      local cut = table.concat(STREAMED[name], "\n", 1, last) .. "\n"
      local code, report, _ = replay(folder:file("cut", cut))
      assert.same({ 2, 0, 1 }, { code, report.calls, report.skipped.cut_off.count }, name)
      _, report = replay(folder:file("cut", cut), folder:file("whole", table.concat(STREAMED.Anthropic, "\n") .. "\n"))
      assert.same({ 2, 1 }, { report.calls, report.skipped.cut_off.count }, name)
      assert.truthy(report.skipped.cut_off.places[1].file:find "/cut$")
      _, report = replay(folder:file("both", cut .. (table.concat(STREAMED[name], "\n"):gsub('"id":"r"', '"id":"q"')) .. "\n"))
      assert.same({ 2, 1 }, { report.calls, report.skipped.not_record.count }, name)
    end
  end)

  it("the tools that a conversation carries, and the operator's before them", function()
    local carried = ',"tools":' .. TOOLS.openai:format(SCHEMA)
    local file = folder:file("run.json", OPENAI:format("", carried))
    local _, report, err = replay(file)
    expect(report, err)
    local wide = folder:file("wide.json", TOOLS.openai:format(SCHEMA:gsub("50", "100")))
    _, report = replay(file, "--tools", wide)
    assert.equal(0, report.refused)
  end)

  it("the tools of a tools/list reply", function()
    local listed = ('{"jsonrpc":"2.0","id":0,"result":%s}\n'):format(TOOLS.mcp:format(SCHEMA))
    local _, report, err = replay(folder:file("wire.ndjson", listed .. MCP))
    expect(report, err)
  end)

  it("a JSON-RPC message inside of a log line, with its time and session", function()
    local lines = {}
    for line in MCP:gmatch "[^\n]+" do
      lines[#lines + 1] = ('{"ts":"2026-11-02T10:00:00+01:00","session":"chat","message":%s}'):format(line)
    end
    local _, report, err = replay(folder:file("wire.ndjson", lines), "--tools", tools "mcp")
    expect(report, err)
    assert.equal(1793610000000, report.first_ms)
  end)

  it("the common names of members", function()
    local log = folder:file("log.ndjson", {
      '{"session_id":"s","tool_name":"list_orders","args":{"limit":80},"output":"[]"}',
      '{"conversation_id":"s","name":"list_orders","input":{"limit":81},"response":"[]"}',
      '{"thread_id":"s","function":{"name":"list_orders","arguments":"{\\"limit\\":82}"},"timestamp":1767225600}' })
    local _, report, err = replay(log, "--tools", tools "mcp")
    assert.truthy(report, err)
    assert.same({ 3, 1, 3 }, { report.calls, report.sessions, report.refused })
  end)

  it("times in seconds, in milliseconds and as text", function()
    for _, time in ipairs { "1767225600", "1767225600000", '"2026-01-01T00:00:00Z"', '"2026-01-01 01:00:00.000+01:00"' } do
      local log = folder:file("log.ndjson", { ('{"session":"s","tool":"t","arguments":{},"ts":%s}'):format(time) })
      local _, report = replay(log)
      assert.equal(1767225600000, report.first_ms, time)
    end
  end)

  it("standard input as -", function()
    local out = process.runs({ daemon.binary, "replay", "-", "--json" }, { input = one_line(ANTHROPIC) })
    assert.equal(3, require("client").json.decode(out).calls)
  end)
end)
