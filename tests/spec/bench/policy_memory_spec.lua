-- What a loaded policy costs of memory (tests/bench/policy_memory.lua measures it exactly, with 10,000).
package.path = "tests/bench/?.lua;" .. package.path
local many = require "many_policies"

local COUNT, KB_MAX = 3000, 5.5 -- of 1000 the figure varies

local function kilobytes(count)
  local policies = {}
  for i = 1, count do policies[("find_items_%05d.lua"):format(i)] = many.short_text(i) end
  local gate = daemon.start { policies = policies, arguments = { "--no-watch" } }
  gate:connect():asks "ping" -- the daemon accepts before it has loaded, and answers after
  return tonumber(process.read("/proc/" .. gate:pid() .. "/smaps_rollup"):match "Private_Dirty:%s+(%d+)")
end

describe("a loaded policy", function()
  it("takes at most 5.5 KB", function()
    if process.read(daemon.binary):find("__asan_init", 1, true) or process.read(daemon.binary):find("__tsan_init", 1, true) then
      pending "measures the build without sanitizers"
      return
    end
    local each = (kilobytes(COUNT) - kilobytes(1)) / (COUNT - 1)
    assert.is_true(each <= KB_MAX, ("a policy takes %.2f KB"):format(each))
  end)
end)
