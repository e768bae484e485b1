-- toolgate status: what an operator reads first at night, with 3 tools and with 300.

describe("toolgate status", function()
  local gate

  local VARIABLE = { ["%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d"] = "<time>", ["%[%x+%]"] = "[<hash>]",
                     ["%d+ bytes"] = "<n> bytes", ["%d+ accepted"] = "<n> accepted",
                     ["at most %d+"] = "at most <n>", ["%d+ written"] = "<n> written" }

  local function status(...)
    local out = process.runs({ daemon.binary, "status", "--socket", gate.socket, ... })
    return out
  end

  -- Definitions of a client's own tools, and calls of each that are refused as often as its number says.
  local function many_tools(count)
    local tools = {}
    for i = 1, count do
      tools[i] = ('{"name":"tool_%03d","description":"d","inputSchema":{"type":"object",'
        .. '"properties":{"n":{"type":"integer","maximum":999}},"required":["n"]}}'):format(i)
    end
    return "[" .. table.concat(tools, ",") .. "]"
  end

  it("prints what is served, since when, and from where", function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task } }
    local client = gate:connect()
    client:calls("echo", { text = "a" }, session "chat")
    client:calls("create_task", { name = "a" }, session "chat")
    golden.check("cli", "status: a calm daemon", status(), VARIABLE)
  end)

  it("names the files that the daemon loaded, absolute, wherever it was started", function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, tools = many_tools(1),
                          config = "return { defaults = { mode = 'shadow' } }" }
    local told = gate:status()
    assert.equal("serving", told.state)
    assert.equal(gate.directory .. "/policies", told.paths.policies)
    assert.equal("/", told.paths.config:sub(1, 1))
    assert.truthy(process.read(told.paths.config):find("shadow", 1, true))
    assert.equal(1, #told.paths.tools)
    assert.truthy(process.read(told.paths.tools[1]):find("tool_001", 1, true))
    assert.is_true(told.generation.since_ms >= told.started_ms)
  end)

  it("counts the calls of each tool by class", function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task } }
    local client = gate:connect()
    client:calls("echo", { text = "a" }, session "chat")
    client:calls("create_task", { name = "a" }, session "chat")
    local by_tool = {}
    for _, row in ipairs(gate:status().tools) do by_tool[row.tool] = row end
    assert.same({ 1, 0, { ok = 1 } }, { by_tool.echo.calls, by_tool.echo.refused, by_tool.echo.classes })
    assert.same({ 1, 1, { invalid_arguments = 1 } },
                { by_tool.create_task.calls, by_tool.create_task.refused, by_tool.create_task.classes })
  end)

  it("lists the ten tools refused most of 300, and all on request", function()
    gate = daemon.start { policies = {}, tools = many_tools(300) }
    local client = gate:connect()
    for i = 1, 300 do client:checks(("tool_%03d"):format(i), { n = i }, session("chat-" .. i)) end
    for i = 290, 300 do
      for _ = 1, i - 289 do client:checks(("tool_%03d"):format(i), { n = 1000 }, session("chat-" .. i)) end
    end
    local out = status()
    golden.check("cli", "status: 300 tools", out:match "tools:.*", VARIABLE)
    assert.truthy(select(2, out:gsub("\n", "")) < 35, out)
    assert.truthy(select(2, status("--all"):gsub("\n", "")) > 300)
  end)

  it("says that a reload has failed, and what it keeps", function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    gate:write_policy("bad.lua", "return tool 'bad' {")
    process.run { daemon.binary, "reload", "--socket", gate.socket }
    golden.check("cli", "status: after a reload that failed", status():match "reload:.-ledger", VARIABLE)
  end)

  it("replaces control characters in names of tools", function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local client = gate:connect()
    client:asks("toolgate/register", { tools = { { name = "\27[2Jgone", description = "d",
                                                   inputSchema = { type = "object" } } } })
    client:checks("\27[2Jgone", {}, session "chat")
    assert.is_nil(status():find("\27", 1, true))
  end)
end)
