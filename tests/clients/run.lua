-- make conformance: the official MCP clients, the MCP conformance suite, pydantic-ai and real MCP servers as upstreams, each
-- with a real daemon. Fetches packages from npm and PyPI into CLIENTS (build/clients). Ends with
-- `N passed, N failed`.
--
-- ONLY=sdk,inspector,http,suite,pydantic,restart,ask,python-client,typescript-client,servers,schema,monitoring,collector,
-- page,bare,package,binary,image,arm64 selects some, or one server of tests/clients/servers by name; SUITE=DIR is the
-- JSON Schema suite.
package.path = "tests/support/?.lua;tests/clients/?.lua;" .. package.path
local daemon = require "daemon"
local process = require "process"
local json = require("client").json
local packages = require "packages"
local talking = require "talk"
local unistd = require "posix.unistd"

local here = unistd.getcwd() .. "/tests/clients"
local place = packages.place
local node = packages.node
local passed, failed = 0, 0

local function chosen(name)
  local only = os.getenv "ONLY"
  return not only or ("," .. only .. ","):find("," .. name .. ",", 1, true)
end

local function tally(good, line)
  if good then passed = passed + 1 else failed = failed + 1 end
  print("  " .. line)
end

-- Runs a program that prints TAP; one that fails without a failed test counts as a failure.
local function tap(title, argv, patience_s, directory)
  print(title)
  local code, out, err = process.run(argv, { patience_s = patience_s or 120, directory = directory or place })
  local bad = failed
  for line in out:gmatch "[^\n]+" do
    if line:find "^ok " then tally(true, line)
    elseif line:find "^not ok " then tally(false, line)
    else print("  " .. line) end
  end
  if code ~= 0 and failed == bad then tally(false, ("not ok - %s ended with %d: %s"):format(title, code, err)) end
end

-- `upstream`: the set of tools of fixture_server.mjs that runs as upstream, instead of policies.
local function with_daemon(given, body)
  if given.upstream then
    given.config = ("return { upstreams = { fixtures = { command = %q, args = { %q, %q } } } }"):format(
      node, place .. "/npm/fixture_server.mjs", given.upstream)
  end
  local gate = daemon.start(given)
  if given.upstream then
    process.eventually("the upstream is up", function()
      local one = gate:status().upstreams[1]
      return one.state == "up", json.encode(one)
    end)
  end
  body(gate)
  local ok, why = pcall(daemon.stop_all)
  if not ok then tally(false, "not ok - " .. tostring(why)) end
end

-- ---- the MCP conformance suite ----

-- Policies are tools: without an upstream there are no prompts and no resources.
local OF_UPSTREAMS = { "^resources%-", "^prompts%-", "^completion%-", "^caching" }
local CHECK_OF_UPSTREAMS = "sep-2575-server-sends-prompts-list-changed-on-subscription"

-- Scenarios of the suite that a gateway cannot pass, with the reason.
local LEFT_OUT = {
  { "^sep%-2640", "skills, an extension, are not served" },
  { "^tools%-call%-sampling", "the server sends no requests" },
  { "^tools%-call%-elicitation", "the server sends no requests" },
  { "^elicitation%-", "the server sends no requests" },
  { "^input%-required%-", "the server asks the client for nothing" },
  { "^tasks%-", "tasks, an extension, are not served" },
  { "^server%-sse%-polling", "resuming a stream is HTTP's, and so the bridge's" },
  { "^http%-", "headers are HTTP's, and so the bridge's" },
}
-- Checks of scenarios in LEFT_OUT that count.
local OURS = { ["sep-2549-tools-list-caching-hints"] = true, ["sep-2549-ttl-non-negative"] = true,
               ["sep-2549-cache-scope-valid"] = true }

-- Checks that the bridge answers alone: they are about HTTP, or about a capability that toolgate cannot require.
local BRIDGES = { "^localhost%-", "^server%-session%-", "^server%-accepts%-multiple", "header%-mismatch", "capability" }

