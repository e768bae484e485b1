-- policy { tools = … }: one file lies over several tools, beside their own policies; the strictest verdict wins.
local cjson = require "cjson"

local function tool(name, more)
  return ([==[
-- %s: runs here.
return tool "%s" {
  description = "Run.", effects = "write",
  schema = params({ path = optional(str "Where"), n = optional(int "How often") }, { open = true }),
  run = function(args) return { path = args.path, secret = "s3cr3t", n = args.n or 0 } end,
  %s
}
]==]):format(name, name, more or "")
end

local function over(fields)
  return "-- Lies over several tools.\nreturn policy { " .. fields .. " }\n"
end

describe("a policy for several tools", function()
  local gate, client
  local function start(policies, more)
    local given = { policies = policies }
    for key, value in pairs(more or {}) do given[key] = value end
    gate, client = daemon.open(given)
    return client
  end

  local function code_of(name, args, meta)
    local v = verdict(client:calls(name, args, meta))
    return v.code or v.error_class
  end

  it("guards names and globs, given as a list or as one string, and no other tool", function()
    for _, tools in ipairs { '{ "write_*", "edit_file" }', '"*_file"' } do
      start { ["write_file.lua"] = tool "write_file", ["edit_file.lua"] = tool "edit_file", ["read.lua"] = tool "read",
              ["a.lua"] = over("tools = " .. tools .. ', check = function(args) return refuse("no", "No.", "Stop.") end') }
      assert.equal("no", code_of("write_file", { path = "a" }))
      assert.equal("no", code_of("edit_file", { path = "a" }))
      assert.equal("ok", code_of("read", { path = "a" }))
      daemon.stop_all()
    end
  end)

  it("guards a tool that it names by a former name", function()
    start { ["t.lua"] = tool("get_events", 'aliases = { "get_event" },'),
            ["a.lua"] = over [[tools = "get_event", check = function(args) return refuse("no", "No.", "Stop.") end,
              examples = { { "no", tool = "get_event", args = {}, gives = "refuse no" } } ]] }
    for _, name in ipairs { "get_event", "get_events" } do assert.equal("no", code_of(name, { path = "a" })) end
  end)

  it("lets the strictest verdict win, whichever file it comes from", function()
    local decisions = {
      refuse = 'refuse("no", "No.", "Stop.")', ask = 'ask("Really?")',
      ["repair"] = 'repair { path = "path", message = "is wrong" }', pass = "nil",
    }
    local rank = { "refuse", "ask", "repair", "pass" }
    for i, strict in ipairs(rank) do
      for k = i, #rank do
        local lax = rank[k]
        for _, pair in ipairs { { strict, lax }, { lax, strict } } do
          start { ["t.lua"] = tool("t", "check = function(args) return " .. decisions[pair[1]] .. " end,"),
                  ["over.lua"] = over('tools = "t", check = function(args) return ' .. decisions[pair[2]] .. " end") }
          assert.equal(strict, verdict(client:calls("t", { path = "a" })).verdict, pair[1] .. " and " .. pair[2])
          daemon.stop_all()
        end
      end
    end
  end)

  it("has rules and normalise, after the tool's own, in the order of the files", function()
    start { ["t.lua"] = tool("t", 'normalise = function(args) args.path = args.path .. "1" end,'),
            ["a.lua"] = over 'tools = "t", normalise = function(args) args.path = args.path .. "2" end',
            ["z.lua"] = over 'tools = "t", normalise = function(args) args.path = args.path .. "3" end' }
    local result = client:calls("t", { path = "x" })
    assert.truthy(text(result):find('"path":"x123"', 1, true), text(result))
  end)

  it("lists the problems of all its files at once", function()
    start { ["t.lua"] = tool("t", 'rules = { always : needs "n" },'),
            ["a.lua"] = over 'tools = "t", rules = { always : needs "path" }' }
    local paths = {}
    for _, problem in ipairs(verdict(client:calls("t", {})).messages) do paths[#paths + 1] = problem.path end
    table.sort(paths)
    assert.same({ "args.n", "args.path" }, paths)
  end)

  it("never makes arguments invalid", function()
    start { ["t.lua"] = tool("t"), ["a.lua"] = over 'tools = "t", normalise = function(args) args.n = "many" end' }
    assert.equal("policy_error", verdict(client:calls("t", { n = 1 })).error_class)
    gate:logs "a.lua:2: normalise changed the arguments against the schema"
  end)

  it("checks the format of ids, and where they come from", function()
    start { ["t.lua"] = tool("t"),
            ["a.lua"] = over 'tools = "t", ids = { path = shape "uuid" }',
            ["u.lua"] = tool("u"), ["b.lua"] = over 'tools = "u", ids = { path = seen() }' }
    assert.equal("impossible_id", code_of("t", { path = "x" }))
    assert.equal("unseen_id", code_of("u", { path = "x1" }, client_of.session("s", { goal = "do it" })))
  end)

  it("judges results and redacts them", function()
    start { ["t.lua"] = tool("t", 'result = function() return ok { coverage = "SATISFIED" } end,'),
            ["a.lua"] = over [[tools = "t", redact = { "secret" },
                               result = function(r) if r.n > 5 then return partial("more", "more follows") end end]] }
    local fine = client:calls("t", { n = 1 })
    assert.is_nil(cjson.encode(fine):find("s3cr3t", 1, true))
    assert.equal("SATISFIED", verdict(fine).coverage)
    assert.equal("partial_data", verdict(client:calls("t", { n = 6 })).error_class)
  end)

  it("makes limits and effects stricter, never laxer", function()
    local function same_calls(own, overlay)
      start { ["t.lua"] = tool("t", own), ["a.lua"] = over('tools = "t", ' .. overlay) }
      local count = 0
      while code_of("t", { n = 1 }, client_of.session("s", { turn = 1 })) == "ok" do count = count + 1 end
      daemon.stop_all()
      return count
    end
    assert.equal(1, same_calls("", 'effects = "destructive"'))
    assert.equal(1, same_calls("", 'effects = "read"'))
    assert.equal(1, same_calls("", "retry = { same_call = 1 }"))
    assert.equal(1, same_calls("retry = { same_call = 1 },", "retry = { same_call = 9 }"))
    assert.equal(1, same_calls("", "limits = { calls_per_turn = 1 }"))
  end)

  it("counts calls as the same although a volatile argument differs", function()
    start { ["t.lua"] = tool("t"), ["a.lua"] = over 'tools = "t", loop = { volatile = "n" }, retry = { same_call = 1 }' }
    local session = client_of.session("s", { turn = 1 })
    assert.equal("ok", code_of("t", { path = "a", n = 1 }, session))
    assert.equal("same_call", code_of("t", { path = "a", n = 2 }, session))
  end)

  it("reads facts and history", function()
    start { ["t.lua"] = tool("t", "result = function() return ok { facts = { seen = true } } end,"),
            ["a.lua"] = over [[tools = "t", check = function(args, call)
                               if call.facts.seen then return refuse("again", "Again.", "Stop.") end end]] }
    local session = client_of.session("s", { turn = 1 })
    assert.equal("ok", code_of("t", { n = 1 }, session))
    assert.equal("again", code_of("t", { n = 2 }, session))
  end)

  it("has a mode of its own, as has the tool below it", function()
    local refuses = 'check = function(args) return refuse("no", "No.", "Stop.") end'
    start { ["t.lua"] = tool "t", ["u.lua"] = tool("u", 'mode = "shadow", check = function() return refuse("own", "No.") end,'),
            ["a.lua"] = over('tools = "t", mode = "shadow", ' .. refuses), ["b.lua"] = over('tools = "u", ' .. refuses),
            ["c.lua"] = over('tools = "t", mode = "off", ' .. refuses) }
    local v = verdict(client:calls("t", { n = 1 }))
    assert.same({ "pass", "no" }, { v.verdict, v.would })
    v = verdict(client:calls("u", { n = 1 }))
    assert.same({ "refuse", "no" }, { v.verdict, v.code })
  end)

  it("refuses its calls if it breaks, or passes them with on_policy_error", function()
    for mode, class in pairs { closed = "policy_error", open = "ok" } do
      start { ["t.lua"] = tool "t", ["a.lua"] = over('tools = "t", on_policy_error = "' .. mode
                                                    .. '", check = function() error "no" end') }
      assert.equal(class, verdict(client:calls("t", { n = 1 })).error_class)
      local fault = gate:status().policy_faults[1]
      assert.truthy(fault.last:find("a.lua:2: .*no"))
      daemon.stop_all()
    end
  end)

  it("guards tools that agents register", function()
    start { ["a.lua"] = over [[tools = "write_*", check = function(args) return refuse("no", "No.", "Stop.") end,
                               examples = { { "refused", tool = "write_page", args = {}, gives = "refuse no" } } ]] }
    local registered = client:asks("toolgate/register",
                                   { tools = { { name = "write_page", inputSchema = { type = "object" } } } })
    assert.is_true(registered.tools[1].policy)
    assert.equal("no", client:checks("write_page", { n = 1 }).code)
  end)

  it("is listed with its tools, for the operator", function()
    start { ["t.lua"] = tool "t", ["u.lua"] = tool "u", ["a.lua"] = over 'tools = { "t", "u" }, mode = "shadow"' }
    local overlay = gate:status().generation.overlays[1]
    assert.same({ { "t", "u" }, "shadow" }, { overlay.over, overlay.mode })
    local files = client:asks("toolgate/tools", {}).guarded_by
    assert.equal(overlay.file, files.t[1])
    local _, out = process.run { daemon.binary, "tools", "--socket", gate.socket }
    assert.truthy(out:find("[guarded by " .. overlay.file .. "]", 1, true), out)
  end)

  it("that stalled the process refuses the calls of its tools, read from its text or else of all", function()
    local ffi = require "ffi"
    pcall(ffi.cdef, [[
      typedef struct { uint64_t low, high; } toolgate_spec_hash;
      toolgate_spec_hash XXH3_128bits(const void *data, size_t length);
    ]])
    local xxhash = ffi.load "libxxhash.so.0"
    for tools, expected in pairs { ['"t"'] = { "policy_error", "ok" }, ['{ "x", "t*" }'] = { "policy_error", "ok" },
                                   ['("t"):rep(1)'] = { "policy_error", "policy_error" } } do
      local directory = process.directory()
      local source = over("tools = " .. tools .. ", check = function() end")
      os.execute("mkdir -p -m 700 " .. directory .. "/s.state")
      process.write(directory .. "/s.state/quarantine", (bit.tohex(xxhash.XXH3_128bits(source, #source).low, 16) .. " stall "
                                                   .. directory .. "/policies/a.lua\n"):rep(2))
      os.execute("mkdir " .. directory .. "/policies")
      for name, text_ in pairs { ["a.lua"] = source, ["t.lua"] = tool "t", ["u.lua"] = tool "u" } do
        process.write(directory .. "/policies/" .. name, text_)
      end
      start(directory .. "/policies", { socket = directory .. "/s" })
      local classes = {}
      for i, name in ipairs { "t", "u" } do classes[i] = verdict(client:calls(name, { n = 1 })).error_class end
      assert.same(expected, classes)
      daemon.stop_all()
    end
  end)

  it("tells the model when to use the tools, and its rules", function()
    start { ["t.lua"] = tool "t", ["a.lua"] = over 'tools = "t", avoid_when = "it is late", rules = { always : needs "path" }' }
    local description = client:asks("tools/list").tools[1].description
    assert.truthy(description:find("it is late", 1, true) and description:find("'path' is required", 1, true))
    assert.truthy(text(client:calls("t", {})):find("it is late", 1, true))
  end)
end)

describe("a file for several tools", function()
  local directory
  before_each(function() directory = process.directory() end)

  local function run(command, ...)
    local given = { daemon.binary, command, ... }
    local child = process.start(given, { stdin = "/dev/null", stdout = directory .. "/out", stderr = directory .. "/err",
                                         directory = directory })
    local _, code = child:wait()
    return process.read(directory .. "/out") .. process.read(directory .. "/err"), code
  end

  local function write(name, source)
    os.execute("mkdir -p " .. directory .. "/policies")
    process.write(directory .. "/policies/" .. name, source)
  end

  it("may declare only what makes sense for several", function()
    local mistakes = {
      { "schema = params {}", "'schema' is about one tool" }, { 'description = "x"', "'description' is about one tool" },
      { "run = function() end", "'run' is about one tool" }, { 'upstream = "fs"', "'upstream' is about one tool" },
      { 'effects = "toggle"', "allows more" }, { "retry = { again = true }", "allows more" },
      { "loop = { poll = true }", "allows more" }, { 'loop = { volatile_result = "x" }', "results of one tool" },
      { "chekc = 1", "did you mean 'check'" },
      { 'examples = { { "x", args = {}, gives = "pass" } }', "expected the tool that it calls" },
      { 'examples = { { "x", tool = "u", args = {}, gives = "pass" } }', "no name in 'tools' matches 'u'" },
    }
    for _, mistake in ipairs(mistakes) do
      write("over.lua", over('tools = "t", ' .. mistake[1]))
      local said, code = run("test", "policies")
      assert.equal(1, code, mistake[1])
      assert.truthy(said:find("over.lua:2: ", 1, true), said)
      assert.truthy(said:find(mistake[2], 1, true), said)
    end
    for _, tools in ipairs { "", "tools = {},", "tools = 5,", 'tools = { "" },' } do
      write("over.lua", over(tools))
      assert.truthy(run("test", "policies"):find("'tools'", 1, true) or run("test", "policies"):find("tools = {", 1, true))
    end
  end)

  it("is tested with its tools, and named by check --trace", function()
    write("t.lua", tool "t")
    write("over.lua", over [[tools = { "t", "other" }, check = function(args)
      if args.path == "x" then return refuse("no", "No.", "Stop.") end end,
      examples = { { "no", tool = "t", args = { path = "x" }, gives = "refuse no" },
                   { "an agent's tool", tool = "other", args = { path = "x" }, gives = "refuse no" },
                   { "of a user", tool = "other", user = "ana", args = { path = "y" }, gives = "pass" } } ]])
    local said, code = run("test", "policies")
    assert.equal(0, code, said)
    said = run("check", "t", '{"path":"x"}', "--trace")
    assert.truthy(said:find("guarded by policies/t.lua, policies/over.lua", 1, true), said)
    assert.truthy(said:find("refuse: forbidden (policies/over.lua)", 1, true), said)
  end)
end)
