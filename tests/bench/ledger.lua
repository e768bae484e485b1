-- The cost of the ledger: in Redis by its own statistics, in bytes, in the local engine, and in calls per second beside
-- redis-benchmark with the same pair of scripts on the same server. The variants alternate, and medians are printed
-- beside the best, so that a busy machine is visible; ratios are of one round each.
--   TOOLGATE=build/toolgate BENCH=build/bench/ledger luajit tests/bench/ledger.lua [ROUNDS]
package.path = "tests/support/?.lua;" .. package.path
local process = require "process"
local redis = require "redis"
local stunnel = require "stunnel"
local json = require("client").json

local ROUNDS = tonumber(arg[1]) or 7
local SESSIONS, TARGET = 1000, { admit = 8.5, settle = 7, bytes = 900, journal = 2048, pair = 5, ratio = 0.85 }
local FUNCTION = "tg1_bench_0123456789abcdef0123456789abcd"
local KEY, PACKED = "tg1:{" .. ("0"):rep(32) .. "}:s", ("a"):rep(67)
local binary, bench = os.getenv "TOOLGATE", os.getenv "BENCH"

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

local function median(list)
  local sorted = {}
  for i, n in ipairs(list) do sorted[i] = n end
  table.sort(sorted)
  return sorted[math.ceil(#sorted / 2)]
end

local function least(list) return math.min(unpack(list)) end

local function line(...) print((...):format(select(2, ...))) end

-- ---- the machine --------------------------------------------------------------

local function machine()
  local model = process.read("/proc/cpuinfo"):match "model name%s*:%s*([^\n]*)" or "?"
  local cores = select(2, process.read("/proc/cpuinfo"):gsub("\nprocessor", "\nprocessor")) + 1
  line("%d cores, %s; load before %s", cores, model, process.read("/proc/loadavg"):match "[%d.]+ [%d.]+ [%d.]+")
end

-- ---- in Redis -----------------------------------------------------------------

-- The server's time for a function that does nothing, with arguments of the same size.
local function empty_us(store)
  store:does("FUNCTION", "LOAD", "REPLACE", "#!lua name=bench_empty\nredis.register_function('" .. ("e"):rep(40)
             .. "', function() return '' end)")
  store:does("CONFIG", "RESETSTAT")
  run("redis-benchmark", "-s", store.socket, "-n", "50000", "-P", "50", "-c", "1", "--csv", "FCALL", ("e"):rep(40), "4", KEY,
      KEY, KEY, KEY, PACKED, "search_orders", "", "")
  return tonumber(store:does("INFO", "commandstats"):match "cmdstat_fcall:.-usec_per_call=([%d.]+)")
end

local function own_time(store)
  local found = numbers(run(bench, "scripts", store.socket, SESSIONS, ROUNDS * 3))
  print "\nIn Redis, by its own count (INFO commandstats), sessions with a full window:"
  line("  nothing   %5.2f us   a function that returns, with the same keys and arguments", empty_us(store))
  for _, script in ipairs { "admit", "settle" } do
    local list = found[script .. "_us"]
    line("  %-8s  %5.2f us   at best, median %.2f; wanted at most %.1f", script, least(list), median(list), TARGET[script])
  end
  print(("\nBytes a session (MEMORY USAGE), of %d sessions after 120 calls or more:"):format(SESSIONS))
  line("  hot       %5d      window, budgets, chains; wanted at most %d", found.hot_bytes[1], TARGET.bytes)
  line("  history   %5d      wanted at most %d", found.journal_bytes[1], TARGET.journal)
  line("  names     %5d      of its tools, goal and facts", found.names_bytes[1])
  local before = store:info "used_memory"
  run(bench, "scripts", store.socket, 4 * SESSIONS, 1)
  line("  in all    %5d      with what Redis keeps beside (used_memory of %d sessions more)",
       (store:info "used_memory" - before) / (3 * SESSIONS), 3 * SESSIONS)
end

-- ---- the local engine ------------------------------------------------------------

local function local_time()
  print "\nIn the local engine, an admit and its settle, packed, run and read:"
  for _, sessions in ipairs { 1, 1000, 100000 } do
    local found = numbers(run(bench, "local", sessions, 100000, ROUNDS))
    line("  %6d sessions   %5.2f us a pair at best, median %.2f; wanted at most %d; %d bytes a session", sessions,
         least(found.pair_us), median(found.pair_us), TARGET.pair, found.bytes[1] / found.sessions[1])
  end
end

-- ---- calls in flight ---------------------------------------------------------------

-- Pairs per second of redis-benchmark with this many requests in flight, in its better mode: many connections, or few
-- with a pipeline.
local SHAPES = { [1] = { { 1, 1 } }, [16] = { { 16, 1 }, { 1, 16 } }, [256] = { { 256, 1 }, { 16, 16 } } }

local function benchmark_pairs(store, in_flight)
  local best = 0
  for _, shape in ipairs(SHAPES[in_flight]) do
    local out = run("redis-benchmark", "-s", store.socket, "-n", in_flight == 1 and 30000 or 80000, "-c", shape[1], "-P",
                    shape[2], "--csv", "FCALL", FUNCTION, "4", KEY, KEY, KEY, KEY, PACKED, "search_orders", "", "")
    best = math.max(best, tonumber(out:match '"([%d.]+)","[%d.]+","[%d.]+","[%d.]+","[%d.]+","[%d.]+","[%d.]+"%s*$') / 2)
  end
  return best
end

local function flights(store)
  store:does("FLUSHALL")
  store:does("FUNCTION", "FLUSH")
  store:does("FUNCTION", "LOAD", run(bench, "library"))
  print "\nPairs of admit and settle a second, Redis on a Unix socket, beside redis-benchmark running the same pair:"
  for _, in_flight in ipairs { 1, 16, 256 } do
    local seen = { ratio = {}, rate = {}, theirs = {}, p50 = {}, p99 = {} }
    for round = 1, ROUNDS do
      local theirs = round % 2 == 1 and benchmark_pairs(store, in_flight)
      local found = numbers(run(bench, "flight", store.socket, in_flight, 1))
      theirs = theirs or benchmark_pairs(store, in_flight)
      seen.theirs[round], seen.rate[round] = theirs, found.pairs_s[1]
      seen.p50[round], seen.p99[round] = found.p50_us[1], found.p99_us[1]
      seen.ratio[round] = found.pairs_s[1] / theirs
    end
    line("  %3d in flight   %6.0f a second, p50 %5d us, p99 %5d us; redis-benchmark %6.0f; %.2f of it, wanted at least %.2f",
         in_flight, median(seen.rate), median(seen.p50), median(seen.p99), median(seen.theirs), median(seen.ratio),
         TARGET.ratio)
  end
end

-- The whole daemon: tools/call over its socket with a policy, a Lua tool and the ledger.
local function daemons(store)
  print "\nWhole calls (tools/call) a second of one daemon, its clients on the same cores:"
  for _, shape in ipairs { { 1, 1 }, { 16, 1 }, { 16, 16 } } do
    for _, where in ipairs { "local", "redis" } do
      local rates, p50, p99, cpu = {}, {}, {}, {}
      for round = 1, math.max(3, math.floor(ROUNDS / 2)) do
        local argv = { binary, "bench", "socket", "--connections", shape[1], "--depth", shape[2], "--seconds", 3, "--json" }
        if where == "redis" then
          argv[#argv + 1] = "--redis"
          argv[#argv + 1] = store:url()
        end
        local call = json.decode(run(unpack(argv))).runs[1].call
        rates[round], p50[round], p99[round], cpu[round] = call.msgs_per_s, call.p50_us, call.p99_us, call.cpu_us
      end
      line("  %3d in flight, %s   %6.0f a second, p50 %5d us, p99 %5d us; the daemon's CPU %.1f us a call", shape[1] * shape[2],
           where, median(rates), median(p50), median(p99), median(cpu))
    end
  end
end

-- The cost of an append-only file. It measures this machine's disk.
local function kept()
  print "\nPairs a second of a Redis that writes an append-only file:"
  for _, how in ipairs { "everysec", "always" } do
    local store = redis.start { arguments = { "--appendonly", "yes", "--appendfsync", how,
                                              "--auto-aof-rewrite-percentage", "0" } }
    local rates, began, runs = {}, store:info "aof_current_size", store:calls "fcall"
    for i, in_flight in ipairs { 1, 16, 256 } do
      local list = {}
      for round = 1, math.max(3, math.floor(ROUNDS / 2)) do
        list[round] = numbers(run(bench, "flight", store.socket, in_flight, 1)).pairs_s[1]
      end
      rates[i] = median(list)
    end
    line("  appendfsync %-8s   %6.0f with 1 in flight, %6.0f with 16, %6.0f with 256; %d bytes a pair", how, rates[1],
         rates[2], rates[3], (store:info "aof_current_size" - began) / ((store:calls "fcall" - runs) / 2))
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
  print "\nPairs a second without and with TLS by stunnel:"
  for _, in_flight in ipairs { 1, 16, 256 } do
    local rate, p50 = { {}, {} }, { {}, {} }
    for round = 1, ROUNDS do
      for i, path in ipairs { store.socket, tunnel } do
        local found = numbers(run(bench, "flight", path, in_flight, 1))
        rate[i][round], p50[i][round] = found.pairs_s[1], found.p50_us[1]
      end
    end
    line("  %3d in flight   %6.0f, p50 %5d us; with TLS %6.0f, p50 %5d us", in_flight, median(rate[1]), median(p50[1]),
         median(rate[2]), median(p50[2]))
  end
end

-- ---- ----------------------------------------------------------------------------------

machine()
local store = redis.start()
local ok, why = pcall(function()
  own_time(store)
  local_time()
  flights(store)
  daemons(store)
  kept()
  tunnels()
end)
stunnel.stop_all()
redis.stop_all()
if not ok then
  io.stderr:write(tostring(why), "\n")
  os.exit(1)
end
line("\nload after %s", process.read("/proc/loadavg"):match "[%d.]+ [%d.]+ [%d.]+")
