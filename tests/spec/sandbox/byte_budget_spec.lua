-- What a policy writes as JSON is bounded by bytes (src/sandbox/bridge.h): a loop over the arguments of one call must
-- not become gigabytes. The call fails as policy_error; the daemon and the policy go on.

-- The most memory that the process ever held.
local function peak_kb(pid)
  return tonumber(process.read("/proc/" .. pid .. "/status"):match "VmHWM:%s*(%d+)")
end

local LINES, NOTE = 3000, 450000

local function lines()
  local list = {}
  for i = 1, LINES do list[i] = { n = i } end
  return list
end

local schema = [[schema = json [=[{"type":"object","properties":{"lines":{},"note":{},"deep":{}}}]=],]]

-- What each hook does with `args.note`, a long string, and `args.lines`, a long list.
local copies = {
  { "normalise", "normalise = function(args) for _, l in ipairs(args.lines) do l.note = args.note end end, " ..
                 "run = function() return 1 end," },
  { "normalise with a shared table", "normalise = function(args) local t = { args.note } " ..
      "for _, l in ipairs(args.lines) do l.note = t end end, run = function() return 1 end," },
  { "normalise with a shared argument", "normalise = function(args) for i, l in ipairs(args.lines) do " ..
      "args.lines[i] = { l, args.deep } end end, run = function() return 1 end," },
  { "run", "run = function(args) local out = {} for i in ipairs(args.lines) do out[i] = args.note end return out end," },
  { "repair.suggest", "check = function(args) local out = {} for i in ipairs(args.lines) do out[i] = args.note end " ..
      "return repair { path = 'note', message = 'no', suggest = { note = out } } end, run = function() return 1 end," },
  { "many repairs", "check = function(args) local out = {} for i in ipairs(args.lines) do out[i] = " ..
      "{ path = 'note', message = args.note, suggest = i } end return repair(out) end, run = function() return 1 end," },
  { "ask", "check = function(args) local out = {} for i in ipairs(args.lines) do out[i] = args.note end " ..
      "return ask('which?', out) end, run = function() return 1 end," },
  { "facts", "run = function() return { a = 1 } end, result = function(_, call) local out, args = {}, call.args " ..
      "for i in ipairs(args.lines) do out['f' .. i] = args.note end return ok { facts = out } end," },
  { "metadata", "run = function(args) local out = {} for i in ipairs(args.lines) do out[i] = args.note end " ..
      "return tool_return { value = 1, metadata = { x = out } } end," },
  { "the next call", "run = function() return { a = 1 } end, result = function(_, call) local out, args = {}, call.args " ..
      "for i in ipairs(args.lines) do out[i] = args.note end return partial('more', 'more', { page = out }) end," },
}

local function policy(fields)
  return ('return tool "bad" { description = "d", %s %s }'):format(schema, fields)
end

describe("what a policy writes as JSON", function()
  local gate, client

  for _, case in ipairs(copies) do
    it("is bounded by bytes in " .. case[1], function()
      gate, client = daemon.open { policies = { ["bad.lua"] = policy(case[2]) } }
      local pid = gate:pid()
      local long = ("x"):rep(NOTE)
      local result = client:calls("bad", { lines = lines(), note = long, deep = { text = long } })
      assert.is_true(result.isError)
      assert.equal("policy_error", verdict(result).error_class, text(result))
      assert.truthy(gate:logs("4194304 bytes of JSON"))
      assert.is_true(peak_kb(pid) < 400000, "peak of " .. peak_kb(pid) .. " KB")
      local small = client:calls("bad", { lines = { { n = 1 } }, note = "x", deep = {} })
      assert.is_not.equal("policy_error", small.isError and verdict(small).error_class, text(small))
      assert.is_nil(client:asks("toolgate/status").quarantined)
    end)
  end

  it("is bounded by bytes where a file declares it", function()
    local words, code = daemon.fails { policies = { ["bad.lua"] = [[
      local long, list = ("x"):rep(1e6), {}
      for i = 1, 1000 do list[i] = long end
      return tool "bad" { run = function() end, annotations = { note = list } } ]] } }
    assert.equal(1, code)
    assert.matches("16777216 bytes of JSON", words)
  end)

  it("may be as large as what the policy was given", function()
    gate = daemon.start { policies = { ["good.lua"] = [[return tool "good" {
      schema = json '{"type":"object","properties":{"notes":{},"seen":{}}}',
      normalise = function(args) args.seen = true end, run = function(args) return args end }]] } }
    local notes = {}
    for i = 1, 2000 do notes[i] = { n = ("x"):rep(480) } end -- nearly all that arguments may have
    local result = gate:connect():calls("good", { notes = notes })
    assert.is_not_true(result.isError, text(result))
    assert.truthy(text(result):find('"seen":true', 1, true))
  end)
end)
