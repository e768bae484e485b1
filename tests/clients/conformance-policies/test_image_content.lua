-- test_image_content: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_image_content" {
  description = "Return one image.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return tool_return { content = { { type = "image", mimeType = "image/png",
      data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==" } } }
  end,
}
