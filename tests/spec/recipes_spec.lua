-- docs/recipes: what the pages tell the reader to write is written, run, and says what the pages show.
local process = require "process"
local daemon = require "daemon"

local HOME = "/run/toolgate/toolgate.sock" -- where the pages have the daemon

-- The blocks of one language, in the order of the page.
local function blocks(page, language)
  local found = {}
  for block in (process.read("docs/recipes/" .. page .. ".md")):gmatch("\n```" .. language .. "\n(.-)\n```") do
    found[#found + 1] = block .. "\n"
  end
  assert(#found > 0, page .. " has no block of " .. language)
  return found
end

local function with_socket(text, path)
  return (text:gsub(HOME:gsub("%p", "%%%0"), (path:gsub("%%", "%%%%"))))
end

-- "…" on a line of its own stands for any lines.
local function shows(page, said)
  local at = 1
  for line in page:gmatch "[^\n]+" do
    if line ~= "…" then
      local from, to = said:find(line, at, true)
      assert(from, ("the page shows %q; what came is:\n%s"):format(line, said))
      at = to + 1
    end
  end
end

local function holds(source)
  local folder = process.directory()
  process.write(folder .. "/" .. source:match 'return tool "([%w_]+)"' .. ".lua", source)
  local code, out, err = process.run { daemon.binary, "test", folder }
  local _, found, complaints = process.run { daemon.binary, "lint", folder }
  process.remove(folder)
  assert.equal(0, code, out .. err)
  assert.equal("", found .. complaints)
end

describe("the recipe for a Python agent", function()
  after_each(daemon.stop_all)

  it("guards functions in their own process", function()
    local gate = daemon.start {}
    local guard, agent = unpack(blocks("python-agent", "python"))
    process.write(gate.directory .. "/guard.py", guard)
    process.write(gate.directory .. "/agent.py", with_socket(agent, gate.socket))
    local code, out, err = process.run({ "python3", "agent.py" }, { directory = gate.directory })
    assert.equal(0, code, err)
    shows(blocks("python-agent", "text")[1], out)
  end)

  it("has a policy that holds its examples, and lies over what the function declares", function()
    local policy = blocks("python-agent", "lua")[1]
    holds(policy)
    local gate = daemon.start { policies = { ["get_stock.lua"] = policy } }
    local guard, agent = unpack(blocks("python-agent", "python"))
    process.write(gate.directory .. "/guard.py", guard)
    process.write(gate.directory .. "/agent.py", with_socket(agent, gate.socket):gsub("Bern", "Berne"))
    local code, out, err = process.run({ "python3", "agent.py" }, { directory = gate.directory })
    assert.equal(0, code, err)
    assert.matches("did you mean 'Bern'?", out, 1, true)
  end)
end)

describe("the recipe for a coding assistant", function()
  after_each(daemon.stop_all)

  it("takes the file that the assistant had", function()
    local folder = process.directory()
    local file = process.write(folder .. "/servers.json", blocks("coding-assistant", "json")[1])
    local code, out, err = process.run { daemon.binary, "serve", "--check", "--mcp-config", file, "--policies", folder }
    process.remove(folder)
    assert.equal(0, code, out .. err)
  end)

  it("has a policy that says what the page shows", function()
    local policy = blocks("coding-assistant", "lua")[1]
    holds(policy)
    local gate = daemon.start {
      policies = { ["write_file.lua"] = policy },
      config = 'return { upstreams = { files = { command = "cat" } } }', -- never asked: the policy refuses before
    }
    local code, out = process.run { daemon.binary, "call", "write_file", '{"path":"a/yarn.lock","content":""}',
                                    "--socket", gate.socket }
    assert.equal(1, code)
    shows(blocks("coding-assistant", "text")[1]:gsub("package%-lock%.json", "yarn.lock"), out)
  end)
end)

describe("the recipe for a REST API", function()
  it("has policies that hold their examples, and a configuration that loads with them", function()
    local folder = process.directory()
    os.execute("mkdir " .. folder .. "/policies")
    local configuration, get, search, close = unpack(blocks("rest-api", "lua"))
    process.write(folder .. "/toolgate.lua", configuration)
    for _, policy in ipairs { get, search, close } do
      holds(policy)
      process.write(folder .. "/policies/" .. policy:match 'return tool "([%w_]+)"' .. ".lua", policy)
    end
    local code, out, err = process.run { daemon.binary, "serve", "--check", "-c", folder .. "/toolgate.lua" }
    process.remove(folder)
    assert.equal(0, code, out .. err)
    assert.matches("tools: 3, policies: 3", out, 1, true)
  end)
end)
