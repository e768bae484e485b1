-- The limits of a replay: what is beyond them is counted together, and nothing is judged by what is not its own.
local recordings = require "recordings"
local replay = recordings.replay

describe("a replay", function()
  local folder

  before_each(function() folder = recordings.new() end)

  it("gives the tools beyond the thousandth one row together", function()
    local records = {}
    for i = 1, 1010 do records[i] = { session = "s" .. i, tool = "tool_" .. i, arguments = { n = i }, result = "ok" } end
    local _, report = replay(folder:file("log.ndjson", records))
    assert.same({ 1010, 1000, 10 }, { report.calls, #report.tools.rows, report.tools.other.calls })
    assert.same({ 1000, 10 }, { #report.unknown_tools.rows, report.unknown_tools.other.calls })
  end)

  it("lists the hundred longest loops, and counts all", function()
    local records = {}
    for i = 1, 105 do
      for _ = 1, i == 105 and 6 or 3 do
        records[#records + 1] = { session = "s" .. i, tool = "find", arguments = { q = 1 }, result = "none" }
      end
    end
    local _, report = replay(folder:file("log.ndjson", records))
    assert.same({ 105, 108, 100 }, { report.loops.sessions, report.loops.calls_saved, #report.loops.list })
    assert.same({ "s105", 4 }, { report.loops.list[1].session, report.loops.list[1].saved })
  end)

  it("keeps three examples of each row, with arguments that are cut", function()
    local records = {}
    for i = 1, 5 do
      records[i] = { session = "s" .. i, tool = "find", arguments = { text = ("é"):rep(1000) }, is_error = true, result = "no" }
    end
    local _, report = replay(folder:file("log.ndjson", records))
    local examples = report.codes.rows[1].examples
    assert.equal(3, #examples)
    assert.is_true(#examples[1].arguments < 410)
    assert.truthy(examples[1].arguments:find "…$")
  end)

  it("judges each conversation by the tools that it carries, however many sets there are", function()
    local lines = {}
    for round = 1, 2 do
      for i = 1, 40 do
        lines[#lines + 1] = ([[{"id":"r%d-%d","tools":[{"name":"list","input_schema":{"type":"object","properties":{"n":]]
          .. [[{"type":"integer","maximum":%d}}}}],"messages":[{"role":"assistant","content":[]]
          .. [[{"type":"tool_use","id":"a","name":"list","input":{"n":%d}},{"type":"tool_use","id":"b","name":"list",]]
          .. [["input":{"n":%d}}]}]}]]):format(round, i, i, i, i + 1)
      end
    end
    local _, report, err = replay(folder:file("log.ndjson", lines))
    assert.truthy(report, err)
    assert.same({ 160, 80, 80 }, { report.calls, report.sessions, report.refused })
  end)

  it("tells of a session in circles by the call that was made most, and gives examples their arguments", function()
    local lines, id = {}, 0
    local function call(command, result, failed)
      id = id + 1
      lines[#lines + 1] = { type = "assistant", sessionId = "s", message = { id = "m" .. id, role = "assistant", content = {
        { type = "tool_use", id = "t" .. id, name = "Bash", input = { command = command } } } } }
      lines[#lines + 1] = { type = "user", sessionId = "s", message = { role = "user", content = {
        { type = "tool_result", tool_use_id = "t" .. id, content = result, is_error = failed } } } }
    end
    for _ = 1, 4 do call("first", "the same", false) end
    for _ = 1, 9 do call("second", "Error: no module 'x'", true) end
    local log = folder:file("s.jsonl", lines)
    local _, report = replay(log)
    local loop = report.loops.list[1]
    assert.truthy(loop.arguments:find("second", 1, true), loop.arguments)
    assert.is_true(loop.times > loop.saved / 2 and loop.times < loop.saved)
    local failed = recordings.row(report.problems, { tool = "Bash", code = "tool_error" }).examples[1]
    assert.same({ '{"command":"second"}', "Error: no module 'x'" }, { failed.arguments, failed.detail })
    local _, out = require("process").run { require("daemon").binary, "replay", log }
    local words = ("%d times for nothing, %d other calls likewise"):format(loop.times, loop.saved - loop.times)
    assert.truthy(out:find(words, 1, true), out)
  end)
end)
