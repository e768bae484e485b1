-- toolgate decisions --review: shows the refusals one by one and takes a key for each. Marks are kept in a file, one JSON
-- object a line, so that a review goes on where it ended; the refusals that were wrong become examples.
local ui = require "ui"
local decision_text = require "decision_text"

local REFUSALS_MAX = 10000 -- of one review; more need a filter
local MARKS = { r = "right", w = "wrong", s = "skip" }
local OTHER_KEYS = { b = "back", q = "quit" }

-- ---- marks ----

-- The later mark of an id counts.
local function read_marks(marks, items)
  local by_id, known = {}, { right = true, wrong = true, skip = true }
  for _, item in ipairs(items) do
    local id = item.id or ""
    by_id[id] = by_id[id] or {}
    table.insert(by_id[id], item)
  end
  by_id[""] = nil
  marks:seek "set"
  for line in marks:lines() do
    local value = cli.parse(line)
    if type(value) == "table" and known[value.mark] then
      for _, item in ipairs(by_id[value.decision_id] or {}) do item.mark = value.mark end
    end
  end
end

local function set_mark(review, item, mark)
  item.mark = mark
  local written, why = review.marks:write(('{"decision_id":%s,"tool":%s,"mark":"%s"}\n'):format(
    cli.quote(item.id or ""), cli.quote(item.tool), mark))
  if written then written, why = review.marks:flush() end
  if not written then cli.warn(("%s: %s"):format(review.path, why)) end
  return written
end

-- ---- keys ----

-- The number of the next refusal; nil: the review ends.
local function ask(review, at)
  local items = review.items
  local item = items[at]
  ui.say("\n%s", ui.bold(("%d of %d"):format(at, #items)))
  decision_text.write(item, review.outcomes:of(item.key))
  while true do
    io.write "was this right?  r right  w wrong  s skip  b back  q quit: "
    io.stdout:flush()
    local key = cli.read_key()
    local mark = MARKS[key]
    io.write(mark or OTHER_KEYS[key] or "", "\n")
    if not key or key == "q" then return nil end
    if key == "b" then
      at = math.max(1, at - 1)
      items[at].mark = nil
      return at
    end
    if mark then return set_mark(review, item, mark) and at + 1 end
  end
end

-- ---- examples ----

local function quoted(words) return '"' .. cli.line(words):gsub('["\\]', "\\%0") .. '"' end

local function example_of(item)
  local problem, ts, lines = decision_text.problem(item), cli.cut(item.ts or "", 19), {}
  local class = problem.error_class or ""
  if item.masked then lines[1] = "    -- Values of these arguments were masked in the log; write ones that fit.\n" end
  if class == "loop" or class == "retry_budget" then
    lines[#lines + 1] = "    -- Refused because of earlier calls: add them as `history = { { args = … }, … }`.\n"
  end
  if class == "fabricated_id" then lines[#lines + 1] = '    -- Add the ids that were known as `seen = { "…" }`.\n' end
  return table.concat(lines) .. ("    { %s,\n      args = json %s, gives = \"pass\" },\n"):format(
    quoted(("is not refused (%s, %s)"):format(problem.code or class, ts)), ui.lua_long(item.arguments, ""))
end

-- One table for each tool, in the order of their first wrong refusal.
local function examples_of(items)
  local tools, of_tool = {}, {}
  for _, item in ipairs(items) do
    if item.mark == "wrong" and item.arguments then
      if not of_tool[item.tool] then
        of_tool[item.tool] = {}
        tools[#tools + 1] = item.tool
      end
      table.insert(of_tool[item.tool], example_of(item))
    end
  end
  for i, tool in ipairs(tools) do
    tools[i] = ("  -- %s: calls that were refused and should pass; add them to its policy.\n  examples = {\n%s  },\n"):format(
      cli.line(tool), table.concat(of_tool[tool]))
  end
  return table.concat(tools)
end

local function save_examples(items, path)
  local file, cause = io.stdout, nil
  if path then file, cause = io.open(path, "w") end
  if not file then fail("%s", cause) end
  local saved, why = file:write(examples_of(items))
  if saved and path then saved, why = file:close() end
  if not saved then fail("%s: %s", path or "stdout", why) end
end

-- ---- the review ----

return function(input, o, matches, file)
  local path, too_many = o.marks or file .. ".review", false
  local review = { path = path, items = {}, outcomes = require "decision_outcomes" () }
  local items = review.items
  local read = input:walk(function(log)
    review.outcomes:add(log)
    if not matches(log) then return true end
    too_many = #items == REFUSALS_MAX
    if too_many then return true end
    local item = decision_text.read(log, true)
    item.id, item.ts, item.arguments = log:get "decision_id", log:get "ts", log:arguments()
    item.masked = #ui.table(log:value "masked") > 0
    item.key, items[#items + 1] = review.outcomes:key(log), item
  end, true)
  local why
  if read then
    review.outcomes:finish()
    review.marks, why = io.open(path, "a+")
    if not review.marks then cli.warn(why .. "; choose another file with --marks") end
  end
  if too_many then
    cli.warn(("more than %d refusals: the first %d are reviewed; filter the others with --since or --tool"):format(
      REFUSALS_MAX, REFUSALS_MAX))
  end
  if not review.marks then return 2 end
  read_marks(review.marks, items)
  local at = 1
  while at and items[at] do
    at = items[at].mark and at + 1 or ask(review, at)
  end
  local counts = { right = 0, wrong = 0, skip = 0, none = 0 }
  for _, item in ipairs(items) do
    local mark = item.mark or "none"
    counts[mark] = counts[mark] + 1
  end
  io.write(("\n%d refusals: right %d, wrong %d, skipped %d, not yet reviewed %d\n"):format(#items, counts.right, counts.wrong,
           counts.skip, counts.none))
  save_examples(items, o.examples)
  return 0
end
