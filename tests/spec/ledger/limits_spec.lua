-- Limits by calls, cost and time, and polling intervals.

local function tool(name, fields)
  return ([==[
-- %s: for specs.
return tool "%s" {
  description = "For specs.", effects = "read",
  schema = params { n = int "Which", price = optional(num "What it costs") },
  run = function(args) return { n = args.n, price = args.price } end,
  %s
}
]==]):format(name, name, fields)
end

describe("a limit", function()
  local client

  local function serve(policies, config)
    client = daemon.start { policies = policies, config = config }:connect()
  end

  local function calls(name, n, meta, price)
    return client:calls(name, { n = n, price = price }, meta or session("s", { turn = 1 }))
  end

  local function passes(...)
    local result = calls(...)
    assert.is_not_true(result.isError, text(result))
    return result
  end

  local function is_refused(code, key, ...)
    local result = calls(...)
    assert.same({ "refuse", "retry_budget", code },
                { verdict(result).verdict, verdict(result).error_class, verdict(result).code })
    golden.check("feedback", "limit: " .. key, text(result))
    return result
  end

  it("in a tool's policy counts that tool's calls, and the feedback gives the count and the fix", function()
    serve { ["search.lua"] = tool("search", "limits = { calls_per_turn = 2 },"), ["list.lua"] = tool("list", "") }
    passes("search", 1)
    passes("search", 2)
    is_refused("calls_per_turn", "calls of one tool in a turn", "search", 3)
    passes("list", 1)
    passes("search", 3, session("s", { turn = 2 }))
  end)

  it("in the defaults counts each tool's calls unless a policy lifts it", function()
    serve({ ["search.lua"] = tool("search", ""), ["list.lua"] = tool("list", ""),
            ["free.lua"] = tool("free", "limits = { calls_per_session = false },") },
          "return { defaults = { limits = { calls_per_session = 1 } } }")
    passes("search", 1)
    passes("list", 1)
    is_refused("calls_per_session", "calls of one tool in a session", "search", 2)
    passes("free", 1)
    passes("free", 2)
  end)

  it("of the session counts the calls of all tools", function()
    serve({ ["search.lua"] = tool("search", ""), ["list.lua"] = tool("list", "") },
          "return { session_limits = { calls_per_turn = 2 } }")
    passes("search", 1)
    passes("list", 1)
    is_refused("calls_per_turn", "calls of all tools in a turn", "list", 2)
  end)

  it("by cost counts the declared cost, with fractions", function()
    serve { ["search.lua"] = tool("search", "cost = 0.4, limits = { cost_per_session = 1 },") }
    passes("search", 1)
    passes("search", 2)
    is_refused("cost_per_session", "cost of one tool in a session", "search", 3)
    local known = client:asks("toolgate/session", { session = "s" })
    assert.equal(0.8, known.budgets.cost)
    assert.same({ { tool = "search", calls_in_turn = 2, calls = 2, cost_in_turn = 0.8, cost = 0.8 } }, known.budgets.tools)
  end)

  it("by cost counts the cost that the result hook sets", function()
    serve { ["search.lua"] = tool("search", [[cost = 0.4, limits = { cost_per_turn = 1 },
              result = function(result) return ok { cost = result.price } end]]) }
    passes("search", 1, nil, 0)
    passes("search", 2, nil, 0.9)
    is_refused("cost_per_turn", "cost of one tool in a turn, set by its result hook", "search", 3)
  end)

  it("by cost counts the cost in a result's metadata", function()
    serve { ["search.lua"] = [==[
-- search: for specs.
return tool "search" { description = "For specs.", effects = "read", schema = params { n = int "Which" },
  limits = { cost_per_session = 1 },
  run = function(args) return tool_return { value = { n = args.n }, metadata = { ["dev.toolgate/cost"] = 0.75 } } end,
}
]==] }
    assert.equal(0.75, passes("search", 1)._meta["dev.toolgate/cost"])
    passes("search", 2)
    is_refused("cost_per_session", "cost of one tool in a session, set by its result", "search", 3)
  end)

  it("by cost does not stop a tool without cost", function()
    serve({ ["search.lua"] = tool("search", "cost = 5,"), ["list.lua"] = tool("list", "") },
          "return { session_limits = { cost_per_session = 5 } }")
    passes("search", 1)
    is_refused("cost_per_session", "cost of all tools in a session", "search", 2)
    passes("list", 1)
  end)

  describe("of a tool that the agent runs", function()
    before_each(function()
      serve { ["buy.lua"] = [==[
-- buy: for specs. Run by the agent.
return tool "buy" { description = "For specs.", effects = "write", schema = params { n = int "Which" },
  cost = 1, limits = { cost_per_turn = 2 }, check = function(args) if args.n == 13 then return refuse "not that" end end }
]==] }
    end)

    local function checks(n)
      return client:checks("buy", { n = n }, session("s", { turn = 1 }))
    end

    local function reports(checked, n, told)
      told.callId, told.name, told.arguments, told._meta = checked.callId, "buy", { n = n }, session("s", { turn = 1 })
      return client:asks("toolgate/report", told)
    end

    it("includes calls in flight", function()
      assert.equal("pass", checks(1).verdict)
      assert.equal("pass", checks(2).verdict)
      assert.equal("cost_per_turn", checks(3).code)
    end)

    it("counts the cost in the report", function()
      local first, second = checks(1), checks(2)
      local content = { { type = "text", text = "bought" } }
      reports(first, 1, { result = { content = content, _meta = { ["dev.toolgate/cost"] = 0.25 } } })
      reports(second, 2, { result = { content = content, _meta = { ["dev.toolgate/cost"] = 0.5 } } })
      assert.equal("pass", checks(3).verdict)
      assert.equal("cost_per_turn", checks(4).code)
    end)

    it("does not count calls that the policy refuses", function()
      for _ = 1, 2 do assert.equal("forbidden", checks(13).error_class) end
      assert.equal("pass", checks(1).verdict)
      assert.equal("pass", checks(2).verdict)
    end)
  end)

  it("only advises in a session without a name", function()
    serve { ["search.lua"] = tool("search", "limits = { calls_per_session = 1 },") }
    passes("search", 1, {})
    local second = passes("search", 2, {})
    assert.equal("calls_per_session", verdict(second).would)
    golden.check("feedback", "limit: advice in an anonymous session", text(second))
  end)

  it("by time starts with the tool's first call of a turn", function()
    serve { ["search.lua"] = tool("search", "limits = { seconds_per_turn = 3600 },") }
    passes("search", 1)
    passes("search", 2)
  end)
end)

