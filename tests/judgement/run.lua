-- make judgement: how right the gate's verdicts are on recorded traffic of real models, and how it takes right calls
-- that arrive spoiled. Prints the tables and ends with `N passed, N failed`; a line fails beyond its bound.
--
-- The recordings lie beside the project (../shared/data/corpus, or CORPUS); without them nothing is judged, and it says
-- so. EACH=400 spoiled calls of each way; ONLY=recorded,spoiled,invented,results selects; VERBOSE=1 prints each miss.
package.path = "tests/support/?.lua;tests/judgement/?.lua;" .. package.path
local process = require "process"
local daemon = require "daemon"
local trajectories = require "trajectories"
local client = require "client"
local gates = require "gate"
local mutations = require "mutations"
local invented = require "invented"
local tree = require "json_tree"
local json = client.json

local EACH = tonumber(os.getenv "EACH" or 400)
local REPEATS_OF_A_LOOP = 8 -- a session that makes one call so often is no success, even if nothing fails
local ROUNDS = 8 -- a call is spoiled at most so often in one way, by other draws
local VERBOSE = os.getenv "VERBOSE" == "1"
local folder = trajectories.folder
local passed, failed = 0, 0

local function chosen(name)
  local only = os.getenv "ONLY"
  return not only or ("," .. only .. ","):find("," .. name .. ",", 1, true)
end

local function judge(good, line, ...)
  if good then passed = passed + 1 else failed = failed + 1 end
  print((good and "ok      " or "NOT OK  ") .. line:format(...))
end

local function show(...)
  if VERBOSE then print("        " .. string.format(...)) end
end

