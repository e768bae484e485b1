-- toolgate shadow: what mode shadow would have refused, by tool, and whether it is safe to enforce.
local ui = require "ui"
local decision_log = require "decision_log"

local CALLS_LEAST = 20  -- fewer calls of a tool say nothing about it
local CODES_MAX   = 16  -- of a tool; the others have no line of their own
local EXAMPLE_MAX = 200 -- bytes
local NAME_MAX    = 64
local PLACE_MAX   = 4096

-- ---- counting ----

-- Of a tool: would_refuse counts calls that would not have run, and is the sum of `verdicts`, which count what each would have
-- got instead; of the codes and other_codes; and of the columns: worked and failed (its result was good, or an error), asked
-- (the user decides), repeats (in a loop: its result was what it was before), unknown (no result is recorded). repaired counts
-- those to be repaired before a call that would pass.
local COLUMNS = { "worked", "failed", "asked", "repeats", "unknown" }
local VERDICTS = { "repair", "wait", "refuse", "ask", "halt" }

local function row_of(rows, tool)
  if not rows[tool] then
    local row = { tool = tool, calls = 0, would_refuse = 0, repaired = 0, other_codes = 0, codes = {}, verdicts = {} }
    for _, name in ipairs(COLUMNS) do row[name] = 0 end
    rows[tool], rows[#rows + 1] = row, row
  end
  return rows[tool]
end

local function count_code(row, log)
  local code = log:get("code", "would") or log:get("error_class", "would") or ""
  local known = row.codes[code]
  if not known and #row.codes < CODES_MAX then
    known = { code = code, count = 0, arguments = cli.cut(log:arguments() or "", EXAMPLE_MAX, "…") }
    row.codes[code], row.codes[#row.codes + 1] = known, known
  end
  if known then known.count = known.count + 1 else row.other_codes = row.other_codes + 1 end
end

-- A tool that is enforced may have a policy for several tools that is not.
local function note_shadow(tools, log)
  if log:get "policy_mode" == "shadow" or log:get("verdict", "would") then tools[log:get "tool" or ""] = true end
end

local function add_call(rows, tools, outcomes, log)
  if decision_log.is_report(log) or not log:get "policy_mode" then return end -- a report belongs to its check
  if not tools[log:get "tool" or ""] then return end
  local row = row_of(rows, log:get "tool")
  row.calls = row.calls + 1
  if not decision_log.is_refused(log, "would") then return end
  local outcome = outcomes:of(outcomes:key(log)) or {}
  row.would_refuse = row.would_refuse + 1
  local verdict, column = log:get("verdict", "would"), "unknown"
  if outcome.ran then column = (outcome.ran == "ok" or outcome.ran == "partial_data") and "worked" or "failed" end
  if verdict == "ask" then column = "asked" end
  if log:get("error_class", "would") == "loop" then column = "repeats" end
  row[column], row.verdicts[verdict] = row[column] + 1, (row.verdicts[verdict] or 0) + 1
  if outcome.kind == "repaired" then row.repaired = row.repaired + 1 end
  count_code(row, log)
end

-- Enforcing would break a call that worked; a call without a known result may have worked.
local function answer_of(row)
  if row.calls < CALLS_LEAST then return false, "too few calls to say" end
  if row.worked > 0 then return false, "calls that worked would be refused: review them first" end
  if row.unknown > 0 then return false, "the results of some calls are not known: review them first" end
  if row.asked > 0 then return false, "the user would be asked about calls that ran: enforce it if somebody can answer" end
  if row.repeats > 0 then -- of a tool that is polled, the one that brings the change would be missed
    return false, "it repeated calls without anything new: enforce it if nobody polls it"
  end
  return true, row.would_refuse > 0 and "every call that would be refused failed anyway" or "no call would be refused"
end

-- ---- where mode shadow is declared, as the daemon says ----

local function is_among(tool, tools)
  for _, name in ipairs(tools or {}) do
    if name == tool then return true end
  end
  return false
end

-- "FILE:LINE" of the tool's mode, several times; without the line if it is computed.
local function places_of(tool, places)
  local found = {}
  for _, place in ipairs(places) do
    local is_here = is_among(tool, place.tools)
    if place.except then is_here = not is_among(tool, place.except) end -- the configuration's default
    if is_here then found[#found + 1] = place.line and ("%s:%d"):format(place.file, place.line) or place.file end
  end
  return found
end

-- ---- output ----

-- The fix of a tool that is safe; of another one only where it is.
local function print_places(row, safe, places)
  if not places then
    if safe then
      ui.say('  set mode = "enforce" in its policy, or in a policy { tools = { "%s" }, … }', cli.line(row.tool, NAME_MAX))
    end
    return
  end
  local found = places_of(row.tool, places)
  for _, place in ipairs(found) do
    ui.say("  %s %s", safe and 'set mode = "enforce" in' or 'its mode = "shadow" is in', cli.line(place, PLACE_MAX))
  end
  if #found == 0 then ui.say "  the daemon does not have it in mode shadow any more" end
end

local WORDS = { worked = "%d worked", failed = "%d failed anyway", asked = "%d would be the user's to decide",
                repeats = "%d only repeated a call", unknown = "%d have no known result" }

-- "3 repair, 1 halt": those of the names that were counted.
local function counts_of(counts, names, words)
  local found = {}
  for _, name in ipairs(names) do
    if (counts[name] or 0) > 0 then found[#found + 1] = (words and words[name] or "%d " .. name):format(counts[name]) end
  end
  return table.concat(found, ", ")
end

local function print_row(row, places)
  local safe, why = answer_of(row)
  local verdicts = counts_of(row.verdicts, VERDICTS)
  ui.say("%s: %d calls, %d would not have run%s", ui.bold(cli.line(row.tool, NAME_MAX)), row.calls, row.would_refuse,
         verdicts ~= "" and " (" .. verdicts .. ")" or "")
  if row.would_refuse > 0 then
    ui.say("  of these %s%s", counts_of(row, COLUMNS, WORDS),
           row.repaired > 0 and ("; %d %s repaired later"):format(row.repaired, row.repaired == 1 and "was" or "were") or "")
  end
  for _, code in ipairs(row.codes) do
    ui.say("  %6d  %s  such as %s", code.count, cli.line(code.code, NAME_MAX), cli.line(code.arguments, EXAMPLE_MAX))
  end
  if row.other_codes > 0 then ui.say("  %6d  with other codes", row.other_codes) end
  ui.say("  %s: %s", safe and ui.green "safe to enforce" or ui.yellow "not safe to enforce", why)
  print_places(row, safe, places)
end

local function print_json(row, places)
  local safe, why = answer_of(row)
  local codes, verdicts, found = {}, {}, places and places_of(row.tool, places)
  for i, name in ipairs(VERDICTS) do verdicts[i] = ('"%s":%d'):format(name, row.verdicts[name] or 0) end
  for i, code in ipairs(row.codes) do
    codes[i] = ('{"code":%s,"count":%d,"arguments":%s}'):format(cli.quote(code.code), code.count, cli.quote(code.arguments))
  end
  for i, place in ipairs(found or {}) do found[i] = cli.quote(place) end
  io.write(('{"tool":%s,"calls":%d,"would_refuse":%d,"worked":%d,"failed":%d,"repaired":%d,"repeats":%d,"asked":%d,'):format(
             cli.quote(row.tool), row.calls, row.would_refuse, row.worked, row.failed, row.repaired, row.repeats, row.asked),
           ('"unknown":%d,"verdicts":{%s},"codes":[%s],"other_codes":%d,'):format(
             row.unknown, table.concat(verdicts, ","), table.concat(codes, ","), row.other_codes),
           ('"safe":%s,"why":%s%s}\n'):format(safe, cli.quote(why),
             found and (',"shadow":[%s]'):format(table.concat(found, ",")) or ""))
end

return command {
  name = "shadow", operands = "[FILE]...", summary = "say what mode shadow would have refused",
  about = [[
Reads the decision log, and prints for each tool in mode shadow how many calls it would have
refused, whether these calls worked, and whether its policy is safe to enforce. Without FILE it
reads the daemon's log, the rotated files first. The daemon says in which file and line the mode is;
with FILE, only one that --socket names is asked.]],
  exits = [[
  0  every tool is safe to enforce
  1  at least one is not, or there are too few calls to say, or none
  2  usage, or a file that cannot be read]],
  example = [[
  toolgate shadow
  toolgate decisions --would --review]],
  options = { socket, flag { name = "json", letter = "j", words = "print one JSON object for each tool" } },
  most = 1000,

  run = function(o)
    local files, status = o, nil
    if o[1] and o.socket then -- a named file may be of another host: only a named daemon says where the modes are
      status = decision_log.status(o.socket)
      if not status then
        fail("no daemon answers at %s: name the socket of one, or leave --socket out", o.socket)
      end
    elseif not o[1] then
      files, status = decision_log.find(o.socket)
    end
    local input, outcomes, rows, tools = decision_log.open(files), require "decision_outcomes" (), {}, {}
    local generation = status and status.generation or {}
    local read = input:walk(function(log)
      outcomes:add(log)
      note_shadow(tools, log)
    end)
    outcomes:finish()
    outcomes:report_left_out()
    read = read and input:walk(function(log) add_call(rows, tools, outcomes, log) end, true)
    local all_safe = #rows > 0 -- a script that enforces on success must not do so without a call
    for _, row in ipairs(rows) do
      (o.json and print_json or print_row)(row, generation.shadow)
      all_safe = answer_of(row) and all_safe
    end
    for _, expired in ipairs(generation.shadow_expired or {}) do
      cli.warn(("%s: %s"):format(expired.file or "", expired.why or ""))
    end
    if #rows == 0 and read then
      cli.warn 'no call of a tool in mode shadow is recorded; set `mode = "shadow"` in its policy'
    end
    if not read or input.cut_short then return 2 end
    return all_safe and 0 or 1
  end,
}
