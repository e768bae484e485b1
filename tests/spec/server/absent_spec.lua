-- null, [], "" and a byte order mark, where a client means that there is nothing: as absent, for every method.
local bridges = require "bridge"
local unistd = require "posix.unistd"

describe("what means absent", function()
  local client

  before_each(function()
    client = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task } }:connect()
  end)

  local function says(line)
    client:say_line(line)
    return client:hears()
  end

  local function result_of(method, params)
    local answer = says(('{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}'):format(method, params))
    return assert(answer.result, answer.error and answer.error.message)
  end

  for _, params in ipairs { "null", "[]", '{"cursor":null}', '{"cursor":""}', '{"_meta":null}', '{"_meta":[]}',
                            '{"_meta":{"dev.toolgate/session":null,"dev.toolgate/turn":null}}' } do
    it("is read in the params of a list: " .. params, function()
      assert.equal(2, #result_of("tools/list", params).tools)
      for _, list in ipairs { "prompts", "resources" } do
        assert.same({}, result_of(list .. "/list", params)[list])
      end
      assert.same({}, result_of("resources/templates/list", params).resourceTemplates)
    end)
  end

  it("is read in a call", function()
    for _, more in ipairs { '"_meta":null', '"_meta":[]', '"_meta":{"progressToken":null}', '"inputResponses":null',
                            '"_meta":{"dev.toolgate/session":null,"dev.toolgate/context":null}' } do
      local result = result_of("tools/call", '{"name":"echo","arguments":{"text":"hello"},' .. more .. "}")
      assert.is_not_true(result.isError)
    end
    assert.is_true(result_of("tools/call", '{"name":"echo","arguments":null}').isError) -- text is missing
  end)

  it("is read by ping, initialize and toolgate's own methods", function()
    result_of("ping", "null")
    local hello = result_of("initialize", '{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":null,"_meta":null}')
    assert.equal("2025-06-18", hello.protocolVersion)
    result_of("toolgate/status", "null")
    result_of("toolgate/tools", '{"format":null,"strict":null}')
    result_of("toolgate/check", '{"name":"echo","arguments":{"text":"x"},"asks":null}')
  end)

  it("is not what a tool returned: a report's null is a result", function()
    local check = result_of("toolgate/check", '{"name":"echo","arguments":{"text":"x"}}')
    local report = result_of("toolgate/report", ('{"callId":"%s","result":null,"error":null}'):format(check.callId))
    assert.equal("pass", report.verdict)
  end)

  it("may be the id of a notification", function()
    client:say_line '{"jsonrpc":"2.0","id":null,"method":"notifications/initialized","params":null}'
    assert.is_true(client:hears_only_a_ping())
  end)

  it("may be a byte order mark", function()
    assert.is_table(says('\239\187\191{"jsonrpc":"2.0","id":1,"method":"tools/list"}').result)
  end)

  it("is nothing else", function()
    for _, params in ipairs { "7", '"x"', '["x"]', '{"cursor":"made-up"}', '{"cursor":7}', '{"_meta":"x"}', '{"_meta":[1]}' } do
      local answer = says('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' .. params .. "}")
      assert.equal(-32602, answer.error.code, params)
    end
    assert.equal(-32600, says('{"jsonrpc":"2.0","id":null,"method":"ping"}').error.code)
  end)

  it("may be said very often", function()
    local parts = {}
    for i = 1, 90000 do parts[i] = ('"k%d":null'):format(i) end
    assert.equal(2, #result_of("tools/list", "{" .. table.concat(parts, ",") .. "}").tools)
  end)

  it("passes through toolgate connect", function()
    local bridge = bridges.start()
    bridge:serves { policies = { ["echo.lua"] = fixtures.echo } }
    local hello = '\239\187\191{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'
    unistd.write(bridge.input, hello .. "\n")
    assert.equal("2025-06-18", bridge:hears().result.protocolVersion)
    unistd.write(bridge.input, '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":null}}\n')
    assert.equal(1, #bridge:hears().result.tools)
  end)
end)
