-- Runs the unit tests (cmocka) named as arguments and the specs (busted), several files at a time, and ends with
-- `N passed, N failed`. SPECS=tests/spec/one_spec.lua runs that file alone (SPECS=DIR: its files), SPECS=none no spec.
-- WORKERS_PER_CORE=1 runs fewer files at a time. With GOLDEN=write the golden files are written
-- (tests/support/golden.lua); KEEP_TIMES=1 leaves times.txt as it is.
--
-- Each file is a process of its own with a bound on its time. The slowest come first, so that none is left alone at the
-- end: tests/support/times.txt has their seconds, and a whole run without a failure brings it up to date. The output of
-- a file is printed when it ends.
package.path = "tests/support/?.lua;" .. package.path
local stdlib = require "posix.stdlib"
local unistd = require "posix.unistd"
local fcntl = require "posix.fcntl"
local wait = require "posix.sys.wait"
local golden = require "golden"
local process = require "process"

local TIMES = "tests/support/times.txt"
-- A spec waits for its daemons more than half of its time. Where other work shares the machine, one is enough.
local WORKERS_PER_CORE = tonumber(os.getenv "WORKERS_PER_CORE") or 2
local FILE_MAX_S = 600     -- a file that takes longer hangs; sanitizers and a busy machine make files up to 10x slower
local TIME_CHANGED = 3     -- a time is written anew only if it is as many times off, and as many seconds: no noise

local BUSTED = { "busted", "--lua=luajit", "--lpath=tests/support/?.lua", "--helper=tests/support/helper.lua",
                 "--output=plainTerminal", "--pattern=_spec" }

local passed, failed, pending = 0, 0, 0
local trouble = {}

