-- toolgate decisions: filters, what came next, input that cannot be read, and text that would control the terminal.
local cjson = require "cjson"
local daemon = require "daemon"
local golden = require "golden"
local process = require "process"
local records = require "decision_records"

describe("toolgate decisions", function()
  local folder, log

  before_each(function()
    folder = process.directory()
    log = folder .. "/decisions.ndjson"
    records.restart()
  end)
  after_each(function() process.remove(folder) end)

  local function write(list) records.write(log, list, cjson.encode) end

  local function toolgate(...)
    return process.run({ "env", "TZ=UTC", daemon.binary, "decisions", ... }, { directory = folder })
  end

  local function listed(...)
    local code, out, err = toolgate(log, "--json", ...)
    assert.equal(0, code, err)
    local list = {}
    for line in out:gmatch "[^\n]+" do list[#list + 1] = line end
    return list
  end

  -- A week in small: what each model did after its refusal.
  local function write_week()
    write {
      records.record { arguments = { day = "2026-05-04" } },
      records.repair { session = "repairs", arguments = { from = "x" } },
      records.record { session = "repairs", arguments = { day = "2026-05-05" } },
      records.repair { session = "repeats", arguments = { from = "x" } },
      records.repair { session = "repeats", arguments = { from = "x" } },
      records.repair { session = "leaves", turn = 1, arguments = { from = "x" } },
      records.record { session = "leaves", turn = 1, tool = "get_contact", arguments = { id = 7 } },
      records.repair { session = "tries", arguments = { from = "x" } },
      records.repair { session = "tries", arguments = { from = "y" } },
      records.record { session = "tries", turn = 4, arguments = { day = "2026-05-05" } },
      records.record { session = "waits", verdict = "refuse", error_class = "loop", code = "too_soon", detail = "too soon",
                       hint = "Wait 5 seconds.", arguments = { id = 1 } },
      records.record { session = "waits", arguments = { id = 1 } },
      records.shadow { session = "shadow", arguments = { from = "x" } },
      records.record { session = "fails", verdict = "repair", error_class = "tool_error", code = "tool_error",
                       detail = "no such day", arguments = { day = "x" } },
    }
  end

  it("has its help, and an example in it", function()
    local code, out = toolgate "--help"
    assert.equal(0, code)
    assert.truthy(out:find("toolgate decisions", 1, true), out)
    golden.check("decisions", "help: decisions", out)
  end)

  it("says for each refusal what the model did next", function()
    write_week()
    local code, out, err = toolgate(log)
    assert.equal(0, code)
    assert.equal("", err)
    golden.check("decisions", "a week in small", out)
    golden.check("decisions", "a week in small, --refused", (select(2, toolgate(log, "--refused", "--full"))))
  end)

  it("does not take a call of the same message for a repair", function()
    write {
      records.repair { step = "m1", arguments = { from = "x" } },
      records.record { step = "m1", arguments = { day = "2026-05-05" } },
      records.record { step = "m2", tool = "other" },
    }
    local _, out = toolgate(log, "--refused")
    assert.is_nil(out:find("repaired", 1, true), out)
    assert.truthy(out:find("gave up", 1, true), out)
  end)

  it("prints the bytes of a record unchanged with --json", function()
    local odd = '{"verdict":"repair","v":1,  "tool":"t","arguments":{"b":1.0,"a":"\\u0041"},"decision_id":"d"}'
    write { records.record {}, odd }
    local list = listed("--verdict", "repair")
    assert.equal(1, #list)
    assert.equal(odd, list[1])
  end)

  it("filters by every field", function()
    write_week()
    assert.equal(14, #listed())
    assert.equal(1, #listed("--tool", "get_c*"))
    assert.equal(7, #listed("--verdict", "repair"))
    assert.equal(8, #listed("--verdict", "repair,refuse"))
    assert.equal(1, #listed("--code", "too_soon"))
    assert.equal(6, #listed("--class", "invalid_arguments"))
    assert.equal(7, #listed "--refused") -- the tool that failed was not refused
    assert.equal(1, #listed("--would", "--verdict", "repair"))
    assert.equal(3, #listed("--session", "tries"))
    assert.equal(14, #listed("--user", "support"))
    assert.equal(14, #listed("--user", "1001"))
    assert.equal(0, #listed("--user", "1002"))
    assert.equal(1, #listed("--turn", "4"))
    assert.equal(3, #listed("--limit", "3"))
    assert.equal('"d-0014"', listed("--last", "2")[2]:match '"decision_id":("[^"]*")')
    assert.equal(2, #listed("--last", "2"))
  end)

  it("takes spans, dates and times for --since and --until", function()
    write_week()
    assert.equal(14, #listed("--since", "2026-11-22"))
    assert.equal(0, #listed("--since", "2026-11-23"))
    assert.equal(0, #listed("--until", "2026-11-21"))
    assert.equal(14, #listed("--until", "2026-11-22")) -- the whole day
    assert.equal(4, #listed("--since", "2026-11-22 09:00:11"))
    assert.equal(4, #listed("--since", "2026-11-22T10:00:11+01:00"))
    assert.equal(5, #listed("--until", "2026-11-22T09:00:06Z"))
    write { records.record { ts = os.date "!%Y-%m-%dT%H:%M:%SZ" }, records.record { ts = "2001-01-01T00:00:00Z" } }
    assert.equal(1, #listed("--since", "1d"))
  end)

  it("refuses words that match nothing, with the closest one", function()
    write {}
    for name, argv in pairs {
      ["a verdict"] = { "--verdict", "repare" }, ["a class"] = { "--class", "invalid" },
      ["a moment"] = { "--since", "yesterday" }, ["a day that is none"] = { "--until", "2026-02-31" },
    } do
      local code, out, err = toolgate(log, unpack(argv))
      assert.equal(2, code, name)
      assert.equal("", out)
      golden.check("decisions", "usage: " .. name, err)
    end
    assert.equal(2, (toolgate(folder .. "/missing.ndjson")))
  end)

  it("counts what cannot be read by line, and shows the rest", function()
    write {
      records.record { arguments = {} }, "not JSON", '{"v":2,"decision_id":"x","tool":"t","verdict":"pass"}', "[1]",
      '{"tool":"t"}', records.repair { arguments = { from = "x" } },
    }
    local file = assert(io.open(log, "a"))
    file:write '{"v":1,"tool":"cut o'
    file:close()
    local code, out, err = toolgate(log, "--json")
    assert.equal(0, code)
    local _, count = out:gsub("\n", "")
    assert.equal(2, count)
    for _, place in ipairs { ":2 ", ":3\n", ":4 ", ":5 ", ":7 " } do
      assert.truthy(err:find("decisions.ndjson" .. place, 1, true), place .. err)
    end
    golden.check("decisions", "lines that cannot be read", err)
    -- A pipe is read likewise, and named.
    code, out, err = process.run({ "sh", "-c", 'cat "$1" | "$0" decisions -', daemon.binary, log })
    assert.equal(0, code)
    assert.truthy(out:find("get_events", 1, true), out)
    assert.truthy(err:find("stdin:2 ", 1, true), err)
  end)

  it("reads several files as one log, in their order", function()
    records.write(folder .. "/old", { records.repair { session = "s", arguments = { from = "x" } } }, cjson.encode)
    write { records.record { session = "s", arguments = { day = "2026-05-05" } } }
    local _, out = toolgate(folder .. "/old", log, "--refused")
    assert.truthy(out:find("repaired", 1, true), out)
  end)

  it("sends nothing to the terminal that could control it", function()
    local evil = "\27[2J\27]0;title\7\194\155\226\128\174\226\129\166\243\160\129\129\127\r\8"
    write {
      records.repair { tool = "t" .. evil, session = "s" .. evil, code = evil, detail = evil, hint = evil,
                       arguments = { [evil] = evil },
                       messages = { { path = evil, code = evil, detail = evil, hint = evil } } },
      records.record { tool = evil, session = "s" .. evil, arguments = { x = evil } },
      '{"tool":"\27[2Jt","verdict":"pass"}', -- no JSON, and quoted in the fault
    }
    for _, argv in ipairs { { log }, { log, "--full" }, { log, "--refused" } } do
      local _, out, err = toolgate(unpack(argv))
      for _, bad in ipairs { "\27", "\7", "\194\155", "\226\128\174", "\226\129\166", "\243\160", "\127", "\r", "\8" } do
        assert.is_nil((out .. err):find(bad, 1, true), ("%q in %s"):format(bad, out .. err))
      end
    end
  end)
end)