describe("a polled tool", function()
  local client

  local function serve(every)
    client = daemon.start { policies = { ["job.lua"] = ([==[
-- job: how far a job is. For specs.
return tool "job" { description = "How far.", effects = "read", schema = params { n = int "Which" },
  loop = { poll = { every = %s, max = 4 } }, run = function(args) return { n = args.n, done = false } end }
]==]):format(every) } }:connect()
  end

  local function asks(n)
    return client:calls("job", { n = n }, session("s", { turn = 1 }))
  end

  for _, every in ipairs { '"60s"', '"PT1M"', "60" } do
    it("must wait if it is called earlier than " .. every, function()
      serve(every)
      assert.is_not_true(asks(1).isError)
      local early = asks(1)
      local said = verdict(early)
      assert.same({ "wait", "transient", "too_soon" }, { said.verdict, said.error_class, said.code })
      assert(said.after_s > 30 and said.after_s <= 60, said.after_s)
      golden.check("feedback", "limit: polling too early", text(early),
                   { ["in " .. said.after_s .. " s"] = "in <after_s> s" })
    end)
  end

  it("may be called with other arguments at once", function()
    serve '"60s"'
    assert.is_not_true(asks(1).isError)
    assert.is_not_true(asks(2).isError)
  end)

  it("is answered with the wait however often it comes too early", function()
    serve '"60s"'
    asks(1)
    for _ = 1, 12 do
      local said = verdict(asks(1))
      assert.same({ "wait", "too_soon" }, { said.verdict, said.code })
      assert(said.after_s > 0 and said.after_s <= 60, said.after_s)
    end
  end)

  it("may be called with the same result up to its maximum", function()
    serve "0.001"
    local function asks_in_time() -- the millisecond may not have passed yet
      local result
      repeat result = asks(1) until not verdict(result) or verdict(result).code ~= "too_soon"
      return result
    end
    for n = 1, 4 do
      local result = asks_in_time()
      assert.is_not_true(result.isError, n .. text(result))
    end
    for _ = 1, 6 do
      local said = verdict(asks_in_time())
      assert.same({ "refuse", "poll_budget" }, { said.verdict, said.code })
    end
  end)
end)
