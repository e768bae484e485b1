-- What the APIs of model providers take as a tool, and a definition of tools/list written so that they take it. Each change is a
-- note for people: a provider answers one schema that it does not take with 400 for the whole list. The gate checks
-- arguments by the schema as it was, so nothing that is left out here is no longer checked.
-- The state has `json` = { null, array, keys }; the values are those of sandbox/lua_json.h.
local M = {}
local keys_of, null, ARRAY = json.keys, json.null, getmetatable(json.array {})

local function set(list)
  local found = {}
  for word in list:gmatch "%S+" do found[word] = true end
  return found
end

-- `source`: the provider's page. `read`: when these rules were last compared with it, and through what where the page itself
-- could not be opened; no API was asked. `seen`: reports with the API's own words, for what no page says. Keys of rules: see fit.
M.PROVIDERS = {
  openai = {
    source = "https://developers.openai.com/api/docs/guides/function-calling and …/structured-outputs#supported-schemas",
    seen = "langchain-ai/langchainjs#9804, anomalyco/opencode#32073, vercel/ai#21037",
    read = "2026-11-28, by clients generated from its OpenAPI document, and by what the reports quote",
    top = set "oneOf anyOf allOf enum not", needs_items = true, needs_values = true, lookaround = false, description = 1024,
  },
  anthropic = {
    source = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use and "
          .. "…/managed-agents/self-hosted-sandboxes", -- which refuses $ref anywhere
    seen = "anthropics/claude-code#40075, diegosouzapw/OmniRoute#13552, n8n-io/n8n#30590",
    read = "2026-11-28, as the reports quote it",
    top = set "oneOf anyOf allOf", property = "^[%w_.-]+$", property_bytes = 64, inline = true,
  },
  gemini = {
    source = "https://ai.google.dev/api/generate-content (responseJsonSchema, which parametersJsonSchema is like) and "
          .. "https://ai.google.dev/api/caching#FunctionDeclaration",
    seen = "mobile-next/mobile-mcp#344",
    read = "2026-11-28, by Google Cloud's page of the same type and Google's SDK",
    name = "^[%a_]", needs_items = true, needs_values = true, needs_declared = true, booleans = false, bare_refs = true,
    formats = set "date-time date time float double int32 int64", values = set "string number",
    keywords = set [[$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum
                     maximum anyOf oneOf properties additionalProperties required propertyOrdering]],
  },
  mistral = {
    source = "https://docs.mistral.ai/api (Function: name, description, parameters as a JSON Schema object)",
    read = "2026-11-28, by a client generated from its OpenAPI document",
  },
  bedrock = {
    source = "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html",
    seen = "the rules of the model behind it: Anthropic's", read = "2026-11-28, the page",
    top = set "oneOf anyOf allOf", property = "^[%w_.-]+$", property_bytes = 64, inline = true,
  },
}

-- ---- JSON with the order of its members -----------------------------------------------------------------------

local function is_object(v) return type(v) == "table" and getmetatable(v) == nil end
local function is_array(v) return type(v) == "table" and getmetatable(v) == ARRAY end
-- The names of an object that is made here are its item 1, which is a member of none; a weak table would cost twice the time.
local function keys(o) return o[1] or keys_of(o) or {} end

local function put(o, key, value)
  if o[key] == nil then table.insert(o[1], key) end
  o[key] = value
end

-- object("name", value, …); a value that is nil is left out.
local function object(...)
  local o = { {} }
  for i = 1, select("#", ...), 2 do
    local key, value = select(i, ...)
    if value ~= nil then put(o, key, value) end
  end
  return o
end

-- Behind the others, also if it was there.
local function put_last(o, key, value)
  for i, name in ipairs(o[1]) do
    if name == key then table.remove(o[1], i) end
  end
  o[key] = nil
  put(o, key, value)
end

local function array(list) return json.array(list or {}) end

