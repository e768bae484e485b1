-- What a client sends without effect: an error to a program, a warning to a model's client, and a line for the operator.
local client = require "client"

local POLICIES = { ["echo.lua"] = [[
-- echo: answers with its text. Read only.
return tool "echo" { schema = params { text = str "Text" }, effects = "read", run = function(args) return args.text end }
]], ["mine.lua"] = [[
-- mine: run by the agent. Read only.
return tool "mine" { schema = params { text = str "Text" }, effects = "read" }
]] }

local SESSION = "dev.toolgate/session"

local function problem(gate, code)
  for _, row in ipairs(gate:status().problems) do
    if row.code == code then return row end
  end
end

describe("a key without effect", function()
  local gate, agent
  before_each(function()
    gate, agent = daemon.open { policies = POLICIES }
  end)

  local function warnings(meta, more)
    local params = { name = "echo", arguments = { text = "x" }, _meta = meta }
    for key, value in pairs(more or {}) do params[key] = value end
    local result = agent:asks("tools/call", params)
    assert.is_nil(result.isError)
    return client.verdict(result).warnings
  end

  local function refusal(method, params)
    local reply = agent:ask(method, params)
    assert.equal(-32602, reply.error and reply.error.code)
    return reply.error.message
  end

  local UNKNOWN = {
    ["dev.toolgate/sesion"] = SESSION, ["dev.toolgate/Session"] = SESSION, ["toolgate/session"] = SESSION,
    ["dev.toolgate.turn"] = "dev.toolgate/turn", ["dev.toolgate/turns"] = "dev.toolgate/turn",
    ["dev.toolgate/goals"] = "dev.toolgate/goal", ["dev.toolgate/contxt"] = "dev.toolgate/context",
  }
  for key, close in pairs(UNKNOWN) do
    it(("'%s' is warned of in tools/call, and refused of a program, with '%s'"):format(key, close), function()
      local said = warnings { [key] = "x" }
      assert.equal(1, #said)
      assert.truthy(said[1]:find("'" .. close .. "'", 1, true), said[1])
      for _, method in ipairs { "toolgate/check", "toolgate/turn", "toolgate/tools", "toolgate/status" } do
        local why = refusal(method, { name = "echo", arguments = { text = "x" }, _meta = { [key] = "x" } })
        assert.truthy(why:find("'" .. close .. "'", 1, true), why)
      end
      assert.equal(5, problem(gate, "unknown_key").count)
    end)
  end

  it("beside _meta is named with its place", function()
    for _, key in ipairs { "session", "turn", "step", "call", "goal", "context", SESSION } do
      local said = warnings(nil, { [key] = "x" })
      assert.truthy(said and said[1]:find("params._meta", 1, true), key)
      local params = { name = "mine", arguments = { text = "x" }, [key] = "x" }
      assert.truthy(refusal("toolgate/check", params):find("dev.toolgate/" .. key:gsub(".*/", ""), 1, true), key)
    end
    assert.equal(14, problem(gate, "misplaced_key").count)
  end)

  it("is no mistake where a method takes it", function()
    assert.truthy(agent:ask("toolgate/turn", { turn = 3, goal = "x", _meta = { [SESSION] = "s" } }).result)
    assert.equal(-32602, agent:ask("toolgate/turn", { turn = 3, session = "s" }).error.code)
    agent:checks("mine", { text = "x" }, client.session "s")
    assert.truthy(agent:ask("toolgate/session", { session = "s" }).result)
  end)

  it("a label or flag of the wrong type is named with what it should be", function()
    local WRONG = { step = {}, call = true, ext = { "a" }, trace = "yes" }
    for key, value in pairs(WRONG) do
      local meta = { ["dev.toolgate/" .. key] = value }
      assert.truthy(warnings(meta)[1]:find("dev.toolgate/" .. key .. " has no effect: expected", 1, true), key)
      assert.truthy(refusal("toolgate/check", { name = "mine", arguments = { text = "x" }, _meta = meta })
        :find("expected", 1, true), key)
    end
    assert.equal(8, problem(gate, "wrong_type").count)
    assert.is_nil(warnings { ["dev.toolgate/step"] = 5, ["dev.toolgate/call"] = "a", ["dev.toolgate/trace"] = true })
  end)

  it("an empty session is named", function()
    assert.truthy(warnings({ [SESSION] = "" })[1]:find("empty", 1, true))
    assert.truthy(refusal("toolgate/check", { name = "mine", arguments = { text = "x" }, _meta = { [SESSION] = "" } })
      :find("empty", 1, true))
    assert.equal(2, problem(gate, "empty_session").count)
    gate:logs "code=empty_session"
  end)

  it("keys of MCP and of others are left alone", function()
    local said = warnings { progressToken = 1,
                            traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            ["example.com/session"] = "x", [SESSION] = "s",
                            ["dev.toolgate/turn"] = 1, ["dev.toolgate/ext"] = "a" }
    assert.is_nil(said)
    local modern = agent:asks("tools/call", { name = "echo", arguments = { text = "x" }, _meta = client.modern() })
    assert.is_nil(client.verdict(modern).warnings)
    assert.same({}, gate:status().problems)
  end)

  it("many of them are bounded", function()
    local meta = {}
    for i = 1, 300 do meta["dev.toolgate/key" .. i] = i end
    assert.equal(4, #warnings(meta))
    assert.equal(300, problem(gate, "unknown_key").count)
  end)
end)

describe("checks without reports", function()
  local gate, agent
  before_each(function()
    gate, agent = daemon.open { policies = POLICIES }
  end)

  local function check(i, step)
    return agent:checks("mine", { text = "x" .. i }, client.session("s", { turn = i, step = step }))
  end

  local function report(check_reply)
    agent:asks("toolgate/report", { callId = check_reply.callId, result = { ok = true } })
  end

  it("are counted from the ninth on, in the reply, the log and the status", function()
    for i = 1, 8 do assert.is_nil(check(i).unreported) end
    assert.equal(9, check(9).unreported)
    assert.equal(10, check(10).unreported)
    gate:logs "code=checks_unreported"
    local row = problem(gate, "checks_unreported")
    assert.equal(1, row.count)
    assert.truthy(row.client:find("pid " .. require("posix.unistd").getpid(), 1, true), row.client)
  end)

  it("begin anew with a report", function()
    local first = check(1)
    for i = 2, 12 do check(i) end
    report(first)
    for i = 13, 20 do assert.is_nil(check(i).unreported) end
    assert.equal(9, check(21).unreported)
  end)

  it("count once for a step of parallel calls", function()
    for i = 1, 20 do assert.is_nil(check(i, "one message").unreported) end
    assert.is_nil(check(21, "another").unreported)
  end)

  it("do not count where nothing may run", function()
    for i = 1, 20 do
      local reply = agent:checks("mine", {}, client.session("s", { turn = i }))
      assert.not_equal("pass", reply.verdict)
      assert.is_nil(reply.unreported)
    end
  end)
end)

describe("a report that nobody can place", function()
  it("is an error in words, and the operator sees it", function()
    local gate, agent = daemon.open { policies = POLICIES }
    local forged = ("A"):rep(43)
    for _, id in ipairs { "x", forged, 5, {}, false } do
      local reply = agent:ask("toolgate/report", { callId = id, name = "mine", arguments = { text = "x" }, result = { a = 1 } })
      assert.equal(-32602, reply.error.code)
      assert.truthy(reply.error.message:find("params.callId", 1, true))
    end
    assert.equal(-32602, agent:ask("toolgate/report", { result = { a = 1 } }).error.code)
    assert.equal(6, problem(gate, "report_unplaced").count)
    process.eventually("it is logged", function() return gate:log():find("code=report_unplaced", 1, true) end)
  end)
end)
