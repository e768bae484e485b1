-- Whoever may write to the policies decides what agents may do: a folder or file that is open to others is a warning.
local unistd = require "posix.unistd"

describe("the policies on disk", function()
  local directory
  before_each(function()
    directory = process.directory()
    os.execute(("mkdir -m 755 %s/policies"):format(directory))
    process.write(directory .. "/policies/echo.lua", fixtures.echo)
  end)

  local function checked(...)
    local _, out, err = process.run { daemon.binary, "serve", "--check", "--policies", directory .. "/policies", ... }
    return out .. err
  end

  it("are no warning if nobody else may write to them", function()
    assert.is_nil(checked():find("warning:", 1, true))
  end)

  it("are a warning if everyone may write to the folder, in the check, the log and the status", function()
    os.execute(("chmod 777 %s/policies"):format(directory))
    golden.check("load", "policies: a folder that everyone may write to", checked():match "warning: [^\n]*")
    local gate = daemon.start { policies = directory .. "/policies" }
    assert.matches("chmod %-R o%-w", gate:logs " generation_warning ")
    assert.matches("chmod %-R o%-w", gate:status().generation.warnings[1])
    local _, status = process.run { daemon.binary, "status", "--socket", gate.socket }
    assert.matches("chmod %-R o%-w", status)
  end)

  it("are one warning if everyone may write to files", function()
    process.write(directory .. "/policies/other.lua", (fixtures.echo:gsub('"echo"', '"other"')))
    os.execute(("chmod 666 %s/policies/*.lua"):format(directory))
    local said = checked()
    assert.matches("echo%.lua %(and 1 more%): mode 0666", said)
    assert.equal(1, select(2, said:gsub("warning:", "")))
  end)

  it("are a warning if everyone may write to the folder of their modules, or to a module", function()
    os.execute(("mkdir -m 777 %s/policies/lib"):format(directory))
    process.write(directory .. "/policies/lib/words.lua", "return { one = 1 }")
    assert.matches("lib: mode 0777 lets every user", checked())
    os.execute(("chmod 755 %s/policies/lib; chmod 666 %s/policies/lib/words.lua"):format(directory, directory))
    assert.matches("lib/words%.lua: mode 0666 lets every user", checked())
  end)

  it("are a warning if they belong to another user", function()
    if unistd.geteuid() ~= 0 then pending "only root may give files away" return end
    os.execute(("chown 4711 %s/policies/echo.lua"):format(directory))
    assert.matches("belongs to uid 4711", checked())
  end)

  it("are a warning, as the configuration and the servers' files are, if everyone may write to those", function()
    for _, name in ipairs { "toolgate.lua", "mcp.json" } do
      process.write(directory .. "/toolgate.lua", "return { policies = 'policies', mcp_config = 'mcp.json' }")
      process.write(directory .. "/mcp.json", '{"mcpServers":{}}')
      os.execute(("chmod 666 %s/%s"):format(directory, name))
      local _, out, err = process.run { daemon.binary, "serve", "--check", "-c", directory .. "/toolgate.lua" }
      local warning = "%s: mode 0666 lets every user change what agents may do: chmod -R o-w %s/%s"
      assert.matches(warning:format(name, directory, name), out .. err, 1, true)
      os.execute(("chmod 644 %s/%s"):format(directory, name))
    end
  end)

  it("are a warning if there are none", function()
    os.remove(directory .. "/policies/echo.lua")
    assert.matches("warning: .*holds no policy", checked())
  end)
end)
