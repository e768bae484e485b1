-- What a model has read and written, in tokens, as each format records it.
local recordings = require "recordings"
local replay = recordings.replay

-- Lines, and the tokens that were read, of these from a cache, and written.
local FORMATS = {
  ["Claude Code, a message over two lines"] = { {
    '{"type":"assistant","sessionId":"s","message":{"id":"m","role":"assistant","content":[],"usage":'
      .. '{"input_tokens":20,"cache_creation_input_tokens":5,"cache_read_input_tokens":900,"output_tokens":8}}}',
    '{"type":"assistant","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t",'
      .. '"name":"Read","input":{"file_path":"a"}}],"usage":{"input_tokens":20,"cache_creation_input_tokens":5,'
      .. '"cache_read_input_tokens":900,"output_tokens":61}}}' }, { 925, 900, 61 } },
  ["Codex, the sum so far, over and over"] = { {
    '{"type":"response_item","payload":{"type":"function_call","name":"t","arguments":"{}","call_id":"c"}}',
    '{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":500,'
      .. '"cached_input_tokens":200,"output_tokens":70}}}}',
    '{"type":"event_msg","payload":{"type":"token_count","info":null}}',
    '{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1500,'
      .. '"cached_input_tokens":900,"output_tokens":90}}}}' }, { 1500, 900, 90 } },
  ["gemini-cli, a message that is written again"] = { {
    '{"sessionId":"s","projectHash":"p","kind":"main"}',
    '{"id":"m","type":"gemini","toolCalls":[],"tokens":{"input":100,"output":7,"cached":40,"thoughts":3}}',
    '{"id":"m","type":"gemini","toolCalls":[{"id":"c","name":"t","args":{},"status":"success","result":"r"}],'
      .. '"tokens":{"input":100,"output":9,"cached":40,"thoughts":3}}' }, { 100, 40, 12 } },
  ["opencode, of its steps and not of the message again"] = { {
    '{"info":{"id":"m","sessionID":"s","role":"assistant","tokens":{"input":30,"output":4,"cache":{"read":50,"write":2}}},'
      .. '"parts":[{"type":"tool","callID":"c","tool":"t","state":{"status":"completed","input":{},"output":"r"}},'
      .. '{"type":"step-finish","tokens":{"input":30,"output":4,"cache":{"read":50,"write":2}}}]}' }, { 82, 50, 4 } },
  ["goose, of the session"] = { {
    '{"session_id":"s","working_dir":"/x","description":"d","accumulated_input_tokens":70,"accumulated_output_tokens":8}',
    '{"session_id":"s","role":"assistant","content_json":"[{\\"type\\":\\"toolRequest\\",\\"id\\":\\"c\\",\\"toolCall\\":'
      .. '{\\"status\\":\\"success\\",\\"value\\":{\\"name\\":\\"t\\",\\"arguments\\":{}}}}]"}' }, { 70, 0, 8 } },
  ["OpenAI's replies"] = { {
    '{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]}}],'
      .. '"usage":{"prompt_tokens":50,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":30}}}',
    '{"output":[{"type":"function_call","call_id":"d","name":"t","arguments":"{}"}],"usage":{"input_tokens":10,'
      .. '"output_tokens":1,"input_tokens_details":{"cached_tokens":4}}}' }, { 60, 34, 7 } },
  ["Anthropic's reply"] = { {
    '{"type":"message","role":"assistant","id":"m","content":[{"type":"tool_use","id":"c","name":"t","input":{}}],'
      .. '"usage":{"input_tokens":5,"cache_read_input_tokens":90,"output_tokens":2}}' }, { 95, 90, 2 } },
  ["Gemini's and Bedrock's replies"] = { {
    '{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"t","args":{}}}]}}],"usageMetadata":'
      .. '{"promptTokenCount":40,"candidatesTokenCount":5,"thoughtsTokenCount":2,"cachedContentTokenCount":8}}',
    '{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"t","input":{}}}]}},"usage":'
      .. '{"inputTokens":10,"outputTokens":1,"cacheReadInputTokens":3}}' }, { 53, 11, 8 } },
  ["pydantic-ai and LangChain"] = { {
    '[{"kind":"response","parts":[{"part_kind":"tool-call","tool_name":"t","args":{},"tool_call_id":"c"}],"usage":'
      .. '{"input_tokens":20,"cache_read_tokens":12,"output_tokens":3}}]',
    '[{"type":"ai","data":{"type":"ai","tool_calls":[{"name":"t","args":{},"id":"c"}],"usage_metadata":{"input_tokens":7,'
      .. '"output_tokens":1,"input_token_details":{"cache_read":2}}}}]' }, { 27, 14, 4 } },
  ["OpenTelemetry, of chats and not of their agent again"] = { {
    '{"name":"t","context":{"trace_id":"1"},"start_time":1793610000,"attributes":{"gen_ai.tool.name":"t",'
      .. '"gen_ai.tool.call.arguments":"{}"}}',
    '{"name":"a","context":{"trace_id":"1"},"start_time":1793610000,"attributes":{"gen_ai.operation.name":"invoke_agent",'
      .. '"gen_ai.usage.input_tokens":30,"gen_ai.usage.output_tokens":2}}',
    '{"name":"c","context":{"trace_id":"1"},"start_time":1793610000,"attributes":{"gen_ai.operation.name":"chat",'
      .. '"gen_ai.usage.input_tokens":30,"gen_ai.usage.output_tokens":2}}' }, { 30, 0, 2 } },
  ["LangSmith, of the model's runs"] = { {
    '{"run_type":"tool","name":"t","inputs":{"a":1},"outputs":{"output":"r"},"trace_id":"s"}',
    '{"run_type":"chain","name":"c","inputs":{},"trace_id":"s","prompt_tokens":9,"completion_tokens":1}',
    '{"run_type":"llm","name":"m","inputs":{},"trace_id":"s","prompt_tokens":9,"completion_tokens":1}' }, { 9, 0, 1 } },
  ["figures that are none"] = { {
    '{"type":"message","role":"assistant","id":"m","content":[{"type":"tool_use","id":"c","name":"t","input":{}}],'
      .. '"usage":{"input_tokens":1e300,"output_tokens":"many"}}',
    '{"type":"message","role":"assistant","id":"n","content":[],"usage":{"input_tokens":-5,"output_tokens":[1]}}',
    '{"type":"message","role":"assistant","id":"o","content":[],"usage":7}' }, { 0, 0, 0 } },
}

