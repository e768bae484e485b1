-- toolgate new: the policy it writes loads, passes its own examples, and invents nothing.
local json = require("client").json

local CORPUS = "../shared/data/corpus"

describe("toolgate new", function()
  local folder

  before_each(function() folder = process.directory() end)

  -- Runs in the temporary folder; returns code, stdout, stderr.
  local function toolgate(...)
    return process.run({ daemon.binary, ... }, { directory = folder })
  end

  local function policy(name) return process.read(folder .. "/policies/" .. name .. ".lua") end

  local function write(name, value)
    return process.write(folder .. "/" .. name, type(value) == "string" and value or json.encode(value))
  end

  local function says(text, words) assert.truthy(text:find(words, 1, true), "no '" .. words .. "' in:\n" .. text) end
  local function says_not(text, words) assert.is_nil(text:find(words, 1, true), text) end

  -- Its examples pass, so serve would load it.
  local function holds(...)
    local code, out, err = toolgate("test", ...)
    assert.equal(0, code, out .. err)
    return out
  end

  local ORDER = [[{"type":"object","additionalProperties":false,"required":["order_id","action"],
    "description":"Change an order.",
    "properties":{"order_id":{"type":"string","format":"uuid","description":"The order"},
                  "customer_id":{"type":"string","title":"Customer Id"},
                  "action":{"type":"string","enum":["cancel","return"],"description":"What shall happen"},
                  "count":{"type":"integer","minimum":1,"default":2},
                  "tags":{"type":"array","items":{"type":"string"},"maxItems":3}}}]]

  it("writes a blank policy without a source, and invents nothing", function()
    local code, out, err = toolgate("new", "close_ticket")
    assert.equal(0, code, err)
    golden.check("cli", "new: a blank policy", out)
    golden.check("new", "without a source", policy "close_ticket")
    local text = policy "close_ticket"
    says(text, 'return tool "close_ticket" {')
    for _, invented in ipairs { "query", "limit", "ticket_id", "a guess" } do says_not(text, invented) end
    says_not(text, "\n  effects")
    holds()
    local _, tools = toolgate("tools", "--json")
    assert.same({}, json.decode(tools)[1].inputSchema.properties or {})
  end)

  for _, template in ipairs { "blank", "read", "write", "search", "http" } do
    it("writes a policy whose examples pass from the template " .. template, function()
      local code, _, err = toolgate("new", "my_tool", "--template", template)
      assert.equal(0, code, err)
      golden.check("new", "template " .. template, policy "my_tool")
      says_not(policy "my_tool", "TOOL")
      says(policy "my_tool", "TODO")
      says(holds(), " 0 failed")
    end)
  end

  it("lists the templates, and accepts only one source", function()
    local code, _, err = toolgate("new", "x", "--template", "raed")
    assert.equal(2, code)
    golden.check("cli", "new: an unknown template", err)
    write("s.json", "{}")
    code, _, err = toolgate("new", "x", "--template", "read", "--schema", "s.json")
    assert.equal(2, code)
    golden.check("cli", "new: two sources", err)
  end)

  it("prints follow-up commands that run as printed", function()
    write("odd.json", { { name = "find two things", inputSchema = { type = "object" } } })
    for _, name in ipairs { "find_things", "find two things" } do
      local _, out = toolgate("new", name, name:find " " and "--tools" or nil, name:find " " and "odd.json" or nil)
      for _, command in ipairs { "test", "check" } do
        local line = assert(out:match("\n  (toolgate " .. command .. "[^\n]*)"), out)
        process.runs({ "sh", "-c", (line:gsub("^toolgate", '"$0"')), daemon.binary },
                     { directory = folder })
      end
    end
  end)

  it("copies a schema into the policy unchanged", function()
    write("order.json", ORDER)
    assert.equal(0, (toolgate("new", "change_order", "--schema", "order.json")))
    local text = policy "change_order"
    golden.check("new", "from a schema", text)
    says(holds(), "2 passed, 0 failed")
    local _, tools = toolgate("tools", "--json")
    assert.same(json.decode(ORDER), json.decode(tools)[1].inputSchema)
  end)

  it("keeps the spelling of numbers, and quotes brackets for Lua", function()
    write("pick.json", [==[{"type":"object","properties":{"what":{"enum":[["a"],[["b"]]]},
                          "n":{"type":"integer","maximum":18446744073709551615}},"required":["what"]}]==])
    local code, _, err = toolgate("new", "pick", "--schema", "pick.json")
    assert.equal(0, code, err)
    says(policy "pick", "schema = json [=[{")
    says(policy "pick", "18446744073709551615")
    holds()
  end)

  it("refers to a schema file beside the policies instead of copying it", function()
    os.execute("mkdir " .. folder .. "/policies")
    write("policies/mine.schema.json", [[{"type":"object","properties":{"a":{"type":["string","null"]}}}]])
    assert.equal(0, (toolgate("new", "pick", "--schema", "policies/mine.schema.json")))
    says(policy "pick", 'schema = json "mine.schema.json"')
    holds()
  end)

  describe("for a tool in a definitions file", function()
    local TOOLS = { { name = "delete_note", description = "Remove a note for good. Use this when the user wants it gone."
                      .. " Do not use this when it only shall be hidden. It stays in backups.",
                      inputSchema = { type = "object", properties = { note_id = { type = "string" } },
                                      required = { "note_id" } } },
                    { name = "get_note", description = "Read a note.", annotations = { readOnlyHint = true },
                      inputSchema = { type = "object", properties = { n = { type = "integer", minimum = 3 } },
                                      required = { "n" } } } }

    before_each(function() write("tools.json", TOOLS) end)

    it("leaves schema and description to the definition", function()
      local _, out = toolgate("new", "get_note", "--tools", "tools.json")
      says(out, "toolgate test --tools tools.json")
      local text = policy "get_note"
      says_not(text, "\n  schema")
      says_not(text, "\n  description")
      golden.check("new", "from a tool definition", text)
      holds("--tools", "tools.json")
    end)

    it("copies the schema with --with-schema, and no longer needs the file", function()
      toolgate("new", "get_note", "--tools", "tools.json", "--with-schema")
      golden.check("new", "from a tool definition, with its schema", policy "get_note")
      holds()
    end)

    it("guesses nothing from a name or a description", function()
      toolgate("new", "delete_note", "--tools", "tools.json")
      local text = policy "delete_note"
      says_not(text, "destructive\",\n")
      says_not(text, "hidden")
      holds("--tools", "tools.json")
    end)

    it("suggests the closest name for an unknown tool", function()
      local code, _, err = toolgate("new", "delete_notes", "--tools", "tools.json")
      assert.equal(2, code)
      golden.check("cli", "new: a misspelled tool of a file", err)
      assert.equal("", policy "delete_notes")
    end)
  end)

  it("accepts names that clients and providers accept, and any that a definition has", function()
    for _, name in ipairs { "bad name", "a'b", "ä", "x:y" } do
      local code, _, err = toolgate("new", name)
      assert.equal(2, code, name)
      says(err, "expected a tool's name of letters, digits, _, -, . and /")
      says(err, "'" .. name .. "'")
    end
    assert.equal(0, (toolgate("new", "files/read.v2-b_c")))
    write("odd.json", { { name = "bad name", inputSchema = { type = "object" } } })
    assert.equal(0, (toolgate("new", "bad name", "--tools", "odd.json")))
  end)

  it("says that a tool has a policy already, also in a file of another name", function()
    os.execute("mkdir " .. folder .. "/policies")
    write("policies/other.lua", '-- Mine.\nreturn tool "close_ticket" { broken = }')
    local code, _, err = toolgate("new", "close_ticket")
    assert.equal(2, code)
    says(err, "policies/other.lua is the policy of 'close_ticket' already")
    assert.equal("", policy "close_ticket")
    assert.equal(2, (toolgate("new", "close_ticket", "--force")))
    assert.equal(0, (toolgate("new", "close_ticket", "--print")))
    assert.equal(0, (toolgate("new", "close_tickets")))
  end)

  it("leaves TODOs that lint reports with their lines", function()
    toolgate("new", "close_ticket")
    local _, out = toolgate("lint")
    for line in policy("close_ticket"):gmatch "[^\n]*TODO:[^\n]*" do
      says(out, "left to do: " .. line:match "TODO: *(.*)")
    end
    assert.matches("close_ticket%.lua:1: warning: left to do: .*%[todo%]", out)
    write("policies/close_ticket.lua", (policy("close_ticket"):gsub("TODO:", "Done")))
    _, out = toolgate("lint")
    says_not(out, "[todo]")
  end)

  describe("for a definition with annotations", function()
    local function new(annotations, extra)
      local tool = { name = "remove_note", description = "Remove a note.", annotations = annotations,
                     inputSchema = { type = "object", required = { "id", "hard", "n", "tags" },
                                     properties = { id = { type = "string" }, hard = { type = "boolean" },
                                                    n = { type = "integer" },
                                                    tags = { type = "array", items = { type = "string" } } } } }
      for key, value in pairs(extra or {}) do tool[key] = value end
      write("tools.json", { tool })
      local code, out, err = toolgate("new", "remove_note", "--tools", "tools.json", "--force")
      assert.equal(0, code, out .. err)
      says(holds("--tools", "tools.json"), " 0 failed")
      return policy "remove_note"
    end

    it("asks the user before a destructive call, and shows so in its examples", function()
      local text = new { destructiveHint = true, title = "Remove a note" }
      golden.check("new", "from a destructive definition", text)
      says(text, 'effects     = "destructive", -- the definition\'s destructiveHint')
      says(text, 'title       = "Remove a note"')
      says(text, 'gives = "ask"')
      says(text, "the user has said yes")
    end)

    it("writes effects and idempotent with their reasons", function()
      says(new { readOnlyHint = true }, 'effects     = "read", -- the definition\'s readOnlyHint')
      says(new { readOnlyHint = false }, 'effects     = "write", -- the definition\'s readOnlyHint is false')
      says(new { idempotentHint = true }, "idempotent  = true, -- the definition's idempotentHint")
      says(new { readOnlyHint = true, destructiveHint = true }, '"destructive"')
      local plain = new({ idempotentHint = false, destructiveHint = false }, { title = "Its own" })
      says_not(plain, "\n  effects")
      says_not(plain, "idempotent")
      says(plain, 'title       = "Its own", -- the definition\'s title')
    end)
  end)

  it("overwrites a file only with --force", function()
    toolgate("new", "find_things")
    process.write(folder .. "/policies/find_things.lua", "-- mine\n")
    local code, _, err = toolgate("new", "find_things")
    assert.equal(2, code)
    golden.check("cli", "new: the file exists", err)
    assert.equal("-- mine\n", policy "find_things")
    assert.equal(0, (toolgate("new", "find_things", "--force")))
    says(policy "find_things", 'return tool "find_things"')
  end)

  it("writes no file with --print", function()
    local code, out = toolgate("new", "find_things", "--print")
    assert.equal(0, code)
    says(out, 'return tool "find_things" {')
    assert.equal("", policy "find_things")
  end)

  it("turns any tool name into a file name, and quotes any string", function()
    local name = 'files/"read" it'
    write("tools.json", { { name = name, description = "One ]] two\nthree \\ \"four\" ]=]",
                            inputSchema = { type = "object", properties = { ["end"] = { type = "string" },
                              ["a-b"] = { type = "string", enum = { 'x"\\', "y\nz" } } }, required = { "end" } } } })
    local code, out, err = toolgate("new", name, "--tools", "tools.json", "--with-schema")
    assert.equal(0, code, out .. err)
    local text = policy "files__read__it"
    golden.check("new", "of a name and a description that need quoting", text)
    holds()
  end)

  it("reports a schema file that is missing or not a schema", function()
    for _, file in ipairs { "none.json", "list.json", "whole.json" } do
      write("list.json", "[]")
      write("whole.json", [[{"name":"x","inputSchema":{"type":"object"}}]])
      local code, _, err = toolgate("new", "x", "--schema", file)
      assert.equal(2, code)
      assert.truthy(err:find(file, 1, true), err)
      golden.check("cli", "new: --schema " .. file, err)
    end
  end)

  -- All tools would take a minute; NEW_EACH=1 takes them all.
  describe("for tools of real servers", function()
    local each = tonumber(os.getenv "NEW_EACH" or "60")

    it("writes policies that load and pass their examples", function()
      local files = io.popen("ls " .. CORPUS .. "/tools-*.json 2>/dev/null"):read "*a"
      if files == "" then return pending("no " .. CORPUS) end
      local tried, at = 0, 0
      for file in files:gmatch "[^\n]+" do
        for _, tool in ipairs(json.decode(process.read(file))) do
          at = at + 1
          if at % each == 0 then
            local code, out, err = toolgate("new", tool.name, "--tools", daemon.root .. "/" .. file,
                                            "--policies", "p" .. at, at % 2 == 0 and "--with-schema" or "--force")
            assert.equal(0, code, tool.name .. " of " .. file .. ":\n" .. out .. err)
            says(out, " hold")
            tried = tried + 1
          end
        end
      end
      assert.is_true(tried > 20, "only " .. tried)
    end)
  end)
end)
