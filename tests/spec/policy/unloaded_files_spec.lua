-- Files beside the policies that look like one and are not loaded: no tool is left without its guard in silence.

describe("a file that looks like a policy and is not loaded", function()
  local folder
  before_each(function()
    folder = process.directory()
    process.write(folder .. "/echo.lua", fixtures.echo)
    process.write(folder .. "/tools.json", '[{"name":"get_spec","description":"D.","inputSchema":{"type":"object"}}]')
  end)

  local GUARD = [[
-- get_spec: nobody may call it.
return tool "get_spec" { effects = "read", check = function() return refuse("no", "nobody may", "Do not.") end,
  examples = { { "any call", args = {}, gives = "refuse no" } } }
]]

  local function checks()
    local code, out, err = process.run { daemon.binary, "serve", "--check", "--policies", folder, "--tools",
                                         folder .. "/tools.json" }
    return out .. err, code
  end

  it("as it ends as specs do is an error that says so", function()
    process.write(folder .. "/get_spec.lua", GUARD)
    local said, code = checks()
    assert.equal(1, code, said)
    assert.truthy(said:find("get_spec.lua: it returns a policy, and files that end in _spec.lua are not loaded", 1, true), said)
    assert.truthy(said:find("rename it, e.g. to " .. folder .. "/get_spec_policy.lua", 1, true), said)
  end)

  it("is none of these if it is a spec", function()
    process.write(folder .. "/echo_spec.lua", 'local toolgate = require "toolgate"\n'
                  .. 'describe("echo", function() it("works", function() return toolgate.tool "x" end) end)\n')
    local said, code = checks()
    assert.equal(0, code, said)
    assert.truthy(said:find("warnings: 0", 1, true), said)
  end)

  it("is not what toolgate new writes", function()
    process.runs { daemon.binary, "new", "get_spec", "--policies", folder }
    assert.truthy(process.read(folder .. "/get_spec_policy.lua"):find("get_spec", 1, true))
    assert.equal("", process.read(folder .. "/get_spec.lua"))
  end)

  for _, name in ipairs { "guard.LUA", "guard.Lua", "guard.lua.txt" } do
    it("as its name ends in another way is a warning: " .. name, function()
      process.write(folder .. "/" .. name, GUARD)
      local said = checks()
      assert.truthy(said:find(name .. ": is not loaded: only files that end in .lua are", 1, true), said)
    end)
  end

  it("as it lies in a subfolder is a warning if its tool runs without a policy", function()
    os.execute("mkdir -p '" .. folder .. "/team' '" .. folder .. "/other'")
    process.write(folder .. "/team/get_spec.lua", GUARD)
    process.write(folder .. "/other/any.lua", GUARD)
    local said = checks()
    assert.truthy(said:find("team/get_spec.lua: is not loaded, so that the tool of this name runs without a policy", 1, true),
                  said)
    assert.truthy(said:find("warnings: 1", 1, true), said)
    process.write(folder .. "/guard.lua", GUARD)
    assert.truthy(checks():find("warnings: 0", 1, true))
  end)
end)
