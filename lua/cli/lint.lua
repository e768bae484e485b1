-- toolgate lint: prints what looks wrong in policies and tools, one finding a line. src/cli/lint.c loads them and
-- runs the examples; lint_policy.lua has the checks of policies, lint_checks.lua those of definitions.
local ui = require "ui"
local lint = cli.lint()

-- All codes: the level, and what it finds. An error: toolgate refuses to load it. A warning: probably not intended, or not
-- portable. A note is shown only on request.
local CODES = {
  { "load", "error", "what toolgate refuses to load: unknown fields, mistyped names, rules that contradict each other" },
  { "example", "error", "an example that fails" },
  { "odd", "warning", "a definition that is left out, or has a name or schema that MCP does not allow" },
  { "contradiction", "error", "a schema of a policy that contradicts itself" },
  { "rule", "warning", "a rule that contradicts another or the schema, or that the schema makes needless" },
  { "untried-rule", "warning", "a rule that no example reaches" },
  { "untried-hook", "warning", "a function of the policy that no example reaches" },
  { "no-examples", "warning", "a policy without an example" },
  { "unshown-redact", "warning", "redact in a policy of which no example has a result" },
  { "unjudged", "warning", "an example whose result is not used" },
  { "twice", "warning", "two examples of the same call" },
  { "off", "warning", "a policy that is off although it has examples" },
  { "argument", "warning", "ids or loop.volatile name an argument that the schema does not have" },
  { "result", "warning", "gives_ids, redact or compact name a field that the output schema does not have" },
  { "todo", "warning", "a TODO that toolgate new, or somebody, has left" },
  { "no-hint", "warning", "refuses without a hint" },
  { "no-description", "warning", "a tool without a description" },
  { "undescribed", "warning", "an argument without a description" },
  { "no-effects", "warning", "a policy that does not declare the effects of its tool" },
  { "hints", "warning", "annotations that contradict each other, the name or the policy" },
  { "orders", "warning", "a description that gives orders to the model, or about tools of other servers, imitates the "
                         .. "gateway's feedback, or has hidden characters" },
  { "again", "warning", "retry.again for a tool that is not declared idempotent" },
  { "left-option", "warning", "exec: an option that stays without its argument" },
  { "root-choice", "warning", "oneOf, anyOf or allOf at the root of a schema (Anthropic, OpenAI)" },
  { "argument-name", "warning", "an argument whose name is refused (Anthropic)" },
  { "list-items", "warning", "a list without items (OpenAI, Gemini)" },
  { "long-description", "warning", "a description of more than 1024 characters (OpenAI)" },
  { "many-values", "warning", "enums that are too large (OpenAI)" },
  { "overlay-examples", "warning", "a policy for several tools without an example" },
  { "shadow-expired", "warning", 'a mode "shadow" that was to end by now (shadow_until)' },
  { "overlay", "note", "the tools that a policy for several lies over" },
  { "many-tools", "warning", "more than 128 tools (OpenAI)" },
  { "first-letter", "note", "a tool's name that begins with a digit or '-' (Gemini)" },
  { "enum-type", "note", "an enum with values other than strings (Gemini)" },
  { "strict", "note", "a schema that is not possible in OpenAI's strict mode" },
}

local LEVELS = { error = { 1, cli.red }, warning = { 2, cli.yellow }, note = { 3, cli.dim } }
local level_of = {}
for _, row in ipairs(CODES) do level_of[row[1]] = row[2] end

local function print_codes()
  for _, row in ipairs(CODES) do ui.say("%s%-17s%s %-8s %s", cli.bold, row[1], cli.plain, row[2], row[3]) end
end

-- ---- finding ----

