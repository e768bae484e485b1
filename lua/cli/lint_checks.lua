-- The checks of toolgate lint that read definitions: what is missing in them, what providers' APIs refuse, hints that
-- contradict each other, and what a description tells the model to do (lint_orders.lua). The limits are those of the
-- providers' documentation and error messages in 2026: Anthropic (Messages API, tools.input_schema), OpenAI (function calling,
-- and Structured Outputs' "supported schemas" for strict mode), Google (Gemini API, FunctionDeclaration and Schema).
local check_orders = require "lint_orders"
local check_policy = require "lint_policy"
local ui = require "ui"

local OPENAI_TOOLS_MAX       = 128   -- "Expected an array with maximum length 128"
local OPENAI_DESCRIPTION_MAX = 1024  -- characters; "Expected a string with maximum length 1024"
local OPENAI_VALUES_MAX      = 1000  -- of the enums of a schema together
local OPENAI_ENUM_LONG       = 250   -- values of one enum; above that their total length is limited
local OPENAI_ENUM_CHARS_MAX  = 15000 -- of such an enum
local ANTHROPIC_NAME_MAX     = 64    -- ^[a-zA-Z0-9_.-]{1,64}$
local DEPTH_MAX              = 64

local BRANCHES = { "anyOf", "oneOf", "allOf" }

-- ---- schemas ----

local is_object, is_array = ui.is_object, ui.is_array
local function member(value, name) if is_object(value) then return value[name] end end

local function characters(words) return (select(2, words:gsub("[^\128-\191]", ""))) end

local function joined(path, name) return path == "" and name or path .. "." .. name end

-- Calls visit(path, schema) for the schema of each property and item below, such as "items[].id". It descends into anyOf,
-- oneOf and allOf with the path of the schema around them, and does not visit a branch itself.
local function walk(schema, visit, path, depth)
  path, depth = path or "", depth or 0
  if not is_object(schema) or depth > DEPTH_MAX then return end
  local function enter(below, child)
    visit(below, child)
    walk(child, visit, below, depth + 1)
  end
  if is_object(schema.properties) then
    for _, name in ipairs(cli.keys(schema.properties)) do enter(joined(path, name), schema.properties[name]) end
  end
  if is_object(schema.items) then enter(path .. "[]", schema.items) end
  for _, branch in ipairs(depth > 0 and BRANCHES or {}) do
    for _, choice in ipairs(is_array(schema[branch]) and schema[branch] or {}) do walk(choice, visit, path, depth + 1) end
  end
end

-- ---- checks of a tool: each reports with say(code, form, …) ----

local schema_checks = {} -- of the schema that models see

function schema_checks.root_choice(schema, say)
  for _, branch in ipairs(BRANCHES) do
    if member(schema, branch) ~= nil then
      say("root-choice", "%s at the root of the schema, which Anthropic's API refuses, and OpenAI's in strict mode: use "
          .. "rules (needs_one_of, exclusive, when), or move it into a property", branch)
    end
  end
end

function schema_checks.names(schema, say)
  local function check(path, child)
    local properties = member(child, "properties")
    for _, name in ipairs(is_object(properties) and cli.keys(properties) or {}) do
      if name == "" or #name > ANTHROPIC_NAME_MAX or name:find "[^%w_.-]" then
        say("argument-name", "the argument '%s' has a name that Anthropic's API refuses: use 1 to 64 letters, digits, '_', "
            .. "'.' and '-'", joined(path, name))
      end
    end
  end
  check("", schema)
  walk(schema, check)
end

function schema_checks.lists(schema, say)
  walk(schema, function(path, child)
    local kind = member(child, "type")
    local list = kind == "array"
    for _, one in ipairs(is_array(kind) and kind or {}) do list = list or one == "array" end
    if list and child.items == nil then
      say("list-items", "the list '%s' has no 'items' schema, which OpenAI's and Gemini's APIs refuse: add items, as in "
          .. 'list(str, "…")', path)
    end
  end)
end

