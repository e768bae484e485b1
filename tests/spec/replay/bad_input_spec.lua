-- Bad recordings: what cannot be read is counted and named by its line, and the rest is replayed.
local recordings = require "recordings"
local replay = recordings.replay

local CALL = '{"session":"s","tool":"t","arguments":{"n":1},"result":"ok"}'
local function at(ts) return ('{"session":"s","tool":"t","arguments":{"n":1},"result":"ok","ts":%s}'):format(ts) end

-- Three calls, as zstd packs them.
local PACKED = (
  "28b52ffd0068fd0100f2830c11b06b0ca75d3fd176cb4b4ebcd1680cf212648078d273a7de9a76882267c37c1d33eb9d560e"
  .. "bb73a5ea0eef3953b46b76180300609680741bc00c50"):gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end)

describe("toolgate replay, given bad input,", function()
  local folder

  before_each(function() folder = recordings.new() end)

  -- The calls that were replayed, the faults of one kind, and the line of the first of them.
  local function expect(calls, fault, count, line, ...)
    local code, report, err = replay(...)
    assert.equal(0, code, err)
    assert.equal(calls, report.calls)
    assert.truthy(report.skipped[fault], fault)
    assert.same({ count, line }, { report.skipped[fault].count, report.skipped[fault].places[1].line })
    return report
  end

  it("is no device, which has no end", function()
    for _, command in ipairs { "replay", "decisions", "shadow" } do
      local code, out, err = process.run { daemon.binary, command, "/dev/zero" }
      assert.equal(2, code)
      assert.truthy((out .. err):find("it is a device, not a file", 1, true), out .. err)
    end
  end)

  it("skips lines that are no JSON", function()
    expect(2, "not_json", 2, 2, folder:file("a", { CALL, "oops", "{'tool': 1}", CALL }))
  end)

  it("skips lines of something else", function()
    expect(1, "not_record", 3, 1, folder:file("a", { '{"level":"info"}', "7", CALL, '{"tool":7}' }))
  end)

  it("skips records of a newer version", function()
    expect(1, "newer_version", 1, 2, folder:file("a", { CALL, '{"v":2,"decision_id":"x","verdict":"pass","tool":"t"}' }))
  end)

  it("skips a last line that is cut off", function()
    expect(2, "cut_off", 1, 3, folder:file("a", CALL .. "\n" .. CALL .. "\n" .. CALL:sub(1, 30)))
  end)

  it("reads what zstd has packed, up to where it is cut off or broken", function()
    local _, report = replay(folder:file("a.zst", PACKED), folder:file("b.zst", PACKED .. PACKED))
    assert.same({ 9, {} }, { report.calls, report.skipped })
    local _, out = process.run({ daemon.binary, "replay", "-", "--json" }, { input = PACKED })
    assert.equal(3, require("client").json.decode(out).calls)
    expect(3, "read_failed", 1, 0, folder:file("cut.zst", PACKED:sub(1, -9)), folder:file("c.zst", PACKED))
    expect(3, "read_failed", 1, 3, folder:file("more.zst", PACKED .. "no frame, but junk"))
  end)

  it("skips hostile nesting", function()
    local deep = ('{"tool":'):rep(50000)
    expect(1, "not_json", 1, 1, folder:file("a", { deep, CALL }))
    expect(1, "not_json", 1, 1, folder:file("b", { CALL:gsub('{"n":1}', ("["):rep(20000) .. ("]"):rep(20000)), CALL }))
  end)

  it("skips a line that is too long, without keeping it in memory", function()
    local path = folder:file("a", CALL .. "\n")
    os.execute(("head -c 200000000 /dev/zero | tr '\\0' x >> %s; printf '\\n%%s\\n' '%s' >> %s"):format(path, CALL, path))
    local limit = daemon.binary:find "%-san/" and "" or "ulimit -v 250000; " -- a sanitizer needs terabytes of addresses
    local within_250_mb = limit .. 'exec "$0" replay --json "$1" > "$1.out"'
    process.runs { "sh", "-c", within_250_mb, daemon.binary, path }
    local report = require("client").json.decode(process.read(path .. ".out"))
    assert.same({ 2, 1, 2 }, { report.calls, report.skipped.too_long.count, report.skipped.too_long.places[1].line })
  end)

  it("names the file of each fault", function()
    local a, b = folder:file("a", { CALL }), folder:file("b", { CALL, "oops" })
    local report = expect(2, "not_json", 1, 2, a, b)
    assert.equal(b, report.skipped.not_json.places[1].file)
  end)

  it("reads records of one format only where --format says so", function()
    expect(1, "not_record", 1, 2, "--format", "ndjson", folder:file("a", { CALL, '{"jsonrpc":"2.0","id":1,"result":{}}' }))
    local code, _, err = replay("--format", "yaml", folder:file("b", { CALL }))
    assert.equal(2, code)
    assert.truthy(err:find("openai", 1, true), err)
  end)

  it("counts calls that are older than the one before, as when the newer of two files comes first", function()
    local old = folder:file("log.1", { '{"session":"s","tool":"t","arguments":{},"ts":1767225600}' })
    local new = folder:file("log", { '{"session":"s","tool":"t","arguments":{},"ts":1767229200}',
                                           '{"session":"t","tool":"t","arguments":{},"ts":1767225000}' })
    local _, report = replay(new, old)
    assert.equal(1, report.backwards)
    _, report = replay(old, new)
    assert.equal(0, report.backwards)
  end)

  it("takes a time that is none, or that no clock shows, for no time", function()
    for _, ts in ipairs { '"9999-99-99T99:99:99Z"', '"9999-12-31T00:00:00Z"', '"1950-01-01T00:00:00Z"', "1e15", '"today"' } do
      local code, report = replay(folder:file("a", { at(ts), at '"2026-11-22T09:00:00Z"', at(ts) }))
      assert.same({ 0, 3, 0 }, { code, report.calls, report.backwards }, ts)
    end
  end)

  it("exits 2 if nothing could be replayed", function()
    for name, content in pairs { empty = "", foreign = '{"level":"info"}\n', binary = "\0\1\2\n\255\n" } do
      local code, report = replay(folder:file(name, content))
      assert.same({ 2, 0 }, { code, report.calls }, name)
    end
  end)

  it("exits 2 at once if a file does not exist, is a folder, or does not load", function()
    local log = folder:file("a", { CALL })
    for _, arguments in ipairs { { log, folder.path .. "/none" }, { folder.path }, { log, "--tools", log },
                                 { log, "--tools", folder.path .. "/none" }, { log, "--policies", folder.path .. "/none" },
                                 { log, "--policies", folder:policies("p", { t = "return 7" }) } } do
      local code, report, err = replay(unpack(arguments))
      assert.equal(2, code)
      assert.is_nil(report)
      assert.not_equal("", err)
    end
  end)

  it("keeps control characters of a recording from the terminal", function()
    local evil = "\194\155" .. "31m\226\128\174\226\128\168\243\160\129\129"
    local log = folder:file("a\27[2J\n", {
      "oops", ('{"session":"s\\u001b[2J%s","tool":"t\\u001b[31m%s","arguments":{"n":"\\u001b%s"}}'):format(evil, evil, evil) })
    for _, form in ipairs { "--format=ndjson", "--markdown" } do
      local out = process.runs { daemon.binary, "replay", log, form }
      for _, bad in ipairs { "\27", "\194\155", "\226\128\174", "\226\128\168", "\243\160" } do
        assert.is_nil(out:find(bad, 1, true), out)
      end
    end
  end)

  it("prints nothing to standard output for an empty recording, and exits 2", function()
    local code, out = process.run { daemon.binary, "replay", folder:file("a", "") }
    assert.same({ 2, "" }, { code, out })
  end)

  it("streams a document that is one array, up to where it is cut off", function()
    local items = {}
    for i = 1, 3000 do
      items[i] = ('{"tool":"t","session":"s","arguments":{"q":"]},\\"[ %d"},\n "result":"%s"}'):format(i, ("x"):rep(500))
    end
    local whole = "[\n" .. table.concat(items, ",\n") .. "\n]\n"
    local code, report, err = replay(folder:file("whole.json", whole))
    assert.equal(0, code, err)
    assert.same({ 3000, {} }, { report.calls, report.skipped })
    local _, one = replay(folder:file("one.json", (whole:gsub("\n", ""))))
    assert.same({ 3000, {} }, { one.calls, one.skipped })
    local _, cut = replay(folder:file("cut.json", whole:sub(1, #whole - 300)))
    assert.same({ 2999, 1 }, { cut.calls, cut.skipped.cut_off.count })
    local _, more = replay(folder:file("more.json", whole .. '{"tool":"t","session":"s","arguments":{}}\n[1]]\n'))
    assert.equal(3001, more.calls)
  end)

  it("streams the list of a long document, and reads a short one as a whole", function()
    local function document(filler)
      local messages = {}
      for i = 1, 200 do
        messages[i] = ('{"role":"assistant","content":"%s","tool_calls":[{"id":"c%d","function":{"name":"t",'
          .. '"arguments":"{\\"n\\":%d}"}}]},'
          .. '\n{"role":"tool","tool_call_id":"c%d","content":"%d"}'):format(filler, i, i, i, i)
      end
      return '{"model":"[ \\"messages\\": [",\n"meta":{"messages":[1]},"messages":[' .. table.concat(messages, ",")
             .. ']\n,"usage":{"n":1}}\n'
    end
    for _, filler in ipairs { "", ("x"):rep(100000) } do
      local code, report, err = replay(folder:file("run.json", document(filler)))
      assert.equal(0, code, err)
      assert.same({ 200, 1, 0, {} }, { report.calls, report.sessions, report.without_result, report.skipped })
    end
  end)

  -- A conversation of more than 16 MB with 20 calls, and one in its response.
  local function long_conversation(id, newline)
    local messages = {}
    for i = 1, 20 do
      messages[i] = ('{"role":"assistant","content":"]}%s","tool_calls":[{"id":"c%d","function":{"name":"t","arguments":'
        .. '"{\\"n\\":%d}"}}]},{"role":"tool","tool_call_id":"c%d","content":"%d"}'):format(("x"):rep(900000), i, i, i, i)
    end
    return ('{"id":"%s",NL"tools":[{"name":"t","input_schema":{"type":"object","properties":{"n":{"maximum":19}}}}],'
      .. 'NL"messages":[%s],NL"response":{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"z","function":'
      .. '{"name":"late","arguments":"{}"}}]}}]}NL,"usage":{"prompt_tokens":7}}'):gsub("NL", newline)
      :format(id, table.concat(messages, "," .. newline))
  end

  it("reads a line that is a long object by the items of its list, in little memory, and what is beside it", function()
    local lines = { (long_conversation("a", "")), CALL, (long_conversation("b", "")), CALL }
    local path = folder:file("long.ndjson", table.concat(lines, "\n") .. "\n")
    local limit = daemon.binary:find "%-san/" and "" or "ulimit -v 200000; "
    local code, _, err = process.run { "sh", "-c", limit .. 'exec "$0" replay --json "$1" > "$1.out"', daemon.binary, path }
    assert.equal(0, code, err)
    local report = require("client").json.decode(process.read(path .. ".out"))
    assert.same({ 44, 3, 2, {} }, { report.calls, report.sessions, report.without_result, report.skipped })
    assert.same({ 2, 14 }, { report.refused, report.tokens.input }) -- n = 20 by the tools that each of them carries
    local _, whole = replay(folder:file("whole.json", (long_conversation("c", "\n"))))
    assert.same({ 21, 1, 1, 1, {} }, { whole.calls, whole.sessions, whole.without_result, whole.refused, whole.skipped })
  end)

  it("counts a long object that is cut off, and reads the lines after it", function()
    local long = long_conversation("a", "")
    for _, cut in ipairs { 17900000, #long - 300, #long - 40, #long - 1 } do
      local _, report = replay(folder:file("cut.ndjson", long:sub(1, cut) .. "\n" .. CALL .. "\n"))
      assert.equal(1, report.skipped.cut_off.count, cut)
      assert.is_true(report.calls >= 18, cut)
      assert.equal(2, report.sessions, cut) -- that of the object, and that of the line after it
    end
  end)
end)
