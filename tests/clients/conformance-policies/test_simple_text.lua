-- test_simple_text: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_simple_text" {
  description = "Return one text.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return tool_return { content = { { type = "text", text = "This is a simple text response for testing." } } }
  end,
}
