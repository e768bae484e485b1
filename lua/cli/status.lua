-- toolgate status: prints the answer of toolgate/status for the person who is paged at night: what is served and since
-- when, then what is down or refused. What is as it should be takes one line; --all has the rest. The last part is
-- attention.lua. Names of tools come from servers and clients: they are printed without control characters.
local ui = require "ui"
local attention = require "attention"

local LIST_SHOWN   = 8  -- names on one line
local TOOLS_SHOWN  = 10 -- rows, without --all
local NAME_COLUMNS = 40

local function title(words) return ui.bold(words .. ":") end
local function has(text) return text and text ~= "" end
local function red_unless(fine, words) return fine and words .. cli.plain or ui.red(words) end

-- ---- what is served ----
local PATHS = { { "config", "configuration" }, { "policies", "policies" }, { "schemas", "schemas" }, { "tools", "tools" },
                { "mcp_configs", "mcpServers" }, { "log", "log" }, { "state", "state" } }

-- Only the operator is told them.
local function print_paths(paths)
  if not paths then return end
  for _, row in ipairs(PATHS) do
    local value = paths[row[1]]
    for i, path in ipairs(type(value) == "table" and value or { value }) do
      ui.say("  %-14s %s", i == 1 and row[2] or "", path)
    end
  end
  if not paths.config then ui.say("  %-14s none: defaults and options", "configuration") end
end

local function print_head(a)
  local g = a.generation or {}
  local state = a.state == "serving" and ui.green(a.state) or ui.yellow(a.state or "")
  ui.say("%s, pid %d, %s at %s", ui.bold("toolgate " .. (a.version or "")), a.pid, state, a.socket)
  ui.say("  started %s", ui.when(a.started_ms))
  ui.say("  generation %d, since %s: %s, %d polic%s [%s]", g.number, ui.when(g.since_ms), ui.count(g.tools, "tool"), g.policies,
         g.policies == 1 and "y" or "ies", g.hash)
  print_paths(a.paths)
  if g.warnings and #g.warnings > 0 then ui.say "  warnings:" end
  for _, warning in ipairs(g.warnings or {}) do ui.indent(warning, 4) end
  if a.reload and not a.reload.ok then -- one that went well shows in the generation's time
    ui.say("%s %s %s; the generation before it is served\n  errors:", title "reload", ui.red "failed", ui.when(a.reload.at_ms))
    ui.indent(a.reload.errors or "", 4)
  end
end

-- ---- upstreams ----
local UPSTREAM = { { "NAME", "name", -16 }, { "KIND", "kind", -6 }, { "STATE", "state", -9 }, { "TOOLS", "tools", 5 },
                   { "CALLS", "calls", 7 }, { "FAILED", "failures", 7 }, { "STARTS", "starts", 6 }, { "PID", "pid", 7 },
                   { "BREAKER", "breaker", -9 } }

local function print_row(text_of)
  io.write " "
  for _, column in ipairs(UPSTREAM) do io.write((" %" .. column[3] .. "s"):format(text_of(column))) end
  io.write "\n"
end

-- The last error, its age unless it is the present state, and the next try.
local function trouble_of(u)
  local ago = (u.last_error_s_ago or -1) >= 0 and ui.format("%d s ago: ", u.last_error_s_ago) or ""
  local next_try = (u.next_try_ms or -1) >= 0
                   and ui.format("; next try in %d s, or with toolgate reload", math.floor((u.next_try_ms + 999) / 1000)) or ""
  local paused = (u.breaker_after_s or -1) > 0 and ui.format("; not called for %d s more", u.breaker_after_s) or ""
  return ago .. u.last_error .. next_try .. paused
end

local function print_upstreams(list)
  if #list == 0 then return end
  ui.say("%s", title "upstreams")
  print_row(function(column) return column[1] end)
  for _, u in ipairs(list) do
    print_row(function(column)
      local value = u[column[2]]
      return value == nil and "-" or type(value) == "string" and value or cli.json(value)
    end)
    if has(u.last_error) then ui.indent(trouble_of(u), 4) end
    if has(u.last_stderr) and not (u.last_error or ""):find(u.last_stderr, 1, true) then
      ui.indent("it wrote last: " .. u.last_stderr, 4)
    end
  end
end

-- ---- ledger ----
local OUTAGE = { ["local"] = "each daemon counts for itself, and merges afterwards", closed = "calls are refused",
                 open = "calls pass uncounted" }

