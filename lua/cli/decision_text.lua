-- Records of the decision log for people: one line for a call that passed, a short block for one that did not. All strings of
-- a record pass cli.line, so that none commands the terminal.
local ui = require "ui"
local decision_log = require "decision_log"

local decision_text = {}

local TEXT_MAX      = 300   -- bytes of a detail, a hint or the arguments
local BESIDE_MAX    = 80    -- bytes of the arguments, in the line of a call that passed
local FULL_MAX      = 65536
local NAME_MAX      = 64    -- bytes of a tool, a code, a session
local VERDICT_WIDTH = 7
local MESSAGES      = 4     -- shown
local INDENT        = (" "):rep(21) -- under what follows the time
local PIECES_MAX    = 100

-- A block is written in pieces: joined they would be one more string that Lua keeps for a while, and a log has millions.
local pieces, count = {}, 0

-- False: stdout takes no more.
local function write_pieces()
  local written = io.write(unpack(pieces, 1, count))
  count = 0
  return written
end

local function put(piece)
  if count == PIECES_MAX then write_pieces() end
  count = count + 1
  pieces[count] = piece
end

local function put_name(words) put(cli.line(words or "", NAME_MAX)) end
local function plural(n, noun) return n == 1 and noun or noun .. "s" end

-- What a reader of problems looks at.
function decision_text.problem(d) return d.would or d.given end

-- What was decided, or in mode shadow would have been.
local function verdict_of(log, inside)
  return { verdict = log:get("verdict", inside), error_class = log:get("error_class", inside), code = log:get("code", inside),
           detail = log:get("detail", inside), hint = log:get("hint", inside),
           messages = ui.table(log:value("messages", inside)) }
end

-- All that is printed of a record. `full`: arguments and messages are not shortened.
function decision_text.read(log, full)
  local d = { tool = log:get "tool", session = log:get "session", arguments_hash = log:get "arguments_hash",
              given = verdict_of(log), would = log:get("verdict", "would") and verdict_of(log, "would") }
  local max = decision_text.problem(d).verdict == "pass" and BESIDE_MAX or TEXT_MAX
  if decision_log.answer(log) then d.answer, d.answered_by = decision_log.answer(log), decision_log.answered_by(log) end
  d.is_answer = decision_log.is_answer(log)
  d.us, d.turn, d.is_report = log:time(), decision_log.turn(log), decision_log.is_report(log)
  d.shown, d.max = log:arguments(full and FULL_MAX or max), full and FULL_MAX or TEXT_MAX
  return d
end

-- ---- the first line ----
local second, shown_second

local function put_time(us)
  local s = us and math.floor(us / 1000000)
  if s ~= second or not s then
    second, shown_second = s, s and os.date("%Y-%m-%d %H:%M:%S", s) or "(no time)          "
  end
  put(shown_second)
end

