-- A report needs nothing but the callId of its check, on any connection and any daemon.

-- Its result hook tells which arguments it was given.
local SHOWS = [==[
-- shows: for specs.
return tool "shows" {
  description = "For specs.", effects = "read",
  schema = params { text = optional(str "Any"), n = optional(int "Any") },
  result = function(result, call)
    return ok { facts = { known = call.args ~= nil, n = call.args and call.args.n } }
  end,
}
]==]

describe("a report with nothing but its callId", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["shows.lua"] = SHOWS, ["echo.lua"] = fixtures.echo },
                                 tools = fixtures.agent_tools }
  end)

  local function report(checked, over)
    return (over or client):asks("toolgate/report", { callId = checked.callId, result = { sky = "grey" } })
  end

  it("is counted in the session of the check, also over another connection", function()
    for i = 1, 3 do
      local checked = client:checks("get_weather", { city = "Bern" }, session("s", { turn = 1 }))
      assert.equal(i == 3 and "loop" or "ok", checked.error_class)
      if i < 3 then assert.equal("pass", report(checked, gate:connect()).verdict) end
    end
  end)

  it("is counted in the anonymous session of the check's connection", function()
    local repeats
    for _ = 1, 3 do repeats = report(client:checks("get_weather", { city = "Bern" }), gate:connect()).repeats end
    assert.equal(3, repeats)
  end)

  it("shows the result hook the arguments of the check, as normalised", function()
    local checked = client:checks("shows", { n = "3" }, session "s")
    assert.same({ known = true, n = 3 }, report(checked).facts)
  end)

  it("shows it the arguments however much another agent calls before the report", function()
    local checked = client:checks("shows", { n = 3 }, session "s")
    for i = 1, 60 do client:checks("get_weather", { city = "city " .. i }, session("s", { agent = "other" })) end
    assert.same({ known = true, n = 3 }, report(checked).facts)
  end)

  it("shows it no arguments if they were longer than the ledger keeps", function()
    local checked = client:checks("shows", { text = ("x"):rep(2048) }, session "s")
    assert.same({ known = false }, report(checked).facts)
    checked = client:checks("shows", { text = ("y"):rep(2048), n = 4 }, session "s")
    local said = client:asks("toolgate/report", { callId = checked.callId, arguments = { n = 4 }, result = "grey" })
    assert.same({ known = true, n = 4 }, said.facts)
  end)

  it("of a call that is no longer known must repeat name and arguments", function()
    local checked = client:checks("get_weather", { city = "Bern" }, session "s")
    for i = 1, 170 do client:calls("echo", { text = "n" .. i }, session "s") end
    local said = report(checked)
    assert.same({ "unknown_tool", "call_forgotten" }, { said.error_class, said.code })
    said = client:asks("toolgate/report", { callId = checked.callId, name = "get_weather",
                                            arguments = { city = "Bern" }, result = "grey" })
    assert.equal("pass", said.verdict)
  end)

  it("is counted once, however often it is sent", function()
    local checked = client:checks("get_weather", { city = "Bern" }, session("s", { turn = 1 }))
    for _ = 1, 4 do report(checked) end
    assert.equal("pass", client:checks("get_weather", { city = "Bern" }, session("s", { turn = 1 })).verdict)
  end)

  it("is known after a restart by its key, though the memory of the call is gone", function()
    local socket = process.directory() .. "/s"
    local function start()
      return daemon.start { policies = { ["echo.lua"] = fixtures.echo }, tools = fixtures.agent_tools, socket = socket }
    end
    local first = start()
    local checked = first:connect():checks("get_weather", { city = "Bern" }, session "s")
    first:stop()
    assert.equal("call_forgotten", report(checked, start():connect()).code)
  end)
end)
