-- toolgate serve: the daemon; with --check it only loads everything. src/cli/lua_local.c runs it.
local own = require "own_daemon"
local ui = require "ui"

-- A daemon starts without its upstreams and tries them again and again, and one that serves nothing may be meant; in a check
-- both are errors.
local function check(o)
  local s, bad = cli.load(o), false
  local config, generation, errors = s.config, s.generation, s.errors
  local function wrong(form, ...) errors[#errors + 1], bad = form:format(...), true end
  if generation and config.ledger_problem then wrong("%s", config.ledger_problem) end
  for _, u in ipairs(not bad and generation and config.upstreams or {}) do
    if u.problem then wrong("%s: upstream '%s': %s", u.from, u.name, u.problem) end
  end
  local nothing, expired = generation and generation.nothing, not bad and generation and generation.expired or {}
  local starts = generation and not bad and not nothing
  for _, mode in ipairs(expired) do wrong("%s: %s", mode.file, mode.sentence) end
  ui.complain("error", errors)
  ui.complain("warning", s.warnings)
  if expired[1] and not nothing then
    io.write "serve would start, and go on without enforcing these\n"
  elseif starts then
    io.write(("tools: %d, policies: %d, examples passed: %d, warnings: %d, generation %s\n"):format(generation.tools,
             generation.policies, s.examples, #s.warnings, generation.hash))
  elseif nothing and #errors == 0 then
    io.write "serve would start, but has nothing to serve\n"
  else
    io.write(("%s, %s: serve would not start\n"):format(ui.count(#errors, "error"), ui.count(#s.warnings, "warning")))
  end
  return starts and not bad and 0 or 1
end

local function run(o) return (o.check and check or cli.serve)(o) end

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
    flag { name = "user", words = "the user's own daemon: ~/.config/toolgate/toolgate.lua, else policies there; servers.d" },
    number { name = "idle", argument = "SECONDS", words = "end after this time without a connection" },
    text { name = "socket", letter = "s", argument = "PATH",
           words = "listen here (default $XDG_RUNTIME_DIR/toolgate/toolgate.sock)" },
    files,
    text { name = "redis", argument = "URL", words = "the ledger: unix:/path, redis://host:port/db, cluster://…, sentinel://…" },
    flag { name = "check", words = "load everything, run the examples, print the errors, exit" },
    flag { name = "no-watch", words = "load changed files only on SIGHUP and `toolgate reload`" },
  },
  run = function(o)
    if not o.user then return run(o) end
    if o.config or o.policies then fail "--user takes its configuration from ~/.config/toolgate; leave out -c and -p" end
    local options, words = own.configuration()
    for name, value in pairs(options) do o[name] = o[name] or value end
    for _, folder in ipairs { o["default-policies"], own.servers_folder() } do
      local made, why = own.make_folders(folder)
      if not made then fail("%s", why) end
    end
    local path = o.socket or cli.default_socket()
    if path:find "^/run/user/" or path:find "/toolgate/toolgate.sock$" then cli.make_folder(path:match "(.*)/", 448) end
    local locked, why = cli.lock(path .. ".lock")
    if locked == nil then fail("%s.lock: %s", path, why) end
    if not locked then fail("another daemon is starting, or running, at %s", path) end
    io.stderr:write(("toolgate serve: the user's own daemon, with %s\n"):format(words))
    return run(o)
  end,
}
