-- Recorded calls and sessions of real models: which calls that worked are refused, which loops are stopped and by what,
-- and which failures are recognised.
local process = require "process"
local trajectories = require "trajectories"
local gates = require "gate"
local suggestion = require "suggestion"
local tree = require "json_tree"
local score = require "score"
local json = require("client").json

local judge, show = score.judge, score.show
local REPEATS_OF_A_LOOP = 8 -- a session that makes one call so often is no success, even if nothing fails
local LONG_RUN = 10 -- failures that say the same: what comes after so many must not run

local M = {}

-- ---- labelled calls -----------------------------------------------------------------

function M.labelled(open)
  local refused, count = 0, 0
  for _, call in ipairs(trajectories.labelled()) do
    local said = open(call.toolset):check(call.tool, call.arguments)
    local alike = said.arguments and tree.alike(said.arguments, tree.read(call.arguments))
    count = count + 1
    if said.verdict.verdict ~= "pass" or not alike then
      refused = refused + 1
      show("labelled: %s %s: %s", call.tool, call.arguments, said.text)
    end
  end
  judge(refused == 0, "labelled calls refused or changed: %d of %d (to reach: 0)", refused, count)
  score.keep { labelled = count, labelled_refused = refused }
end

-- ---- sessions -------------------------------------------------------------------------

-- Refusals of a call for itself; all others are budgets and loops.
local OF_THE_CALL = { invalid_arguments = true, unknown_tool = true, fabricated_id = true, forbidden = true,
                      policy_error = true, unavailable = true }

local function outcome(call)
  if not call.is_error then return ('"result":{"content":[{"type":"text","text":%s}]}'):format(call.result) end
  return ('"error":{"message":%s}'):format(call.result)
end

local function is_refused(verdict)
  return verdict.verdict == "refuse" or verdict.verdict == "halt" or verdict.verdict == "repair"
end

local function later_success(session, i)
  for j = i + 1, #session do
    if session[j].tool == session[i].tool and session[j].env == "ok" then return tree.read(session[j].arguments) end
  end
end

-- Counts the failures of one tool in a row that say the same but for digits, and runs after LONG_RUN of them.
local function follow_run(run, call, ran, count)
  local said = call.tool .. call.result:gsub("%d+", "#")
  if call.env == "ok" then run.said, run.length = nil, 0; return end
  if run.said ~= said then run.said, run.length = said, 0 end
  run.length = run.length + 1
  if run.length == 6 then count.runs = count.runs + 1 end
  if run.length > LONG_RUN and ran then count.after_long = count.after_long + 1 end
end

local function first_suggestion(session, i, verdict)
  local later = verdict.verdict == "repair" and session[i].env == "argument_error" and verdict.suggestions
                and later_success(session, i)
  if not later then return nil end
  local right = suggestion.was_right(verdict.suggestions[1], later)
  if not right then
    show("suggested %s for %s %s", json.encode(verdict.suggestions[1]), session[i].tool, session[i].arguments:sub(1, 300))
  end
  return right
end

local function replay(gate, session, set, count)
  local halted, first, run = false, nil, { length = 0 }
  for i, call in ipairs(session) do
    local is_worked = call.env == "ok" and set[call.tool] -- some recordings have no definition of their tools
    local said = gate:check(call.tool, call.arguments, session.name, call.turn, call.step)
    local verdict = said.verdict
    session.verdicts[i] = verdict
    halted = halted or verdict.verdict == "halt"
    if verdict.verdict == "pass" then
      gate:report(said, outcome(call))
    elseif is_worked and OF_THE_CALL[verdict.error_class] and is_refused(verdict) then
      count.wrong = count.wrong + 1
      show("worked, refused: %s %s: %s", call.tool, call.arguments:sub(1, 300), said.text)
    end
    follow_run(run, call, verdict.verdict == "pass", count)
    count.worked = count.worked + (is_worked and 1 or 0)
    if first == nil then first = first_suggestion(session, i, verdict) end
  end
  if first ~= nil then
    count.suggested = count.suggested + 1
    count.right = count.right + (first and 1 or 0)
  end
  return halted
end

-- What refused the calls of a runaway session: "loop 91, same_call 3".
local function count_stops(session, stops)
  for _, verdict in ipairs(session.verdicts) do
    local why = is_refused(verdict) and not OF_THE_CALL[verdict.error_class] and (verdict.code or verdict.error_class)
    if why then stops[why] = (stops[why] or 0) + 1 end
  end
end

local function count_session(session, halted, count)
  local said, failures = {}, 0
  for i, call in ipairs(session) do
    said[i] = { verdict = session.verdicts[i] }
    failures = failures + (call.is_error and 1 or 0)
  end
  if trajectories.repeats(session) >= trajectories.RUNAWAY_REPEATS then
    count.runaways = count.runaways + 1
    count.escaped = count.escaped + (trajectories.passed_as_third(session, said) and 1 or 0)
    count.saved = count.saved + trajectories.stopped(said)
    count_stops(session, count.stops)
  elseif failures == 0 and trajectories.repeats(session) < REPEATS_OF_A_LOOP then
    count.well = count.well + 1
    count.halts = count.halts + (halted and 1 or 0)
    if halted then show("halted: %s", session.name) end
  end
end

local function replay_all(open, sets, of_upstream)
  local count = { worked = 0, wrong = 0, suggested = 0, right = 0, runaways = 0, escaped = 0, saved = 0, well = 0, halts = 0,
                  runs = 0, after_long = 0, stops = {} }
  for _, session in ipairs(trajectories.sessions()) do
    session.verdicts = {}
    count_session(session, replay(open(session.toolset, of_upstream), session, sets[session.toolset], count), count)
  end
  return count
