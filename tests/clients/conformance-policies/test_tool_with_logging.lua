-- test_tool_with_logging: a fixture tool of the MCP conformance suite, which names it and its log messages.
return tool "test_tool_with_logging" {
  description = "Log three messages.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function(_, call)
    call.log("info", "Tool execution started")
    call.log("info", "Tool processing data")
    call.log("info", "Tool execution completed")
    return "done"
  end,
}
