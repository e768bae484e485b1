-- toolgate connect: an MCP client's stdio server. src/cli/connect.c runs it.
local own = require "own_daemon"

local WAIT_S, WAIT_MAX_S = 30, 3600
local PATH_BYTES = 107 -- of a socket

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
  2  usage, the user's own daemon did not start, or stdin ended and a request had no daemon, or no answer
     within 2 s]],
  example = [[
  claude mcp add gate -- toolgate connect --session auto
  echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | toolgate connect /tmp/toolgate.sock]],
  options = {
    text   { name = "session", argument = "ID",
             words = "the session of each request that has none; auto: a new one for this process" },
    text   { name = "servers", argument = "NAME", words = "only the servers of NAME.json, a file that `toolgate attach` made" },
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
    o.wait = o.wait or WAIT_S
    if o.wait > WAIT_MAX_S then fail("--wait: expected at most %d seconds, got %d", WAIT_MAX_S, o.wait) end
    local path = not o["no-start"] and own.startable(o[1])
    o[1] = o[1] or path or (cli.default_socket())
    if #o[1] > PATH_BYTES then fail("%s: expected a socket path of at most %d bytes", o[1], PATH_BYTES) end
    if path then
      local started, why = own.start(path, o.wait * 1000)
      if not started then fail("%s", why) end
      function o.start()
        local pid, reason = own.spawn()
        if not pid then cli.warn(reason) end
      end
    end
    o.owns_session = o.session == "auto" -- no other process has it: it ends with the client
    if o.owns_session then o.session = "auto-" .. cli.random() end
    o.session = o.session and cli.quote(o.session)
    return cli.bridge(o)
  end,
}
