-- Aliases: a call by the old name of a renamed tool is a call of that tool.

local NEW = [[
-- get_events: events. Read only.
return tool "get_events" {
  description = "Read events.", effects = "read", aliases = { "get_event", "events.read" },
  schema = params { ids = list(str) },
  run = function(args) return { count = #args.ids } end,
}
]]

local RUN_BY_THE_AGENT = [[
-- book: books. Writes.
return tool "book" { aliases = { "reserve" }, retry = { same_call = 1 }, schema = params { what = str } }
]]

describe("an alias", function()
  local function gate(policies) return daemon.start { policies = policies } end

  it("runs the tool, and the result gives the present name", function()
    local client = gate({ ["get_events.lua"] = NEW }):connect()
    local result = client:calls("get_event", { ids = { "e1", "e2" } })
    assert.is_not_true(result.isError)
    golden.check("feedback", "alias: result of a call by the old name", client_of.text(result))
    golden.check("feedback", "alias: result of a call by an older name", client_of.text(client:calls("events.read", {})))
    golden.check("feedback", "alias: result of a call by the present name",
                 client_of.text(client:calls("get_events", { ids = { "e1" } })))
  end)

  it("is not listed", function()
    local tools = gate({ ["get_events.lua"] = NEW }):connect():asks("tools/list").tools
    assert.equal(1, #tools)
    assert.equal("get_events", tools[1].name)
  end)

  it("shares budgets with the tool, and check names the tool to run", function()
    local client = gate({ ["book.lua"] = RUN_BY_THE_AGENT }):connect()
    local meta = client_of.session("s", { turn = 1 })
    local checked = client:checks("reserve", { what = "a table" }, meta)
    assert.equal("pass", checked.verdict)
    assert.equal("book", checked.tool)
    client:asks("toolgate/report", { name = "reserve", callId = checked.callId, arguments = { what = "a table" },
                                     result = { ok = true }, _meta = meta })
    local again = client:checks("book", { what = "a table" }, meta)
    assert.equal("same_call", again.code)
    assert.is_nil(again.tool)
  end)

  it("that is also a tool's name or another alias is a load error", function()
    local words, code = daemon.fails { policies = { ["a.lua"] = NEW,
                                                    ["b.lua"] = 'return tool "get_event" { schema = params {} }' } }
    assert.equal(1, code)
    golden.check("load", "alias: is the name of another tool", words)
    words, code = daemon.fails { policies = { ["a.lua"] = NEW,
                                              ["b.lua"] = 'return tool "x" { schema = params {}, aliases = { "get_event" } }' } }
    assert.equal(1, code)
    golden.check("load", "alias: is an alias of another tool", words)
  end)
end)
