-- The allow list: who may connect, and which tools they see, by the kernel's credentials (SO_PEERCRED).
local unistd = require "posix.unistd"

local OTHER = 65534 -- nobody
local me = unistd.getuid()

-- Sends one line as another user; returns the reply.
local function as_other(socket, line)
  local script = ([[
    local stream = require("socket.unix").stream()
    stream:settimeout(20)
    local ok, why = stream:connect(%q)
    if not ok then print(why) return end
    stream:send(%q .. "\n")
    print(stream:receive "*l" or "closed")
  ]]):format(socket, line)
  local _, out, err = process.run { "setpriv", "--reuid=" .. OTHER, "--regid=" .. OTHER, "--clear-groups",
                                    "luajit", "-e", script }
  assert(out ~= "", err)
  return out
end

local LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
local both = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task }

describe("the allow list", function()
  it("hides a tool from lists, suggestions and errors", function()
    local client = daemon.start { policies = both, config =
      ("return { allow = { { users = { %d }, tools = { 'ec*' } } } }"):format(me) }:connect()
    local tools = client:asks("tools/list").tools
    assert.same({ 1, "echo" }, { #tools, tools[1].name })
    for _, name in ipairs { "create_task", "create_tsk" } do
      local result = client:calls(name, { title = "x" })
      assert.equal("unknown_tool", client_of.verdict(result).error_class)
      assert.is_nil(client_of.text(result):gsub(name, ""):find("create_task", 1, true))
    end
    assert.equal("unknown_tool", client:checks("create_task", { title = "x" }).error_class)
    local _, line = client:asks("toolgate/tools", { format = "mcp" })
    assert.is_nil(line:find("create_task", 1, true))
  end)

  it("hides it from register, from the status and from suggestions", function()
    local client = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["outcome.lua"] = fixtures.outcome,
      ["ecko.lua"] = (fixtures.echo:gsub('"echo"', '"ecko"')) },
      config = ("return { allow = { { users = { %d }, tools = { 'echo', 'mine_*' } } } }"):format(me) }:connect()
    local schema = { type = "object" }
    local said = client:asks("toolgate/register", { tools = { { name = "outcome", inputSchema = schema },
      { name = "nowhere", inputSchema = schema }, { name = "mine_too", inputSchema = schema } } })
    assert.same({ 1, "mine_too", 2 }, { #said.tools, said.tools[1].name, #said.refused })
    assert.equal(said.refused[2].why, (said.refused[1].why:gsub("outcome", "nowhere")))
    local status, line = client:asks "toolgate/status"
    assert.same({ 1, 1 }, { status.generation.tools, status.generation.policies })
    for _, name in ipairs { "outcome", "ecko" } do assert.is_nil(line:find(name, 1, true)) end
    local result = client:calls("echo2", { text = "x" })
    assert.truthy(client_of.text(result):find("'echo'", 1, true), client_of.text(result))
    assert.is_nil(client_of.text(result):find("'ecko'", 1, true))
  end)

  it("removes a registered tool on reload", function()
    local gate, client = daemon.open { policies = both, config =
      ("return { allow = { { users = { %d }, tools = { 'echo', 'mine' } } } }"):format(me) }
    client:asks("toolgate/register", { tools = { { name = "mine", inputSchema = { type = "object" } } } })
    assert.equal("pass", client:checks("mine", {}).verdict)
    client:asks("tools/list")
    process.write(gate.directory .. "/toolgate.lua",
                  ("return { allow = { { users = { %d }, tools = { 'echo' } } } }"):format(me))
    gate:reload()
    assert.equal("notifications/tools/list_changed", client:hears().method)
    assert.equal("unknown_tool", client:checks("mine", {}).error_class)
  end)

  it("filters the history of a session", function()
    local gate, client = daemon.open { policies = both, config = "return {}" }
    local meta = { ["dev.toolgate/session"] = "s" }
    client:asks("tools/call", { name = "create_task", arguments = {}, _meta = meta })
    client:asks("tools/call", { name = "echo", arguments = {}, _meta = meta })
    process.write(gate.directory .. "/toolgate.lua",
                  ("return { allow = { { users = { %d }, tools = { 'echo' } } } }"):format(me))
    gate:reload()
    local session, line = client:asks("toolgate/session", { session = "s" })
    assert.equal("echo", session.history[1].tool)
    assert.is_nil(line:find("create_task", 1, true))
  end)

  it("resets no tool that the user may not call, and does not tell that it exists", function()
    local client = daemon.start { policies = both, config =
      ("return { allow = { { users = { %d }, tools = { 'echo' } } } }"):format(me) }:connect()
    client:asks("tools/call", { name = "echo", arguments = {}, _meta = { ["dev.toolgate/session"] = "s" } })
    local forbidden = client:ask("toolgate/session", { session = "s", reset = "create_task" }).error
    local unknown = client:ask("toolgate/session", { session = "s", reset = "create_tusk" }).error
    assert.equal(unknown.code, forbidden.code)
    assert.equal(unknown.message, (forbidden.message:gsub("task", "tusk")))
  end)

  it("applies in the modern era", function()
    local gate = daemon.start { policies = both, config =
      ("return { allow = { { users = { %d }, tools = { 'echo' } } } }"):format(me) }
    assert.equal(1, #gate:connect():asks("tools/list", { _meta = client_of.modern() }).tools)
  end)

  it("with an unknown user or a bad rule is an error that names it", function()
    local function refused(key, config)
      local words, code = daemon.fails { config = config }
      assert.equal(1, code)
      golden.check("load", "allow: " .. key, words)
    end
    refused("an unknown user", "return { allow = { { users = { 'no-such-user-here' } } } }")
    refused("an unknown key", "return { allow = { { user = { 0 } } } }")
  end)

  if me ~= 0 then
    pending("applies to other users: needs root, to change the user")
    return
  end

  it("rejects users who are not on it", function()
    local gate = daemon.start { policies = both, config =
      "return { socket_mode = '0666', allow = { { users = { 0 } } } }" }
    local heard = as_other(gate.socket, LIST)
    assert.is_nil(heard:find("create_task", 1, true))
    assert.is_nil(heard:find("echo", 1, true))
    assert.equal(2, #gate:connect():asks("tools/list").tools)
  end)

  it("gives each user their own tools", function()
    local gate = daemon.start { policies = both, config = ([[return { socket_mode = "0666", allow = {
      { users = { 0 }, tools = { "*" } }, { users = { %d }, tools = { "create_*" } } } }]]):format(OTHER) }
    local heard = as_other(gate.socket, LIST)
    assert.truthy(heard:find("create_task", 1, true), heard)
    assert.is_nil(heard:find('"echo"', 1, true))
    assert.equal(2, #gate:connect():asks("tools/list").tools)
  end)

  it("accepts groups", function()
    local gate = daemon.start { policies = both, config = [[return { socket_mode = "0666", allow = {
      { groups = { "nogroup" }, tools = { "echo" } } } }]] }
    local heard = as_other(gate.socket, LIST)
    assert.truthy(heard:find('"echo"', 1, true), heard)
  end)

  it("the sessions of different users are separate", function()
    local gate = daemon.start { policies = both, config = "return { socket_mode = '0666' }" }
    local call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_task","arguments":{"a":1},'
                 .. '"_meta":{"dev.toolgate/session":"s"}}}'
    local client = gate:connect()
    client:say_line(call)
    assert.equal(2, client_of.verdict(client:hears().result).attempts_left)
    local heard = client_of.json.decode(as_other(gate.socket, call))
    assert.equal(2, client_of.verdict(heard.result).attempts_left)
  end)

  it("does not matter if the socket's mode denies access", function()
    local gate = daemon.start { policies = both }
    assert.truthy(as_other(gate.socket, LIST):find "[Pp]ermission denied")
  end)

  it("logs a user's refused connections once a second, with their number", function()
    if me ~= 0 then return pending "becoming another user needs root" end
    local gate = daemon.start { policies = both, config =
      ("return { socket_mode = '0666', allow = { { users = { %d } } } }"):format(me) }
    local script = ([[
      for i = 1, 200 do
        local stream = require("socket.unix").stream()
        assert(stream:connect(%q))
        stream:receive "*l"
        stream:close()
      end
    ]]):format(gate.socket)
    process.runs { "setpriv", "--reuid=" .. OTHER, "--regid=" .. OTHER, "--clear-groups",
                   "luajit", "-e", script }
    assert.equal(200, gate:status().connections.refused)
    assert.truthy(select(2, gate:log():gsub("connection_refused", "")) < 20, gate:log())
  end)

  it("keeps some of toolgate's methods for operators, and no others", function()
    local gate = daemon.start { policies = both, config = "return { socket_mode = '0666' }" }
    local client, kept = gate:connect(), {}
    local offered = client:asks("initialize", { protocolVersion = "2025-11-25", capabilities = {},
                                                clientInfo = { name = "spec", version = "1" } })
    for _, method in ipairs(offered.capabilities.experimental["dev.toolgate/gate"].methods) do
      local line = ('{"jsonrpc":"2.0","id":1,"method":"%s"}'):format(method)
      local refused = client_of.json.decode(as_other(gate.socket, line)).error
      if refused and refused.data and refused.data.name == "forbidden" then
        assert.truthy(refused.message:find(method .. " is for the user that runs the daemon", 1, true), refused.message)
        kept[#kept + 1] = method
      end
      local mine = client:ask(method, {}).error
      assert.not_equal("forbidden", mine and mine.data and mine.data.name, method)
    end
    assert.same({ "toolgate/sessions", "toolgate/reload", "toolgate/pins", "toolgate/approvals", "toolgate/approve",
                  "toolgate/deny" }, kept)
  end)

  it("shows a policy's error, which may quote another user's arguments, to the operator alone", function()
    if me ~= 0 then return pending "becoming another user needs root" end
    local gate = daemon.start { policies = { ["echo.lua"] = (fixtures.echo:gsub("run =",
      "check = function(args) error('cannot take ' .. args.text) end, run =")) },
      config = ("return { socket_mode = '0666', allow = { { users = { %d, %d } } } }"):format(me, OTHER) }
    gate:connect():calls("echo", { text = "s3cret" })
    local theirs = as_other(gate.socket, '{"jsonrpc":"2.0","id":1,"method":"toolgate/status"}')
    assert.truthy(theirs:find('"policy_faults":[{"tool":"echo","count":1}]', 1, true), theirs)
    assert.is_nil(theirs:find("s3cret", 1, true))
    assert.truthy(gate:status().policy_faults[1].last:find("s3cret", 1, true))
  end)
end)
