-- test_error_handling: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_error_handling" {
  description = "Fail, always.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return failed("intended", "This tool intentionally returns an error for testing")
  end,
}