local function put_verdict(v)
  put(ui.verdict_colour(v.verdict))
  put_name(v.verdict)
  put(cli.plain)
  put((" "):rep(VERDICT_WIDTH - #v.verdict))
end

-- The class and the code, unless they say no more than the verdict.
local function put_reason(v)
  if v.error_class and v.error_class ~= "ok" then
    put "  "
    put_name(v.error_class)
  end
  if v.code and v.code ~= v.error_class then
    put " "
    put_name(v.code)
  end
end

-- Of an operator's answer the first word is the answer.
local function put_head(d)
  put_time(d.us)
  put "  "
  if d.is_answer then put(d.answer) else put_verdict(d.given) end
  put(" " .. cli.bold)
  put_name(d.tool)
  put(cli.plain)
  if not d.is_answer then put_reason(d.given) end
  if d.answer then
    put(d.is_answer and "  by " or "  " .. d.answer .. " by ")
    put_name(d.answered_by)
  end
  if d.would then
    put "  would: "
    put_verdict(d.would)
    put_reason(d.would)
  end
  if d.is_report then put(cli.dim .. "  (reported)" .. cli.plain) end
  if d.session then
    put("  " .. cli.dim)
    put_name(d.session)
    put((d.turn and " turn " .. d.turn or "") .. cli.plain)
  end
end

-- ---- the lines below ----
local function put_line(title, words, max)
  put(INDENT .. title)
  put(cli.line(words, max))
  put "\n"
end

local function put_messages(messages, max)
  local shown = max == FULL_MAX and #messages or math.min(#messages, MESSAGES)
  for i = 1, shown do
    local message = ui.table(messages[i])
    local path = ui.text(message.path)
    put(INDENT)
    put_name(path ~= "" and path or "args")
    put(" " .. cli.line(ui.text(message.message), max) .. "\n")
  end
  if shown < #messages then put(("%s… and %d more\n"):format(INDENT, #messages - shown)) end
end

-- Of a call that was not enforced, the model read no refusal.
local function put_what_became(o)
  put "not enforced; "
  put(o.ran and "its result: " or "its result is not known")
  put_name(o.ran)
  if o.kind == "repaired" or o.kind == "changed" then put "; a later call would pass" end
end

-- An ask is for a person: the model has nothing to repair or to give up.
local function put_what_person_said(o)
  put(o.answer and o.answer .. " by " or "no answer is recorded; ")
  put_name(o.answered_by)
  if o.answer then put "; " end
  put(o.kind == "passed" and "the same call passed later" or o.kind == "changed" and "a call with other arguments passed later"
      or "no later call of it passed in that turn")
end

-- Calls after a halt are those of a run that was told to end.
local function put_what_model_did(o, verdict)
  local went_on = verdict == "halt" and (o.tries > 0 or o.next_tool)
  if went_on then put "the run did not end: " end
  if o.kind == "repaired" then
    put(("the model repaired it in %d %s"):format(o.tries, plural(o.tries, "call")))
  elseif o.kind == "changed" then
    put "a call with other arguments passed later"
  elseif o.kind == "passed" then
    put "the same call passed later"
  elseif o.kind == "repeated" then
    local others = o.tries > o.repeats and (", and %d with other arguments"):format(o.tries - o.repeats) or ""
    put(("the model made the same call %d more %s%s; none passed"):format(o.repeats, plural(o.repeats, "time"), others))
  elseif o.tries > 0 and o.kind == "gave up" then
    put(("the model gave up after %d more %s"):format(o.tries, plural(o.tries, "call")))
  elseif o.tries > 0 then
    put(("%d more %s of it, with other arguments; none passed"):format(o.tries, plural(o.tries, "call")))
  elseif o.next_tool then
    put(o.kind == "gave up" and "the model gave up and went on with " or "the model went on with ")
    put_name(o.next_tool)
  else
    put(verdict == "halt" and "the run ended: no further call" or o.kind == "gave up" and "the model gave up: no further call"
        or "no further call")
  end
end

-- Prints what decision_text.read has read; `outcome`: of decision_outcomes, or nil. False: stdout takes no more.
function decision_text.write(d, outcome)
  local problem = decision_text.problem(d)
  local passed = problem.verdict == "pass"
  put_head(d)
  if passed and d.max ~= FULL_MAX then
    if d.shown then put "  " end
    put(d.shown or "")
    put "\n"
    return write_pieces()
  end
  put "\n"
  if not passed and problem.messages[1] then
    put_messages(problem.messages, d.max)
  elseif not passed and problem.detail then
    put_line("", problem.detail, d.max)
  end
  if not passed and problem.hint then put_line("next: ", problem.hint, d.max) end
  if d.shown then
    put(INDENT)
    put(d.shown)
    put "\n"
  elseif d.arguments_hash then
    put(INDENT .. cli.dim .. "arguments recorded as a hash: ")
    put_name(d.arguments_hash)
    put(cli.plain .. "\n")
  end
  if outcome then
    put(INDENT .. "→ ")
    if d.would then
      put_what_became(outcome)
    elseif problem.verdict == "ask" then
      put_what_person_said(outcome)
    else
      put_what_model_did(outcome, problem.verdict)
    end
    if outcome.passed then
      put ": "
      put(cli.line(outcome.passed, d.max))
    end
    put "\n"
  end
  return write_pieces()
end

return decision_text
