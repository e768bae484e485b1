-- toolgate decisions: reads the decision log as a person wants it, or filters it for a program.
local decision_filter = require "decision_filter"
local decision_log = require "decision_log"
local decision_text = require "decision_text"

local FOLLOW_HISTORY = 10  -- records of before that --follow prints
local FOLLOW_LOOK_MS = 200 -- how often the file is looked at
local OUTCOMES = { { "repaired", "repaired" }, { "passed", "passed later" }, { "changed", "passed with other arguments" },
                   { "repeated", "repeated" }, { "gave up", "gave up" }, { "left", "not made again" } }

-- ---- the list ----

-- "24 of 1203 records: pass 3, repair 21; then repaired 15, gave up 6"
local function print_summary(records, shown, by_verdict, by_outcome)
  local verdicts, outcomes = {}, {}
  for _, name in ipairs((cli.verdicts())) do
    if by_verdict[name] then verdicts[#verdicts + 1] = ("%s %d"):format(name, by_verdict[name]) end
  end
  for _, row in ipairs(OUTCOMES) do
    if by_outcome[row[1]] then outcomes[#outcomes + 1] = ("%s %d"):format(row[2], by_outcome[row[1]]) end
  end
  io.write(cli.dim, ("%d of %d records"):format(shown, records), #verdicts > 0 and ": " or "", table.concat(verdicts, ", "),
           #outcomes > 0 and "; then " or "", table.concat(outcomes, ", "), cli.plain, "\n")
end

local function list(input, o, matches)
  local outcomes, matched, done = not o.json and require "decision_outcomes" (), 0, true
  if outcomes or o.last then
    done = input:walk(function(log)
      if outcomes then outcomes:add(log) end
      if o.last and matches(log) then matched = matched + 1 end
    end)
  end
  if outcomes then
    outcomes:finish()
    outcomes:report_left_out()
  end
  local records, skip, shown, by_verdict, by_outcome = input.records, math.max(0, matched - (o.last or matched)), 0, {}, {}

  local function count(name, counts) counts[name] = (counts[name] or 0) + 1 end
  local function show(log)
    if not matches(log) then return true end
    if skip > 0 then
      skip = skip - 1
      return true
    end
    shown = shown + 1
    local written
    if o.json then
      written = io.write(cli.shown_json(log:text()), "\n")
    else
      local d, outcome = decision_text.read(log, o.full), outcomes:of(outcomes:key(log))
      count(d.given.verdict, by_verdict)
      if outcome then count(outcome.kind, by_outcome) end
      written = decision_text.write(d, outcome)
    end
    return written and shown ~= o.limit
  end
  done = done and input:walk(function(log) return show(log) or false end, true)
  if done and not o.json and cli.is_terminal then print_summary(records, shown, by_verdict, by_outcome) end
  return done and not input.cut_short and 0 or 2
end

-- ---- --follow ----

-- The log is read once: up to its end the last wanted records are kept, then they are printed, then each new one. A second
-- reading could meet another file, because the daemon may rotate the log. What the model did is not known yet.
local function follow(input, o, matches, since)
  local history = o.last or since and math.huge or FOLLOW_HISTORY
  local kept, first, last, live, shown = {}, 1, 0, history == math.huge, 0

  local function show(record)
    shown = shown + 1
    local written = o.json and io.write(record, "\n") or not o.json and decision_text.write(record)
    return written and shown ~= o.limit
  end
  local function show_kept()
    for i = first, last do
      if not show(kept[i]) then return false end
    end
    kept, first, last, live = {}, 1, 0, true
    return true
  end
  local opened = input:follow(function(log)
    if not matches(log) then return true end
    local record = o.json and cli.shown_json(log:text()) or decision_text.read(log, o.full)
    if live then return show(record) end
    last = last + 1
    kept[last] = record
    if last - first == history then kept[first], first = nil, first + 1 end
    return true
  end, function() return show_kept() and cli.wait_output(FOLLOW_LOOK_MS) end) -- a reader that is gone ends the wait
  return opened and io.stdout:flush() and 0 or 2
end

local function check_follow(o)
  local file = o[1] and cli.stat(o[1])
  if o.review then fail "--follow and --review exclude each other: leave one of them out" end
  if o[2] then
    fail "--follow reads one file: name the one that is written; its rotated files are found by themselves"
  end
  if o[1] == "-" or file and file.kind ~= "file" then
    fail "--follow needs a file, not a pipe or a folder: name the decision log"
  end
end

return command {
  name = "decisions", operands = "[FILE]...", summary = "show what was decided, and what the model did then",
  about = [[
Prints the records of the decision log: time, verdict, tool, reason, arguments, and for a refused
call what the model did next. A line that cannot be read is counted on stderr; the rest is shown.
Without FILE it reads the daemon's log, the rotated files first. With --follow it prints the last
ten records, or --last N, or all --since, and goes on until it is stopped or --limit is reached.]],
  exits = [[
  0  the records are on stdout, even if none matches
  2  usage, or a file that cannot be read]],
  example = [[
  toolgate decisions --refused --since 1d
  toolgate decisions --review --since 7d --examples examples.lua
  toolgate decisions --follow --refused
  toolgate decisions decisions.ndjson --tool 'get_*' --code missing --last 20
  toolgate decisions decisions.ndjson --verdict repair --json | jq .messages]],
  options = {
    text   { name = "tool", letter = "t", argument = "TOOL",
             words = "only of these tools: a name or a glob, several with commas" },
    text   { name = "verdict", argument = "VERDICT", words = "pass, repair, wait, refuse, ask, halt; several with commas" },
    text   { name = "code", argument = "CODE", words = "only with this code, such as missing" },
    text   { name = "class", argument = "CLASS", words = "only of this class, such as invalid_arguments" },
    flag   { name = "refused", letter = "r", words = "only calls that were kept from their tool" },
    flag   { name = "would", words = "look at what mode shadow did not enforce instead" },
    text   { name = "session", argument = "ID", words = "only of this session" },
    text   { name = "user", letter = "u", argument = "NAME", words = "only of this user, by name or uid" },
    number { name = "turn", argument = "N", words = "only of this turn" },
    text   { name = "since", argument = "WHEN", words = [[from then on: 90m, 1d, 2w, 2026-11-20, "2026-11-20 14:30"]] },
    text   { name = "until", argument = "WHEN", words = "up to then; a date with its whole day" },
    number { name = "limit", letter = "n", argument = "N", words = "only the first N" },
    number { name = "last", argument = "N", words = "only the last N" },
    flag   { name = "review", words = "go through the refusals one by one: right or wrong?" },
    text   { name = "marks", argument = "FILE", words = "with --review: where the marks are kept (default FILE.review)" },
    text   { name = "examples", argument = "FILE", words = "with --review: write the wrong refusals there as examples" },
    flag   { name = "follow", letter = "F", words = "go on with what is written, through rotations, as tail -F does" },
    socket,
    flag   { name = "full", letter = "f", words = "do not shorten arguments and messages" },
    flag   { name = "json", letter = "j", words = "print the records as they are, one a line" },
  },
  most = 1000,

  run = function(o)
    o.refused = o.refused or o.review -- which of all refusals, the other options say
    local matches, since = decision_filter(o)
    if o.follow then check_follow(o) end
    if o.review and o[1] == "-" then fail "--review reads keys from standard input: name the log's file" end
    local files = o[1] and o or decision_log.find(o.socket, o.follow)
    local input = decision_log.open(files)
    -- The marks of the daemon's log lie beside the file that is written, whose name stays.
    if o.review then return require "decision_review" (input, o, matches, files[o[1] and 1 or #files]) end
    return (o.follow and follow or list)(input, o, matches, since)
  end,
}
