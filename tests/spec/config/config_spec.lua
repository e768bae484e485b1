-- toolgate serve: the configuration file and the tool definitions, and the errors in them.

describe("the configuration", function()
  local function refused(key, config, ...)
    local words, code = daemon.fails { config = config }
    assert.not_equal(0, code)
    for _, wanted in ipairs { ... } do assert.truthy(words:find(wanted, 1, true), words) end
    golden.check("load", "configuration: " .. key, words)
  end

  it("is optional", function()
    local directory = process.directory()
    local gate = daemon.start { policies = false, no_socket = true, socket = directory .. "/toolgate/toolgate.sock",
                                environment = { XDG_RUNTIME_DIR = directory, XDG_STATE_HOME = directory .. "/its/state" } }
    assert.is_true(gate:connect():hears_only_a_ping())
    assert.truthy(process.read(directory .. "/its/state/toolgate/call-ids.key"))
    gate:stop()
  end)

  it("with an unknown key is an error that suggests the closest", function()
    refused("an unknown key", "return { sockte = '/tmp/x' }", "sockte", "socket", "toolgate.lua")
    refused("an unknown key of a table", "return { limits = { mesage = 5 } }", "mesage", "message")
  end)
  it("with a wrong type is an error with expected and got", function()
    refused("a wrong type", "return { limits = { depth = 'deep' } }", "limits.depth", "deep")
  end)
  it("with a syntax error is an error with file and line", function()
    refused("a syntax error", "return {\n socket = \n}", "toolgate.lua:3")
  end)
  it("with several errors names the line of each, not of a comment or of another table", function()
    local words = daemon.fails { config = [[
-- limits: memory = 1 is far too small
return {
  defaults = { loop = { repeats = 3 } },
  limits = {
    -- depth = 3
    ["depth"] = 2000,
    memory = "x",
  },
  turn_idle_s = -1,
}
]] }
    assert.truthy(words:find("toolgate.lua:6: limits.depth", 1, true), words)
    assert.truthy(words:find("toolgate.lua:7: limits.memory", 1, true), words)
    assert.truthy(words:find("toolgate.lua:9: turn_idle_s", 1, true), words)
  end)
  it("with a key given twice is an error, as only the second would count", function()
    local words = daemon.fails { config = [[
return {
  allow  = { { users = { 0 }, tools = { "get_*" } } },
  limits = { depth = 10, ["depth"] = 20 },
  allow  = { { tools = { "*" } } },
}
]] }
    assert.truthy(words:find("toolgate.lua:3: 'depth' is given twice in one table, first on line 3", 1, true), words)
    assert.truthy(words:find("toolgate.lua:4: 'allow' is given twice in one table, first on line 2", 1, true), words)
  end)
  it("with a name to exclude in a list of what is allowed is an error: nothing is taken back", function()
    local words = daemon.fails { config = [[
return {
  allow = { { tools = { "*", "!delete_*" } } },
  upstreams = { a = { command = "sh", tools = { "*", "!drop" } } },
}
]] }
    assert.truthy(words:find("toolgate.lua:2: allow[1].tools: '!delete_*' excludes nothing", 1, true), words)
    assert.truthy(words:find("toolgate.lua:3: upstreams.a.tools: '!drop' excludes nothing", 1, true), words)
  end)
  it("with keys that do nothing beside the others starts with a warning for each", function()
    local token = process.directory() .. "/token"
    process.write(token, ("x"):rep(20))
    os.execute("chmod 600 '" .. token .. "'")
    for config, wanted in pairs {
      ['ledger = { on_outage = "closed" }'] = ":1: ledger.on_outage has no effect without ledger.redis",
      [('metrics = { listen = "unix:metrics.sock", token_file = %q }'):format(token)] =
        "metrics.token_file has no effect as nothing asks for it",
      ['spawner = "/nowhere"'] = "spawner has no effect without an upstream that has spawned = true",
      ['decisions = { arguments = "full", mask = { "ssn" } }'] = 'decisions.mask has no effect beside arguments = "full"',
      ["session_limits = { cost_per_turn = 5 }"] = "session_limits: no policy declares a cost, so that no call is refused",
      ["limits = { in_flight = 100, in_flight_all = 10 }"] = "limits.in_flight has no effect beyond limits.in_flight_all",
      ["defaults = { loop = { repeats = 8, halt = 9 } }"] = "defaults.loop.repeats has no effect without defaults.retry",
    } do
      local gate = daemon.start { config = "return { " .. config .. " }",
                                  policies = { ["echo.lua"] = fixtures.echo } }
      local warnings = table.concat(gate:status().generation.warnings, "\n")
      assert.truthy(warnings:find(wanted, 1, true), config .. ": " .. warnings)
    end
  end)
  it("of which nothing would be tried again is an error, in the defaults and in a policy", function()
    local words = daemon.fails { config = 'return { defaults = { retry = { again = { backoff = "10s" } } } }' }
    assert.truthy(words:find("defaults.retry.again: the pause before the second try (backoff, 10 s) is longer", 1, true), words)
    words = daemon.fails { policies = { ["echo.lua"] = (fixtures.echo:gsub("effects =",
      'retry = { again = { within = "100ms" } }, effects =')) } }
    assert.truthy(words:find("'retry.again': the pause before the second try (backoff, 0.2 s)", 1, true), words)
  end)
  it("names the form of a Redis address that lacks its scheme", function()
    local words = daemon.fails { arguments = { "--redis", "localhost:6379" } }
    assert.truthy(words:find("a host needs redis:// before it", 1, true), words)
  end)
  it("that returns no table is an error", function()
    refused("the file returns no table", "return 5", "toolgate.lua")
  end)
  it("needs an address for metrics", function()
    refused("metrics need an address", "return { metrics = { listen = 'x' } }", "metrics")
  end)

  it("with require_descriptions rejects a tool and a parameter without a description", function()
    local function refused_policy(key, policy)
      local words, code = daemon.fails { config = "return { require_descriptions = true }", policies = { ["t.lua"] = policy } }
      assert.equal(1, code)
      golden.check("load", "require_descriptions: " .. key, words)
    end
    refused_policy("a tool without one", 'return tool "t" { schema = params { a = str "A" } }')
    refused_policy("parameters without one",
                   'return tool "t" { description = "T", schema = params { a = str, b = str "B", c = optional(int) } }')
    daemon.start { config = "return { require_descriptions = true }",
                   policies = { ["t.lua"] = 'return tool "t" { description = "T", schema = params { a = str "A" } }' } }
  end)

  it("is checked by serve --check, examples included, without serving", function()
    local directory = process.directory()
    process.write(directory .. "/echo.lua", fixtures.echo)
    local code, out, err = process.run { daemon.binary, "serve", "--check", "--policies", directory }
    assert.equal(0, code, out .. err)
    process.write(directory .. "/echo.lua", (fixtures.echo:gsub("effects", [[examples = { { "wrong",
      args = { text = "x" }, gives = "refuse" } }, effects]])))
    code, out, err = process.run { daemon.binary, "serve", "--check", "--policies", directory }
    assert.not_equal(0, code)
    assert.truthy((out .. err):find("wrong", 1, true), out .. err)
  end)

  it("accepts tool definitions as an array or as a tools/list result", function()
    for _, tools in ipairs { fixtures.agent_tools, '{"tools":' .. fixtures.agent_tools .. "}" } do
      local client = daemon.start { tools = tools }:connect()
      assert.equal("pass", client:checks("get_weather", { city = "Bern" }).verdict)
    end
  end)

  it("skips an invalid tool definition with a warning, and serves the rest", function()
    local gate, client = daemon.open { tools = [==[[
      {"name":"good","inputSchema":{"type":"object"}},
      {"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"strang"}}}}]]==] }
    assert.equal("pass", client:asks("toolgate/check", { name = "good" }).verdict)
    local _, status = client:asks "toolgate/status"
    assert.truthy((gate:log() .. status):find("bad", 1, true), gate:log() .. status)
  end)

  it("accepts a definition without a schema as any object, and skips a schema that is not of an object", function()
    local client = daemon.start { tools = [==[[{"name":"bare"},{"name":"texts","inputSchema":{"type":"string"}}]]==] }:connect()
    assert.equal("pass", client:asks("toolgate/check", { name = "bare", arguments = { a = 1 } }).verdict)
    assert.equal("unknown_tool", client:asks("toolgate/check", { name = "texts" }).error_class)
    local warnings = client:asks("toolgate/status").generation.warnings
    assert.equal(2, #warnings)
    golden.check("load", "tool definitions: a schema is missing, and one is of a string", table.concat(warnings, "\n"))
  end)

  it("with a tools file that is not JSON is an error with file and line", function()
    local words, code = daemon.fails { tools = '[\n{"name":}]' }
    assert.not_equal(0, code)
    assert.truthy(words:find("tools.json:2", 1, true), words)
    golden.check("load", "tool definitions: the file is not JSON", words)
  end)

  it("sets the default repair budget", function()
    local client = daemon.start { policies = { ["create_task.lua"] = fixtures.create_task },
                                  config = "return { defaults = { retry = { repair = 1 } } }" }:connect()
    local meta = require("client").session "s"
    local verdict = require("client").verdict
    assert.equal("repair", verdict(client:calls("create_task", { name = "a" }, meta)).verdict)
    assert.equal("refuse", verdict(client:calls("create_task", { name = "b" }, meta)).verdict)
  end)
end)
