-- What commands print with.
local ui = {}

-- As string.format. A daemon of another version may not say everything: what is missing is 0, or "".
function ui.format(form, ...)
  local given, i = { ... }, 0
  for kind in form:gmatch "%%[-%d.]*(%a)" do
    i = i + 1
    if given[i] == nil then given[i] = kind == "s" and "" or 0 end
  end
  return form:format(unpack(given, 1, i))
end

function ui.say(form, ...) io.write(ui.format(form, ...), "\n") end

-- ui.red(words), …
for _, colour in ipairs { "dim", "bold", "red", "green", "yellow" } do
  ui[colour] = function(words) return cli[colour] .. words .. cli.plain end
end

-- Green for pass, yellow for what can be repaired, red for the rest.
local VERDICTS = { pass = cli.green, repair = cli.yellow, wait = cli.yellow, ask = cli.yellow }
function ui.verdict_colour(verdict) return VERDICTS[verdict] or cli.red end

-- A value of an answer that may have none, or null, or another type: "", 0, {}.
function ui.text(value) return type(value) == "string" and value or "" end
function ui.table(value) return type(value) == "table" and value or {} end
local ARRAY = getmetatable(cli.array {})
function ui.is_array(value) return type(value) == "table" and getmetatable(value) == ARRAY end
function ui.is_object(value) return type(value) == "table" and cli.keys(value) ~= nil end -- no list, no number
function ui.number(value)
  if type(value) == "table" then value = value[1] end -- one that a double does not hold
  return tonumber(value) or 0
end

-- "1 call", "2 calls"
function ui.count(n, noun) return ("%d %s%s"):format(n or 0, noun, n == 1 and "" or "s") end

local UNITS = { { 172800, 86400, "days" }, { 7200, 3600, "h" }, { 120, 60, "min" }, { 1, 1, "s" } }

-- How long ago, of milliseconds since the epoch: "now", "42 s ago", "3 min ago", "5 h ago", "2 days ago".
function ui.ago(ms)
  local s = math.floor((cli.now() - (ms or 0)) / 1000)
  for _, unit in ipairs(UNITS) do
    if s >= unit[1] then return ("%d %s ago"):format(math.floor(s / unit[2]), unit[3]) end
  end
  return "now"
end

-- "2026-05-03 22:14:07", in local time
function ui.time(ms) return os.date("%Y-%m-%d %H:%M:%S", math.floor((ms or 0) / 1000)) end

-- "2026-05-03 22:14:07 (3 min ago)"
function ui.when(ms) return ("%s (%s)"):format(ui.time(ms), ui.ago(ms or 0)) end

-- The lines of a text, without their ends.
function ui.lines(words)
  local out = {}
  for line in (words:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do out[#out + 1] = line end
  return out
end

-- Each of them after so many spaces.
function ui.indent(words, spaces)
  for _, line in ipairs(words ~= "" and ui.lines(words) or {}) do io.write((" "):rep(spaces), line, "\n") end
end

-- "error: …" on stderr, one for each text.
function ui.complain(kind, list)
  for _, words in ipairs(list or {}) do io.stderr:write(kind, ": ", cli.lines(words), "\n") end
end

-- At most so many columns, in which names that others chose command no terminal; `pads`: exactly as many.
function ui.clip(words, columns, pads)
  local shown, used = cli.clip(words, columns)
  return pads and shown .. (" "):rep(columns - used) or shown
end

-- The columns that the longest of these texts needs, between two bounds.
function ui.widest(list, least, most, text_of)
  local columns = least
  for _, item in ipairs(list) do columns = math.max(columns, (select(2, cli.clip(text_of(item), most)))) end
  return columns
end

-- "pass 4, refuse 3", without zeros
function ui.counts(counts, none)
  local out = {}
  for _, name in ipairs(counts and cli.keys(counts) or {}) do
    if counts[name] ~= 0 then out[#out + 1] = ("%s %d"):format(name, counts[name]) end
  end
  return #out > 0 and table.concat(out, ", ") or none
end

-- A word of a command line of sh.
function ui.word(words)
  if words:find "^[%w/._+,:@%%=-]+$" then return words end
  return "'" .. words:gsub("'", [['\'']]) .. "'"
end

-- A text as a string of Lua.
function ui.lua_string(words)
  return '"' .. words:gsub('[%c"\\]', function(c)
    return c == "\n" and "\\n" or c:find "%c" and ("\\%03d"):format(c:byte()) or "\\" .. c
  end) .. '"'
end

-- In long brackets of a level that the text does not close; quoted if it closes every level. A newline after the
-- opening bracket is not part of the text.
function ui.lua_long(words, newline)
  for level = 0, 6 do
    local equals = ("="):rep(level)
    local closing = "]" .. equals .. "]"
    if not (words .. "]"):find(closing, 1, true) then return "[" .. equals .. "[" .. newline .. words .. closing end
  end
  return ui.lua_string(words)
end

return ui
