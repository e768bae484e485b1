-- Fills a template of lua/templates: TOOL becomes the tool's name, and a line `--@part` what is known of that part.
-- Invents nothing: a part of which nothing is known is a TODO or is left out.
local ui = require "ui"

local quoted, long = ui.lua_string, ui.lua_long
local LINE_BYTES = 100

-- JSON of which each value that is longer than LINE_BYTES has a line for each member.
local function pretty(json, indent)
  local value, parts, line = cli.parse(json, true)
  local is_list = ui.is_array(value)
  local names = is_list and parts or type(value) == "table" and cli.keys(value)
  if not names or #line <= LINE_BYTES then return line end
  local out, space = {}, "\n" .. (" "):rep(indent)
  for i, name in ipairs(names) do
    out[i] = space .. "  " .. (is_list and pretty(name, indent + 2)
                              or cli.quote(name) .. ": " .. pretty(parts[name], indent + 2))
  end
  local all = table.concat(out, ",") .. space
  return is_list and "[" .. all .. "]" or "{" .. all .. "}"
end

local function json_of(json) return "json " .. long(pretty(json, 2), "") end

local function hints(tool, hint, value) return ui.table(tool.annotations)[hint] == value end
local function is_destructive(tool) return hints(tool, "destructiveHint", true) end

local write = {} -- what stands for each part; nil: nothing

-- A destructive tool asks the user first.
function write.confirmation(tool)
  if not is_destructive(tool) then return end
  return [[

-- The call in words, for the user's yes. TODO: say what is lost, by its name instead of its id.
local function in_words(args)
  local parts = {}
  for name, value in pairs(args) do
    parts[#parts + 1] = name .. " = " .. (type(value) == "table" and "…" or tostring(value))
  end
  table.sort(parts)
  return ]] .. quoted(tool.name .. " (") .. [[ .. table.concat(parts, ", ") .. ")"
end

]]
end

function write.upstream(tool)
  if tool.upstream ~= "" then return "  upstream    = " .. quoted(tool.upstream) .. ",\n" end
end

function write.title(tool)
  if tool.title ~= "" then return "  title       = " .. quoted(tool.title) .. ", -- the definition's title\n" end
end

function write.description(tool)
  if tool.tools_file then
    return "  -- The model reads the definition's description; a `description` here replaces it.\n"
  end
  local words = tool.description ~= "" and tool.description or "TODO: say in one sentence what the tool does."
  local many_lines = words:find("\n", 1, true) and not words:find "[\r%z]"
  return "  description = " .. (many_lines and long(words, "\n") or quoted(words)) .. ",\n"
end

-- From the annotations, the stricter one if they contradict each other; never from the name.
function write.effects(tool)
  if is_destructive(tool) then
    return '  effects     = "destructive", -- the definition\'s destructiveHint\n'
  elseif hints(tool, "readOnlyHint", true) then
    return '  effects     = "read", -- the definition\'s readOnlyHint\n'
  elseif hints(tool, "readOnlyHint", false) then
    return '  effects     = "write", -- the definition\'s readOnlyHint is false\n'
  end
  return '  -- effects    = "read", -- or "write", "destructive", "toggle": how often the same call may be made\n'
end

function write.idempotent(tool)
  if hints(tool, "idempotentHint", true) then
    return "  idempotent  = true, -- the definition's idempotentHint: a failed call may be repeated\n"
  end
end

function write.check(tool)
  if not is_destructive(tool) then return end
  return [[
  -- The definition's destructiveHint: the user is asked first. Their choice is the goal of the next turn.
  check = function(args, call)
    local yes = "yes, " .. in_words(args)
    if not (call.goal or ""):find(yes, 1, true) then
      return ask("This cannot be undone: " .. in_words(args) .. "?", { yes, "no" })
    end
  end,

]]
end

function write.schema(tool)
  if tool.tools_file then
    return ("  -- The schema is the definition's, in %s: pass that with --tools wherever this policy is loaded.\n")
           :format(tool.tools_file)
  elseif tool.upstream ~= "" and not tool.with_schema then
    return "  -- The schema is the upstream's. Commands that ask no daemon, such as toolgate test,\n" ..
           "  -- read it from --tools FILE, a file that `toolgate tools --format mcp` wrote.\n"
  end
  return "  schema = " .. (tool.schema_file and "json " .. quoted(tool.schema_file) or json_of(tool.schema)) .. ",\n"
end

local function example(name, args, gives)
  return "    { " .. quoted(name) .. ", args = " .. (args:find "^{%s*}$" and "{}" or json_of(args)) .. gives .. " },\n"
end

-- The user's yes to this call, as the policy's in_words writes it; nil if Lua may write a number differently.
local function confirmation(tool, sample)
  local args, parts = cli.parse(sample), {}
  for i, name in ipairs(cli.keys(args)) do
    local value = args[name]
    local kind = type(value)
    if value == nil or kind == "number" and (value ~= math.floor(value) or math.abs(value) >= 1000000) then return nil end
    parts[i] = name .. " = " .. (kind == "table" and "…" or kind == "number" and ("%d"):format(value) or tostring(value))
  end
  table.sort(parts)
  return "yes, " .. tool.name .. " (" .. table.concat(parts, ", ") .. ")"
end

-- A call that passes, for a destructive tool after the user was asked, and the same without its first required
-- argument.
function write.examples(tool)
  local sample, required, without = cli.sample(tool.schema)
  if not sample then
    return "  -- TODO: examples. No call could be made from the schema.\n  -- examples = {\n" ..
           '  --   { "a call that passes", args = {}, gives = "pass" },\n  -- },\n'
  end
  local out = "  examples = {\n"
  local yes = is_destructive(tool) and confirmation(tool, sample)
  if is_destructive(tool) then out = out .. example("the user is asked first", sample, ',\n      gives = "ask"') end
  if yes then
    out = out .. example("the user has said yes", sample, ", goal = " .. quoted(yes) .. ',\n      gives = "pass"')
  elseif not is_destructive(tool) then
    out = out .. example("a call that passes", sample, ',\n      gives = "pass"')
  end
  if required then out = out .. example("a call without " .. required, without, ',\n      gives = "repair"') end
  return out .. "  },\n"
end

-- "TOOL" as a string of Lua; TOOL, which stands in comments, without what would end the line.
local function named(line, name)
  return (line:gsub('"?TOOL"?', function(mark)
    return mark:sub(1, 1) == '"' and quoted(name) or (name:gsub("[%z\1-\31]", " "))
  end))
end

-- The whole policy file.
return function(tool)
  local out = {}
  for line in cli.embedded("templates/" .. tool.template .. ".lua"):gmatch "([^\n]*)\n" do
    local part = line:match "^ *%-%-@(%w+)$"
    out[#out + 1] = not part and named(line, tool.name) .. "\n" or write[part](tool) or ""
  end
  return table.concat(out)
end
