-- Repair chains: attempts that make progress, chains named by the model's own id of the call, and the end of a
-- conversation.
local redis = require "redis"

local FORM = [==[
-- form: for specs.
return tool "form" {
  description = "For specs.", effects = "write",
  schema = params { a = int "A", b = int "B", c = int "C", d = optional(object({ e = int "E", f = int "F" }, "D")) },
  run = function() return { done = true } end,
}
]==]

describe("a repair chain", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["form.lua"] = FORM } }
  end)

  -- The attempt and how many are left, or the code of the refusal.
  local function tries(arguments, meta)
    local said = verdict(client:calls("form", arguments, session("s", meta or { turn = 1 })))
    if said.verdict == "repair" then return said.attempt .. "/" .. said.attempts_left end
    return said.code or said.verdict
  end

  it("spends nothing on an attempt that leaves fewer problems", function()
    assert.equal("1/2", tries { a = "x", b = "x", c = "x" })
    assert.equal("1/2", tries { a = 1, b = "x", c = "x" })
    assert.equal("1/2", tries { a = 1, b = 2, c = "x" })
    assert.equal("pass", tries { a = 1, b = 2, c = 3 })
  end)

  it("spends nothing on an attempt whose problems lie within the last ones", function()
    assert.equal("1/2", tries { a = 1, b = 2, c = 3, d = "x" })
    assert.equal("1/2", tries { a = 1, b = 2, c = 3, d = { e = 1 } })
    assert.equal("pass", tries { a = 1, b = 2, c = 3, d = { e = 1, f = 2 } })
  end)

  it("spends an attempt on a new problem, and on the same ones again", function()
    assert.equal("1/2", tries { a = "x", b = 2, c = 3 })
    assert.equal("2/1", tries { a = 1, b = "x", c = 3 })
    assert.equal("retry_budget_exceeded", tries { a = 1, b = "y", c = 3 })
  end)

  it("goes on under a new dev.toolgate/call, and calls of one step have chains side by side", function()
    local function call(name, step) return { turn = 1, call = name, step = step } end
    assert.equal("1/2", tries({ a = "x", b = 2, c = 3 }, call("toolu_1", "m1")))
    assert.equal("1/2", tries({ a = 1, b = "x", c = 3 }, call("toolu_2", "m1")))
    assert.equal("2/1", tries({ a = "y", b = 2, c = 3 }, call("toolu_3", "m2")))
    assert.equal("2/1", tries({ a = 1, b = "y", c = 3 }, call("toolu_4", "m2")))
    assert.equal("retry_budget_exceeded", tries({ a = "z", b = 2, c = 3 }, call("toolu_5", "m3")))
  end)

  it("that is open ends as llm_gave_up with the conversation, and no turn begins", function()
    assert.equal("1/2", tries { a = "x", b = 2, c = 3 })
    local said = client:asks("toolgate/turn", { ["end"] = true, _meta = session "s" })
    assert.same({ turn = 1, gaveUp = 1 }, said)
    assert.truthy(gate:log():find "validation_retry_outcome tool=form ext=%- outcome=llm_gave_up retry_count=0")
    assert.equal(0, client:asks("toolgate/turn", { ["end"] = true, _meta = session "s" }).gaveUp)
    assert.equal(-32602, client:ask("toolgate/turn", { ["end"] = "yes", _meta = session "s" }).error.code)
  end)

  -- In memory the ledger lets go of sessions whose time is over while it serves others; in Redis they go by themselves.
  local function gives_up_with_its_session(words, serve_another)
    gate = daemon.start { policies = { ["form.lua"] = FORM }, config = ("return { ledger = { ttl_s = 1, %s } }"):format(words) }
    client = gate:connect()
    client:calls("form", { a = "x" }, session("s", { turn = 1, ext = "ticket-7" }))
    process.eventually("the chain is given up", function()
      if serve_another then client:calls("form", { a = 1, b = 2, c = 3 }, session "another") end
      return gate:log():find("outcome=llm_gave_up", 1, true)
    end)
    assert.truthy(gate:logs("validation_retry_outcome"):find("tool=form ext=ticket-7 outcome=llm_gave_up retry_count=0", 1, true))
  end

  it("that is open ends as llm_gave_up with its session's time to live, in memory", function()
    gives_up_with_its_session("", true)
  end)

  it("that is open ends as llm_gave_up with its session's time to live, in Redis", function()
    local store = redis.start()
    finally(redis.stop_all)
    gives_up_with_its_session(("redis = '%s'"):format(store:url()))
  end)
end)
