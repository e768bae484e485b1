-- Prints the instructions of one call, counted by callgrind, and where they go: those of each room of src and of each
-- library itself, and the dearest functions of each with all that they call. Without names, all of `check`, `recorded`,
-- `measured`, `repair`, `refuse`, `report`, `call` and `proxy` (tests/bench/callgrind.lua says what they are); CALLS and
-- twice as many are run.
--   TOOLGATE=build/toolgate [CALLS=1000] luajit tests/bench/instructions.lua [NAME...]
--   TOOLGATE=build/toolgate luajit tests/bench/instructions.lua --write-budget [NAME...]    writes tests/bench/budget.txt
package.path = "tests/support/?.lua;tests/bench/?.lua;" .. package.path
local callgrind = require "callgrind"

local CALLS = tonumber(os.getenv "CALLS") or 1000
local FUNCTIONS_EACH, SHARE_LEAST = 8, 0.01 -- of a room; of the total

local function sorted(costs, by)
  local keys = {}
  for key in pairs(costs) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return by(a) > by(b) end)
  return keys
end

local function print_room(room, each)
  print(("  %8.0f  %s"):format(each.rooms[room], room))
  local printed = 0
  for _, name in ipairs(sorted(each.functions, function(name) return each.functions[name].inclusive end)) do
    local cost = each.functions[name]
    if cost.room == room and cost.inclusive > each.total * SHARE_LEAST and printed < FUNCTIONS_EACH then
      print(("            %8.0f  %8.0f  %s"):format(cost.inclusive, cost.own, name))
      printed = printed + 1
    end
  end
end

local function print_subject(subject)
  local each = callgrind.measure(subject, CALLS)
  print(("%s: %.0f instructions (%s)"):format(subject.name, each.total, subject.about))
  print "       own   inclusive       own  function"
  for _, room in ipairs(sorted(each.rooms, function(room) return each.rooms[room] end)) do
    if each.rooms[room] > each.total * SHARE_LEAST then print_room(room, each) end
  end
end

if not callgrind.available then
  io.stderr:write "instructions: valgrind is not installed\n"
  os.exit(2)
end
if arg[1] == "--write-budget" then
  local counted, names = {}, { select(2, unpack(arg)) }
  for _, name in ipairs(#names > 0 and names or callgrind.BUDGETED) do counted[name] = callgrind.spent(name) end
  callgrind.write_budget(counted)
  os.exit(0)
end
local subjects = {}
for i, name in ipairs(arg) do subjects[i] = assert(callgrind.subject(name), "unknown: " .. name) end
for _, subject in ipairs(#subjects > 0 and subjects or callgrind.subjects) do print_subject(subject) end
