-- Coverage that a judge in the agent's program found: reported beside a result, kept in the session.

describe("coverage in a report", function()
  local client
  before_each(function()
    client = daemon.start { policies = {
      ["find.lua"] = [==[
-- find: finds. Run by the agent. For specs.
return tool "find" { description = "Finds.", effects = "read", schema = params { n = int "Which" } }
]==], ["last.lua"] = [==[
-- last: what the judge said. For specs.
return tool "last" { description = "The last judgement.", effects = "read", schema = params {},
  check = function(args, call) return refuse("judged", tostring(call.facts.coverage)) end,
  run = function() return {} end }
]==] } }:connect()
  end)

  local function report(params)
    params.callId = client:checks("find", { n = 1 }, session("s", { turn = 1 })).callId
    params.result = params.result or { hits = 1 }
    return client:ask("toolgate/report", params)
  end

  it("is in the verdict, in the session, and in what hooks see", function()
    local said = report { coverage = "NEEDS_MORE_TOOLS", facts = { city = "Rome" },
                          follow_up = { tool = "last", args = {} } }.result
    assert.same({ "ok", "NEEDS_MORE_TOOLS" }, { said.error_class, said.coverage })
    assert.equal("last", said.follow_up.tool)
    assert.same({ city = "Rome", coverage = "NEEDS_MORE_TOOLS" },
                client:asks("toolgate/session", { session = "s" }).facts)
    assert.equal("NEEDS_MORE_TOOLS", client_of.verdict(client:calls("last", {}, session("s", { turn = 1 }))).detail)
  end)

  it("may be the judge's answer as it is, and the last one counts", function()
    report { coverage = "FAILED" }
    report { coverage = { coverage = "SATISFIED", facts = { city = "Rome" } } }
    assert.same({ city = "Rome", coverage = "SATISFIED" }, client:asks("toolgate/session", { session = "s" }).facts)
  end)

  it("may have a question, which the model is told to put to the user", function()
    local said = report { coverage = { coverage = "NEED_USER_INPUT", question = "Which Springfield?" } }.result
    assert.same({ "ok", "NEED_USER_INPUT", "Ask the user: Which Springfield?" }, { said.error_class, said.coverage, said.hint })
    assert.truthy(said.advice:find("Ask the user: Which Springfield?", 1, true), said.advice)
    assert.truthy(said.content[2].text:find("Ask the user: Which Springfield?", 1, true))
  end)

  it("that is garbage is an error in words, and counts nothing", function()
    for _, wrong in ipairs { { coverage = "DONE" }, { coverage = 3 }, { coverage = {} }, { facts = { a = 1 } },
                             { coverage = "FAILED", facts = "x" }, { question = "Which?" },
                             { coverage = "FAILED", question = 3 }, { coverage = "FAILED", follow_up = { tool = "x" } } } do
      local answer = report(wrong)
      assert.equal(-32602, answer.error and answer.error.code)
      assert.truthy(answer.error.message:find("expected", 1, true))
    end
  end)
end)
