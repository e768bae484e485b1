-- test_embedded_resource: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_embedded_resource" {
  description = "Return one resource.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return tool_return { content = { { type = "resource", resource = {
      uri = "test://embedded-resource", mimeType = "text/plain", text = "This is an embedded resource content." } } } }
  end,
}
