-- The blocks of the pages are what they look like: Python that a file may hold, and configurations that the program takes.

-- { page, number, text } of each block of one language.
local function blocks(language)
  local found = {}
  for page in io.popen("ls README.md clients/*/README.md docs/*.md docs/clients/*.md docs/recipes/*.md"):lines() do
    local number = 0
    for text in process.read(page):gmatch("\n```" .. language .. "\n(.-)\n```") do
      number = number + 1
      found[#found + 1] = { page = page, number = number, text = text .. "\n" }
    end
  end
  return found
end

describe("the pages", function()
  it("have Python that compiles as a file does, without an await at its top level", function()
    if os.execute "command -v python3 >/dev/null" ~= 0 then return pending "python3 is not here" end
    local count = 0
    for _, block in ipairs(blocks "python") do
      process.runs({ "python3", "-c", "import sys; compile(sys.stdin.read(), 'page', 'exec')" },
                   { input = block.text })
      count = count + 1
    end
    assert.is_true(count >= 10, count)
  end)

  -- Folders, and names of users, groups and programs, that are not on this machine.
  local function for_this_machine(text)
    text = text:gsub('"/etc/toolgate/', '"')
    for _, name in ipairs { "support", "toolgate" } do text = text:gsub('"' .. name .. '"', '"root"') end
    return (text:gsub('"mcp%-server%-filesystem"', '"true"'))
  end

  it("have configurations that the program takes", function()
    local count = 0
    for _, block in ipairs(blocks "lua") do
      if ("\n" .. block.text):find "\nreturn {" then
        local folder = process.directory()
        os.execute(("mkdir '%s/policies'"):format(folder))
        process.write(folder .. "/policies/t.lua", '-- t: a tool. Read only.\nreturn tool "t" { description = "T.", '
                      .. 'effects = "read", schema = json [=[{"type":"object"}]=], run = function() return {} end }\n')
        process.write(folder .. "/tools.json", "[]")
        local file = process.write(folder .. "/toolgate.lua", for_this_machine(block.text))
        local code, out, err = process.run { daemon.binary, "serve", "--check", "-c", file }
        process.remove(folder)
        assert.equal(0, code, ("%s, block %d: %s"):format(block.page, block.number, out .. err))
        count = count + 1
      end
    end
    assert.is_true(count >= 7, count)
  end)

  it("name only values of on_outage that there are", function()
    local count = 0
    for page in io.popen "ls README.md docs/*.md docs/recipes/*.md":lines() do
      for line in process.read(page):gmatch "[^\n]*on_outage[^\n]*" do
        local text = line:gsub("`[%w_.]+ *= *{[^`]*`", ""):gsub('redis *= *"[^"]*"', "")
        for value in text:gmatch '"(%l+)"' do
          assert.truthy(({ ["local"] = 1, closed = 1, open = 1 })[value], page .. ": " .. line)
          count = count + 1
        end
      end
    end
    assert.is_true(count >= 5, count)
  end)
end)
