-- The ledger as a specification for linearize.lua: requests of one session as the model (ledger_model.lua) takes them, and
-- what of the model's answer a client hears on the wire. The model's clock stands still: histories must be shorter than
-- a reservation (60 s), and no rule that depends on time may apply.
--
-- request.kind: admit, settle, turn, reset, view; with the model's fields. request.heard: what the client heard, as
-- heard_of returns it; nil: no answer, or one that tells nothing.
local model_of = require "ledger_model"

local M = {}

local EPOCH, TTL_S = 1700000000000, 86400
local UNLIMITED = 4294967295
local NO_PROGRESS = 6 -- the count from which replies tell it
local WAIT_FIRST_S, WAIT_DOUBLINGS_MAX = 2, 5

-- ---- declarations -------------------------------------------------------------------

local SAME_CALL = { read = 5, unknown = 3, write = 1, destructive = 1 }

-- The limits of a tool with these effects, as the catalog sets them; `more` overrides.
function M.limits(effects, more)
  local l = { repair = 2, same_call = SAME_CALL[effects], transient = 3, repeats = 3, halt = 5, across_turns = 5,
              poll_max = 20, poll_every_ms = 0, polls = false, compare_arguments = false, same_failure = UNLIMITED,
              effects = effects, costs = false, cost = 0, tool = {}, session = {} }
  for name, value in pairs(more or {}) do l[name] = value end
  return l
end

-- ---- states -------------------------------------------------------------------------

-- Not part of a state: times, which stand still; numbers whose order is the list's; answers that no request asks for again.
local LEFT_OUT = { limits = true, ids = true, problems = true, tick = true, at = true, touched = true, answer = true,
                   settle_answer = true, compared = true, expires = true, at_ms = true }

local function by_text(a, b) return tostring(a) < tostring(b) end

