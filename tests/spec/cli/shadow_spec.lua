-- toolgate shadow: which tools are safe to enforce, from what mode shadow recorded.
local cjson = require "cjson"
local records = require "decision_records"

describe("toolgate shadow", function()
  local folder, log

  before_each(function()
    folder = process.directory()
    log = folder .. "/decisions.ndjson"
    records.restart()
  end)

  -- Twenty calls of a tool in mode shadow, and those that are given.
  local function shadowed(tool, more)
    local list = {}
    for i = 1, 20 do
      list[i] = records.record { policy_mode = "shadow", tool = tool, session = tool .. i, arguments = { day = "x" } }
    end
    for _, each in ipairs(more) do list[#list + 1] = each end
    return list
  end

  local function answer(list)
    records.write(log, list, cjson.encode)
    local code, out, err = process.run { daemon.binary, "shadow", log, "--json" }
    assert.equal("", err)
    return code, cjson.decode(out)
  end

  it("is safe where nothing would be refused, or what would be failed anyway", function()
    local code, row = answer(shadowed("t", {}))
    assert.equal(0, code)
    assert.is_true(row.safe)
    code, row = answer(shadowed("t", {
      records.shadow { tool = "t", session = "s", arguments = { from = 1 }, result = { class = "tool_error" } },
      records.record { tool = "t", session = "s", arguments = { day = 1 }, policy_mode = "shadow" },
    }))
    assert.equal(0, code)
    assert.is_true(row.safe)
    assert.same({ 22, 1, 0, 1, 1 }, { row.calls, row.would_refuse, row.worked, row.failed, row.repaired })
    assert.equal("missing", row.codes[1].code)
  end)

  it("is not safe where a call worked, its result is not known, or there are few calls", function()
    local code, row = answer(shadowed("t", { records.shadow { tool = "t", arguments = { from = 1 } } }))
    assert.equal(1, code)
    assert.is_false(row.safe)
    assert.equal(1, row.worked)
    local checked = records.shadow { tool = "t", method = "toolgate/check", result = false }
    checked.result = nil
    row = select(2, answer(shadowed("t", { checked })))
    assert.is_false(row.safe)
    assert.same({ 0, 0 }, { row.worked, row.failed })
    -- The report of that check says how it ended.
    local report = records.record { tool = "t", method = "toolgate/report", decision_id = checked.decision_id,
                                    verdict = "repair", error_class = "tool_error" }
    row = select(2, answer(shadowed("t", { checked, report })))
    assert.is_true(row.safe)
    row = select(2, answer { records.shadow { tool = "t", result = { class = "tool_error" } } })
    assert.is_false(row.safe)
  end)

  it("counts calls that only repeated one apart from those that worked", function()
    local looped = records.shadow { tool = "t", arguments = { day = "x" } }
    looped.would.error_class, looped.would.code = "loop", "loop"
    local code, row = answer(shadowed("t", { looped }))
    assert.equal(1, code)
    assert.same({ 1, 0, 0, 1 }, { row.would_refuse, row.worked, row.failed, row.repeats })
    assert.matches("polls", row.why)
  end)

  it("prints a paragraph for each tool, and counts no tool that is enforced", function()
    local list = shadowed("good", shadowed("bad\27[2J", { records.shadow { tool = "bad\27[2J", arguments = { from = 1 } } }))
    list[#list + 1] = records.repair { tool = "enforced" }
    records.write(log, list, cjson.encode)
    local code, out = process.run { daemon.binary, "shadow", log }
    assert.equal(1, code)
    assert.is_nil(out:find("\27", 1, true))
    golden.check("decisions", "shadow: a tool that is safe and one that is not", out)
    golden.check("decisions", "help: shadow", (select(2, process.run { daemon.binary, "shadow", "--help" })))
  end)

  it("names the file and line of each mode, as the daemon has it", function()
    local function policy(name, mode)
      return ('return tool "%s" {\n  description = "For specs.", effects = "read", schema = params {},\n  %s\n  run = %s }')
        :format(name, mode, "function() return {} end")
    end
    local gate = daemon.start {
      policies = { ["declares.lua"] = policy("declares", 'mode = "shadow",'), ["defaults.lua"] = policy("defaults", ""),
                   ["enforced.lua"] = policy("enforced", 'mode = "enforce",'),
                   ["both.lua"] = 'return policy {\n  tools = { "dec*" },\n  mode = "shadow",\n}' },
      config = 'return {\n  defaults = {\n    mode = "shadow",\n  },\n}' }
    local list = {}
    for _, tool in ipairs { "declares", "defaults", "enforced" } do
      list[#list + 1] = records.record { policy_mode = "shadow", tool = tool }
    end
    records.write(log, list, cjson.encode)
    local found = {}
    local _, out = process.run { daemon.binary, "shadow", log, "--json", "--socket", gate.socket }
    for line in out:gmatch "[^\n]+" do
      local row = cjson.decode(line)
      found[row.tool] = {}
      for i, place in ipairs(row.shadow) do found[row.tool][i] = place:match "[^/]*$" end
    end
    assert.same({ declares = { "both.lua:3", "declares.lua:3" }, defaults = { "toolgate.lua:3" }, enforced = {} }, found)
    _, out = process.run { daemon.binary, "shadow", log, "--socket", gate.socket }
    assert.truthy(out:find("declares.lua:3\n", 1, true), out)
    daemon.stop_all()
  end)

  it("says that no tool is in mode shadow, which makes nothing safe to enforce", function()
    records.write(log, { records.record {} }, cjson.encode)
    local code, out, err = process.run { daemon.binary, "shadow", log }
    assert.equal(1, code)
    assert.equal("", out)
    golden.check("decisions", "shadow: no such record", err)
  end)
end)
