-- The file watch: changed, renamed, linked and removed files are loaded without a reload command.

local CHANGED = { jsonrpc = "2.0", method = "notifications/tools/list_changed" }

local function sh(format, ...)
  assert.equal(0, os.execute(format:format(...)))
end

local function named(name)
  return (fixtures.echo:gsub("echo", name))
end

describe("a watched folder", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
    client:asks "tools/list" -- a client that has listed gets list_changed
  end)

  local function names() return (client:tools()) end

  it("serves a new file, and notifies clients of both protocol eras", function()
    local modern = gate:connect()
    modern:say { jsonrpc = "2.0", id = "s", method = "subscriptions/listen",
                 params = { _meta = client_of.modern(), notifications = { toolsListChanged = true } } }
    assert.equal("notifications/subscriptions/acknowledged", modern:hears().method)
    gate:write_policy("second.lua", named "second")
    assert.same(CHANGED, client:hears())
    assert.equal("notifications/tools/list_changed", modern:hears().method)
    assert.same({ "echo", "second" }, names())
    assert.truthy(gate:logs(" reload_done "):find("cause=files", 1, true))
  end)

  it("serves a file that an editor renamed over the old one", function()
    process.write(gate.policies .. "/.echo.lua.new", named "louder")
    assert(os.rename(gate.policies .. "/.echo.lua.new", gate.policies .. "/echo.lua"))
    assert.same(CHANGED, client:hears())
    assert.same({ "louder" }, names())
  end)

  it("drops a deleted file", function()
    gate:write_policy("second.lua", named "second")
    assert.same(CHANGED, client:hears())
    os.remove(gate.policies .. "/echo.lua")
    assert.same(CHANGED, client:hears())
    assert.same({ "second" }, names())
  end)

  it("survives the folder's removal, and serves the folder once it exists again", function()
    sh("mv '%s' '%s.away'", gate.policies, gate.policies) -- rm -r would leave it empty for a moment
    golden.check("load", "reload: the folder is gone", gate:logs(" generation_error "))
    assert.same({ "echo" }, names())
    sh("mkdir '%s'", gate.policies)
    gate:write_policy("back.lua", named "back")
    process.eventually("the folder is served", function() return names()[1] == "back" end) -- it may be served empty before
  end)

  it("logs reload_unchanged for a touched file, and keeps the generation", function()
    local before = client:asks("toolgate/status").generation
    sh("touch '%s/echo.lua'", gate.policies)
    gate:logs " reload_unchanged "
    assert.same(before, client:asks("toolgate/status").generation)
  end)

  it("keeps the old generation if a file is broken, reports the error, and loads the fixed file", function()
    local before = client:asks("toolgate/status").generation
    gate:write_policy("echo.lua", "return tool 'echo' {")
    assert.truthy(gate:logs(" generation_error "):find("echo.lua:1", 1, true))
    gate:logs " reload_failed "
    assert.same(before, client:asks("toolgate/status").generation)
    assert.same({ "echo" }, names())
    local told = client:asks("toolgate/status").reload
    assert.is_false(told.ok)
    assert.truthy(told.errors:find("echo.lua:1", 1, true), told.errors)
    assert.is_not_true(client:calls("echo", { text = "x" }).isError)
    gate:write_policy("echo.lua", named "fixed")
    assert.same(CHANGED, client:hears())
    assert.is_true(client:asks("toolgate/status").reload.ok)
  end)

  it("includes the files that its policies read", function()
    gate:write_policy("shape.json", '{"type":"object","properties":{"a":{"type":"string"}}}')
    gate:write_policy("echo.lua", [[return tool "echo" { schema = json "shape.json", run = function() end }]])
    assert.same(CHANGED, client:hears())
    gate:write_policy("shape.json", '{"type":"object","properties":{"b":{"type":"string"}}}')
    assert.same(CHANGED, client:hears())
    assert.is_table(client:asks("tools/list").tools[1].inputSchema.properties.b)
  end)
end)

describe("files behind links", function()
  local directory
  before_each(function() directory = process.directory() end)

  local function version(name, tool)
    sh("mkdir -p '%s/%s'", directory, name)
    process.write(("%s/%s/echo.lua"):format(directory, name), named(tool))
  end

  local function turn(link, to)
    sh("ln -s '%s' '%s/new' && mv -T '%s/new' '%s/%s'", to, directory, directory, directory, link)
  end

  local function listening(policies)
    local client = daemon.start { policies = policies }:connect()
    assert.equal("one", client:asks("tools/list").tools[1].name)
    return client
  end

  it("are reloaded when the folder's link changes", function()
    version("v1", "one")
    version("v2", "two")
    turn("policies", "v1")
    local client = listening(directory .. "/policies")
    turn("policies", "v2")
    assert.same(CHANGED, client:hears())
    assert.equal("two", client:asks("tools/list").tools[1].name)
    process.write(directory .. "/v2/echo.lua", named "three") -- the new target is watched
    assert.same(CHANGED, client:hears())
  end)

  it("are reloaded when a Kubernetes mount swaps its content", function()
    version("..v1", "one")
    version("..v2", "two")
    turn("..data", "..v1")
    turn("echo.lua", "..data/echo.lua")
    local client = listening(directory)
    turn("..data", "..v2")
    assert.same(CHANGED, client:hears())
    assert.equal("two", client:asks("tools/list").tools[1].name)
  end)
end)

describe("other watched files", function()
  local definition = '[{"name":"far","description":"%s","inputSchema":{"type":"object"}}]'

  it("include files of tool definitions", function()
    local gate, client = daemon.open { tools = definition:format "once" }
    process.write(gate.directory .. "/tools.json", definition:format "twice")
    assert.truthy(gate:logs(" reload_done "):find("cause=files", 1, true))
    assert.truthy(client:asks("toolgate/tools", { format = "mcp" }).tools[1].description:find("twice", 1, true))
  end)

  it("include the configuration, and the folders it names after a change", function()
    local empty = process.directory()
    local gate, client = daemon.open { policies = false, config = ("return { policies = '%s' }"):format(empty) }
    assert.is_nil(next(client:asks("tools/list").tools))
    sh("mkdir '%s/elsewhere'", gate.directory)
    process.write(gate.directory .. "/toolgate.lua", [[return { policies = "elsewhere" }]])
    gate:logs " reload_done "
    process.write(gate.directory .. "/elsewhere/echo.lua", fixtures.echo)
    assert.same(CHANGED, client:hears())
    assert.equal("echo", client:asks("tools/list").tools[1].name)
  end)

  local function watches(gate)
    local open = io.popen(("ls -l /proc/%d/fd"):format(gate.child.pid)):read "*a"
    return open:find("inotify", 1, true) ~= nil
  end

  it("are none with watching disabled", function()
    assert.is_true(watches(daemon.start {}))
    assert.is_false(watches(daemon.start { arguments = { "--no-watch" } }))
    local gate = daemon.start { config = "return { watch = false }" }
    assert.is_false(watches(gate))
    process.write(gate.directory .. "/toolgate.lua", "return { watch = true }")
    gate:reload()
    assert.is_true(watches(gate))
  end)
end)
