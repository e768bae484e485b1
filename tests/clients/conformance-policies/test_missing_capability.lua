-- test_missing_capability: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_missing_capability" {
  description = "Needs the capability sampling; the bridge refuses it to a client without.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return "done"
  end,
}