local function lines_of(command)
  local pipe, list = assert(io.popen(command)), {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function read_times()
  local times = {}
  for line in process.read(TIMES):gmatch "[^\n]+" do
    local seconds, name = line:match "^([%d.]+) (%S+)$"
    if name then times[name] = tonumber(seconds) end
  end
  return times
end

-- A unit is known by its name below tests/unit, wherever it was built.
local function unit_job(binary)
  return { name = "unit/" .. (binary:match "/unit/(.+)$" or binary), argv = { binary }, unit = true }
end

local function spec_job(file)
  local argv = { unpack(BUSTED) }
  argv[#argv + 1] = file
  return { name = file, argv = argv }
end

local function jobs_of(times)
  local jobs = {}
  for _, binary in ipairs(arg) do jobs[#jobs + 1] = unit_job(binary) end
  local where = os.getenv "SPECS" or "tests/spec"
  if where ~= "none" then
    for _, file in ipairs(lines_of("find " .. where .. " -name '*_spec.lua' | sort")) do jobs[#jobs + 1] = spec_job(file) end
  end
  for i, job in ipairs(jobs) do job.place, job.expected_s = i, times[job.name] or math.huge end
  table.sort(jobs, function(a, b)
    if a.expected_s ~= b.expected_s then return a.expected_s > b.expected_s end
    return a.place < b.place
  end)
  return jobs
end

-- `timeout` ends the file's whole process group.
local function start(job)
  job.output = os.tmpname()
  job.began = process.now()
  local pid = assert(unistd.fork())
  if pid == 0 then
    local out = fcntl.open(job.output, fcntl.O_WRONLY)
    local null = fcntl.open("/dev/null", fcntl.O_RDONLY)
    unistd.dup2(null, 0)
    unistd.dup2(out, 1)
    unistd.dup2(out, 2)
    unistd.execp("timeout", { "--kill-after=5", tostring(FILE_MAX_S), unpack(job.argv) })
    unistd._exit(127)
  end
  return pid
end

-- A program without cmocka's sum is one test.
local function count_unit(text, code)
  local good, bad = select(2, text:gsub("%[       OK %]", "")), 0
  for number in text:gmatch "%[  FAILED  %] (%d+) test" do bad = bad + tonumber(number) end
  if good + bad == 0 then good = code == 0 and 1 or 0 end
  return good, bad, true
end

local function count_spec(text)
  local good, failures, errors, rest = text:match "(%d+) successe?s? / (%d+) failures? / (%d+) errors? / (%d+)"
  if not good then return 0, 0, false end
  pending = pending + tonumber(rest)
  return tonumber(good), failures + errors, true
end

-- A file that ends without its sum (a crash, a sanitizer's report, a hang) counts as one failure.
local function finish(job, how, code)
  local text = process.read(job.output)
  os.remove(job.output)
  job.took_s = process.now() - job.began
  local good, bad, summed = (job.unit and count_unit or count_spec)(text, code)
  local why
  if how == "exited" and code == 124 or how == "killed" then
    why = ("%s hung or was killed after %.0f s"):format(job.name, job.took_s)
  elseif code ~= 0 or not summed then
    why = job.name
  end
  if why then
    bad = math.max(bad, 1)
    trouble[#trouble + 1] = why
  end
  passed, failed = passed + good, failed + bad
  io.write(("-- %s (%.1f s)\n"):format(job.name, job.took_s))
  if not job.unit or bad > 0 then io.write(text, text:sub(-1) == "\n" and "" or "\n") end
  io.flush()
end

local function run(jobs, workers)
  local running, count, next_job = {}, 0, 1
  while next_job <= #jobs or count > 0 do
    while count < workers and next_job <= #jobs do
      local job = jobs[next_job]
      running[start(job)] = job
      next_job, count = next_job + 1, count + 1
    end
    local pid, how, code = wait.wait(-1)
    local job = running[pid]
    if job and how ~= "stopped" then
      running[pid], count = nil, count - 1
      finish(job, how, code)
    end
  end
end

-- The committed times change only where a file is new or gone, or a time is far off.
local function write_times(jobs, times)
  local changed, list, seen = false, {}, {}
  for _, job in ipairs(jobs) do
    local old, new = times[job.name], job.took_s
    seen[job.name] = true
    local off = not old or (math.abs(new - old) > TIME_CHANGED and (new > old * TIME_CHANGED or old > new * TIME_CHANGED))
    changed = changed or off
    list[#list + 1] = { name = job.name, seconds = off and new or old }
  end
  for name in pairs(times) do changed = changed or not seen[name] end
  if not changed then return end
  table.sort(list, function(a, b) return a.name < b.name end)
  local out = {}
  for _, each in ipairs(list) do out[#out + 1] = ("%.1f %s\n"):format(each.seconds, each.name) end
  process.write(TIMES, table.concat(out))
end

local function print_slowest(jobs)
  table.sort(jobs, function(a, b) return a.took_s > b.took_s end)
  local list = {}
  for i = 1, math.min(15, #jobs) do
    list[i] = ("%s %.1f s"):format(jobs[i].name:gsub("^tests/spec/", ""):gsub("_spec%.lua$", ""), jobs[i].took_s)
  end
  print("slowest: " .. table.concat(list, ", "))
end

-- A section that no test checks is a failure only if every test ran to its end. If some were skipped, one of them may
-- check it: it is printed, so that somebody looks before a machine that skips none fails.
local function check_golden(journal, whole)
  local write = os.getenv "GOLDEN" == "write"
  for _, problem in ipairs(golden.finish(journal, write, whole and pending == 0)) do
    print(problem)
    failed = failed + 1
    trouble[#trouble + 1] = "golden texts"
  end
  if whole and pending > 0 and not write then
    for _, problem in ipairs(golden.finish(journal, false, true)) do print("perhaps, for tests were skipped: " .. problem) end
  end
  os.remove(journal)
end

local times, journal = read_times(), os.tmpname()
local jobs = jobs_of(times)
-- tests/fuzz/replay.c is a unit for each fuzzer.
local all_units = #arg == #lines_of "find tests/unit -name '*.c'; ls tests/fuzz/fuzz_*.c | grep -v linear"
stdlib.setenv("GOLDEN_JOURNAL", journal)
run(jobs, WORKERS_PER_CORE * tonumber(lines_of("nproc")[1]))
local whole = not os.getenv "SPECS" and all_units and failed == 0
check_golden(journal, whole)
if whole and not os.getenv "KEEP_TIMES" then write_times(jobs, times) end
if #jobs > 1 then print_slowest(jobs) end
if #trouble > 0 then print("failed: " .. table.concat(trouble, ", ")) end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
