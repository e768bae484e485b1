-- mode = "shadow" evaluates and logs, and enforces nothing; mode = "off" does not evaluate.

local function tool(mode)
  return ([==[
-- sized: says which size it was given.
return tool "sized" {
  description = "Say the size.", use_when = "sizes matter", effects = "read", final = true, mode = %q,
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"},"kind":{"enum":["a","b"]}},"required":["n"]}]],
  output_schema = json [[{"type":"object","properties":{"n":{"type":"integer"}}}]],
  rules = { when { kind = "a" } : drops "note" },
  check = function(args) if args.n == 7 then return ask("really?", { "yes", "no" }) end end,
  run = function(args) return { n = args.n, of = type(args.n) } end,
  result = function(result)
    if result.n == 8 then return garbage("odd_size", "it is odd") end
    return ok { coverage = "SATISFIED", facts = { n = 1 } }
  end,
}
]==]):format(mode)
end

describe("a tool in", function()
  local gate, client

  local function start(mode)
    gate, client = daemon.open { policies = { ["sized.lua"] = tool(mode) } }
  end

  local function passes(arguments, meta)
    local result = client:calls("sized", arguments, meta)
    assert.is_not_true(result.isError, text(result))
    assert.equal(1, #result.content)
    local said = verdict(result)
    assert.same({ "pass", true }, { said.verdict, said.valid })
    for _, told in ipairs { "messages", "rewrites", "coverage", "facts", "choices", "final", "detail", "hint" } do
      assert.is_nil(said[told], told)
    end
    return said, text(result)
  end

  describe("shadow mode", function()
    before_each(function() start "shadow" end)

    it("runs with its raw arguments, and reports in `would` what enforcement would do", function()
      local said, words = passes { n = "3" }
      assert.truthy(words:find('"of":"string"', 1, true), words)
      assert.truthy(said.would)
      said, words = passes { n = "x" }
      assert.equal("invalid_arguments", said.would)
      assert.truthy(words:find('"n":"x"', 1, true), words)
    end)

    it("hides its check, its result hook and the ledger from the model, and still records the call", function()
      assert.equal("need_user_input", passes { n = 7 }.would)
      assert.equal("odd_size", passes { n = 8 }.would)
      local meta = session("s", { turn = 1 })
      for i = 1, 6 do
        local said = passes({ n = 1 }, meta)
        if i >= 3 then assert.equal("loop", said.would) else assert.is_nil(said.would) end
      end
      local counters = gate:status().counters
      assert(counters.would >= 6)
      assert.same({ 1, 0, 4 }, { counters.loops, counters.calls_saved, counters.calls_not_saved })
      gate:logs "would=odd_size"
    end)

    it("parses arguments that are a JSON string, and refuses arguments that cannot be parsed", function()
      client:say_line [[{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{"name":"sized","arguments":"{\"n\":5}"}}]]
      assert.truthy(text(client:hears().result):find('"n":5', 1, true))
      client:say_line [[{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{"name":"sized","arguments":{"n":1,"n":2}}}]]
      local refused = client:hears().result
      assert.is_true(refused.isError)
      assert.is_nil(text(refused):find("sizes matter", 1, true))
    end)

    it("reports `would` to toolgate check", function()
      local _, out = process.run { daemon.binary, "check", "sized", '{"n":7}', "--socket", gate.socket }
      assert.truthy(out:find("pass  sized  would: need_user_input\n", 1, true), out)
    end)

    it("is listed with the description alone", function()
      assert.equal("Say the size.", client:asks("tools/list").tools[1].description)
    end)
  end)

  it("mode off passes every call through, without `would` and without loops", function()
    start "off"
    for _, n in ipairs { "x", 7, 8 } do assert.is_nil(passes({ n = n }).would) end
    for _ = 1, 6 do assert.is_nil(passes({ n = 1 }, session("s", { turn = 1 })).would) end
  end)

  for _, mode in ipairs { "shadow", "off" } do
    it(mode .. " mode runs its examples as if it were enforced", function()
      gate, client = daemon.open { policies = { ["sized.lua"] = (tool(mode):gsub("\n}\n$", [==[

  examples = {
    { "asked", args = { n = 7 }, gives = "ask" },
    { "dropped", args = { n = 1, kind = "a", note = "x" }, gives = "pass", becomes = { n = 1, kind = "a" } },
    { "judged", args = { n = 8 }, gives = "semantic_garbage odd_size", says = "it is odd" },
    { "counted as coerced", args = { n = 1, kind = "a" }, gives = "refuse loop",
      history = { { args = { n = 1, kind = "a", note = "x" } }, { args = { n = 1, kind = "a", note = "y" } } } },
  },
}
]==])) } }
      passes { n = 7 }
    end)
  end

  it("default shadow mode still leaves the agent's own tools to the agent", function()
    gate, client = daemon.open { config = [[return { defaults = { mode = "shadow" } }]],
                                 tools = require("fixtures").agent_tools }
    local said = verdict(client:calls("get_weather", { city = "Bern" }))
    assert.same({ "refuse", "agent_runs_this" }, { said.verdict, said.error_class })
    assert.equal("pass", client:checks("get_weather", { town = "Bern" }).verdict)
  end)
end)
