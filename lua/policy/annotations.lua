-- A tool written in Lua may declare its arguments by annotations above `run`, in LuaCATS, which editors know:
--
--   ---@param city string Name of the city         one line an argument, or
--   ---@param args CityArgs                         a class for all of them: run's own first parameter
--
-- They become the JSON Schema that params{…} would make: closed, in the author's order, required unless marked `?`.

local builtins = ...
local M = {}

-- The order of keywords in the JSON.
local ORDER = { "type", "description", "default", "enum", "items", "properties", "required", "additionalProperties" }
local TAGS = { "param", "class", "field", "alias", "return", "see", "nodiscard", "deprecated", "async", "diagnostic",
               "overload", "generic", "type", "cast", "as", "meta", "module", "operator", "package", "private",
               "protected", "source", "vararg", "version", "enum" }
local SCALARS = { string = "string", number = "number", integer = "integer", boolean = "boolean" }
local TYPES = { "string", "number", "integer", "boolean", "any", "nil", "table" }
-- Names of other languages and their own.
local SYNONYMS = { object = "table", dict = "table<string, T>", map = "table<string, T>", list = "T[]", array = "T[]",
                   int = "integer", float = "number", double = "number", str = "string", bool = "boolean",
                   unknown = "any", void = "nil", null = "nil" }
local NO_JSON = { fun = true, ["function"] = true, userdata = true, lightuserdata = true, thread = true }

local known_tag = {}
for _, tag in ipairs(TAGS) do known_tag[tag] = true end

-- ---- reading a text ------------------------------------------------------------------------------------------

local function fault(at, text)
  error(at.chunk .. ":" .. at.line .. ": annotations: " .. text, 0)
end

-- The match of the pattern at this position, or its capture; nil if there is none.
local function take(p, pattern)
  local from, to, capture = p.text:find("^" .. pattern, p.at)
  if not from then return nil end
  p.at = to + 1
  return capture or p.text:sub(from, to)
end

local function skip(p) take(p, "%s*") end

-- `ends`: a sign that ends a type: what follows a space is the description.
local function take_sign(p, sign, ends)
  local back = p.at
  skip(p)
  local found = take(p, sign)
  if not found then p.at = back elseif not ends then skip(p) end
  return found ~= nil
end

local function expect_sign(p, sign, what, ends)
  if not take_sign(p, "%" .. sign, ends) then
    fault(p, "expected '" .. sign .. "' " .. what .. ", got '" .. p.text:sub(p.at) .. "'")
  end
end

-- ---- types -----------------------------------------------------------------------------------------------------
-- A type is { schema = …, null = whether nil is one of its values, values = of an enum, else nil }.

local union -- and object_of_class: types hold types

local function schema_of(fields) return builtins.order(builtins.mark(fields, "object"), ORDER) end

-- In lists and tables nil is JSON's null.
local function inner_schema(made)
  local schema = made.schema
  if not made.null then return schema end
  if type(schema.type) == "string" and not schema.enum then
    schema.type = builtins.mark({ schema.type, "null" }, "array")
    return schema
  end
  return schema_of { anyOf = builtins.mark({ schema, { type = "null" } }, "array") }
end

local function list_of(made) return { schema = schema_of { type = "array", items = inner_schema(made) } } end

-- The type that all values have; nil: they differ.
local function common_type(values)
  local common
  for at, value in ipairs(values) do
    local name = type(value)
    if name == "number" and value == math.floor(value) then name = "integer" end
    if at > 1 and name ~= common and (name == "integer" or name == "number")
       and (common == "integer" or common == "number") then
      name, common = "number", "number"
    end
    if at > 1 and name ~= common then return nil end
    common = name
  end
  return common
end

local function enum_of(values, null)
  return { schema = schema_of { type = common_type(values), enum = builtins.mark(values, "array") },
           values = values, null = null }
end

-- A literal beside its own type adds nothing: "a"|string is a string.
local function is_covered(value, plain)
  local name = type(value)
  return plain[name] or name == "number" and plain.integer and value == math.floor(value)
end

