-- Applies random operations to a ledger and to the model of its rules, and compares the answers. The first difference
-- ends the walk: the operations that lead to it are minimised and printed.
local model_of = require "ledger_model"

-- The rules branch so often that the compiler spends more time on traces than they save: interpreted it is three times
-- as fast.
if jit then jit.off() end

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
  local l = { repair = 2, repair_hard = false, same_call = 3, same_call_hard = false, transient = 3, repeats = 3, halt = 5,
              across_turns = 5, poll_max = 20, hinted = false, edits_files = false,
              poll_every_ms = 0, polls = false, compare_arguments = false, same_failure = 10, effects = "unknown",
              costs = false, cost = 0, tool = {}, session = {} }
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
  look = { effects = "read", same_call = 5 }, write = { effects = "write", same_call = 2 },
  erase = { effects = "destructive", same_call = 1 }, plain = {}, ask = { polls = true, poll_max = 4 },
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
      if now_and_then(3) then l.repair, l.repair_hard = one_of { 0, 1, 3, 5, NONE }, now_and_then(2) end
      if now_and_then(3) then l.same_call, l.same_call_hard = one_of { 1, 2, 4, 8, NONE }, now_and_then(2) end
      if now_and_then(3) then l.transient = one_of { 0, 1, 2, NONE } end
      if now_and_then(4) then l.repeats = one_of { 2, 4, 5 } end
      if now_and_then(4) then l.halt = l.repeats + chance(4) end
      if now_and_then(4) then l.across_turns = one_of { 2, 3, 8, NONE } end
      if now_and_then(3) then l.poll_max = one_of { 2, 3, 6, NONE } end
      if now_and_then(3) or l.polls and now_and_then(2) then l.poll_every_ms = one_of { 400, 2000, 15000 } end
      if now_and_then(3) then l.tool = allowance() end
      if now_and_then(2) then l.costs, l.cost = true, one_of { 0, 1, 2, 5 } end
      if now_and_then(6) then l.effects = one_of { "unknown", "read", "write", "destructive" } end
      l.compare_arguments = now_and_then(5)
      l.hinted, l.edits_files = now_and_then(3), now_and_then(3)
      if now_and_then(2) then l.same_failure = one_of { 2, 3, 4, 6, NONE } end
    end
    l.halt = math.max(l.halt, l.repeats)
    tools[i] = { name = name, limits = l }
  end
  return tools
end

-- ---- random operations ----
local clock, admissions, open, tools, sessions, flood, changing, repairing, tries, stubborn

-- Every tenth chapter has many ids, costs, slow turns, many repair chains, or one call with a new result each time: chance
-- alone would seldom reach these limits.
local function begin_chapter(number)
  clock, admissions, open, sessions, tools = EPOCH, 0, {}, {}, tools_of_chapter()
  flood, changing, repairing = number % 10 == 3, number % 10 == 9, number % 10 == 1
  stubborn = number % 10 == 4 -- one call fails again and again, and a shell's success between is no help
  tries = number % 10 == 2 -- one tool is tried again and again with invalid arguments
  for _, tool in ipairs(tools) do
    local l = tool.limits
    if number % 10 == 7 then
      l.costs, l.cost = true, 1 + chance(4)
      l.tool, l.session = { cost_per_session = 25, cost_per_turn = 12 }, { cost_per_session = 60 }
    elseif number % 10 == 5 then
      l.tool, l.session = { seconds_per_turn = 20 }, { seconds_per_turn = 60 }
    elseif changing then
      l.same_call, l.poll_max, l.tool, l.session = NONE, 2 + chance(3), {}, {}
    elseif repairing or tries then
      l.repair, l.same_call, l.tool, l.session = 2 + chance(6), 1 + chance(8), {}, {}
    end
  end
  for i = 1, 1 + chance(3) do
    -- turns: by number, by a turn request without one, or guessed: nobody ever names one
    sessions[i] = { name = "s" .. i, anonymous = now_and_then(8), turn = 1, turns = one_of { "told", "told", "asked", "guessed" },
                    steps = 0, ids = 0, labelled = now_and_then(2), idle = one_of { 0, 0, 5, 60, 90 }, past = {}, row = {},
                    calls = repairing and 20 or one_of { 0, 0, 3 }, problems = {} }
    sessions[i].told = sessions[i].turns == "told"
  end
