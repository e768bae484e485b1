-- The manual pages and the sample configuration agree with the program's own tables.

local function output_of(...)
  local out = process.runs { ... }
  return out
end

local function plain(roff)
  return (roff:gsub("\\%-", "-"):gsub("\\f[BIRP]", ""):gsub("\\%(aq", "'"))
end

local function commands()
  local names = {}
  for name in output_of(daemon.binary, "--help"):gmatch "\n  ([a-z]+) " do names[#names + 1] = name end
  return names
end

describe("toolgate(1)", function()
  local page = plain(process.read "man/toolgate.1")

  it("has a synopsis and a section of every subcommand", function()
    for _, command in ipairs(commands()) do
      assert.truthy(page:find("toolgate " .. command .. "\n", 1, true), "no synopsis of " .. command)
      assert.truthy(page:find("\n.SS " .. command .. "\n", 1, true), "no section .SS " .. command)
    end
  end)
end)

describe("a generated page", function()
  it("toolgate(1) is what man/command_page.lua prints (make reference)", function()
    assert.equal(output_of("luajit", "man/command_page.lua", daemon.binary, "man/toolgate.1.in"),
                 process.read "man/toolgate.1")
  end)

  it("toolgate-policy(5) is what man/policy_page.lua prints (make reference)", function()
    assert.equal(output_of("luajit", "man/policy_page.lua", "docs/vocabulary.md", "src/base/version.h"),
                 process.read "man/toolgate-policy.5")
  end)

  it("toolgate.lua(5) is what man/config_page.lua prints (make reference)", function()
    assert.equal(output_of("luajit", "man/config_page.lua", daemon.binary, "docs/toolgate.lua"),
                 process.read "man/toolgate.lua.5")
  end)
end)

describe("the version", function()
  local version = process.read("src/base/version.h"):match 'TOOLGATE_VERSION "([^"]+)"'

  it("of debian/changelog is the program's", function()
    assert.equal(version, process.read("debian/changelog"):match "^toolgate %(([^)-]+)%-")
  end)

  it("of the manual pages is the program's", function()
    for page in io.popen("ls man/*.[15]"):lines() do
      assert.equal(version, process.read(page):match '\n?%.TH [^\n]*"toolgate ([^"]+)"', page)
    end
  end)
end)

-- Every line that begins with "--" and a name, or closes such a table, without its dashes.
local function with_all_settings(sample)
  return (("\n" .. sample):gsub("(\n *)%-%-([%w_]+ = )", "%1%2"):gsub("(\n *)%-%-(})", "%1%2"))
end

local function load_table(text)
  return setfenv(assert(loadstring(text)), {})()
end

-- { "limits.depth" = 128 }; the name of an upstream is NAME, a list of tables is its first item.
local function flatten(value, path, found)
  for key, item in pairs(value) do
    local name = path == "" and key or path .. "." .. (path == "upstreams" and "NAME" or key)
    if path == "upstreams" then
      flatten(item, name, found)
    else
      found[name] = item
      local is_map = type(item) == "table" and next(item) ~= nil and type(next(item)) == "string"
      if is_map and not name:find "%.env$" and not name:find "%.headers$" then flatten(item, name, found) end
      if type(item) == "table" and type(item[1]) == "table" then
        for _, entry in ipairs(item) do flatten(entry, name .. "[]", found) end
      end
    end
  end
  return found
end

describe("docs/toolgate.lua", function()
  local sample = process.read "docs/toolgate.lua"
  local given = flatten(load_table(with_all_settings(sample)), "", {})
  local keys, defaults = {}, {}
  for path, default in output_of(daemon.binary, "words", "--format", "config"):gmatch "([^\t\n]+)\t[^\t]*\t([^\n]*)\n" do
    keys[path] = true
    if default ~= "" then defaults[path] = default end
  end

  it("has every key of the configuration", function()
    for path in pairs(keys) do assert.is_not_nil(given[path], path .. " is missing (docs/toolgate.lua, make reference)") end
  end)

  it("has no key that the configuration does not know", function()
    for path in pairs(given) do assert.truthy(keys[path], path .. " is unknown") end
  end)

  it("shows the default of every key that has one", function()
    for path, default in pairs(defaults) do
      local value = given[path]
      assert.equal(default, type(value) == "string" and ('"%s"'):format(value) or tostring(value), path)
    end
  end)

  it("sets nothing as it is, and loads", function()
    for path, value in pairs(flatten(load_table(sample), "", {})) do assert.is_table(value, path .. " is set") end
    process.runs { daemon.binary, "serve", "-c", "docs/toolgate.lua", "-p", "policies", "--check" }
  end)

  it("loads with every setting", function()
    local directory = process.directory()
    assert.equal(0, (process.run { "mkdir", directory .. "/schemas" }))
    -- Names of this host, files that it may not have, and the mode of a date, which must not come.
    local text = with_all_settings(sample):gsub('groups = { "toolgate" }', "groups = { 0 }"):gsub('\n[^\n]*ca_file[^\n]*', "")
      :gsub('mode = "enforce"', 'mode = "shadow"'):gsub('(shadow_until = )"[%d-]+"', '%1"9999-12-31"')
      :gsub('"tools.json"', ('%q'):format(process.write(directory .. "/tools.json", "[]")))
      :gsub('"mcp.json"', ('%q'):format(process.write(directory .. "/mcp.json", '{"mcpServers":{}}')))
    local path = process.write(directory .. "/toolgate.lua", text)
    local code, out, err = process.run { daemon.binary, "test", "-c", path, daemon.root .. "/policies" }
    process.remove(directory)
    assert.equal(0, code, out .. err)
  end)
end)