describe("the tokens of", function()
  local folder

  before_each(function() folder = recordings.new() end)

  for name, given in pairs(FORMATS) do
    it(name, function()
      local code, report, err = replay(folder:file("run.jsonl", given[1]))
      assert.equal(0, code, err)
      local t = report.tokens
      assert.same({ given[2], {} }, { { t.input, t.cached, t.output }, report.skipped })
    end)
  end

  it("a loop are those of its calls that were for nothing, and each report says them", function()
    local lines = {}
    for i = 1, 9 do
      lines[#lines + 1] = ('{"type":"assistant","sessionId":"s","message":{"id":"m%d","role":"assistant","content":[{"type":'
        .. '"tool_use","id":"t%d","name":"fetch","input":{}}],"usage":{"input_tokens":20000,"output_tokens":100}}}'):format(i, i)
      lines[#lines + 1] = ('{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result",'
        .. '"tool_use_id":"t%d","content":"the same"}]}}'):format(i)
    end
    local file = folder:file("s.jsonl", lines)
    local _, report = replay(file)
    local loop = report.loops.list[1]
    assert.same({ 180000, 7, 7 * 20100 }, { report.tokens.input, loop.saved, loop.tokens })
    local _, out = process.run { daemon.binary, "replay", file, "--html", folder.path .. "/page.html" }
    local _, markdown = process.run { daemon.binary, "replay", file, "--markdown" }
    for _, text in ipairs { out, markdown, process.read(folder.path .. "/page.html") } do
      assert.truthy(text:find("The models read 180,000 tokens and wrote 900", 1, true), text)
    end
    assert.truthy(out:find("7 times for nothing: 141,000 tokens", 1, true), out)
  end)

  it("a text report are rounded, and a million is one from its last thousand on", function()
    for input, shown in pairs { [950] = "950", [9999] = "9,999", [45400] = "45,000", [999499] = "999,000",
                                [999500] = "1.0 million", [1260000] = "1.3 million" } do
      local file = folder:file("r.jsonl", { ('{"output":[{"type":"function_call","call_id":"d","name":"t","arguments":"{}"}],'
        .. '"usage":{"input_tokens":%d,"output_tokens":1}}'):format(input) })
      local _, out = process.run { daemon.binary, "replay", file }
      assert.truthy(out:find(("The models read %s tokens"):format(shown), 1, true), out)
    end
  end)
end)
