-- The options of commands that load the files which serve would load.
return {
  text { name = "config", letter = "c", argument = "FILE", words = "the configuration, a Lua file" },
  text { name = "policies", letter = "p", argument = "DIR", words = "the folder of policies (default ./policies)" },
  list { name = "tools", letter = "t", argument = "FILE", words = "a JSON file of tool definitions; may be repeated" },
  list { name = "mcp-config", letter = "m", argument = "FILE",
         words = "a JSON file with mcpServers, as other clients use, or a folder of them; may be repeated" },
}
