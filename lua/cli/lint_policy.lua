-- The checks of toolgate lint that read a policy: rules and functions that no example reaches, examples that check nothing,
-- what it leaves unsaid, and paths that its schema does not have; a schema with references or branches is not checked.
local lint = cli.lint()
local is_object = require "ui".is_object

local WORDS_BYTES, TODO_BYTES = 100, 120
local BRANCHING = { "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "patternProperties", "dependentSchemas" }
local HOOKS = { normalise = "whose arguments fit the schema", check = "that gets past the schema, rules and ids",
                run = "that passes, without a result", result = "that passes, with result = { … }" }
-- Where a single name means a field at any depth: only real paths are checked.
local TAKES_NAMES = { ["loop.volatile_result"] = true, redact = true, ["compact.keep"] = true, ["compact.drop"] = true }
local OF_ARGUMENTS = { ids = true, ["loop.volatile"] = true }

local function check_rules(p, say)
  for _, rule in ipairs(p.rules) do
    if rule.untried then
      say("untried-rule", rule.line, "no example meets the rule '%s': add one that it changes, repairs or refuses",
          cli.cut(rule.untried, WORDS_BYTES))
    end
    if rule.lacks_hint then
      say("no-hint", rule.line, "refuses without a hint: the model learns that it may not, and not what to do instead; add a "
          .. "third text")
    end
  end
  for name, line in pairs(p.untried_hooks) do
    say("untried-hook", line, "no example reaches '%s': add one %s", name, HOOKS[name])
  end
end

local function check_examples(p, tool_line, say)
  local lines = {} -- of the first example with this call
  local shows = not (p.paths.redact or {})[1]
  for _, e in ipairs(p.examples) do
    shows = shows or e.has_result
    if e.unjudged then
      say("unjudged", e.line, "example '%s': its result is not used, as the call is decided before it runs: remove the result, "
          .. "or change args, seen or goal", e.name)
    end
    if lines[e.call] then
      say("twice", e.line, "example '%s' makes the same call as the one on line %d: join what the two expect, or change args, "
          .. "seen, goal or result", e.name, lines[e.call])
    end
    lines[e.call] = lines[e.call] or e.line
  end
  if not shows then -- an example with a result fails if a name matches nothing in it
    say("unshown-redact", lint.line "redact", "no example has a result that 'redact' masks: add one with result = { … }, as "
        .. "a misspelt name masks nothing")
  end
  local count = #p.examples
  if count == 0 and p.decides then
    say("no-examples", tool_line, "%s", 'the policy has no example: add examples = { { "what it shows", args = { … }, gives = '
        .. '"pass" } }')
  elseif count > 0 and p.is_off then
    say("off", lint.line "mode", "the mode is \"off\", so it decides nothing in spite of %d example%s: set mode to \"enforce\" "
        .. "or \"shadow\" to use it", count, count == 1 and "" or "s")
  end
end

-- Lines with "TODO:", as toolgate new writes it.
local function check_todo(p, say)
  local number = 0
  for line in (p.source .. "\n"):gmatch "(.-)\n" do
    local at, till = line:find("TODO:", 1, true)
    number = number + 1
    if at and not line:sub(at - 1, at - 1):find "%w" then
      say("todo", number, "left to do: %s", cli.cut(line:sub(till + 1):match "^%s*(.-)%s*$", TODO_BYTES))
    end
  end
end

-- ---- paths ----

local function is_plain(schema)
  if not is_object(schema) then return false end
  for _, name in ipairs(BRANCHING) do
    if schema[name] ~= nil then return false end
  end
  return true
end

-- Whether the schema has no such path, such as "events[].id"; and the name that is meant, if one is close.
local function lacks(schema, path)
  while path ~= "" do
    local name, rest = path:match "^([^.%[]*)(.*)$"
    if name ~= "" then
      local properties = is_plain(schema) and schema.properties
      if not is_object(properties) or next(properties) == nil then return false end
      local found, others = properties[name], schema.additionalProperties
      if found == nil and not is_object(others) then return true, cli.suggest(name, cli.keys(properties)) end
      if found == nil then schema = others else schema = found end
    end
    while rest:sub(1, 2) == "[]" do
      if not is_plain(schema) or not is_object(schema.items) then return false end
      schema, rest = schema.items, rest:sub(3)
    end
    if rest ~= "" and rest:sub(1, 1) ~= "." then return false end
    path = rest:sub(2)
  end
  return false
end

local function check_paths(tool, say)
  for field, paths in pairs(tool.policy.paths) do
    local of_arguments = OF_ARGUMENTS[field]
    local schema, code = tool.output, "result"
    if of_arguments then schema, code = tool.input, "argument" end
    for _, path in ipairs(schema and paths or {}) do
      local missing, near
      if not TAKES_NAMES[field] or path:find "[.%[]" then missing, near = lacks(schema, path) end
      if missing then
        local parent, name = field:match "^(.*)%.(.*)$"
        say(code, lint.line(name or field, parent), "'%s' names '%s', which the %s does not have%s", field, path,
            of_arguments and "schema" or "output schema",
            near and (" (did you mean '%s'?)"):format(near) or ": add it there, or remove it here")
      end
    end
  end
end

-- ---- what it leaves unsaid ----

-- "--max-count" and "max_count"; of other options it is unknown whether they take a value.
local function dashed(words) return (words:gsub("_", "-")) end

local function check_unsaid(tool, say)
  local p, line = tool.policy, tool.tool_line
  for _, c in ipairs(p.contradictions) do say("contradiction", tool.schema_line, "schema %s: %s", c.path, c.message) end
  if tool.described and (tool.effects_unknown or tool.effects_guessed) then
    say("no-effects", line, "tool '%s' does not declare its effects%s: add effects = \"read\", \"write\", \"destructive\" or "
        .. "\"toggle\", which determines how often the same call is allowed", tool.name,
        tool.effects_guessed and (" (guessed from its name: %s)"):format(tool.effects) or "")
  end
  -- Only a failure that cannot have reached the tool is safe to retry if the tool is not idempotent.
  if p.retries_unsafely then
    say("again", lint.line("again", "retry"), "tool '%s' is not declared idempotent, so retry.again has little effect: it "
        .. "retries only calls that surely did not reach the tool; add idempotent = true if repeating a call has no further "
        .. "effect, else idempotent = false", tool.name)
  end
  for _, word in ipairs(p.omitted_words) do
    if word.before:sub(1, 2) == "--" and dashed(word.before:sub(3)) == dashed(word.argument) then
      say("left-option", line, "exec: without the argument '%s', the option '%s' takes the next word as its value: put both "
          .. "into a group, { \"%s\", \"{%s}\" }", word.argument, word.before, word.before, word.argument)
    end
  end
end

return function(tool, found)
  local function say(code, line, form, ...)
    found { file = tool.file, line = line, code = code, sentence = form:format(...), theirs = false }
  end
  check_rules(tool.policy, say)
  check_examples(tool.policy, tool.tool_line, say)
  check_todo(tool.policy, say)
  check_paths(tool, say)
  check_unsaid(tool, say)
end
