-- A command that finds nothing to do says so: what it looked for, where, and how to name it.

local GOOD = [[
-- good: repeats a text. Read only.
return tool "good" {
  schema = params { t = str "Text" }, effects = "read", run = function(args) return args.t end,
  examples = { { "a text", args = { t = "x" }, gives = "pass" } },
}
]]

describe("nothing to do", function()
  local folder
  before_each(function()
    folder = process.directory()
    os.execute("mkdir -p '" .. folder .. "/empty' '" .. folder .. "/mixed'")
  end)

  local function toolgate(...)
    return process.run({ daemon.binary, ... }, { directory = folder })
  end

  local function fails(said, ...)
    local code, out, err = toolgate(...)
    assert.equal(1, code, err)
    assert.truthy((out .. err):find(said, 1, true), out .. err)
    return out, err
  end

  it("test of an empty, a missing and no folder fails and names it", function()
    fails("no policy to test in empty", "test", "empty")
    fails("policies nowhere", "test", "nowhere")
    fails("no policy to test in policies, which does not exist", "test")
  end)

  it("test runs the examples of all other files beside one that does not load", function()
    process.write(folder .. "/mixed/a_good.lua", GOOD)
    process.write(folder .. "/mixed/broken.lua", "-- broken: not Lua.\nreturn tool \"broken\" {\n")
    process.write(folder .. "/mixed/z_good.lua", (GOOD:gsub("good", "z_good")))
    local out, err = fails("mixed/broken.lua:3", "test", "mixed")
    assert.truthy(out:find("good: a text", 1, true) and out:find("z_good: a text", 1, true), out)
    assert.truthy(out:find("2 passed, 0 failed", 1, true) and out:find("1 error", 1, true), out)
    assert.is_nil(err:find("a_good", 1, true))
  end)

  it("serve --check of a folder without anything fails, serve warns", function()
    fails("there is no folder policies in " .. folder, "serve", "--check")
    fails("empty holds no policy", "serve", "--check", "--policies", "empty")
    local gate = daemon.start { policies = folder .. "/empty" }
    gate:logs "nothing is served"
    assert.equal(1, #gate:status().generation.warnings)
  end)

  it("serve --check says that serve would not start, also where there is nothing to serve", function()
    local out = fails("a host needs redis:// before it", "serve", "--check", "--redis", "localhost:6379")
    assert.truthy(out:find("1 error, 1 warning: serve would not start", 1, true), out)
  end)

  it("lint and tools of an empty folder say so", function()
    local code, out, err = toolgate("lint", "empty")
    assert.equal(2, code)
    assert.truthy((out .. err):find("empty holds no policy", 1, true), out .. err)
    err = select(3, toolgate("tools", "--policies", "empty"))
    assert.truthy(err:find("empty holds no policy", 1, true), err)
  end)

  it("serve --check names a command that cannot be started", function()
    process.write(folder .. "/not_executable", "x")
    process.write(folder .. "/c.lua", [[return { upstreams = {
      gone = { command = "no-such-command-here" }, text = { command = "./not_executable" }, fine = { command = "sh" } } }]])
    local _, err = fails("no-such-command-here", "serve", "--check", "-c", "c.lua")
    assert.truthy(err:find("'gone'", 1, true) and err:find("'text'", 1, true), err)
    assert.is_nil(err:find("'fine'", 1, true))
  end)

  it("check prints a verdict that has more values than a call may have", function()
    process.write(folder .. "/tools.json", [==[[{"name":"get_x","inputSchema":{"type":"object","properties":
      {"rows":{"type":"array","items":{"type":"object","properties":{"first_name":{"type":"string"}}}}}}}]]==])
    local rows, many = ('{"firstName":"a"},'):rep(1000):sub(1, -2), ("0,"):rep(96000):sub(1, -2)
    process.write(folder .. "/arguments.json", '{"rows":[' .. rows .. '],"many":[' .. many .. "]}")
    local out = process.runs({ "sh", "-c", 'exec "$0" check get_x - --tools tools.json --json < arguments.json',
                               daemon.binary }, { directory = folder })
    assert.truthy(out:find('"path":"/rows/999/first_name"', 1, true))
  end)

  it("an option does not take the next option for its value", function()
    local code, _, err = toolgate("serve", "--socket", "--check")
    assert.equal(2, code)
    assert.truthy(err:find("--socket needs a PATH, got the option '--check'", 1, true), err)
    for _, command in ipairs { "tools", "status" } do -- one in C, one in Lua
      err = select(3, process.run { daemon.binary, command, "--socket=--check" })
      assert.truthy(err:find("no daemon at --check", 1, true), err)
    end
    code, _, err = toolgate("serve", "--policies", "--no-watch", "--check")
    assert.equal(2, code, err)
  end)
end)
