-- The options of the commands that load policies and tools themselves, without a daemon.
return {
  config = text { name = "config", letter = "c", argument = "FILE", words = "the configuration, a Lua file" },
  policies = text { name = "policies", letter = "p", argument = "DIR", words = "the folder of policies (default ./policies)" },
  tools = list { name = "tools", letter = "t", argument = "FILE",
                 words = "a JSON file of tool definitions; may be repeated" },
  mcp_config = list { name = "mcp-config", letter = "m", argument = "FILE",
                      words = "a JSON file with mcpServers, as other clients use; may be repeated" },
}
