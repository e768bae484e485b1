-- What prepare and prepare_tools see of a session, and how a fleet keeps it up to date.
local redis = require "redis"

-- Shown only if the condition holds.
local SHOWN = [==[
-- shown: for specs.
return tool "shown" {
  description = "For specs.", effects = "read", schema = params {},
  prepare = function(def, call) if %s then return def end end,
  run = function() return { done = true } end,
}
]==]

-- Its result is a fact.
local LEARN = [==[
-- learn: for specs.
return tool "learn" {
  description = "For specs.", effects = "write", schema = params { locked = bool "Which" },
  run = function(args) return { locked = args.locked } end,
  result = function(result) return ok { facts = { locked = result.locked } } end,
}
]==]

local function policies(condition)
  return { ["shown.lua"] = SHOWN:format(condition), ["learn.lua"] = LEARN }
end

local function lists(client, meta)
  for _, tool in ipairs(client:asks("tools/list", { _meta = meta }).tools) do
    if tool.name == "shown" then return true end
  end
  return false
end

describe("prepare sees of the session", function()
  for what, condition in pairs {
    ["call.facts"] = "call.facts.locked == true",
    ["call.history"] = "#call.history == 1 and call.history[1].tool == 'learn'",
  } do
    it(what .. ", in the list and when the tool is called", function()
      local client = daemon.start { policies = policies(condition) }:connect()
      local meta = session("s", { turn = 3 })
      assert.is_false(lists(client, meta))
      assert.equal("unknown_tool", client_of.verdict(client:calls("shown", {}, session("other", { turn = 1 }))).error_class)
      assert.equal("pass", client_of.verdict(client:calls("learn", { locked = true }, meta)).verdict)
      assert.is_true(lists(client, meta))
      assert.equal("pass", client_of.verdict(client:calls("shown", {}, meta)).verdict)
    end)
  end

  local function says(client, turn, more)
    local meta = session("s", { turn = turn })
    for key, value in pairs(more or {}) do meta["dev.toolgate/" .. key] = value end
    return client_of.verdict(client:calls("shown", {}, meta)).error_class
  end

  it("call.turn: the request's own, from the first call of a session on", function()
    local client = daemon.start { policies = policies "call.turn == 3" }:connect()
    assert.is_true(lists(client, session("s", { turn = 3 })))
    assert.is_false(lists(client, session("s", { turn = 2 })))
    assert.equal("unknown_tool", says(client, 2))
    assert.equal("ok", says(client, 3))
    assert.is_false(lists(client, session("s", { turn = 4 })))
    assert.equal("ok", says(client, 3))
    assert.equal("unknown_tool", says(client, 4))
  end)

  it("call.turn: the current one, where a request is late, whether it gives a number or a text", function()
    local client = daemon.start { policies = policies "call.turn < 3" }:connect()
    assert.equal("ok", says(client, "first"))
    assert.equal("ok", says(client, "second"))
    assert.is_false(lists(client, session("s", { turn = "third" })))
    assert.is_true(lists(client, session("s", { turn = "second" })))
    assert.equal("unknown_tool", says(client, "third"))
    assert.equal("unknown_tool", says(client, "second"))
    for _, late in ipairs { "first", "second", 1 } do
      assert.is_false(lists(client, session("s", { turn = late })), late)
    end
  end)

  it("call.step", function()
    local client = daemon.start { policies = policies "call.step == '7'" }:connect()
    local meta = session("s", { turn = 1 })
    assert.is_false(lists(client, meta))
    meta["dev.toolgate/step"] = 7
    assert.is_true(lists(client, meta))
    assert.equal("ok", says(client, 1, { step = 7 }))
    assert.equal("unknown_tool", says(client, 1, { step = 8 }))
  end)

  it("no goal of the turn before, and no session that was stuck in it", function()
    local client = daemon.start { policies = policies "call.goal == 'tidy up'" }:connect()
    client:asks("toolgate/turn", { turn = 1, goal = "tidy up", _meta = session "s" })
    assert.is_true(lists(client, session("s", { turn = 1 })))
    assert.is_false(lists(client, session("s", { turn = 2 })))
    assert.equal("ok", says(client, 1))
    assert.equal("unknown_tool", says(client, 2))
  end)

  it("a list with a turn that cannot be is an error", function()
    local client = daemon.start { policies = policies "true" }:connect()
    assert.equal(-32602, client:ask("tools/list", { _meta = session("s", { turn = -1 }) }).error.code)
  end)

  it("call.no_progress: the calls in a row that brought nothing new", function()
    local client = daemon.start { policies = policies "call.no_progress >= 2" }:connect()
    local meta = session("s", { turn = 1 })
    for i = 1, 2 do
      assert.is_false(lists(client, meta), i)
      client:calls("no_such_tool", { n = i }, meta)
    end
    assert.is_true(lists(client, meta))
  end)

  it("the same for a tool that an agent registers", function()
    local client = daemon.start { policies = { ["own.lua"] = [==[
-- own: for specs. Run by the agent.
return tool "own" { effects = "read", prepare = function(def, call) if call.turn >= 2 then return def end end }
]==] } }:connect()
    client:asks("toolgate/register", { tools = { { name = "own", inputSchema = { type = "object" } } } })
    local function listed(turn)
      client:checks("own", {}, session("s", { turn = turn }))
      return #client:asks("toolgate/tools", { _meta = session("s", { turn = turn }) }).tools
    end
    assert.equal(0, listed(1))
    assert.equal("unknown_tool", client:checks("own", {}, session("s", { turn = 1 })).error_class)
    assert.equal(1, listed(2))
    assert.equal("pass", client:checks("own", {}, session("s", { turn = 2 })).verdict)
  end)

  it("and a report of a tool that is hidden meanwhile is judged all the same", function()
    local client = daemon.start { tools = require("fixtures").agent_tools, policies = { ["get_weather.lua"] = [==[
-- get_weather: for specs. Run by the agent.
return tool "get_weather" { effects = "read", prepare = function(def, call) if call.no_progress == 0 then return def end end }
]==] } }:connect()
    local meta = session("s", { turn = 1 })
    local checked = client:checks("get_weather", { city = "Bern" }, meta)
    client:calls("no_such_tool", {}, meta)
    assert.equal("unknown_tool", client:checks("get_weather", { city = "Bern" }, meta).error_class)
    local said = client:asks("toolgate/report", { callId = checked.callId, name = "get_weather",
                                                  arguments = { city = "Bern" }, result = "grey", _meta = meta })
    assert.equal("pass", said.verdict)
  end)
end)