local function write_sorted(value, out, numbers)
  if type(value) ~= "table" then
    out[#out + 1] = tostring(value)
    return
  end
  if numbers[value] then
    out[#out + 1] = "@" .. numbers[value]
    return
  end
  numbers.count = numbers.count + 1
  numbers[value] = numbers.count
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, by_text)
  for _, key in ipairs(keys) do
    if not LEFT_OUT[key] then
      out[#out + 1] = tostring(key) .. "="
      write_sorted(value[key], out, numbers)
    end
  end
  out[#out + 1] = "}"
end

-- ---- what a client hears --------------------------------------------------------------

-- Parsed from a line of a daemon; nil: the ledger was not there, so the answer tells nothing.
function M.heard_of(kind, line)
  if line:find('"ledger_unavailable"', 1, true) or line:find('"ledger":"none"', 1, true) then return nil end
  local function number(name) return tonumber(line:match('"' .. name .. '":(%d+)')) end
  if kind == "turn" then return { turn = number "turn", gave_up = number "gaveUp" } end
  if kind == "reset" then return {} end
  return { verdict = line:match '"verdict":"(%a+)"', code = line:match '"error_class":"[%w_]+","code":"([%w_]+)"',
           class = line:match '"error_class":"([%w_]+)"', attempt = number "attempt", left = number "attempts_left",
           repeats = number "repeats", no_progress = number "no_progress", after_s = number "after_s",
           would = line:match '"would":"([%w_]+)"' }
end

local SAID = { run = "pass", ["repair"] = "repair", refuse = "refuse", halt = "halt" }
local OWN_CODES = { unknown_tool = true, invalid_arguments = true } -- the gate's, not the ledger's

local function told(no_progress) return no_progress >= NO_PROGRESS and no_progress or nil end

local EXPECTED = {}

function EXPECTED.admit(answer, request, heard)
  local out = { verdict = SAID[answer.says], attempt = answer.attempt, repeats = answer.repeats,
                no_progress = answer.no_progress and told(answer.no_progress) }
  out.code = answer.code ~= "" and answer.code or nil
  if not out.code and OWN_CODES[heard.code] and request.so_far ~= "valid" then out.code = heard.code end
  if answer.would and answer.would ~= "" then out.would = answer.would end
  if request.so_far == "invalid" then out.left = answer.attempts_left end
  return out
end

function EXPECTED.settle(answer, request)
  if answer.repeats == nil and answer.unchanged == nil then return {} end -- it was settled before
  local out = { repeats = answer.unchanged and answer.repeats or 0,
                no_progress = answer.no_progress and told(answer.no_progress) }
  if request.class == "transient" then
    out.after_s = WAIT_FIRST_S * 2 ^ math.min(math.max(answer.transient_count - 1, 0), WAIT_DOUBLINGS_MAX)
  end
  return out
end

function EXPECTED.turn(answer) return { turn = answer.turn, gave_up = answer.gave_up } end
function EXPECTED.reset() return {} end

-- Fields whose absence says something, too.
local CLOSED = { admit = { code = true, no_progress = true, would = true }, settle = {}, turn = {}, reset = {} }

-- ---- the journal ------------------------------------------------------------------------

local function entry_text(entry)
  return ("%s %s %s turn %s step %s retries %d%s"):format(entry.tool, entry.class, tostring(entry.code or "-"),
    tostring(entry.turn or "-"), tostring(entry.step), entry.retries or 0, entry.open and " open" or "")
end

-- A session as toolgate/session tells it, reduced to what the model knows, too.
function M.view_of(session)
  local out = { turn = session.turn, calls = session.budgets.calls, calls_in_turn = session.budgets.calls_in_turn,
                no_progress = session.budgets.no_progress, journal = {} }
  for i, entry in ipairs(session.history) do
    local code = type(entry.code) == "string" and entry.code or nil
    out.journal[i] = entry_text { tool = entry.tool, class = entry.class, code = code, turn = entry.turn, step = entry.step,
                                  retries = entry.retries, open = entry.open == true }
  end
  return out
end

-- The journal only grows, so no order is right whose entries are not those that the session had in the end.
local function journal_agrees(session, final)
  for i = (session.compared or 0) + 1, #session.journal do
    local own, other = entry_text(session.journal[i]), final.journal[i]
    if own ~= other then
      return false, ("entry %d of the journal is '%s', of the model's '%s'"):format(i, tostring(other), own)
    end
  end
  session.compared = #session.journal
  return true
end

-- The journal tells of each call that its daemon took back, if the daemon lived to do it.
local function is_in_journal(settle)
  local takes_back = settle.takes_back
  if takes_back then return takes_back.gate.kills == takes_back.kills end
  return not settle.optional
end

-- Where in the journal the entry of a reported call may stand: an early hint which of two concurrent calls was first.
local function place_of(turn, step) return ("%s.%s"):format(tostring(turn), tostring(step)) end

function M.places_of(history, journal)
  local by_outcome, places, blurred = {}, {}, {}
  for _, text in ipairs(journal) do
    local tool, class, turn, step = text:match "^(%S+) (%S+) %S+ turn (%S+) step (%S+)"
    local key = tool .. " " .. class
    if class == "unknown" then blurred[tool] = true end -- reported after it had left the window
    by_outcome[key] = by_outcome[key] or {}
    by_outcome[key][place_of(turn, step)] = true
  end
  for _, request in ipairs(history) do
    if request.kind == "settle" and is_in_journal(request) and not blurred[request.tool] then
      places[request.admission] = by_outcome[request.tool .. " " .. request.label] or {}
    end
  end
  return places
end

local function place_agrees(session, request, places)
  local possible = places[request.admission]
  if not possible then return true end
  for i = #session.calls, 1, -1 do
    local call = session.calls[i]
    if call.admission == request.admission and call.said == "run" then
      local place = place_of(call.turn, call.step % 256)
      if possible[place] then return true end
      return false, "no entry of the journal for this call in turn.step " .. place
    end
  end
  return true
end

-- Calls that were let run count in the end, unless they are taken back.
local function count_agrees(session, most)
  session.let_run = (session.let_run or 0) + 1
  if session.let_run <= most then return true end
  return false, ("more than %d calls were let run"):format(most)
end

local function was_let_run(session, request)
  local last = session.calls[#session.calls]
  return last and last.admission == request.admission and last.said == "run"
end

local function was_taken_back(session, request)
  for _, call in ipairs(session.calls) do
    if call.admission == request.admission then return call.said == "run" and call.class == "released" end
  end
  return false
end

local FIELDS = { "verdict", "code", "would", "attempt", "left", "repeats", "no_progress", "after_s", "turn", "gave_up", "calls",
                 "calls_in_turn" }

-- A field that the model leaves nil is open, unless it is one of `closed`.
local function compare(expected, heard, closed)
  for _, name in ipairs(FIELDS) do
    if heard[name] ~= expected[name] and (expected[name] ~= nil or closed[name]) then
      return false, ("%s: heard %s, the model %s"):format(name, tostring(heard[name]), tostring(expected[name]))
    end
  end
  return true
end

local function view_agrees(answer, heard)
  local own = M.view_of(answer.session)
  for _, name in ipairs { "turn", "calls", "calls_in_turn", "no_progress" } do
    if own[name] ~= heard[name] then
      return false, ("%s: heard %s, the model %s"):format(name, tostring(heard[name]), tostring(own[name]))
    end
  end
  if #own.journal ~= #heard.journal then
    return false, ("the journal has %d entries, the model's %d"):format(#heard.journal, #own.journal)
  end
  for i, entry in ipairs(own.journal) do
    if entry ~= heard.journal[i] then
      return false, ("entry %d of the journal is '%s', of the model's '%s'"):format(i, heard.journal[i], entry)
    end
  end
  return true
end

-- ---- the specification --------------------------------------------------------------------

local function words_of(heard)
  if not heard then return "unheard" end
  local out = {}
  for _, name in ipairs(FIELDS) do
    if heard[name] ~= nil then out[#out + 1] = name == "verdict" and heard[name] or name .. " " .. heard[name] end
  end
  return table.concat(out, ", ")
end

local function describe(request)
  local what = request.kind
  if what == "admit" then
    what = ("check %s(%s) %s turn %d step '%s'"):format(request.tool, request.args, request.so_far, request.turn, request.step)
  elseif what == "settle" then
    what = ("report %s(%s) as %s %s"):format(request.tool, request.args, request.class, request.result)
  elseif what == "turn" then
    what = "turn " .. request.turn
  elseif what == "reset" then
    what = "reset " .. request.tool
  end
  local call = request.admission and " #" .. request.admission or ""
  return ("daemon %s%s %s -> %s"):format(request.daemon or "-", call, what, words_of(request.heard))
end

-- `name`: the session; `final`: its last view, if it is known: then journals are compared as they grow.
function M.specification(name, final, history)
  local spec = { describe = describe }
  local places = final and M.places_of(history, final.journal) or {}
  local most = final and final.calls or math.huge
  for _, request in ipairs(final and history or {}) do
    if request.takes_back then most = most + 1 end
  end

  function spec.begin()
    local model = model_of.new { ttl_s = TTL_S }
    model_of.clock(model, EPOCH)
    return model
  end

  spec.clone, spec.apply = model_of.clone, model_of.apply

  function spec.agrees(model, request, answer)
    local session = model.sessions[name]
    if final and session then
      local same, why = journal_agrees(session, final)
      if not same then return false, why end
    end
    if request.kind == "admit" then
      local possible, why = place_agrees(session, request, places)
      if possible and was_let_run(session, request) then possible, why = count_agrees(session, most) end
      if not possible then return false, why end
    end
    if request.takes_back and not was_taken_back(session, request) then return false, "it was not let run" end
    local heard = request.heard
    if not heard then return true end
    if request.kind == "view" then return view_agrees(answer, heard) end
    return compare(EXPECTED[request.kind](answer, request, heard), heard, CLOSED[request.kind])
  end

  function spec.digest(model)
    local out, session = {}, model.sessions[name]
    if session then write_sorted(session, out, { count = 0 }) end
    return table.concat(out, " ")
  end

  return spec
end

return M
