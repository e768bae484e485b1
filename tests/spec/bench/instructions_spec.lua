-- A check, with and without its record in the decision log, may cost at most 5 % more instructions than
-- tests/bench/budget.txt says; `make budget` refreshes the file.
package.path = "tests/bench/?.lua;" .. package.path
local callgrind = require "callgrind"

local GROWTH_MAX = 0.05

local TITLES = { check = "checks", recorded = "checks that the decision log records" }

describe("the instruction budget", function()
  for _, name in ipairs(callgrind.BUDGETED) do
    it("holds for 1,000 " .. TITLES[name], function()
      if not callgrind.available then
        pending "needs valgrind: apt-get install valgrind"
        return
      end
      if process.read(daemon.binary):find("__asan_init", 1, true) then
        pending "counts the build without sanitizers"
        return
      end
      local budget, spent = callgrind.budget(name), callgrind.spent(name)
      assert.is_true(spent <= budget * (1 + GROWTH_MAX),
        ("1,000 %s take %.0f instructions, %.1f %% more than tests/bench/budget.txt; CONTRIBUTING.md says how to find out "
         .. "why"):format(TITLES[name], spent, (spent / budget - 1) * 100))
    end)
  end
end)
