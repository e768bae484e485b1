-- What a policy may say about identical calls, failures and rates: loop.volatile_result, loop.compare,
-- loop.same_failure, rate.

-- Its result tells the time that the caller gives it, which is no argument that counts.
local CLOCK = [==[
-- clock: for specs.
return tool "clock" {
  description = "For specs.", effects = "read", schema = params { n = optional(int "Which"), at = optional(int "When") },
  loop = { volatile = "at", %s },
  run = function(args) return { n = args.n, elapsed_ms = args.at, meta = { id = args.at, page = 1 } } end,
}
]==]

-- Fails with the text that it is given, which is the only thing it reads.
local FAILS = [==[
-- fails: for specs.
return tool "fails" {
  description = "For specs.", effects = "read", schema = params { text = str "Why", n = int "Which" },
  loop = { %s },
  run = function(args) return failed("no", args.text) end,
}
]==]

local LIMITED = [==[
-- limited: for specs.
return tool "limited" {
  description = "For specs.", effects = "read", schema = params { n = int "Which" },
  rate = { "2/hour", by = "%s" },
  check = function(args)
    if args.n < 0 then return refuse "not that one" end
    if args.n == 0 then return ask "really?" end
  end,
  run = function(args) return { n = args.n } end,
}
]==]

describe("a policy's fields for loops and rates", function()
  local gate, client

  local function start(file, source)
    gate, client = daemon.open { policies = { [file] = source } }
  end

  local function codes(tool, arguments, count)
    local list = {}
    for i = 1, count do
      local said = verdict(client:calls(tool, arguments(i), session("s", { turn = 1 })))
      list[i] = said.code or said.verdict
    end
    return table.concat(list, " ")
  end
  local function clock(i) return { n = 1, at = i } end

  it("volatile_result leaves fields of results out of the comparison, by path or by name", function()
    start("clock.lua", CLOCK:format 'volatile_result = { "elapsed_ms", "meta.id", "not.there" }')
    assert.equal("pass pass loop", codes("clock", clock, 3))
  end)

  it("a field that is not named makes the result a new one", function()
    start("clock.lua", CLOCK:format 'volatile_result = "elapsed_ms"')
    assert.equal("pass pass pass", codes("clock", clock, 3))
  end)

  it('compare = "arguments" ignores results', function()
    start("clock.lua", CLOCK:format 'compare = "arguments"')
    assert.equal("pass pass loop", codes("clock", clock, 3))
  end)

  local function failing(i) return { text = "disk full", n = i } end

  it("the third failure with the same error has a note, and the tenth is refused until a tool succeeds", function()
    gate, client = daemon.open { policies = { ["fails.lua"] = FAILS:format "", ["clock.lua"] = CLOCK:format "" } }
    local function fails(i) return client:calls("fails", failing(i), session("s", { turn = 1 })) end
    for i = 1, 9 do
      local reply = fails(i)
      assert.equal("tool_error", verdict(reply).error_class)
      assert.equal(i >= 3, client_of.text(reply):find("failed " .. i .. " times in a row", 1, true) ~= nil, i)
      assert.equal(i >= 3 and i or nil, verdict(reply).same_failure)
    end
    for i = 10, 14 do
      local reply = fails(i)
      assert.same({ "refuse", "same_failure" }, { verdict(reply).verdict, verdict(reply).code })
      assert.truthy(client_of.text(reply):find("disk full", 1, true), client_of.text(reply)) -- the last error
    end
    assert.is_nil(verdict(client:calls("clock", {}, session("s", { turn = 1 }))).code)
    assert.equal("tool_error", verdict(fails(15)).error_class)
  end)

  for written, refused in pairs { ['"note"'] = 0, ["4"] = 4, ["10"] = 10, ['"refuse"'] = 6 } do
    it("same_failure = " .. written .. " refuses " .. (refused > 0 and "failure " .. refused or "none"), function()
      start("fails.lua", FAILS:format("same_failure = " .. written))
      for i = 1, 12 do
        local said = verdict(client:calls("fails", failing(i), session("s", { turn = 1 })))
        assert.equal((refused == 0 or i < refused) and "no" or "same_failure", said.code, i)
      end
    end)
  end

  it("another error begins the count anew", function()
    start("fails.lua", FAILS:format 'same_failure = "refuse"')
    assert.equal("no no no no no no no", codes("fails", function(i)
      return { text = i == 4 and "no such file" or "disk full", n = i }
    end, 7))
  end)

  local function limited(i, name)
    return verdict(client:calls("limited", { n = i }, session(name, { turn = 1 })))
  end

  for by, in_another_session in pairs { session = "pass", user = "wait", tool = "wait" } do
    it("a rate by " .. by .. " makes the third call wait; in another session: " .. in_another_session, function()
      start("limited.lua", LIMITED:format(by))
      assert.equal("pass", limited(1, "a").verdict)
      assert.equal("pass", limited(2, "a").verdict)
      local third = limited(3, "a")
      assert.same({ "wait", "rate_limit", "transient" }, { third.verdict, third.code, third.error_class })
      assert.is_true(third.after_s > 0 and third.after_s <= 3600)
      assert.equal(in_another_session, limited(4, "b").verdict)
    end)

    it("a rate by " .. by .. " gets back what does not run", function()
      start("limited.lua", LIMITED:format(by))
      for i = 1, 3 do -- refused by its check, or by a question
        assert.equal("refuse", limited(-i, "a").verdict)
        assert.equal("ask", limited(0, "a").verdict)
        assert.equal("refuse", client:checks("limited", { n = -i - 3 }, session("a", { turn = 1 })).verdict)
      end
      assert.equal("pass", limited(1, "a").verdict)
      for _ = 1, 5 do limited(-9, "a") end -- the last ones as a loop
      process.eventually("the place that was held for milliseconds is free", function()
        return client:checks("limited", { n = 2 }, session("a", { turn = 1 })).verdict == "pass"
      end)
      for i = 1, 2 do assert.equal("rate_limit", limited(3, "a").code, i) end
      assert.equal(in_another_session, limited(4, "b").verdict)
    end)
  end

  local POLLED = [==[
-- polled: for specs.
return tool "polled" {
  description = "For specs.", effects = "read", schema = params { n = optional(int "Which") }, %s
  run = function() return { n = 1 } end,
}
]==]

  it("poll.max and same_call hold beyond the calls that the window has", function()
    start("polled.lua", POLLED:format "loop = { poll = { max = 40 } },")
    local said = codes("polled", function() return { n = 1 } end, 41)
    assert.equal(("pass "):rep(40) .. "poll_budget", said)
    start("polled.lua", POLLED:format "retry = { same_call = 40 },")
    local list = {}
    for i = 1, 41 do
      list[i] = verdict(client:calls("polled", { n = 1 }, session("s", { turn = 1 }))).code or "pass"
      client:calls("polled", { n = i + 1 }, session("s", { turn = 1 }))
    end
    assert.equal(("pass "):rep(40) .. "same_call", table.concat(list, " "))
  end)

  it("that have no effect, or another than they say, are warnings", function()
    for fields, wanted in pairs {
      ["retry = { repair = 50 },"] = "retry.repair = 50 counts as 31, since the ledger tells no more of them apart",
      ["loop = { poll = { max = 500 } },"] = "loop.poll.max = 500 counts as 200",
      ["loop = { repeats = 9, halt = 12 },"] = "loop.repeats = 9 has no effect, as retry.same_call = 5 refuses such a call",
      ["loop = { repeats = 9 }, retry = { same_call = 20 },"] = "loop.repeats = 9 is above loop.halt = 5",
      ["loop = { poll = true }, retry = { same_call = 2 },"] = "retry.same_call has no effect beside loop.poll",
    } do
      start("polled.lua", POLLED:format(fields))
      local warnings = gate:status().generation.warnings
      assert.equal(1, #warnings, fields .. ": " .. table.concat(warnings, "\n"))
      assert.truthy(warnings[1]:find(wanted, 1, true), warnings[1])
    end
    start("polled.lua", POLLED:format "loop = { repeats = 9, halt = 12 }, retry = { same_call = 20 },")
    assert.equal(0, #gate:status().generation.warnings)
  end)

  it("same_call of none is an error: no call would ever run", function()
    local said = daemon.fails { policies = { ["polled.lua"] = POLLED:format "retry = { same_call = 0 }," } }
    assert.truthy(said:find("'retry.same_call': expected a whole number from 1", 1, true), said)
  end)

  it("poll is that of a known tool where the policy says nothing of it", function()
    for fields, wanted in pairs { [""] = "pass pass pass pass", ["loop = { poll = false },"] = "pass pass loop loop" } do
      start("BashOutput.lua", (POLLED:gsub("polled", "BashOutput"):format(fields)))
      assert.equal(wanted, codes("BashOutput", function() return { n = 1 } end, 4))
    end
  end)
end)
