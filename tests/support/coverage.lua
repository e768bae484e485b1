-- coverage.lua BUILD: sums what gcov counted of src after the tests of a build with COVERAGE=1.
local build = assert(arg[1], "usage: coverage.lua BUILD")
local SHOWN = 12 -- files that are covered least
local LEAST_LINES = 20 -- shorter ones are not listed

local files = {}
local objects = io.popen(("find '%s/obj' -name '*.gcda' | sort"):format(build)):read "*a"
for object in objects:gmatch "[^\n]+" do
  local pipe = io.popen(("gcov -n -o '%s' '%s' 2>/dev/null"):format(object:match "^(.*)/", object))
  for name, percent, lines in pipe:read "*a":gmatch "File '([^']+)'\nLines executed:([%d%.]+)%% of (%d+)" do
    local path = name:match "(src/.*%.c)$"
    if path then
      files[path] = { lines = tonumber(lines), run = math.floor(tonumber(percent) * tonumber(lines) / 100 + 0.5) }
    end
  end
  pipe:close()
end

local rooms, list, all = {}, {}, { lines = 0, run = 0 }
for path, counted in pairs(files) do
  local room = path:match "^src/([^/]+)/"
  rooms[room] = rooms[room] or { lines = 0, run = 0 }
  for _, sum in ipairs { rooms[room], all } do
    sum.lines, sum.run = sum.lines + counted.lines, sum.run + counted.run
  end
  list[#list + 1] = { path = path, lines = counted.lines, share = counted.run / counted.lines }
end
if all.lines == 0 then
  io.stderr:write("coverage: nothing was counted in ", build, "\n")
  os.exit(1)
end

local function line(name, counted)
  print(("%-40s %6d of %6d lines %6.1f %%"):format(name, counted.run, counted.lines, 100 * counted.run / counted.lines))
end
local names = {}
for room in pairs(rooms) do names[#names + 1] = room end
table.sort(names)
for _, room in ipairs(names) do line("src/" .. room, rooms[room]) end
table.sort(list, function(a, b) return a.share < b.share or (a.share == b.share and a.path < b.path) end)
print "\ncovered least:"
local shown = 0
for _, file in ipairs(list) do
  if file.lines >= LEAST_LINES and shown < SHOWN then
    shown = shown + 1
    line(file.path, { lines = file.lines, run = math.floor(file.share * file.lines + 0.5) })
  end
end
print ""
line("src", all)
