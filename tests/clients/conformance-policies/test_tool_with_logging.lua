-- test_tool_with_logging: a fixture tool of the MCP conformance suite, which names it and what it says.
return tool "test_tool_with_logging" {
  description = "Say three things while it runs.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function(_, call)
    call.log("info", "Tool execution started")
    call.log("info", "Tool processing data")
    call.log("info", "Tool execution completed")
    return "done"
  end,
}
