-- The layout of src: a room includes only from the floors below it, and a library's header is included only in the rooms
-- that wrap it.
local ROOMS = { "base", "io", "json", "schema", "sandbox", "upstream", "traces", "ledger", "policy", "catalog", "result",
                "gate", "replay", "server", "cli", "module" }

-- Which room may include which library's header; everything else is the C library's.
local LIBRARIES = {
  { "^event2/", { io = true, server = true } },
  { "^yajl/",   { json = true } },
  { "^lua",     { sandbox = true, policy = true, ledger = true, cli = true, module = true } },
  { "^lauxlib", { sandbox = true, policy = true, ledger = true, cli = true, module = true } },
  { "^pcre2",   { schema = true } },
  { "^xxhash",  { base = true } },
  { "^idn2",    { schema = true } },
  { "^hiredis", { ledger = true } },
  { "^curl/",   { upstream = true } },
  { "^seccomp", { upstream = true } },
}

local floor = {}
for height, room in ipairs(ROOMS) do floor[room] = height end

local function files(folder, pattern)
  local found = {}
  for path in io.popen(("find %s -name '%s' | sort"):format(folder, pattern)):lines() do found[#found + 1] = path end
  return found
end

local function includes(path, form)
  local found = {}
  local number = 0
  for line in io.lines(path) do
    number = number + 1
    local name = line:match(form)
    if name then found[#found + 1] = { name = name, at = ("%s:%d"):format(path, number) } end
  end
  return found
end

describe("the floors of src", function()
  it("include every room of src/", function()
    for path in io.popen("ls -d src/*/"):lines() do
      local room = path:match "src/([^/]+)/"
      assert(floor[room], "src/" .. room .. " has no floor in this spec")
    end
  end)

  for _, room in ipairs(ROOMS) do
    it("keep src/" .. room .. "'s includes from pointing up", function()
      for _, path in ipairs(files("src/" .. room, "*.[ch]")) do
        for _, include in ipairs(includes(path, '^%s*#%s*include%s*"([^"]+)"')) do
          local other = include.name:match "^([^/]+)/"
          assert(other and floor[other], include.at .. ': include as "room/file.h", not "' .. include.name .. '"')
          assert(floor[other] <= floor[room],
                 ("%s: %s is below %s and can't include %s"):format(include.at, room, other, include.name))
        end
      end
    end)
  end

  it("keep each library in the rooms that wrap it", function()
    for _, path in ipairs(files("src", "*.[ch]")) do
      local room = path:match "src/([^/]+)/"
      for _, include in ipairs(includes(path, "^%s*#%s*include%s*<([^>]+)>")) do
        for _, rule in ipairs(LIBRARIES) do
          if include.name:find(rule[1]) then
            assert(rule[2][room], include.at .. ": " .. include.name .. " does not belong into " .. room)
          end
        end
      end
    end
  end)
end)
