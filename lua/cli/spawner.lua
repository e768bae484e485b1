-- toolgate spawner: starts upstreams by name for a daemon that may not. src/cli/spawner.c runs it.
return command {
  name = "spawner", summary = "start upstreams by name for a daemon that may not",
  about = [[
A small process with a service unit of its own. A daemon whose upstreams have spawned = true asks it
over a Unix socket for one of the upstreams in FILE, by name, and gets the pipes of the process. FILE
is a configuration like toolgate.lua(5), of which it uses upstreams and allow (who may ask; without
it root and its own user); only root may write to it. When the daemon ends, so do its processes.]],
  exits = [[
  0  ended by SIGTERM or SIGINT; with --check: the file is good
  1  the file has an error, or the socket cannot be opened
  2  usage]],
  example = "  toolgate spawner -c /etc/toolgate/spawner.lua --check",
  options = {
    text { name = "config", letter = "c", argument = "FILE",
           words = "the upstreams it may start (default /etc/toolgate/spawner.lua)" },
    text { name = "socket", letter = "s", argument = "PATH", words = "where daemons ask (default /run/toolgate/spawner.sock)" },
    flag { name = "check", words = "check the file, then end" },
  },
  run = cli.spawner,
}
