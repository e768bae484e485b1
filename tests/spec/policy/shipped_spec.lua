-- policies/: what the gateway file says of itself, which has no examples.

describe("the shipped gateway file", function()
  it("lists a tool that changes something only if the goal mentions it, and everything without a goal", function()
    local client = daemon.start { policies = daemon.root .. "/policies" }:connect()
    local function shown(goal)
      local names, listed = {}, client:asks("tools/list", { _meta = session("s", { goal = goal }) }).tools
      for _, tool in ipairs(listed) do names[tool.name] = true end
      return names
    end
    local reading, all = shown "What is on today?", shown(nil)
    assert.is_nil(reading.home_assistant)
    assert.is_nil(reading.create_task)
    assert.is_true(reading.get_events and reading.lookup_contact)
    assert.is_true(all.home_assistant and all.create_task)
    assert.is_true(shown("Turn on the lamp").home_assistant)
    local call = client:calls("home_assistant", { action = "list_tools" }, session("t", { goal = "What is on today?" }))
    assert.equal("unknown_tool", verdict(call).error_class)
  end)
end)