-- Of several types: an enum if all are literals, else one of their schemas.
local function join(options)
  local null, values, others, plain = false, {}, {}, {}
  for _, option in ipairs(options) do
    null = null or option.null
    if option.schema and not option.values then
      others[#others + 1] = option.schema
      if type(option.schema.type) == "string" then plain[option.schema.type] = true end
    end
  end
  for _, option in ipairs(options) do
    for _, value in ipairs(option.values or {}) do
      if not is_covered(value, plain) then values[#values + 1] = value end
    end
  end
  if #others == 0 then return #values > 0 and enum_of(values, null) or { null = null } end
  if #values > 0 then others[#others + 1] = enum_of(values).schema end
  if #others == 1 then return { schema = others[1], null = null } end
  return { schema = schema_of { anyOf = builtins.mark(others, "array") }, null = null }
end

local function properties_of(entries, rest)
  local properties, names, required = builtins.mark({}, "object"), {}, {}
  for _, entry in ipairs(entries) do
    if not entry.made.schema then fault(entry, "'" .. entry.name .. "' can only be nil: add another type") end
    properties[entry.name] = entry.made.schema
    if entry.description ~= "" then entry.made.schema.description = entry.description end
    names[#names + 1] = entry.name
    if entry.default ~= nil then entry.made.schema.default = entry.default end
    if not entry.optional and not entry.made.null and entry.default == nil then required[#required + 1] = entry.name end
  end
  return { schema = schema_of { type = "object", properties = builtins.order(properties, names),
                                required = #required > 0 and builtins.mark(required, "array") or nil,
                                additionalProperties = rest and inner_schema(rest) or false } }
end

-- [string]: any
local function rest_of(p)
  local key = take(p, "([%a_][%w_]*)")
  expect_sign(p, "]", "after the type of the keys")
  expect_sign(p, ":", "and the type of the values")
  if key ~= "string" then
    fault(p, "JSON names its members by strings: write [string]: T, or T[] for a list, not [" .. tostring(key) .. "]")
  end
  return union(p)
end

-- { city: string, days?: integer, [string]: any }
local function literal_table(p)
  local entries, rest = {}, nil
  while not take_sign(p, "}", true) do
    if #entries > 0 or rest then
      if not take_sign(p, "[,;]") then fault(p, "expected ',' or '}' in { name: type }, got '" .. p.text:sub(p.at) .. "'") end
      if take_sign(p, "}", true) then break end
    end
    if take_sign(p, "%[") then
      rest = rest_of(p)
    else
      skip(p)
      local name = take(p, "([%w_%-]+)") or fault(p, "expected { name: type }, got '" .. p.text:sub(p.at) .. "'")
      local optional = take(p, "%?") ~= nil
      if p.text:find("^%s*[,}]", p.at) then
        fault(p, "'" .. name .. "' in { … } has no type: write { name: type }, or T[] for a list")
      end
      expect_sign(p, ":", "after '" .. name .. "' in { name: type }")
      entries[#entries + 1] = { name = name, optional = optional, made = union(p), description = "", chunk = p.chunk,
                                line = p.line }
    end
  end
  if #entries == 0 and not rest then return { schema = schema_of { type = "object" } } end
  return properties_of(entries, rest)
end

-- table, table<string, T>, table<integer, T>
local function a_table(p)
  if not take_sign(p, "<") then return { schema = schema_of { type = "object" } } end
  skip(p)
  local key = take(p, "([%a_][%w_]*)") or p.text:sub(p.at):match "^[^,>]*"
  if p.text:find("^%s*>", p.at) then
    fault(p, "table<" .. key .. "> has no type of its values: write table<string, T>, or T[] for a list")
  end
  if key ~= "string" and key ~= "integer" then
    fault(p, "JSON has no table by " .. key .. ": write table<string, T>, or T[] for a list")
  end
  expect_sign(p, ",", "as in table<string, integer>")
  local value = union(p)
  expect_sign(p, ">", "as in table<string, integer>", true)
  if key == "integer" then return list_of(value) end
  return { schema = schema_of { type = "object", additionalProperties = inner_schema(value) } }
end

-- ---- defaults -----------------------------------------------------------------------------------------------------
-- `---@param n? integer = 5 How many`; or in the description, as LuaCATS has no form of its own: (default: 5),
-- (defaults to 5), Default: 5.

local literal

-- { 1, 2 } or [1, 2]; {} is also an empty object.
local function literal_list(p, close, schema)
  local items = {}
  while not take_sign(p, close, true) do
    if #items > 0 and not take_sign(p, ",") then return nil end
    skip(p)
    local value = literal(p, {})
    if value == nil then return nil end
    items[#items + 1] = value
  end
  return builtins.mark(items, #items == 0 and schema.type == "object" and "object" or "array")
end

-- A value as Lua or JSON writes it; nil: there is none here.
function literal(p, schema)
  local text = take(p, '"([^"]*)"') or take(p, "'([^']*)'")
  if text then return text end
  if take(p, "{") then return literal_list(p, "}", schema) end
  if take(p, "%[") then return literal_list(p, "%]", schema) end
  local number = take(p, "%-?%d+%.?%d*")
  if number then return tonumber(number) end
  if take(p, "true%f[^%w_]") then return true end
  if take(p, "false%f[^%w_]") then return false end
end

local function has_type(value, name)
  if name == "integer" then return type(value) == "number" and value == math.floor(value) end
  if name == "array" or name == "object" then return builtins.marked(value) == name end
  return name == type(value)
end

local function is_among(value, list)
  for _, each in ipairs(list) do
    if each == value then return true end
  end
  return false
end

local function fits(value, schema)
  if schema.enum then return is_among(value, schema.enum) end
  for _, option in ipairs(schema.anyOf or {}) do
    if fits(value, option) then return true end
  end
  if schema.anyOf then return false end
  if schema.type == "array" and schema.items and has_type(value, "array") then
    for _, item in ipairs(value) do
      if not fits(item, schema.items) then return false end
    end
  end
  if type(schema.type) == "table" then return has_type(value, schema.type[1]) end
  return schema.type == nil or has_type(value, schema.type)
end

-- Behind the type: "= 5".
local function stated_default(at, schema, name)
  if not take_sign(at, "=") then return nil end
  local value = literal(at, schema)
  if value == nil or not at.text:find("^%s*$", at.at) and not at.text:find("^%s", at.at) then
    fault(at, "the default of '" .. name .. '\' is no literal: write it as in = 5, = "text", = true or = {}')
  end
  if not fits(value, schema) then fault(at, "the default of '" .. name .. "' does not fit its type") end
  return value
end

local DEFAULTS = { "%(%s*[Dd]efaults?%s+to%s+()", "%(%s*[Dd]efault:?%s+()", "%f[%a][Dd]efaults to%s+()", "%f[%a]Default:%s+()" }

-- In prose only a literal that fits the type is taken for the default.
local function described_default(text, schema)
  for _, pattern in ipairs(DEFAULTS) do
    local from = text:match(pattern)
    local p = from and { text = text:gsub("`", ""), at = #text:sub(1, from - 1):gsub("`", "") + 1 }
    local value = p and literal(p, schema)
    if p and value == nil and schema.enum then
      local word = take(p, "([%w_%-]+)")
      value = is_among(word, schema.enum) and word or nil
    end
    local ends = p and (p.at > #p.text or p.text:find("^%s*[%).,;]", p.at))
    if value ~= nil and ends and fits(value, schema) then return value end
  end
end

-- Where a text is read from its beginning on.
local function beginning(p, of)
  return { text = of.text, at = 1, line = of.line, chunk = p.chunk, file = p.file, open = p.open }
end

-- One line of words, without the space around them.
local function prose(texts) return table.concat(texts, " "):gsub("%s+", " "):match("^%s*(.-)%s*$") end

-- Parses an entry: its type, then the description, which following lines continue. At each use anew, as each has a
-- description of its own.
local function read_entry(p, entry)
  local at, options, texts = beginning(p, entry), {}, {}
  skip(at)
  if at.at <= #at.text then options[1] = union(at) end
  if at.text:find("^%s*&", at.at) then
    fault(at, "the type of '" .. entry.name .. "' joins two types by &: write a class with the fields of both")
  end
  local stated = options[1] and options[1].schema and stated_default(at, options[1].schema, entry.name)
  if at.at <= #at.text and not at.text:find("^[%s#@]", at.at) then
    fault(at, "expected a description after the type of '" .. entry.name .. "', got '" .. at.text:sub(at.at) .. "'")
  end
  for _, option in ipairs(entry.options) do options[#options + 1] = union(beginning(p, option)) end
  if #options == 0 then
    fault(at, "expected a type after '" .. entry.name .. "', as in ---@param city string Name of the city")
  end
  texts[1] = at.text:sub(at.at):gsub("^%s*[#@]?%s*", "")
  for _, more in ipairs(entry.more) do texts[#texts + 1] = more end
  local made, description = join(options), prose(texts)
  if stated == nil and made.schema then stated = described_default(description, made.schema) end
  return { name = entry.name, line = entry.line, optional = entry.optional, chunk = p.chunk, made = made,
           description = description, default = stated }
end

local function guarded(p, name, read)
  if p.open[name] then fault(p, "'" .. name .. "' contains itself: write the schema as JSON") end
  p.open[name] = true
  local made = read()
  p.open[name] = nil
  return made
end

local function add_fields(p, class, entries)
  for _, parent in ipairs(class.parents) do
    local above = p.file.classes[parent]
    if not above then fault(class, "unknown class '" .. parent .. "'" .. builtins.hint(parent, p.file.names)) end
    guarded(p, parent, function() add_fields(p, above, entries) end)
  end
  for _, field in ipairs(class.fields) do
    for at, entry in ipairs(entries) do
      if entry.name == field.name then table.remove(entries, at) break end
    end
    entries[#entries + 1] = read_entry(p, field)
  end
end

local function object_of_class(p, class)
  local entries = {}
  add_fields(p, class, entries)
  local made = properties_of(entries, class.rest and read_entry(p, class.rest).made)
  if class.description ~= "" then made.schema.description = class.description end
  return made
end

local function named(p, name)
  if SCALARS[name] then return { schema = schema_of { type = SCALARS[name] } } end
  if name == "any" then return { schema = schema_of {} } end
  if name == "nil" then return { null = true } end
  if name == "true" or name == "false" then return enum_of { name == "true" } end
  if name == "table" then return a_table(p) end
  if NO_JSON[name] then fault(p, "no argument can be a " .. (name == "fun" and "function" or name) .. ": JSON has none") end
  local class, alias = p.file.classes[name], p.file.aliases[name]
  if class then return guarded(p, name, function() return object_of_class(p, class) end) end
  if alias then return guarded(p, name, function() return read_entry(p, alias).made end) end
  if SYNONYMS[name] then fault(p, "there is no type '" .. name .. "': write " .. SYNONYMS[name]) end
  fault(p, "unknown type '" .. name .. "'" .. builtins.hint(name, p.file.names) .. ": it takes " .. table.concat(TYPES, ", ")
        .. ', "a"|"b", T[], T?, table<string, T>, and classes and aliases of this file')
end

local function primary(p)
  if take_sign(p, "%(") then
    local made = union(p)
    expect_sign(p, ")", "after the types", true)
    return made
  end
  if take_sign(p, "{") then return literal_table(p) end
  if p.text:find("^%s*%[", p.at) then
    fault(p, "a list whose items have types of their own is not supported: write T[], (A|B)[], or the schema as JSON")
  end
  local text = take(p, '"([^"]*)"') or take(p, "'([^']*)'")
  if text then return enum_of { text } end
  local number = take(p, "%-?%d+%.?%d*")
  if number then return enum_of { tonumber(number) } end
  local name = take(p, "([%a_][%w_]*%.?[%w_%.]*[%w_])") or take(p, "([%a_])")
  if name and p.text:find("^%.%.%.", p.at) then
    fault(p, "arguments have names: write " .. name .. "[], not " .. name .. "...")
  end
  if name then return named(p, name) end
  fault(p, "expected a type, got '" .. p.text:sub(p.at) .. "'")
end

local function postfix(p)
  local made = primary(p)
  while true do
    if take(p, "%[%]") then
      made = list_of(made)
    elseif take(p, "%?") then
      made.null = true
    else
      return made
    end
  end
end

function union(p)
  local options = {}
  repeat options[#options + 1] = postfix(p) until not take_sign(p, "|")
  return #options == 1 and options[1] or join(options)
end

-- ---- lines --------------------------------------------------------------------------------------------------------

local function entry_of(line, name, text)
  return { name = name, text = text, line = line.line, chunk = line.chunk, options = {}, more = {} }
end

-- "name? type description"
local function named_entry(line, rest, form)
  local name, optional, text = rest:match("^%s*([%w_%-]+)(%??)(.*)$")
  if not name or text:find("^[^%s]") then fault(line, "expected " .. form .. ", got '" .. rest .. "'") end
  local entry = entry_of(line, name, text)
  entry.optional = optional == "?"
  return entry
end

local function read_field(line, rest, class)
  local scope, behind = rest:match("^%s*(%a+)%s+(.*)$")
  local hidden = scope == "private" or scope == "protected" or scope == "package"
  if hidden or scope == "public" then rest = behind end
  local key, text = rest:match("^%s*(%b[])%s*(.*)$")
  if key then
    class.rest = entry_of(line, key, text)
    return class.rest
  end
  local entry = named_entry(line, rest, "---@field name type description")
  if not hidden then class.fields[#class.fields + 1] = entry end
  return entry
end

-- "(exact) Name: Parent, Parent  what it is"
local function read_class(line, rest, file)
  local name, more = rest:gsub("^%s*%(exact%)", ""):match("^%s*([%a_][%w_%.]*)(.*)$")
  if not name then fault(line, "expected ---@class Name, got '" .. rest .. "'") end
  local class = { name = name, line = line.line, chunk = line.chunk, fields = {}, parents = {} }
  local sign = ":"
  while true do
    local parent, behind = more:match("^%s*" .. sign .. "%s*([%a_][%w_%.]*)(.*)$")
    if not parent then break end
    class.parents[#class.parents + 1] = parent
    more, sign = behind, ","
  end
  class.more = { more }
  file.classes[name] = class
  file.names[#file.names + 1] = name
  return class
end

local function read_alias(line, rest, file)
  local name, text = rest:match("^%s*([%a_][%w_%.]*)%s*(.*)$")
  if not name then fault(line, "expected ---@alias Name type, got '" .. rest .. "'") end
  file.aliases[name] = entry_of(line, name, text)
  file.names[#file.names + 1] = name
  return file.aliases[name]
end

-- Classes and aliases of the whole file; the type of a field is parsed at its use. `params`: the entries of the block
-- from the index `from` to `to`, and the text before its first tag.
local function read_lines(chunk, lines, from, to)
  local file, params, text = { classes = {}, aliases = {}, names = {} }, {}, {}
  for _, name in ipairs(TYPES) do file.names[#file.names + 1] = name end
  local class, current, last, tagged, before
  for at, line in ipairs(lines) do
    line.chunk = chunk
    if at == from or line.line ~= last then class, current, tagged, before = nil, nil, false, {} end
    last = line.line + 1
    local tag, rest = line.text:match("^%s*@(%a+)(.*)$")
    local option = line.text:match("^%s*|[>+]?%s*(.-)%s*$")
    local ours = at >= from and at <= to
    if tag then
      current = nil
      if ours and not known_tag[tag] then fault(line, "unknown tag '@" .. tag .. "'" .. builtins.hint(tag, TAGS)) end
      if not tagged and tag ~= "param" then text = ours and {} or text end
      if tag == "class" then
        class = read_class(line, rest, file)
        table.insert(class.more, 1, table.concat(before, " "))
        before = {}
        current = class
      elseif tag == "field" and class then
        current = read_field(line, rest, class)
      elseif tag == "alias" then
        current = read_alias(line, rest, file)
      elseif tag == "param" and ours then
        current = named_entry(line, rest, "---@param name type description")
        params[#params + 1] = current
      end
      tagged = true
    elseif option and current and current.options then
      current.options[#current.options + 1] = { text = option, line = line.line }
    elseif current then
      current.more[#current.more + 1] = line.text
    elseif not tagged then
      before[#before + 1] = line.text
      if ours then text[#text + 1] = line.text end
    end
  end
  for _, one in pairs(file.classes) do
    one.description = prose(one.more)
  end
  return file, params, prose(text)
end

-- ---- what run takes ---------------------------------------------------------------------------------------------

local function whole_of(p, entry)
  if entry.text:find("^%s*table%s*$") or entry.text:find("^%s*table%s+[^<]") then return nil end -- any table
  local made = read_entry(p, entry).made
  if not made.schema or made.schema.type ~= "object" then
    fault(entry, "'" .. entry.name .. "' is run's own parameter, the table of all arguments: expected a class or "
          .. "{ name: type }; an argument of that name needs another name for the parameter")
  end
  return made.schema
end

-- `lines`: all comments that begin with ---, each { line, text }; those from `from` to `to` are above run, whose own
-- parameters are `own` and `call`. Returns the schema, the first description, and the line of each argument.
function M.read_annotations(chunk, lines, from, to, own, call)
  local file, params, text = read_lines(chunk, lines, from, to)
  local whole, singles, lines_by_name = nil, {}, {}
  for _, entry in ipairs(params) do
    local p = { chunk = chunk, line = entry.line, file = file, open = {} }
    if entry.name == own then
      whole = { entry = entry, schema = whole_of(p, entry) }
    elseif entry.name ~= call then
      local before = lines_by_name[entry.name]
      if before then fault(entry, "'" .. entry.name .. "' is annotated on line " .. before .. " already") end
      lines_by_name[entry.name] = entry.line
      singles[#singles + 1] = read_entry(p, entry)
    end
  end
  if whole and whole.schema and #singles > 0 then
    fault(whole.entry, "'" .. own .. "' declares all arguments, and so does '" .. singles[1].name .. "' on line "
          .. singles[1].line .. ": annotate either the table or each argument")
  end
  if whole and whole.schema then
    for name in pairs(whole.schema.properties or {}) do lines_by_name[name] = whole.entry.line end
    if text == "" then text, whole.schema.description = whole.schema.description or "", nil end
    return whole.schema, text, lines_by_name
  end
  if #singles == 0 then return nil end
  return properties_of(singles).schema, text, lines_by_name
end

return M
