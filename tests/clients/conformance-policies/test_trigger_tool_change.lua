-- test_trigger_tool_change: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_trigger_tool_change" {
  description = "Have the list of tools change; the bridge does that before it passes the call on.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return "changed"
  end,
}
