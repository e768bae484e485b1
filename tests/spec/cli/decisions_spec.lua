-- toolgate decisions: filters, what came next, input that cannot be read, and text that would control the terminal.
local cjson = require "cjson"
local tmux = require "tmux"
local records = require "decision_records"

describe("toolgate decisions", function()
  local folder, log

  before_each(function()
    folder = process.directory()
    log = folder .. "/decisions.ndjson"
    records.restart()
  end)

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

  it("says what followed on each refusal, though the daemon writes on", function()
    local list = {}
    for n = 1, 2000 do list[n] = records.repair { session = "s" .. n, arguments = { from = "x" } } end
    write(list)
    local _, out = process.run { "sh", "-c", [[mv "$2" "$2.all"; read -r line < "$2.all"; echo "$line" > "$2"
      while read -r line; do echo "$line" >> "$2"; done < "$2.all" & writer=$!
      for _ in 1 2 3 4 5 6 7 8; do "$1" decisions "$2" > "$2.out"
      echo "$(grep -c "^20.* repair " "$2.out") refusals, $(grep -c "→" "$2.out") outcomes"; done; kill $writer]],
      "sh", daemon.binary, log }
    local looks = 0
    for refusals, outcomes in out:gmatch "(%d+) refusals, (%d+) outcomes\n" do
      looks = looks + (tonumber(refusals) > 0 and 1 or 0)
      assert.equal(refusals, outcomes)
    end
    assert.equal(8, looks)
  end)

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

  it("says of a question to the user neither that the model repaired it nor that it gave up", function()
    local asks = { verdict = "ask", error_class = "need_user_input", code = "ask", arguments = { n = 1 } }
    for _, later in ipairs { { records.record { step = "m2", arguments = { n = 2 } } }, {} } do
      asks.step = "m1"
      write { records.repair(asks), unpack(later) }
      local _, out = toolgate(log, "--refused")
      assert.is_nil(out:find("repaired", 1, true) or out:find("gave up", 1, true), out)
      local next = later[1] and "a call with other arguments" or "no later call"
      assert.truthy(out:find("→ no answer is recorded; " .. next, 1, true), out)
    end
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

  it("says how to read a compressed file, and fails: it is not in the list", function()
    write { records.record {} }
    local packed = process.write(folder .. "/old.gz", "\31\139\8\0\10\0\10x\10")
    local code, out, err = toolgate(packed, log, "--json")
    assert.equal(2, code)
    assert.truthy(out:find("decision_id", 1, true), out)
    assert.truthy(err:find("old.gz (it is compressed: gzip -dc", 1, true), err)
    assert.is_nil(err:find("not JSON", 1, true), err)
  end)

  it("fails where standard input is closed", function()
    local code, out = process.run { "sh", "-c", '"$0" decisions --json - 0<&-', daemon.binary }
    assert.same({ 2, "" }, { code, out })
    write { records.record {} }
    code = process.run { "sh", "-c", '"$0" decisions --json "$1" >&-', daemon.binary, log }
    assert.equal(2, code)
  end)

  it("reads several files as one log, in their order", function()
    records.write(folder .. "/old", { records.repair { session = "s", arguments = { from = "x" } } }, cjson.encode)
    write { records.record { session = "s", arguments = { day = "2026-05-05" } } }
    local _, out = toolgate(folder .. "/old", log, "--refused")
    assert.truthy(out:find("repaired", 1, true), out)
  end)

  it("says how many refusals of a session are too many to follow up", function()
    local function refusals(count)
      local list = {}
      for i = 1, count do list[i] = records.repair { session = "s", arguments = { from = i } } end
      write(list)
      local code, _, err = toolgate(log)
      assert.equal(0, code)
      return err
    end
    assert.equal("", refusals(64))
    assert.truthy(refusals(66):find(" 2 refusals ", 1, true))
  end)

  it("shows the message of each problem, as the daemon writes it", function()
    write { records.repair { messages = { { path = "args.head", code = "maximum", message = "must be at most 200" } } } }
    local _, out = toolgate(log)
    assert.truthy(out:find("args.head must be at most 200", 1, true), out)
  end)

  it("sends nothing to the terminal that could control it", function()
    local evil = "\27[2J\27]0;title\7\194\155\226\128\174\226\129\166\243\160\129\129\127\r\8"
    write {
      records.repair { tool = "t" .. evil, session = "s" .. evil, code = evil, detail = evil, hint = evil,
                       arguments = { [evil] = evil },
                       messages = { { path = evil, code = evil, message = evil } } },
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

  describe("--follow", function()
    local out, err, follower

    local function follow(...)
      out, err = folder .. "/out", folder .. "/err"
      follower = process.start({ "env", "TZ=UTC", daemon.binary, "decisions", log, "--follow", ... },
                               { stdout = out, stderr = err })
    end
    after_each(function()
      if follower then follower:signal(9) follower:wait() end
      follower = nil
    end)

    local function append(list)
      records.write(folder .. "/more", list, cjson.encode)
      local file = assert(io.open(log, "a"))
      file:write(process.read(folder .. "/more"))
      file:close()
    end

    local function shows(ids)
      local wanted = table.concat(ids, " ")
      process.eventually("it prints " .. wanted, function()
        local found = {}
        for id in process.read(out):gmatch '"decision_id":"(d%-%d+)"' do found[#found + 1] = id end
        return table.concat(found, " ") == wanted
      end)
    end

    it("prints the last records, then what is written, through a rotation", function()
      write { records.record {}, records.repair {}, records.record {}, records.repair {} }
      follow("--json", "--refused", "--last", "1")
      shows { "d-0004" }
      append { records.record {}, records.repair {} }
      shows { "d-0004", "d-0006" }
      assert(os.rename(log, log .. ".1"))
      write { records.repair {} }
      shows { "d-0004", "d-0006", "d-0007" }
      assert.equal("", process.read(err))
    end)

    it("waits for a file that is not there yet, and reports at once what it cannot read", function()
      follow "--json"
      write { "no JSON", records.record {} }
      shows { "d-0001" }
      process.eventually("the fault is reported", function() return process.read(err):find(":1 ", 1, true) end)
    end)

    it("prints no byte that a terminal obeys, however the record was written", function()
      write { cjson.encode(records.record {}):gsub('"tool":"', '%0\27[31m\233', 1), nil }
      local _, printed = toolgate(log, "--follow", "--json", "--limit", "1")
      assert.matches('"tool":"\\u001b%[31m\\ufffd', printed)
    end)

    it("ends after --limit, and when nobody reads its output", function()
      write { records.record {}, records.record {} }
      local code, printed = toolgate(log, "--follow", "--json", "--limit", "1")
      assert.equal(0, code)
      assert.equal("d-0001", cjson.decode(printed).decision_id)
      code, printed = process.run { "sh", "-c", ([["%s" decisions %s --follow | head -n 1]]):format(daemon.binary, log) }
      assert.equal(0, code)
      assert.equal(1, select(2, printed:gsub("\n", "")))
    end)

    it("follows one file, and is no review", function()
      write {}
      for _, argv in ipairs { { log, log, "--follow" }, { "-", "--follow" }, { folder, "--follow" },
                              { log, "--follow", "--review" } } do
        local code, _, why = toolgate(unpack(argv))
        assert.equal(2, code)
        assert.truthy(why:find("--follow", 1, true), why)
      end
    end)
  end)

  describe("--review", function()
    local function review(keys, ...)
      return process.run({ "env", "TZ=UTC", daemon.binary, "decisions", log, "--review", ... },
                         { directory = folder, input = keys })
    end

    it("gives the terminal back after Ctrl-C", function()
      write_week()
      local terminal = tmux.start()
      local before, after = terminal.directory .. "/before", terminal.directory .. "/after"
      terminal:types(("stty -a >%s; %s decisions %s --review"):format(before, daemon.binary, log))
      terminal:shows "q quit"
      terminal:press "C-c"
      terminal:shows "not yet reviewed 7"
      terminal:types(("stty -a >%s; echo check''ed"):format(after))
      terminal:shows "checked" -- also behind the prompt, where the shell reads what was typed before it prompts
      assert.equal(process.read(before), process.read(after))
      tmux.stop_all()
    end)

    local function marks()
      local found = {}
      for line in process.read(log .. ".review"):gmatch "[^\n]+" do
        local mark = cjson.decode(line)
        found[mark.decision_id] = mark.mark
      end
      return found
    end

    it("marks the refusals one by one, goes back, and goes on where it ended", function()
      write_week()
      local code, out, err = review "r\nw\nb\nx\nr\ns\nq\n"
      assert.equal(0, code, err)
      assert.same({ ["d-0002"] = "right", ["d-0004"] = "right", ["d-0005"] = "skip" }, marks())
      assert.truthy(out:find("7 refusals: right 2, wrong 0, skipped 1, not yet reviewed 4", 1, true), out)
      assert.is_nil(out:find("examples", 1, true), out)
      out = select(2, review "w\n")
      assert.equal("wrong", marks()["d-0006"])
      golden.check("decisions", "review: the fourth of seven is wrong, then the keys end", out)
    end)

    it("takes single keys from a terminal", function()
      write_week()
      process.runs { "python3", "-c", [[
import os, pty, sys
sent = b"rwq"
def keys(fd):
    data = os.read(fd, 65536)
    global sent
    if data.endswith(b"q quit: ") and sent:
        os.write(fd, sent[:1])
        sent = sent[1:]
    return data
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], keys, lambda fd: b"")))]], daemon.binary, "decisions", log,
                     "--review" }
      assert.same({ ["d-0002"] = "right", ["d-0004"] = "wrong" }, marks())
    end)

    it("writes wrong refusals as examples that fail today and hold once the policy is fixed", function()
      write {
        records.repair { arguments = { from = "a]]b]" } },
        records.repair { arguments = { from = { "]" } } },
      }
      local code, _, err = review("w\nw\n", "--examples", folder .. "/examples.lua")
      assert.equal(0, code, err)
      local function policy(schema)
        process.write(folder .. "/get_events.lua", ([[
-- get_events: reads events. Read only.
return tool "get_events" {
  effects = "read", schema = json '%s', run = function() return { events = {} } end,
%s}
]]):format(schema, process.read(folder .. "/examples.lua")))
        return process.run { daemon.binary, "test", folder .. "/get_events.lua" }
      end
      local out
      code, out = policy '{"type":"object","required":["day"]}'
      assert.equal(1, code)
      assert.truthy(out:find("0 passed, 2 failed", 1, true), out)
      code, out, err = policy '{"type":"object"}'
      assert.equal(0, code, out .. err)
      assert.truthy(out:find("2 passed, 0 failed", 1, true), out)
    end)
  end)
end)
