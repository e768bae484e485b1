-- The limits of a replay: what is beyond them is counted together, and nothing is judged by what is not its own.
local recordings = require "recordings"
local replay = recordings.replay

describe("a replay", function()
  local folder

  before_each(function() folder = recordings.new() end)
  after_each(function() folder:remove() end)

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
end)