end

local function sorted_stops(stops)
  local list = {}
  for why, calls in pairs(stops) do list[#list + 1] = { why, calls } end
  table.sort(list, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  for i, stop in ipairs(list) do list[i] = ("%s %d"):format(stop[1], stop[2]) end
  return table.concat(list, ", ")
end

function M.sessions(open, sets)
  local count, registered = replay_all(open, sets, true), replay_all(open, sets, false)
  judge(count.wrong <= 1, "calls that worked, refused, servers' tools: %d of %d (to reach: 0 or 1)", count.wrong, count.worked)
  judge(registered.wrong <= 1, "calls that worked, refused, an agent's tools: %d of %d (to reach: 0 or 1)", registered.wrong,
    registered.worked)
  judge(count.runaways > 0 and count.escaped == 0,
    "runaway sessions not stopped from the third identical call: %d of %d; %d calls saved (%s)", count.escaped, count.runaways,
    count.saved, sorted_stops(count.stops))
  judge(count.halts == 0, "successful sessions that were halted: %d of %d (to reach: 0)", count.halts, count.well)
  judge(count.after_long <= 10, "calls that ran after %d failures in a row that say the same: %d, in %d runs of 6 or more "
    .. "(to reach: 10)", LONG_RUN, count.after_long, count.runs)
  print(("        sessions whose first suggestion is what the model later sent: %d of %d (to reach: 70 %%)")
    :format(count.right, count.suggested))
  score.keep { worked = count.worked, worked_refused = count.wrong, registered_refused = registered.wrong,
               runaways = count.runaways, escaped = count.escaped, runaway_saved = count.saved, well = count.well,
               halts = count.halts, stops = sorted_stops(count.stops), runs = count.runs, after_long = count.after_long,
               suggested = count.suggested, suggested_right = count.right }
end

-- Each write of the recordings, five times with another id in each result.
function M.fresh_ids(open, sets)
  local writes, escaped = {}, 0
  for _, call in ipairs(trajectories.labelled()) do
    local name = call.toolset .. "/" .. call.tool
    if trajectories.effects_of(call.tool) == "write" and not writes[name] and sets[call.toolset][call.tool] then
      writes[name], writes[#writes + 1] = true, call
    end
  end
  for _, call in ipairs(writes) do
    local gate, stopped = open(call.toolset, true), nil
    for i = 1, 5 do
      local said = gate:check(call.tool, call.arguments, "fresh ids of " .. call.tool, 1, tostring(i))
      if said.verdict.verdict ~= "pass" then stopped = stopped or i
      else gate:report(said, ('"result":{"content":[{"type":"text","text":"{\\"id\\":\\"new-%d\\"}"}]}'):format(i * 7919)) end
    end
    if not stopped or stopped > 3 then
      escaped = escaped + 1
      show("identical writes ran: %s", call.tool)
    end
  end
  judge(escaped == 0, "identical writes with a fresh id each time, not stopped from the third: %d of %d tools", escaped,
    #writes)
  score.keep { writes = #writes, writes_escaped = escaped }
end

-- ---- results ---------------------------------------------------------------------------

local FAILED = { tool_error = true, transient = true, invalid_arguments = true, forbidden = true, need_user_input = true,
                 schema_mismatch = true, semantic_garbage = true, unavailable = true }

-- A tool of every recorded name that takes anything.
local function open_tools()
  local names, list = {}, {}
  for _, session in ipairs(trajectories.sessions()) do
    for _, call in ipairs(session) do
      if not names[call.tool] then
        names[call.tool] = true
        list[#list + 1] = ('{"name":%s,"inputSchema":{"type":"object"}}'):format(json.encode(call.tool))
      end
    end
  end
  return process.write(process.directory() .. "/tools.json", "[" .. table.concat(list, ",") .. "]")
end

local function count_result(call, verdict, count)
  local is_failure, partial = FAILED[verdict.error_class] or false, verdict.error_class == "partial_data"
  if call.env ~= "ok" then
    count.failures = count.failures + 1
    count.seen = count.seen + (is_failure and 1 or 0)
    if not is_failure then show("not recognised: %s %s", call.tool, call.result:sub(1, 300)) end
    return
  end
  count.results = count.results + 1
  count.wrong = count.wrong + (is_failure and 1 or 0)
  count.partial = count.partial + (partial and 1 or 0)
  if is_failure then show("taken for a failure (%s): %s %s", verdict.code or "", call.tool, call.result:sub(1, 300)) end
  if partial then show("partial: %s %s", call.tool, call.result:sub(1, 300)) end
end

function M.results()
  local gate = gates.start(open_tools())
  local count = { failures = 0, seen = 0, results = 0, wrong = 0, partial = 0 }
  for _, session in ipairs(trajectories.sessions()) do
    for _, call in ipairs(session) do
      local said = gate:check(call.tool, "{}")
      count_result(call, gate:report(said, ('"result":{"content":[{"type":"text","text":%s}]}'):format(call.result)), count)
    end
  end
  judge(count.seen >= 0.85 * count.failures, "failures without isError recognised: %d of %d (to reach: 85 %%)", count.seen,
    count.failures)
  judge(count.wrong <= math.max(1, count.results / 10000),
    "results taken for failures: %d of %d (to reach: 1 in 10,000); partial: %d", count.wrong, count.results, count.partial)
  score.keep { failures = count.failures, failures_seen = count.seen, results = count.results, results_wrong = count.wrong }
  gate:stop()
end

return M