end

local function place(session, op)
  op.session, op.anonymous, op.anonymous_repeats = session.name, session.anonymous, 8
  op.turn, op.turn_idle_s = session.told and session.turn or 0, session.idle
  if session.told and now_and_then(20) or now_and_then(300) then op.turn = session.told and 0 or 1 + chance(session.turn) end
  if op.turn > 0 and session.turn > 1 and now_and_then(20) then
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

-- The next call: a new one, the same again, or a few in rotation. A row may be one of a tool that always fails alike,
-- whatever its arguments are.
local function choose(session)
  local row = session.row
  if now_and_then(stubborn and 40 or 12) then
    session.row = {}
    local failing = now_and_then(3) and one_of(tools)
    for i = 1, changing and 1 or 1 + chance(6) do
      session.row[i] = { tool = one_of(tools), args = one_of { "a", "b" },
                         result = changing and "fresh" or one_of { "r", "r", "q", "fresh", "clock" },
                         under_way = now_and_then(4) }
      if failing and not now_and_then(4) then
        session.row[i] = { tool = failing, args = one_of { "a", "b", "c", "d", "e", "f" }, fails = true }
      end
    end
    if stubborn then
      session.row = { { tool = one_of(tools), args = "a", fails = "always" }, { tool = tools[4], args = "z", result = "fresh" } }
    end
    session.at, session.trying = 0, tries and not now_and_then(4) and one_of(tools)
  end
  if session.trying and not now_and_then(8) then
    return { tool = session.trying, args = one_of { "a", "b", "c", "d", "e", "f", "g" }, invalid = true }
  end
  if #row > 0 and not now_and_then(6) then
    session.at = (session.at or 0) % #row + 1
    return row[session.at]
  end
  return { tool = one_of(tools), args = one_of { "a", "a", "a", "b", "c" } }
end

-- ---- problems of invalid arguments ----
local function some_problem()
  return { path = one_of { "", "a", "b", "items", "items[0]", "items[0].price", "a.b" }, code = one_of { "missing", "type" } }
end

local function copy_of(list)
  local out = {}
  for i, item in ipairs(list) do out[i] = item end
  return out
end

