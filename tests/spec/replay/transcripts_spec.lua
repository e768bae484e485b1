-- The transcripts of assistants and SDKs, each found out by its content: tests/support/recordings has one file a format, each
-- with a call that went well and one that failed.
local recordings = require "recordings"
local replay = recordings.replay

local FOLDER = "tests/support/recordings/"
local ARGUMENTS = { get_weather = "city", read_file = "path" }

local function names()
  local found = {}
  for name in io.popen("ls " .. FOLDER):lines() do found[#found + 1] = name end
  return found
end

-- The lines of equal calls with equal results, by the main agent or by a sub-agent.
local function claude_lines(calls, agent)
  local lines = {}
  for i = 1, calls do
    lines[#lines + 1] = ([[{"type":"assistant","sessionId":"s","agentId":%s,"isSidechain":%s,"uuid":"a%d","message":{"id":"m%d",]]
      .. [["role":"assistant","content":[{"type":"tool_use","id":"%s%d","name":"fetch_page","input":{"page":1}}]}}]])
      :format(agent and '"' .. agent .. '"' or "null", tostring(agent ~= nil), i, i, agent or "t", i)
    lines[#lines + 1] = ([[{"type":"user","sessionId":"s","agentId":%s,"isSidechain":%s,"uuid":"r%d","message":{"role":"user",]]
      .. [["content":[{"type":"tool_result","tool_use_id":"%s%d","content":"the same"}]}}]])
      :format(agent and '"' .. agent .. '"' or "null", tostring(agent ~= nil), i, agent or "t", i)
  end
  return lines
end

