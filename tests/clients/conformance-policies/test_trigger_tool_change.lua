-- test_trigger_tool_change: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_trigger_tool_change" {
  description = "Change the list of tools; the bridge does that before it forwards the call.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return "changed"
  end,
}
