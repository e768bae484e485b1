-- Random operations on a ledger and on the model of its rules, and what each says to them. A difference ends the walk:
-- the operations that lead to it are made as few as possible and printed as a story.
local model_of = require "ledger_model"

local M = {}

local OPTIONS = { ttl_s = 3600, history = 60 } -- as the bridge has them
local CHAPTER = 400                            -- operations on one ledger, then a new one

-- ---- chance: the same everywhere for one seed ----
local state
local function chance(n)
  state = (state * 16807) % 2147483647
  return state % n
end
local function one_of(list) return list[chance(#list) + 1] end
local function now_and_then(n) return chance(n) == 0 end

-- ---- what may be declared of a tool ----
local function limits_of(kind)
  local l = { repair = 2, same_call = 3, transient = 3, repeats = 3, halt = 5, across_turns = 5, poll_max = 20,
              poll_every_ms = 0, polls = false, reads = false, writes = false, destructive = false, costs = false,
              cost = 0 }
  for name, value in pairs(kind) do l[name] = value end
  return l
end

local TOOLS = {
  { name = "look", limits = limits_of { reads = true, same_call = 5 } },
  { name = "write", limits = limits_of { writes = true, same_call = 2 } },
  { name = "erase", limits = limits_of { destructive = true, same_call = 1 } },
  { name = "plain", limits = limits_of {} },
}

-- ---- making up operations ----
local clock, admissions, open, chapter

local function begin_chapter()
  clock, admissions, open = 1700000000000, 0, {}
  chapter = { sessions = {} }
  for i = 1, 1 + chance(3) do
    chapter.sessions[i] = { name = "s" .. i, anonymous = now_and_then(6), turn = 1, told = not now_and_then(3),
                            steps = 0, labelled = now_and_then(2) }
  end
end

local function place(session, op)
  op.session, op.anonymous, op.anonymous_repeats = session.name, session.anonymous, 8
  op.turn, op.turn_idle_s = session.told and session.turn or 0, 0
  if session.labelled and not now_and_then(5) then session.steps = session.steps + 1 end
  op.step = session.labelled and ("m" .. session.steps) or ""
  return op
end

local MAKE = {}

function MAKE.admit(session)
  local tool = one_of(TOOLS)
  admissions = admissions + 1
  local op = place(session, { kind = "admit", admission = admissions, tool = tool.name, limits = tool.limits,
                              args = one_of { "a", "a", "a", "b" }, so_far = "valid", refused_as = "", reservation_ms = 0 })
  if session.last and not now_and_then(3) then
    op.tool, op.limits, op.args = session.last.tool, session.last.limits, session.last.args
  end
  session.last = op
  if now_and_then(5) then op.so_far = one_of { "invalid", "invalid", "fabricated", "refused" } end
  if op.so_far ~= "valid" and not now_and_then(3) then op.args = "x" .. op.args end
  if op.so_far == "refused" then op.refused_as = "forbidden" end
  if op.so_far == "valid" then open[#open + 1] = op end
  return op
end

function MAKE.settle(_, _, admitted)
  local op = {}
  for name, value in pairs(admitted) do op[name] = value end
  op.kind = "settle"
  op.class = one_of { "ok", "ok", "ok", "ok", "ok", "ok", "partial", "garbage", "schema_mismatch", "tool_error",
                      "transient", "invalid", "fabricated", "released", "refused" }
  op.label, op.result = op.class, one_of { "r", "r", "r", "q" }
  return op
end

function MAKE.turn(session)
  session.turn = session.turn + 1
  return { kind = "turn", session = session.name, turn = session.told and session.turn or 0, goal = "g" .. session.turn }
end

function MAKE.clock()
  clock = clock + one_of { 1, 500, 3000, 20000 }
  return { kind = "clock", now = clock }
end

function MAKE.peek(session) return { kind = "peek", session = session.name } end

local function next_operation()
  if #open > 0 and not now_and_then(4) then
    return MAKE.settle(nil, nil, table.remove(open, now_and_then(3) and chance(#open) + 1 or #open))
  end
  local session = one_of(chapter.sessions)
  local roll = chance(100)
  if roll < 4 then return MAKE.turn(session) end
  if roll < 12 then return MAKE.clock() end
  if roll < 16 then return MAKE.peek(session) end
  return MAKE.admit(session)
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

-- What the model leaves open (nil) the text says nothing of.
local function difference(op, got, expected)
  if not expected then return nil end
  local names = {}
  for name in pairs(got) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    if expected[name] ~= nil and got[name] ~= expected[name] then
      return name, got[name], expected[name]
    end
  end
end

-- Whether an operation may be left out is decided by playing the rest: those of calls that were not let run have no
-- settle, so an operation that lost its sense is left out, too.
local function replay(engine, operations, on)
  engine.new()
  engine.clock(1700000000000)
  local model = model_of.new(OPTIONS)
  model_of.clock(model, 1700000000000)
  local ran = {}
  for i, op in ipairs(operations) do
    if op.kind ~= "settle" or ran[op.session .. op.admission] then
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

-- ---- telling ----
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

local TELL = {}
function TELL.admit(op)
  local marks = (op.anonymous and " anonymous" or "") .. (op.step ~= "" and " step " .. op.step or "")
  local extra = op.ids and #op.ids > 0 and " ids " .. table.concat(op.ids, ",") or ""
  return ("%s  #%d %s(%s) %s turn %d%s  {%s}%s"):format(op.session, op.admission, op.tool, op.args, op.so_far, op.turn,
                                                       marks, words_of(op.limits), extra)
end
function TELL.settle(op)
  return ("%s  #%d %s(%s) came to %s %s"):format(op.session, op.admission, op.tool, op.args, op.class, op.result)
end
function TELL.turn(op) return ("%s  a turn begins: %d"):format(op.session, op.turn) end
function TELL.clock(op) return ("      the clock: %d ms"):format(op.now - 1700000000000) end
function TELL.peek(op) return op.session .. "  looked at" end
function TELL.see(op) return op.session .. "  sees " .. table.concat(op.ids, ",") end
function TELL.reset(op) return op.session .. "  reset " .. op.tool end
function TELL.view(op) return op.session .. "  viewed" end

local function story(engine, operations)
  local lines = {}
  replay(engine, operations, function(op, got, _, name)
    local said = ""
    if got.says then said = "  -> " .. got.says .. " " .. (got.code or "") end
    if got.would and got.would ~= "" then said = said .. "would: " .. got.would end
    lines[#lines + 1] = TELL[op.kind](op) .. said .. (name and "   <--" or "")
  end)
  return table.concat(lines, "\n")
end

local function tell(engine, operations, i)
  local so_far = {}
  for n = 1, i do so_far[n] = operations[n] end
  local _, what = replay(engine, so_far)
  local few = shrink(engine, so_far, what)
  local _, _, got, expected = replay(engine, few)
  error(("%s: the ledger says '%s', the model '%s'\n%s"):format(what, tostring(got), tostring(expected), story(engine, few)), 0)
end

-- ---- the walk ----
function M.walk(engine, seed, count)
  state = seed % 2147483646 + 1
  local played, refused, ran = 0, 0, {}
  while played < count do
    begin_chapter()
    local operations = { { kind = "clock", now = clock } }
    engine.new()
    local model = model_of.new(OPTIONS)
    ran = {}
    for i = 1, CHAPTER do
      local op = operations[i] or next_operation()
      operations[i] = op
      if op.kind ~= "settle" or ran[op.admission] then
        local got, expected = play(engine, model, op)
        if op.kind == "admit" then
          ran[op.admission] = got.says == "run"
          if got.says ~= "run" then refused = refused + 1 end
        end
        if difference(op, got, expected) then tell(engine, operations, i) end
        played = played + 1
      end
    end
  end
  return ("%d operations alike, %d calls refused"):format(played, refused)
end

return M