describe("toolgate replay reads without a flag", function()
  local folder

  before_each(function() folder = recordings.new() end)

  for _, name in ipairs(names()) do
    it(name, function()
      local code, report, err = replay(FOLDER .. name)
      assert.equal(0, code, err)
      assert.same({ 2, 1, 0, 0, 0 }, { report.calls, report.sessions, report.without_result, report.without_arguments,
                                       report.without_check })
      assert.same({}, report.skipped)
      assert.equal(1, report.failures + report.failures_unmarked)
      assert.equal(1, #report.tools.rows)
      local row = report.tools.rows[1]
      local argument = assert(ARGUMENTS[row.tool], row.tool)
      for _, class in ipairs(report.classes.rows) do
        for _, e in ipairs(class.examples) do
          if e.arguments then assert.truthy(e.arguments:find('"' .. argument .. '"', 1, true), e.arguments) end
        end
      end
    end)
  end

  it("the failures of Codex' calls that ran at once, each by its own event", function()
    local lines = { '{"type":"session_meta","payload":{"id":"s"}}' }
    local function add(kind, payload, ...)
      lines[#lines + 1] = ('{"type":"%s","payload":%s}'):format(kind, payload:format(...))
    end
    for _, id in ipairs { "a", "b" } do
      add("response_item", [[{"type":"function_call","call_id":"%s","name":"look","arguments":"{\"at\":\"%s\"}"}]], id, id)
    end
    add("event_msg", [[{"type":"mcp_tool_call_end","call_id":"a","result":{"Err":"it is down"}}]])
    add("event_msg", [[{"type":"mcp_tool_call_end","call_id":"b","result":{"Ok":{"content":[],"isError":false}}}]])
    for _, id in ipairs { "a", "b" } do
      add("response_item", [[{"type":"function_call_output","call_id":"%s","output":"seen"}]], id)
    end
    local code, report, err = replay(folder:file("rollout-1.jsonl", table.concat(lines, "\n") .. "\n"))
    assert.equal(0, code, err)
    assert.same({ 2, 1 }, { report.calls, report.failures })
  end)

  it("the tools that a conversation brings as those of its file alone", function()
    local files = {}
    for i, name in ipairs { "aa", "bb" } do
      files[i] = folder:file(name .. ".json", (([[{"tools":[{"type":"function","function":{"name":"look","parameters":{
        "type":"object","properties":{"NAME":{"type":"string"}},"required":["NAME"],"additionalProperties":false}}}],
        "messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"look",
        "arguments":"{\"NAME\":\"1\"}"}}]},{"role":"tool","tool_call_id":"c","content":"fine"}]}]])
        :gsub("NAME", name):gsub("\n *", "")) .. "\n")
    end
    local code, report, err = replay(unpack(files))
    assert.equal(0, code, err)
    assert.same({ 2, 0 }, { report.calls, report.refused })
  end)

  it("a sub-agent apart from its parent", function()
    local lines = claude_lines(2)
    for _, line in ipairs(claude_lines(2, "a1")) do lines[#lines + 1] = line end
    local code, report, err = replay(folder:file("s.jsonl", table.concat(lines, "\n") .. "\n"))
    assert.equal(0, code, err)
    assert.same({ 4, 1, 0 }, { report.calls, report.sessions, report.refused })
    local _, one = replay(folder:file("t.jsonl", table.concat(claude_lines(6), "\n") .. "\n"))
    assert.truthy(one.refused > 0) -- the same calls by one agent are a loop
  end)

  it("a sub-agent that has no name by the line that began it", function()
    local lines = {}
    for _, agent in ipairs { "x", "y" } do
      lines[#lines + 1] = ([[{"type":"user","sessionId":"s","isSidechain":true,"uuid":"%s0","parentUuid":null,"message":]]
        .. [[{"role":"user","content":"look"}}]]):format(agent)
      for i, line in ipairs(claude_lines(2, "q" .. agent)) do
        lines[#lines + 1] = line:gsub('"agentId":"%w+",', ""):gsub('"uuid":"[ar]%d"',
          ('"uuid":"%s%d","parentUuid":"%s%d"'):format(agent, i, agent, i - 1))
      end
    end
    local code, report, err = replay(folder:file("s.jsonl", table.concat(lines, "\n") .. "\n"))
    assert.equal(0, code, err)
    assert.same({ 4, 1, 0 }, { report.calls, report.sessions, report.refused })
  end)

  it("a resumed session once, although its second file repeats the first", function()
    local lines = claude_lines(2)
    local one = folder:file("one.jsonl", table.concat(lines, "\n") .. "\n")
    local two = folder:file("two.jsonl", table.concat(lines, "\n") .. "\n")
    local code, report, err = replay(one, two)
    assert.equal(0, code, err)
    assert.same({ 2, 0, 0 }, { report.calls, report.without_check, report.refused })
  end)

  it("what a model reads again after its context was compacted", function()
    local lines = claude_lines(2)
    lines[#lines + 1] = [[{"type":"system","subtype":"compact_boundary","sessionId":"s","uuid":"c"}]]
    for _, line in ipairs(claude_lines(2)) do lines[#lines + 1] = (line:gsub('"t(%d)"', '"v%1"')) end
    local code, report, err = replay(folder:file("s.jsonl", table.concat(lines, "\n") .. "\n"))
    assert.equal(0, code, err)
    assert.same({ 4, 0 }, { report.calls, report.refused })
  end)

  -- Writes that are made over and over, with a line of the transcript between them.
  local function writes_around(line)
    local lines = {}
    for i = 1, 12 do
      for _, each in ipairs(claude_lines(1)) do
        lines[#lines + 1] = each:gsub("fetch_page", "send_mail"):gsub('"([tamr])1"', '"%1' .. i .. '"')
      end
      if i % 2 == 0 then lines[#lines + 1] = line end
    end
    local code, report, err = replay(folder:file("s.jsonl", table.concat(lines, "\n") .. "\n"))
    assert.equal(0, code, err)
    assert.equal(12, report.calls)
    return report.refused
  end

  it("a compaction as no turn of a person's: what the agent wrote, it has still written", function()
    assert.equal(0, writes_around [[{"type":"user","sessionId":"s","message":{"role":"user","content":"again"}}]])
    assert.is_true(writes_around [[{"type":"system","subtype":"compact_boundary","sessionId":"s"}]] > 0)
    local _, report = replay(folder:file("c.jsonl", '{"type":"system","subtype":"compact_boundary","sessionId":"t"}\n'
                                                    .. table.concat(claude_lines(1), "\n") .. "\n"))
    assert.equal(1, report.sessions)
  end)

  it("what a sub-agent's parent says to it as no turn of a person's", function()
    local lines = { '{"type":"session_meta","payload":{"id":"child","source":{"subagent":{"thread_spawn":'
                    .. '{"parent_thread_id":"parent"}}}}}' }
    for i = 1, 12 do
      lines[#lines + 1] = '{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"go on"}]}}'
      lines[#lines + 1] = ('{"type":"response_item","payload":{"type":"function_call","call_id":"c%d","name":"send_mail",'
                           .. '"arguments":"{}"}}'):format(i)
      lines[#lines + 1] = ('{"type":"response_item","payload":{"type":"function_call_output","call_id":"c%d",'
                           .. '"output":"sent"}}'):format(i)
    end
    local text = table.concat(lines, "\n") .. "\n"
    local _, child = replay(folder:file("a.jsonl", text))
    local _, main = replay(folder:file("b.jsonl", (text:gsub('"source":%b{}', '"source":"cli"'))))
    assert.same({ 12, 1, 12, 1, 0 }, { child.calls, child.sessions, main.calls, main.sessions, main.refused })
    assert.is_true(child.refused > 0)
  end)

  it("a call that a person would have been asked about as none that lost its result", function()
    local policies = folder:policies("policies", { fetch_page = [[
-- fetch_page: a person agrees to each page.
return tool "fetch_page" { check = function() return ask("Fetch it?", { "yes", "no" }) end }
]] })
    local later = folder:file("later.jsonl", table.concat(claude_lines(1), "\n") .. "\n")
    local at_once = folder:file("log.ndjson", '{"session":"s","tool":"fetch_page","arguments":{"page":1},"result":"new"}\n')
    for _, file in ipairs { later, at_once } do
      local code, report, err = replay(file, "--policies", policies)
      assert.equal(0, code, err)
      assert.same({ 1, 1, 0, {} }, { report.refused, report.asked, report.lost_results, report.lost.rows })
      local _, out = require("process").run { require("daemon").binary, "replay", file, "--policies", policies, "--markdown" }
      assert.truthy(out:find("| you are asked first | 1 |", 1, true), out)
      assert.truthy(out:find("| would not have run | 0 |", 1, true), out)
    end
  end)

  it("a call that the model sent as broken JSON, as it was sent", function()
    local code, report, err = replay(folder:file("run.json", [=[[{"type":"ai","data":{"type":"ai","content":"","tool_calls":[],
      "invalid_tool_calls":[{"name":"book_room","args":"{\"room\":","id":"c1","error":"no JSON"}]}}]]=]))
    assert.equal(0, code, err)
    assert.equal("{\"room\":", (report.tools.rows[1].examples[1].arguments:gsub('^"(.*)"$', "%1"):gsub('\\"', '"')))
  end)
end)

describe("a file that toolgate replay does not understand", function()
  local folder

  before_each(function() folder = recordings.new() end)

  it("is an error that says what it looks like, and what is read", function()
    local code, report, err = replay(folder:file("beacons.jsonl",
      '{"kind":"beacon","n":1,"\\u001b[31m":1}\n{"kind":"beacon","n":2}\n'))
    assert.same({ 2, 0 }, { code, report.calls })
    assert.equal(2, report.skipped.not_record.count)
    for _, words in ipairs { "beacons.jsonl:1", "kind, n", "Claude Code", "Codex", "OpenAI", "OpenTelemetry" } do
      assert.truthy(err:find(words, 1, true), err)
    end
    assert.falsy(err:find("\27", 1, true))
  end)

  it("may be nested as deep as it likes, of wrong types, or of huge lines", function()
    local hostile = { '{"type":"assistant","sessionId":7,"message":{"content":{"type":[]}}}',
                      '{"type":"user","sessionId":"s","message":[1,2]}',
                      '{"type":"response_item","payload":{"type":["function_call"]}}',
                      '{"resourceSpans":[{"scopeSpans":7}]}', '{"messages":[7,null,"x",[],{"role":{},"content":7}]}',
                      '{"role":"assistant","tool_calls":{"function":1},"content":[[[]],{"type":{}}]}',
                      '{"kind":"ActionEvent","tool_name":[],"tool_call":7}', '{"steps":[7],"schema_version":"ATIF-v1"}',
                      '{"trajectory":[7],"history":[7],"info":{}}', '{"run_type":"tool","inputs":7,"name":{},"trace_id":1}',
                      '{"type":"gemini","toolCalls":[7,{"status":{}}],"sessionId":"x"}', '{"info":{"role":1},"parts":[7,{}]}',
                      '{"role":"user","content_json":"[7,[]]"}', '{"parts":[7,{"functionCall":7}],"role":"model"}',
                      '{"type":"ai","tool_calls":[7],"content":1}',
                      '{"observations":[{"type":"TOOL","trace_id":1,"start_time":1}]}',
                      '[[[[7]]]]', '{"lc":1,"kwargs":7}', '{"kind":"request","parts":[7]}' }
    local code, report, err = replay(folder:file("hostile.jsonl", table.concat(hostile, "\n") .. "\n"))
    assert.equal(2, code)
    assert.equal(0, report.calls)
    for kind, fault in pairs(report.skipped) do
      assert.equal("not_record", kind)
      for _, place in ipairs(fault.places) do assert.falsy(place.why:find("attempt to", 1, true), place.why) end
    end
    assert.falsy(err:find("attempt to", 1, true), err)
  end)
end)
