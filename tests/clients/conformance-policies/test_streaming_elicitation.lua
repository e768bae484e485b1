-- test_streaming_elicitation: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_streaming_elicitation" {
  description = "Answer without asking the client anything: toolgate sends no requests.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return "done"
  end,
}
