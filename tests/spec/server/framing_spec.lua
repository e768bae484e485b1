-- Lines and ids from clients: malformed ones get an error, and the connection goes on.

describe("a line from a client", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
  end)

  local function says(line)
    client:say_line(line)
    return client:hears()
  end

  local function call_with(arguments, id)
    return ('{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":%s}}')
      :format(id or 7, arguments)
  end

  describe("whose id", function()
    it("is a string or a whole number is answered with that id, as it was sent", function()
      for _, id in ipairs { '"a\\u00e9b"', '""', "0", "-5", "1.0", "2E1", "9007199254740993", "9223372036854775807" } do
        client:say_line('{"jsonrpc":"2.0","id":' .. id .. ',"method":"ping"}')
        assert.equal('{"jsonrpc":"2.0","id":' .. id .. ',"result":{}}', client:hears_line())
      end
    end)

    it("has a lone surrogate gets an error at once", function()
      assert.equal(-32600, says '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}'.error.code)
    end)

    it("is that of an answer gets no answer, whatever it is", function()
      for _, id in ipairs { "null", "1.5", "7", '"a"' } do
        client:say_line('{"jsonrpc":"2.0","id":' .. id .. ',"error":{"code":-32700,"message":"what?"}}')
        client:say_line('{"jsonrpc":"2.0","id":' .. id .. ',"result":{}}')
      end
      assert.is_true(client:hears_only_a_ping())
    end)

    for _, id in ipairs { "null", "1.5", "true", "[1]", '{"a":1}' } do
      it("is " .. id .. " is an invalid request", function()
        local answer, line = says('{"jsonrpc":"2.0","id":' .. id .. ',"method":"ping"}')
        assert.equal(-32600, answer.error.code, line)
        golden.check("protocol", "id: " .. id, answer.error.message)
        assert.is_true(client:hears_only_a_ping())
      end)
    end
  end)

  it("that is not JSON gets an error, with the id if one can be read", function()
    local answer = says '{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"echo",}}'
    assert.equal(-32700, answer.error.code)
    assert.equal(41, answer.id)
    golden.check("protocol", "line: not JSON, with an id", answer.error.message)
    local without, line = says "hello?"
    assert.equal(-32700, without.error.code)
    golden.check("protocol", "line: not JSON, without an id", without.error.message)
    assert.is_nil(line:find '"id":%d')
    assert.is_true(client:hears_only_a_ping())
  end)

  it("with a second value after the first is not JSON", function()
    assert.equal(-32700, says('{"jsonrpc":"2.0","id":1,"method":"ping"} {"a":1}').error.code)
    assert.equal(-32700, says('{"jsonrpc":"2.0","id":1,"method":"ping"}"abc').error.code)
  end)

  it("that is JSON but not a request is an invalid request", function()
    for _, line in ipairs { "1", '"ping"', "null", "{}", '{"jsonrpc":"2.0","id":1}', '{"id":1,"method":7}' } do
      assert.equal(-32600, says(line).error.code, line)
    end
  end)

  it("with bytes that are not UTF-8 is an error", function()
    for _, bytes in ipairs { "\255", "\192\175", "\237\160\128", "\244\144\128\128", "\195" } do
      local answer = says(call_with('{"text":"' .. bytes .. '"}'))
      if answer.error then
        assert.equal(-32700, answer.error.code)
        golden.check("protocol", "line: bytes that are not UTF-8: " .. bytes:byte(), answer.error.message)
      else
        assert.is_true(answer.result.isError)
        golden.check("feedback", "arguments: bytes that are not UTF-8", text(answer.result))
      end
      assert.equal(7, answer.id)
    end
  end)

  it("with a lone surrogate in a tools/call is a result that the model can read", function()
    for _, escape in ipairs { "\\ud800", "\\udc00", "\\ud800\\u0041" } do
      local answer = says(call_with('{"text":"' .. escape .. '"}'))
      assert.is_true(answer.result.isError)
      golden.check("feedback", "arguments: a lone surrogate: " .. escape, text(answer.result))
    end
  end)

  it("with a surrogate pair is valid", function()
    local answer = says(call_with '{"text":"\\ud83d\\ude00"}')
    assert.is_not_true(answer.result.isError)
  end)

  it("with a duplicate key in a tools/call is a result that names the key", function()
    local answer = says(call_with '{"text":"a","text":"b"}')
    assert.is_true(answer.result.isError)
    assert.equal("invalid_arguments", verdict(answer.result).error_class)
    assert.truthy(text(answer.result):find("text", 1, true))
    golden.check("feedback", "arguments: a key twice", text(answer.result))
  end)

  it("nested too deep is an error that gives the limit", function()
    for _, depth in ipairs { 200, 100000 } do
      local answer, line = says(call_with('{"text":' .. ("["):rep(depth) .. ("]"):rep(depth) .. "}"))
      local words = answer.error and answer.error.message or text(answer.result)
      assert.truthy(words:find("128", 1, true), line:sub(1, 300))
      assert.equal(7, answer.id)
    end
    assert.is_true(client:hears_only_a_ping())
  end)

  it("with too many values is an error that gives the limit", function()
    local answer = says(call_with('{"text":[' .. ("1,"):rep(150000) .. "1]}"))
    local words = answer.error and answer.error.message or text(answer.result)
    assert.truthy(words:find("100000", 1, true) or words:find("100,000", 1, true), words:sub(1, 300))
  end)

  it("with arguments that are too long is an error that gives the limit", function()
    local answer = says(call_with('{"text":"' .. ("x"):rep(1200000) .. '"}'))
    assert.is_true(answer.result.isError)
    assert.truthy(text(answer.result):find("1048576", 1, true) or text(answer.result):find("1 MiB", 1, true),
                  text(answer.result):sub(1, 300))
    assert.is_true(client:hears_only_a_ping())
  end)

  it("longer than a message may be is an error that gives the limit, and the daemon survives", function()
    -- the rest of the line may meet a closed connection
    pcall(client.say_line, client, call_with('{"text":"' .. ("x"):rep(9 * 1048576) .. '"}'))
    local answer = client:hears()
    assert.truthy(answer.error.message:find("8388608", 1, true) or answer.error.message:find("8 MiB", 1, true),
                  answer.error.message)
    assert.is_true(gate:connect():hears_only_a_ping())
  end)

  it("that is a batch is refused without an id", function()
    local answer, line = says '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    assert.equal(-32600, answer.error.code)
    golden.check("protocol", "line: a batch", answer.error.message)
    assert.is_nil(line:find '"id":%d')
    assert.is_true(client:hears_only_a_ping())
  end)

  it("may be empty or end in CR LF", function()
    client:say_line ""
    client:say_line "\r"
    client.stream:send '{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n'
    assert.equal(1, client:hears().id)
  end)

  it("may arrive byte by byte, or with many others at once", function()
    for byte in ('{"jsonrpc":"2.0","id":1,"method":"ping"}\n'):gmatch "." do client.stream:send(byte) end
    assert.equal(1, client:hears().id)
    client.stream:send(('{"jsonrpc":"2.0","id":2,"method":"ping"}\n'):rep(500))
    for _ = 1, 500 do assert.equal(2, client:hears().id) end
  end)

  it("that ends with the connection is no request", function()
    local other = gate:connect()
    other.stream:send '{"jsonrpc":"2.0","id":1,"method":"pi'
    other.stream:shutdown "send"
    assert.same({}, other:hears_the_end())
    assert.is_true(client:hears_only_a_ping())
  end)

  it("that is whole but for its end is read when the client closes its sending side", function()
    client.stream:send '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}'
    client.stream:shutdown "send"
    assert.same({ '{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":2,"result":{}}' }, client:hears_the_end())
  end)

  it("is answered even if the client has closed its sending side", function()
    client.stream:send '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    client.stream:shutdown "send"
    assert.same({ '{"jsonrpc":"2.0","id":1,"result":{}}' }, client:hears_the_end())
  end)
