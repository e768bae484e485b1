-- The statements of a TOML file: enough to find tables, read their values, and cut them out. Returns a list of { path,
-- value (nil: a header), from, to }: whole lines, the bytes from..to-1.
local jsonc = require "jsonc"
local toml = {}
local wrong = jsonc.wrong

local function skip(text, at, over_lines)
  while true do
    at = text:match(over_lines and "^[ \t\r\n]*()" or "^[ \t]*()", at)
    if text:sub(at, at) ~= "#" or not over_lines then return at end
    at = text:match("^[^\n]*()", at)
  end
end

local ESCAPES = { b = "\b", t = "\t", n = "\n", f = "\f", r = "\r", ['"'] = '"', ["\\"] = "\\" }

local function unescape(words)
  words = words:gsub("\\\r?\n%s*", "")
  return (words:gsub("\\(.)(%x?%x?%x?%x?)", function(c, digits)
    if c == "u" and #digits == 4 then return (cli.parse('"\\u' .. digits .. '"')) end
    return (ESCAPES[c] or "\\" .. c) .. digits
  end))
end

-- A string of any of the four kinds, and where it ends.
local function read_string(text, at)
  local quote = text:match('^"""', at) or text:match("^'''", at) or text:sub(at, at)
  local is_basic, from = quote:sub(1, 1) == '"', at + #quote
  local stop = from
  while true do
    local c = text:sub(stop, stop)
    if c == "" or (c == "\n" and #quote == 1) then wrong(text, at, "a string without its end") end
    if text:sub(stop, stop + #quote - 1) == quote then break end
    stop = stop + (is_basic and c == "\\" and 2 or 1)
  end
  local words = text:sub(from, stop - 1)
  if #quote == 3 then words = words:gsub("^\r?\n", "") end
  return is_basic and unescape(words) or words, stop + #quote
end

local function read_key(text, at)
  local path = {}
  while true do
    at = skip(text, at)
    local word, to
    if text:find("^[\"']", at) then word, to = read_string(text, at) else word, to = text:match("^([%w_-]+)()", at) end
    if not word then wrong(text, at, "expected a key") end
    path[#path + 1], at = word, skip(text, to)
    if text:sub(at, at) ~= "." then return path, at end
    at = at + 1
  end
end

local read_value

local function put(into, path, value)
  for i = 1, #path - 1 do
    into[path[i]] = type(into[path[i]]) == "table" and into[path[i]] or {}
    into = into[path[i]]
  end
  into[path[#path]] = value
end

local function read_list(text, at, closing)
  local out = closing == "]" and cli.array {} or {}
  at = skip(text, at + 1, true)
  while text:sub(at, at) ~= closing do
    local path, value
    if closing == "}" then
      path, at = read_key(text, at)
      if text:sub(at, at) ~= "=" then wrong(text, at, "expected '='") end
      at = skip(text, at + 1)
    end
    value, at = read_value(text, at)
    if path then put(out, path, value) else out[#out + 1] = value end
    at = skip(text, at, true)
    if text:sub(at, at) == "," then
      at = skip(text, at + 1, true)
    elseif text:sub(at, at) ~= closing then
      wrong(text, at, ("expected ',' or '%s'"):format(closing))
    end
  end
  return out, at + 1
end

function read_value(text, at)
  local c = text:sub(at, at)
  if c == '"' or c == "'" then return read_string(text, at) end
  if c == "[" then return read_list(text, at, "]") end
  if c == "{" then return read_list(text, at, "}") end
  local word, to = text:match("^([%w_.:+-]+)()", at)
  if not word then wrong(text, at, "expected a value") end
  if word == "true" or word == "false" then return word == "true", to end
  return tonumber((word:gsub("_", ""))) or word, to
end

local function read_all(text)
  local out, table_path, at = {}, {}, 1
  while true do
    at = skip(text, at, true)
    if at > #text then return out end
    local statement = { from = at }
    while statement.from > 1 and text:find("^[ \t]", statement.from - 1) do statement.from = statement.from - 1 end
    local path, value
    local brackets = text:match("^%[%[?", at)
    if brackets then
      path, at = read_key(text, at + #brackets)
      if text:sub(at, at + #brackets - 1) ~= ("]"):rep(#brackets) then wrong(text, at, "expected ']'") end
      at, table_path, statement.path, statement.header = at + #brackets, path, path, true
    else
      path, at = read_key(text, at)
      if text:sub(at, at) ~= "=" then wrong(text, at, "expected '='") end
      value, at = read_value(text, skip(text, at + 1))
      statement.value, statement.path = value, { unpack(table_path) }
      for _, word in ipairs(path) do table.insert(statement.path, word) end
      statement.under = #table_path
    end
    statement.to = text:match("^[ \t]*#?[^\n]*\n?()", at)
    if not text:find("^[ \t]*[#\r\n]", at) and skip(text, at) <= #text then wrong(text, at, "more follows on the line") end
    out[#out + 1], at = statement, statement.to
  end
end

-- nil and what is wrong.
function toml.read(text) return jsonc.attempt(read_all, text) end

-- The tables below `name`: { [key] = { entry (its values), spans (of the text, in order) } }, and the keys in order.
function toml.tables(text, statements, name)
  local found, order, open = {}, {}, nil
  for _, s in ipairs(statements) do
    local key = s.path[1] == name and s.path[2] or nil
    local one = key and (found[key] or { entry = {}, spans = {} })
    if one and not found[key] then found[key], order[#order + 1] = one, key end
    if not one then
      open = nil
    elseif s.header then
      open = { from = s.from, to = s.to }
      table.insert(one.spans, open)
    else
      if #s.path == 2 then
        one.entry = type(s.value) == "table" and s.value or {}
      else
        put(one.entry, { select(3, unpack(s.path)) }, s.value)
      end
      if open and s.under >= 2 then
        open.to = s.to
      else
        table.insert(one.spans, { from = s.from, to = s.to })
      end
    end
  end
  for _, one in pairs(found) do
    for _, span in ipairs(one.spans) do span.text = text:sub(span.from, span.to - 1) end
  end
  return found, order
end

return toml
