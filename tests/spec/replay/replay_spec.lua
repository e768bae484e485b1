-- toolgate replay: sessions are replayed with their state, one set of policies is compared with another.
local recordings = require "recordings"
local replay, row = recordings.replay, recordings.row

local LIST_ORDERS = [[
-- list_orders: lists orders.
return tool "list_orders" {
  schema = { type = "object", properties = { limit = { type = "integer", maximum = %d }, query = { type = "string" } } },
}
]]

local PAGES = [[
-- read_page: reads a page of a list that never changes. Read only.
return tool "read_page" {
  description = "Read a page.",
  schema = { type = "object", properties = { page_token = { type = "string" } } },
  effects = "read",
  run = function() return { items = {} } end,
}
]]

local function order(session, limit, result)
  return { session = session, tool = "list_orders", arguments = { limit = limit }, result = result or "[]" }
end

describe("toolgate replay", function()
  local folder

  before_each(function() folder = recordings.new() end)

  local function policies(name, maximum)
    return folder:policies(name, { list_orders = LIST_ORDERS:format(maximum) })
  end

  describe("--against", function()
    local log, a, b

    before_each(function()
      log = folder:file("log.ndjson", { order("s1", 80), order("s1", 40), order("s2", 70),
                                        { session = "s2", tool = "nobody_knows", arguments = { x = 1 }, result = "ok" } })
      a, b = policies("a", 100), policies("b", 50)
    end)

    it("names the keyword that refuses, and exits 1 with --fail-on-new", function()
      local code, report = replay(log, "--policies", a, "--against", b, "--fail-on-new")
      assert.equal(1, code)
      assert.equal(2, report.against.new_refusals)
      local d = report.against.differences[1]
      assert.same({ "new_refusal", "list_orders", "maximum", "limit", "pass", "repair", 2 },
                  { d.change, d.tool, d.code, d.path, d.before, d.after, d.calls })
      assert.same({ ran_well = 2, ran_badly = 0, not_run = 0, unknown = 0 }, d.recorded)
      assert.same({ 1, 1 }, { d.retried, d.recovered }) -- 80, then 40
      assert.equal(1, d.examples[1].line)
    end)

    it("tells calls that are saved from calls that would have lost a new result", function()
      local twice = folder:policies("twice", { poll = [[
-- poll: asks for a state. Twice at most.
return tool "poll" { effects = "write", retry = { same_call = 2 },
  schema = { type = "object", properties = { id = { type = "integer" } } } }
]] })
      local function report_of(result)
        local records = {}
        for i = 1, 10 do
          records[i] = { session = "s", tool = "poll", arguments = { id = 1 }, result = result(i), turn = 1, step = "m" .. i }
        end
        local _, report = replay(folder:file("poll.ndjson", records), "--policies", twice)
        return { report.lost_results, report.loops.calls_saved, report.refused }
      end
      assert.same({ 0, 8, 8 }, report_of(function() return "waiting" end))
      assert.same({ 0, 8, 8 }, report_of(function(i) return '{"state":"waiting","elapsed_ms":' .. i .. "}" end))
      assert.same({ 0, 8, 8 }, report_of(function(i) return "waiting since 10:00:0" .. i % 10 end))
      local failing = report_of(function(i) return "Error: 500 Internal Server Error, try " .. i end)
      assert.same({ 0, failing[3] }, { failing[1], failing[2] })
      assert.same({ 1, 7, 8 }, report_of(function(i) return i < 10 and "waiting" or "done" end))
      assert.same({ 8, 0, 8 }, report_of(function(i) return "position " .. 20 - i end))
    end)

    it("counts failures that are marked, those whose text shows them, and those that only the text shows", function()
      local function record(i, result, is_error)
        return { session = "s", tool = "build", arguments = { n = i }, result = result, is_error = is_error }
      end
      local _, report = replay(folder:file("failures.ndjson", {
        record(1, "Error: no such target", true), record(2, "three targets are left", true),
        record(3, "Error: no such target", false), record(4, "built 3 targets", false) }))
      assert.same({ 2, 1, 1 }, { report.failures, report.failures_shown, report.failures_unmarked })
    end)

    it("counts records without arguments instead of judging them as {}", function()
      local records = {}
      for i = 1, 10 do records[i] = { session = "s", tool = "send_mail", result = "sent " .. i } end
      records[11] = { session = "s", tool = "send_mail", arguments = { to = "a" }, result = "sent" }
      local _, report = replay(folder:file("mails.ndjson", records))
      assert.same({ 1, 10, 0 }, { report.calls, report.without_arguments, report.refused })
    end)

    it("says which results were not judged, and fails with --fail-on-new unless that is allowed", function()
      local rules = folder:policies("rules", { list_orders = LIST_ORDERS:format(100):gsub("\n}%s*$",
        "\n  result = function(result) return ok {} end,\n}\n") })
      local unrecorded = folder:file("unrecorded.ndjson", { order("s2", 5),
                                                            { session = "s1", tool = "list_orders", arguments = { limit = 5 } } })
      local code, report, err = replay(unrecorded, "--policies", a, "--against", rules, "--fail-on-new")
      assert.same({ 2, 1 }, { code, report.unjudged_results }, err)
      golden.check("replay", "results that were not recorded", err)
      assert.equal(0, (replay(unrecorded, "--policies", a, "--against", rules, "--fail-on-new", "--allow-unjudged")))
      assert.equal(0, (replay(unrecorded, "--policies", a, "--against", rules)))
      assert.equal(0, (replay(unrecorded, "--policies", a, "--against", a, "--fail-on-new")))
    end)

    it("exits 0 where nothing is new, and without --fail-on-new", function()
      assert.equal(0, (replay(log, "--policies", a, "--against", a, "--fail-on-new")))
      assert.equal(0, (replay(log, "--policies", a, "--against", b)))
      local code, report = replay(log, "--policies", b, "--against", a, "--fail-on-new")
      assert.equal(0, code)
      assert.same({ 0, 2 }, { report.against.new_refusals, report.against.new_passes })
      assert.equal("maximum", report.against.differences[1].code)
    end)

    it("counts tools that nobody knows apart, and they are no failure", function()
      local _, report = replay(log, "--policies", a, "--against", b)
      assert.equal(1, row(report.unknown_tools, { tool = "nobody_knows" }).calls)
      assert.is_nil(row(report.problems, { tool = "nobody_knows" }))
    end)

    it("judges a policy in mode shadow as if it were enforced, and one in mode off not at all", function()
      local shadow = folder:policies("shadow", { list_orders = LIST_ORDERS:format(50):gsub("{", '{ mode = "shadow",', 1) })
      local off = folder:policies("off", { list_orders = LIST_ORDERS:format(50):gsub("{", '{ mode = "off",', 1) })
      local _, report = replay(log, "--policies", a, "--against", shadow)
      assert.equal(2, report.against.new_refusals)
      _, report = replay(log, "--policies", a, "--against", off)
      assert.equal(0, report.against.new_refusals)
    end)

    it("treats a tool that only one of the folders names as known to both", function()
      local empty = folder:policies("empty", {})
      local code, report = replay(log, "--policies", empty, "--against", b, "--fail-on-new")
      assert.equal(1, code)
      assert.same({ 2, 0, 0 }, { report.against.new_refusals, report.against.other_verdicts, report.against.new_passes })
      assert.is_nil(row(report.unknown_tools, { tool = "list_orders" }))
    end)

    it("judges a call that ran and failed as a new refusal if it would no longer run", function()
      log = folder:file("failed.ndjson", { { session = "s", tool = "list_orders", arguments = { limit = 80 },
                                             is_error = true, result = "no such order" } })
      local code, report = replay(log, "--policies", a, "--against", b, "--fail-on-new")
      assert.equal(1, code)
      assert.equal(1, report.against.differences[1].recorded.ran_badly)
    end)

    it("is required by --fail-on-new", function()
      local code, _, err = replay(log, "--policies", a, "--fail-on-new")
      assert.equal(2, code)
      golden.check("replay", "--fail-on-new alone", err)
    end)

    it("keeps two ledgers: each side counts only what it let run", function()
      local same = order("s", 60)
      log = folder:file("same.ndjson", { same, same, same, same })
      local _, report = replay(log, "--policies", a, "--against", b)
      assert.equal(2, row(report.codes, { code = "loop" }).calls) -- of a: the third and the fourth
      assert.equal(2, row(report.against.differences, { code = "maximum" }).calls)
    end)
  end)

  describe("keeps the state of each session:", function()
    it("loops, in a session and not between sessions", function()
      local records = {}
      for _ = 1, 4 do
        for _, session in ipairs { "a", "b", "c" } do
          local again = session == "a"
          records[#records + 1] = { session = session, tool = "find", result = "nothing",
                                    arguments = { q = again and "x" or session .. #records } }
        end
      end
      local code, report = replay(folder:file("log.ndjson", records))
      assert.equal(0, code)
      assert.same({ 1, 2 }, { report.loops.sessions, report.loops.calls_saved })
      local loop = report.loops.list[1]
      assert.same({ "a", "find", "loop", 4, 2, 7 }, { loop.session, loop.tool, loop.code, loop.calls, loop.saved, loop.line })
    end)

    it("results that change are no loop", function()
      local records = {}
      for i = 1, 6 do records[i] = { session = "s", tool = "get_status", arguments = { id = 1 }, result = "at " .. i } end
      local _, report = replay(folder:file("log.ndjson", records))
      assert.equal(0, report.loops.sessions)
    end)

    it("budgets, by the recorded turn", function()
      local dir = folder:policies("p", { find = [[
-- find: twice a turn.
return tool "find" { limits = { calls_per_turn = 2 } }
]] })
      local records = {}
      for i = 1, 5 do
        records[i] = { session = "s", turn = i < 4 and 1 or 2, tool = "find", arguments = { q = i }, result = "r" .. i }
      end
      local _, report = replay(folder:file("log.ndjson", records), "--policies", dir)
      assert.equal(1, report.refused)
      assert.equal(3, row(report.codes, { code = "calls_per_turn" }).examples[1].line)
    end)

    it("rates, by the recorded time", function()
      local dir = folder:policies("p", { find = [[
-- find: once a minute.
return tool "find" { rate = "1/minute" }
]] })
      local function at(seconds, q)
        return { session = "s", ts = ("2026-11-02T10:%02d:%02dZ"):format(seconds / 60, seconds % 60), tool = "find",
                 arguments = { q = q }, result = q }
      end
      local code, report, err = replay(folder:file("log.ndjson", { at(0, "a"), at(30, "b"), at(100, "c") }), "--policies", dir)
      assert.equal(0, code, err)
      assert.equal(1, report.refused)
      assert.equal(2, row(report.codes, { code = "rate_limit" }).examples[1].line)
    end)

    it("ids that earlier results gave", function()
      local dir = folder:policies("p", {
        find_user = '-- find_user: finds.\nreturn tool "find_user" { gives_ids = { "id" } }\n',
        get_user = '-- get_user: reads.\nreturn tool "get_user" { ids = { user_id = seen() } }\n' })
      local records = {
        { session = "s", tool = "find_user", arguments = { name = "a" }, result = { id = "u-17" } },
        { session = "s", tool = "get_user", arguments = { user_id = "u-17" }, result = "ok" },
        { session = "s", tool = "get_user", arguments = { user_id = "u-99" }, result = "ok" },
        { session = "t", tool = "get_user", arguments = { user_id = "u-17" }, result = "ok" } }
      local code, report, err = replay(folder:file("log.ndjson", records), "--policies", dir)
      assert.equal(0, code, err)
      local unseen = row(report.problems, { code = "unseen_id" })
      assert.same({ 2, "user_id" }, { unseen.calls, unseen.path })
      assert.same({ 3, 4 }, { unseen.examples[1].line, unseen.examples[2].line })
    end)

    it("facts that earlier results gave", function()
      local dir = folder:policies("p", { step = [[
-- step: the second call needs the first one's fact.
return tool "step" {
  check = function(args, call)
    if args.n == 2 and not (call.facts and call.facts.done) then return refuse("too_early", "First n = 1.") end
  end,
  result = function(args, result, call) return ok { facts = { done = true } } end,
}
]] })
      local function step(session, n) return { session = session, tool = "step", arguments = { n = n }, result = { n = n } } end
      local code, report, err = replay(folder:file("log.ndjson", { step("a", 1), step("a", 2), step("b", 2) }), "--policies", dir)
      assert.equal(0, code, err)
      assert.equal(1, report.refused)
      assert.equal(3, row(report.codes, { code = "too_early" }).examples[1].line)
    end)
  end)

  describe("counts", function()
    it("whether the next attempt passes, by tool and by code", function()
      local log = folder:file("log.ndjson", {
        { session = "a", step = 1, tool = "list_orders", arguments = { limit = 900 } },
        { session = "a", step = 2, tool = "list_orders", arguments = { limit = 9 }, result = "[]" },
        { session = "b", step = 1, tool = "list_orders", arguments = { limit = 900 } },
        { session = "b", step = 2, tool = "list_orders", arguments = { limit = 800 } },
        { session = "c", step = 1, tool = "list_orders", arguments = { limit = 900 } },
        { session = "c", step = 1, tool = "list_orders", arguments = { limit = 1 }, result = "[]" } }) -- parallel: no retry
      local _, report = replay(log, "--policies", policies("p", 100))
      local by_tool, by_code = row(report.tools, { tool = "list_orders" }), row(report.codes, { code = "maximum" })
      assert.same({ 4, 2, 1 }, { by_tool.refused, by_tool.retried, by_tool.recovered })
      assert.same({ 4, 2, 1 }, { by_code.refused, by_code.retried, by_code.recovered })
    end)

    it("the next attempt in the rows of all problems of a call", function()
      local dir = folder:policies("two", { put = [[
-- put: stores.
return tool "put" { schema = { type = "object", required = { "name" }, properties = {
  name = { type = "string" }, size = { type = "integer", maximum = 9 } } } }
]] })
      local log = folder:file("log.ndjson", {
        { session = "a", step = 1, tool = "put", arguments = { size = 10 } },
        { session = "a", step = 2, tool = "put", arguments = { size = 9, name = "n" }, result = "ok" } })
      local _, report = replay(log, "--policies", dir)
      for _, code in ipairs { "missing", "maximum" } do
        local problem = row(report.problems, { code = code })
        assert.same({ 1, 1, 1 }, { problem.refused, problem.retried, problem.recovered }, code)
      end
    end)

    it("repairs of arguments", function()
      local _, report = replay(folder:file("log.ndjson", { order("s", "7"), order("s", 8) }), "--policies", policies("p", 100))
      assert.same({ pass = 2 }, report.verdicts)
      assert.equal(1, report.repaired)
      assert.equal(1, row(report.repairs, { tool = "list_orders", path = "limit", code = "repaired" }).calls)
    end)

    it("the same path of several items as one", function()
      local dir = folder:policies("p", { put = [[
-- put: stores.
return tool "put" { schema = { type = "object", properties = { items = { type = "array", items = {
  type = "object", properties = { price = { type = "number", minimum = 0 } } } } } } }
]] })
      local log = folder:file("log.ndjson", { { session = "s", tool = "put", arguments = {
        items = { { price = 1 }, { price = -1 } } } },
        { session = "t", tool = "put", arguments = { items = { { price = -1 } } } } })
      local _, report = replay(log, "--policies", dir)
      assert.equal(2, row(report.problems, { code = "minimum", path = "items[].price" }).calls)
      local both = { items = { { price = -1 }, { price = -2 } } }
      _, report = replay(folder:file("twice.ndjson", { { session = "s", tool = "put", arguments = both } }), "--policies", dir)
      assert.equal(1, row(report.problems, { code = "minimum", path = "items[].price" }).calls)
    end)
  end)

  describe("reads the decision log:", function()
    local function record(fields)
      local all = { v = 1, ts = "2026-11-22T09:00:00.123456Z", decision_id = "d1", generation = "4c1f", uid = 1001, session = "s",
                    turn = 1, tool = "list_orders", method = "toolgate/check", arguments = { limit = 80 }, verdict = "pass",
                    error_class = "ok", us = { total = 8 } }
      for key, value in pairs(fields) do all[key] = value end
      return all
    end

    it("joins a report to its check", function()
      local log = folder:file("log.ndjson", {
        record {}, record { decision_id = "d2", arguments = { limit = 3 } },
        record { method = "toolgate/report", result = { class = "ok", hash = "aa" } } })
      local code, report = replay(log, "--policies", policies("a", 100), "--against", policies("b", 50), "--fail-on-new")
      assert.equal(1, code)
      assert.same({ 2, 1 }, { report.calls, report.without_result })
      assert.equal(1, report.against.differences[1].recorded.ran_well)
    end)

    it("tells loops by the recorded hash of the result", function()
      local records = {}
      for i = 1, 4 do
        records[i] = record { method = "tools/call", decision_id = "d" .. i, result = { class = "ok", hash = "aa" } }
      end
      local log = folder:file("same.ndjson", records)
      local _, report = replay(log)
      assert.equal(2, report.loops.calls_saved)
      for i = 1, 4 do records[i].result.hash = "a" .. i end
      _, report = replay(folder:file("changed.ndjson", records))
      assert.equal(0, report.loops.calls_saved)
    end)

    it("keeps the sessions of two users apart", function()
      local records = {}
      for i = 1, 4 do
        records[i] = record { method = "tools/call", decision_id = "d" .. i, uid = 1000 + i % 2,
                              result = { class = "ok", hash = "aa" } }
      end
      local _, report = replay(folder:file("log.ndjson", records))
      assert.same({ 2, 0 }, { report.sessions, report.loops.sessions })
    end)

    it("ignores problems at masked paths, and judges the others", function()
      local dir = folder:policies("p", { login = [[
-- login: logs in.
return tool "login" { schema = { type = "object", properties = { user = { type = "string", maxLength = 4 },
  card = { type = "object", properties = { pins = { type = "array", items = { type = "integer" } } } } } } }
]] })
      local function login(id, user, masked)
        return record { tool = "login", decision_id = id, masked = masked,
                        arguments = { user = user, card = { pins = { 7, "[masked]" } } } }
      end
      local log = folder:file("log.ndjson", { login("d1", "ann", { "/card/pins/1" }), login("d2", "benjamin", { "/card" }),
                                              login("d3", "cleo", nil) })
      local code, report, err = replay(log, "--policies", dir)
      assert.equal(0, code, err)
      assert.same({ 2, 2 }, { report.masked, report.refused })
      assert.equal(2, row(report.codes, { code = "maxLength" }).examples[1].line)
      assert.equal(3, row(report.problems, { code = "type" }).examples[1].line)
    end)

    it("does not take calls for the same that differ in a masked value", function()
      local records = {}
      for i = 1, 6 do
        records[i] = record { method = "tools/call", decision_id = "d" .. i, tool = "login", masked = { "/password" },
                              arguments = { password = "***" }, result = { class = "ok", hash = "aa" },
                              session = i <= 3 and "differ" or "same", repeats = i > 4 and i - 4 or nil }
      end
      local _, report = replay(folder:file("log.ndjson", records))
      assert.equal(0, report.loops.sessions)
      records[7] = record { method = "tools/call", decision_id = "d7", tool = "login", masked = { "/password" }, repeats = 3,
                            arguments = { password = "***" }, result = { class = "ok", hash = "aa" }, session = "same" }
      _, report = replay(folder:file("log.ndjson", records))
      assert.same({ 1, "same" }, { report.loops.sessions, report.loops.list[1].session })
    end)

    it("takes calls for a loop whose masked page token is the same, and not those whose tokens differ", function()
      local client = daemon.start { policies = { ["read_page.lua"] = PAGES },
                                    config = ("return { decisions = { file = %q, mask = { \"page_*\" } } }"):format(
                                      folder.path .. "/decisions.ndjson") }:connect()
      for i = 1, 6 do
        client:calls("read_page", { page_token = "page-after-" .. i }, { ["dev.toolgate/session"] = "differ" })
        client:calls("read_page", { page_token = "page-after-1" }, { ["dev.toolgate/session"] = "same" })
      end
      daemon.stop_all()
      local log, tags = process.read(folder.path .. "/decisions.ndjson"), {}
      assert.is_nil(log:find("page-after", 1, true))
      for session, tag in log:gmatch '"session":"(%l+)".-"page_token":"(%[redacted %x+%])"' do
        tags[session] = tags[session] or {}
        tags[session][tag] = true
      end
      local function count(set) local n = 0 for _ in pairs(set) do n = n + 1 end return n end
      assert.same({ 6, 1 }, { count(tags.differ), count(tags.same) })
      local code, report, err = replay(folder.path .. "/decisions.ndjson")
      assert.equal(0, code, err)
      assert.same({ 12, 1, "same" }, { report.calls, report.loops.sessions, report.loops.list[1].session })
    end)

    it("does not judge calls whose arguments were not recorded", function()
      local hashed = record { decision_id = "d2", arguments_hash = "ab" }
      hashed.arguments = nil
      local _, report = replay(folder:file("log.ndjson", { record {}, hashed }))
      assert.same({ 1, 1 }, { report.calls, report.without_arguments })
    end)

    it("as the daemon wrote it", function()
      local gate = daemon.start { policies = { ["list_orders.lua"] = LIST_ORDERS:format(100) },
                                  config = ("return { decisions = { file = %q } }"):format(folder.path .. "/decisions.ndjson") }
      local client = gate:connect()
      for limit = 60, 140, 40 do
        client:checks("list_orders", { limit = limit }, { ["dev.toolgate/session"] = "s" })
      end
      daemon.stop_all()
      local code, report, err = replay(folder.path .. "/decisions.ndjson", "--policies", policies("a", 100), "--against",
                                       policies("b", 50), "--fail-on-new")
      assert.equal(1, code, err)
      assert.same({ 3, 2 }, { report.calls, report.against.new_refusals })
    end)
  end)

  it("finds tools of records by their toolset", function()
    local function tools(maximum)
      local n = { type = "integer", maximum = maximum }
      return { tools = { { name = "list", inputSchema = { type = "object", properties = { n = n } } } } }
    end
    local small, large = folder:file("small.json", tools(5)), folder:file("large.json", tools(50))
    local log = folder:file("log.ndjson", { { session = "a", toolset = "small", tool = "list", arguments = { n = 9 } },
                                            { session = "b", toolset = "large", tool = "list", arguments = { n = 9 } },
                                            { session = "c", tool = "list", arguments = { n = 999 } } })
    local code, report, err = replay(log, "--tools", "small=" .. small, "--tools", "large=" .. large)
    assert.equal(0, code, err)
    assert.equal(1, report.refused)
    assert.equal("a", row(report.codes, { code = "maximum" }).examples[1].session)
    assert.equal(1, row(report.unknown_tools, { tool = "list" }).calls)
  end)

  it("takes the tools of upstreams from the state folder of a configuration", function()
    os.execute("mkdir " .. folder.path .. "/state")
    process.write(folder.path .. "/offer.json", [[ [{"name":"list_orders","inputSchema":{"type":"object",
      "properties":{"limit":{"type":"integer","maximum":50}}}}] ]])
    local config = folder:file("toolgate.lua", ([[return { state = "%s/state", upstreams = { shop = { command = "python3",
      args = { "%s/tests/support/offering.py" }, env = { OFFER = "%s/offer.json" } } } }]])
      :format(folder.path, daemon.root, folder.path))
    local log = folder:file("log.ndjson", { order("s", 80) })
    local _, report, why = replay(log, "--config", config)
    assert.truthy(report, why)
    assert.equal(1, row(report.unknown_tools, { tool = "list_orders" }).calls)
    local gate = daemon.start { arguments = { "--config", config } }
    gate:connect():asks("tools/list", {})
    daemon.stop_all()
    local code, known, err = replay(log, "--config", config)
    assert.equal(0, code, err)
    assert.same({ 0, 1 }, { #known.unknown_tools.rows, row(known.codes, { code = "maximum" }).calls })
  end)

  it("takes them from beside the decision log, whose folder systemd has given the daemon", function()
    local state = folder.path .. "/state"
    os.execute("mkdir " .. state)
    process.write(folder.path .. "/offer.json", [[ [{"name":"list_orders","inputSchema":{"type":"object",
      "properties":{"limit":{"type":"integer","maximum":50}}}}] ]])
    local config = folder:file("toolgate.lua", ([[return { defaults = { mode = "shadow" }, upstreams = { shop = {
      command = "python3", args = { "%s/tests/support/offering.py" }, env = { OFFER = "%s/offer.json" } } } }]])
      :format(daemon.root, folder.path))
    local gate = daemon.start { arguments = { "--config", config }, environment = { STATE_DIRECTORY = state } }
    local client = gate:connect()
    client:asks("tools/list", {})
    client:calls("list_orders", { limit = 80 })
    assert.equal(state, client:asks("toolgate/status").paths.state)
    daemon.stop_all()
    process.run { "chown", "-R", "nobody", state } -- the daemon's user, if this runs as root as an operator does
    local code, report, err = replay(state .. "/decisions.ndjson", "--config", config)
    assert.equal(0, code, err)
    assert.same({ 0, 1 }, { #report.unknown_tools.rows, row(report.codes, { code = "maximum" }).calls })
  end)

  it("prints a report for people", function()
    local log = folder:file("log.ndjson", { order("s1", 80), order("s1", 40), order("s2", "70"), "no json",
      { session = "s2", tool = "other", arguments = { x = 1 }, result = "ok" },
      { session = "s2", tool = "other", arguments = { x = 1 }, result = "ok" },
      { session = "s2", tool = "other", arguments = { x = 1 }, result = "ok" } })
    local a, b = policies("a", 100), policies("b", 50)
    local out = process.runs { daemon.binary, "replay", log, "--policies", a, "--against", b }
    golden.check("replay", "a report for people", (out:gsub("%([%d.]+ s, %d+ calls/s%)", "(TIME)")
      :gsub(folder.path:gsub("%-", "%%-"), "<dir>")))
  end)
end)
