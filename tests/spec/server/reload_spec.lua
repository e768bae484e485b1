-- Reload by SIGHUP and by command, and stop by SIGTERM: a new generation, or the old one and the error.
local signal = require "posix.signal"

describe("a reload", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
  end)

  local function names() return (client:tools()) end

  it("serves an added tool, and sends list_changed", function()
    client:asks("initialize", { protocolVersion = "2025-11-25", capabilities = {}, clientInfo = { name = "spec" } })
    client:say { jsonrpc = "2.0", method = "notifications/initialized" }
    assert.same({ "echo" }, names())
    gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second")))
    gate:signal(signal.SIGHUP)
    assert.same({ jsonrpc = "2.0", method = "notifications/tools/list_changed" }, client:hears())
    assert.same({ "echo", "second" }, names())
  end)

  it("sends list_changed for another description, and for another mode", function()
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

  it("without a change of the list sends no notification", function()
    gate:write_policy("echo.lua", (fixtures.echo:gsub("said = args.text", "said = 'new'")))
    gate:reload()
    assert.is_true(client:hears_only_a_ping())
    assert.truthy(text(client:calls("echo", { text = "x" })):find("new", 1, true))
  end)

  it("with the same tool twice keeps the old generation, and logs both files", function()
    gate:write_policy("other.lua", fixtures.echo)
    gate:reload()
    local log = gate:log()
    assert.truthy(log:find("echo.lua", 1, true) and log:find("other.lua", 1, true), log)
    assert.same({ "echo" }, names())
  end)

  it("keeps sessions and their history", function()
    local meta = client_of.session("s", { turn = 1 })
    client:calls("echo", { text = "same" }, meta)
    client:calls("echo", { text = "same" }, meta)
    gate:write_policy("echo.lua", fixtures.echo .. "\n-- changed\n")
    gate:reload()
    assert.equal("loop", client_of.verdict(client:calls("echo", { text = "same" }, meta)).error_class)
  end)

  it("loses no call, a hundred times in a row", function()
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

describe("a reload with a FIFO", function()
  it("among the policies logs an error instead of blocking", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    assert.equal(0, os.execute("mkfifo '" .. gate.policies .. "/fifo.lua'"))
    gate:reload()
    golden.check("load", "reload: a policy is a FIFO", gate:logs "fifo.lua: ")
    assert.is_not_true(gate:connect():calls("echo", { text = "x" }).isError)
  end)

  it("as a schema or a tools file logs an error instead of blocking", function()
    local tools = [[{ "tools": [ { "name": "other", "inputSchema": { "type": "object" } } ] }]]
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, tools = tools }
    assert.equal(0, os.execute("mkfifo '" .. gate.policies .. "/s.json'"))
    process.write(gate.policies .. "/new.lua", 'return tool "new" { schema = json "s.json" }')
    gate:reload()
    golden.check("load", "reload: a schema is a FIFO", gate:logs "s.json: ")
    os.remove(gate.policies .. "/new.lua")
    assert.equal(0, os.execute("cd '" .. gate.directory .. "' && mkfifo fifo && mv fifo tools.json"))
    gate:reload()
    golden.check("load", "reload: a tools file is a FIFO", gate:logs "tools.json: ")
    assert.is_not_true(gate:connect():calls("echo", { text = "x" }).isError)
  end)
end)

-- Without the file watch, so that only the command reloads.
describe("toolgate reload", function()
  local gate
  before_each(function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, arguments = { "--no-watch" } }
  end)

  local function toolgate_reload(...)
    return process.run { daemon.binary, "reload", "--socket", gate.socket, ... }
  end

  it("prints the new generation, its hash, its tools and the number of passed examples", function()
    gate:write_policy("echo.lua", (fixtures.echo:gsub("effects", [[examples = { { "passes", args = { text = "x" },
      gives = "pass" } }, effects]])))
    local code, out, err = toolgate_reload()
    assert.same({ 0, "" }, { code, err })
    golden.check("cli", "reload: a new generation", out, { ["%(%x+%)"] = "(<hash>)", ["%d+ ms"] = "<ms> ms" })
  end)

  it("reports that nothing has changed", function()
    local code, out = toolgate_reload()
    assert.equal(0, code)
    golden.check("cli", "reload: nothing has changed", out, { ["%(%x+%)"] = "(<hash>)", ["%d+ ms"] = "<ms> ms" })
  end)

  it("exits 1 and prints line, example, expected and got of a failing example", function()
    gate:write_policy("echo.lua", (fixtures.echo:gsub("effects", [[examples = { { "never", args = { text = "x" },
      gives = "refuse" } }, effects]])))
    local code, out, err = toolgate_reload()
    assert.equal(1, code)
    assert.matches("echo%.lua:6: ", err)
    golden.check("cli", "reload: a failing example", err)
    assert.truthy(out:find("generation 1 ", 1, true), out)
  end)

  it("prints the answer with --json", function()
    gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second")))
    local code, out = toolgate_reload "--json"
    local answer = client_of.json.decode(out)
    assert.same({ 0, true, false, 2, 2 }, { code, answer.ok, answer.unchanged, answer.tools, answer.generation })
    gate:write_policy("second.lua", "return")
    code, out = toolgate_reload "--json"
    answer = client_of.json.decode(out)
    assert.same({ 1, false, 2 }, { code, answer.ok, answer.generation })
    assert.truthy(answer.errors[1]:find("second.lua", 1, true))
  end)

  it("exits 2 if no daemon answers", function()
    local code, _, err = process.run { daemon.binary, "reload", "--socket", gate.directory .. "/nobody" }
    assert.equal(2, code)
    assert.truthy(err:find("nobody", 1, true), err)
  end)
end)

