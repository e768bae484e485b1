-- MCP without a handshake (2026-07-28): each request carries the version and the client's capabilities.

local VERSION = "io.modelcontextprotocol/protocolVersion"
local CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
local SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
local SERVER = "io.modelcontextprotocol/serverInfo"

describe("the modern era", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
  end)

  it("answers server/discover", function()
    local result = client:asks("server/discover", { _meta = modern() })
    assert.equal("complete", result.resultType)
    assert.same({ "2026-07-28" }, result.supportedVersions)
    assert.is_true(result.capabilities.tools.listChanged)
    assert.is_table(result.capabilities.extensions["dev.toolgate/gate"])
    assert.is_number(result.ttlMs)
    assert.truthy(result.cacheScope == "public" or result.cacheScope == "private")
    assert.equal("toolgate", result._meta[SERVER].name)
  end)

  it("requires the version and the client's capabilities in server/discover", function()
    assert.equal(-32602, client:ask("server/discover", json.decode "{}").error.code)
    assert.equal(-32602, client:ask("server/discover").error.code)
    assert.equal(-32602, client:ask("server/discover", { _meta = { [CAPABILITIES] = json.decode "{}" } }).error.code)
    assert.equal(-32602, client:ask("server/discover", { _meta = { [VERSION] = "2026-07-28" } }).error.code)
    assert.is_table(client:ask("server/discover", { _meta = modern() }).result)
  end)

  it("answers another version with an error that lists the supported one", function()
    local failure = client:ask("tools/list", { _meta = modern { [VERSION] = "2031-01-01" } }).error
    assert.equal(-32022, failure.code)
    assert.same({ supported = { "2026-07-28" }, requested = "2031-01-01" }, failure.data)
  end)

  it("lists tools with a ttl, the same for every connection", function()
    local first, line = client:asks("tools/list", { _meta = modern() })
    local second = gate:connect():asks("tools/list", { _meta = modern() })
    assert.same(first.tools, second.tools)
    assert.equal("complete", first.resultType)
    assert.is_number(first.ttlMs)
    assert.is_string(first.cacheScope)
    assert.is_nil(line:find("nextCursor", 1, true))
  end)

  it("completes a call", function()
    local result = client:calls("echo", { text = "hello" }, modern())
    assert.equal("complete", result.resultType)
    assert.equal("toolgate", result._meta[SERVER].name)
    assert.truthy(text(result):find("hello", 1, true))
  end)

  it("completes a refused call", function()
    local result = client:calls("echo", { txet = "hello" }, modern())
    assert.equal("complete", result.resultType)
    assert.is_true(result.isError)
  end)

  for _, method in ipairs { "initialize", "ping", "logging/setLevel", "unknown/method" } do
    it("does not know " .. method, function()
      assert.equal(-32601, client:ask(method, { _meta = modern() }).error.code)
    end)
  end

  it("acknowledges a subscription first, and tags its notifications with the id", function()
    client:say { jsonrpc = "2.0", id = "sub-1", method = "subscriptions/listen",
                 params = { _meta = modern(), notifications = { toolsListChanged = true } } }
    local ack = client:hears()
    assert.equal("notifications/subscriptions/acknowledged", ack.method)
    local id = ack.params._meta[SUBSCRIPTION]
    assert.not_nil(id)

    gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second")))
    gate:reload()
    local notice = client:hears()
    assert.equal("notifications/tools/list_changed", notice.method)
    assert.equal(id, notice.params._meta[SUBSCRIPTION])
  end)

  it("sends no notification without a subscription", function()
    client:say { jsonrpc = "2.0", id = 1, method = "subscriptions/listen",
                 params = { _meta = modern(), notifications = { promptsListChanged = true } } }
    assert.equal("notifications/subscriptions/acknowledged", client:hears().method)
    gate:write_policy("second.lua", (fixtures.echo:gsub("echo", "second")))
    gate:reload()
    client:say { jsonrpc = "2.0", id = 2, method = "tools/list", params = { _meta = modern() } }
    assert.equal(2, client:hears().id)
  end)

  it("shares a connection with the legacy era, request by request", function()
    assert.equal("complete", client:asks("tools/list", { _meta = modern() }).resultType)
    assert.is_nil(client:asks("tools/list").resultType)
  end)
end)
