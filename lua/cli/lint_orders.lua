-- Descriptions that do more than describe their tool: orders to the model (src/result/pattern_sets.h), lines that imitate the
-- gateway's feedback, and orders about tools of other servers. A server says how its own tools go together; what the model
-- does with another's is not its affair.
local lint = cli.lint()

local SENTENCE_BYTES = 240
local NAME_LEAST     = 5 -- bytes of a tool's name; a shorter one is a word of every language

-- A "Note:" is left out: descriptions that explain themselves have it.
local OWN_LINES = { "Next: ", "Hint: ", "Rule: ", "Suggested:", "Stop. ", "The tool said:", "Its server says:", "Intent: ",
                    "The last error: ", "Valid parameters:" }
local ORDER_WORDS = { "always", "must", "never", "do not", "don't", "before", "instead of", "instead", "first", "ignore",
                      "avoid", "rather than", "after", "prefer", "forward" }
local OTHER_TOOLS = { "before any other tool", "before all other tools", "before using any other tool",
                      "before calling any other tool", "before you use any other tool", "ignore other tools",
                      "ignore all other tools", "never use other tools", "do not use other tools",
                      "do not use any other tool", "don't use any other tool", "do not call any other tool" }

local SPACE   = { [32] = true, [9] = true, [10] = true, [13] = true }
local STOP    = { [46] = true, [33] = true, [63] = true, [0] = true } -- . ! ?
local NEWLINE = 10

local function trim(words, from, till)
  while from <= till and SPACE[words:byte(from)] do from = from + 1 end
  while till >= from and SPACE[words:byte(till)] do till = till - 1 end
  return words:sub(from, till)
end

-- The sentence around a byte of the text, and where it ends.
local function sentence_at(words, at)
  local from, till = at, at
  while from > 1 and words:byte(from - 1) ~= NEWLINE
        and not (from > 2 and SPACE[words:byte(from - 1)] and STOP[words:byte(from - 2)]) do
    from = from - 1
  end
  while till <= #words and words:byte(till) ~= NEWLINE
        and not (STOP[words:byte(till)] and (till == #words or SPACE[words:byte(till + 1)])) do
    till = till + 1
  end
  return trim(words, from, math.min(till, #words)), till
end

-- Where the words stand, not within others; case does not count: both are in lower case.
local function find_words(lower, words, from)
  while words ~= "" do
    local at, till = lower:find(words, from, true)
    if not at then return nil end
    if not lower:find("^[%w_-]", till + 1) and (at == 1 or not lower:find("^[%w_-]", at - 1)) then return at, till end
    from = at + 1
  end
end

local function find_any(lower, list)
  for _, words in ipairs(list) do
    local at = find_words(lower, words, 1)
    if at then return at end
  end
end

-- ---- the gateway's lines ----

local function imitates(words)
  local start, first = 1, (words:find "[^ \t\n\r]" or 1) - 1
  words = trim(words, 1, #words)
  while start do
    for _, own in ipairs(OWN_LINES) do
      if words:sub(start, start + #own - 1) == own then return first + start end
    end
    start = words:find("\n", start, true)
    start = start and words:find("[^ \t\n\r]", start)
  end
end

-- ---- tools of others ----

-- More than one word: "delete_all" is a name wherever it stands, "search" is not.
local function is_telling(name)
  return #name >= NAME_LEAST and (name:find("[_-]", 2) or name:find "[a-\127][A-Z]") and true
end

-- What is looked for in the texts of each server: the names of all others that none of its own tools has.
local foreign = setmetatable({}, { __mode = "k" })

local function foreign_names(all, server)
  local of_server = foreign[all] or {}
  foreign[all] = of_server
  if of_server[server] then return of_server[server] end
  local own, list = {}, {}
  for _, tool in ipairs(all.tools) do
    if tool.server == server then own[tool.own_name], own[tool.name] = true, true end
  end
  for _, tool in ipairs(all.tools) do
    if tool.server ~= server and is_telling(tool.own_name) and not own[tool.own_name] then
      list[#list + 1] = { name = tool.name, words = tool.own_name:lower() }
    end
  end
  of_server[server] = list
  return list
end

-- An order in the same sentence, which is read once however often it has the name.
local function orders_another(words, lower, name)
  local at, till = find_words(lower, name, 1)
  while at do
    local sentence, ends = sentence_at(words, at)
    if find_any(sentence:lower(), ORDER_WORDS) then return at end
    at, till = find_words(lower, name, math.max(till, ends) + 1)
  end
end

-- Where, and what is wrong.
local function find_other_tools(words, all, server)
  local lower = words:lower()
  local at = find_any(lower, OTHER_TOOLS)
  if at then return at, "gives orders about other tools" end
  for _, other in ipairs(foreign_names(all, server)) do
    at = orders_another(words, lower, other.words)
    if at then return at, ("gives orders about '%s', a tool of another server"):format(other.name) end
  end
end

-- ---- the check ----

-- A policy's own words are the operator's.
return function(tool, all, walk, say)
  local function check(place, words)
    if type(words) ~= "string" or words == "" then return end
    local function report(at, why)
      say("orders", "its %s %s: %s", place == "" and "description" or ("argument '%s'"):format(place), why,
          cli.json(cli.cut(sentence_at(words, at), SENTENCE_BYTES, "…")))
    end
    if lint.hides(words) then report(1, "has hidden characters (zero-width, bidirectional, tags)") end
    local order = lint.order(words)
    if order then return report(order, "gives orders to the model") end
    local line = imitates(words)
    if line then return report(line, "imitates a line of the gateway") end
    local at, why = find_other_tools(words, all, tool.server)
    if at then report(at, why) end
  end
  check("", tool.definition.description)
  check("", tool.definition.title)
  walk(tool.input, function(path, schema)
    if type(schema) ~= "table" then return end
    check(path, schema.description)
    check(path, schema.title)
  end)
end