local function look(o, place, findings)
  local checks
  local function found(f)
    f.level = level_of[f.code]
    findings[#findings + 1] = f
  end
  local function subject(of)
    checks = checks or require "lint_checks"
    checks(of, found)
  end
  local checked, folder = lint.run(o, place, found, subject)
  if not folder or folder:find "%.lua$" then return checked or folder end
  -- One invalid file prevents all others from loading, so each is checked alone.
  for _, name in ipairs(cli.list_folder(folder)) do
    local is_policy = name:find "^[^.].*%.lua$"
    checked = checked or is_policy
    if is_policy and not name:find "_spec%.lua$" then lint.run(o, folder .. "/" .. name, found, subject, true) end
  end
  return checked
end

local function is_before(a, b)
  if a.file ~= b.file then return a.file < b.file end
  if a.line ~= b.line then return a.line < b.line end
  if a.level ~= b.level then return LEVELS[a.level][1] < LEVELS[b.level][1] end
  if a.code ~= b.code then return a.code < b.code end
  return a.sentence < b.sentence
end

-- By file and line, without duplicates; notes only if they are wanted.
local function sorted(findings, notes)
  local out = {}
  table.sort(findings, is_before)
  for i, f in ipairs(findings) do
    local twice = i > 1 and not is_before(findings[i - 1], f)
    if not twice and (notes or f.level ~= "note") then out[#out + 1] = f end
  end
  return out
end

-- ---- printing ----

local function print_json(f)
  io.write(('{"file":%s,"line":%d,"level":"%s","code":"%s","sentence":%s%s}\n'):format(cli.json(f.file), f.line, f.level,
           f.code, cli.json(f.sentence), f.theirs and ',"theirs":true' or ""))
end

local function print_line(f)
  io.write(f.file, f.file ~= "" and ":" or "", f.line ~= 0 and f.line .. ":" or "", f.file ~= "" and " " or "",
           LEVELS[f.level][2], f.level, ":", cli.plain, " ", (f.sentence:gsub("[^\n]+", cli.line)), " ", cli.dim, "[",
           f.code, "]", cli.plain, "\n")
end

local function print_sum(o, mine, theirs)
  if o.json then return end
  if mine == 0 then ui.say("%s: nothing to fix in your policies", ui.green "ok") end
  if theirs > 0 and not o.theirs then
    ui.say("%s about the schemas and descriptions of servers: --theirs shows %s", ui.count(theirs, "finding"),
           theirs == 1 and "it" or "them")
  end
end

return command {
  name = "lint", operands = "[DIR|FILE]...", summary = "report what looks wrong in policies and tools", most = 1000,
  about = [[
Loads the policies (default ./policies) and the tools of --tools, runs the examples, and prints one
line for each finding: `file:line: level: sentence [code]`, each with its fix. A file that does not
load is a finding too. Errors and warnings affect the exit code; notes only with --strict. Findings
about what servers publish (definitions that no policy replaces) are counted; --theirs prints them.]],
  exits = [[
  0  nothing to fix in the policies
  1  at least one finding in them
  2  usage, or there is nothing to check]],
  example = [[
  toolgate lint policies
  toolgate lint policies --tools tools.json --strict --json]],
  options = {
    flag { name = "strict", words = "also notes: what only some providers' modes refuse" },
    flag { name = "theirs", words = "also findings about the schemas and descriptions of servers" },
    flag { name = "json", letter = "j", words = "print one JSON object for each finding" },
    flag { name = "list", letter = "l", words = "list all checks with their codes and levels" },
    files,
  },

  -- Mine decide about the exit code; theirs are somebody else's to fix.
  run = function(o)
    if o.list then return print_codes() end
    local findings, mine, theirs = {}, 0, 0
    local looked = #o > 0 or look(o, nil, findings)
    for _, place in ipairs(o) do looked = look(o, place, findings) and looked end
    for _, f in ipairs(sorted(findings, o.strict)) do
      if f.theirs then theirs = theirs + 1 else mine = mine + 1 end
      if not f.theirs or o.theirs then (o.json and print_json or print_line)(f) end
    end
    if not looked then return 2 end
    print_sum(o, mine, theirs)
    return mine > 0 and 1 or 0
  end,
}
