-- Runs the unit tests (cmocka) named as arguments, then the specs (busted), and ends with `N passed, N failed`.
-- SPECS=tests/spec/one_spec.lua runs that file alone.
local TOOL = "busted --lua=luajit --lpath='tests/support/?.lua' --helper=tests/support/helper.lua"
             .. " --output=plainTerminal --pattern=_spec "

local passed, failed = 0, 0
local trouble = {}

-- Streams a command's output, handing each line to `see`; returns its exit code.
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
    local ok, failures, errors = line:match "^(%d+) successe?s? / (%d+) failures? / (%d+) errors?"
    if ok then good, bad = tonumber(ok), failures + errors end
  end)
  count(where, code, good, bad)
end

for _, binary in ipairs(arg) do unit(binary) end
specs(os.getenv "SPECS" or "tests/spec")

if #trouble > 0 then print("failed: " .. table.concat(trouble, ", ")) end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