local function print_redis(l)
  local state = ui.green "connected"
  if not l.connected then state = ui.format("%s since %s: %s", ui.red "down", ui.when(l.away_since_ms), l.why_away or "") end
  ui.say("%s at %s, %s", has(l.server) and l.server or "redis", l.address, state)
  if not l.connected and OUTAGE[l.on_outage] then
    ui.say('  until then %s (on_outage = "%s")', OUTAGE[l.on_outage], l.on_outage)
  end
  if l.master then -- behind Sentinel the address says where the sentinels are
    ui.say("  master of '%s': %s, since %s", l.master.name, l.master.address, ui.when(l.master.since_ms))
  end
  ui.say("  requests: %d to redis, %d counted here, %d uncounted, %d refused; median %d us, slowest %d us", l.by_redis,
         l.by_stand_in, l.uncounted, l.refused, l.median_us or 0, l.worst_us or 0)
  ui.say("  connected %d times, %d outages; sessions: %d to be merged, %d merged, %d lost", l.connects, l.outages, l.waiting,
         l.merged, l.lost)
  if l.keys_at_connect then ui.say("  keys in its database at the last connect: %d", l.keys_at_connect) end
  if (l.forgotten or 0) > 0 then ui.say("  sessions evicted here to free memory: %d", l.forgotten) end
  for _, warning in ipairs(l.warnings or {}) do ui.say("  %s %s", ui.yellow "warning:", warning) end
end

local function print_ledger(l)
  io.write(title "ledger", " ")
  if l.on_outage then return print_redis(l) end
  ui.say("local, of this daemon alone; sessions: %d, %d bytes, %d evicted to free memory", l.sessions, l.bytes, l.forgotten)
end

local LAX = { missing = "may be missing", unknown_field = "is accepted", not_allowed = "is accepted" }

local function print_schema_lax(list)
  if #list == 0 then return end
  ui.say("%s learnt from calls that models insisted on", title "schemas that their servers do not keep")
  for _, known in ipairs(list) do
    ui.say("  %s: '%s' %s, until %s; in a policy of the tool, %s makes it permanent, %s forbids it", known.tool, known.path,
           LAX[known.code] or "may have another type", ui.time(known.until_ms), known.permanent, known.forbidden)
  end
end

-- ---- calls ----
local MORE = { "cancelled", "rewritten", "would", "policy_errors", "repair_chains", "loops", "calls_saved", "calls_not_saved",
               "fabricated_id_on_retry" }