end)

describe("a client that has closed its sending side", function()
  it("may still leave: its call is cancelled, and the command ends", function()
    local gate = daemon.start { policies = { ["slow.lua"] = [[return tool "slow" { description = "Wait.", effects = "read",
      schema = params {}, exec = { "sleep", "600", timeout = "10m" } }]] } }
    local operator, client = gate:connect(), gate:connect()
    local function are_in_flight(count)
      process.eventually(count .. " calls are in flight", function()
        return operator:asks("toolgate/status").connections.calls_in_flight == count
      end)
    end
    client.stream:send '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}\n'
    client.stream:shutdown "send"
    are_in_flight(1)
    client:close()
    are_in_flight(0)
    assert.is_nil(operator:asks("toolgate/status").commands)
  end)
end)

describe("the daemon", function()
  it("serves 1,000 connections, each with its own answers", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    local crowd = {}
    for i = 1, 1000 do
      crowd[i] = assert(client_of.connect(gate.socket))
      crowd[i]:begins(i, "echo", { text = "number " .. i })
    end
    for i = 1, 1000 do
      local answer, line = crowd[i]:hears()
      assert.equal(i, answer.id)
      assert.truthy(line:find("number " .. i, 1, true), line)
    end
    for i = 1, 1000 do crowd[i]:close() end
    assert.is_true(gate:connect():hears_only_a_ping())
  end)

  it("refuses connections over the limit, and keeps serving the others", function()
    local gate = daemon.start { config = "return { limits = { connections = 3 } }" }
    local crowd = { gate:connect() }
    process.eventually("the harness' own connection is gone", function()
      return crowd[1]:asks("toolgate/status").connections.open == 1
    end)
    for i = 2, 3 do
      crowd[i] = gate:connect()
      crowd[i]:hears_only_a_ping()
    end
    local late = gate:connect()
    local said = late:hears_the_end()
    assert.truthy(said[1] and said[1]:find("limits.connections", 1, true), tostring(said[1]))
    crowd[1]:close()
    process.eventually("there is room again", function()
      local again = client_of.connect(gate.socket)
      again.stream:settimeout(0.2)
      local ok = pcall(again.hears_only_a_ping, again)
      again:close()
      return ok
    end)
    for i = 2, 3 do assert.is_true(crowd[i]:hears_only_a_ping()) end
  end)
end)

