-- Right calls spoiled in each way of mutations.lua, and the faulty calls of invented.lua: what the gate makes of them.
local trajectories = require "trajectories"
local suggestion = require "suggestion"
local mutations = require "mutations"
local invented = require "invented"
local tree = require "json_tree"
local score = require "score"
local json = require("client").json

local judge, show, deterministic, was_right = score.judge, score.show, score.deterministic, suggestion.was_right
local EACH = tonumber(os.getenv "EACH" or 400)
local ROUNDS = 8 -- a call is spoiled at most so often in one way, by other draws

local M = {}

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
  for _, call in ipairs(trajectories.labelled()) do take(call.tool, call.toolset, call.arguments) end
  for line in trajectories.lines "calls-*-models.ndjson" do
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
  for _, proposal in ipairs(said.verdict.suggestions or {}) do
    if was_right(proposal, call.tree) then return "proposed" end
  end
  return contains_any(said.text, names) and "named" or "helpless"
end

function M.spoiled(open, sets)
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
  score.keep { spoiled = all.repaired + all.proposed + all.named + all.helpless + all.damaged, spoiled_ways = #mutations,
               spoiled_repaired = all.repaired, spoiled_proposed = all.proposed, spoiled_named = all.named,
               spoiled_helpless = all.helpless, spoiled_damaged = all.damaged }
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

function M.invented(open)
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
  score.keep { invented = count, invented_best = best }
end

return M