local function print_counters(c)
  local more = {}
  for _, name in ipairs(MORE) do
    if (c[name] or 0) > 0 then more[#more + 1] = ui.format(", %s %d", name, c[name]) end
  end
  ui.say("%s %s, %s, %s%s", title "counters", ui.count(c.calls, "call"), ui.count(c.checks, "check"),
         ui.count(c.reports, "report"), table.concat(more))
  if (c.calls or 0) == 0 and (c.checks or 0) == 0 then return end
  ui.say("  verdicts  %s", ui.counts(c.verdicts, "none"))
  ui.say("  classes   %s", ui.counts(c.classes, "none"))
end

local function by_refusals(a, b)
  if a.refused ~= b.refused then return (a.refused or 0) > (b.refused or 0) end
  if a.calls ~= b.calls then return (a.calls or 0) > (b.calls or 0) end
  return a.tool < b.tool
end

-- Those refused most come first: of 300 tools, they are what somebody looks for.
local function print_tools(list, all)
  if not list or #list == 0 then return end
  table.sort(list, by_refusals)
  local shown = (all or #list <= TOOLS_SHOWN) and #list or TOOLS_SHOWN
  local columns = 4
  for i = 1, shown do columns = math.min(math.max(columns, #list[i].tool), NAME_COLUMNS) end
  ui.say("%s\n  %-" .. columns .. "s %7s %7s  %s", title "tools", "TOOL", "CALLS", "REFUSED", "CLASSES")
  for i = 1, shown do
    local row = list[i]
    ui.say("  %s %7d %7d  %s", ui.clip(row.tool, columns, true), row.calls, row.refused, ui.counts(row.classes, "-"))
  end
  if shown < #list then ui.say("  … and %d more: --all", #list - shown) end
end

local function print_connections(c)
  ui.say("%s %d of at most %d open; %d accepted, %d refused; %s in flight, %d bytes buffered", title "connections", c.open,
         c.most, c.accepted, c.refused, ui.count(c.calls_in_flight, "call"), c.buffered_bytes)
end

-- ---- policies ----
local function print_overlays(list)
  if not list or #list == 0 then return end
  ui.say("%s", title "overlays")
  for _, overlay in ipairs(list) do
    local names, over = {}, overlay.over or {}
    for i = 1, math.min(#over, LIST_SHOWN) do names[i] = ui.clip(over[i], NAME_COLUMNS) end
    ui.say("  %s (%s) over %s%s%s%s", overlay.file, overlay.mode, ui.count(#over, "tool"), #names > 0 and ": " or "",
           table.concat(names, ", "), #over > LIST_SHOWN and ", …" or "")
  end
end

local function print_rules(list)
  if not list or #list == 0 then return end
  ui.say("%s hits since this generation", title "rules")
  for _, policy in ipairs(list) do
    ui.say("  %s", policy.tool or "")
    for _, rule in ipairs(policy.rules or {}) do ui.say("  %7d  %s", rule.hits, rule.says) end
  end
end

-- ---- where records go ----
local function print_decisions(d)
  if not d then return end
  local sinks = {}
  for i, sink in ipairs(d.sinks or {}) do
    sinks[i] = ui.format(" %s %s, %d written, %d dropped%s", has(sink.path) and sink.path or sink.kind,
                                                         red_unless(sink.state == "up", sink.state or ""), sink.written,
                                                         sink.dropped, has(sink.why) and ": " .. sink.why or "")
  end
  ui.say("%s%s%s", title "decisions", d.on and "" or " off: no call is recorded", table.concat(sinks, ";"))
end

local function print_metrics(m)
  if not m then return end
  ui.say("%s %s%s, %d requests, %d refused, %d timed out", title "metrics", m.listen, m.page and " with the page" or "",
         m.requests, m.refused, m.timed_out)
end

local function print_traces(t)
  if not t then return end
  ui.say("%s %s %s, %d sent, %d waiting, %d dropped, %d rejected%s", title "traces", t.endpoint,
         red_unless(t.state == "up", t.state or ""), t.sent, t.waiting, t.dropped, t.rejected,
         has(t.last_error) and ": " .. t.last_error or "")
end

-- ---- the whole ----
local PRINTED = {}
for name in ([[version state pid started_ms uptime_s socket paths generation reload upstreams ledger tools schema_lax
               connections counters rules quarantined decisions problems policy_faults metrics traces config_hash
               pins]]):gmatch "%S+" do PRINTED[name] = true end

-- What a newer daemon has, and nothing above prints.
local function print_rest(a)
  for _, name in ipairs(cli.keys(a)) do
    local value = a[name]
    if not PRINTED[name] and not (type(value) == "table" and next(value) == nil) then
      ui.say("%s %s", title(name), cli.json(value))
    end
  end
end

local function print_attention(a)
  local begun = false
  for _, lines_of in ipairs(attention) do
    for _, line in ipairs(lines_of(a)) do
      if not begun then ui.say("%s", title "needs attention") end
      begun = true
      ui.say("  %s", cli.line(line))
    end
  end
end

return command {
  name = "status", summary = "show generation, upstreams, ledger and counters",
  about = [[
Prints what the running daemon serves and since when, from which files (for root and the daemon's
user), its upstreams, ledger and counters, the tools that it refused most, and what needs
attention. It prints what is served even if an upstream or Redis is down: look at the text, or at
`state` and `connected` of --json, not at the exit code.]],
  exits = [[
  0  the daemon answered
  2  usage, no daemon]],
  example = "  toolgate status --json | python3 -m json.tool",
  options = {
    flag { name = "all", letter = "a", words = "also all tools, and how often each rule of a policy decided" },
    socket, json,
  },

  run = function(o)
    local a = rpc(o, "toolgate/status")
    if o.json then return 0 end
    print_head(a)
    print_upstreams(a.upstreams or {})
    print_ledger(a.ledger or {})
    print_connections(a.connections or {})
    print_decisions(a.decisions)
    print_metrics(a.metrics)
    print_traces(a.traces)
    print_counters(a.counters or {})
    print_tools(a.tools, o.all)
    print_overlays(a.generation and a.generation.overlays)
    print_schema_lax(a.schema_lax or {})
    if o.all then print_rules(a.rules) end
    print_rest(a)
    print_attention(a)
  end,
}
