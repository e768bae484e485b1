-- toolgate test: the fields of an example, the report of a failing one, sample calls, coverage, and --only.

-- A tool whose policy reads everything that an example can set.
local SEEING = [==[
-- lookup: finds orders. Read only.
return tool "lookup" {
  description = "Find orders.",
  schema = params { id = str "Which", limit = optional(int "How many") },
  effects = "read",
  ids = { id = seen() },
  gives_ids = { "orders[].id" },
  rules = {
    always : defaults { limit = 50 },
    when { limit = 7 } : refuses("no_sevens", "seven is not for sale"),
  },
  prepare = function(def, call)
    if call.user == "guest" then return nil end
    return def
  end,
  check = function(args, call)
    if call.facts.closed then return refuse("closed", "closed since " .. call.facts.closed) end
    local last = call.history[#call.history]
    if last and last.class == "tool_error" then
      return refuse("failing", last.tool .. " failed in turn " .. last.turn .. ", now is " .. call.turn)
    end
    if call.goal == "never" then
      local unused = 1
      return refuse("never", "never" .. unused)
    end
  end,
  run = function(args)
    return { orders = { { id = args.id } }, limit = args.limit }
  end,
  examples = {
    EXAMPLES
  },
}
]==]

describe("toolgate test", function()
  local folder

  before_each(function() folder = process.directory() end)

  local function write(name, source) return process.write(folder .. "/" .. name, source) end

  local function test(...)
    return process.run({ daemon.binary, "test", ... })
  end

  local function try(examples, ...)
    write("lookup.lua", (SEEING:gsub("EXAMPLES", function() return examples end)))
    return test(folder, ...)
  end

  local function holds(example)
    local code, out, err = try(example)
    assert.equal(0, code, out .. err)
    assert.matches("1 passed, 0 failed", out)
  end

  local function fails(example)
    local code, out, err = try(example)
    assert.equal(1, code, out .. err)
    return out, err
  end

  describe("runs an example with", function()
    it("seen ids and unseen ids", function()
      holds [[{ "a", args = { id = "o1" }, seen = { "o1" }, gives = "pass" }]]
      holds [[{ "a", args = { id = "o1" }, goal = "find it", gives = "refuse fabricated_id" }]]
      holds [[{ "a", args = { id = "o1" }, goal = "find o1", gives = "pass" }]]
    end)

    it("facts", function()
      holds [[{ "a", args = { id = "o1" }, seen = { "o1" }, facts = { closed = "noon" }, gives = "refuse closed",
                says = "closed since noon" }]]
    end)

    it("a turn and a history, which the policy reads as in a daemon", function()
      holds [[{ "a", args = { id = "o1" }, seen = { "o1" }, turn = 4,
                history = { { tool = "other", class = "ok", turn = 3 }, { tool = "pay", class = "tool_error", turn = 3 } },
                gives = "refuse failing", says = "pay failed in turn 3, now is 4" }]]
    end)

    it("a history that budgets and loops count", function()
      local same = [[{ args = { id = "o1" } }, { args = { id = "o1" } }]]
      holds([[{ "a", args = { id = "o1" }, seen = { "o1" }, history = { ]] .. same .. [[ }, gives = "refuse loop" }]])
      holds([[{ "another turn", args = { id = "o1" }, seen = { "o1" }, turn = 2,
                history = { { args = { id = "o1" }, turn = 1 }, { args = { id = "o1" }, turn = 1 } }, gives = "pass" }]])
      holds [[{ "results that differ", args = { id = "o1" }, seen = { "o1" }, gives = "pass",
                history = { { args = { id = "o1" }, result = { n = 1 } }, { args = { id = "o1" }, result = { n = 2 } } } }]]
      holds [[{ "written as it will be coerced", args = { id = "o1", limit = "50" }, seen = { "o1" },
                history = { { args = { id = "o1" } }, { args = { id = "o1", limit = 50 } } }, gives = "refuse loop" }]]
      holds [[{ "wrong three times", args = { limit = true }, gives = "refuse retry_budget_exceeded", history = {
                { args = { limit = "a" }, class = "invalid_arguments" },
                { args = { limit = "b" }, class = "invalid_arguments" } } }]]
    end)

    it("ids from an earlier result", function()
      holds [[{ "a", args = { id = "o9" }, goal = "find it", gives = "pass",
                history = { { args = { id = "x" }, result = { orders = { { id = "o9" } } } } } }]]
    end)

    it("a user, whose hidden tools are unknown", function()
      holds [[{ "a", args = { id = "o1" }, seen = { "o1" }, user = "guest", gives = "refuse unknown_tool" }]]
      holds [[{ "a", args = { id = "o1" }, seen = { "o1" }, user = "anna", gives = "pass" }]]
      holds [[{ "nobody: nothing is hidden", args = { id = "o1" }, seen = { "o1" }, gives = "pass" }]]
    end)

    it("a result, coerced arguments and the coverage", function()
      holds [[{ "a", args = { id = "o1" }, seen = { "o1" }, result = { orders = {} }, gives = "pass",
                becomes = { id = "o1", limit = 50 } }]]
    end)
  end)

  it("names the policy line that threw in an example, and the error", function()
    write("lookup.lua", (SEEING:gsub("EXAMPLES", function()
      return [[{ "a", args = { id = "o1" }, seen = { "o1" }, gives = "pass" }]]
    end):gsub("if call%.facts%.closed", "if args.limit > call.facts.most then return end %1")))
    local code, out = test(folder)
    assert.equal(1, code)
    assert.matches("lookup.lua:17: ", out)
    golden.check("cli", "test: a policy that breaks in an example", out)
    out = select(3, process.run { daemon.binary, "serve", "--check", "--policies", folder })
    assert.matches("lookup.lua:17: ", out)
    golden.check("load", "examples: a policy that breaks in an example", out)
  end)

  it("explains that an example fails because the tool's schema is unknown", function()
    write("far.lua", [[
      -- far: a tool that the agent has.
      return tool "far" { examples = { { "where?", args = {}, gives = "repair", says = "'place'" } } }]])
    local code, out = test(folder)
    assert.equal(1, code)
    golden.check("cli", "test: a tool whose schema is not known", out)
    local tools = write("tools.json", [=[[{"name":"far","inputSchema":{"type":"object","required":["place"]}}]]=])
    code, out = test(folder, "--tools", tools)
    assert.equal(0, code, out)
  end)

  describe("rejects at load an example with", function()
    local function refused(key, example)
      local code, _, err = try(example)
      assert.equal(1, code)
      golden.check("load", "examples: " .. key, err)
    end

    it("an unknown field, and suggests the closest", function()
      refused("an unknown field", [[{ "a", arsg = {}, gives = "pass" }]])
      refused("an unknown field of the history", [[{ "a", history = { { clas = "ok" } }, gives = "pass" }]])
    end)

    it("no expectation", function()
      refused("no expectation", [[{ "a", args = {} }]])
    end)
  end)

  it("rejects an unknown class in the history", function()
    local out = fails [[{ "a", args = { id = "o1" }, seen = { "o1" }, history = { { class = "okay" } }, gives = "pass" }]]
    golden.check("cli", "test: an unknown class in the history", out)
  end)

  describe("reports for a failing example", function()
    local example = [[{ "wrong in every way", args = { id = "o1" }, seen = { "o1" },
      gives = "refuse", becomes = { id = "o2", limit = 10, also = { 1 } }, says = "hello", status = "SATISFIED" }]]

    it("each expectation beside what it got, with file and line", function()
      local out = fails(example)
      assert.matches("lookup%.lua:31\n", out)
      golden.check("cli", "test: an example that fails in every way", out)
      assert.is_nil(out:find("\27", 1, true))
    end)

    it("the text the model reads", function()
      local out = fails [[{ "a", args = {}, gives = "pass" }]]
      golden.check("cli", "test: a failing example shows what the model reads", out)
    end)

    it("the same as JSON", function()
      local code, out = try(example, "--json")
      assert.equal(1, code)
      local seen = {}
      for line in out:gmatch "[^\n]+" do
        local object = client_of.json.decode(line)
        seen[object.kind] = seen[object.kind] or object
      end
      local shown = assert(seen.example)
      assert.is_false(shown.passed)
      assert.equal("wrong in every way", shown.example)
      assert.equal(31, shown.line)
      assert.same({ "gives", "becomes", "says", "status" },
                  { shown.mismatches[1].field, shown.mismatches[2].field, shown.mismatches[3].field,
                    shown.mismatches[4].field })
      assert.equal("pass ok", shown.mismatches[1].got)
      assert.truthy(table.concat(shown.mismatches[2].changes, "\n"):find("- limit = 10\n+ limit = 50", 1, true))
      assert.is_table(seen.sample)
      assert.is_true(seen.sample.passed)
    end)
  end)

  it("prints with -v the outcome of each example", function()
    local _, out = try([[{ "a", args = { id = "o1" }, seen = { "o1" }, gives = "pass" }]], "-v")
    golden.check("cli", "test: -v", out)
  end)

  describe("makes sample calls of each tool that toolgate runs", function()
    local function broken(change)
      local source = SEEING:gsub("EXAMPLES", ""):gsub("return { orders = { { id = args.id } }, limit = args.limit }", change)
      write("lookup.lua", source)
      return test(folder)
    end

    it("and counts them separately", function()
      local code, out = broken "return { n = args.limit + #args.id }"
      assert.equal(0, code, out)
      assert.truthy(out:find("0 passed, 0 failed; 2 sample calls", 1, true), out)
    end)

    it("and fails if the policy throws", function()
      local code, out = broken "return { n = args.nothing.at_all }"
      assert.equal(1, code)
      golden.check("cli", "test: a sample call that breaks", out)
    end)

    it("and accepts a failure that the tool reports", function()
      local code, out = broken [[return failed("no_such", "there is no such thing")]]
      assert.equal(0, code, out)
    end)

    it("and fails if a result breaks its output schema", function()
      write("echo.lua", (fixtures.echo:gsub("effects",
        [[output_schema = json '{"type":"object","properties":{"said":{"type":"integer"}}}', effects]])))
      local code, out = test(folder)
      assert.equal(1, code)
      golden.check("cli", "test: a sample call whose result does not fit the output schema", out)
    end)
  end)

  describe("with --coverage", function()
    local one = [[{ "a", args = { id = "o1" }, seen = { "o1" }, gives = "pass" }]]

    it("lists the rules and lines that no example reached", function()
      local code, out = try(one, "--coverage")
      assert.equal(0, code, out)
      assert.matches("lookup +1 +1/2 +6/11 +/.-lookup%.lua: 13%-14, 20, 23%-24\n", out)
      golden.check("cli", "test: --coverage", out)
    end)

    it("reports the same as JSON", function()
      local code, out = try(one, "--coverage", "--json")
      assert.equal(0, code)
      local covered
      for line in out:gmatch "[^\n]+" do
        local object = client_of.json.decode(line)
        if object.kind == "coverage" then covered = object end
      end
      assert.same({ hit = 6, total = 11, missed = { 13, 14, 20, 23, 24 } }, covered.lines)
      assert.equal(1, covered.rules.hit)
    end)

    it("fails below --coverage-min", function()
      assert.equal(0, (try(one, "--coverage-min", "50")))
      local code, _, err = try(one, "--coverage-min", "60")
      assert.equal(1, code)
      golden.check("cli", "test: less coverage than demanded", err)
    end)

    it("still ends an endless loop at the deadline", function()
      write("lookup.lua", (SEEING:gsub("EXAMPLES", [[{ "a", args = { id = "o1" }, seen = { "o1" },
        gives = "refuse policy_error" }]]):gsub("if call%.facts%.closed", "while true do end %1")))
      local code, out = test(folder, "--coverage", "--only", "lookup: a")
      assert.equal(0, code, out)
    end)
  end)

  describe("selects", function()
    local two = [[{ "first", args = { id = "o1" }, seen = { "o1" }, gives = "pass" },
                  { "second", args = {}, gives = "repair" }]]

    it("examples whose name contains a string or matches a glob", function()
      local _, out = try(two, "--only", "SECOND")
      assert.matches("1 passed, 0 failed\n", out)
      _, out = try(two, "--only", "lookup: f*")
      assert.matches("ok +lookup: first", out)
      assert.matches("1 passed, 0 failed\n", out)
    end)

    it("nothing with a glob that matches nothing, which is a failure", function()
      local code, out, err = try(two, "--only", "thrid")
      assert.equal(1, code, out)
      golden.check("cli", "test: --only without a match", err)
    end)

    it("only the given files, without their neighbours", function()
      try(two)
      write("broken.lua", "return tool 'x' {")
      write("echo.lua", fixtures.echo)
      assert.equal(1, (test(folder)))
      local code, out = test(folder .. "/lookup.lua", folder .. "/echo.lua")
      assert.equal(0, code, out)
      assert.matches("2 passed, 0 failed", out)
    end)
  end)

  it("skips busted specs beside the policies, and reports that", function()
    write("lookup_spec.lua", "this is no policy")
    local code, out, err = try [[{ "a", args = { id = "o1" }, seen = { "o1" }, gives = "pass" }]]
    assert.equal(0, code, err)
    golden.check("cli", "test: specs beside the policies", out)
  end)

  it("runs everything again after a change with --watch, until Ctrl-C", function()
    write("lookup.lua", (SEEING:gsub("EXAMPLES", [[{ "a", args = { id = "o1" }, gives = "pass" }]])))
    local out = folder .. "/out"
    local child = process.start({ daemon.binary, "test", "--watch", folder .. "/lookup.lua" }, { stdout = out })
    process.eventually("the first run", function() return process.read(out):find("0 passed, 1 failed", 1, true) end)
    write("lookup.lua", (SEEING:gsub("EXAMPLES", [[{ "a", args = { id = "o1" }, gives = "repair" }]])))
    process.eventually("the second run", function() return process.read(out):find("1 passed, 0 failed", 1, true) end)
    child:signal(require("posix.signal").SIGINT)
    local how, code = child:wait()
    assert.same({ "killed", 2 }, { how, code })
    assert.is_nil(process.read(out):find("\27", 1, true))
  end)
end)

describe("a reload with a failing example", function()
  it("reports expected and got in one line, in the log and in the reply", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    gate:write_policy("echo.lua", (fixtures.echo:gsub("effects", [[examples = { { "is wrong", args = { text = "x" },
      gives = "refuse", becomes = { text = "y" } } }, effects]])))
    local answer = gate:connect():asks("toolgate/reload")
    assert.is_false(answer.ok)
    golden.check("load", "examples: a reload that is turned down", answer.errors[1])
    assert.truthy(gate:log():find("example 'is wrong'", 1, true), gate:log())
    assert.is_not_true(gate:connect():calls("echo", { text = "x" }).isError) -- by the old generation
  end)
end)
