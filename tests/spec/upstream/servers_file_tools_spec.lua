-- Which tools of a server the mcpServers file of another client serves: includeTools, disabledTools, excludeTools.
local json = require("client").json

describe("an entry of an mcpServers file", function()
  local function starts(keys)
    local entry = { command = "python3", args = { "-SE", daemon.root .. "/tests/support/fake_upstream.py" } }
    for key, names in pairs(keys) do entry[key] = names end
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write((json.encode { mcpServers = { fake = entry } }:gsub('%["EMPTY"%]', "[]")))
    file:close()
    local gate = daemon.start { config = ("return { mcp_config = %q }"):format(path) } -- when the server is up
    os.remove(path)
    return gate
  end

  local function serves(keys)
    local gate = starts(keys)
    local client, names = gate:connect(), {}
    process.eventually("its tools are listed", function()
      for _, tool in ipairs(client:asks("tools/list").tools) do names[tool.name] = true end
      return next(names) ~= nil
    end)
    return names, client, gate
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

  -- The words of Codex, GitHub Copilot and others for the same; a list that is ignored would serve what it leaves out.
  local excluding = { { disabled_tools = { "about" } }, { ExcludedTools = "about" }, { blockedTools = { "about", json.null } } }
  for _, keys in ipairs(excluding) do
    it("does not serve what it excludes in another spelling: " .. next(keys), function()
      local names = serves(keys)
      assert.truthy(names.echo)
      assert.is_nil(names.about)
    end)
  end

  it("does not serve what one of several spellings excludes", function()
    assert.is_nil(serves { disabledTools = { "slow" }, disabled_tools = { "about" } }.about)
    assert.is_nil(serves { excludedTools = "about", blockedTools = { "slow" }, excludeTools = json.null }.about)
  end)

  it("serves the one tool that a text names in place of a list", function()
    assert.same({ echo = true }, serves { tools = "echo" })
    assert.truthy(serves { tools = "*" }.about)
  end)

  for _, key in ipairs { "enabled_tools", "allowedTools", "tools" } do
    it("serves what it includes in another spelling: " .. key, function()
      assert.same({ echo = true }, serves { [key] = { "echo" } })
    end)
  end

  it("says so if it excludes what its server does not offer", function()
    local names, _, gate = serves { disabledTools = { "About" } }
    assert.truthy(names.about)
    gate:logs "'About' of upstream fake is to be left out, but it offers no tool of this name (did you mean 'about'?)"
  end)

  it("says so if it includes what its server does not offer, beside what it does", function()
    local names, _, gate = serves { includeTools = { "echo", "abuot" } }
    assert.same({ echo = true }, names)
    gate:logs "'abuot' of upstream fake is to be served, but it offers no tool of this name (did you mean 'about'?)"
  end)

  it("may be of another client's form: one list for the command, nulls, a type in capitals, a switch as a text", function()
    assert.truthy(serves { command = { "python3", "-SE", daemon.root .. "/tests/support/fake_upstream.py" }, args = json.null,
                           type = "Local", disabled = "false", environment = { A = json.null, B = 1 }, cwd = json.null }.echo)
    assert.truthy(serves { command = { "python3", "-SE" }, args = { daemon.root .. "/tests/support/fake_upstream.py" } }.echo)
    assert.truthy(serves { command = { path = "python3", args = { "-SE", daemon.root .. "/tests/support/fake_upstream.py" } },
                           args = json.null, isActive = 1 }.echo)
  end)

  it("serves nothing of an empty list, as its client shows none, and says so", function()
    for _, key in ipairs { "includeTools", "enabled_tools" } do
      local gate = starts { [key] = { "EMPTY" } }
      assert.same(0, #gate:connect():asks("tools/list").tools, key)
      gate:logs "upstreams.fake.tools: none of the 8 tools that it offers is served, because the list is empty"
    end
    local names, _, gate = serves { tools = { "EMPTY" } } -- some clients keep definitions there
    assert.truthy(names.echo)
    gate:logs "mcpServers.fake: unknown key 'tools' is ignored"
  end)

  it("may stand in any of the places of a file that has several", function()
    local path = os.tmpname()
    process.write(path, ('{"mcpServers":{},"servers":{"fake":{"command":"python3","args":["-SE",%q]}}}'):format(
      daemon.root .. "/tests/support/fake_upstream.py"))
    local gate = daemon.start { config = ("return { mcp_config = %q }"):format(path) }
    os.remove(path)
    process.eventually("its tools are listed", function() return #gate:connect():asks("tools/list").tools > 0 end)
  end)

  it("may have the type of Cline and others for HTTP", function()
    local path = os.tmpname()
    process.write(path, '{"mcpServers":{"fake":{"url":"http://127.0.0.1:9/mcp","type":"streamableHttp"}}}')
    local gate = daemon.start { config = ("return { mcp_config = %q }"):format(path), late = true }
    os.remove(path)
    gate:logs "upstream_failed upstream=fake"
  end)

  it("says so if its timeout cannot be used", function()
    local _, _, gate = serves { timeout = "1m" }
    gate:logs "mcpServers.fake.timeout is ignored: expected seconds"
    _, _, gate = serves { tool_timeout_sec = -1 }
    gate:logs "mcpServers.fake.tool_timeout_sec is ignored: expected seconds up to 3600"
  end)

  it("serves what it includes, without what either other key excludes", function()
    local names = serves { includeTools = { "echo", "about", "slow" }, disabledTools = { "about" }, excludeTools = { "slow" } }
    assert.same({ echo = true }, names)
  end)
end)
