-- tools/list depends on the user's goal and on the session's progress, on every connection of a session.
local redis = require "redis"

local gateway = [==[
-- gateway: shows what the goal speaks of. For specs.
return gateway {
  prepare_tools = function(defs, call)
    if not call.goal or call.goal == "" then return defs end
    local shown = {}
    for _, def in ipairs(defs) do
      if def.name == "outcome" or call.goal:find(def.name, 1, true) then
        def.description = "For: " .. call.goal
        shown[#shown + 1] = def
      end
    end
    return shown
  end,
}
]==]

local hidden_for_good = [==[
-- secret: always hidden by its own policy.
return tool "secret" { description = "Hidden.", schema = params { n = int "Which" },
  prepare = function(def, call) return nil end, run = function() return {} end }
]==]

describe("a list of tools", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                                              ["gateway.lua"] = gateway, ["secret.lua"] = hidden_for_good } }
  end)

  local function listed(by, meta)
    local names, words = {}, {}
    for _, def in ipairs((by or client):asks("tools/list", { _meta = meta or session "s" }).tools) do
      names[#names + 1], words[def.name] = def.name, def.description
    end
    return names, words
  end

  local function turns(goal)
    client:asks("toolgate/turn", { goal = goal, _meta = session "s" })
  end

  local function gets_nowhere(times)
    for i = 1, times do
      assert.is_true(client:calls("outcome", { how = "failed", n = i }, session "s").isError)
    end
  end

  it("follows the goal of the turn, on every connection", function()
    assert.same({ "echo", "outcome" }, (listed()))
    turns "what is new?"
    assert.same({ "outcome" }, (listed()))
    local names, words = listed(gate:connect())
    assert.same({ "outcome" }, names)
    assert.equal("For: what is new?", words.outcome)
  end)

  it("prefers the goal of the request over the turn's", function()
    turns "what is new?"
    assert.same({ "echo", "outcome" }, (listed(nil, session("s", { goal = "echo it" }))))
  end)

  it("decides what can be called: a tool that the goal hides is unknown", function()
    turns "what is new?"
    assert.equal("unknown_tool", verdict(client:calls("echo", { text = "a" }, session "s")).error_class)
    turns "echo what I say"
    assert.is_not_true(client:calls("echo", { text = "a" }, session "s").isError)
  end)

  it("is the same for an agent that runs its own tools", function()
    turns "what is new?"
    local names = {}
    for _, def in ipairs(client:asks("toolgate/tools", { _meta = session "s" }).tools) do names[#names + 1] = def.name end
    assert.same({ "outcome" }, names)
    assert.equal("unknown_tool", client:checks("echo", { text = "a" }, session "s").error_class)
  end)

  it("widens after six calls without progress, to what the policies allow", function()
    turns "what is new?"
    gets_nowhere(5)
    assert.same({ "outcome" }, (listed()))
    gets_nowhere(1)
    local names, words = listed()
    assert.same({ "echo", "outcome" }, names)
    assert.equal("For: what is new?", words.outcome) -- rewording stays
    assert.is_not_true(client:calls("echo", { text = "a" }, session "s").isError)
    assert.equal("unknown_tool", verdict(client:calls("secret", { n = 1 }, session "s")).error_class)
  end)

  it("stays wide until the next turn", function()
    turns "what is new?"
    gets_nowhere(6)
    for i = 1, 3 do
      local result = client:calls("echo", { text = "a" .. i }, session "s")
      assert.is_not_true(result.isError, text(result))
    end
    turns "what else is new?"
    assert.same({ "outcome" }, (listed()))
  end)

  it("sends list_changed when a turn begins, and when it widens", function()
    listed() -- a client that has listed gets list_changed
    turns "what is new?"
    gets_nowhere(5)
    client:hears_notice "notifications/tools/list_changed"
    assert.equal(1, #client.notices)
    gets_nowhere(1)
    client:hears_notice("notifications/tools/list_changed", 2)
    assert.equal(2, #client.notices)
  end)

  it("widens only for its own session", function()
    turns "what is new?"
    gets_nowhere(6)
    client:asks("toolgate/turn", { goal = "what is new?", _meta = session "other" })
    assert.same({ "outcome" }, (listed(nil, session "other")))
  end)

  it("waits for Redis with as many others as limits.in_flight allows, as calls do", function()
    local store = redis.start()
    gate, client = daemon.open { policies = { ["gateway.lua"] = gateway, ["echo.lua"] = fixtures.echo },
                                 config = ("return { ledger = { redis = '%s', timeout_ms = 10000 }, limits = { in_flight = 4 } }")
                                            :format(store:url()) }
    client:asks("tools/list", { _meta = session "s" })
    store:freeze()
    for i = 1, 10 do
      client:say { jsonrpc = "2.0", id = i, method = "tools/list", params = { _meta = session("s" .. i) } }
    end
    for i = 5, 10 do
      local said = client:hears()
      assert.same({ i, "too_many_calls_of_connection" }, { said.id, said.error and said.error.data.name })
    end
    store:thaw()
    for _ = 1, 4 do assert.truthy(client:hears().result) end
    store:stop()
  end)
end)