describe("a reload of many policies", function()
  local function serving_many()
    local policies = {}
    for i = 1, 300 do
      policies[("t%03d.lua"):format(i)] = fixtures.echo:gsub("echo", ("t%03d"):format(i))
    end
    return daemon.start { policies = policies, arguments = { "--no-watch" } }
  end

  it("runs between calls, which are answered before it ends", function()
    local gate = serving_many()
    gate:write_policy("t001.lua", (fixtures.echo:gsub("echo", "other")))
    local client = gate:connect()
    client:say_line('{"jsonrpc":"2.0","id":"reload","method":"toolgate/reload"}\n'
                    .. '{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"t001","arguments":{"text":"x"}}}')
    local heard = client:hears()
    assert.equal("call", heard.id)
    assert.truthy(text(heard.result):find("x", 1, true)) -- by the old generation
    repeat heard = client:hears() until heard.id
    assert.same({ "reload", true }, { heard.id, heard.result.ok })
    assert.is_true(client:calls("t001", { text = "x" }).isError)
    assert.is_not_true(client:calls("other", { text = "x" }).isError)
  end)

  it("answers all requests from before it began, and runs once more for later ones", function()
    local gate = serving_many()
    local first, second = gate:connect(), gate:connect()
    first:say_line(('{"jsonrpc":"2.0","id":1,"method":"toolgate/reload"}\n'):rep(3)
                   .. '{"jsonrpc":"2.0","id":2,"method":"ping"}')
    assert.equal(2, first:hears().id) -- the reload is under way
    gate:write_policy("t001.lua", (fixtures.echo:gsub("echo", "late")))
    assert.equal(2, second:asks("toolgate/reload").generation) -- includes the file written after the first began
    for _ = 1, 3 do assert.is_true(first:hears().result.ok) end
    local _, loads = gate:log():gsub(" cause=asked ", "")
    assert.equal(2, loads)
  end)

  it("continues if its client disconnects, and stops with the daemon", function()
    local gate = serving_many()
    local gone = gate:connect()
    gone:say { jsonrpc = "2.0", id = 1, method = "toolgate/reload" }
    gone:close()
    gate:logs " reload_unchanged "
    local left = gate:connect()
    left:say { jsonrpc = "2.0", id = 1, method = "toolgate/reload" }
    gate:signal(signal.SIGTERM)
    left:hears_the_end()
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)
end)

describe("reloads that wait", function()
  it("count among the requests of their connection that have no answer", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo },
                                config = "return { limits = { in_flight = 4 } }" }
    local client, asked, done = gate:connect(), {}, { ok = 0, refused = 0 }
    for id = 1, 200 do asked[id] = ('{"jsonrpc":"2.0","id":%d,"method":"toolgate/reload"}\n'):format(id) end
    client.stream:send(table.concat(asked))
    for _ = 1, 200 do
      local answer = client:hears()
      local how = answer.result and "ok" or "refused"
      done[how] = done[how] + 1
      assert.is_true(answer.result and answer.result.ok or answer.error.data.name == "too_many_calls_of_connection")
    end
    assert.is_true(done.ok >= 4)
    assert.is_true(done.refused > 0)
  end)
end)

describe("a client that does not read", function()
  it("is told once that the tools have changed, however often they do", function()
    local policies = {}
    for i = 1, 40 do
      policies[("big%d.lua"):format(i)] = fixtures.echo:gsub("echo", "big" .. i)
        :gsub('description = "[^"]*"', 'description = ("x"):rep(6000)')
    end
    local gate, deaf = daemon.open { policies = policies }
    for id = 1, 20 do deaf:say { jsonrpc = "2.0", id = id, method = "tools/list" } end
    process.eventually("its output waits", function() return gate:status().connections.buffered_bytes >= 256 * 1024 end)
    for i = 1, 4 do
      gate:write_policy("more.lua", (fixtures.echo:gsub("echo", "more" .. i)))
      gate:reload()
    end
    local told, replies = 0, 0
    while replies < 20 or told == 0 do
      if deaf:hears().method then told = told + 1 else replies = replies + 1 end
    end
    gate:write_policy("more.lua", (fixtures.echo:gsub("echo", "last")))
    gate:reload()
    deaf:say { jsonrpc = "2.0", id = 21, method = "ping" }
    while deaf:hears().method do told = told + 1 end
    assert.equal(2, told) -- of the four, then of the last
  end)
end)

describe("SIGTERM", function()
  it("is obeyed even if a client never reads", function()
    local gate, deaf = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
    deaf.stream:settimeout(0.2)
    for _ = 1, 2000 do
      if not deaf.stream:send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
                              .. '{"text":"' .. ("x"):rep(2000) .. '"}}}\n') then break end
    end
    gate:signal(signal.SIGTERM)
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)

  it("is obeyed, as is SIGHUP, even if the parent process blocked signals", function()
    local gate = daemon.start {
      policies = { ["echo.lua"] = fixtures.echo },
      before = { "python3", "-c", "import os, signal, sys\n"
        .. "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))\nos.execv(sys.argv[1], sys.argv[1:])" } }
    gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second")))
    gate:reload()
    gate:signal(signal.SIGTERM)
    assert.same({ "exited", 0 }, { gate.child:wait() })
  end)

  it("is not needed: a new daemon takes over the socket of a killed one", function()
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

  it("is not sent by a second daemon, which reports that the socket is in use", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local words, code = daemon.fails { socket = gate.socket }
    assert.not_equal(0, code)
    assert.truthy(words:find(gate.socket .. ": another process listens", 1, true), words)
    assert.is_true(gate:connect():hears_only_a_ping())
  end)
end)
