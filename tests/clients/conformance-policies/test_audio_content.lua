-- test_audio_content: a fixture tool of the MCP conformance suite, which names it and what it returns.
return tool "test_audio_content" {
  description = "Return one sound.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function()
    return tool_return { content = { { type = "audio", mimeType = "audio/wav",
      data = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=" } } }
  end,
}
