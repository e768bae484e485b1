-- A policy that loops, allocates or throws fails its own calls only; the daemon goes on and names the policy.

local function policy(body)
  return ([==[
-- bad: misbehaves as the spec asks. Read only.
return tool "bad" {
  description = "Misbehave.", schema = json '{"type":"object"}', effects = "read",
  %s
}
]==]):format(body)
end

local misdeeds = {
  { "loops",                         "while true do end" },
  { "loops inside pcall",            "while true do pcall(function() while true do end end) end" },
  { "loops inside a coroutine's pcall", "local f f = function() pcall(f) while true do end end f()" },
  { "matches a pattern that explodes", "return { n = (('a'):rep(4000)):find(('.-'):rep(4) .. 'b') }" },
  { "takes all memory with strings", "local s = 'x' while true do s = s .. s end" },
  { "takes all memory with tables",  "local t = {} while true do t[#t + 1] = {} end" },
  { "repeats a string into gigabytes", "return { s = ('x'):rep(2e9) }" },
  { "recurses without end",          "local function f() return 1 + f() end return f()" },
  { "throws",                        "error('on purpose')" },
  { "throws a table",                "error({ code = 1 })" },
  { "throws nil",                    "error(nil)" },
  { "returns a function",            "return function() end" },
  { "returns a table that holds itself", "local t = {} t.t = t return t" },
}

-- The static check finds these when the file loads, before any call.
local misspelled = {
  { "reaches for a file",     "return io.open('/etc/passwd')",      "io" },
  { "reaches for the system", "return os.execute('true')",          "os" },
  { "reaches for code",       "return load('return 1')()",          "load" },
  { "reaches for metatables", "return getmetatable('').__index",    "getmetatable" },
  { "prints",                 "print('here')",                      "print" },
  { "mistypes a global",      "return tostrin(1)",                  "tostrin" },
}

describe("a policy that", function()
  for _, hook in ipairs { "run", "check" } do
    for _, misdeed in ipairs(misdeeds) do
      if hook == "run" or not misdeed[1]:find "^returns" and not misdeed[1]:find "^matches"
         and not misdeed[1]:find "^repeats" then
        it(misdeed[1] .. " in " .. hook .. " fails only its own call", function()
          local body = hook == "run" and ("run = function(args, call) %s end,"):format(misdeed[2])
                       or ("check = function(args, call) %s end, run = function() return 1 end,"):format(misdeed[2])
          local gate, client = daemon.open { policies = { ["bad.lua"] = policy(body), ["echo.lua"] = fixtures.echo } }
          local failed = hook == "run" and misdeed[1] == "throws" -- the tool, not its policy
          for _ = 1, 3 do
            local result = client:calls("bad", {})
            if not misdeed[1]:find "^matches" or result.isError then
              assert.is_true(result.isError)
              assert.equal(failed and "tool_error" or "policy_error", verdict(result).error_class)
              assert.truthy(text(result):find("bad", 1, true), text(result))
            end
            local fine = client:calls("echo", { text = "fine" })
            assert.is_not_true(fine.isError)
          end
          assert.truthy(failed or gate:log():find("bad.lua", 1, true), gate:log())
        end)
      end
    end
  end

  for _, slip in ipairs(misspelled) do
    it(slip[1] .. " does not load, and the error names the line", function()
      local words, code = daemon.fails { policies = { ["bad.lua"] =
        policy(("run = function(args, call) %s end,"):format(slip[2])) } }
      assert.equal(1, code)
      assert.matches("bad%.lua:4: .*'" .. slip[3] .. "'", words)
      golden.check("load", "unknown global: " .. slip[3], words)
    end)
  end

  it("throws is counted in the status", function()
    local client = daemon.start { policies = { ["bad.lua"] = policy "run = function(args) return args.n.n end," } }:connect()
    client:calls("bad", {})
    local _, line = client:asks "toolgate/status"
    assert.truthy(line:find('"policy_errors":1', 1, true), line)
  end)

  it("modifies the shared libraries does not affect another policy", function()
    local client = daemon.start { policies = {
      ["bad.lua"] = policy [[run = function()
          pcall(function() string.rep = nil end)
          pcall(function() table.insert = nil end)
          pcall(function() ("").rep = nil end)
          return "tried"
        end,]],
      ["other.lua"] = (fixtures.echo:gsub('"echo"', '"other"'):gsub("return { said = args.text }",
        "return { said = ('ab'):rep(2) .. string.rep('c', 2) .. table.concat({ 'd' }) }")),
    } }:connect()
    client:calls("bad", {})
    assert.truthy(text(client:calls("other", { text = "x" })):find("ababccd", 1, true))
  end)
end)

describe("a folder of policies", function()
  local function refused(name, files, ...)
    local words, code = daemon.fails { policies = files }
    assert.equal(1, code)
    for _, wanted in ipairs { ... } do assert.truthy(words:find(wanted, 1, true), words) end
    golden.check("load", "policies: " .. name, words)
  end

  it("with a syntax error is not served, and the error names file and line", function()
    refused("a syntax error", { ["a.lua"] = "-- a: no.\nreturn tool 'a' {\n  description = ,\n}" }, "a.lua:3")
  end)
  it("with an unknown field is not served, and the error suggests the closest", function()
    refused("an unknown field", { ["a.lua"] = policy "desciption = 'x'," }, "a.lua", "desciption", "description")
  end)
  it("with two files for one tool is not served", function()
    refused("two files for one tool", { ["a.lua"] = fixtures.echo, ["b.lua"] = fixtures.echo }, "echo", "a.lua", "b.lua")
  end)
  it("with a failing example is not served, and the error gives expected and got", function()
    refused("a failing example", { ["a.lua"] = policy [[run = function() return 1 end,
      examples = { { "is refused", args = {}, gives = "refuse" } },]] }, "a.lua", "is refused", "refuse", "pass")
  end)
  it("with a schema that is not JSON is not served", function()
    refused("a schema that is not JSON", { ["a.lua"] = [[
return tool "a" { description = "x", schema = json '{"type":}', run = function() return 1 end }
]] }, "a.lua", "json")
  end)
  it("with a partly understood schema is served with a warning", function()
    local gate = daemon.start { policies = { ["a.lua"] = [[
return tool "a" { description = "x", schema = json '{"type":"object","properties":{"b":{"type":"strang"}}}',
                  run = function() return 1 end }
]] } }
    assert.is_not_true(gate:connect():calls("a", { b = 1 }).isError)
    assert.truthy(gate:log():find("strang", 1, true), gate:log())
  end)
  it("reports the errors of all files at once", function()
    refused("several broken files", { ["a.lua"] = policy "nonsense = 1,", ["b.lua"] = "return 1", ["c.lua"] = "x = = 1" },
            "a.lua", "b.lua", "c.lua")
  end)
  it("with a tool that both an upstream and Lua run is not served", function()
    refused("a tool that both an upstream and Lua run",
            { ["a.lua"] = policy "upstream = 'calendar', run = function() end," }, "a.lua", "'upstream'")
  end)
end)
