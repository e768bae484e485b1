-- toolgate serve: the daemon; with --check it only loads everything. src/cli/lua_local.c runs it.
return command {
  name = "serve", summary = "run the daemon",
  about = [[
Serves MCP and toolgate's own methods on a Unix socket until SIGTERM, which lets calls in flight
finish. Loads configuration, tools and policies again when their files change, on SIGHUP and on
`toolgate reload`; if anything in them is wrong, the previous generation stays. Without any file
it serves ./policies.]],
  exits = [[
  0  stopped after a drain; --check: everything is right
  1  could not start; --check: each error is on stderr, or there is nothing to serve
  2  usage]],
  example = [[
  toolgate serve --socket /tmp/toolgate.sock --policies policies
  toolgate serve -c /etc/toolgate/toolgate.lua --check]],
  options = {
    text { name = "socket", letter = "s", argument = "PATH",
           words = "listen here (default $XDG_RUNTIME_DIR/toolgate/toolgate.sock)" },
    files,
    text { name = "redis", argument = "URL", words = "the ledger: unix:/path, redis://host:port/db, cluster://…, sentinel://…" },
    flag { name = "check", words = "load everything, run the examples, print the errors, exit" },
    flag { name = "no-watch", words = "load changed files only on SIGHUP and `toolgate reload`" },
  },
  run = cli.serve,
}