local function by_whom(check)
  for _, pattern in ipairs(BRIDGES) do
    if check.id:find(pattern) and check.id ~= "sep-2575-discover-capabilities-match-handlers" then return " (the bridge)" end
  end
  return ""
end

local function left_out(scenario, upstream)
  for _, pattern in ipairs(upstream and {} or OF_UPSTREAMS) do
    if scenario:find(pattern) then return "there is no upstream that has them" end
  end
  for _, rule in ipairs(LEFT_OUT) do
    if scenario:find(rule[1]) then return rule[2] end
  end
end

local function judge(check)
  local name = ("%s %s%s"):format(check.status:lower(), check.id, by_whom(check))
  if check.status == "SUCCESS" then tally(true, "ok - " .. name)
  elseif check.status == "FAILURE" or check.status == "WARNING" then
    tally(false, "not ok - " .. name .. ": " .. tostring(check.errorMessage))
  else
    print("  # " .. name .. (check.errorMessage and ": " .. check.errorMessage or "")) -- INFO, SKIPPED
  end
end

local function judge_results(folder, upstream)
  local reasons = {}
  for path in io.popen(("ls -d '%s'/*/ 2>/dev/null"):format(folder)):lines() do
    local scenario = path:match "/server%-([%w_%-]-)%-%d%d%d%d%-%d%d%-%d%dT[^/]*/$" or path:match "([^/]+)/$"
    local why = left_out(scenario, upstream)
    if why then reasons[#reasons + 1] = ("  # left out: %s (%s)"):format(scenario, why) end
    for _, check in ipairs(json.decode(process.read(path .. "checks.json"))) do
      local counts = not why or OURS[check.id]
      if counts and (upstream or check.id ~= CHECK_OF_UPSTREAMS) then judge(check) end
    end
  end
  print(table.concat(reasons, "\n"))
end

local function suite(title, upstream, package, ...)
  local folder = process.directory()
  if not upstream then packages.shell(("cp -r '%s/conformance-policies' '%s/policies'"):format(here, folder)) end
  local arguments = { ... }
  with_daemon({ policies = not upstream and folder .. "/policies" or nil, upstream = upstream }, function(gate)
    local bridge = process.start(
      { node, place .. "/npm/http_bridge.mjs", gate.socket, tostring(gate:pid()), not upstream and folder .. "/policies" or nil },
      { stdout = folder .. "/url", stderr = folder .. "/bridge.err" })
    local url = process.eventually("the bridge listens", function()
      return process.read(folder .. "/url"):match "http%S+"
    end)
    print(title .. (upstream and ", with an upstream" or ""))
    local argv = { node, place .. "/npm/node_modules/" .. package .. "/dist/index.js", "server", "--url", url,
                   "--output-dir", folder .. "/results", unpack(arguments) }
    local _, out, err = process.run(argv, { patience_s = 300, directory = folder })
    local before = passed + failed
    judge_results(folder .. "/results", upstream)
    if passed + failed == before then tally(false, "not ok - the suite left no results: " .. out .. err) end
    bridge:signal(15)
    bridge:wait()
    io.write(process.read(folder .. "/bridge.err"))
  end)
  process.remove(folder)
end

-- ---- restarts ----

-- Tools that note that they run, and end once `go` exists: one that reads, one that writes.
local WAITS = [==[
-- %s: waits. For the clients that see the daemon killed.
return tool "%s" {
  description = "Wait.", effects = "%s", loop = { repeats = 1000000 }, annotations = { readOnlyHint = %s },
  schema = params { folder = str "A folder" },
  exec = { "sh", "-c", "echo x >> $1/ran; while [ ! -e $1/go ]; do sleep 0.05; done; echo done", "sh", "{folder}" },
}
]==]

-- A folder with policies of such tools.
local function restarts()
  local folder = process.directory()
  packages.shell("mkdir " .. folder .. "/policies")
  process.write(folder .. "/policies/look.lua", WAITS:format("look", "look", "read", "true"))
  process.write(folder .. "/policies/change.lua", WAITS:format("change", "change", "write", "false"))
  return folder
end

-- ---- questions to the user ----

local PAY = [==[
-- pay: sends money, and asks before. For the clients that can ask their user.
return tool "pay" {
  description = "Send money.", effects = "write",
  schema = params { amount = int "How much" },
  check = function(args) return ask("Pay " .. args.amount .. "?", { "pay", "keep" }) end,
  run = function(args) return { paid = args.amount } end,
}
]==]

-- ---- real servers as upstreams ----

local SERVERS = { "everything", "filesystem", "memory", "sequential_thinking", "context7", "time", "fetch", "orders" }

local function serve(name)
  local talk = talking.new(tally, { node = node, packages = place .. "/npm/node_modules", servers = here .. "/servers",
                                    python = place .. "/venv/bin/python" })
  talk.title = name
  print("upstream: " .. name)
  local ok, why = xpcall(function() dofile(here .. "/servers/" .. name .. ".lua")(talk) end, debug.traceback)
  if not ok then tally(false, "not ok - " .. name .. ": " .. tostring(why)) end
  local clean, trouble = pcall(daemon.stop_all)
  if not clean then tally(false, "not ok - " .. tostring(trouble)) end
  if not ok and talk.gate then print(daemon.last_words[#daemon.last_words]) end
  talk.over()
end

-- ---- the page in a browser ----

-- Two daemons: on TCP with a token, and on a Unix socket with 10,000 tools, where page.mjs forwards as ssh -L does.
local function page()
  local folder, token = process.directory(), "0123456789abcdef0123"
  process.write(folder .. "/token", token)
  packages.shell(("chmod 600 '%s/token'"):format(folder))
  local evil = '<img src=x onerror=window.hacked=1>'
  local fixtures = require "fixtures"
  local policies = { ["echo.lua"] = fixtures.echo, ["outcome.lua"] = fixtures.outcome, ["shadowed.lua"] = [==[
-- shadowed: is watched, not enforced.
return tool "shadowed" {
  description = "For the page.", effects = "read", mode = "shadow", schema = params { how = str "How" },
  check = function(args) if args.how == "never" then return refuse("forbidden", "never here") end end,
  run = function() return { a = 1 } end,
}
]==] }
  local many = {}
  for i = 1, 10000 do
    many[i] = { name = ("tool_%05d"):format(i), description = evil, inputSchema = { type = "object" } }
  end
  many[10001] = { name = evil, description = evil, inputSchema = { type = "object" } }
  local port = require("http").free_port()
  local tcp = daemon.start { policies = policies,
    config = ("return { metrics = { listen = '127.0.0.1:%d', page = true, token_file = %q } }"):format(port, folder .. "/token") }
  local unix = daemon.start { policies = policies, tools = json.encode(many),
    config = ("return { metrics = { listen = %q, page = true } }"):format("unix:" .. folder .. "/metrics.sock") }
  process.write(folder .. "/calls.ndjson",
    ([[{"tool":"echo","arguments":{"text":"%s"},"session":"a","result":"b"}]]):format(("long "):rep(40)) .. "\n")
  packages.shell(("mkdir '%s/against'"):format(folder))
  process.write(folder .. "/against/echo.lua", [[
return policy { tools = { "echo" }, check = function() return refuse("never", "it is never called, whatever it says") end }
]])
  process.run { daemon.binary, "replay", folder .. "/calls.ndjson", "--against", folder .. "/against",
                "--html", folder .. "/report.html" }
  tap("the page in Chromium", { node, place .. "/npm/page.mjs", tostring(port), token, tcp.socket,
                                folder .. "/metrics.sock", unix.socket, folder .. "/report.html" }, 180)
  local ok, why = pcall(daemon.stop_all)
  if not ok then tally(false, "not ok - " .. tostring(why)) end
  process.remove(folder)
end

-- ---- selection ----

local function any(names)
  for _, name in ipairs(names) do
    if chosen(name) then return true end
  end
  return false
end

if any { "sdk", "inspector", "http", "suite", "servers", "page", "restart", "ask" } or any(SERVERS) then packages.npm() end
if any { "pydantic", "servers", "restart", "ask" } or any(SERVERS) then packages.python() end
for _, script in ipairs { { "sdk", "sdk_v1", "TypeScript SDK v1" }, { "sdk", "sdk_v2", "TypeScript SDK v2" },
                          { "inspector", "inspector", "MCP Inspector" },
                          { "http", "over_http", "TypeScript SDK v1 over HTTP, through the bridge of docs/clients.md" } } do
  if chosen(script[1]) then
    with_daemon({ policies = "policies" }, function(gate)
      tap(script[3], { node, place .. "/npm/" .. script[2] .. ".mjs", daemon.binary, gate.socket,
                       unistd.getcwd() .. "/docs/clients.md" })
    end)
  end
  if script[1] == "sdk" and chosen "sdk" then
    with_daemon({ upstream = "desk" }, function(gate)
      tap(script[3] .. ", with an upstream", { node, place .. "/npm/" .. script[2] .. ".mjs", daemon.binary,
                                                      gate.socket })
    end)
  end
end
if chosen "suite" then
  for _, upstream in ipairs { false, "suite" } do
    suite("MCP conformance suite 0.1, legacy", upstream, "conformance-0.1", "--suite", "all")
    suite("MCP conformance suite 0.2, what 2025-11-25 requires", upstream, "conformance-0.2", "--requirements",
      "2025-11-25")
    suite("MCP conformance suite 0.2, what 2026-07-28 requires", upstream, "conformance-0.2", "--requirements",
      "2026-07-28")
  end
end
for _, name in ipairs(SERVERS) do
  if chosen "servers" or chosen(name) then serve(name) end
end
if chosen "pydantic" then
  with_daemon({ policies = "policies" }, function(gate)
    tap("pydantic-ai", { place .. "/venv/bin/python", here .. "/pydantic_client.py", daemon.binary, gate.socket })
  end)
end
if chosen "ask" then
  with_daemon({ policies = { ["pay.lua"] = PAY } }, function(gate)
    tap("the TypeScript SDKs, asked by a policy", { node, place .. "/npm/ask.mjs", daemon.binary, gate.socket })
    tap("the Python SDK, asked by a policy", { place .. "/venv/bin/python", here .. "/ask_client.py", daemon.binary,
                                               gate.socket })
  end)
end
if chosen "restart" then
  for _, script in ipairs { { "the TypeScript SDKs and the Inspector, through a restart", node, place .. "/npm/restart.mjs" },
                            { "the Python SDK and pydantic-ai, through a restart", place .. "/venv/bin/python",
                              here .. "/restart_client.py" } } do
    local folder = restarts()
    tap(script[1], { script[2], script[3], daemon.binary, folder })
    process.remove(folder)
  end
end
if chosen "python-client" then require "python_client"(tap, tally, with_daemon) end
if chosen "typescript-client" then require "typescript_client"(tap, tally, with_daemon) end
if chosen "schema" then
  local argv = { "python3", here .. "/json_schema.py", daemon.bench }
  local suite_folder = os.getenv "SUITE"
  if suite_folder and suite_folder ~= "" then argv[4], argv[5] = "--suite", suite_folder end
  tap("JSON Schema test suite, by Bowtie's protocol", argv, 300, unistd.getcwd())
end
if chosen "monitoring" then tap("monitoring", { "luajit", here .. "/monitoring.lua" }, 300, unistd.getcwd()) end
if chosen "collector" then
  print "OpenTelemetry collector"
  require "collector"(packages.collector(), tally)
end
if chosen "page" then page() end
for _, part in ipairs { { "bare", "a bare Debian", "bash", "bare.sh" }, { "package", "Debian package", "bash", "run.sh" },
                        { "binary", "static program, wheel, npm package", "bash", "binary.sh" },
                        { "image", "container image", "python3", "image.py" },
                        { "arm64", "static program for arm64", "bash", "arm64.sh" } } do
  if chosen(part[1]) then tap(part[2], { part[3], "tests/package/" .. part[4] }, 1800, unistd.getcwd()) end
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
