-- toolgate words: the vocabulary of policies, from the tables that the loader reads: for a terminal, as docs/vocabulary.md,
-- or as definitions for editors.
local ui = require "ui"

local vocabulary, tables, types -- as the reference has them

local function read_reference()
  local known = assert(loadstring(cli.embedded "policy/reference.lua"))()
  vocabulary, tables, types = known.words, cli.fields(), known.types
  for _, of in ipairs(known.tables) do tables[#tables + 1] = of end
end

-- ---- for a terminal ----
local function put(name, sentence, form)
  ui.say("%s%-13s%s %s\n%14s%s%s%s", cli.bold, name, cli.plain, sentence, "", cli.dim, form, cli.plain)
end

local function put_title(title, sentence)
  ui.say("\n%s%s\n", ui.yellow(title), sentence and ": " .. sentence or "")
end

local function put_word(word) put(word.name, word.sentence, word.signature) end

local function put_field(of, field)
  put(field.name, field.sentence .. (field.required and " Required." or ""), of.given and field.type or field.form)
end

local function put_table(of)
  put_title("Fields of " .. of.of, of.sentence)
  for _, field in ipairs(of.fields) do put_field(of, field) end
end

local function each_group(begin, say)
  local group
  for _, word in ipairs(vocabulary) do
    if word.group ~= group then begin(word.group) end
    group = word.group
    say(word)
  end
end

local function put_all()
  for _, of in ipairs(tables) do put_table(of) end
  each_group(put_title, put_word)
end

-- A field by itself, or with its table, as in errors: "loop.poll.every".
local function is_field(name, of, field) return name == field.name or name == of.of .. "." .. field.name end

-- A name may be a word, a table of fields, and a field of several tables.
local function put_named(name)
  local found = 0
  for _, word in ipairs(vocabulary) do
    if word.name == name then
      put_word(word)
      found = found + 1
    end
  end
  for _, of in ipairs(tables) do
    for _, field in ipairs(of.fields) do
      if is_field(name, of, field) then
        found = found + 1
        ui.say("%sfield of %s%s", found > 1 and "\n" or "", of.of, of.given and ", which toolgate fills in" or "")
        put_field(of, field)
      end
    end
  end
  for _, of in ipairs(tables) do
    if of.of == name then
      put_table(of)
      found = found + 1
    end
  end
  return found > 0
end

local function put_entry(name)
  if put_named(name) then return 0 end
  local names = {}
  for _, word in ipairs(vocabulary) do names[#names + 1] = word.name end
  for _, of in ipairs(tables) do
    for _, field in ipairs(of.fields) do names[#names + 1] = field.name end
  end
  local near = cli.suggest(name, names)
  cli.warn(near and ("no word or field '%s' (did you mean '%s'?)"):format(name, near)
           or ("no word or field '%s'; `toolgate words` lists all"):format(name))
  return 1
end

local KNOWN = {
  { "reads", "They read" },
  { "notes", "They keep a model's own lists and notes, and change nothing else" },
  { "edits", "They edit local files" },
  { "shells", "They run commands: their effects are unknown" },
  { "polls", "They ask for what is under way: the same call is no loop up to loop.poll.max" },
  { "watches", "Shell commands that poll; one that begins with `sleep N` is another" },
  { "states", "States of what is under way: a result that names one makes the same call a poll" },
  { "state_codes", "The same in the output of such a command" },
  { "steps", "They are meant to be repeated, up to loop.poll.max" },
  { "step_verbs", "So are other tools whose name begins with" },
  { "step_ends", "or ends with" },
  { "labels", "Arguments that do not make a known tool's call another one" },
  { "command_labels", "Arguments that do not make a command another one" },
}

local function put_known_tools()
  local built_in = assert(loadstring(cli.embedded "known_tools.lua"))()
  for _, kind in ipairs(KNOWN) do
    put_title(kind[2])
    for _, name in ipairs(built_in[kind[1]]) do print(name) end
  end
end

-- ---- docs/vocabulary.md ----
-- A table cell: bars are escaped, and line breaks become spaces.
local function cell(words) return (words:gsub("|", "\\|"):gsub("\n", " ")) end

-- A word's forms are separated by "  or  ".
local function forms_of(signature)
  local forms = {}
  for form in (signature .. "  or  "):gmatch "(.-)  or  " do forms[#forms + 1] = form end
  return forms
end

-- Each form as code.
local function cells(signature)
  local forms = forms_of(signature)
  for i, form in ipairs(forms) do forms[i] = "`" .. cell(form) .. "`" end
  return table.concat(forms, " or ")
end

local function write_markdown()
  ui.say("# The vocabulary of policies\n\nEvery field and every word that a policy may write, as the program itself knows them: "
         .. "`toolgate words --format markdown` prints this page, `toolgate words NAME` one entry. What they are for, and how "
         .. "they go together, is in [policy.md](policy.md).\n\n## Fields\n")
  for _, of in ipairs(tables) do
    ui.say("### %s\n\n%s\n\n| field | %s | |\n|---|---|---|", of.of, of.sentence, of.given and "type" or "written")
    for _, field in ipairs(of.fields) do
      ui.say("| `%s` | %s | %s%s |", field.name, of.given and "`" .. cell(field.type) .. "`" or cells(field.form),
             cell(field.sentence), field.required and " Required." or "")
    end
    ui.say ""
  end
  ui.say "## Words"
  each_group(function(group)
    ui.say("\n### %s\n\n| word | written | |\n|---|---|---|", group)
  end, function(word)
    ui.say("| `%s` | %s | %s |", word.name, cells(word.signature), cell(word.sentence))
  end)
end

-- ---- definitions for editors (LuaCATS) ----
-- A word's `type` holds its forms, one a line. The first is the function, the others are overloads; forms that begin with
-- `self: CLASS` are that class's methods.

-- What comes before the first `stop` outside of brackets, and what comes behind it.
local function split(words, stop)
  local depth = 0
  for i = 1, #words do
    local c = words:sub(i, i)
    if depth == 0 and c == stop then return words:sub(1, i - 1), words:sub(i + 1) end
    depth = depth + (("({<["):find(c, 1, true) and 1 or (")}>]"):find(c, 1, true) and -1 or 0)
  end
  return words, ""
end

local function trim(words) return (words:gsub("^ +", "")) end

-- Forms of functions, or of methods.
local function typed_forms(word, methods)
  local forms = {}
  local rest = word.type or ""
  while rest ~= "" do
    local form
    form, rest = split(rest, "\n")
    if (form:sub(1, 10) == "fun(self: ") == methods then forms[#forms + 1] = form end
  end
  return forms
end

-- fun(a: A, b?: B): C, D. A parameter is an annotation, and in the list of names.
local function write_function(name, form)
  local names = {}
  local params, rest = split(form:sub(5), ")")
  while params ~= "" do
    local one, param
    one, params = split(params, ",")
    param, one = split(trim(one), ":")
    ui.say("---@param %s %s", param, trim(one))
    names[#names + 1] = param:gsub("%?$", "")
  end
  rest = trim(rest:sub(2))
  while rest ~= "" do
    local one
    one, rest = split(rest, ",")
    ui.say("---@return %s", trim(one))
  end
  ui.say("function %s(%s) end\n", name, table.concat(names, ", "))
end

local function write_comment(word)
  ui.say("---%s\n---```lua", word.sentence)
  for _, form in ipairs(forms_of(word.signature)) do ui.say("---%s", form) end
  ui.say "---```"
end

-- A value, or a function with overloads.
local function write_word(word)
  if word.type:sub(1, 4) ~= "fun(" then
    write_comment(word)
    return ui.say("---@type %s\n%s = nil\n", word.type, word.name)
  end
  local forms = typed_forms(word, false)
  if #forms == 0 then return end
  write_comment(word)
  for i = 2, #forms do ui.say("---@overload %s", forms[i]) end
  write_function(word.name, forms[1])
end

local function write_class(of)
  ui.say("---%s\n---@class %s", of.sentence, of.type)
  for i, item in ipairs(of) do ui.say("---@field [%d]? %s", i, item) end
  for _, field in ipairs(of.fields) do
    local maybe = of.given and field.type:sub(-1) == "?"
    ui.say("---@field %s%s %s %s", field.name, (maybe or not of.given and not field.required) and "?" or "",
           maybe and field.type:sub(1, -2) or field.type, field.sentence)
  end
  ui.say ""
end

-- Methods of rules: of a method's forms the last, the fullest one first as an editor shows it.
local function write_methods()
  ui.say("---What is demanded of arguments where a condition holds: made by when, always, needs_one_of, exclusive.\n"
         .. "---@class toolgate.Rule")
  for _, word in ipairs(vocabulary) do
    local forms = typed_forms(word, true)
    for i, form in ipairs(forms) do forms[i] = "(" .. form .. ")" end
    if #forms > 0 then ui.say("---@field %s %s %s", word.name, table.concat(forms, "|"), word.sentence) end
  end
  ui.say ""
end

local function write_luacats()
  ui.say("%s", [[
---@meta _

-- What policies may write, for completion in editors (lua-language-server and kin; how to
-- set one up is in docs/policy.md). `toolgate words --format luacats` prints this file.
-- luacheck: ignore
]])
  for _, one in ipairs(types) do
    ui.say("---%s\n---@%s %s%s\n", one.sentence, one.is and "alias" or "class", one.name, one.is and " " .. one.is or "")
  end
  write_methods()
  for _, of in ipairs(tables) do write_class(of) end
  for _, word in ipairs(vocabulary) do
    if word.type then write_word(word) end
  end
end

local FORMATS = { markdown = write_markdown, luacats = write_luacats, config = function() io.write(cli.config_keys()) end }

return command {
  name = "words", operands = "[WORD]", summary = "list what a policy can declare",
  about = [[
Prints every word and field of policies with its form and purpose; with WORD only those of that
name. `--format markdown` prints docs/vocabulary.md; `--format luacats` prints definitions for
editors with lua-language-server (docs/policy.md explains the setup).
`--format config` prints each key of the configuration with its type and default.
`--tools` prints the tools that need neither a policy nor annotations for their effects.]],
  exits = [[
  0  printed
  1  there is no such word or field
  2  usage]],
  example = [[
  toolgate words needs
  toolgate words --format luacats > types/toolgate.lua]],
  options = {
    choice { name = "format", letter = "f", argument = "markdown|luacats|config",
             words = "a reference, definitions for editors; the configuration's keys" },
    flag { name = "tools", words = "the built-in tools of coding assistants, and what toolgate takes them for" },
  },
  most = 1,

  run = function(o)
    read_reference()
    if o.format then return FORMATS[o.format]() end
    if o.tools then return put_known_tools() end
    if o[1] then return put_entry(o[1]) end
    put_all()
  end,
}
