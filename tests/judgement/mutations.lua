-- Ways in which a right call arrives spoiled (models and their frameworks do all of them), and what the gate may make
-- of each: the same call again, or a refusal that names the place. A spoiled call that runs with other arguments than
-- the right ones is damage.
--
-- A way: { name, spoil = function(call, random) -> text, place }. `call` has tool, schema (decoded), tree (of the right
-- arguments); `random(n)` is deterministic. It returns the arguments' JSON text as it is sent, and `named`: the names
-- of which the refusal must contain one. nil: this call cannot be spoiled in this way.
local tree = require "json_tree"

local M = {}

local function ways(name, spoil, more)
  local way = { name = name, spoil = spoil }
  for key, value in pairs(more or {}) do way[key] = value end
  M[#M + 1] = way
end

-- ---- what a schema says of a parameter, as far as a mutation must know ----------

local function property(call, key)
  return type(call.schema.properties) == "table" and call.schema.properties[key] or nil
end

-- The only type that a property allows beside null, with `nullable`; nil for anything less simple.
local function type_of(schema)
  if type(schema) ~= "table" or schema["$ref"] or schema.oneOf or schema.allOf then return nil end
  local types, nullable, only = {}, false, nil
  local function take(name)
    if name == "null" then nullable = true else types[#types + 1] = name end
  end
  if type(schema.type) == "string" then take(schema.type)
  elseif type(schema.type) == "table" then for _, name in ipairs(schema.type) do take(name) end
  elseif type(schema.anyOf) == "table" then
    for _, branch in ipairs(schema.anyOf) do
      if type(branch) ~= "table" or type(branch.type) ~= "string" then return nil end
      take(branch.type)
    end
  end
  if #types == 1 then only = types[1] end
  return only, nullable
end

local function required(call, key)
  for _, name in ipairs(type(call.schema.required) == "table" and call.schema.required or {}) do
    if name == key then return true end
  end
  return false
end

-- A random member of the arguments that `fits(member.value, schema, key)`.
local function pick(call, random, fits)
  local found = {}
  for _, member in ipairs(call.tree) do
    local schema = property(call, member.key)
    if schema and fits(member.value, schema, member.key) then found[#found + 1] = member end
  end
  if #found > 0 then return found[random(#found)] end
end

-- Replaces a random fitting member by change(value, schema), which may give up with nil.
local function changed(fits, change)
  return function(call, random)
    local member = pick(call, random, fits)
    local value = member and change(member.value, property(call, member.key), call, random)
    if value then return tree.write(tree.with(call.tree, member.key, value)), { member.key } end
  end
end

local function is(kind, wanted)
  return function(value, schema)
    return value.kind == kind and type_of(schema) == wanted and not schema.enum and not schema.const
  end
end

local function string(text) return tree.string(text) end

-- ---- the arguments as a whole -----------------------------------------------------

local function empty(text)
  return function(call) return #call.tree == 0 and text or nil, {} end
end

ways("empty: \"\"", empty '""')
ways("empty: null", empty "null")
ways("empty: blank text", empty '"  \\n"')

local function as_text(spell)
  return function(call, random)
    if #call.tree == 0 then return nil end
    local text = spell(tree.write(call.tree), call, random)
    return text and tree.quote(text), {}
  end
end

-- The first bytes of a text, without half a character at the end.
local function cut(text, bytes)
  while (text:byte(bytes + 1) or 0) >= 0x80 and text:byte(bytes + 1) < 0xC0 do bytes = bytes - 1 end
  return text:sub(1, bytes)
end

local function python(node)
  local parts = {}
  if node.kind == "object" then
    for i, member in ipairs(node) do parts[i] = python(string(member.key)) .. ": " .. python(member.value) end
    return "{" .. table.concat(parts, ", ") .. "}"
  elseif node.kind == "array" then
    for i, item in ipairs(node) do parts[i] = python(item) end
    return "[" .. table.concat(parts, ", ") .. "]"
  elseif node.kind == "string" then
    local double = node.text:find("'", 1, true) and not node.text:find('"', 1, true)
    local quote = double and '"' or "'"
    return quote .. node.text:gsub("\\", "\\\\"):gsub("\n", "\\n"):gsub("\t", "\\t"):gsub(quote, "\\" .. quote) .. quote
  end
  return ({ ["true"] = "True", ["false"] = "False", null = "None" })[node.text] or node.text
end

-- Line breaks inside strings as they are, not escaped.
local function raw_newlines(text)
  local out, count = text:gsub("([^\\])\\n", "%1\n")
  return count > 0 and out or nil
end

ways("JSON as a string", as_text(function(text) return text end))
ways("JSON as a string, twice", as_text(function(text) return tree.quote(text) end))
ways("with a trailing comma", as_text(function(text) return text:sub(1, -2) .. ",}" end))
ways("in a code fence", as_text(function(text) return "```json\n" .. text .. "\n```" end))
ways("with raw newlines in strings", as_text(raw_newlines))
ways("with escaped quotes outside strings", as_text(function(text)
  return not text:find("\\", 1, true) and text:gsub('"', '\\"') or nil
end))
ways("as a Python literal", as_text(function(_, call) return python(call.tree) end))
ways("cut off", as_text(function(text, _, random) return #text > 3 and cut(text, 1 + random(#text - 2)) or nil end),
  { cut_off = true, refused = true })

for _, name in ipairs { "arguments", "input", "parameters", "params" } do
  ways("wrapped in '" .. name .. "'", function(call)
    if #call.tree == 0 or property(call, name) then return nil end
    return '{"' .. name .. '":' .. tree.write(call.tree) .. "}", { name }
  end)
end
ways("wrapped in the tool's name", function(call)
  if #call.tree == 0 or property(call, call.tool) then return nil end
  return "{" .. tree.quote(call.tool) .. ":" .. tree.write(call.tree) .. "}", { call.tool }
end)
ways("wrapped, as a string", function(call)
  if #call.tree == 0 or property(call, "arguments") then return nil end
  return '{"arguments":' .. tree.quote(tree.write(call.tree)) .. "}", { "arguments" }
end)

-- ---- names --------------------------------------------------------------------------

local function camel(key)
  local text, count = key:gsub("_(%l)", function(c) return c:upper() end)
  return count > 0 and text or nil
end

local function snake(key)
  local text, count = key:gsub("(%l)(%u)", function(a, b) return a .. "_" .. b:lower() end)
  return count > 0 and text or nil
end

local RENAMES = {
  { "case", function(key) return key:upper() ~= key and key:upper() or key:lower() end },
  { "first letter's case", function(key) return (key:gsub("^%l", function(c) return c:upper() end)) end },
  { "snake_case as camelCase", camel },
  { "camelCase as snake_case", snake },
  { "underscores as hyphens", function(key) return key:find "_" and (key:gsub("_", "-")) or nil end },
  { "a final s too many or missing", function(key) return key:find "s$" and key:sub(1, -2) or key .. "s" end },
}

local function renamed(is_required, rename)
  return function(call, random)
    local member = pick(call, random, function(_, _, key) return required(call, key) == is_required end)
    local name = member and rename(member.key)
    if not name or name == member.key or #name < 2 or property(call, name) or tree.get(call.tree, name) then return nil end
    return tree.write(tree.renamed(call.tree, member.key, name)), { member.key, name }
  end
end

for _, rename in ipairs(RENAMES) do
  ways("required name: " .. rename[1], renamed(true, rename[2]))
  ways("optional name: " .. rename[1], renamed(false, rename[2]))
end

-- ---- values -----------------------------------------------------------------------------

local BOOLEAN_WORDS = { ["true"] = { "yes", "true", "True" }, ["false"] = { "no", "false", "False" } }

ways("a boolean as a word", changed(is("boolean", "boolean"), function(value, _, _, random)
  return string(BOOLEAN_WORDS[value.text][random(3)])
end))
ways("a boolean as 1 or 0", changed(is("boolean", "boolean"), function(value)
  return { kind = "number", text = value.text == "true" and "1" or "0" }
end))
ways("a number as text", changed(function(value, schema)
  local wanted = type_of(schema)
  return value.kind == "number" and (wanted == "integer" or wanted == "number") and not schema.enum
end, function(value) return string(value.text) end))
ways("a text of digits as a number", changed(function(value, schema)
  local plain = value.text and (value.text:find "^[1-9]%d*$" or value.text:find "^%d%.%d+$")
  return value.kind == "string" and type_of(schema) == "string" and plain and not schema.enum
end, function(value) return { kind = "number", text = value.text } end))
ways("a whole number with a fraction of zero", changed(is("number", "integer"), function(value)
  return value.text:find "^%-?%d+$" and { kind = "number", text = value.text .. ".0" } or nil
end))
ways("an object or a list as a string", changed(function(value, schema)
  local wanted = type_of(schema)
  return (value.kind == "object" or value.kind == "array") and wanted == value.kind
end, function(value) return string(tree.write(value)) end))
ways("an object or a list as a Python literal", changed(function(value, schema)
  return (value.kind == "object" or value.kind == "array") and type_of(schema) == value.kind and #value > 0
end, function(value) return string(python(value)) end))
ways("an object or a list cut off", changed(function(value, schema)
  return (value.kind == "object" or value.kind == "array") and type_of(schema) == value.kind and #value > 0
end, function(value, _, _, random)
  local text = tree.write(value)
  return string(cut(text, 1 + random(#text - 2)))
end), { cut_off = true, refused = true })
ways("a list of one as its item", changed(function(value, schema)
  return value.kind == "array" and #value == 1 and type_of(schema) == "array" and value[1].kind ~= "array"
end, function(value) return value[1] end))
ways("a list of texts as one text with commas", changed(function(value, schema)
  if value.kind ~= "array" or #value < 2 or type_of(schema) ~= "array" then return false end
  for _, item in ipairs(value) do
    if item.kind ~= "string" or item.text:find "," then return false end
  end
  return true
end, function(value)
  local items = {}
  for i, item in ipairs(value) do items[i] = item.text end
  return string(table.concat(items, ", "))
end))
ways("a text in a list of one", changed(is("string", "string"), function(value)
  return { kind = "array", value }
end))
ways("an enum value in other case", changed(function(value, schema)
  return value.kind == "string" and type(schema.enum) == "table" and value.text:upper() ~= value.text:lower()
end, function(value, schema)
  local upper = value.text:upper() ~= value.text and value.text:upper() or value.text:lower()
  for _, choice in ipairs(schema.enum) do
    if choice == upper then return nil end
  end
  return string(upper)
end))
ways("an enum value with space around it", changed(function(value, schema)
  return value.kind == "string" and type(schema.enum) == "table"
end, function(value) return string(" " .. value.text .. " ") end))

local function filled_in(text, wanted)
  return function(call, random)
    local names = {}
    for key, schema in pairs(type(call.schema.properties) == "table" and call.schema.properties or {}) do
      local only, nullable = type_of(schema)
      if only and wanted[only] and not nullable and not required(call, key) and not tree.get(call.tree, key)
         and not schema.enum then
        names[#names + 1] = key
      end
    end
    if #names == 0 then return nil end
    table.sort(names)
    local key = names[random(#names)]
    return tree.write(tree.with(call.tree, key, tree.read(text))), { key }
  end
end

local ANY = { integer = true, number = true, boolean = true, string = true, array = true, object = true }
local NO_STRING = { integer = true, number = true, boolean = true, object = true }
ways("an optional as null", filled_in("null", ANY))
ways("an optional as \"\"", filled_in('""', NO_STRING))
ways("an optional as \"None\"", filled_in('"None"', NO_STRING))
ways("an optional as \"null\"", filled_in('"null"', NO_STRING))

-- ---- what no gate can repair: it must be named -----------------------------------------

ways("a required value is missing", function(call, random)
  local member = pick(call, random, function(_, _, key) return required(call, key) end)
  if member then return tree.write(tree.with(call.tree, member.key, nil)), { member.key } end
end, { refused = true })
ways("a word for a number", changed(function(value, schema)
  local wanted = type_of(schema)
  return value.kind == "number" and (wanted == "integer" or wanted == "number") and not schema.enum
end, function() return string "several" end), { refused = true })
ways("a fraction for a whole number", changed(is("number", "integer"), function(value)
  return value.text:find "^%-?%d+$" and { kind = "number", text = value.text .. ".5" } or nil
end), { refused = true })
ways("a number for an object or a list", changed(function(value, schema)
  return (value.kind == "object" or value.kind == "array") and type_of(schema) == value.kind and value.kind == "object"
end, function() return { kind = "number", text = "7" } end), { refused = true })
ways("an enum value that does not exist", changed(function(value, schema)
  return value.kind == "string" and type(schema.enum) == "table"
end, function() return string "something else" end), { refused = true })
ways("an object for a text", changed(is("string", "string"), function(value)
  return { kind = "object", { key = "value", value = value }, { key = "and", value = string "more" } }
end), { refused = true })

-- ---- the name of the tool -----------------------------------------------------------------

local function misnamed(change)
  return function(call, random)
    local name = change(call.tool, random)
    if name and name ~= call.tool then return tree.write(call.tree), { call.tool }, name end
  end
end

ways("tool: a letter too few", misnamed(function(name, random)
  local at = 1 + random(#name - 2)
  return #name > 6 and name:sub(1, at) .. name:sub(at + 2) or nil
end), { refused = true })
-- Not a dot as an underscore: that is the tool's own name for providers that take no dot.
ways("tool: other case or separators", misnamed(camel), { refused = true })

return M
