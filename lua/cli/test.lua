-- toolgate test: runs the examples of policies and prints one line for each. src/cli/lua_test.c runs them.
local ui = require "ui"
local test = cli.test()

local INDENT      = "      "
local VALUE_BYTES = 160  -- of an expected or actual value
local SAID_BYTES  = 4096 -- of what the model reads

-- ---- an example ----

-- "      gives     expected  pass"
local function print_row(field, word, colour, value)
  ui.say("%s%-9s %s%-9s %s%s", INDENT, field, colour, word, value ~= "" and cli.cut(value, VALUE_BYTES) or "(nothing)",
         (#value > VALUE_BYTES and " …" or "") .. cli.plain)
end

local function print_mismatch(m)
  for i, line in ipairs(m.changes or {}) do
    ui.say("%s%-9s %s%s%s", INDENT, i == 1 and m.field or "", line:sub(1, 1) == "-" and cli.red or cli.green, line, cli.plain)
  end
  if m.changes and m.more > 0 then ui.say("%s          … and %d more", INDENT, m.more) end
  if m.changes then return end
  print_row(m.field, "expected", cli.red, m.expected)
  if m.field ~= "says" then print_row("", "got", cli.green, m.got) end -- of `says` the whole feedback is below
end

-- Fields that are as expected, or that the example does not state.
local function print_matches(x)
  local printed = {}
  for _, m in ipairs(x.mismatches) do printed[m.field] = true end
  for _, field in ipairs { "gives", "status", "becomes", "shows" } do
    if not printed[field] and (x[field] or "") ~= "" then print_row(field, "got", cli.dim, x[field]) end
  end
end

local function print_said(said)
  ui.say("%sthe model reads%s", INDENT, said == "" and " nothing" or "")
  if said == "" then return end
  for _, line in ipairs(ui.lines(cli.cut(said, SAID_BYTES))) do ui.say("%s  %s", INDENT, ui.dim(line)) end
end

local function print_details(x)
  ui.say("%s%s:%d", INDENT, x.file, x.line)
  for _, m in ipairs(x.mismatches) do print_mismatch(m) end
  if x.fault ~= "" then ui.say("%s%-9s %-9s %s", INDENT, "", "because", x.fault) end
  if x.passed then print_matches(x) end
  print_said(x.said)
  if x.schema_unknown and not x.passed then
    ui.say("%s%s", INDENT, x.open and "its upstream has not listed it, so the result is open: give its definition with "
           .. "--tools FILE, as `toolgate tools --format mcp --socket PATH` prints it"
           or "its schema is unknown, so all arguments are valid: give its definition with --tools, or a 'schema' in the policy")
  end
end

local function print_json(x)
  local quote, mismatches = cli.quote, {}
  for i, m in ipairs(x.mismatches) do
    local changes = {}
    for k, line in ipairs(m.changes or {}) do changes[k] = quote(line) end
    mismatches[i] = ('{"field":"%s","expected":%s,"got":%s%s}'):format(m.field, quote(m.expected), quote(m.got),
                      m.changes and ',"changes":[' .. table.concat(changes, ",") .. "]" or "")
  end
  io.write('{"kind":"', x.sample and "sample" or "example", '","tool":', quote(x.tool), ',"example":', quote(x.example),
           ',"file":', quote(x.file), (',"line":%d,"passed":%s'):format(x.line, x.passed), x.open and ',"open":true' or "",
           ',"mismatches":[', table.concat(mismatches, ","), '],"gives":', quote(x.gives),
           x.fault ~= "" and ',"fault":' .. quote(x.fault) or "", ',"said":', quote(x.said), ',"arguments":',
           x.becomes or "null", x.shows and ',"shown":' .. x.shows or "", (',"us":%d}\n'):format(x.us))
end

local function print_example(o, x)
  if o.json then
    print_json(x)
  elseif not x.sample or not x.passed or o.verbose then
    local word = x.passed and ui.green "ok  " or x.open and ui.yellow "open" or ui.red "FAIL"
    ui.say("%s  %s: %s%s %s(%d µs)%s", word, x.tool, x.sample and "sample " or "", x.example, cli.dim, x.us, cli.plain)
    if o.verbose or not x.passed then print_details(x) end
  end
  io.flush()
end

-- ---- coverage ----

local function hits(list)
  local n = 0
  for _, item in ipairs(list) do n = n + (item.hit and 1 or 0) end
  return n
end

local function share(list)
  local hit = hits(list)
  local colour = #list == 0 and cli.dim or hit == #list and cli.green or cli.yellow
  return ("  %s%9s%s"):format(colour, #list == 0 and "-" or hit .. "/" .. #list, cli.plain)
end

-- "12, 14-16": a range spans lines that never run, and lines without code.
local function missed_lines(lines)
  local out, i = {}, 1
  while lines[i] do
    local first = i
    while lines[i] and not lines[i].hit do i = i + 1 end
    if i > first then
      out[#out + 1] = lines[first].what .. (i - 1 > first and "-" .. lines[i - 1].what or "")
    end
    i = i + 1
  end
  return table.concat(out, ", ")
end

local function print_file(f, columns)
  local missed = missed_lines(f.lines)
  io.write(("%-" .. columns .. "s  %8d"):format(f.tool ~= "" and f.tool or "(gateway)", f.examples), share(f.rules),
           share(f.lines), missed ~= "" and ("  %s: %s"):format(f.file, missed) or "", "\n")
  for _, rule in ipairs(f.rules) do
    if not rule.hit then ui.say("%" .. columns .. "s  %8s  %9s  rule never hit: %s", "", "", "", rule.what) end
  end
end

local function json_share(list, write)
  local missed = {}
  for _, item in ipairs(list) do
    if not item.hit then missed[#missed + 1] = write(item.what) end
  end
  return ('{"hit":%d,"total":%d,"missed":[%s]}'):format(hits(list), #list, table.concat(missed, ","))
end

local function print_file_json(f)
  ui.say('{"kind":"coverage","tool":%s,"file":%s,"examples":%d,"rules":%s,"lines":%s}', cli.quote(f.tool), cli.quote(f.file),
         f.examples, json_share(f.rules, cli.quote), json_share(f.lines, tostring))
end

-- 1 if it is less than --coverage-min.
local function print_coverage(o, files)
  local hit, total, columns, least = 0, 0, 12, o["coverage-min"] or 0
  for _, f in ipairs(files) do
    hit, total = hit + hits(f.lines), total + #f.lines
    if #f.tool <= 48 then columns = math.max(columns, #f.tool) end
    if o.json then print_file_json(f) end
  end
  if not o.json then
    ui.say("\n%s%-" .. columns .. "s  %8s  %9s  %9s  not run%s", cli.bold, "policy", "examples", "rules", "lines", cli.plain)
    for _, f in ipairs(files) do print_file(f, columns) end
    if total > 0 then ui.say("%d of %d lines run, %s %%", hit, total, cli.fixed(100 * hit / total, 1)) end
  end
  if total == 0 or hit * 100 >= total * least then return 0 end
  cli.warn(("coverage is %d of %d lines, less than the %d %% of --coverage-min"):format(hit, total, least))
  return 1
end

-- ---- the whole ----

local function print_sum(sum)
  local samples = sum.samples + sum.samples_failed
  io.write(("%d passed, %d failed"):format(sum.passed, sum.failed), sum.open > 0 and (", %d open"):format(sum.open) or "",
           samples > 0 and "; " .. ui.count(samples, "sample call") or "",
           sum.samples_failed > 0 and (", %d of them failed"):format(sum.samples_failed) or "",
           sum.unsampled > 0 and ("; no sample call could be made for %d"):format(sum.unsampled) or "",
           sum.broken > 0 and "; files that do not load were not tested: " .. ui.count(sum.broken, "error") or "", "\n")
end

-- The operator's own specs are run by busted.
local function point_at_specs(folder)
  local n = 0
  for _, name in ipairs(cli.list_folder(folder)) do
    if name:find "^[^.].*_spec%.lua$" then n = n + 1 end
  end
  if n > 0 then ui.say("%s: run busted --lua=luajit %s", ui.count(n, "spec"), folder) end
end

-- `config`, `policies`: what the options name, or the daemon has.
local function test_all(o, config, policies)
  local sum = { passed = 0, failed = 0, open = 0, samples = 0, samples_failed = 0, unsampled = 0, broken = 0 }
  local expired = false
  local function test_place(place)
    local count = test.run(o, place, o.only, function(outcome) print_example(o, outcome) end)
    expired = expired or count.expired
    for name, n in pairs(sum) do sum[name] = n + (count[name] or 0) end
  end
  if o.coverage then test.cover() end
  if #o == 0 then test_place(nil) end
  for _, place in ipairs(o) do test_place(place) end
  if not o.json then
    print_sum(sum)
    if #o == 0 and (not config or policies) then point_at_specs(policies or "policies") end
    for _, place in ipairs(o) do point_at_specs(place) end
  end
  local failed = sum.failed + sum.samples_failed + sum.broken > 0 or expired
  -- A pattern that matches nothing was mistyped: it must not look like success.
  if o.only and not failed and sum.passed + sum.open + sum.samples == 0 then
    cli.warn(("--only: no \"tool: example\" matches '%s'; without --only all are listed"):format(o.only))
    failed = true
  end
  local status = failed and 1 or 0
  return o.coverage and math.max(status, print_coverage(o, test.coverage())) or status
end

-- The places of policies, and the configuration with the files that it names, if it can be read. Of a file its whole folder:
-- it may read a schema from there with json "…".
local function watched(o)
  local paths = {}
  local function add(path) paths[#paths + 1] = path end
  local function add_place(path)
    local look = cli.stat(path)
    add(look and look.kind ~= "folder" and (path:match "^.*/" or ".") or path)
  end
  for _, place in ipairs(o) do add_place(place) end
  if o[1] and not o.config and not o.tools then return paths end
  add(o.config)
  local config = cli.load({ config = o.config, policies = o.policies, tools = o.tools, ["mcp-config"] = o["mcp-config"],
                            offline = true, only_config = true }).config
  if not config then return paths end
  add_place(config.policies or "policies")
  for _, path in ipairs(config.tools) do add(path) end
  for _, path in ipairs(config.mcp_configs) do add(path) end
  return paths
end

-- Runs everything now and after each change; returns only if nothing can be watched.
local function watch(o, config, policies)
  local watches = test.watch(watched(o))
  while watches do
    if cli.is_terminal and not o.json then io.write "\27[H\27[2J\27[3J" end
    test_all(o, config, policies)
    if not o.json then ui.say("%swaiting for changes; Ctrl-C ends%s", cli.dim, cli.plain) end
    io.flush()
    if not test.wait() then break end
  end
  return 2
end

local FILES_MAX = 64

-- Completes what the user left out by what the daemon has loaded, with the definitions that its upstreams have listed. The
-- daemon tells its files to root and its own user.
local function add_daemon_files(o)
  local told = cli.rpc(o.socket, "toolgate/status", nil, "exact").paths
  local paths, tools, own_config = ui.table(told), o.tools or {}, o.config
  if told == nil then
    fail("the daemon at %s tells its files only to root and to the user that runs it: name them with -c, --policies and "
         .. "--tools, or run this as that user", o.socket)
  end
  local function add(path)
    if #tools == FILES_MAX then fail("the daemon and --tools name more than %d files of tools", FILES_MAX) end
    tools[#tools + 1] = path
  end
  o.tools, o.config = tools, own_config or type(paths.config) == "string" and paths.config or nil
  o.policies = o.policies or type(paths.policies) == "string" and paths.policies or nil
  if not own_config then -- it brings its own files; the others were given by --tools
    local loaded, known = cli.load { config = o.config, offline = true, only_config = true }, {}
    if not loaded.config then fail("%s", loaded.problem) end
    for _, path in ipairs(loaded.config.tools) do known[cli.real_path(path) or ""] = true end
    for i, path in ipairs(ui.is_array(paths.tools) and paths.tools or {}) do
      if i <= FILES_MAX and type(path) == "string" and not known[path] then add(path) end
    end
  end
  local a, parts = cli.rpc(o.socket, "toolgate/tools", nil, "parts")
  local _, texts = cli.parse(parts.tools or "[]", true)
  local places, definitions = ui.table(a.runs_at), {} -- files have those of the others
  for i, tool in ipairs(ui.is_array(a.tools) and a.tools or {}) do
    local place = places[ui.text(ui.table(tool).name)]
    if ui.table(place).kind == "mcp" then definitions[#definitions + 1] = texts[i] end
  end
  add(cli.memory_file("[" .. table.concat(definitions, ",") .. "]")
      or fail "the daemon's definitions could not be kept: no memory")
end

return command {
  name = "test", operands = "[DIR|FILE]...", summary = "run the examples of policies", most = 1000,
  about = [[
Loads the policies of each DIR (default ./policies), or each FILE alone, and runs every example
through the gate, as the daemon does before it serves a new generation. With --socket it takes
the configuration, the policies (unless DIR or FILE are given) and the tools of a running daemon.]],
  exits = [[
  0  every example holds
  1  one fails, a file does not load, a shadow_until has come, --only matches nothing, or
     coverage is too low
  2  usage]],
  example = [[
  toolgate test policies
  toolgate test policies --coverage --watch
  toolgate test --socket /run/toolgate/toolgate.sock
  toolgate test policies/get_events.lua --only limit -v]],
  options = {
    text { name = "only", argument = "PATTERN",
           words = 'only examples whose "tool: example" matches; * and ? are wildcards' },
    flag { name = "verbose", letter = "v", words = "print the result of each, also of those that hold, and sample calls" },
    flag { name = "json", letter = "j", words = "print one JSON object a line" },
    flag { name = "coverage", words = "print which rules and lines no example reaches" },
    number { name = "coverage-min", argument = "PERCENT", words = "fail if the examples run fewer lines" },
    flag { name = "watch", letter = "w", words = "run again after every change" },
    text { name = "socket", letter = "s", argument = "PATH",
           words = "test what the daemon there has loaded, with its servers' schemas" },
    files,
  },

  run = function(o)
    o.coverage = o.coverage or o["coverage-min"] ~= nil
    if o.socket then add_daemon_files(o) end
    return (o.watch and watch or test_all)(o, o.config, o.policies)
  end,
}
