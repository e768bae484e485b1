-- Clients of each version since 2024-11-05: what their version does not know is left out, or becomes text.
local bridges = require "bridge"
local unistd = require "posix.unistd"

local TOOLS = [=[[{"name":"report","title":"A report","inputSchema":{"type":"object"},"icons":[{"src":"https://e.org/i.png"}],
  "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},
  "_meta":{"answer":{"content":[{"type":"text","text":"12 rows"},
    {"type":"resource_link","uri":"file:///r.csv","name":"r"},
    {"type":"audio","data":"AAAA","mimeType":"audio/wav"}],"structuredContent":{"rows":12}}}},
  {"name":"bare","inputSchema":{"type":"object"},
   "_meta":{"answer":{"content":[],"structuredContent":{"rows":13}}}}]]=]
local LIBRARY = [=[{"prompts":[{"name":"p","title":"P","icons":[{"src":"https://e.org/i.png"}],
   "arguments":[{"name":"a","title":"A"}]}],
  "resources":[{"uri":"file:///r","name":"r","title":"R","annotations":{"priority":1}}]}]=]

-- What a version has; its definitions' members, and the types of its blocks.
local VERSIONS = {
  ["2024-11-05"] = { "inputSchema name", "text text text", { 3, 3 } },
  ["2025-03-26"] = { "annotations inputSchema name", "text text audio", { 3, 3 } },
  ["2025-06-18"] = { "_meta annotations inputSchema name outputSchema title", "text resource_link audio", {} },
  ["2025-11-25"] = { "_meta annotations icons inputSchema name outputSchema title", "text resource_link audio", {} },
}

local function keys(object)
  local found = {}
  for key in pairs(object) do found[#found + 1] = key end
  table.sort(found)
  return table.concat(found, " ")
end

local function types(content)
  local found = {}
  for i, block in ipairs(content) do found[i] = block.type end
  return table.concat(found, " ")
end

local function by_name(list, name)
  for _, one in ipairs(list) do if one.name == name then return one end end
end

describe("a client of an older version", function()
  local directory, config

  before_each(function()
    directory = process.directory()
    process.write(directory .. "/offer.json", TOOLS)
    process.write(directory .. "/library.json", LIBRARY)
    config = "return { upstreams = { " .. fixtures.upstream("files", "offering", { OFFER = directory .. "/offer.json" })
             .. fixtures.upstream("library", "library_server", { LIBRARY = directory .. "/library.json" }) .. " } }"
  end)

  local function hello(version)
    return { protocolVersion = version, capabilities = {}, clientInfo = { name = "spec", version = "1" } }
  end

  for version, has in pairs(VERSIONS) do
    it("gets what it knows: " .. version, function()
      local client = daemon.start { config = config }:connect()
      local said = client:asks("initialize", hello(version))
      assert.equal(version, said.protocolVersion)
      assert.equal(version ~= "2024-11-05", said.capabilities.completions ~= nil)
      assert.equal(has[1], keys(by_name(client:asks("tools/list", {}).tools, "report")))
      local result, line = client:calls("report", {})
      assert.equal(has[2], types(result.content), line)
      assert.equal(version >= "2025-06-18" and 12 or nil, (result.structuredContent or {}).rows)
      golden.check("protocol", "a result for a client of " .. version, client_of.text(result))
      local bare = client:calls("bare", {})
      local as_text = bare.content[1] and bare.content[1].text
      assert.equal(version < "2025-06-18" and '{"rows":13}' or nil, as_text) -- where it has no other place
      assert.equal(version >= "2025-06-18" and 13 or nil, (bare.structuredContent or {}).rows)
    end)

    it("lists prompts and resources without what it does not know: " .. version, function()
      local client = daemon.start { config = config }:connect()
      client:asks("initialize", hello(version))
      local prompt = process.eventually("the prompt is listed", function()
        return client:asks("prompts/list", {}).prompts[1]
      end)
      local resource = process.eventually("the resource is listed", function()
        return client:asks("resources/list", {}).resources[1]
      end)
      local titled = version >= "2025-06-18"
      assert.equal(titled, prompt.title ~= nil)
      assert.equal(titled, prompt.arguments[1].title ~= nil)
      assert.equal(version == "2025-11-25", prompt.icons ~= nil)
      assert.equal(titled, resource.title ~= nil)
      assert.is_table(resource.annotations) -- of resources they are as old as MCP
    end)
  end

  it("gets 2025-11-25 for a version that nobody knows, or that has no handshake", function()
    local client = daemon.start { config = config }:connect()
    for _, version in ipairs { "2023-01-01", "2024-10-07", "2026-07-28", "2030-01-01", "x" } do
      assert.equal("2025-11-25", client:asks("initialize", hello(version)).protocolVersion)
    end
    assert.equal("object", type(client:calls("report", {}).structuredContent) == "table" and "object")
  end)

  it("is served through toolgate connect", function()
    local bridge = bridges.start()
    bridge:serves { config = config }
    local function result() -- its server's lists may come up in between, which is announced
      local message = bridge:hears()
      return message.id and message.result or result()
    end
    bridge:say { id = 1, method = "initialize", params = hello "2024-11-05" }
    assert.equal("2024-11-05", result().protocolVersion)
    bridge:say { id = 2, method = "tools/list" }
    assert.equal("inputSchema name", keys(by_name(result().tools, "report")))
    bridge:call(3, "report", { x = 1 })
    assert.equal("text text text", types(result().content))
  end)

  describe("with a batch", function()
    local BATCH = '[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},'
                  .. '{"jsonrpc":"2.0","id":9,"method":"tools/list"}]'

    it("is answered message by message in 2025-03-26", function()
      local client = daemon.start {}:connect() -- without upstreams, whose coming up would be told in between
      client:asks("initialize", hello "2025-03-26")
      client:say_line(BATCH)
      assert.equal(8, client:hears().id)
      local list = client:hears()
      assert.equal(9, list.id)
      assert.is_table(list.result.tools)
      client:say_line '[1,{"jsonrpc":"2.0","id":10,"method":"ping"},[]]'
      assert.equal(-32600, client:hears().error.code)
      assert.equal(10, client:hears().id)
      assert.equal(-32600, client:hears().error.code)
      client:say_line "[]"
      assert.equal(-32600, client:hears().error.code)
      client:say_line("[" .. ('{"jsonrpc":"2.0","id":1,"method":"ping"},'):rep(100) .. "1]")
      assert.equal(-32600, client:hears().error.code)
      assert.is_true(client:hears_only_a_ping())
    end)

    it("is refused in every other version, and before initialize", function()
      local client = daemon.start {}:connect()
      client:say_line(BATCH)
      assert.equal(-32600, client:hears().error.code)
      for _, version in ipairs { "2024-11-05", "2025-06-18", "2025-11-25" } do
        client:asks("initialize", hello(version))
        client:say_line(BATCH)
        assert.equal(-32600, client:hears().error.code)
        assert.is_true(client:hears_only_a_ping())
      end
    end)

    it("passes through toolgate connect", function()
      local bridge = bridges.start()
      bridge:serves { config = config }
      bridge:say { id = 1, method = "initialize", params = hello "2025-03-26" }
      bridge:hears()
      unistd.write(bridge.input, BATCH .. "\n")
      assert.equal(8, bridge:hears().id)
      assert.equal(9, bridge:hears().id)
    end)
  end)
end)