-- What an attempt may have against it, given what the last one had.
local NEXT = {}
function NEXT.same(list) return list end
function NEXT.shrink(list) table.remove(list, chance(#list + 1)) return list end
function NEXT.extend(list)
  local i = chance(#list) + 1
  list[i] = { path = list[i].path .. one_of { ".x", "[1]", "x" }, code = list[i].code }
  return list
end
function NEXT.recode(list)
  local i = chance(#list) + 1
  list[i] = { path = list[i].path, code = one_of { "missing", "type", "range" } }
  return list
end
function NEXT.split(list)
  local path = one_of(list).path
  for i = 1, 1 + chance(3) do list[#list + 1] = { path = path .. "[" .. i .. "]", code = "type" } end
  return list
end
function NEXT.differ() return { some_problem(), some_problem() } end
function NEXT.twice(list) list[#list + 1] = list[1] return list end
function NEXT.none() return {} end
function NEXT.grow(list) -- to about as many as are remembered
  for i = 1, 13 + chance(6) do list[#list + 1] = { path = list[1].path .. "[" .. i .. "]", code = "type" } end
  return list
end
local SHAPES = { "same", "shrink", "shrink", "extend", "extend", "recode", "recode", "split", "differ", "twice", "none",
                 "grow" }

local function some_problems(session, op)
  local key = op.tool .. " " .. op.call
  local last = session.problems[key] or {}
  local list = NEXT[#last > 0 and one_of(SHAPES) or "differ"](copy_of(last))
  session.problems[key] = #list <= 24 and list or {}
  return list
end

-- Of these, other sessions have learnt that the server does not mind.
local function known_by_fleet(problem) return problem.path == "b" and problem.code == "missing" end

function MAKE.admit(session)
  local what = choose(session)
  admissions = admissions + 1
  local op = place(session, { kind = "admit", admission = admissions, tool = what.tool.name, limits = what.tool.limits,
                              args = what.args, so_far = "valid", refused_as = "", reservation_ms = 0, wish = what.result,
                              fails = what.fails, under_way = what.under_way, call = "" })
  if session.calls > 0 and not now_and_then(3) then op.call = "c" .. chance(session.calls) end
  if now_and_then(7) or repairing and now_and_then(2) then
    op.so_far = one_of { "invalid", "invalid", "invalid", "fabricated", "refused" }
  end
  if what.invalid then op.so_far, op.call = "invalid", "" end
  if op.so_far ~= "valid" and not now_and_then(3) then op.args = "x" .. op.args .. chance(4) end
  if op.so_far == "invalid" then
    op.problems, op.lax = some_problems(session, op), not now_and_then(3)
    for _, problem in ipairs(op.problems) do problem.known = known_by_fleet(problem) end
  end
  op.refused_as = ({ invalid = "invalid_arguments", fabricated = "fabricated_id", refused = "forbidden" })[op.so_far] or ""
  if now_and_then(5) then op.reservation_ms = one_of { 100, 5000, 600000 } end
  if now_and_then(5) then op.ids = some_ids(session) end
  op.wants_history, op.wants_facts = now_and_then(8), now_and_then(8)
  if op.so_far == "valid" or op.lax then open[#open + 1] = op end
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
  if op.fails and not now_and_then(8) then op.class, op.wish = "tool_error", now_and_then(9) and "no" or "failed" end
  if op.fails == "always" then op.class, op.wish = "tool_error", "failed " .. chance(3) end
  if op.class == "invalid" then op.problems = some_problems(session, op) end
  op.under_way = (op.class == "ok" or op.class == "partial") and op.under_way and not now_and_then(8)
  op.label = ({ released = one_of { "cancelled", "ask" }, invalid = "invalid_arguments", fabricated = "fabricated_id",
                refused = "policy_error", garbage = "semantic_garbage", partial = "partial_data" })[op.class] or op.class
  op.result = op.wish or one_of { "r", "r", "r", "q", "at 1", "at 2" }
  if op.wish == "fresh" then op.result = "r" .. tostring(op.admission):gsub("%d", function(d) return string.char(97 + d) end) end
  if op.wish == "clock" then op.result = "at " .. op.admission end
  if op.class == "tool_error" and now_and_then(20) then op.result = "" end
  op.refused = op.class == "tool_error" and now_and_then(2) and chance(8) - 1 or 0
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
  local ends = now_and_then(6)
  if session.turns == "guessed" and not now_and_then(20) then ends = true end
  local told = session.told and session.turn + 1 or 0
  if told > 0 and now_and_then(10) then told = told + chance(90) end
  if told > 0 and now_and_then(10) then told = chance(told) + 1 end
  told = math.min(told, latest_turn(session))
  if not ends then session.turn = math.max(session.turn, told) end
  return { kind = "turn", session = session.name, turn = told, ["end"] = ends,
           goal = now_and_then(3) and "" or "goal " .. admissions }
end

function MAKE.clock()
  clock = clock + one_of { 1, 1, 300, 300, 999, 999, 2500, 2500, 8000, 25000, 61000, 91000 }
  return { kind = "clock", now = clock }
end

function MAKE.forget()
  clock = clock + 2 * 1000 * OPTIONS.ttl_s
  return { kind = "clock", now = clock }
end

function MAKE.peek(session)
  return { kind = "peek", session = session.name, wants_history = now_and_then(2), wants_facts = now_and_then(2) }
end
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
  return engine[op.kind](op), model_of.apply(model, op)
end

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

-- Replays a shortened list to see whether the difference remains. A settle whose call is not admitted is skipped.
local function replay(engine, operations, on)
  engine.new()
  local model = model_of.new(OPTIONS)
  play(engine, model, { kind = "clock", now = EPOCH })
  local ran = {}
  for i, op in ipairs(operations) do
    if op.kind ~= "settle" or op.orphan or ran[op.session .. op.admission] then
      local got, expected = play(engine, model, op)
      if op.kind == "admit" then ran[op.session .. op.admission] = got.says == "run" end
      local name, a, b = model_of.difference(got, expected, OPTIONS.history)
      if on then on(op, got, expected, name) end
      if name then return i, op.kind .. "." .. name, text_of(a), text_of(b) end
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

-- "path:code path:code"; empty if there are none.
local function problems_of(op)
  local out = {}
  for i, problem in ipairs(op.problems or {}) do out[i] = ("'%s':%s"):format(problem.path, problem.code) end
  return #out > 0 and " problems " .. table.concat(out, " ") or ""
end

local DESCRIBE = {}
function DESCRIBE.admit(op)
  local marks = (op.anonymous and " anonymous" or "") .. (op.step ~= "" and " step " .. op.step or "")
                .. (op.turn_idle_s > 0 and " idle " .. op.turn_idle_s or "") .. (op.call ~= "" and " call " .. op.call or "")
  local extra = op.ids and #op.ids > 0 and " ids " .. table.concat(op.ids, ",") or ""
  return ("%s  #%d %s(%s) %s turn %d%s  {%s}%s%s"):format(op.session, op.admission, op.tool, op.args, op.so_far, op.turn,
                                                         marks, words_of(op.limits), extra, problems_of(op))
end
function DESCRIBE.settle(op)
  return ("%s  #%d %s(%s) settled as %s '%s'%s"):format(op.session, op.admission, op.tool, op.args, op.class, op.result,
                                                       problems_of(op))
end
function DESCRIBE.turn(op)
  if op["end"] then return op.session .. "  the conversation ends" end
  return ("%s  turn %d begins"):format(op.session, op.turn)
end
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

-- What holds of every answer to an admit, whatever the rules are.
local function check_answer(op, answer)
  local says, code = answer.says, answer.code
  local function must(holds, what) if not holds then error(what .. "\n" .. DESCRIBE.admit(op), 0) end end
  if not says or not answer.unseen then return end -- a repeated one
  must(says ~= "run" or code == "", "it runs, and has a code")
  must(says ~= "run" or op.so_far == "valid" or answer.lax and op.limits.effects ~= "destructive", "what is not valid runs")
  must(says ~= "halt" or code ~= "", "halt without a code")
  must(says ~= "refuse" or code ~= "" or op.so_far ~= "valid", "refused without a code")
  local would = answer.would or "" -- nil: open
  must((answer.advise_only or false) == (would ~= ""), "advice without a code")
  must(would == "" or op.anonymous or op.limits.effects == "read" and would == "same_call", "advised in vain")
  must(code ~= "same_failure" or answer.used >= math.min(op.limits.same_failure, 12) - 1, "too few failures")
  must(code ~= "loop" or answer.repeats + 1 >= math.min(op.limits.repeats, op.limits.across_turns) or
       op.limits.across_turns < NONE, "too few repeats")
end

-- ---- the walk ----
-- What a walk must reach, so often in 100,000 operations: a rule that never applies is not compared.
local MEETS = {
  { 9000, "run" }, { 1000, "repair" }, { 3000, "refuse" }, { 500, "halt" }, { 150, "same_call" }, { 1000, "loop" },
  { 60, "cycle" }, { 150, "transient_budget" }, { 50, "duplicate_in_step" }, { 50, "already_broken" },
  { 150, "poll_budget" }, { 8, "changes" }, { 300, "too_soon" }, { 50, "retry_budget_exceeded" },
  { 100, "calls_per_turn" }, { 100, "calls_per_session" }, { 50, "cost_per_turn" }, { 100, "cost_per_session" },
  { 100, "seconds_per_turn" }, { 20, "halt loop" }, { 10, "halt cycle" },
  { 1000, "no_retry" }, { 150, "success" }, { 20, "exhausted" }, { 20, "redundant" }, { 30, "fabricated_id_on_retry" },
  { 100, "gave_up" }, { 200, "advise_only" }, { 1000, "unchanged" }, { 50, "stuck" }, { 100, "forgotten ids" },
  { 100, "of_session" }, { 200, "unknown" }, { 200, "llm_gave_up" },
  { 100, "same_failure" }, { 300, "3 failures alike" }, { 20, "a success ends failures" }, { 100, "progress" },
  { 20, "progress, settled" }, { 5, "5th progress" }, { 50, "17 problems" }, { 50, "problems of siblings" },
  { 20, "a new id continues a chain" }, { 5, "siblings open chains side by side" },
  { 20, "a loop extends a chain" }, { 10, "chains end with the conversation" }, { 100, "silence begins a turn" },
  { 50, "silence in a told session" }, { 5, "read advised" }, { 20, "budget of earlier guessed turns" },
  { 100, "changed, a write" }, { 100, "changed, arguments compared" }, { 100, "results ignored" },
  { 50, "results of writes in a cycle" }, { 50, "a shell re-arms" }, { 20, "re-arms no error" },
  { 20, "a count outlasts the window" }, { 20, "a count is re-armed" },
  { 20, "re-arms after an error" }, { 20, "re-arms nothing that destroys" },
  { 20, "a shell re-arms no write" }, { 100, "orphan" }, { 100, "admitted again" }, { 100, "settled again" },
  { 100, "peek history" }, { 100, "peek facts" }, { 100, "reset tool" }, { 10, "reset session" }, { 50, "late turn" },
  { 20, "advised loop" }, { 20, "a budget spent at once" }, { 20, "no adjacent duplicate" }, { 20, "a hard budget" },
  { 2, "the 12th failure alike" }, { 100, "a poll by result" }, { 8, "results nearly alike" }, { 10, "a poll that has waited" },
  { 20, "progress that counts" }, { 20, "re-arms a hinted tool" }, { 20, "a shell re-arms an edit" },
  { 200, "lax, insists" }, { 100, "lax, at once" }, { 20, "insisted in vain" }, { 50, "learnt" },
  { 5, "17th problem asked about" }, { 5, "halt retry_budget_exceeded" },
}

local meet = model_of.meet

local function count_what_is_met(op, got)
  for _, name in ipairs { "says", "code", "chain", "would" } do
    if got[name] and got[name] ~= "" then meet(got[name]) end
  end
  if got.says == "halt" then meet("halt " .. got.code) end
  if got.code == "poll_budget" and not op.limits.polls then meet "changes" end -- results that keep changing
  if got.would == "loop" then meet "advised loop" end
  if (got.gave_up or 0) > 0 then meet "gave_up" end
  for _, name in ipairs { "advise_only", "unchanged", "stuck", "of_session" } do
    if got[name] then meet(name) end
  end
  if got.ids_complete == false then meet "forgotten ids" end
  for _, entry in ipairs(got.history or {}) do
    if entry.class == "unknown" then meet "unknown" end
    if entry.code == "llm_gave_up" then meet "llm_gave_up" end
  end
  if op.kind == "peek" and got.history then meet "peek history" end
  if op.kind == "peek" and got.facts then meet "peek facts" end
  if op.kind == "reset" then meet(op.tool == "" and "reset session" or "reset tool") end
  if op.kind == "admit" and op.turn > 0 and got.turn and op.turn < got.turn then meet "late turn" end
end

-- What was met less than a quarter as often as it should be in so many operations: a short walk need not meet what is rare.
local function missing(operations)
  local out = {}
  for _, one in ipairs(MEETS) do
    local least, what = one[1], one[2]
    if (model_of.met[what] or 0) < math.floor(least * operations / 100000 / 4) then
      out[#out + 1] = ("%s %d"):format(what, model_of.met[what] or 0)
    end
  end
  return out
end

local function counts()
  local out = {}
  for i, one in ipairs(MEETS) do out[i] = one[2] .. " " .. (model_of.met[one[2]] or 0) end
  return table.concat(out, ", ")
end

local function walk_chapter(engine, number)
  begin_chapter(number)
  local ran, operations, played = {}, { { kind = "clock", now = clock } }, 0
  heard = {}
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
      count_what_is_met(op, got)
      if model_of.difference(got, expected, OPTIONS.history) then fail_with_story(engine, operations, i) end
      if op.kind == "admit" then check_answer(op, expected) end
      played = played + 1
    end
  end
  return played
end

-- Plays `count` operations at least, up to three times as many until it has met everything in MEETS often enough.
function M.walk(engine, seed, count)
  state = seed % 2147483646 + 1
  for what in pairs(model_of.met) do model_of.met[what] = nil end
  local played, chapter = 0, 0
  while played < count or (count >= ENOUGH and played < 3 * count and #missing(played) > 0) do
    chapter = chapter + 1
    played = played + walk_chapter(engine, chapter)
  end
  if #missing(played) > 0 and count >= ENOUGH then error("met too seldom: " .. table.concat(missing(played), ", "), 0) end
  return ("%d operations alike: %s"):format(played, counts())
end

return M
