-- The cost of the ledger: in the memory store, in Redis by its own statistics, and between a client and real daemons.
-- What is compared alternates within one run, and the ratios are of one round each, so that a busy machine shows in the
-- spread and not in the result. Ends with a table of the targets.
--   TOOLGATE=build/toolgate BENCH=build/bench/ledger luajit tests/bench/ledger.lua [ROUNDS]
package.path = "tests/support/?.lua;" .. package.path
local daemon = require "daemon"
local process = require "process"
local redis = require "redis"
local stunnel = require "stunnel"
local client_of = require "client"

local ROUNDS = tonumber(arg[1]) or 7
local FEW_ROUNDS = math.max(3, math.floor(ROUNDS / 2))
local WARM_CALLS, COUNTED_CALLS, TIMED_CALLS, MEMORY_CALLS = 8, 100, 400, 12000
local EMPTY = "bench_empty"
local bench = os.getenv "BENCH"
local targets = {}

local function run(...)
  local code, out, err = process.run({ ... }, { patience_s = 300 })
  if code ~= 0 then error(("%s: %s"):format(table.concat({ ... }, " "), err), 0) end
  return out
end

-- Parses "name=1.5 other=2" lines to { name = { numbers, one per line } }.
local function numbers(out)
  local found = {}
  for name, value in out:gmatch "([%w_]+)=([%d.]+)" do
    found[name] = found[name] or {}
    table.insert(found[name], tonumber(value))
  end
  return found
end

