-- The docs: printed policies load and pass their examples, links resolve, and the demo prints what README.md shows.

-- Blocks of Lua that are complete policies, by tool name.
local function policies_in(page)
  local found = {}
  for block in process.read(page):gmatch "\n```lua\n(.-)\n```" do
    local name = block:match '\nreturn tool "([%w_]+)"'
                 or (block:find("\nreturn policy {", 1, true) and block:match "^%-%- ([%w_]+): ")
    if name then found[name] = block end
  end
  return found
end

describe("the policies printed in", function()
  for tool, page in pairs { search_orders = "README.md", close_ticket = "docs/policy.md", guests = "docs/policy.md",
                            search_web = "docs/policy.md" } do
    it(page .. " (" .. tool .. ") load and pass their examples", function()
      local source = assert(policies_in(page)[tool], "no policy of " .. tool .. " in " .. page)
      local folder = process.directory()
      process.write(folder .. "/" .. tool .. ".lua", source)
      local code, out, err = process.run { daemon.binary, "test", folder }
      process.remove(folder)
      assert.equal(0, code, out .. err)
      assert.matches("0 failed", out)
    end)
  end
end)

-- The anchor that GitHub makes of a heading.
local function anchor_of(heading)
  return (heading:lower():gsub("[`*]", ""):gsub("[^%w%s_-]", ""):gsub("%s", "-"))
end

local function anchors_of(page)
  local found = {}
  for heading in ("\n" .. page:gsub("\n```.-\n```", "")):gmatch "\n#+ ([^\n]+)" do found[anchor_of(heading)] = true end
  return found
end

describe("the links of the pages", function()
  local pages = {}
  for name in io.popen("ls README.md docs/*.md docs/clients/*.md docs/recipes/*.md"):lines() do
    pages[name] = process.read(name)
  end

  -- docs/recipes/../x.md: docs/x.md
  local function resolved(page, target)
    local path = (page:match "^(.*/)" or "") .. target
    local before
    repeat
      before = path
      path = path:gsub("[^/]+/%.%./", "")
    until path == before
    return path
  end

  for name, page in pairs(pages) do
    it("in " .. name .. " resolve", function()
      for target, anchor in page:gsub("\n```.-\n```", ""):gmatch "%]%(([%w%./_-]*)#?([%w_-]*)%)" do
        local file = target == "" and name or resolved(name, target)
        if target ~= "" then
          local there = io.open(file) or io.open(file .. "/.")
          assert.truthy(there, name .. " links to " .. target .. ", which is not there")
          there:close()
        end
        if anchor ~= "" then
          assert.truthy(anchors_of(pages[file])[anchor],
                        name .. " links to " .. file .. "#" .. anchor .. ", a heading that is not there")
        end
      end
    end)
  end
end)

describe("the shipped policies", function()
  it("pass their examples", function()
    process.runs { daemon.binary, "test", "policies" }
  end)

  it("begin with a comment that names the tool and its purpose", function()
    for name in io.popen("ls policies/*.lua"):lines() do
      local tool = name:match "([%w_]+)%.lua$"
      assert.matches("^%-%- " .. tool .. ": ", process.read(name), name)
    end
  end)

  it("each have examples of a pass, a repair and a refusal", function()
    for name in io.popen("ls policies/*.lua"):lines() do
      local source = process.read(name)
      if source:find 'return tool "' then
        for _, verdict in ipairs { '"pass', '"repair' } do
          assert.truthy(source:find("gives = " .. verdict, 1, true), name .. " has no example that gives " .. verdict)
        end
        assert.truthy(source:find('gives = "refuse', 1, true) or source:find('gives = "ask', 1, true),
                      name .. " has no example of a refusal")
      end
    end
  end)
end)

describe("the demo", function()
  it("gets every expected verdict", function()
    local out = process.runs { "luajit", "tests/support/demo.lua", daemon.binary }
    assert.matches("every verdict as expected", out)
    local shown = process.read("README.md"):match "Some of what it prints:\n\n```\n(.-)\n```"
    for line in shown:gmatch "[^\n]+" do
      local printed = line:match "^ *…$" or ("\n" .. out):find("\n" .. line .. "\n", 1, true)
      assert.truthy(printed, "README.md shows what the demo does not print (paste it again): " .. line)
    end
    assert.is_nil(out:find("\27", 1, true)) -- colour is for terminals
  end)

  it("fails on an unexpected verdict", function()
    local folder = process.directory()
    for _, name in ipairs { "demo_stage.lua", "daemon.lua", "client.lua", "process.lua" } do
      process.write(folder .. "/" .. name, process.read("tests/support/" .. name))
    end
    local script = process.read "tests/support/demo.lua"
    script = script:gsub('"halt loop"', '"pass ok"'):gsub('root %.%. "policies"', '"policies"')
    process.write(folder .. "/demo.lua", script)
    local code, out = process.run { "luajit", folder .. "/demo.lua", daemon.binary }
    process.remove(folder)
    assert.equal(1, code)
    assert.matches("UNEXPECTED: wanted pass ok, got halt loop", out)
  end)
end)

describe("the replay in README.md", function()
  it("prints what the page shows", function()
    local shown = process.read("README.md"):match "\n%$ toolgate (replay [^\n]+\n.-)\n```"
    local arguments, lines = shown:match "^([^\n]+)\n(.*)$"
    local argv = { daemon.binary }
    for word in arguments:gmatch "%S+" do argv[#argv + 1] = word end
    local printed = process.runs(argv)
    for line in lines:gmatch "[^\n]+" do
      if line ~= "…" then assert.truthy(printed:find(line, 1, true), "not printed: " .. line) end
    end
  end)
end)
