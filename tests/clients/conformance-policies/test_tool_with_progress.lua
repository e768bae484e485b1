-- test_tool_with_progress: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_tool_with_progress" {
  description = "Report progress three times.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function(_, call)
    call.progress(0, 100, "begun")
    call.progress(50, 100, "half")
    call.progress(100, 100, "done")
    return "done"
  end,
}
