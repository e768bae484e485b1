-- test_logging_tool: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_logging_tool" {
  description = "Answer without a log message.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return "done"
  end,
}