describe("in a fleet, a tool that another daemon's call has hidden", function()
  it("does not run, though this daemon still knows the session as it was", function()
    local config = ("return { ledger = { redis = 'unix:%s', timeout_ms = 5000 } }"):format(redis.start().socket)
    local a = daemon.start { policies = policies "not call.facts.locked", config = config }:connect()
    local b = daemon.start { policies = policies "not call.facts.locked", config = config }:connect()
    local function says(client, tool, arguments)
      return client_of.verdict(client:calls(tool, arguments, session("s", { turn = 1 })))
    end
    assert.equal("pass", says(a, "shown", {}).verdict)
    assert.equal("pass", says(b, "learn", { locked = true }).verdict)
    assert.equal("unknown_tool", says(a, "shown", {}).error_class)
    assert.equal("pass", says(b, "learn", { locked = false }).verdict)
    assert.equal("pass", says(a, "shown", {}).verdict)
    for i = 1, 20 do -- each daemon hears of the other's changes last
      local here, there = i % 2 == 0 and a or b, i % 2 == 0 and b or a
      local locked = i % 3 == 0
      says(here, "learn", { locked = locked })
      local said = client_of.verdict(there:calls("shown", {}, session("s", { turn = 1 + i })))
      assert.equal(locked and "unknown_tool" or "ok", said.error_class, i)
    end
  end)
end)
