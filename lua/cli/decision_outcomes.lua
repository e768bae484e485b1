-- What followed each call that did not run, from the later records of its session: the model repaired it, made the same
-- call again, or gave it up; of a question, also the answer. Records are added in the order of the log; then each refusal can
-- be asked about. A refusal is followed up within its turn, by calls of the same tool that came in another message of the
-- model. Memory grows with the refusals, not with the calls.
local decision_log = require "decision_log"

local REFUSALS_MAX   = 1000000 -- later ones are not followed up
local OPEN_MAX       = 64      -- of one session that are followed up at the same time
local ARGUMENT_BYTES = 400     -- kept of the arguments that passed in the end

local Outcomes = {}
Outcomes.__index = Outcomes

-- A model repairs, or gives up, what it was asked to repair; anything else it leaves.
local function close_unpassed(r) r.kind = r.repeats > 0 and "repeated" or r.repairs and "gave up" or "left" end

local function set_answer(r, log) r.answer, r.answered_by = decision_log.answer(log), decision_log.answered_by(log) end

-- What the call means for an earlier refusal. False: it is closed.
local function follow(r, call, refused, log)
  if r.turn and call.turn and call.turn ~= r.turn then
    close_unpassed(r)
    return false
  end
  if r.step and r.step == call.step then return true end -- made beside it, before the model read the refusal
  if call.tool ~= r.tool then
    if r.tries == 0 then r.next_tool = r.next_tool or call.tool end
    return true
  end
  local same = r.arguments and call.arguments == r.arguments
  r.tries, r.repeats = r.tries + 1, r.repeats + (same and 1 or 0)
  if same and r.asks and not r.answer and log:get "answer" then set_answer(r, log) end
  if refused then return true end
  r.kind = same and "passed" or r.repairs and "repaired" or "changed"
  local arguments = not same and log:arguments()
  r.passed = arguments and cli.cut(arguments, ARGUMENT_BYTES, "…")
  return false
end

-- A report is the result of a check: of one that was not enforced it says whether the tool would have worked.
function Outcomes:add_report(log)
  local r = self.by_key[log:key()]
  if r then r.ran = log:get("class", "result") or log:get "error_class" end
end

-- An operator answers all calls that have asked this.
function Outcomes:add_answer(log)
  local r = self.asked[log:get "approval" or ""]
  while r do
    set_answer(r, log)
    r = r.asked_before
  end
end

function Outcomes:add(log)
  if decision_log.is_report(log) then return self:add_report(log) end
  if decision_log.is_answer(log) then return self:add_answer(log) end
  local session = log:session_key()
  local open = self.open[session]
  local refused = decision_log.is_refused(log) or decision_log.is_refused(log, "would")
  if not open and not refused then return end -- the common record
  local call = { tool = log:get "tool", arguments = log:arguments_key(), step = log:get "step", turn = decision_log.turn(log),
                 tries = 0, repeats = 0 }
  local still, count = nil, 0 -- a list of them by `next`
  while open do
    local r = open
    open = r.next
    if follow(r, call, refused, log) then r.next, still, count = still, r, count + 1 end
  end
  if refused and count < OPEN_MAX and self.count < REFUSALS_MAX then
    local verdict, question = log:get("verdict", "would") or log:get "verdict", log:get "approval"
    call.ran, call.next, still = log:get("class", "result"), still, call
    call.repairs, call.asks = verdict == "repair", verdict == "ask"
    if question then call.asked_before, self.asked[question] = self.asked[question], call end
    self.count, self.by_key[log:key()] = self.count + 1, call
  elseif refused then
    self.left_out = self.left_out + 1
  end
  self.open[session] = still
end

-- After the last record.
function Outcomes:finish()
  for _, r in pairs(self.open) do
    while r do
      close_unpassed(r)
      r = r.next
    end
  end
end

-- Says on stderr how many refusals were not followed up.
function Outcomes:report_left_out()
  if self.left_out > 0 then
    cli.warn(("what followed on %d refusals is not known: at most %d of a session at the same time, and %d in all, are "
              .. "followed up"):format(self.left_out, OPEN_MAX, REFUSALS_MAX))
  end
end

-- What the records are asked about later by; nil: nothing is known of a report.
function Outcomes.key(_, log) return not decision_log.is_report(log) and log:key() or nil end

-- Of a refusal that was added, else nil: kind is "repaired" (a later call with other arguments passed; "changed" if it was
-- not to be repaired), "passed" (the same call passed later, for example after a wait), "repeated", or "gave up" ("left" if it
-- was not to be repaired); answer and answered_by are of a question, nil if no answer is recorded; tries and repeats count
-- later calls of the tool in the turn, and those of them with the same arguments; next_tool is the first call of another one
-- before them; passed is the JSON of the arguments that passed; ran is the class of the result of a call that was not enforced.
function Outcomes:of(key) return key and self.by_key[key] end

return function() return setmetatable({ open = {}, by_key = {}, asked = {}, count = 0, left_out = 0 }, Outcomes) end
