-- A prepare hook that fails hides its tool: from the list, and from calls. The hooks of one list share their time.

local SESSION, GOAL = "dev.toolgate/session", "dev.toolgate/goal"

local function tool(name, prepare, more)
  return ([[return tool "%s" { description = "d", %s schema = json '{"type":"object"}', prepare = function(def, call) %s end,
    run = function() return "ran" end }]]):format(name, more or "", prepare)
end

-- How hooks fail, and the goal that makes them.
local failures = {
  { "throws",                   "error('on purpose')" },
  { "runs out of time",         "while true do end" },
  { "searches a missing goal",  "if call.goal:find('delete') then return def end return nil" },
  { "returns a number",         "return 7" },
  { "returns a word",           "return 'hidden'" },
  { "returns an outcome",       "return repair { path = 'a', message = 'b' }" },
  { "returns a function",       "return { name = function() end }" },
  { "writes gigabytes",         "local list = {} for i = 1, 1000 do list[i] = ('x'):rep(1e5) end " ..
                                "def.title = list return def" },
}

describe("a tool whose prepare", function()
  local function names(client, meta)
    local found = {}
    for _, one in ipairs(client:asks("tools/list", { _meta = meta }).tools) do found[#found + 1] = one.name end
    table.sort(found)
    return found
  end

  for _, failure in ipairs(failures) do
    it(failure[1] .. " is neither listed nor callable", function()
      local client = daemon.start { policies = { ["danger.lua"] = tool("danger", failure[2]),
                                                 ["fine.lua"] = tool("fine", "return def") } }:connect()
      assert.same({ "fine" }, names(client))
      local result = client:calls("danger", {})
      assert.is_true(result.isError)
      assert.equal("unknown_tool", client_of.verdict(result).error_class)
      assert.is_not_true(client:calls("fine", {}).isError)
      local faults = client:asks("toolgate/status").policy_faults
      assert.equal("danger", faults[1].tool)
    end)
  end

  it("fails is listed where its policy fails open", function()
    local gate = daemon.start { policies = { ["danger.lua"] =
      tool("danger", "error('on purpose')", "on_policy_error = 'open',") } }
    assert.same({ "danger" }, names(gate:connect()))
  end)
end)

describe("the prepare hooks of a list", function()
  it("share their time: what is not prepared is hidden, logged, and a fault in the status", function()
    local policies = { ["z_fast.lua"] = tool("z_fast", "return def") }
    for i = 1, 60 do
      policies[("slow%02d.lua"):format(i)] = tool(("slow%02d"):format(i), "while true do end return def")
    end
    local gate, client = daemon.open { policies = policies }
    assert.same({}, client:asks("tools/list").tools)
    local left = tonumber(gate:logs(" tools_not_prepared "):match "tools=(%d+)")
    assert.is_true(left > 30 and left <= 60, tostring(left))
    local late = 0
    for _, fault in ipairs(client:asks("toolgate/status").policy_faults) do
      late = late + (fault.last:find("prepare was not run", 1, true) and 1 or 0)
    end
    assert.is_true(late > 0)
    -- A call of a hidden tool looks at the list that failed, and does not make sixty more.
    local before = select(2, gate:log():gsub(" tools_not_prepared ", ""))
    client:calls("slow01", {})
    assert.is_true(select(2, gate:log():gsub(" tools_not_prepared ", "")) <= before + 2)
  end)

  it("leave time for the others where one is slow", function()
    local gate = daemon.start { policies = { ["a_slow.lua"] = tool("a_slow", "while true do end"),
                                             ["b_fast.lua"] = tool("b_fast", "return def") } }
    local tools = gate:connect():asks("tools/list").tools
    assert.same({ 1, "b_fast" }, { #tools, tools[1].name })
  end)
end)

describe("a goal", function()
  it("of more than 8192 bytes is an error that says so, wherever it is sent", function()
    local client = daemon.start { policies = { ["t.lua"] = tool("t", "return def") } }:connect()
    local long, fits = ("x"):rep(8193), ("x"):rep(8192)
    for method, params in pairs {
      ["tools/list"] = { _meta = { [GOAL] = long } },
      ["toolgate/tools"] = { _meta = { [GOAL] = long } },
      ["tools/call"] = { name = "t", arguments = {}, _meta = { [GOAL] = long } },
      ["toolgate/check"] = { name = "t", arguments = {}, _meta = { [GOAL] = long } },
      ["toolgate/turn"] = { goal = long, _meta = { [SESSION] = "s" } },
    } do
      local reply = client:ask(method, params)
      assert.equal(-32602, reply.error and reply.error.code, method)
      assert.matches("goal: expected at most 8192 bytes, got 8193", reply.error.message)
    end
    assert.is_not_true(client:calls("t", {}, { [GOAL] = fits }).isError)
  end)
end)
