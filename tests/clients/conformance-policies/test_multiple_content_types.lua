-- test_multiple_content_types: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_multiple_content_types" {
  description = "Return a text, an image and a resource.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return tool_return { content = {
      { type = "text", text = "Multiple content types test:" },
      { type = "image", mimeType = "image/png",
        data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==" },
      { type = "resource", resource = { uri = "test://mixed-content-resource", mimeType = "application/json",
                                        text = '{"test":"data","value":123}' } },
    } }
  end,
}
