-- How often the same call may be repeated, by the tool's effects and by the outcome of each call.

local TOOL = [==[
-- %s: for specs.
return tool "%s" {
  description = "For specs.", effects = "%s", schema = params { n = optional(int "Which"), at = optional(str "When") },
  loop = { volatile = { "at" } },
  run = function(args, call) return { n = args.n } end,
}
]==]

describe("the same call, with other calls in between,", function()
  local gate, client, others

  before_each(function()
    local policies = { ["echo.lua"] = fixtures.echo, ["outcome.lua"] = fixtures.outcome }
    for _, effects in ipairs { "read", "write", "destructive", "toggle" } do
      policies[effects .. ".lua"] = TOOL:format(effects, effects, effects)
    end
    for _, name in ipairs { "undeclared", "create_key" } do -- the latter writes, by its name
      policies[name .. ".lua"] = TOOL:gsub('effects = "%%s", ', ""):format(name, name)
    end
    policies["outcome_of_agent.lua"] = "-- outcome_of_agent: the agent runs it. For specs.\n"
      .. 'return tool "outcome_of_agent" { description = "For specs.", schema = params {} }'
    gate = daemon.start { policies = policies }
    client, others = gate:connect(), 0
  end)

  -- A read, so it does not reset the loop detection of writes.
  local function another()
    others = others + 1
    client:calls("echo", { text = "n" .. others }, session("s", { turn = 1 }))
  end

  -- Returns how often the call passes, and the code of the refusal.
  local function passes(tool, arguments)
    for times = 0, 12 do
      local said = verdict(client:calls(tool, arguments, session("s", { turn = 1 })))
      if said.verdict ~= "pass" then return times .. " " .. said.code end
      another()
    end
    return "always"
  end

  for tool, expected in pairs { read = "5 same_call", write = "1 same_call", destructive = "1 same_call",
                                undeclared = "3 same_call", create_key = "2 same_call", toggle = "always" } do
    it("of a tool with effects " .. tool .. " passes: " .. expected, function()
      assert.equal(expected, passes(tool, { n = 1 }))
      if tool ~= "toggle" then assert.equal(expected, passes(tool, { n = 2 })) end
    end)
  end

  it("that destroys is made once a turn, however many other calls are", function()
    assert.equal("pass", verdict(client:calls("destructive", { n = 0 }, session("s", { turn = 1 }))).verdict)
    for n = 1, 60 do
      assert.equal("pass", verdict(client:calls("destructive", { n = n }, session("s", { turn = 1 }))).verdict)
      another()
    end
    assert.equal("same_call", verdict(client:calls("destructive", { n = 0 }, session("s", { turn = 1 }))).code)
    assert.equal("pass", verdict(client:calls("destructive", { n = 0 }, session("s", { turn = 2 }))).verdict)
  end)

  it("that destroys is refused if one that destroyed had to be forgotten", function()
    for n = 1, 289 do client:calls("destructive", { n = n }, session("s", { turn = 1 })) end
    local refused = client:calls("destructive", { n = 500 }, session("s", { turn = 1 }))
    assert.equal("writes_per_turn", verdict(refused).code)
    golden.check("feedback", "budget: more writes than are remembered", client_of.text(refused))
  end)

  it("that keeps failing is noted from the sixth time on, whatever number its error has", function()
    local said
    for i = 1, 6 do
      local checked = client:checks("outcome_of_agent", {}, session("s", { turn = 1 }))
      said = client:asks("toolgate/report", { callId = checked.callId, name = "outcome_of_agent", arguments = {},
        result = { isError = true, content = { { type = "text", text = "no route after " .. 10 * i .. " ms" } } } })
      client:calls("undeclared", { n = i }, session("s", { turn = 1 })) -- a success that may have changed something
    end
    golden.check("feedback", "loop: the same call has failed with one error", said.text)
  end)

  -- A budget that somebody wrote is hard: a result that changes, an error and a write in between excuse nothing.
  for where, config in pairs { ["its policy"] = "return {}",
                               ["the defaults"] = "return { defaults = { retry = { same_call = 3 } } }" } do
    it("runs as often as " .. where .. " says, whatever comes of it and between, until the next turn", function()
      local counted = [==[
-- counted: each result is another. For specs.
return tool "counted" {
  description = "For specs.", effects = "read", schema = params { n = int "Which" }, %s
  run = function(args, call) return { history = #call.history, at = call.no_progress, turn = call.turn } end,
}
]==]
      local own = where == "its policy" and "retry = { same_call = 3 }," or ""
      gate = daemon.start { config = config, policies = { ["counted.lua"] = counted:format(own), ["echo.lua"] = fixtures.echo,
                                                          ["write.lua"] = TOOL:format("write", "write", "write") } }
      client = gate:connect()
      for turn = 1, 2 do
        local codes = {}
        for i = 1, 6 do
          codes[i] = verdict(client:calls("counted", { n = 1 }, session("s", { turn = turn }))).code or "ok"
          client:calls("write", { n = 10 * turn + i }, session("s", { turn = turn }))
        end
        assert.same({ "ok", "ok", "ok", "same_call", "same_call", "same_call" }, codes)
      end
    end)
  end

  -- Where nobody names turns, "this turn" is a guess.
  for tool, expected in pairs { read = "advised", write = "refused" } do
    it("of a tool with effects " .. tool .. " is " .. expected .. " beyond its budget in a session without turns", function()
      local said
      for i = 1, 6 do
        said = verdict(client:calls(tool, { n = 1 }, session "s"))
        client:calls("echo", { text = "n" .. i }, session "s")
      end
      assert.same(tool == "read" and { "pass", nil, "same_call" } or { "refuse", "same_call", nil },
                  { said.verdict, said.code, said.would })
    end)
  end

  it("ignores volatile fields, and is another call with any other field", function()
    for i = 1, 2 do assert.equal("pass", verdict(client:calls("undeclared", { n = 1, at = "t" .. i }, session "s")).verdict) end
    assert.equal("loop", verdict(client:calls("undeclared", { n = 1, at = "t3" }, session "s")).code)
    assert.equal("pass", verdict(client:calls("undeclared", { n = 2, at = "t3" }, session "s")).verdict)
  end)

  it("is compared after coercion", function()
    for _, n in ipairs { 1, "1" } do
      assert.equal("pass", verdict(client:calls("undeclared", { n = n }, session "s")).verdict)
    end
    assert.equal("loop", verdict(client:calls("undeclared", { n = "1" }, session "s")).code)
  end)

  it("must wait after each transient failure, twice as long each time if the tool gives no delay", function()
    gate:write_policy("flaky.lua", [==[
-- flaky: fails for the moment. For specs.
return tool "flaky" { description = "For specs.", effects = "read", schema = params { n = int "Which" },
  run = function() return transient "the shop is closed" end }
]==])
    gate:reload()
    local waits = {}
    for i = 1, 4 do
      local said = verdict(client:calls("flaky", { n = 1 }, session("s", { turn = 1 })))
      waits[i] = said.verdict == "wait" and said.after_s or said.code
    end
    assert.same({ 2, 4, 8, "transient_budget" }, waits)
    assert.equal(2, verdict(client:calls("flaky", { n = 2 }, session("s", { turn = 1 }))).after_s)
  end)

  -- The codes of four such calls, and no_progress after them.
  for how, expected in pairs {
    refuse = { "not_here not_here loop loop", 4 },       -- costs no budget, and is still a loop
    ask = { "need_user_input need_user_input need_user_input loop", 3 }, -- the first counts as not made
    broken = { "truncated_response already_broken loop loop", 4 },
    failed = { "no_such_order no_such_order loop loop", 4 },
    garbage = { "empty_first_page empty_first_page loop loop", 4 },
    transient = { "transient transient transient transient_budget", 1 }, -- only the refusal counts
    ok = { "pass pass loop loop", 3 },
    partial = { "pass pass loop loop", 2 },              -- both count as progress
    check_throws = { "policy_broke policy_broke loop loop", 4 },
  } do
    it("that ends as " .. how .. ", four times in a row: " .. expected[1], function()
      local said = {}
      for i = 1, 4 do
        local result = client:calls("outcome", { how = how }, session("s", { turn = 1, step = "m" .. i }))
        local v = verdict(result)
        said[i] = v.verdict == "pass" and "pass" or v.code or v.error_class
      end
      local known = client:asks("toolgate/session", { session = "s" })
      assert.same({ expected[1], expected[2] or 0 }, { table.concat(said, " "), known.budgets.no_progress })
    end)
  end

  it("eight times in one step runs as often as same_call says for a read, and once for a write", function()
    local function at_once(tool, step)
      for i = 1, 8 do
        client:begins(step .. i, tool, { n = 1 }, session("s", { turn = 1, step = step }))
      end
      local by = { pass = 0, loop = 0, duplicate_in_step = 0 }
      for i = 1, 8 do
        local result = client:hears().result
        local said = verdict(result)
        if i == 2 and step == "m1" then
          golden.check("feedback", "note: the same call twice at once", client_of.text(result):match "Note:[^\n]*" or "")
        end
        local word = said.verdict == "pass" and "pass" or said.code
        by[word] = (by[word] or 0) + 1
      end
      return by
    end
    assert.same({ pass = 5, loop = 0, duplicate_in_step = 0, same_call = 3 }, at_once("read", "m1"))
    assert.same({ pass = 4, loop = 0, duplicate_in_step = 0, same_call = 4 }, at_once("read", "m2"))
    assert.same({ pass = 0, loop = 8, duplicate_in_step = 0 }, at_once("read", "m3"))
    assert.same({ pass = 1, loop = 0, duplicate_in_step = 7 }, at_once("write", "m4"))
  end)

  -- A model may press A, B, A; the same key twice in a row is a slip.
  it("with twenty different arguments in one step runs each time, and an adjacent duplicate is refused", function()
    for i = 1, 20 do
      client:begins("a" .. i, "create_key", { n = i }, session("s", { turn = 1, step = "m1" }))
    end
    for _ = 1, 20 do assert.equal("pass", verdict(client:hears().result).verdict) end
    local function again(n) return verdict(client:calls("create_key", { n = n }, session("s", { turn = 1, step = "m1" }))) end
    assert.equal("duplicate_in_step", again(20).code)
    assert.equal("pass", again(1).verdict)
    assert.same({ 21, 22 }, { client:asks("toolgate/session", { session = "s" }).budgets.calls,
                              #client:asks("toolgate/session", { session = "s" }).history })
  end)
end)