local function deterministic(seed)
  local state = seed
  return function(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % n + 1
  end
end

-- ---- the recordings ----------------------------------------------------------------

local function lines(pattern)
  local files = io.popen("ls " .. folder .. "/" .. pattern .. " 2>/dev/null"):read "*a"
  return coroutine.wrap(function()
    for path in files:gmatch "[^\n]+" do
      for line in io.lines(path) do coroutine.yield(line) end
    end
  end)
end

local function place_of(row)
  return table.concat({ row.source, row.session, tostring(row.turn), row.tool }, "|")
end

local function definitions()
  local sets = {}
  for path in io.popen("ls " .. folder .. "/tools-*.json"):lines() do
    local set = {}
    for _, tool in ipairs(json.decode(process.read(path))) do set[tool.name] = tool end
    sets[path:match "tools%-(.*)%.json$"] = set
  end
  return sets
end

-- Published ground truth without the calls that break their own schema.
local function labelled()
  local defects, calls = {}, {}
  for line in lines "defects-groundtruth.ndjson" do defects[place_of(json.decode(line))] = true end
  for line in lines "calls-*-groundtruth.ndjson" do
    local row = json.decode(line)
    if row.expect == "valid" and not defects[place_of(row)] then
      calls[#calls + 1] = { tool = row.tool, toolset = row.toolset, arguments = trajectories.raw(line, "arguments") }
    end
  end
  return calls
end

-- ---- recorded calls and sessions ------------------------------------------------------

-- Refusals of a call for itself; all others are budgets and loops.
local OF_THE_CALL = { invalid_arguments = true, unknown_tool = true, fabricated_id = true, forbidden = true,
                      policy_error = true, unavailable = true }

local function judge_labelled(open)
  local refused, count = 0, 0
  for _, call in ipairs(labelled()) do
    local said = open(call.toolset):check(call.tool, call.arguments)
    local alike = said.arguments and tree.alike(said.arguments, tree.read(call.arguments))
    count = count + 1
    if said.verdict.verdict ~= "pass" or not alike then
      refused = refused + 1
      show("labelled: %s %s: %s", call.tool, call.arguments, said.text)
    end
  end
  judge(refused == 0, "labelled calls refused or changed: %d of %d (to reach: 0)", refused, count)
end

local function outcome(call)
  if not call.is_error then return ('"result":{"content":[{"type":"text","text":%s}]}'):format(call.result) end
  return ('"error":{"message":%s}'):format(call.result)
end

local function is_refused(verdict)
  return verdict.verdict == "refuse" or verdict.verdict == "halt" or verdict.verdict == "repair"
end

-- The value at the path of a suggestion ("args.items[0].name") in a call's arguments; nil: nothing is there.
local function value_at(arguments, path)
  local node = arguments
  for key, index in path:gsub("^args%.?", ""):gmatch "([^.%[%]]*)%[?(%d*)%]?" do
    if node and key ~= "" then node = node.kind == "object" and tree.get(node, key) or nil end
    if node and index ~= "" then node = node.kind == "array" and node[tonumber(index) + 1] or nil end
  end
  return node
end

-- Whether the model did later what a suggestion says: used the name, or sent the value.
local function was_right(suggestion, later)
  local wanted = tree.read(json.encode({ suggestion.value }))[1]
  local parent = value_at(later, suggestion.path:match "^(.*)%.[^.]*$" or "args")
  local name = wanted.kind == "string" and parent and parent.kind == "object" and tree.get(parent, wanted.text)
  local value = value_at(later, suggestion.path)
  return name ~= nil and name ~= false or value ~= nil and tree.alike(value, wanted)
end

local function later_success(session, i)
  for j = i + 1, #session do
    if session[j].tool == session[i].tool and session[j].env == "ok" then return tree.read(session[j].arguments) end
  end
end

local function replay(gate, session, set, count)
  local halted, first, right = false, nil, nil
  for i, call in ipairs(session) do
    local is_worked = call.env == "ok" and set[call.tool] -- some recordings have no definition of their tools
    local said = gate:check(call.tool, call.arguments, session.name, call.turn, call.step)
    local verdict = said.verdict
    session.verdicts[i] = verdict
    halted = halted or verdict.verdict == "halt"
    if verdict.verdict == "pass" then
      gate:report(said, outcome(call))
      count.passed = count.passed + 1
    elseif is_worked and OF_THE_CALL[verdict.error_class] and is_refused(verdict) then
      count.wrong = count.wrong + 1
      show("worked, refused: %s %s: %s", call.tool, call.arguments:sub(1, 300), said.text)
    end
    count.worked = count.worked + (is_worked and 1 or 0)
    local later = verdict.verdict == "repair" and call.env == "argument_error" and later_success(session, i)
    if later and first == nil and verdict.suggestions then
      first = verdict.suggestions[1]
      right = was_right(first, later)
      if not right then show("suggested %s for %s %s", json.encode(first), call.tool, call.arguments:sub(1, 300)) end
    end
  end
  if first then
    count.suggested = count.suggested + 1
    count.right = count.right + (right and 1 or 0)
  end
  return halted
end

local function judge_sessions(open, sets)
  local count = { worked = 0, wrong = 0, passed = 0, suggested = 0, right = 0 }
  local runaways, escaped, well, halts, saved = 0, 0, 0, 0, 0
  for _, session in ipairs(trajectories.sessions()) do
    session.verdicts = {}
    local halted = replay(open(session.toolset, true), session, sets[session.toolset], count)
    local said, failures = {}, 0
    for i, call in ipairs(session) do
      said[i] = { verdict = session.verdicts[i] }
      failures = failures + (call.is_error and 1 or 0)
    end
    if trajectories.repeats(session) >= trajectories.RUNAWAY_REPEATS then
      runaways = runaways + 1
      escaped = escaped + (trajectories.passed_as_third(session, said) and 1 or 0)
      saved = saved + trajectories.stopped(said)
    elseif failures == 0 and trajectories.repeats(session) < REPEATS_OF_A_LOOP then
      well = well + 1
      halts = halts + (halted and 1 or 0)
      if halted then show("halted: %s", session.name) end
    end
  end
  judge(count.wrong <= 1, "calls that worked, refused: %d of %d (to reach: 0 or 1)", count.wrong, count.worked)
  judge(runaways > 0 and escaped == 0, "runaway sessions not stopped from the third identical call: %d of %d; %d calls saved",
    escaped, runaways, saved)
  judge(halts == 0, "successful sessions that were halted: %d of %d (to reach: 0)", halts, well)
  print(("        sessions whose first suggestion is what the model later sent: %d of %d (to reach: 70 %%)")
    :format(count.right, count.suggested))
end

-- Each write of the recordings, five times with another id in each result.
local function judge_fresh_ids(open, sets)
  local writes, escaped = {}, 0
  for _, call in ipairs(labelled()) do
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

local function judge_results()
  local gate = gates.start(open_tools())
  local failures, seen, results, wrong, partial = 0, 0, 0, 0, 0
  for _, session in ipairs(trajectories.sessions()) do
    for _, call in ipairs(session) do
      local said = gate:check(call.tool, "{}")
      local verdict = gate:report(said, ('"result":{"content":[{"type":"text","text":%s}]}'):format(call.result))
      local is_failure = FAILED[verdict.error_class] or false
      if call.env == "ok" then
        results = results + 1
        wrong = wrong + (is_failure and 1 or 0)
        partial = partial + (verdict.error_class == "partial_data" and 1 or 0)
        if is_failure then show("taken for a failure (%s): %s %s", verdict.code or "", call.tool, call.result:sub(1, 300)) end
        if verdict.error_class == "partial_data" then show("partial: %s %s", call.tool, call.result:sub(1, 300)) end
      else
        failures = failures + 1
        seen = seen + (is_failure and 1 or 0)
        if not is_failure then show("not recognised: %s %s", call.tool, call.result:sub(1, 300)) end
      end
    end
  end
  judge(seen >= 0.85 * failures, "failures without isError recognised: %d of %d (to reach: 85 %%)", seen, failures)
  judge(wrong <= math.max(1, results / 10000), "results taken for failures: %d of %d (to reach: 1 in 10,000); partial: %d", wrong,
    results, partial)
  gate:stop()
end

-- ---- spoiled calls -----------------------------------------------------------------------

-- Right calls of all toolsets, which pass unchanged.
local function right_calls(open, sets)
  local calls, known = {}, {}
  local function take(tool, toolset, arguments)
    local definition, key = sets[toolset] and sets[toolset][tool], toolset .. tool .. arguments
    if not definition or known[key] then return end
    known[key] = true
    local said = open(toolset):check(tool, arguments)
    local right = tree.read(arguments)
    if said.verdict.verdict == "pass" and said.arguments and tree.alike(said.arguments, right) then
      calls[#calls + 1] = { tool = tool, toolset = toolset, schema = definition.inputSchema, tree = right, key = key }
    end
  end
  for _, call in ipairs(labelled()) do take(call.tool, call.toolset, call.arguments) end
  for line in lines "calls-*-models.ndjson" do
    local row = json.decode(line)
    if not row.env or row.env == "ok" then take(row.tool, row.toolset, trajectories.raw(line, "arguments")) end
  end
  for toolset, tools in pairs(sets) do -- a tool that needs no argument may be called with none
    for name in pairs(tools) do take(name, toolset, "{}") end
  end
  table.sort(calls, function(a, b) return a.key < b.key end)
  local random = deterministic(1)
  for i = #calls, 2, -1 do -- mixed, so that each way meets all toolsets
    local j = (random(32768) * 32768 + random(32768)) % i + 1
    calls[i], calls[j] = calls[j], calls[i]
  end
  return calls
end

local function contains_any(text, names)
  for _, name in ipairs(names) do
    if text:find(name, 1, true) then return true end
  end
  return #names == 0
end

-- "repaired", "proposed", "named", "helpless", or "damaged".
local function become(way, call, said, names)
  if said.verdict.verdict == "pass" then
    return said.arguments and tree.alike(said.arguments, call.tree) and not way.refused and "repaired" or "damaged"
  end
  if way.cut_off then return said.text:find("cut off", 1, true) and "named" or "helpless" end
  for _, suggestion in ipairs(said.verdict.suggestions or {}) do
    if was_right(suggestion, call.tree) then return "proposed" end
  end
  return contains_any(said.text, names) and "named" or "helpless"
end

local function judge_spoiled(open, sets)
  local calls = right_calls(open, sets)
  local all = { repaired = 0, proposed = 0, named = 0, helpless = 0, damaged = 0 }
  print(("%-50s %8s %8s %8s %8s %8s"):format(("spoiled (of %d right calls)"):format(#calls), "repaired", "proposed", "named",
    "helpless", "DAMAGED"))
  for number, way in ipairs(mutations) do
    local random, tried = deterministic(number), 0
    local count = { repaired = 0, proposed = 0, named = 0, helpless = 0, damaged = 0 }
    local at = random(#calls)
    for _ = 1, ROUNDS * #calls do
      at = at % #calls + 1
      local call = calls[at]
      local text, names, tool = way.spoil(call, random)
      if text then
        local said = open(call.toolset):check(tool or call.tool, text)
        local what = become(way, call, said, names)
        count[what], tried = count[what] + 1, tried + 1
        if what == "damaged" or what == "helpless" then
          show("%s: %s %s, sent %s, %s: %s", what, call.tool, tree.write(call.tree):sub(1, 300), text:sub(1, 300),
            said.verdict.verdict, said.arguments and tree.write(said.arguments):sub(1, 300) or said.text:sub(1, 300))
        end
        if tried == EACH then break end
      end
    end
    for what, n in pairs(count) do all[what] = all[what] + n end
    print(("%-50s %8d %8d %8d %8d %8d"):format(
      way.name, count.repaired, count.proposed, count.named, count.helpless, count.damaged))
  end
  print(("%-50s %8d %8d %8d %8d %8d"):format("all", all.repaired, all.proposed, all.named, all.helpless, all.damaged))
  judge(all.damaged == 0, "spoiled calls that ran with damaged arguments: %d (to reach: 0)", all.damaged)
  judge(all.helpless == 0, "spoiled calls refused without naming the place: %d (to reach: 0)", all.helpless)
end

-- ---- invented calls ------------------------------------------------------------------------

local function lacks(text, words)
  for _, word in ipairs(words or {}) do
    if not text:find(word, 1, true) then return word end
  end
end

-- Why the answer is not the best possible one; nil: it is.
local function shortcoming(case, said)
  local passes = said.verdict.verdict == "pass"
  if case.accepts then return not passes and "refused" or nil end
  if case.becomes then
    if not passes then return "refused" end
    return not tree.alike(said.arguments, tree.read(case.becomes)) and "became " .. tree.write(said.arguments) or nil
  end
  if passes then return "ran with " .. tree.write(said.arguments) end
  local missing = lacks(said.text, case.says)
  if missing then return "does not say " .. missing end
  for _, word in ipairs(case.never or {}) do
    if said.text:find(word, 1, true) then return "says " .. word end
  end
end

local function judge_invented(open)
  local best, count = 0, 0
  for _, case in ipairs(invented) do
    local toolset, tool, sent = case[1], case[2], case[3]
    local said = open(toolset):check(tool, sent)
    local why = shortcoming(case, said)
    count = count + 1
    if why then show("%s %s: %s\n%s", tool, sent, why, said.text) else best = best + 1 end
  end
  judge(best >= count * 52 / 58, "invented faulty calls with the best possible answer: %d of %d (to reach: 52 of 58)", best,
    count)
end

-- ---- all of it ------------------------------------------------------------------------------

local function main()
  if not io.open(folder .. "/defects-groundtruth.ndjson") then
    print("no recordings in " .. folder .. ": nothing is judged (set CORPUS to their folder)")
    print "0 passed, 0 failed"
    return
  end
  local sets, opened = definitions(), {}
  local function open(toolset, of_upstream)
    local key = toolset .. (of_upstream and " of an upstream" or "")
    opened[key] = opened[key] or gates.start(trajectories.tools_file(toolset), of_upstream)
    return opened[key]
  end
  if chosen "recorded" then
    judge_labelled(open)
    judge_sessions(open, sets)
    judge_fresh_ids(open, sets)
  end
  if chosen "results" then judge_results() end
  if chosen "invented" then judge_invented(open) end
  if chosen "spoiled" then judge_spoiled(open, sets) end
  daemon.stop_all()
  print(("%d passed, %d failed"):format(passed, failed))
  os.exit(failed == 0 and 0 or 1)
end

local ok, why = xpcall(main, debug.traceback)
if not ok then
  io.stderr:write(why, "\n")
  pcall(daemon.stop_all)
  os.exit(1)
end
