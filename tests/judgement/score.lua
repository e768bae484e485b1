-- What the parts of the judgement found: lines that hold or fail, and the figures that docs/judgement.md shows.
local M = { passed = 0, failed = 0, figures = {} }

local VERBOSE = os.getenv "VERBOSE" == "1"

-- Prints a line, and counts it as passed or failed.
function M.judge(good, line, ...)
  if good then M.passed = M.passed + 1 else M.failed = M.failed + 1 end
  print((good and "ok      " or "NOT OK  ") .. line:format(...))
end

-- Prints a miss with VERBOSE=1.
function M.show(...)
  if VERBOSE then print("        " .. string.format(...)) end
end

-- Keeps figures for the page: { refused = 0, worked = 5136 }.
function M.keep(figures)
  for name, value in pairs(figures) do M.figures[name] = value end
end

-- "1,234,567".
function M.number(n)
  local text = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

-- "0.0": of `count` things, how many in 10,000.
function M.per_10000(n, count)
  return ("%.1f"):format(count > 0 and n * 10000 / count or 0)
end

-- A random number from 1 to n, the same ones in every run.
function M.deterministic(seed)
  local state = seed
  return function(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % n + 1
  end
end

return M
