-- Which tools of a server the mcpServers file of another client serves: includeTools, disabledTools, excludeTools.
local json = require("client").json

describe("an entry of an mcpServers file", function()
  local function serves(keys)
    local entry = { command = "python3", args = { "-SE", daemon.root .. "/tests/support/fake_upstream.py" } }
    for key, names in pairs(keys) do entry[key] = names end
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(json.encode { mcpServers = { fake = entry } })
    file:close()
    local gate = daemon.start { config = ("return { mcp_config = %q }"):format(path) }
    local client, names = gate:connect(), {}
    process.eventually("its tools are listed", function()
      for _, tool in ipairs(client:asks("tools/list").tools) do names[tool.name] = true end
      return next(names) ~= nil
    end)
    os.remove(path)
    return names, client
  end

  it("without such keys serves all tools", function()
    local names = serves {}
    assert.truthy(names.echo and names.about)
  end)

  for _, key in ipairs { "disabledTools", "excludeTools" } do
    it("does not serve what it excludes: " .. key, function()
      local names, client = serves { [key] = { "about" } }
      assert.truthy(names.echo)
      assert.is_nil(names.about)
      assert.truthy(client:calls("about", {}).isError)
    end)
  end

  it("serves what it includes, without what either other key excludes", function()
    local names = serves { includeTools = { "echo", "about", "slow" }, disabledTools = { "about" }, excludeTools = { "slow" } }
    assert.same({ echo = true }, names)
  end)
end)
