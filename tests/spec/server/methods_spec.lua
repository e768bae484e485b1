-- The toolgate/* methods, for agents that run their own tools and for operators.

describe("toolgate/", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo, ["outcome.lua"] = fixtures.outcome },
                                 tools = fixtures.agent_tools }
  end)

  local function report(call_id, name, arguments, result, meta)
    return client:asks("toolgate/report", { callId = call_id, name = name, arguments = arguments, result = result,
                                            _meta = meta })
  end

  describe("check", function()
    it("passes a valid call with a new callId, and runs nothing", function()
      local said = client:checks("get_weather", { city = "Bern" })
      assert.equal("pass", said.verdict)
      assert.is_true(said.valid)
      assert.same({ city = "Bern" }, said.arguments)
      assert.truthy(#said.callId == 43 and said.callId:match "^[%w_-]+$")
      assert.not_equal(said.callId, client:checks("get_weather", { city = "Bern" }).callId)
    end)

    it("returns the coerced arguments", function()
      local said = client:checks("get_weather", { city = "Bern", days = "3" })
      assert.equal("pass", said.verdict)
      assert.same({ city = "Bern", days = 3 }, said.arguments)
      assert.same({ { op = "replace", path = "/days", value = 3 } }, said.rewrites)
    end)

    it("returns the problems, and the feedback for the model", function()
      local said = client:checks("get_weather", { town = "Bern" })
      assert.same({ "repair", false }, { said.verdict, said.valid })
      assert.same({ "args.city", "args.town" }, { said.messages[1].path, said.messages[2].path })
      golden.check("feedback", "check: the text of a repair", said.text)
    end)

    it("reports unknown_tool for an undeclared tool", function()
      assert.equal("unknown_tool", client:checks("get_wether", { city = "x" }).error_class)
    end)
  end)

  describe("report", function()
    it("classifies a result, and counts the call", function()
      local meta = session("s", { turn = 1 })
      for i = 1, 3 do
        local checked = client:checks("get_weather", { city = "Bern" }, meta)
        if i == 3 then
          assert.same({ "refuse", "loop" }, { checked.verdict, checked.error_class })
        else
          assert.equal("pass", checked.verdict)
          local said = report(checked.callId, "get_weather", { city = "Bern" }, { sky = "grey" }, meta)
          assert.equal("pass", said.verdict)
        end
      end
    end)

    it("accepts an MCP result and any other value", function()
      for _, result in ipairs { { content = { { type = "text", text = "grey" } } }, "grey", { sky = "grey" } } do
        local checked = client:checks("get_weather", { city = "Bern" })
        assert.equal("pass", report(checked.callId, "get_weather", { city = "Bern" }, result).verdict)
      end
    end)

    it("accepts an error, transient or not", function()
      local function fails(failure)
        local checked = client:checks("get_weather", { city = "Bern" })
        return client:asks("toolgate/report", { callId = checked.callId, name = "get_weather",
                                                arguments = { city = "Bern" }, error = failure })
      end
      assert.equal("tool_error", fails({ message = "no such city" }).error_class)
      local wait = fails { message = "rate limited", transient = true }
      assert.same({ "transient", "wait" }, { wait.error_class, wait.verdict })
    end)

    it("of a cancelled run gives back what its check reserved", function()
      local meta = session("s", { turn = 1 })
      for _ = 1, 5 do
        local checked = client:checks("get_weather", { city = "Bern" }, meta)
        assert.equal("pass", checked.verdict)
        local said = client:asks("toolgate/report", { callId = checked.callId, error = { cancelled = true } })
        assert.equal("cancelled", said.error_class)
      end
      local checked = client:checks("get_weather", { city = "Bern" }, meta)
      local fault = client:ask("toolgate/report", { callId = checked.callId, error = { cancelled = 1 } }).error
      assert.truthy(fault.message:find("error.cancelled", 1, true), fault.message)
    end)

    it("without a callId, or with one that no check gave, is an error that says so", function()
      local function refused(call_id, meta)
        return client:ask("toolgate/report", { callId = call_id, name = "get_weather", arguments = { city = "Bern" },
                                               result = "grey", _meta = meta }).error
      end
      local checked = client:checks("get_weather", { city = "Bern" }, session "s")
      local forged = (checked.callId:sub(1, 1) == "A" and "B" or "A") .. checked.callId:sub(2)
      local texts = {}
      for i, fault in ipairs { refused(nil), refused(7), refused "00000000deadbeef", refused(forged),
                               refused(checked.callId, session "other") } do
        assert.equal(-32602, fault.code)
        texts[i] = fault.message
      end
      golden.check("protocol", "report: callId", table.concat(texts, "\n"))
      assert.equal("pass", report(checked.callId, "get_weather", { city = "Bern" }, "grey").verdict)
    end)

    it("returns the content for the model: the result, or the feedback if the result must not stand", function()
      local function content(result)
        local checked = client:checks("outcome", { how = "ok" })
        local said = report(checked.callId, "outcome", { how = "ok" }, result)
        return said.content, said
      end
      assert.same({ { type = "text", text = "grey" } }, content "grey")
      assert.same('{"how":"ok"}', content({ how = "ok" })[1].text)
      local image = { type = "image", data = "aGk=", mimeType = "image/png" }
      assert.same({ image }, content { content = { image } })
      local blocks, said = content { how = "garbage" }
      assert.equal("semantic_garbage", said.error_class)
      assert.same({ { type = "text", text = said.text } }, blocks)
      blocks, said = content { how = "partial" }
      assert.equal("partial_data", said.error_class)
      assert.same({ 2, said.advice }, { #blocks, blocks[2].text })
    end)

    it("is the same call with the original or the coerced arguments", function()
      local meta = session("s", { turn = 1 })
      for i = 1, 2 do
        local checked = client:checks("get_weather", { city = "Bern", days = "3" }, meta)
        local said = report(checked.callId, "get_weather", { city = "Bern", days = i == 1 and "3" or 3 }, "grey", meta)
        assert.equal(i == 1 and 0 or 2, said.repeats)
      end
    end)
  end)

  describe("register", function()
    local mine = { name = "find_train", description = "Find a train.",
                   inputSchema = { type = "object", properties = { to = { type = "string" } }, required = { "to" } } }

    it("declares tools for the checks of this connection only", function()
      local said = client:asks("toolgate/register", { tools = { mine } })
      assert.is_table(said.tools)
      assert.equal("pass", client:checks("find_train", { to = "Bern" }).verdict)
      assert.equal("repair", client:checks("find_train", { from = "Bern" }).verdict)
      for _, tool in ipairs(client:asks("tools/list").tools) do assert.not_equal("find_train", tool.name) end
      assert.equal("unknown_tool", gate:connect():checks("find_train", { to = "Bern" }).error_class)
    end)

    it("declares a session's tools for that session only: no other checks, lists, reports or is suggested them", function()
      local theirs = { name = "find_train", description = "Find a toy train.",
                       inputSchema = { type = "object", properties = { gauge = { type = "integer" } }, required = { "gauge" } } }
      local function described(meta)
        for _, tool in ipairs(client:asks("toolgate/tools", { _meta = meta }).tools) do
          if tool.name == "find_train" then return tool.description end
        end
      end
      client:asks("toolgate/register", { tools = { mine }, _meta = session "a" })
      local paint = { name = "paint", inputSchema = { type = "object" } }
      client:asks("toolgate/register", { tools = { theirs, paint }, _meta = session "b" })
      assert.same({ "Find a train.", "Find a toy train." }, { described(session "a"), described(session "b") })
      assert.is_nil(described(session "c"))
      local checked = client:checks("find_train", { to = "Bern" }, session "a")
      assert.same({ "pass", "repair" }, { checked.verdict, client:checks("find_train", { to = "Bern" }, session "b").verdict })
      assert.equal("pass", client:asks("toolgate/report", { callId = checked.callId, result = "8:00" }).verdict)
      for name, meta in pairs { find_train = session "c", paint = session "a" } do
        local said = client:checks(name, { to = "Bern" }, meta)
        assert.equal("unknown_tool", said.error_class)
        assert.is_nil(said.text:match("\n.*"):find("paint", 1, true), said.text)
      end
      assert.equal("unknown_tool", client:checks("find_train", { to = "Bern" }).error_class)
    end)

    it("puts a session's tools before the connection's of the same name", function()
      client:asks("toolgate/register", { tools = { mine, { name = "paint", inputSchema = { type = "object" } } } })
      local any = { name = "find_train", inputSchema = { type = "object" } }
      client:asks("toolgate/register", { tools = { any }, _meta = session "a" })
      assert.same({ "pass", "pass", "repair" }, { client:checks("find_train", {}, session "a").verdict,
                  client:checks("paint", {}, session "a").verdict, client:checks("find_train", {}, session "b").verdict })
      local names = {}
      for _, tool in ipairs(client:asks("toolgate/tools", { _meta = session "a" }).tools) do
        names[tool.name] = (names[tool.name] or 0) + 1
      end
      assert.same({ 1, 1 }, { names.find_train, names.paint })
    end)

    it("keeps the tools of the last sessions of a connection", function()
      for n = 0, 300 do client:asks("toolgate/register", { tools = { mine }, _meta = session("s" .. n) }) end
      assert.equal("unknown_tool", client:checks("find_train", { to = "Bern" }, session "s0").error_class)
      for n = 45, 300 do assert.equal("pass", client:checks("find_train", { to = "Bern" }, session("s" .. n)).verdict) end
    end)

    it("survives a reload, in a session, too", function()
      local other = gate:connect()
      client:asks("toolgate/register", { tools = { mine }, _meta = session "a" })
      other:asks("toolgate/register", { tools = { mine } })
      gate:write_policy("third.lua", (fixtures.echo:gsub("echo", "third")))
      gate:reload()
      assert.equal("pass", client:checks("find_train", { to = "Bern" }, session "a").verdict)
      assert.equal("pass", other:checks("find_train", { to = "Bern" }).verdict)
    end)

    it("leaves tools/call refused with agent_runs_this", function()
      client:asks("toolgate/register", { tools = { mine } })
      local said = client_of.verdict(client:calls("find_train", { to = "Bern" }))
      assert.same({ "refuse", "agent_runs_this" }, { said.verdict, said.error_class })
    end)

    it("takes no more memory with each reload, though it is registered once", function()
      if daemon.binary:find("build-san", 1, true) then return pending "the sanitizer keeps what is freed" end
      local properties = {}
      for i = 1, 1500 do properties["p" .. i] = { type = "string" } end
      local wide = { type = "object", properties = properties }
      for s = 1, 3 do
        client:asks("toolgate/register", { _meta = session("s" .. s), tools = {
          { name = "a", description = "a" .. s, inputSchema = wide },
          { name = "b", description = "b" .. s, inputSchema = wide } } })
      end
      for n = 1, 20 do
        gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second" .. n)))
        gate:reload()
        for s = 1, 3 do
          for _, name in ipairs { "a", "b" } do client:checks(name, { p1 = "x" }, session("s" .. s)) end
        end
      end
      local status = process.read(("/proc/%d/status"):format(gate:pid()))
      assert.truthy(tonumber(status:match "VmRSS:%s*(%d+)") < 70000, status:match "VmRSS[^\n]*")
    end)

    it("reports invalid definitions, and accepts the rest", function()
      local said, line = client:asks("toolgate/register", { tools = {
        mine, { name = "bad", inputSchema = { type = "strang" } } } })
      assert.truthy(line:find("bad", 1, true))
      assert.is_table(said)
      assert.equal("pass", client:checks("find_train", { to = "Bern" }).verdict)
    end)

    it("does not accept the name of a tool that toolgate runs", function()
      local _, line = client:ask("toolgate/register", { tools = { { name = "echo", inputSchema = { type = "object" } } } })
      assert.truthy(line:find("echo", 1, true))
      assert.equal("repair", client:checks("echo", { a = 1 }).verdict)
    end)

    it("applies the operator's policy of the same name", function()
      local guarded = daemon.start { policies = { ["find_train.lua"] = [[
-- find_train: only to Bern. The agent runs it.
return tool "find_train" {
  description = "Find a train.",
  schema = json '{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}',
  check = function(args) if args.to ~= "Bern" then return refuse("only_bern", "trains go to Bern only") end end,
}
]] } }:connect()
      guarded:asks("toolgate/register", { tools = { mine } })
      assert.equal("pass", guarded:checks("find_train", { to = "Bern" }).verdict)
      assert.equal("only_bern", guarded:checks("find_train", { to = "Basel" }).code)
    end)
  end)

  describe("turn", function()
    it("counts turns, and accepts a number and a goal", function()
      assert.equal(1, client:asks("toolgate/turn", { _meta = session "t" }).turn)
      assert.equal(2, client:asks("toolgate/turn", { _meta = session "t" }).turn)
      assert.equal(7, client:asks("toolgate/turn", { turn = 7, goal = "what is on today?", _meta = session "t" }).turn)
    end)

    it("is named by any text: a new one begins the next turn, one that was heard is that turn, late", function()
      local function of(name) return client:asks("toolgate/turn", { turn = name, _meta = session "uuid" }).turn end
      local first = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
      assert.equal(1, of(first))
      assert.equal(1, of(first))
      assert.equal(2, of "second")
      assert.equal(2, of(first)) -- late: it counts in the turn of now
      assert.equal(3, of(("x"):rep(128)))
      for _, name in ipairs { "", ("x"):rep(129) } do
        local said = client:ask("toolgate/turn", { turn = name, _meta = session "uuid" })
        assert.equal(-32602, said.error.code)
        assert.truthy(said.error.message:find("a text of 1 to 128 bytes", 1, true), said.error.message)
      end
    end)

    it("is named by a text in calls, too, and gives budgets anew", function()
      local function verdict_in(turn)
        return client:checks("echo", { text = "same" }, session("texts", { turn = turn })).code
      end
      for _ = 1, 2 do
        local id = client:checks("echo", { text = "same" }, session("texts", { turn = "a" })).callId
        client:asks("toolgate/report", { callId = id, result = { n = 1 } })
      end
      assert.equal("loop", verdict_in "a")
      assert.is_nil(verdict_in "b")
    end)
  end)

  describe("tools", function()
    local all = { "book_table", "echo", "get_weather", "outcome" }

    -- The name of each definition, and its schema.
    for title, list in pairs {
      ["MCP's format"] = { { format = "mcp" }, function(t) return t.name, t.inputSchema end },
      ["Anthropic's format"] = { { format = "anthropic" }, function(t) return t.name, t.input_schema end },
      ["OpenAI's format"] = { { format = "openai", strict = false }, function(t)
        assert.equal("function", t.type)
        return (t["function"] or t).name, (t["function"] or t).parameters
      end },
      ["OpenAI's format, strict"] = { { format = "openai", strict = true }, function(t)
        local f = t["function"] or t
        assert.same({ "function", true, false }, { t.type, f.strict, f.parameters.additionalProperties })
        return f.name, f.parameters
      end },
    } do
      it("lists in " .. title, function()
        local names = {}
        for i, tool in ipairs(client:asks("toolgate/tools", list[1]).tools) do
          local name, schema = list[2](tool)
          names[i] = name
          assert.equal("object", schema.type)
        end
        table.sort(names)
        assert.same(all, names)
      end)
    end
    it("lists in Gemini's format", function()
      local _, line = client:asks("toolgate/tools", { format = "gemini" })
      for _, name in ipairs(all) do assert.truthy(line:find('"name":"' .. name .. '"', 1, true), line) end
      assert.truthy(line:find("parameters", 1, true))
    end)
    it("rejects any other format", function()
      local failure = client:ask("toolgate/tools", { format = "cohere" }).error
      assert.equal(-32602, failure.code)
      golden.check("protocol", "toolgate/tools: an unknown format", failure.message)
    end)
  end)

  it("schemas returns the schemas of a verdict and of coverage", function()
    for _, name in ipairs { "verdict", "coverage" } do
      local _, line = client:asks("toolgate/schemas", { name = name })
      assert.truthy(line:find('"type"', 1, true), line)
    end
    assert.equal(-32602, client:ask("toolgate/schemas", { name = "nothing" }).error.code)
  end)

  it("session returns the history, the budgets and the facts", function()
    client:calls("outcome", { how = "facts" }, session "s")
    client:calls("echo", { text = "x" }, session "s")
    local known = client:asks("toolgate/session", { session = "s" })
    assert.equal(2, #known.history)
    assert.same({ colour = "red" }, known.facts)
  end)

  it("status returns the generation, the ledger's engine and the counters", function()
    client:calls("echo", { text = "x" })
    local status, line = client:asks("toolgate/status")
    assert.truthy(line:find('"local"', 1, true), line)
    assert.truthy(status.generation, line)
    assert.truthy(line:find('"calls":1', 1, true), line)
  end)

  it("with any other name is an error that suggests the closest", function()
    local failure = client:ask("toolgate/chekc", { name = "echo" }).error
    assert.equal(-32601, failure.code)
    golden.check("protocol", "an unknown method of toolgate", failure.message)
  end)
end)