local function set_of(list)
  local found = {}
  for _, one in ipairs(is_array(list) and list or {}) do found[one] = true end
  return found
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return ESCAPES[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function number_text(n)
  for digits = 15, 17 do
    local shown = ("%." .. digits .. "g"):format(n)
    if tonumber(shown) == n then return shown end
  end
end

-- ---- what may be written: a replaced reference is written again wherever it is named ----

local STEPS_MAX = 40000       -- of one schema: members and long texts that are read again
local LIST_STEPS_MAX = 200000 -- of a list
local NESTED_MAX = 64         -- references in each other
local STEP_BYTES = 64

local function spend(c, value)
  if c.nested == 0 then return end -- this is as long as the schema itself
  local more = is_array(value) and #value or type(value) == "string" and math.floor(#value / STEP_BYTES) or 0
  c.steps, c.left = c.steps + 1 + more, c.left - 1 - more
  if c.steps > STEPS_MAX then error({ why = "its schema is too large once its references are replaced" }, 0) end
  if c.left < 0 then error({ why = "left out: the list is too large once its schemas' references are replaced" }, 0) end
end

-- A large schema is read and written in pieces: its turn of the daemon's loop may end after each.
local PIECE = 64 -- values
local values = 0

local function pause()
  values = values + 1
  if values % PIECE == 0 then coroutine.yield() end
end

local function write(v, out)
  local words
  pause()
  if type(v) == "string" then words = quoted(v)
  elseif type(v) == "number" then words = number_text(v)
  elseif type(v) == "boolean" then words = tostring(v)
  elseif is_array(v) then
    out[#out + 1] = "["
    for i, item in ipairs(v) do
      if i > 1 then out[#out + 1] = "," end
      write(item, out)
    end
    words = "]"
  elseif is_object(v) then
    local between = "{"
    for _, key in ipairs(keys(v)) do
      if v[key] ~= nil then
        out[#out + 1] = between .. quoted(key) .. ":"
        write(v[key], out)
        between = ","
      end
    end
    words = between == "{" and "{}" or "}"
  elseif type(v) == "table" then words = v[1] -- a number as it was written
  else words = "null" end
  out[#out + 1] = words
  if out.of then spend(out.of, words) end
end

-- `of`: in whose schema references were replaced; nil: nowhere.
local function text(v, of)
  local out = { of = of }
  write(v, out)
  return table.concat(out)
end

-- ---- what one provider takes ------------------------------------------------------------------------------------

local TYPES = set "string number integer boolean array object null"
local ONE = set [[items additionalProperties not contains if then else propertyNames unevaluatedItems unevaluatedProperties
                  additionalItems]]
local EACH = set "anyOf oneOf allOf prefixItems"
local NAMED = set "properties $defs definitions patternProperties dependentSchemas"
local UNNOTED = set "$schema $comment default examples deprecated readOnly writeOnly title"
local LOOKAROUNDS = { "%(%?=", "%(%?!", "%(%?<=", "%(%?<!" }

local function looks_around(pattern)
  for _, sign in ipairs(LOOKAROUNDS) do
    if type(pattern) == "string" and pattern:find(sign) then return true end
  end
  return false
end

-- At most so many characters.
local function cut(words, characters)
  local at, count = 1, 0
  while at <= #words and count < characters do at, count = words:match("^[\128-\191]*()", at + 1), count + 1 end
  return words:sub(1, at - 1)
end

local function clipped(words) return cut(words, 100) end

-- The place of a member; a note has no use for one that is longer.
local function under(path, name) return #path > 400 and path or path .. "/" .. clipped(name) end

local function has_type(s, name) return s.type == name or set_of(s.type)[name] or false end

-- The schema at "#/properties/s" of the root; nil: there is none.
local function resolve(root, pointer)
  local at = root
  for part in pointer:sub(2):gmatch "/([^/]*)" do
    part = part:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end):gsub("~1", "/"):gsub("~0", "~")
    if is_array(at) then at = at[(tonumber(part) or -1) + 1]
    else at = is_object(at) and at[part] or nil end
  end
  return at
end

local fit

local function fit_list(c, list, path)
  local out = array()
  for _, one in ipairs(list) do
    local fitted = fit(c, one, path)
    if fitted ~= nil then out[#out + 1] = fitted end
  end
  return out
end

local function fit_named(c, named, path, are_properties, required)
  local out, rules = object(), c.rules
  required = set_of(required)
  for _, name in ipairs(keys(named)) do
    spend(c, name)
    local fits = not (are_properties and rules.property) or (name:find(rules.property) and #name <= rules.property_bytes)
    local fitted = fits and fit(c, named[name], under(path, name)) or nil
    if fitted ~= nil then
      put(out, name, fitted)
    elseif required[name] then
      error({ why = ("%s: the parameter '%s' is required, and its name or schema is not taken"):format(path, clipped(name)) }, 0)
    else
      c.note(("%s: the optional parameter '%s' is left out: its name or schema is not taken"):format(path, clipped(name)))
    end
  end
  return out
end

local KEYWORDS = {
  type = function(c, value, path)
    if type(value) == "string" and TYPES[value] then return value end
    local kept = array()
    for _, name in ipairs(is_array(value) and value or {}) do
      if TYPES[name] then kept[#kept + 1] = name end
    end
    if not is_array(value) or #kept < #value then
      c.note(("%s: %s is no type of JSON Schema and is left out"):format(path, clipped(text(value))))
    end
    if #kept > 0 then return kept end
  end,

  enum = function(c, value, path)
    if not is_array(value) then return end
    local fits = #value > 0 or not c.rules.needs_values
    for _, one in ipairs(value) do fits = fits and (not c.rules.values or c.rules.values[type(one)]) end
    if fits then return value end
    c.note(("%s: 'enum' is left out: %s"):format(path, #value == 0 and "it is empty" or "not all are strings or numbers"))
  end,

  required = function(c, value, path, s)
    if not is_array(value) or not c.rules.needs_declared then return is_array(value) and value or nil end
    local kept = array()
    for _, name in ipairs(value) do
      if is_object(s.properties) and s.properties[name] ~= nil then kept[#kept + 1] = name
      else c.note(("%s: required names '%s', which is no property: left out"):format(path, clipped(tostring(name)))) end
    end
    return kept
  end,

  pattern = function(c, value, path)
    if c.rules.lookaround == false and looks_around(value) then
      c.note(path .. ": 'pattern' is left out: it looks ahead or behind")
      return
    end
    return value
  end,

  format = function(c, value, path)
    if not c.rules.formats or c.rules.formats[value] then return value end
    c.note(("%s: the format '%s' is left out"):format(path, clipped(tostring(value))))
  end,
}

-- Draft 4 says `exclusiveMinimum: true`; rewrite has read one beside its bound.
for _, side in ipairs { "Minimum", "Maximum" } do
  KEYWORDS["exclusive" .. side] = function(c, value, path)
    if type(value) ~= "boolean" then return value end
    c.note(("%s: 'exclusive%s' is a number here, no truth value"):format(path, side))
  end
end

local function open(c, pointer)
  c.open[pointer], c.nested = true, c.nested + 1
  if c.nested > NESTED_MAX then error({ why = "its references are nested too deep to be replaced" }, 0) end
end

local function close_all(c, pointers)
  for _, pointer in ipairs(pointers) do c.open[pointer], c.nested = nil, c.nested - 1 end
end

local function fit_ref(c, s, path)
  local pointer = s["$ref"]
  spend(c, pointer)
  local named = pointer:find "^#/%$defs/" or pointer:find "^#/definitions/"
  local target = pointer:sub(1, 1) == "#" and resolve(c.root, pointer) or nil
  if named and not c.rules.inline and target ~= nil then return end
  if target == nil or c.open[pointer] then
    c.note(("%s: '$ref' to %s is left out: %s"):format(path, clipped(pointer),
                                                         target and "it contains itself" or "it leads nowhere"))
    return object()
  end
  c.note(("%s: '$ref' to %s is replaced by what it names"):format(path, clipped(pointer)))
  open(c, pointer)
  local merged = object()
  for _, from in ipairs { is_object(target) and target or object(), s } do
    for _, key in ipairs(keys(from)) do
      if key ~= "$ref" then put(merged, key, from[key]) end
    end
  end
  local fitted = fit(c, merged, path)
  close_all(c, { pointer })
  return fitted
end

-- Adds the members of `more` that `out` lacks; properties and lists of required ones become one. `joined`: those that are one
-- already, and what such a list has: of a thousand schemas none is copied again for each that follows.
local function merge(out, more, joined)
  for _, key in ipairs(keys(more)) do
    local old, new = out[key], more[key]
    local from = joined[key] and { new } or { old, new }
    if old == nil then put(out, key, new)
    elseif is_object(old) and is_object(new) then
      local both = joined[key] or object()
      for _, members in ipairs(from) do
        for _, name in ipairs(keys(members)) do
          if both[name] == nil then put(both, name, members[name]) end
        end
      end
      joined[key], out[key] = both, both
    elseif key == "required" and is_array(old) and is_array(new) then
      local both = joined[key] or array()
      local seen = joined[both] or {}
      for _, list in ipairs(from) do
        for _, name in ipairs(list) do
          if not seen[name] then both[#both + 1] = name end
          seen[name] = true
        end
      end
      joined[key], joined[both], out[key] = both, seen, both
    end
  end
end

-- What a schema of allOf names stands beside the others; `opened` gets the reference.
local function named_part(c, part, opened)
  local pointer = is_object(part) and part["$ref"]
  if type(pointer) ~= "string" then return part end
  spend(c, pointer)
  local target = not c.open[pointer] and pointer:sub(1, 1) == "#" and resolve(c.root, pointer)
  if not is_object(target) then return part end
  opened[#opened + 1] = pointer
  open(c, pointer)
  return target
end

-- allOf and const where a provider does not know them. `opened` gets the references that have become a part of it.
local function rewrite(c, s, path, opened)
  local rules, out = c.rules, object()
  for _, key in ipairs(keys(s)) do
    local value = s[key]
    if key == "const" and rules.keywords and s.enum == nil and rules.values[type(value)] then
      put(out, "enum", array { value })
    elseif key == "allOf" and rules.keywords and is_array(value) then
      c.note(path .. ": the schemas of 'allOf' are merged into one")
    elseif key == "definitions" and rules.keywords then put(out, "$defs", value)
    elseif key == "$ref" and rules.keywords and type(value) == "string" then
      put(out, key, (value:gsub("^#/definitions/", "#/$defs/")))
    elseif key == "items" and is_array(value) then
      c.note(path .. ": a list of 'items' is written as 'prefixItems'")
      put(out, "prefixItems", value)
    elseif key == "exclusiveMinimum" and value == true and type(s.minimum) == "number" then put(out, key, s.minimum)
    elseif key == "exclusiveMaximum" and value == true and type(s.maximum) == "number" then put(out, key, s.maximum)
    elseif (key == "minimum" and s.exclusiveMinimum == true) or (key == "maximum" and s.exclusiveMaximum == true) then
      c.note(("%s: '%s' and the truth value beside it are written as one number"):format(path, key))
    else put(out, key, value) end
  end
  local all, joined = rules.keywords and is_array(s.allOf) and s.allOf or {}, {}
  for _, part in ipairs(all) do
    if #all > 1 or out.properties then part = named_part(c, part, opened) end
    if is_object(part) then merge(out, part, joined) end
  end
  return out
end

-- A schema as the provider takes it; nil: it cannot be written.
function fit(c, s, path)
  local rules = c.rules
  pause()
  spend(c)
  if type(s) == "boolean" then
    if rules.booleans ~= false then return s end
    c.note(("%s: %s as a schema is %s"):format(path, tostring(s), s and "written as {}" or "left out"))
    return s and object() or nil
  end
  if not is_object(s) then return object() end
  if type(s["$ref"]) == "string" then
    local fitted = fit_ref(c, s, path)
    if fitted then return fitted end
  end
  for _, key in ipairs(keys(s)) do spend(c, s[key]) end
  local out, opened = object(), {}
  s = rewrite(c, s, path, opened)
  for _, key in ipairs(keys(s)) do
    local value, kept = s[key], nil
    if value == null and key ~= "default" and key ~= "const" then kept = nil
    elseif rules.keywords and not rules.keywords[key] then
      if not UNNOTED[key] then c.note(("%s: '%s' is left out"):format(path, clipped(key))) end
    elseif rules.bare_refs and type(s["$ref"]) == "string" and key:sub(1, 1) ~= "$" then
      if not UNNOTED[key] then c.note(("%s: '%s' beside '$ref' is left out"):format(path, clipped(key))) end
    elseif rules.inline and (key == "$defs" or key == "definitions") then kept = nil -- all of it stands where it was named
    elseif KEYWORDS[key] then kept = KEYWORDS[key](c, value, path, s)
    elseif NAMED[key] then
      kept = is_object(value) and fit_named(c, value, path, key == "properties", s.required) or nil
    elseif EACH[key] then kept = is_array(value) and fit_list(c, value, path) or nil
    elseif ONE[key] then
      if type(value) == "boolean" and key ~= "items" then kept = value else kept = fit(c, value, path) end
    else kept = value end
    if kept ~= nil then put(out, key, kept) end
  end
  close_all(c, opened)
  if rules.needs_items and has_type(out, "array") and out.items == nil and out.prefixItems == nil then
    put(out, "items", object())
    c.note(path .. ": a list without 'items' gets {}, which is any value")
  end
  return out
end

-- Whether a branch at the top only says which of the root's parameters belong together: the gate refuses what does not fit it.
local NARROWS = set "required properties type title description not $comment additionalProperties"

local function only_narrows(root, branch)
  if not is_object(branch) then return type(branch) == "boolean" end
  for _, key in ipairs(keys(branch)) do
    local named = key == "properties" and is_object(branch.properties) and keys(branch.properties) or {}
    for _, name in ipairs(named) do
      if not (is_object(root.properties) and root.properties[name] ~= nil) then return false end
    end
    if not NARROWS[key] then return false end
  end
  return true
end

local function without_top(c, root)
  local out = object()
  for _, key in ipairs(keys(root)) do
    local value = root[key]
    if not (c.rules.top and c.rules.top[key]) then
      put(out, key, value)
    else
      for _, branch in ipairs(is_array(value) and key ~= "enum" and value or {}) do
        if not only_narrows(root, branch) then
          error({ why = ("left out: this provider takes no '%s' at the top of a schema, and without it a parameter is missing")
                          :format(key) }, 0)
        end
      end
      c.note(("#: '%s' at the top is left out; the gate still checks it"):format(key))
    end
  end
  return out
end

local NOTES_MAX = 32 -- of one schema; the rest is counted

-- The notes so far; and what adds one.
local function collector()
  local notes, seen, more = array(), {}, 0
  return function()
    if more > 0 then notes[NOTES_MAX + 1] = ("and %d more changes"):format(more) end
    return notes
  end, function(words)
    if seen[words] then return end
    if #notes < NOTES_MAX then notes[#notes + 1], seen[words] = words, true else more = more + 1 end
  end
end

-- ---- OpenAI's strict mode: every object closed, every property required (optional ones nullable), and only the keywords
-- that it takes. A keyword that is not in the table is left out.

local STRICT_FORMATS = set "date-time time date duration email hostname ipv4 ipv6 uuid"
local STRICT_KEPT = set [[type description title enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems
                          maxItems $ref]]
-- These do not narrow what is valid, or are written anyway: that they are left out is no loss.
local STRICT_UNNOTED = set "required additionalProperties $schema $id $comment default examples deprecated readOnly writeOnly"
local IMPOSSIBLE = {
  allOf = "allOf is not possible in strict mode: merge its schemas into one",
  prefixItems = "a list with a schema for each place is not possible in strict mode: use an object",
  patternProperties = "patternProperties is not possible in strict mode: name the properties, or use a list of key and value",
}

local close

local function give_up(path, reason) error({ why = path .. ": " .. reason }, 0) end

local function close_members(c, value, path)
  if not is_object(value) then give_up(path, "expected an object of schemas") end
  local out = object()
  for _, name in ipairs(keys(value)) do put(out, name, close(c, value[name], under(path, name))) end
  return out
end

local function close_items(c, value, path)
  if not is_array(value) then give_up(path, "expected an array of schemas") end
  local out = array()
  for i, one in ipairs(value) do out[i] = close(c, one, path) end
  return out
end

local STRICT = {
  format = function(c, value, path)
    if STRICT_FORMATS[value] then return value end
    c.note(("%s: the format '%s' is left out"):format(path, clipped(type(value) == "string" and value or "")))
  end,
  pattern = function(c, value, path)
    if not looks_around(value) then return value end
    c.note(path .. ": 'pattern' is left out: it looks ahead or behind")
  end,
  items = function(c, value, path)
    if not is_object(value) then give_up(path, "expected one schema, which strict mode wants for every item") end
    return close(c, value, path)
  end,
  anyOf = close_items, oneOf = close_items,
  properties = close_members, ["$defs"] = close_members, definitions = close_members,
}

local function with_null(list, value)
  local out = array()
  for i, one in ipairs(list) do out[i] = one end
  out[#out + 1] = value
  return out
end

-- An optional property becomes required and nullable; coercion reads null as absent.
local function nullable(s)
  if has_type(s, "null") then return s end
  if s.type == nil or s.const ~= nil then return object("anyOf", array { s, object("type", "null") }) end
  put(s, "type", with_null(is_array(s.type) and s.type or { s.type }, "null"))
  if is_array(s.enum) then put(s, "enum", with_null(s.enum, null)) end
  return s
end

local function close_object(c, s, out, path)
  if is_object(s.additionalProperties) then
    give_up(path, "an object with any keys is not possible in strict mode: use a list of key and value")
  end
  if not out.properties and type(s.additionalProperties) ~= "boolean" then
    give_up(path, "a free-form object is not possible in strict mode: name its properties")
  end
  local named, required, before = out.properties or object(), array(), set_of(s.required)
  for _, name in ipairs(keys(named)) do
    required[#required + 1] = name
    if not before[name] then
      named[name] = nullable(named[name])
      c.note(("%s: '%s' is required, and may be null instead of left out"):format(path, clipped(name)))
    end
  end
  if s.additionalProperties ~= false then c.note(path .. ": it is closed: no other properties") end
  put(out, "properties", named)
  put_last(out, "required", required)
  put_last(out, "additionalProperties", false)
end

function close(c, s, path)
  pause()
  if not is_object(s) then give_up(path, "a value of any kind is not possible in strict mode: give it a type") end
  local out = object()
  for _, key in ipairs(keys(s)) do
    local becomes, kept = key == "oneOf" and "anyOf" or key, nil
    if IMPOSSIBLE[key] then give_up(path, IMPOSSIBLE[key]) end
    if STRICT_KEPT[key] then kept = s[key]
    elseif STRICT[key] then kept = STRICT[key](c, s[key], path)
    elseif not STRICT_UNNOTED[key] then c.note(("%s: '%s' is left out"):format(path, clipped(key))) end
    if becomes ~= key then c.note(("%s: '%s' is read as anyOf"):format(path, key)) end
    if kept ~= nil then put(out, becomes, kept) end
  end
  local is_an_object = has_type(out, "object") or (out.type == nil and out.properties ~= nil)
  if is_an_object and out.type == nil then put(out, "type", "object") end
  if out.type == nil and out.enum == nil and out.const == nil and out.anyOf == nil and out["$ref"] == nil then
    give_up(path, "a value of any kind is not possible in strict mode: give it a type")
  end
  if has_type(out, "array") and out.items == nil then
    give_up(path, "a list of anything is not possible in strict mode: give it 'items'")
  end
  if is_an_object then close_object(c, s, out, path) end
  return out
end

local function strict_root(root, note)
  local closed = close({ note = note }, root, "#")
  if not has_type(closed, "object") or closed.anyOf ~= nil then
    give_up("#", "strict mode wants one plain object at the root, without anyOf or oneOf")
  end
  return closed
end

-- ---- what C calls, in a coroutine ---------------------------------------------------------------------------------------------

local function attempt(run, ...)
  local good, result = pcall(run, ...)
  if good then return result end
  if type(result) ~= "table" then error(result, 0) end
  return nil, result.why
end

-- The schema in strict mode as JSON and what changed; or nil and why it is not possible.
function M.strict(schema)
  local notes, note = collector()
  local closed, why = attempt(strict_root, schema, note)
  if not closed then return nil, why end
  return text(closed), notes()
end

-- The request field in which each provider takes a response's schema; `closed`: it takes closed schemas in which every property
-- is required.
local RESPONSES = {
  openai = { field = "response_format", closed = true, write = function(name, schema, strict)
    return ('{"type":"json_schema","json_schema":{"name":%s,"strict":%s,"schema":%s}}'):format(quoted(name), strict, schema)
  end },
  anthropic = { field = "output_format", closed = true, write = function(_, schema)
    return ('{"type":"json_schema","schema":%s}'):format(schema)
  end },
  gemini = { field = "generationConfig", write = function(_, schema)
    return ('{"responseMimeType":"application/json","responseJsonSchema":%s}'):format(schema)
  end },
}

-- {"response_format":{…},"warnings":[…]} as JSON.
function M.response(provider, name, schema)
  local form, warnings = RESPONSES[provider], array()
  local closed, more
  if form.closed then closed, more = M.strict(schema) end
  if form.closed and not closed then
    warnings[1] = "strict is not possible, the schema is as it was written: " .. more
  end
  for i, note in ipairs(closed and more or {}) do warnings[i] = note end
  return ('{"%s":%s,"warnings":%s}'):format(form.field, form.write(name, closed or text(schema), closed ~= nil), text(warnings))
end

local function function_of(definition, schema, strict)
  local inner = object("name", definition.name, "description", definition.description, "parameters", schema, "strict", strict)
  return object("type", "function", "function", inner)
end

local function plain_of(member)
  return function(definition, schema)
    return object("name", definition.name, "description", definition.description, member, schema)
  end
end

local function tool_spec_of(definition, schema)
  local description = definition.description ~= "" and definition.description or nil
  return object("toolSpec", object("name", definition.name, "description", description, "inputSchema", object("json", schema)))
end

local ENVELOPES = { openai = function_of, mistral = function_of, anthropic = plain_of "input_schema",
                    gemini = plain_of "parametersJsonSchema", bedrock = tool_spec_of }

local function written_as(provider, definition, strict, says, left)
  local rules, notes, note = M.PROVIDERS[provider], collector()
  if rules.name and not definition.name:find(rules.name) then
    return nil, array { "left out: this provider's names of tools begin with a letter or '_'" }, left
  end
  local c = { rules = rules, root = definition.inputSchema, note = note, open = {}, nested = 0, steps = 0, left = left }
  local schema, why = attempt(function() return fit(c, without_top(c, c.root), "#") end)
  if not schema then return nil, array { why }, c.left end
  local closed
  if strict and provider == "openai" then
    closed, why = attempt(strict_root, schema, function() end)
    if not closed then note(why) end
  end
  local description, most = definition.description, rules.description
  if most and type(description) == "string" and cut(description, most) ~= description then
    note(("the description is cut after %d characters"):format(most))
    definition.description = cut(description, most - 1) .. "…"
  end
  local is_strict
  if says and provider == "openai" then is_strict = closed ~= nil end
  c.nested = c.steps > 0 and 1 or 0
  local written
  written, why = attempt(text, ENVELOPES[provider](definition, closed or schema, is_strict), c)
  return written, written and notes() or array { why }, c.left
end

-- The definition in the provider's form as JSON; nil: it is left out. And the steps that the definitions of its list, which
-- share them, have left (`left`: before it; nil: it is the first), then what people should know of it.
function M.write(provider, definition, strict, says, left)
  local written, notes
  written, notes, left = written_as(provider, definition, strict, says, left or LIST_STEPS_MAX)
  table.insert(notes, 1, left)
  return written, notes
end

return M