describe("a client that never reads", function()
  local function resident_kb(pid)
    return tonumber(process.read(("/proc/%d/status"):format(pid)):match "VmRSS:%s*(%d+)")
  end

  it("is not read from once 256 KiB are queued, and gets every answer when it reads", function()
    local gate, deaf = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
    local before = resident_kb(gate:pid())
    deaf.stream:settimeout(0)
    local line = ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}\n')
      :format(("x"):rep(2000))
    local rest, sent = "", 0
    -- send as much as the daemon takes; it must stop once 256 KiB are queued for this client
    local watcher = gate:connect()
    process.eventually("the daemon stops reading", function()
      local last, _, partial = deaf.stream:send(rest == "" and line or rest)
      local taken = last or partial
      sent = sent + taken
      rest = (rest == "" and line or rest):sub(taken + 1)
      assert(sent < 64e6, "the daemon took 64 MB from a client that reads nothing")
      if taken > 0 then return false end
      return watcher:asks("toolgate/status").connections.buffered_bytes >= 256 * 1024
    end)
    local held = watcher:asks("toolgate/status").connections.buffered_bytes
    assert(held < 1024 * 1024, held .. " bytes wait")
    assert(resident_kb(gate:pid()) - before < 16384, "the daemon grew")

    -- now read: every complete line that the daemon took is answered
    deaf.stream:settimeout(20)
    local whole = math.floor(sent / #line)
    for _ = 1, whole do assert.equal(1, deaf:hears().id) end
  end)
end)
