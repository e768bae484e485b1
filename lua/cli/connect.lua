-- toolgate connect: an MCP client's stdio server. src/cli/connect.c runs it.
return command {
  name = "connect", operands = "[SOCKET]", most = 1, summary = "connect an MCP client's stdio to the daemon",
  about = [[
An MCP client starts this command as its stdio server. It passes each message unchanged; with
--session, each request that has no session gets one. It stays when the daemon ends or is not there
yet: it connects again, repeats the client's initialize and subscriptions, and lets requests wait.
Ends when stdin ends.]],
  exits = [[
  0  stdin ended, and the pending replies were delivered
  2  usage, or stdin ended and a request had no daemon]],
  example = [[
  claude mcp add gate -- toolgate connect /tmp/toolgate.sock --session auto
  echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | toolgate connect /tmp/toolgate.sock]],
  options = {
    text   { name = "session", argument = "ID",
             words = "the session of each request that has none; auto: a new one for this process" },
    number { name = "wait", argument = "SECONDS", words = "how long a request waits while no daemon answers (default 30)" },
  },
  run = cli.bridge,
}
