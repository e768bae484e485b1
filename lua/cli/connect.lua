-- toolgate connect: an MCP client's stdio server. src/cli/connect.c runs it.
local own = require "own_daemon"

local WAIT_S = 30 -- as connect.h has it

return command {
  name = "connect", operands = "[SOCKET]", most = 1, summary = "connect an MCP client's stdio to the daemon",
  about = [[
An MCP client starts this command as its stdio server. It passes each message unchanged; with
--session, each request that has no session gets one. It stays when the daemon ends or is not there
yet: it connects again, repeats the client's initialize and subscriptions, and lets requests wait.
Without a socket it starts the user's own daemon if none listens, with ~/.config/toolgate/toolgate.lua
if that exists; never where /etc/toolgate/toolgate.lua does. Ends when stdin ends.]],
  exits = [[
  0  stdin ended, and the pending replies were delivered
  2  usage, the user's own daemon did not start, or stdin ended and a request had no daemon]],
  example = [[
  claude mcp add gate -- toolgate connect --session auto
  echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | toolgate connect /tmp/toolgate.sock]],
  options = {
    text   { name = "session", argument = "ID",
             words = "the session of each request that has none; auto: a new one for this process" },
    text   { name = "servers", argument = "NAME",
             words = "only the servers of NAME.json, a file that `toolgate attach` made" },
    number { name = "wait", argument = "SECONDS", words = "how long a request waits while no daemon answers (default 30)" },
    flag   { name = "no-start", words = "start no daemon" },
  },
  run = function(o)
    if o.servers and (#o.servers > 63 or not o.servers:find "^[%w_-]+$") then
      fail("--servers: expected at most 63 letters, digits, '_' and '-', got '%s'", o.servers)
    end
    if o.servers and not o[1] and not cli.access(own.servers_folder() .. "/" .. o.servers .. ".json", "") then
      cli.warn(("%s/%s.json does not exist: the client gets no tools"):format(own.servers_folder(), o.servers))
    end
    local path = not o["no-start"] and own.startable(o[1])
    if path then
      local started, why = own.start(path, (o.wait or WAIT_S) * 1000)
      if not started then fail("%s", why) end
      o[1] = path
      function o.start()
        local pid, reason = own.spawn()
        if not pid then cli.warn(reason) end
      end
    end
    return cli.bridge(o)
  end,
}
