-- Golden texts: tests/golden/AREA.txt holds the wording that models and operators read, one section per key.
-- A spec asserts codes and structure itself, and leaves the wording to golden.check(AREA, KEY, TEXT). `make golden`
-- writes the files; the diff is the review. tests/unit/golden.h does the same for the unit tests. Each check is
-- appended to the journal that suite.lua makes ($GOLDEN_JOURNAL), and M.finish works from it.
local glob = require "posix.glob"

local M = { folder = "tests/golden" }

local HEADER = "Golden texts: written by `make golden`. Read the diff before you commit it."
local ROOT = require("posix.unistd").getcwd()

-- Values that vary from run to run, and their placeholders, in this order.
local VARIABLE = {
  { "/tmp/toolgate%-spec%-%w%w%w%w%w%w", "<dir>" },
  { ROOT:gsub("%p", "%%%0"), "<root>" },
  { "%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d+Z", "<time>" },
  { "%(%d[%d.]* µs%)", "(<duration>)" },
  { "%(%d[%d.]* ms%)", "(<duration>)" },
  { "(127%.0%.0%.1:)%d%d%d%d%d?", "%1<port>" },
  { "(localhost:)%d%d%d%d%d?", "%1<port>" },
  { "%(%d+ %a+ ago%)", "(<ago>)" },
  { "%(now%)", "(<ago>)" },
  { "(pid[= ])%d+", "%1<pid>" },
  { "(toolgate )%d+%.%d+%.%d+~?%l*", "%1<version>" },
}

-- `more`: further Lua patterns and their placeholders, { ["%d+ ms"] = "<ms> ms" }; tried first.
local function normalise(text, more)
  for pattern, placeholder in pairs(more or {}) do text = text:gsub(pattern, placeholder) end
  for _, each in ipairs(VARIABLE) do text = text:gsub(each[1], each[2]) end
  return (text:gsub("\n+$", ""))
end

local function path_of(area) return ("%s/%s.txt"):format(M.folder, area) end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

-- The sections of an area's file, key to text.
function M.sections(area)
  local found, key = {}, nil
  for line in (read(path_of(area)) or ""):gmatch "([^\n]*)\n" do
    local heading = line:match "^=== (.+)$"
    if heading then key, found[heading] = heading, ""
    elseif key then found[key] = found[key] .. line .. "\n" end
  end
  for each, text in pairs(found) do found[each] = text:gsub("\n+$", "") end
  return found
end

local function write_sections(area, sections)
  local keys = {}
  for key in pairs(sections) do keys[#keys + 1] = key end
  table.sort(keys)
  local out = { HEADER, "\n" }
  for _, key in ipairs(keys) do out[#out + 1] = ("\n=== %s\n%s\n"):format(key, sections[key]) end
  local file = assert(io.open(path_of(area), "wb"))
  file:write(table.concat(out))
  file:close()
end

local function writes() return os.getenv "GOLDEN" == "write" end

local function append_to_journal(area, key, text)
  local journal = os.getenv "GOLDEN_JOURNAL"
  assert(journal or not writes(), "GOLDEN=write works through `make golden`")
  if not journal then return end
  local file = assert(io.open(journal, "ab"))
  file:write(("%d %d %d\n%s%s%s"):format(#area, #key, #text, area, key, text))
  file:close()
end

local function read_journal(path)
  local entries, text, at = {}, read(path) or "", 1
  while at <= #text do
    local area, key, len, from = text:match("^(%d+) (%d+) (%d+)\n()", at)
    local function take(count)
      from = from + count
      return text:sub(from - count, from - 1)
    end
    entries[#entries + 1] = { area = take(area), key = take(key), text = take(len) }
    at = from
  end
  return entries
end

-- Fails unless the text equals the section. With GOLDEN=write the text is only recorded.
function M.check(area, key, text, more)
  text = normalise(text, more)
  assert(not ("\n" .. text):find "\n=== ", "a golden text must not contain a line that begins with '=== '")
  append_to_journal(area, key, text)
  if writes() then return end
  local expected = M.sections(area)[key]
  if not expected then
    error(("%s has no section '%s': run `make golden`. The text is:\n%s"):format(path_of(area), key, text), 2)
  elseif expected ~= text then
    error(("%s, section '%s' (if the new text is right: `make golden`)\n--- expected\n%s\n--- got\n%s\n---"):format(
          path_of(area), key, expected, text), 2)
  end
end

-- Called after the run. Writes the files if `write`. `whole`: every test ran, so a section that no test checked is
-- removed (write) or a problem. Returns the list of problems.
function M.finish(journal, write, whole)
  local problems, checked = {}, {}
  local function problem(...) problems[#problems + 1] = string.format(...) end

  for _, path in ipairs(glob.glob(M.folder .. "/*.txt") or {}) do checked[path:match "([^/]+)%.txt$"] = {} end
  for _, entry in ipairs(read_journal(journal)) do
    checked[entry.area] = checked[entry.area] or {}
    local before = checked[entry.area][entry.key]
    if write and before and before ~= entry.text then
      problem("%s: '%s' is checked with two texts:\n%s\n--- and\n%s", path_of(entry.area), entry.key, before, entry.text)
    end
    checked[entry.area][entry.key] = entry.text
  end

  for area in pairs(checked) do
    local sections = M.sections(area)
    for key in pairs(whole and sections or {}) do
      if not checked[area][key] then
        if write then sections[key] = nil
        else problem("%s: no test checks '%s': run `make golden`", path_of(area), key) end
      end
    end
    if write then
      for key, text in pairs(checked[area]) do sections[key] = text end
      write_sections(area, sections)
    end
  end
  return problems
end

return M
