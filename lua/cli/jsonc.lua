-- JSON with comments and commas before a closing bracket, as editors and assistants have it in their settings: where each
-- value lies, and changes of the text that leave all other bytes alone. A change returns the new text; values of the old
-- one are then of no use.
--
-- A value: { kind = "object"|"array"|"string"|"other", from, to, list }: the bytes from..to-1. An item of `list`: { key,
-- from (of the key), value, lead (where the white space and the comments before it begin), comma (behind it; nil: none) }.
local jsonc = {}

local DEPTH_MAX = 200

-- Ends jsonc.attempt.
local function wrong(text, at, words)
  error({ words = ("line %d: %s"):format(select(2, text:sub(1, at):gsub("\n", "")) + 1, words) }, 0)
end

-- What read(text) returns; nil and what is wrong.
function jsonc.attempt(read_text, text)
  local good, value = pcall(read_text, text)
  if good then return value end
  if type(value) ~= "table" then error(value, 0) end
  return nil, value.words
end

local function skip(text, at)
  while true do
    at = text:match("^[ \t\r\n]*()", at)
    local begins = text:sub(at, at + 1)
    if begins == "//" then
      at = text:match("^[^\n]*()", at)
    elseif begins == "/*" then
      at = select(2, text:find("*/", at, true)) or wrong(text, at, "a comment without its end")
      at = at + 1
    else
      return at
    end
  end
end

local function string_end(text, at)
  local from = at
  while true do
    at = text:find('["\\\n]', at + 1)
    local c = at and text:sub(at, at)
    if not at or c == "\n" then wrong(text, from, "a string without its end") end
    if c == '"' then return at + 1 end
    at = at + 1
  end
end

local function decoded(text, from, to)
  local raw = text:sub(from, to - 1)
  if not raw:find("\\", 1, true) then return raw:sub(2, -2) end
  local value = cli.parse(raw)
  return type(value) == "string" and value or wrong(text, from, "a string that is none")
end

local read

local function read_list(text, at, depth, closing)
  local list, lead = {}, at + 1
  while true do
    at = skip(text, lead)
    if text:sub(at, at) == closing then return list, at + 1 end
    local item = { lead = lead, from = at }
    if closing == "}" then
      if text:sub(at, at) ~= '"' then wrong(text, at, "expected a name in quotes, or }") end
      local to = string_end(text, at)
      item.key = decoded(text, at, to)
      at = skip(text, to)
      if text:sub(at, at) ~= ":" then wrong(text, at, "expected ':'") end
      at = skip(text, at + 1)
    end
    item.value = read(text, at, depth + 1)
    list[#list + 1] = item
    at = skip(text, item.value.to)
    if text:sub(at, at) == "," then
      lead = at + 1
      item.comma = lead
    elseif text:sub(at, at) ~= closing then
      wrong(text, at, ("expected ',' or '%s'"):format(closing))
    else
      lead = at
    end
  end
end

function read(text, at, depth)
  local c = text:sub(at, at)
  if depth > DEPTH_MAX then wrong(text, at, "it is nested too deep") end
  local value = { from = at }
  if c == "{" or c == "[" then
    value.kind = c == "{" and "object" or "array"
    value.list, value.to = read_list(text, at, depth, c == "{" and "}" or "]")
  elseif c == '"' then
    value.kind, value.to = "string", string_end(text, at)
  else
    local word = text:match("^[%w.+-]+", at)
    if not word or not (tonumber(word) or word == "true" or word == "false" or word == "null") then
      wrong(text, at, "expected a value")
    end
    value.kind, value.to = "other", at + #word
  end
  return value
end

local function read_all(text)
  local root = read(text, skip(text, text:sub(1, 3) == "\239\187\191" and 4 or 1), 0)
  local at = skip(text, root.to)
  return at > #text and root or wrong(text, at, "more follows behind the end")
end

-- The value of the whole text; nil and what is wrong.
function jsonc.read(text) return jsonc.attempt(read_all, text) end

jsonc.wrong = wrong

-- The member of an object, by its names from the outermost on; of equal names the last.
function jsonc.get(value, ...)
  for _, name in ipairs { ... } do
    local found
    for _, item in ipairs(value and value.kind == "object" and value.list or {}) do
      if item.key == name then found = item.value end
    end
    value = found
  end
  return value
end

-- As a value of Lua.
function jsonc.decode(text, value)
  if value.kind == "string" then return decoded(text, value.from, value.to) end
  if value.kind == "other" then
    local word = text:sub(value.from, value.to - 1)
    if word == "true" or word == "false" then return word == "true" end
    return tonumber(word)
  end
  local out = value.kind == "array" and cli.array {} or {}
  for i, item in ipairs(value.list) do out[item.key or i] = jsonc.decode(text, item.value) end
  return out
end

function jsonc.splice(text, from, to, with) return text:sub(1, from - 1) .. with .. text:sub(to) end

-- The white space of a new item: that before the first one, else a line of its own, deeper than the bracket's.
local function indent_of(text, value)
  local first = value.list[1]
  if first then
    local white = text:sub(first.lead, first.from - 1):match "\n?[ \t]*$"
    return white, nil
  end
  local outer = text:sub(1, value.from):match "([ \t]*)[^\n]*$"
  return "\n" .. outer .. (outer:find "\t" and "\t" or "  "), "\n" .. outer
end

-- Puts an item, `words`, at the beginning, or at the end.
function jsonc.insert(text, value, words, at_end)
  local white, closing = indent_of(text, value)
  local count = #value.list
  if count == 0 then return jsonc.splice(text, value.from + 1, value.to - 1, white .. words .. closing) end
  if not at_end then return jsonc.splice(text, value.from + 1, value.from + 1, white .. words .. ",") end
  local last = value.list[count]
  local at = last.comma or last.value.to
  return jsonc.splice(text, at, at, (last.comma and "" or ",") .. white .. words .. (last.comma and "," or ""))
end

-- Takes the item out, with the comments before it.
function jsonc.remove(text, value, index)
  local item, before = value.list[index], value.list[index - 1]
  if item.comma then return jsonc.splice(text, item.lead, item.comma, "") end
  local from = before and before.comma - 1 or item.lead
  if not before then return jsonc.splice(text, from, skip(text, item.value.to), "") end
  return jsonc.splice(text, from, item.value.to, "")
end

return jsonc