local function percentile(list, share)
  local sorted = {}
  for i, n in ipairs(list) do sorted[i] = n end
  table.sort(sorted)
  return sorted[math.max(1, math.ceil(#sorted * share))]
end

local function median(list) return percentile(list, 0.5) end

local function least(list) return math.min(unpack(list)) end

local function line(...) print((...):format(select(2, ...))) end

local function target(what, unit, most, measured)
  table.insert(targets, { what = what, unit = unit, most = most, measured = measured })
end

local function machine()
  local model = process.read("/proc/cpuinfo"):match "model name%s*:%s*([^\n]*)" or "?"
  local cores = select(2, process.read("/proc/cpuinfo"):gsub("\nprocessor", "\nprocessor")) + 1
  line("%d cores, %s; load before %s", cores, model, process.read("/proc/loadavg"):match "[%d.]+ [%d.]+ [%d.]+")
end

-- ---- the memory store -------------------------------------------------------------

local function in_memory()
  print "\nIn the memory store, an admit and its settle:"
  local counts, most = { 1, 1000, 100000 }, { 0.6, 0.8, 1.6 }
  local seen = { {}, {}, {} }
  for round = 1, ROUNDS do
    for i, sessions in ipairs(counts) do
      seen[i][round] = least(numbers(run(bench, "local", sessions, 100000, 2)).pair_us)
    end
  end
  for i, sessions in ipairs(counts) do
    line("  %6d sessions   %5.2f us a pair at best, median %.2f", sessions, least(seen[i]), median(seen[i]))
    target(("local pair, %d sessions, at best"):format(sessions), "us", most[i], least(seen[i]))
  end
  print "\nBytes of a session in the memory store:"
  for _, calls in ipairs { 1, 6, 20, 50, 120 } do
    local bytes = numbers(run(bench, "memory", 5000, calls)).session_bytes[1]
    line("  %4d after %d calls", bytes, calls)
    local limit = ({ [20] = 1300, [120] = 2400 })[calls]
    if limit then target(("session in the memory store, %d calls"):format(calls), "B", limit, bytes) end
  end
end

-- ---- Redis by its own statistics ---------------------------------------------------

local function function_calls(store)
  local calls, us = store:does("INFO", "commandstats"):match "cmdstat_fcall:calls=(%d+),usec=(%d+)"
  return tonumber(calls) or 0, tonumber(us) or 0
end

-- Redis' own time per function call while `work` runs.
local function own_us(store, work)
  local calls, us = function_calls(store)
  work()
  local calls_after, us_after = function_calls(store)
  return (us_after - us) / (calls_after - calls)
end

-- Commits as a daemon sends them, beside an empty function without keys and arguments.
local function own_time(store)
  store:does("FUNCTION", "LOAD", "REPLACE",
             ("#!lua name=%s\nredis.register_function('%s', function() return 1 end)"):format(EMPTY, EMPTY))
  local commit, empty, ratio = {}, {}, {}
  for round = 1, ROUNDS do
    commit[round] = own_us(store, function() run(bench, "flight", store.socket, 16, 1) end)
    empty[round] = own_us(store, function()
      run("redis-benchmark", "-s", store.socket, "-n", 50000, "-P", 16, "-c", 1, "--csv", "FCALL", EMPTY, 0)
    end)
    ratio[round] = commit[round] / empty[round]
  end
  line("\nRedis' own time (INFO commandstats): a commit %.2f us at best, median %.2f; an empty function %.2f, %.2f; ratio %.1f",
       least(commit), median(commit), least(empty), median(empty), median(ratio))
  target("Redis' own time of a commit, of an empty function", "x", 9, median(ratio))
end

-- ---- pairs in flight ---------------------------------------------------------------

local function flights(store)
  print "\nPairs of admit and settle per second, Redis on a Unix socket:"
  for _, in_flight in ipairs { 1, 16, 256 } do
    local rates, p50, p99 = {}, {}, {}
    for round = 1, FEW_ROUNDS do
      local found = numbers(run(bench, "flight", store.socket, in_flight, 1))
      rates[round], p50[round], p99[round] = found.pairs_s[1], found.p50_us[1], found.p99_us[1]
    end
    line("  %3d in flight   %6.0f per second, p50 %5d us, p99 %5d us", in_flight, median(rates), median(p50), median(p99))
  end
end

-- The cost of an append-only file. The rates measure this machine's disk.
local function append_only()
  print "\nPairs per second of a Redis that writes an append-only file:"
  for _, how in ipairs { "everysec", "always" } do
    local store = redis.start { arguments = { "--appendonly", "yes", "--appendfsync", how,
                                              "--auto-aof-rewrite-percentage", "0" } }
    local rates, began, calls = {}, store:info "aof_current_size", store:calls "fcall"
    for i, in_flight in ipairs { 1, 16, 256 } do
      local list = {}
      for round = 1, FEW_ROUNDS do list[round] = numbers(run(bench, "flight", store.socket, in_flight, 1)).pairs_s[1] end
      rates[i] = median(list)
    end
    local bytes = (store:info "aof_current_size" - began) / ((store:calls "fcall" - calls) / 2)
    line("  appendfsync %-8s   %6.0f with 1 in flight, %6.0f with 16, %6.0f with 256; %d bytes a pair", how, rates[1],
         rates[2], rates[3], bytes)
    if how == "everysec" then target("append-only file, a pair", "B", 3500, bytes) end
  end
end

-- The cost of the stunnel of docs/scaling.md.
local function tunnels()
  if not stunnel.program() then
    print "\nThrough TLS: not measured, there is no stunnel here"
    return
  end
  local store = stunnel.redis()
  local tunnel = stunnel.start(store):gsub("^unix:", "")
  print "\nPairs per second without and with TLS by stunnel, appendfsync everysec:"
  for _, in_flight in ipairs { 1, 16, 256 } do
    local rate, p50 = { {}, {} }, { {}, {} }
    for round = 1, FEW_ROUNDS do
      for i, path in ipairs { store.socket, tunnel } do
        local found = numbers(run(bench, "flight", path, in_flight, 1))
        rate[i][round], p50[i][round] = found.pairs_s[1], found.p50_us[1]
      end
    end
    line("  %3d in flight   %6.0f, p50 %5d us; with TLS %6.0f, p50 %5d us", in_flight, median(rate[1]), median(p50[1]),
         median(rate[2]), median(p50[2]))
  end
end

-- ---- real daemons: commands, hops ----------------------------------------------------

local FIND = [==[
-- find: finds an order. Reads.
return tool "find" {
  description = "Find an order.", effects = "read", schema = params { number = int "Its number" },
  run = function(args) return { found = args.number } end,
}
]==]

local GATEWAY = [==[
-- For every agent: what the tool list looks like.
return gateway {
  prepare_tools = function(defs, call) if call.no_progress < 100 and #call.history < 1000 then return defs end end,
}
]==]

local FLEETS = { { name = "", policies = { ["find.lua"] = FIND } },
                 { name = ", with prepare_tools", policies = { ["find.lua"] = FIND, ["gateway.lua"] = GATEWAY } } }

-- Two daemons of one Redis, and a client of each.
local function start_fleet(fleet)
  fleet.store = redis.start()
  fleet.calls, fleet.clients = 0, {}
  for i = 1, 2 do
    fleet.clients[i] = daemon.start { policies = fleet.policies, config =
      ("return { socket_mode = '0600', log = { level = 'error' }, ledger = { redis = %q, timeout_ms = 5000 } }")
      :format(fleet.store:url()) }:connect()
    process.eventually("the daemon reaches Redis", function()
      return fleet.clients[i]:asks("toolgate/status").ledger.connected
    end)
  end
  return fleet
end

-- One call of the session, at the daemon that it stays with, or at the other one each time. A turn has 12 calls.
local function call(fleet, session, hops)
  fleet.calls = fleet.calls + 1
  local state = fleet[session] or { calls = 0 }
  fleet[session] = state
  state.calls = state.calls + 1
  local client = fleet.clients[hops and state.calls % 2 + 1 or 1]
  local meta = client_of.session(session, { turn = math.floor(state.calls / 12) + 1 })
  local began = process.now()
  local result = client:calls("find", { number = state.calls }, meta)
  local took = process.now() - began
  if client_of.verdict(result).verdict ~= "pass" then error("a call was refused: " .. client_of.json.encode(result), 0) end
  return took * 1e6
end

-- What daemons send while `work` runs, per command: MONITOR names also what scripts do, marked as such. TIME is left out,
-- which a busy daemon sends once a second.
local function commands_of(store, work)
  local monitor, counts = store:sends "MONITOR", {}
  monitor:settimeout(process.PATIENCE_S)
  assert(monitor:receive "*l" == "+OK")
  work()
  store:does("ECHO", "the end")
  while true do
    local seen = assert(monitor:receive "*l")
    if seen:find('"the end"', 1, true) then break end
    local by, command = seen:match '%[%d+ ([^%]]*)%] "(%w+)"'
    if by ~= "lua" and command ~= "TIME" then counts[command] = (counts[command] or 0) + 1 end
  end
  monitor:close()
  return counts
end

local function count_commands(fleet, hops)
  local session = hops and "counted hopping" or "counted staying"
  for _ = 1, WARM_CALLS do call(fleet, session, hops) end
  local counts = commands_of(fleet.store, function()
    for _ = 1, COUNTED_CALLS do call(fleet, session, hops) end
  end)
  local sum, words = 0, {}
  for command, count in pairs(counts) do
    sum = sum + count
    words[#words + 1] = ("%s %.2f"):format(command, count / COUNTED_CALLS)
  end
  table.sort(words)
  local what = ("commands a call, %s%s"):format(hops and "hopping" or "staying", fleet.name)
  line("  %-44s %.2f: %s", what, sum / COUNTED_CALLS, table.concat(words, ", "))
  target("Redis " .. what, "", hops and 4 or 2, sum / COUNTED_CALLS)
end

-- With what Redis keeps beside the values (used_memory).
local function count_bytes(fleet)
  local store = fleet.store
  for _, calls in ipairs { 1, 5, 20, 50, 120 } do
    local sessions = math.min(MEMORY_CALLS / calls, 1500)
    store:does "FLUSHALL"
    local before = store:info "used_memory"
    for i = 1, sessions do
      for _ = 1, calls do call(fleet, ("%d of %d"):format(i, calls), false) end
    end
    line("  a session of %3d calls in Redis: %d bytes", calls, (store:info "used_memory" - before) / sessions)
  end
end

local function time_hops(fleet)
  local staying, hopping, ratio, slow = {}, {}, {}, {}
  for round = 1, ROUNDS do
    local here, there = {}, {}
    for i = 1, TIMED_CALLS do
      here[i] = call(fleet, "staying", false)
      there[i] = call(fleet, "hopping", true)
    end
    staying[round], hopping[round] = median(here), median(there)
    ratio[round] = hopping[round] / staying[round]
    slow[round] = percentile(there, 0.99)
  end
  line("  a call%s: p50 %d us staying, %d us hopping; ratio %.2f (%.2f to %.2f); p99 hopping %d us", fleet.name, median(staying),
       median(hopping), median(ratio), least(ratio), math.max(unpack(ratio)), median(slow))
  target("p50 hopping, of staying" .. fleet.name, "x", 2.2, median(ratio))
end

local function fleets()
  print "\nThrough two daemons on one Redis, each call a tools/call, one at a time:"
  for _, fleet in ipairs(FLEETS) do
    start_fleet(fleet)
    count_commands(fleet, false)
    count_commands(fleet, true)
    time_hops(fleet)
  end
  count_bytes(FLEETS[1])
  daemon.stop_all()
end

-- Whole calls: tools/call over the socket with a policy, a Lua tool and the ledger.
local function whole_calls(store)
  print "\nWhole calls (tools/call) per second of one daemon, its clients on the same cores:"
  for _, shape in ipairs { { 1, 1 }, { 16, 1 }, { 16, 16 } } do
    for _, where in ipairs { "memory", "redis" } do
      local argv = { daemon.bench, "socket", "--connections", shape[1], "--depth", shape[2], "--seconds", FEW_ROUNDS,
                     "--json" }
      if where == "redis" then
        argv[#argv + 1] = "--redis"
        argv[#argv + 1] = store:url()
      end
      local of = client_of.json.decode(run(unpack(argv))).runs[1].call
      line("  %3d in flight, %-6s   %6.0f per second, p50 %5d us, p99 %5d us; the daemon's CPU time %.1f us a call",
           shape[1] * shape[2], where, of.msgs_per_s, of.p50_us, of.p99_us, of.cpu_us)
    end
  end
end

-- ---- the whole -----------------------------------------------------------------------

local function print_targets()
  print "\n                                                        wanted at most    measured"
  for _, t in ipairs(targets) do
    line("  %-52s %10s %-3s %10s %-3s %s", t.what, ("%g"):format(t.most), t.unit, ("%.4g"):format(t.measured), t.unit,
         t.measured <= t.most and "" or "MORE")
  end
end

io.stdout:setvbuf "line"
machine()
local ok, why = pcall(function()
  local store = redis.start()
  in_memory()
  own_time(store)
  fleets()
  append_only()
  flights(store)
  whole_calls(store)
  tunnels()
  print_targets()
end)
pcall(daemon.stop_all)
stunnel.stop_all()
redis.stop_all()
if not ok then
  io.stderr:write(tostring(why), "\n")
  os.exit(1)
end
line("\nload after %s", process.read("/proc/loadavg"):match "[%d.]+ [%d.]+ [%d.]+")
