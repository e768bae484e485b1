-- The resident memory of a daemon with many policies, above one with a single policy: after its start and after each
-- reload with a changed policy. The policies are those of many_policies.lua: six fields, two rules, a check, three
-- examples; or short ones: four fields, one rule, a check, one example.
--   TOOLGATE=build/toolgate luajit tests/bench/policy_memory.lua [POLICIES [RELOADS]]
package.path = "tests/support/?.lua;tests/bench/?.lua;" .. package.path
local daemon = require "daemon"
local process = require "process"
local many = require "many_policies"

local COUNT, RELOADS = tonumber(arg[1]) or 10000, tonumber(arg[2]) or 5

local function start(shape, count)
  local policies = {}
  for i = 1, count do policies[("find_items_%05d.lua"):format(i)] = many[shape](i) end
  return daemon.start { policies = policies, arguments = { "--no-watch" } }
end

-- In KB, of all pages and of those that no other process shares. A load gives memory back in the turn after its reply:
-- an answered request comes after that. A ping, as the status of so many policies takes megabytes itself.
local function memory(gate)
  local client = gate:connect()
  client:asks "ping"
  client:close()
  local text = process.read("/proc/" .. gate:pid() .. "/smaps_rollup")
  return tonumber(text:match "Rss:%s+(%d+)"), tonumber(text:match "Private_Dirty:%s+(%d+)")
end

for _, shape in ipairs { "text", "short_text" } do
  local one = start(shape, 1)
  local _, own_of_one = memory(one)
  one:stop()
  local gate = start(shape, COUNT)
  local function report(when, ms)
    local all, own = memory(gate)
    print(("%-10s  %-9s  %6.1f MB resident, %5.2f KB a policy%s"):format(shape, when, all / 1024,
      (own - own_of_one) / (COUNT - 1), ms and (", %d ms"):format(ms) or ""))
  end
  report "start"
  for round = 1, RELOADS do
    gate:write_policy("find_items_00001.lua", many[shape](1) .. ("-- round %d\n"):format(round))
    local client = gate:connect()
    local result = client:asks "toolgate/reload"
    client:close()
    assert(result.ok)
    report("reload " .. round, result.ms)
  end
  gate:stop()
end
