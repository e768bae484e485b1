-- Runs the unit tests (cmocka) named as arguments, then the specs (busted), and ends with `N passed, N failed`.
-- SPECS=tests/spec/one_spec.lua runs that file alone, SPECS=none no spec. With GOLDEN=write the golden files are
-- written (tests/support/golden.lua).
package.path = "tests/support/?.lua;" .. package.path
local stdlib = require "posix.stdlib"
local golden = require "golden"

local TOOL = "busted --lua=luajit --lpath='tests/support/?.lua' --helper=tests/support/helper.lua"
             .. " --output=plainTerminal --pattern=_spec "

local passed, failed, pending = 0, 0, 0
local trouble = {}

-- Runs a command and passes each line of output to `see`; returns the exit code.
local function stream(command, see)
  local pipe = assert(io.popen(command .. " 2>&1; echo \"exit code $?\""))
  local code = 1
  for line in pipe:lines() do
    local ended = line:match "^exit code (%d+)$"
    if ended then code = tonumber(ended) else
      io.write(line, "\n")
      io.flush()
      see(line)
    end
  end
  pipe:close()
  return code
end

-- A program that fails without naming a failed test (a crash, a sanitizer's report) counts as one.
local function count(name, code, good, bad)
  if code ~= 0 and bad == 0 then bad = 1 end
  if bad > 0 then trouble[#trouble + 1] = name end
  passed, failed = passed + good, failed + bad
end

local function unit(binary)
  local good, bad = 0, 0
  local code = stream(binary, function(line)
    if line:find "^%[       OK %]" then good = good + 1 end
    if line:find "^%[  FAILED  %] %d+ test" then bad = bad + tonumber(line:match "%d+") end
  end)
  count(binary, code, good, bad)
end

local function specs(where)
  local good, bad = 0, 0
  local code = stream(TOOL .. where, function(line)
    local ok, failures, errors, rest = line:match "^(%d+) successe?s? / (%d+) failures? / (%d+) errors? / (%d+)"
    if ok then good, bad, pending = tonumber(ok), failures + errors, tonumber(rest) end
  end)
  count(where, code, good, bad)
end

local function count_units()
  local pipe = assert(io.popen "find tests/unit -name '*.c' | wc -l")
  local found = tonumber(pipe:read "*a")
  pipe:close()
  return found
end

-- A section that no test checks is a finding only if every test ran to its end.
local function check_golden(journal)
  local whole = not os.getenv "SPECS" and #arg == count_units() and failed == 0 and pending == 0
  for _, problem in ipairs(golden.finish(journal, os.getenv "GOLDEN" == "write", whole)) do
    print(problem)
    count("golden texts", 0, 0, 1)
  end
  os.remove(journal)
end

local journal = os.tmpname()
stdlib.setenv("GOLDEN_JOURNAL", journal)
for _, binary in ipairs(arg) do unit(binary) end
if os.getenv "SPECS" ~= "none" then specs(os.getenv "SPECS" or "tests/spec") end
check_golden(journal)

if #trouble > 0 then print("failed: " .. table.concat(trouble, ", ")) end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
