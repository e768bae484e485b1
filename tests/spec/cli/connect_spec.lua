-- toolgate connect: the stdio bridge that MCP clients start.

describe("toolgate connect", function()
  local gate

  before_each(function() gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } } end)

  -- The environment that SDKs give a stdio command, and nothing else.
  local BARE = { "env", "-i", "HOME=/", "LOGNAME=x", "PATH=/usr/bin:/bin", "SHELL=/bin/sh", "TERM=dumb", "USER=x" }

  local function connect(input, ...)
    local argv = { unpack(BARE) }
    for _, word in ipairs { daemon.binary, "connect", gate.socket, ... } do argv[#argv + 1] = word end
    return process.run(argv, { input = input })
  end

  it("relays lines in both directions, and ends when its input ends", function()
    local code, out = connect '{"jsonrpc":"2.0", "id" : 9007199254740993,"method":"ping"}\n'
    assert.equal(0, code)
    assert.equal('{"jsonrpc":"2.0","id":9007199254740993,"result":{}}\n', out)
  end)

  it("ends at once on empty input, without output", function()
    assert.equal(0, (connect ""))
  end)

  it("relays an answer of 900 kB", function()
    local long = ("x"):rep(900000)
    local code, out = connect('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
                              .. '{"text":"' .. long .. '"}}}\n')
    assert.equal(0, code)
    assert.truthy(out:find(long, 1, true))
  end)

  it("sets the session for a client that cannot", function()
    local call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}\n'
    for _ = 1, 2 do connect(call, "--session", "chat-1") end
    local again = client_of.json.decode((select(2, connect(call, "--session", "chat-1"))))
    assert.equal("loop", client_of.verdict(again.result).error_class)
    local other = client_of.json.decode((select(2, connect(call, "--session", "chat-2"))))
    assert.is_not_true(other.result.isError)
  end)

  it("sets the session for a client that writes null in the place of what it does not say", function()
    local call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":null}}\n'
    for _ = 1, 2 do connect(call, "--session", "chat-3") end
    local again = client_of.json.decode((select(2, connect(call, "--session", "chat-3"))))
    assert.equal("loop", client_of.verdict(again.result).error_class)
  end)

  it("does not override a session that the client sets", function()
    local _, out = connect('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
      .. '{"txt":"x"},"_meta":{"dev.toolgate/session":"mine"}}}\n', "--session", "chat-1")
    assert.truthy(out:find('"attempts_left":2', 1, true), out)
    local client = gate:connect()
    assert.equal(1, client_of.verdict(client:calls("echo", { txt = "y" }, client_of.session "mine")).attempts_left)
  end)

  it("starts a new session for each run with --session auto", function()
    local call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}\n'
    local _, out = connect(call:rep(12), "--session", "auto") -- of one step or of several, as they are read
    assert.truthy(out:find '"verdict":"refuse"' or out:find '"verdict":"halt"', out)
    _, out = connect(call, "--session", "auto")
    assert.is_nil(out:find('"verdict":"refuse"', 1, true), out)
  end)

  it("names the socket if no daemon serves there", function()
    local code, _, err = process.run { daemon.binary, "connect", "/tmp/nobody-serves-here.sock" }
    assert.not_equal(0, code)
    assert.truthy(err:find("/tmp/nobody-serves-here.sock", 1, true), err)
    golden.check("cli", "connect: no daemon serves there", err)
  end)

  it("asks once for what a daemon refuses to read", function()
    local code, out = connect '{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}\n'
    assert.equal(0, code)
    assert.equal(1, select(2, out:gsub("\n", "")))
  end)
end)
