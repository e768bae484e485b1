-- Applies random operations to a ledger and to the model of its rules, and compares the answers. The first difference
-- ends the walk: the operations that lead to it are minimised and printed.
local model_of = require "ledger_model"

local M = {}

local OPTIONS = { ttl_s = 3600, history = 60 } -- as in the bridge
local CHAPTER, LONG_CHAPTER = 400, 2500        -- operations on one ledger, then a new one

local ENOUGH = 20000                           -- operations after which every code must have occurred

-- ---- random numbers: deterministic for a seed ----
local state
local function chance(n)
  state = (state * 16807) % 2147483647
  return state % n
end
local function one_of(list) return list[chance(#list) + 1] end
local function now_and_then(n) return chance(n) == 0 end

-- ---- declarations of tools ----
local NONE = 4294967295
local EPOCH = 1700000000000

local function limits_of(kind)
  local l = { repair = 2, same_call = 3, transient = 3, repeats = 3, halt = 5, across_turns = 5, poll_max = 20,
              poll_every_ms = 0, polls = false, reads = false, writes = false, destructive = false, costs = false,
              cost = 0, tool = {}, session = {} }
  for name, value in pairs(kind) do l[name] = value end
  return l
end

local function allowance()
  local out = {}
  if now_and_then(3) then out.calls_per_turn = 1 + chance(6) end
  if now_and_then(3) then out.calls_per_session = 1 + chance(20) end
  if now_and_then(4) then out.seconds_per_turn = 10 + chance(200) end
  if now_and_then(3) then out.cost_per_turn = 1 + chance(20) end
  if now_and_then(3) then out.cost_per_session = 1 + chance(60) end
  return out
end

local KINDS = {
  look = { reads = true, same_call = 5 }, write = { writes = true, same_call = 2 },
  erase = { destructive = true, same_call = 1 }, plain = {}, ask = { polls = true, poll_max = 4 },
}
local NAMES = { "look", "write", "erase", "plain", "ask" }

-- The defaults, or random settings.
local function tools_of_chapter()
  local tools, plain = {}, now_and_then(2)
  local session = now_and_then(4) and allowance() or {}
  for i, name in ipairs(NAMES) do
    local l = limits_of(KINDS[name])
    l.session = session
    if not plain then
      if now_and_then(3) then l.repair = one_of { 0, 1, 3, 5, NONE } end
      if now_and_then(3) then l.same_call = one_of { 1, 2, 4, 8, NONE } end
      if now_and_then(3) then l.transient = one_of { 0, 1, 2, NONE } end
      if now_and_then(4) then l.repeats = one_of { 2, 4, 5 } end
      if now_and_then(4) then l.halt = l.repeats + chance(4) end
      if now_and_then(4) then l.across_turns = one_of { 2, 3, 8, NONE } end
      if now_and_then(3) then l.poll_max = one_of { 2, 3, 6, NONE } end
      if now_and_then(3) or l.polls and now_and_then(2) then l.poll_every_ms = one_of { 400, 2000, 15000 } end
      if now_and_then(3) then l.tool = allowance() end
      if now_and_then(2) then l.costs, l.cost = true, one_of { 0, 1, 2, 5 } end
    end
    l.halt = math.max(l.halt, l.repeats)
    tools[i] = { name = name, limits = l }
  end
  return tools
end

-- ---- random operations ----
local clock, admissions, open, tools, sessions, flood, changing

-- Every tenth chapter has many ids, costs, slow turns, or one call with a new result each time: chance alone would seldom
-- reach these limits.
local function begin_chapter(number)
  clock, admissions, open, sessions, tools = EPOCH, 0, {}, {}, tools_of_chapter()
  flood, changing = number % 10 == 3, number % 10 == 9
  for _, tool in ipairs(tools) do
    local l = tool.limits
    if number % 10 == 7 then
      l.costs, l.cost = true, 1 + chance(4)
      l.tool, l.session = { cost_per_session = 25, cost_per_turn = 12 }, { cost_per_session = 60 }
    elseif number % 10 == 5 then
      l.tool, l.session = { seconds_per_turn = 20 }, { seconds_per_turn = 60 }
    elseif changing then
      l.same_call, l.poll_max, l.tool, l.session = NONE, 2 + chance(3), {}, {}
    end
  end
  for i = 1, 1 + chance(3) do
    sessions[i] = { name = "s" .. i, anonymous = now_and_then(8), turn = 1, told = not now_and_then(3), steps = 0, ids = 0,
                    labelled = now_and_then(2), idle = now_and_then(3) and one_of { 5, 60 } or 0, past = {}, row = {} }
  end
end

local function place(session, op)
  op.session, op.anonymous, op.anonymous_repeats = session.name, session.anonymous, 8
  op.turn, op.turn_idle_s = session.told and session.turn or 0, session.idle
  if session.told and session.turn > 1 and now_and_then(20) then
    op.turn = session.turn - chance(math.min(session.turn, 200))
  end
  op.began = op.turn > 0 and op.turn or session.turn -- a deleted session accepts an old turn
  if session.labelled and not now_and_then(5) then session.steps = session.steps + 1 end
  op.step = session.labelled and ("m" .. session.steps) or ""
  return op
end

local function some_ids(session)
  local out = {}
  for i = 1, chance(9) do
    local recent = math.max(0, session.ids - 56) + chance(60)
    out[i] = "id" .. (now_and_then(4) and chance(2000) or recent)
  end
  return out
end

local MAKE = {}

-- The next call: a new one, the same again, or a few in rotation.
local function choose(session)
  local row = session.row
  if now_and_then(12) then
    session.row = {}
    for i = 1, changing and 1 or 1 + chance(6) do
      session.row[i] = { tool = one_of(tools), args = one_of { "a", "b" },
                         result = changing and "fresh" or one_of { "r", "r", "q", "fresh" } }
    end
    session.at = 0
  end
  if #row > 0 and not now_and_then(6) then
    session.at = (session.at or 0) % #row + 1
    return row[session.at]
  end
  return { tool = one_of(tools), args = one_of { "a", "a", "a", "b", "c" } }
end

function MAKE.admit(session)
  local what = choose(session)
  admissions = admissions + 1
  local op = place(session, { kind = "admit", admission = admissions, tool = what.tool.name, limits = what.tool.limits,
                              args = what.args, so_far = "valid", refused_as = "", reservation_ms = 0, wish = what.result })
  if now_and_then(7) then op.so_far = one_of { "invalid", "invalid", "fabricated", "refused" } end
  if op.so_far ~= "valid" and not now_and_then(3) then op.args = "x" .. op.args end
  op.refused_as = ({ invalid = "invalid_arguments", fabricated = "fabricated_id", refused = "forbidden" })[op.so_far] or ""
  if now_and_then(5) then op.reservation_ms = one_of { 100, 5000, 600000 } end
  if now_and_then(5) then op.ids = some_ids(session) end
  op.wants_history, op.wants_facts = now_and_then(8), now_and_then(8)
  if op.so_far == "valid" then open[#open + 1] = op end
  session.past[#session.past + 1] = op
  return op
end

-- Repeats a command after a lost reply: a call is reported only after the reply to its admit.
function MAKE.again(session)
  local past = session.past
  local op = past[#past - chance(4)]
  if not op or op.reported then return MAKE.admit(session) end
  return op
end

local CLASSES = { "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "partial", "garbage", "schema_mismatch", "tool_error",
                  "tool_error", "transient", "transient", "invalid", "fabricated", "released", "refused" }

function MAKE.settle(session, admitted)
  local op = {}
  for name, value in pairs(admitted) do op[name] = value end
  op.kind, admitted.reported = "settle", true
  op.class = op.wish and not now_and_then(6) and "ok" or one_of(CLASSES)
  op.label = ({ released = one_of { "cancelled", "ask" }, invalid = "invalid_arguments", fabricated = "fabricated_id",
                refused = "policy_error", garbage = "semantic_garbage", partial = "partial_data" })[op.class] or op.class
  op.result = op.wish == "fresh" and "r" .. op.admission or op.wish or one_of { "r", "r", "r", "q" }
  op.fact = now_and_then(6) and "fact" .. chance(5) or ""
  op.cost_told, op.cost = now_and_then(3), chance(4)
  if now_and_then(4) then
    op.gives_ids = some_ids(session)
    session.ids = session.ids + 3
  end
  session.past[#session.past + 1] = op
  return op
end

-- A settle without its admit.
function MAKE.orphan(session)
  local op = MAKE.admit(session)
  for i = #open, 1, -1 do
    if open[i] == op then table.remove(open, i) end
  end
  op.so_far, op.orphan = "valid", true
  op = MAKE.settle(session, op)
  session.past[#session.past], session.past[#session.past - 1] = nil, nil
  return op
end

-- "A call ends at most 255 turns after its own": the window keeps one byte of the turn.
local function latest_turn(session)
  local latest = math.huge
  for _, op in ipairs(open) do
    if op.session == session.name then latest = math.min(latest, op.began + 255) end
  end
  return latest
end

function MAKE.turn(session)
  local told = session.told and session.turn + 1 or 0
  if told > 0 and now_and_then(10) then told = told + chance(90) end
  if told > 0 and now_and_then(10) then told = chance(told) + 1 end
  told = math.min(told, latest_turn(session))
  session.turn = math.max(session.turn, told)
  return { kind = "turn", session = session.name, turn = told, goal = now_and_then(3) and "" or "goal " .. admissions }
end

function MAKE.clock()
  clock = clock + one_of { 1, 1, 300, 300, 999, 999, 2500, 2500, 8000, 25000, 61000 }
  return { kind = "clock", now = clock }
end

function MAKE.forget()
  clock = clock + 2 * 1000 * OPTIONS.ttl_s
  return { kind = "clock", now = clock }
end

function MAKE.peek(session) return { kind = "peek", session = session.name } end
function MAKE.view(session) return { kind = "view", session = session.name } end
function MAKE.reset(session)
  return { kind = "reset", session = session.name, tool = now_and_then(6) and "" or one_of(NAMES) }
end
function MAKE.see(session)
  local ids = some_ids(session)
  if flood then
    for i = 1, 60 do ids[i] = "id" .. session.ids + i end
    session.ids = session.ids + 57
  end
  session.ids = session.ids + 3
  return { kind = "see", session = session.name, ids = ids }
end

-- The odds of each operation in a hundred.
local ODDS = { { 4, "turn" }, { 12, "clock" }, { 2, "peek" }, { 3, "see" }, { 2, "view" }, { 1, "reset" }, { 1, "orphan" },
               { 4, "again" } }

local function next_operation()
  if #open > 0 and not now_and_then(3) then
    local at = now_and_then(3) and chance(#open) + 1 or #open
    local admitted = table.remove(open, at)
    if not now_and_then(12) then -- else it is never settled
      for _, session in ipairs(sessions) do
        if session.name == admitted.session then return MAKE.settle(session, admitted) end
      end
    end
  end
  if now_and_then(300) then return MAKE.forget() end
  local session, roll = one_of(sessions), chance(100)
  if flood and now_and_then(9) then return MAKE.see(session) end
  for _, odds in ipairs(ODDS) do
    roll = roll - odds[1]
    if roll < 0 then return MAKE[odds[2]](session) end
  end
  return MAKE.admit(session)
end

-- Near the end of a session's life the real ledger may or may not know it.
local heard
local function is_doubtful(op)
  if not op.session then return false end
  local last = heard[op.session]
  local quiet = last and clock - last or 0
  heard[op.session] = (op.kind == "peek" or op.kind == "view") and last or clock
  return quiet > OPTIONS.ttl_s * 900 and quiet <= OPTIONS.ttl_s * 1100
end

-- ---- comparing ----
local function play(engine, model, op)
  if op.kind == "clock" then
    engine.clock(op.now)
    model_of.clock(model, op.now)
    return {}, {}
  end
  return engine[op.kind](op), model_of[op.kind](model, op)
end

-- Fields that the model leaves nil are open in the specification.
local function text_of(value)
  if type(value) == "number" then return ("%.15g"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local names, out = {}, {}
  for name in pairs(value) do names[#names + 1] = name end
  table.sort(names, function(a, b) return type(a) == type(b) and a < b or type(a) ~= type(b) and type(a) == "number" end)
  for i, name in ipairs(names) do
    out[i] = type(name) == "number" and "\n    " .. text_of(value[name]) or name .. "=" .. text_of(value[name])
  end
  return "{" .. table.concat(out, " ") .. "}"
end

local alike

-- The ledger keeps at least the last `history` entries of a journal. Returns the first entries that differ.
local function alike_histories(got, expected)
  if #got > #expected or #got < math.min(#expected, OPTIONS.history) then return false end
  for i = 1, #got do
    local other = expected[#expected - #got + i]
    if not alike(got[i], other) then return false, got[i], other end
  end
  return true
end

function alike(got, expected)
  if type(expected) ~= "table" or type(got) ~= "table" then return got == expected, got, expected end
  if not expected[1] and next(expected) then
    for name, value in pairs(expected) do
      local compare = name == "history" and alike_histories or alike
      local same, a, b = compare(got[name], value)
      if not same then return false, a or got[name], b or value end
    end
    return true
  end
  return alike_histories(got, expected)
end

local function difference(_, got, expected)
  local names = {}
  for name in pairs(got) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local same, a, b = true, nil, nil
    if expected[name] ~= nil then same, a, b = alike(got[name], expected[name]) end
    if not same then
      if a == nil and b == nil then a, b = got[name], expected[name] end
      return name, text_of(a), text_of(b)
    end
  end
end

-- Replays a shortened list to see whether the difference remains. A settle whose call is not admitted is skipped.
local function replay(engine, operations, on)
  engine.new()
  engine.clock(EPOCH)
  local model = model_of.new(OPTIONS)
  model_of.clock(model, EPOCH)
  local ran = {}
  for i, op in ipairs(operations) do
    if op.kind ~= "settle" or op.orphan or ran[op.session .. op.admission] then
      local got, expected = play(engine, model, op)
      if op.kind == "admit" then ran[op.session .. op.admission] = got.says == "run" end
      local name, a, b = difference(op, got, expected)
      if on then on(op, got, expected, name) end
      if name then return i, op.kind .. "." .. name, a, b end
    end
  end
end

local function without(list, from, count)
  local out = {}
  for i, item in ipairs(list) do
    if i < from or i >= from + count then out[#out + 1] = item end
  end
  return out
end

local function shrink(engine, operations, what)
  local size = math.floor(#operations / 2)
  while size >= 1 do
    local at = 1
    while at <= #operations do
      local fewer = without(operations, at, size)
      local failed_at, same = replay(engine, fewer)
      if failed_at and same == what then
        operations = {}
        for i = 1, failed_at do operations[i] = fewer[i] end
      else
        at = at + size
      end
    end
    size = math.floor(size / 2)
  end
  return operations
end

-- ---- printing ----
local LIMITS = limits_of {}
local function words_of(limits)
  local out = {}
  for name, value in pairs(limits) do
    if value ~= LIMITS[name] and type(value) ~= "table" then out[#out + 1] = name .. "=" .. tostring(value) end
    if type(value) == "table" then
      for inner, number in pairs(value) do out[#out + 1] = name .. "." .. inner .. "=" .. number end
    end
  end
  table.sort(out)
  return table.concat(out, " ")
end

local DESCRIBE = {}
function DESCRIBE.admit(op)
  local marks = (op.anonymous and " anonymous" or "") .. (op.step ~= "" and " step " .. op.step or "")
  local extra = op.ids and #op.ids > 0 and " ids " .. table.concat(op.ids, ",") or ""
  return ("%s  #%d %s(%s) %s turn %d%s  {%s}%s"):format(op.session, op.admission, op.tool, op.args, op.so_far, op.turn,
                                                       marks, words_of(op.limits), extra)
end
function DESCRIBE.settle(op)
  return ("%s  #%d %s(%s) settled as %s %s"):format(op.session, op.admission, op.tool, op.args, op.class, op.result)
end
function DESCRIBE.turn(op) return ("%s  turn %d begins"):format(op.session, op.turn) end
function DESCRIBE.clock(op) return ("      the clock: %d ms"):format(op.now - EPOCH) end
function DESCRIBE.peek(op) return op.session .. "  peeked" end
function DESCRIBE.see(op) return ("%s  sees %d ids: %s"):format(op.session, #op.ids, table.concat(op.ids, ",")) end
function DESCRIBE.reset(op) return op.session .. "  reset " .. op.tool end
function DESCRIBE.view(op) return op.session .. "  viewed" end

local function story(engine, operations)
  local lines = {}
  replay(engine, operations, function(op, got, _, name)
    local said = ""
    if got.says then said = "  -> " .. got.says .. " " .. (got.code or "") end
    if got.would and got.would ~= "" then said = said .. "would: " .. got.would end
    lines[#lines + 1] = DESCRIBE[op.kind](op) .. said .. (name and "   <--" or "")
  end)
  return table.concat(lines, "\n")
end

local function fail_with_story(engine, operations, i)
  local so_far = {}
  for n = 1, i do so_far[n] = operations[n] end
  local _, what = replay(engine, so_far)
  local few = shrink(engine, so_far, what)
  local _, _, got, expected = replay(engine, few)
  error(("%s: the ledger: '%s', the model: '%s'\n%s"):format(what, tostring(got), tostring(expected), story(engine, few)), 0)
end

-- ---- the walk ----
-- The codes that a walk must reach: a rule that never applies is not compared.
local MEETS = {
  "run", "repair", "refuse", "halt", "same_call", "loop", "cycle", "transient_budget", "duplicate_in_step",
  "already_broken", "poll_budget", "changes", "too_soon", "retry_budget_exceeded", "calls_per_turn", "calls_per_session",
  "cost_per_turn", "cost_per_session", "seconds_per_turn", "halt cycle", "halt poll_budget", "halt too_soon", "no_retry",
  "success", "exhausted", "redundant", "fabricated_id_on_retry", "gave_up", "advise_only", "unchanged", "stuck",
  "forgotten ids", "of_session", "unknown", "llm_gave_up",
}

local function count_what_is_met(met, op, got)
  local function meet(what) met[what] = (met[what] or 0) + 1 end
  for _, name in ipairs { "says", "code", "chain", "would" } do
    if got[name] and got[name] ~= "" then meet(got[name]) end
  end
  if got.says == "halt" then meet("halt " .. got.code) end
  if got.code == "poll_budget" and not op.limits.polls then meet "changes" end -- results that keep changing
  if (got.gave_up or 0) > 0 then meet "gave_up" end
  for _, name in ipairs { "advise_only", "unchanged", "stuck", "of_session" } do
    if got[name] then meet(name) end
  end
  if got.ids_complete == false then meet "forgotten ids" end
  for _, entry in ipairs(got.history or {}) do
    if entry.class == "unknown" then meet "unknown" end
    if entry.code == "llm_gave_up" then meet "llm_gave_up" end
  end
end

local function missing(met)
  local out = {}
  for _, what in ipairs(MEETS) do
    if not met[what] then out[#out + 1] = what end
  end
  return out
end

local function counts(met)
  local out = {}
  for i, what in ipairs(MEETS) do out[i] = what .. " " .. (met[what] or 0) end
  return table.concat(out, ", ")
end

-- Continues up to three times as long until it has met everything in MEETS.
function M.walk(engine, seed, count)
  state = seed % 2147483646 + 1
  local played, chapter, met = 0, 0, {}
  while played < count or (count >= ENOUGH and played < 3 * count and #missing(met) > 0) do
    chapter = chapter + 1
    begin_chapter(chapter)
    local ran = {}
    heard = {}
    local operations = { { kind = "clock", now = clock } }
    engine.new()
    local model = model_of.new(OPTIONS)
    play(engine, model, operations[1])
    for i = 2, now_and_then(12) and LONG_CHAPTER or CHAPTER do
      local op = next_operation()
      if op.kind ~= "clock" and is_doubtful(op) then op = MAKE.forget() end
      operations[#operations + 1] = op
      if op.kind ~= "settle" or op.orphan or ran[op.admission] then
        local got, expected = play(engine, model, op)
        if op.kind == "admit" then ran[op.admission] = got.says == "run" end
        count_what_is_met(met, op, got)
        if difference(op, got, expected) then fail_with_story(engine, operations, i) end
        played = played + 1
      end
    end
  end
  if #missing(met) > 0 and count >= ENOUGH then error("never met: " .. table.concat(missing(met), ", "), 0) end
  return ("%d operations alike: %s"):format(played, counts(met))
end

return M
