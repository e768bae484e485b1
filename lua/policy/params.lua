-- params{…}: a JSON Schema without JSON. Each type is a function, used bare (`datetime`), with a description
-- (`uuid "Project UUID"`) or with options (`str{ min = 1, "Task title" }`). Objects are closed, and every parameter
-- not marked `optional` is required. Parameters keep the order in which they are written.

local builtins = ...
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}
local kinds = {} -- the function of a type -> how it makes one when used bare

local COMMON = { description = "description", title = "title", default = "default", examples = "examples" }
local TEXT = { min = "minLength", max = "maxLength", pattern = "pattern" }
local NUMBER = { min = "minimum", max = "maximum", over = "exclusiveMinimum", under = "exclusiveMaximum", step = "multipleOf" }
local MAP = { min = "minProperties", max = "maxProperties" }
local LIST = { min = "minItems", max = "maxItems", unique = "uniqueItems" }

-- The order of keywords in the JSON; other keywords follow.
local ORDER = { "type", "format", "description", "enum", "items", "properties", "required", "additionalProperties" }

local function new(schema)
  return builtins.mark({ schema = builtins.order(schema, ORDER) }, "type")
end

local function known_options(options)
  local names = {}
  for name in pairs(COMMON) do names[#names + 1] = name end
  for name in pairs(options) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- Lays description and options over the schema. `from` is where positional text begins.
local function describe(word, schema, spec, options, from)
  if spec == nil then return schema end
  if type(spec) == "string" then spec = { description = spec } end
  if type(spec) ~= "table" or builtins.marked(spec) then
    raise(word .. ": expected a description or { options }, got " .. builtins.kind(spec))
  end
  for name, value in pairs(spec) do
    if type(name) == "number" then
      if name == from and type(value) == "string" then
        schema.description = value
      elseif name >= from then
        raise(word .. ": expected one description among the options, got " .. builtins.kind(value))
      end
    else
      local keyword = COMMON[name] or options[name]
      if not keyword then
        raise(word .. ": unknown option '" .. name .. "'" .. builtins.hint(name, known_options(options)) .. ": it takes "
              .. table.concat(known_options(options), ", "))
      end
      schema[keyword] = value
    end
  end
  return schema
end

local function scalar(word, base, options)
  local function make(spec)
    local schema = {}
    for key, value in pairs(base) do schema[key] = value end
    return new(describe(word, schema, spec, options, 1))
  end
  M[word] = make
  kinds[make] = make
  return make
end

scalar("str", { type = "string" }, TEXT)
scalar("int", { type = "integer" }, NUMBER)
scalar("num", { type = "number" }, NUMBER)
scalar("bool", { type = "boolean" }, {})
scalar("uuid", { type = "string", format = "uuid" }, {})
scalar("datetime", { type = "string", format = "date-time" }, {})
scalar("email", { type = "string", format = "email" }, {})
scalar("uri", { type = "string", format = "uri" }, {})

-- `date` is a type and a helper: date(epoch) and date("2026-05-01T10:00:00Z") give the day.
local date_type = scalar("date", { type = "string", format = "date" }, {})
function M.date(given)
  if type(given) == "number" then return builtins.day(given) end
  if type(given) == "string" then
    local day = builtins.day(given)
    if day or not builtins.loading() then return day end
  end
  if not builtins.loading() then raise("date: expected a time (text or epoch seconds), got " .. builtins.kind(given)) end
  return date_type(given)
end
kinds[M.date] = date_type

local function type_of(word, given)
  if type(given) == "function" and kinds[given] then given = kinds[given]() end
  if builtins.marked(given) == "type" then return given end
  raise(word .. ": expected a type (str, int, num, bool, list, map, object, enum, uuid, datetime, date, email, uri, "
        .. "optional), got " .. builtins.kind(given))
end

-- list(str), list(str, "Tags"), list{ str, "Tags", min = 1 }
function M.list(given, description)
  local options = {}
  if type(given) == "table" and not builtins.marked(given) then
    options, given = given, given[1]
  end
  local schema = { type = "array", items = type_of("list", given).schema }
  describe("list", schema, options, LIST, 2)
  return new(describe("list", schema, description, LIST, 2))
end
kinds[M.list] = function() return new { type = "array" } end

-- map(str, int), map(str, int, "Pieces by article"), map{ str, int, "Pieces by article", max = 20 }
function M.map(key, value, description)
  local options = {}
  if type(key) == "table" and not builtins.marked(key) then
    options, key, value = key, key[1], key[2]
  end
  local names, values = type_of("map", key).schema, type_of("map", value).schema
  if names.type ~= "string" then raise("map: expected a type of text for the keys, such as str, got " .. tostring(names.type)) end
  local constrains = next(names, next(names)) ~= nil
  local schema = { type = "object", additionalProperties = values, propertyNames = constrains and names or nil }
  describe("map", schema, options, MAP, 3)
  return new(describe("map", schema, description, MAP, 3))
end

-- enum{ "a", "b" }, enum({ "a", "b" }, "Which"), enum{ "a", "b", description = "Which" }
function M.enum(given, description)
  if type(given) ~= "table" or #given == 0 then
    raise('enum: expected its values, as in enum{ "a", "b" }, got ' .. builtins.kind(given))
  end
  local values, texts = builtins.mark({}, "array"), true
  for at, value in ipairs(given) do
    values[at] = value
    texts = texts and type(value) == "string"
  end
  if #values < #given then raise("enum: expected its values in a list without a hole") end
  local schema = describe("enum", { type = texts and "string" or nil, enum = values }, given, {}, #given + 1)
  return new(describe("enum", schema, description, {}, 1))
end

local function object_of(word, fields)
  if type(fields) ~= "table" or builtins.marked(fields) then
    raise(word .. ": expected { name = type }, got " .. builtins.kind(fields))
  end
  local properties, required, names, optional = builtins.mark({}, "object"), {}, {}, {}
  for name, given in pairs(fields) do
    if type(name) ~= "string" then raise(word .. ": expected { name = type }, got a list") end
    local made = type_of(word .. ": '" .. name .. "'", given)
    properties[name] = made.schema
    names[#names + 1] = name
    if made.optional then optional[name] = true end
  end
  table.sort(names)
  names = builtins.source_order(names, builtins.line())
  for _, name in ipairs(names) do
    if not optional[name] then required[#required + 1] = name end
  end
  return { type = "object", properties = builtins.order(properties, names), additionalProperties = false,
           required = #required > 0 and builtins.mark(required, "array") or nil }
end

function M.object(fields, description)
  return new(describe("object", object_of("object", fields), description, {}, 1))
end

-- optional(str "Note"), optional(int, 1)
function M.optional(given, default)
  local made = type_of("optional", given)
  local schema = {}
  for key, value in pairs(made.schema) do schema[key] = value end
  schema.default = default
  local new_one = new(schema)
  new_one.optional = true
  return new_one
end

function M.params(fields, options)
  local schema = object_of("params", fields)
  if options ~= nil then
    if type(options) ~= "table" then raise("params: expected { open = true }, got " .. builtins.kind(options)) end
    for name in pairs(options) do
      if name ~= "open" then raise("params: unknown option '" .. tostring(name) .. "': it takes open") end
    end
    if options.open ~= nil and type(options.open) ~= "boolean" then
      raise("params: open: expected true or false, got " .. builtins.kind(options.open))
    end
    if options.open then schema.additionalProperties = nil end
  end
  return builtins.order(schema, ORDER)
end

return M
