-- The lines of each room: none has more than tests/spec/layout/budget.txt allows. Lower a figure when its room shrinks; a
-- commit that raises one does nothing else, and its body says why.
local FILES = { src = "find src -name '*.[ch]'", lua = "find lua -name '*.lua'",
                tests = "find tests -name '*.[ch]' -o -name '*.lua' -o -name '*.py' -o -name '*.mjs' -o -name '*.ts' "
                     .. "-o -name '*.sh'" }

local function lines_of(path)
  local count = 0
  for _ in io.lines(path) do count = count + 1 end
  return count
end

-- "src/json" for src/json/parse.c; lua and tests are a room each.
local function lines_by_room()
  local rooms = {}
  for top, find in pairs(FILES) do
    for path in io.popen(find):lines() do
      local room = top == "src" and path:match "^src/[^/]+" or top
      rooms[room] = (rooms[room] or 0) + lines_of(path)
    end
  end
  return rooms
end

it("no room has more lines than its budget", function()
  local budget, over = {}, {}
  for line in io.lines "tests/spec/layout/budget.txt" do
    local room, most = line:match "^(%S+)%s+(%d+)$"
    if room then budget[room] = tonumber(most) end
  end
  for room, lines in pairs(lines_by_room()) do
    if lines > (budget[room] or 0) then
      over[#over + 1] = ("%s has %d lines, and its budget is %d: what can go?"):format(room, lines, budget[room] or 0)
    end
  end
  assert.same({}, over)
end)