function schema_checks.enums(schema, say)
  local all = 0
  walk(schema, function(path, child)
    local values, length, other = member(child, "enum"), 0, false
    if not is_array(values) then return end
    all = all + #values
    for _, value in ipairs(values) do
      length = length + (type(value) == "string" and characters(value) or 0)
      other = other or (type(value) ~= "string" and value ~= cli.null)
    end
    if #values > OPENAI_ENUM_LONG and length > OPENAI_ENUM_CHARS_MAX then
      say("many-values", "the enum of '%s' has %d values with %d characters in total, and OpenAI's strict mode allows %d: "
          .. "shorten them, or use a string with a check", path, #values, length, OPENAI_ENUM_CHARS_MAX)
    end
    if other then
      say("enum-type", "the enum of '%s' has values other than strings, which Gemini's API may refuse: use strings, or min "
          .. "and max", path)
    end
  end)
  if all > OPENAI_VALUES_MAX then
    say("many-values", "its enums have %d values in total, and OpenAI's strict mode allows %d: use a string with a check, or "
        .. "split the tool", all, OPENAI_VALUES_MAX)
  end
end

local function check_descriptions(tool, say_schema, say_description)
  local text = member(tool.shown, "description")
  local length = type(text) == "string" and characters(text) or 0
  if length > OPENAI_DESCRIPTION_MAX then
    say_description("long-description", "the description that models see, use_when, avoid_when and rules included, has %d "
                    .. "characters, and OpenAI's API allows %d: shorten it", length, OPENAI_DESCRIPTION_MAX)
  end
  if not tool.described then return end
  if tool.description == "" then
    say_description("no-description", ' has no description: add description = "…"')
  end
  walk(tool.input, function(path, child) -- items are described by their list
    if path ~= "" and path:sub(-1) ~= "]" and member(child, "description") == nil and member(child, "$ref") == nil then
      say_schema("undescribed", "the argument '%s' has no description: add one, as in str \"Task title\"", path)
    end
  end)
end

-- Hints that cannot both be right, or that the name or the policy denies.
local function check_hints(tool, say)
  local reads, destroys = member(tool.annotations, "readOnlyHint") == true, member(tool.annotations, "destructiveHint") == true
  if reads and destroys then
    say("hints", " is annotated as reading (readOnlyHint) and as destroying (destructiveHint): it counts as %s; declare its "
        .. "effects in a policy", tool.effects)
  elseif reads and not tool.effects_by_policy and tool.name_destroys then
    say("hints", " is annotated as reading (readOnlyHint), and its name says that it destroys: it counts as %s; declare its "
        .. "effects in a policy", tool.effects)
  elseif tool.effects_by_policy and (destroys and not tool.destroys or reads and tool.writes) then
    say("hints", " is annotated with %s, and its policy declares effects = \"%s\": the policy decides; check that it is right",
        reads and "readOnlyHint" or "destructiveHint", tool.effects)
  end
end

-- ---- subjects ----

-- A function that reports what a part of the tool has: its policy answers for the part, or whoever published it. A form
-- that begins with a space goes on behind the tool's name.
local function reporter(found, tool, part, line)
  local theirs = part and tool.theirs[part] or false
  return function(code, form, ...)
    local sentence = ("tool '%s'%s"):format(tool.name, form:find "^ " and "" or ": ") .. form:format(...)
    found { file = theirs and tool.origin or tool.file, line = theirs and 0 or line, code = code, sentence = sentence,
            theirs = theirs }
  end
end

local function check_tool(tool, all, found)
  local say_schema = reporter(found, tool, "schema", tool.schema_line)
  local schema = member(tool.shown, "inputSchema")
  for _, check in pairs(schema_checks) do check(schema, say_schema) end
  if tool.not_strict then say_schema("strict", "not possible in OpenAI's strict mode: %s", tool.not_strict) end
  check_descriptions(tool, say_schema, reporter(found, tool, "description", tool.tool_line))
  if tool.shown and tool.name:find "^[%d-]" then
    reporter(found, tool, "tool", tool.tool_line)("first-letter", "Gemini's API requires names that begin with a letter or "
      .. "'_': rename it, with the old name in aliases")
  end
  check_hints(tool, reporter(found, tool, "tool", tool.tool_line))
  if tool.policy then check_policy(tool, found) end
  if tool.definition then check_orders(tool, all, walk, reporter(found, tool, nil, tool.tool_line)) end
end

local function check_generation(all, found)
  local described = 0
  for _, tool in ipairs(all.tools) do described = described + (tool.described and 1 or 0) end
  if described > OPENAI_TOOLS_MAX then
    found { file = "", line = 0, code = "many-tools", sentence = (
      "%d tools are shown, and OpenAI's API allows %d: hide some with prepare_tools in a gateway file, or serve them by "
      .. "several daemons"):format(described, OPENAI_TOOLS_MAX) }
  end
  for _, overlay in ipairs(all.overlays) do
    local function say(code, sentence) found { file = overlay.file, line = 0, code = code, sentence = sentence } end
    say("overlay", "lies over " .. (overlay.over[1] and table.concat(overlay.over, ", ") or "no tool yet"))
    if not overlay.has_examples then
      say("overlay-examples", "no example shows what this policy does: add one for each decision, with the tool that it "
          .. 'calls (tool = "…")')
    end
  end
end

local generation -- of the tools that come next

return function(subject, found)
  if not subject.tools then return check_tool(subject, generation, found) end
  generation = subject
  if not subject.only_policies then check_generation(subject, found) end
end
