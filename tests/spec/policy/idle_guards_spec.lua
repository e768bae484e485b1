-- Guards that name what no tool has never do anything: a load says so, also where a server wrote the schema.

describe("a guard that names what no tool has", function()
  local folder
  before_each(function()
    folder = process.directory()
    process.write(folder .. "/tools.json", [==[[
{"name":"mail","description":"M.","inputSchema":{"type":"object","properties":{
  "action":{"type":"string","enum":["get","delete"]},"path":{"type":"string"},"to":{"type":"object"}}}},
{"name":"post","description":"P.","inputSchema":{"type":"object","additionalProperties":false,"properties":{
  "action":{"type":"string","enum":["get","delete"]},"text":{"type":"string"}}}},
{"name":"free","description":"F.","inputSchema":{"type":"object","properties":{"any":{"type":"string"}},
  "additionalProperties":true}}]]==])
  end)

  -- What a check of these policies says, by file name.
  local function says(policies)
    os.execute("mkdir -p '" .. folder .. "/policies'")
    for name, body in pairs(policies) do process.write(folder .. "/policies/" .. name .. ".lua", body) end
    local out, err = process.runs { daemon.binary, "serve", "--check", "--policies", folder .. "/policies", "--tools",
                                    folder .. "/tools.json" }
    return err, tonumber(out:match "warnings: (%d+)")
  end

  local function of(name, fields)
    return ('-- %s: for specs.\nreturn tool "%s" { effects = "write",\n%s\n  examples = { { "x", args = { %s }, '
            .. 'gives = "pass" } } }\n'):format(name, name, fields, name == "free" and "" or 'action = "get"')
  end

  it("is a warning with the line and the closest name, in rules, ids and loop.volatile", function()
    local said, count = says { mail = of("mail", [[
  ids = { pth = seen() }, loop = { volatile = { "actoin" } },
  rules = { when { acton = "delete" } : refuses("no", "no", "Do not."), when { ["to.name"] = "x" } : needs "path",
            when { ["to[].name"] = "x" } : needs "path" },]]) }
    assert.truthy(said:find("mail.lua: ids: 'pth' is an argument of no tool that this is for (did you mean 'path'?)", 1, true),
                  said)
    assert.truthy(said:find("mail.lua: loop.volatile: 'actoin' is an argument of no tool", 1, true), said)
    assert.truthy(said:find("mail.lua:4: rules: 'acton' is an argument of no tool that this is for (did you mean 'action'?)", 1,
                            true), said)
    assert.truthy(said:find("mail.lua:5: rules: 'to[].name' is an argument of no tool", 1, true), said)
    assert.equal(4, count, said)
  end)

  it("is a warning where the schema of another refuses the argument or its value", function()
    local said, count = says { post = of("post", [[
  rules = { when { txt = "x" } : refuses("no", "no", "Do not."), when { action = "delte" } : needs "text" },]]) }
    assert.truthy(said:find("post.lua:3: rules: the schema does not allow 'txt' (did you mean 'text'?)", 1, true), said)
    assert.truthy(said:find("post.lua:3: rules: the schema does not allow \"delte\" for 'action' (did you mean 'delete'?)", 1,
                            true), said)
    assert.equal(2, count, said)
  end)

  it("is a warning for a policy over several tools only if none of them has it", function()
    local said, count = says { both = [[
-- both: for specs.
return policy { tools = { "mail", "post" },
  rules = { when { path = "/etc" } : refuses("no", "no", "Do not."), when { text = "x" } : refuses("no", "no", "Do not."),
            when { txet = "x" } : refuses("no", "no", "Do not.") },
  examples = { { "x", tool = "mail", args = { action = "get" }, gives = "pass" } } }
]] }
    assert.truthy(said:find("both.lua:4: rules: 'txet' is an argument of no tool that this is for", 1, true), said)
    assert.equal(1, count, said)
  end)

  it("is a warning where the function check reads it", function()
    local said, count = says { mail = of("mail", [[
  check = function(args, call)
    local to = args.too
    if args.to and args.to.anything or args.too == to then return end
    if not args.path then return refuse("no", "no", "Do not.") end
  end,]]), over = 'return policy { tools = { "*" }, check = function(args) return args.any_name end }\n' }
    assert.truthy(said:find("mail.lua:4: check: 'too' is an argument of no tool that this is for (did you mean 'to'?)", 1, true),
                  said)
    assert.equal(1, count, said)
  end)

  it("is none where the function check, another or a rule may have set what it reads", function()
    for i, fields in ipairs {
      'check = function(args) args.mine = 1 if args.mine ~= 1 then return refuse("no", "no", "Do not.") end end,',
      'check = function(args) local n = "mine" args[n] = 1 return args.mine == 2 and refuse("no", "no", "No.") or nil end,',
      'check = function(args) fill(args) return args.mine == 2 and refuse("no", "no", "No.") or nil end,',
      'check = function(args) local function f() args.mine = 1 end f() if args.mine == 2 then f() end end,',
      'check = function(args) local same = args same.mine = 1 if args.mine == 2 then return refuse("n", "n", "No.") end end,',
      'normalise = function(args) return { action = "get", mine = 1 } end,'
        .. ' check = function(args) if args.mine == 2 then return refuse("no", "no", "Do not.") end end,',
      'rules = { always : defaults { mine = 1 } },'
        .. ' check = function(args) if args.mine == 2 then return refuse("no", "no", "Do not.") end end,',
    } do
      local fill = "local function fill(args) args.mine = 1 end\n"
      local said, count = says { mail = of("mail", fields):gsub("return tool", fill .. "return tool", 1) }
      assert.equal(0, count, i .. ": " .. said)
    end
  end)

  it("is none where the schema is open to any name, or the rule only drops or fills in the argument", function()
    local said, count = says {
      free = of("free", '  ids = { other = shape "digits" }, rules = { when { more = "x" } : needs "other" },'),
      mail = of("mail", '  rules = { always : drops "thought" : defaults { lang = "en" } },'),
      over = 'return policy { tools = { "*" }, rules = { when { any_name = "x" } : refuses("no", "no", "Do not.") } }\n' }
    assert.equal(0, count, said)
  end)

  it("is a warning in except of the gateway", function()
    local said, count = says { g = 'return gateway { check = { "secrets" }, mode = "enforce", except = { "maill", "po*" } }\n' }
    assert.truthy(said:find("g.lua: except: 'maill' matches no tool that is known (did you mean 'mail'?)", 1, true), said)
    assert.equal(1, count, said)
  end)

  it("is a warning of a daemon once the server has listed its tools", function()
    local gate = daemon.start {
      config = ("return { upstreams = { fake = { command = 'python3', args = { '-SE', %q } } } }"):format(
        daemon.root .. "/tests/support/fake_upstream.py"),
      policies = { ["echo.lua"] = [[
-- echo: for specs.
return tool "echo" { upstream = "fake", effects = "read",
  rules = { when { txet = "x" } : refuses("no", "no", "Do not.") } }
]] } }
    gate:logs "echo.lua:3: rules: 'txet' is an argument of no tool that this is for (did you mean 'text'?)"
  end)
end)
