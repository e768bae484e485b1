-- MCP with `initialize` (2025-11-25, 2025-06-18, 2025-03-26), and without any handshake.
local text = require("client").text
local verdict = require("client").verdict

describe("the legacy era", function()
  local client

  before_each(function()
    client = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task },
                            tools = fixtures.agent_tools }:connect()
  end)

  local function initialize(version)
    return client:asks("initialize", { protocolVersion = version, capabilities = {},
                                       clientInfo = { name = "spec", version = "1" } })
  end

  it("returns its name, version and capabilities", function()
    local hello = initialize "2025-11-25"
    assert.is_true(hello.capabilities.tools.listChanged)
    assert.is_table(hello.capabilities.experimental["dev.toolgate/gate"])
    assert.equal("toolgate", hello.serverInfo.name)
    assert.is_string(hello.serverInfo.version)
  end)

  it("does not answer notifications, known or unknown", function()
    initialize "2025-11-25"
    client:say { jsonrpc = "2.0", method = "notifications/initialized" }
    client:say { jsonrpc = "2.0", method = "notifications/of_another_kind", params = { a = 1 } }
    assert.is_true(client:hears_only_a_ping())
  end)

  it("serves a call without a handshake", function()
    local result = client:calls("echo", { text = "hello" })
    assert.is_not_true(result.isError)
    assert.truthy(text(result):find("hello", 1, true))
  end)

  it("lists toolgate's own tools by name, and none that the agent runs", function()
    local result, line = client:asks "tools/list"
    local names = {}
    for i, tool in ipairs(result.tools) do
      names[i] = tool.name
      assert.equal("object", tool.inputSchema.type)
      assert.is_string(tool.description)
      assert.is_nil(tool.execution)
    end
    assert.same({ "create_task", "echo" }, names)
    assert.is_nil(line:find("nextCursor", 1, true))
    assert.is_nil(line:find("null", 1, true))
  end)

  it("rejects a cursor", function()
    assert.equal(-32602, client:ask("tools/list", { cursor = "page-2" }).error.code)
  end)

  it("answers an unknown method with -32601", function()
    local answer, line = client:ask "tasks/list"
    assert.equal(-32601, answer.error.code)
    assert.is_string(answer.error.message)
    assert.truthy(line:find('"jsonrpc":"2.0"', 1, true))
    assert.is_nil(line:find('"result"', 1, true))
  end)

  it("refuses an unknown tool with a result that the model can read, and suggests the closest", function()
    local result = client:calls("create_tsak", { title = "x" })
    assert.is_true(result.isError)
    assert.equal("refuse", verdict(result).verdict)
    assert.equal("unknown_tool", verdict(result).error_class)
    golden.check("feedback", "unknown tool: the closest one", text(result))
    assert.is_nil(result.structuredContent)
  end)

  it("refuses to run a tool that the agent runs itself", function()
    local result = client:calls("get_weather", { city = "Bern" })
    assert.is_true(result.isError)
    assert.equal("agent_runs_this", verdict(result).code or verdict(result).error_class)
    golden.check("feedback", "a tool that the client runs itself", text(result))
  end)

  it("requires the tool's name", function()
    assert.equal(-32602, client:ask("tools/call", { arguments = { text = "x" } }).error.code)
    assert.equal(-32602, client:ask("tools/call", { name = 7 }).error.code)
    assert.equal(-32602, client:ask("tools/call").error.code)
  end)

  it("keeps values unchanged: 64-bit numbers, 1.10, the order of keys", function()
    client:say_line('{"jsonrpc":"2.0","id":1,"method":"toolgate/check","params":{"name":"book_table",'
                    .. '"arguments":{"where":"Bern","z":9007199254740993,"a":1.10,"m":{"y":1,"b":2}}}}')
    local line = client:hears_line()
    assert.truthy(line:find('{"where":"Bern","z":9007199254740993,"a":1.10,"m":{"y":1,"b":2}}', 1, true), line)
  end)
end)
