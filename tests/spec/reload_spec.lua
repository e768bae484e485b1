-- SIGHUP: a new generation, or the old one and the reason.
local daemon = require "daemon"
local process = require "process"
local client_of = require "client"
local fixtures = require "fixtures"
local signal = require "posix.signal"
local text = client_of.text

describe("a reload", function()
  local gate, client

  before_each(function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    client = gate:connect()
  end)
  after_each(daemon.stop_all)

  local function names()
    local found = {}
    for i, tool in ipairs(client:ask("tools/list").result.tools) do found[i] = tool.name end
    return found
  end

  it("serves what was added, and tells the clients that the list changed", function()
    client:asks("initialize", { protocolVersion = "2025-11-25", capabilities = {}, clientInfo = { name = "spec" } })
    client:say { jsonrpc = "2.0", method = "notifications/initialized" }
    assert.same({ "echo" }, names())
    gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second")))
    gate:signal(signal.SIGHUP)
    assert.same({ jsonrpc = "2.0", method = "notifications/tools/list_changed" }, client:hears())
    assert.same({ "echo", "second" }, names())
  end)

  it("tells of other words, and another mode, too", function()
    client:asks("tools/list")
    local changed = { jsonrpc = "2.0", method = "notifications/tools/list_changed" }
    local worded = fixtures.echo:gsub("effects", [[use_when = "an echo is wanted", effects]])
    gate:write_policy("echo.lua", worded)
    gate:signal(signal.SIGHUP)
    assert.same(changed, client:hears())
    gate:write_policy("echo.lua", (worded:gsub("effects", [[mode = "shadow", effects]])))
    gate:signal(signal.SIGHUP)
    assert.same(changed, client:hears())
  end)

  it("that changes no list tells nobody", function()
    gate:write_policy("echo.lua", (fixtures.echo:gsub("said = args.text", "said = 'new'")))
    gate:reload()
    assert.is_true(client:hears_only_a_ping())
    assert.truthy(text(client:calls("echo", { text = "x" })):find("new", 1, true))
  end)

  it("with a broken file keeps the old generation, and says which file and why", function()
    local before = client:asks("toolgate/status").generation
    gate:write_policy("broken.lua", "return tool 'x' {")
    gate:reload()
    assert.truthy(gate:log():find("broken.lua:1", 1, true), gate:log())
    assert.same({ "echo" }, names())
    assert.same(before, client:asks("toolgate/status").generation)
    assert.is_not_true(client:calls("echo", { text = "still here" }).isError)
  end)

  it("with a failing example keeps the old generation", function()
    gate:write_policy("echo.lua", (fixtures.echo:gsub("effects", [[examples = { { "wrong", args = { text = "x" },
      gives = "refuse" } }, effects]])))
    gate:reload()
    assert.truthy(gate:log():find("wrong", 1, true), gate:log())
    assert.is_not_true(client:calls("echo", { text = "x" }).isError)
  end)

  it("with one tool twice keeps the old generation, and names both files", function()
    gate:write_policy("other.lua", fixtures.echo)
    gate:reload()
    local log = gate:log()
    assert.truthy(log:find("echo.lua", 1, true) and log:find("other.lua", 1, true), log)
    assert.same({ "echo" }, names())
  end)

  it("remembers: sessions outlive generations", function()
    local meta = client_of.session("s", { turn = 1 })
    client:calls("echo", { text = "same" }, meta)
    client:calls("echo", { text = "same" }, meta)
    gate:write_policy("echo.lua", fixtures.echo .. "\n-- changed\n")
    gate:reload()
    assert.equal("loop", client_of.verdict(client:calls("echo", { text = "same" }, meta)).error_class)
  end)

  it("of hundreds in a row loses no call", function()
    local done = 0
    for round = 1, 100 do
      gate:write_policy("echo.lua", fixtures.echo .. ("\n-- round %d\n"):format(round))
      gate:signal(signal.SIGHUP)
      for i = 1, 5 do
        assert.is_not_true(client:calls("echo", { text = round .. "/" .. i }).isError)
        done = done + 1
      end
    end
    assert.equal(500, done)
  end)
end)

describe("A reload", function()
  after_each(daemon.stop_all)

  it("does not wait for what is no file", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    assert.equal(0, os.execute("mkfifo '" .. gate.policies .. "/fifo.lua'"))
    gate:reload()
    assert.truthy(gate:logs "fifo.lua: expected a file, got a FIFO")
    assert.is_not_true(gate:connect():calls("echo", { text = "x" }).isError)
  end)
end)

describe("SIGTERM", function()
  after_each(daemon.stop_all)

  it("answers what was asked before, closes, and leaves no socket behind", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local client = gate:connect()
    assert.is_true(client:hears_only_a_ping())
    for i = 1, 100 do
      client:say { jsonrpc = "2.0", id = i, method = "tools/call",
                   params = { name = "echo", arguments = { text = "x" } } }
    end
    process.eventually("all were read", function() -- the last one is under way or done: its answer may be on its way
      return client:hears().id == 100
    end)
    gate:signal(signal.SIGTERM)
    assert.same({}, client:hears_the_end())
    assert.same({ "exited", 0 }, { gate.child:wait() })
    assert.is_nil(io.open(gate.socket))
  end)

  it("tells whoever had asked already that nothing was done", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local client = gate:connect()
    assert.is_true(client:hears_only_a_ping())
    local asked = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}\n'
    gate:signal(signal.SIGSTOP)
    client.stream:send(asked:rep(500))
    gate:signal(signal.SIGTERM)
    gate:signal(signal.SIGCONT)
    local heard = client:hears_the_end()
    assert.equal(500, #heard)
    for _, line in ipairs(heard) do
      assert.truthy(line:find('"result"', 1, true) or line:find('"name":"stopping"', 1, true), line)
    end
  end)

  it("is obeyed also where a client never reads", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local deaf = gate:connect()
    deaf.stream:settimeout(0.2)
    for _ = 1, 2000 do
      if not deaf.stream:send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
                              .. '{"text":"' .. ("x"):rep(2000) .. '"}}}\n') then break end
    end
    gate:signal(signal.SIGTERM)
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)

  it("is not needed to take over a socket that a killed daemon left behind", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    gate:signal(signal.SIGKILL)
    gate.child:wait()
    local path = gate.socket
    local kept = process.directory()
    os.rename(path, kept .. "/s")
    local heir = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, socket = kept .. "/s" }
    assert.is_true(heir:connect():hears_only_a_ping())
    heir:stop()
    process.remove(kept)
    gate.stopped = true
    process.remove(gate.directory)
  end)

  it("is not sent by a second daemon: that one says who has the socket", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local words, code = daemon.fails { socket = gate.socket }
    assert.not_equal(0, code)
    assert.truthy(words:find(gate.socket, 1, true), words)
    assert.is_true(gate:connect():hears_only_a_ping())
  end)
end)
