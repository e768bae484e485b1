-- Policies that guard no tool: a misspelled name is refused, a silent server is waited for, what a server lacks is an
-- error in status and log.

local guard = [[
-- %s: guards a tool that something else defines.
return tool "%s" { check = function(args) return refuse("no", "No.", "Stop.") end }
]]
local function bare(name) return guard:format(name, name) end
local function over(fields) return "-- Lies over several tools.\nreturn policy { " .. fields .. " }\n" end

local tools = [=[[{"name":"edit_file","inputSchema":{"type":"object"}},{"name":"write_file","inputSchema":{"type":"object"}}]]=]

local directory
before_each(function() directory = process.directory() end)

-- An upstream whose tools are in a JSON file; it is silent until let_speak.
local function silent(offered)
  return fixtures.serving("fs", "offering", { OFFER = process.write(directory .. "/fs.json", offered or tools),
                                              GATE = directory .. "/open" })
end
local function let_speak() process.write(directory .. "/open", "") end

local function unmatched(gate)
  local found = {}
  for _, one in ipairs(gate:status().generation.unmatched) do
    found[#found + 1] = one.file:match "[^/]*$" .. " " .. one.tool .. " " .. one.state
  end
  return found
end

local function check(...)
  os.execute("rm -f " .. directory .. "/out " .. directory .. "/err")
  local child = process.start({ daemon.binary, "serve", "--check", "--policies", "policies", ... },
                              { stdin = "/dev/null", stdout = directory .. "/out", stderr = directory .. "/err",
                                directory = directory })
  local _, code = child:wait()
  return process.read(directory .. "/out") .. process.read(directory .. "/err"), code
end

local function write(files)
  os.execute("rm -rf " .. directory .. "/policies; mkdir -p " .. directory .. "/policies")
  process.write(directory .. "/tools.json", tools)
  for name, source in pairs(files) do process.write(directory .. "/policies/" .. name, source) end
end

describe("a policy whose tool does not exist", function()
  it("is refused at load if a tool without policy has almost its name", function()
    for _, name in ipairs { "edit_fiel", "edit_flie", "edit_files", "edt_file", "editFile", "edit-file" } do
      write { [name .. ".lua"] = bare(name) }
      local said, code = check("--tools", "tools.json")
      assert.equal(1, code, name)
      assert.truthy(said:find(name .. ".lua: guards no tool: did you mean 'edit_file'?", 1, true), said)
    end
  end)

  it("is not taken for a misspelling of a name that is only similar", function()
    for _, name in ipairs { "edit_line_text", "read_file", "file", "edit_file2", "writes" } do
      write { [name .. ".lua"] = bare(name) }
      local said, code = check("--tools", "tools.json")
      assert.equal(0, code, said)
      assert.truthy(said:find(name .. ".lua: guards nothing yet, as no tool '" .. name .. "' is known", 1, true), said)
    end
  end)

  it("is not taken for a misspelling of a tool that has a policy, nor if it defines its tool", function()
    write { ["edit_fil.lua"] = bare "edit_fil", ["edit_file.lua"] = bare "edit_file" }
    local said, code = check("--tools", "tools.json")
    assert.equal(0, code, said)
    write { ["edit_fil.lua"] = (bare "edit_fil":gsub("{ check", '{ description = "D.", schema = params {}, check')) }
    said, code = check("--tools", "tools.json")
    assert.equal(0, code, said)
    assert.falsy(said:find("guards", 1, true), said)
  end)

  it("says what would make it take effect, and guards a tool once an agent registers it", function()
    local gate = daemon.start { policies = { ["send_mail.lua"] = bare "send_mail" } }
    assert.truthy(gate:status().generation.warnings[1]:find("takes effect when an agent registers", 1, true))
    assert.same({}, unmatched(gate))
    local client = gate:connect()
    client:asks("toolgate/register", { tools = { { name = "send_mail", inputSchema = { type = "object" } } } })
    assert.equal("no", client:checks("send_mail", { to = "a" }).code)
  end)

  it("waits for a server that has not spoken, and is an error once it has spoken and lacks the tool", function()
    local gate = daemon.start { late = true, config = silent(), policies = {
      ["edit_fiel.lua"] = bare "edit_fiel", ["move.lua"] = (bare "move":gsub("{ check", '{ upstream = "fs", check')),
      ["over.lua"] = over 'tools = { "copy_*", "write_file" }' } }
    assert.same({ "edit_fiel.lua edit_fiel waiting", "move.lua move waiting", "over.lua copy_* waiting",
                  "over.lua write_file waiting" }, unmatched(gate))
    gate:logs "waiting for a server that has not listed its tools yet"
    let_speak()
    process.eventually("the server has spoken", function() return #unmatched(gate) == 3 end)
    assert.same({ "edit_fiel.lua edit_fiel error", "move.lua move error", "over.lua copy_* error" }, unmatched(gate))
    assert.truthy(gate:logs " error policy_without_tool ":find("did you mean 'edit_file'?", 1, true))
  end)

  it("is refused by a reload, which keeps what is served", function()
    local gate = daemon.start { tools = tools, policies = { ["edit_file.lua"] = bare "edit_file" },
                                arguments = { "--no-watch" } }
    gate:write_policy("write_fiel.lua", bare "write_fiel")
    local answer = gate:connect():asks "toolgate/reload"
    assert.is_false(answer.ok)
    assert.truthy(answer.errors[1]:find("write_fiel.lua: guards no tool: did you mean 'write_file'?", 1, true))
    assert.equal("no", gate:connect():checks("edit_file", { a = 1 }).code)
  end)

  it("of a server that has spoken is refused by a reload, too", function()
    let_speak()
    local gate = daemon.start { config = silent(), policies = { ["echo.lua"] = fixtures.echo }, arguments = { "--no-watch" } }
    process.eventually("the server has spoken", function() return gate:status().generation.tools == 3 end)
    gate:write_policy("edit.lua", (bare "edit":gsub("{ check", '{ upstream = "fs/edit_fiel", check')))
    local answer = gate:connect():asks "toolgate/reload"
    assert.is_false(answer.ok)
    assert.truthy(answer.errors[1]:find("offers no tool 'edit_fiel' (did you mean 'edit_file'?)", 1, true))
  end)
end)

describe("a pattern that matches no tool", function()
  local function said_of(fields)
    write { ["over.lua"] = over(fields) }
    return check("--tools", "tools.json")
  end

  it("is refused with the closest name", function()
    local said, code = said_of 'tools = { "write_file", "edit_fiel" }'
    assert.equal(1, code)
    assert.truthy(said:find("over.lua: tools: 'edit_fiel' is no tool: did you mean 'edit_file'?", 1, true), said)
    said, code = said_of 'tools = "wirte_*"'
    assert.equal(1, code)
    assert.truthy(said:find("over.lua: tools: 'wirte_*' is no tool: did you mean 'write_*'?", 1, true), said)
  end)

  it("waits for tools that agents register if an example calls one, or nothing else is known", function()
    local said, code = said_of [[tools = "page_*", examples = { { "x", tool = "page_new", args = {}, gives = "pass" } }]]
    assert.equal(0, code, said)
    assert.truthy(said:find("takes effect when an agent registers one", 1, true), said)
    write { ["over.lua"] = over 'tools = "page_*"' }
    said, code = check()
    assert.equal(0, code, said)
  end)
end)

describe("a load with many policies", function()
  it("compares names without becoming quadratic", function()
    local files, list = {}, {}
    for i = 1, 1000 do
      local letters = ("%04d"):format(i):gsub("%d", function(d) return string.char(97 + tonumber(d) * 2) end)
      files["bare_" .. letters .. ".lua"] = bare("bare_" .. letters)
      list[i] = ('{"name":"known_%s","inputSchema":{"type":"object"}}'):format(letters)
    end
    write(files)
    process.write(directory .. "/many.json", "[" .. table.concat(list, ",") .. "]")
    local said, code = check("--tools", "many.json")
    assert.equal(0, code, said:sub(1, 500))
    assert.truthy(said:find("warnings: 1000", 1, true), said:sub(-200))
  end)
end)
