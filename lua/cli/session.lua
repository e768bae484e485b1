-- toolgate session: prints a session of the ledger, and resets or deletes it.
local ui = require "ui"

local TOOL_WIDTH_MAX, CLASS_WIDTH = 40, 17 -- the width of the longest class

-- By the code of a refusal, else by the class.
local REASONS = {
  retry_budget_exceeded = "invalid too often", same_call = "this call was made as often as its budget allows",
  loop = "the same call again, with nothing new",
  cycle = "the same few calls again, with nothing new", approved = "it was asked about and approved",
  declined = "it was asked about and denied",
  transient_budget = "transient failures, as often as they are retried",
  duplicate_in_step = "a duplicate of another call in the same message",
  same_failure = "it kept failing with the same error", already_broken = "its last result did not match its schema",
  poll_budget = "polled more often than loop.poll.max allows", too_soon = "polled sooner than loop.poll.every allows",
  writes_per_turn = "more destructive calls in the turn than are remembered",
  calls_per_turn = "limits.calls_per_turn is used up", calls_per_session = "limits.calls_per_session is used up",
  cost_per_turn = "limits.cost_per_turn is used up", cost_per_session = "limits.cost_per_session is used up",
  seconds_per_turn = "limits.seconds_per_turn is used up", llm_gave_up = "the model did not repair it in its turn",
  unknown_tool = "there is no such tool", forbidden = "a policy refused it", fabricated_id = "an id that was not seen",
  need_user_input = "the user was to be asked",
  policy_error = "its policy failed", unavailable = "what runs it was not available",
  schema_mismatch = "its result does not match its output schema", semantic_garbage = "its result is useless",
  transient = "transient failure", tool_error = "it ran and returned an error", refused = "its policy refused it",
  unknown = "no result was reported",
}
-- --reset ends these refusals.
local RESETS = { retry_budget_exceeded = true, same_call = true, loop = true, cycle = true, transient_budget = true,
                 duplicate_in_step = true, same_failure = true, already_broken = true, poll_budget = true, too_soon = true }

local function reason_of(entry) return (entry.code or "") ~= "" and entry.code or entry.class or "" end

local function title(words) return ui.bold(ui.format("%-9s", words)) end

-- The first row of a part has its title.
local function rows(words, list, say)
  for i, item in ipairs(list or {}) do ui.say("%s%s", title(i == 1 and words or ""), say(item)) end
end

local function of_turn(cost, in_turn) return ui.format("%.6g, %.6g in this turn", cost, in_turn or 0) end

-- ---- the summary ----
local function print_calls(b, history)
  local waiting, more, reported = (b.waiting or 0) > 0 and ui.format("; %d without a result yet", b.waiting) or "", 0, {}
  -- What the ledger would not have let run is not in its counts, unless its result was reported, which is an entry of its own.
  for i = #(history or {}), 1, -1 do
    local entry = history[i]
    local key = ("%s %s %s"):format(entry.turn, entry.step, entry.tool)
    if not entry.not_enforced or (entry.code or "") == "" then reported[key] = true
    elseif not reported[key] then more = more + 1 end
  end
  ui.say("%s%d, %d in this turn, which began %s%s%s", title "calls", b.calls, b.calls_in_turn, ui.time(b.turn_began_ms), waiting,
         more > 0 and ui.format("; %d more ran in mode shadow", more) or "")
  if (b.cost or 0) > 0 then ui.say("%s%s", title "cost", of_turn(b.cost, b.cost_in_turn)) end
  if (b.no_progress or 0) > 1 then ui.say("%sthe last %d calls gave no new result", title "stuck", b.no_progress) end
  rows("limited", b.tools, function(t)
    local cost = (t.cost or 0) > 0 and "; cost " .. of_turn(t.cost, t.cost_in_turn) or ""
    return ui.format("%s: %s, %d in this turn%s", cli.line(t.tool or ""), ui.count(t.calls, "call"), t.calls_in_turn, cost)
  end)
  rows("repairs", b.chains, function(c)
    return ui.format("%s: %s, %s%s", cli.line(c.tool or ""), ui.count(c.invalid, "invalid call"),
                                   c.ended and "no more in this turn" or "the model may try again",
                                   (c.ext or "") ~= "" and ui.format(" (%s)", cli.line(c.ext)) or "")
  end)
end

local function print_known(a)
  if a.ids and (a.ids.seen or 0) > 0 then
    ui.say("%s%d seen%s", title "ids", a.ids.seen, a.ids.complete and "" or ", older ones are not kept")
  end
  rows("facts", a.facts and cli.keys(a.facts), function(name)
    local value = a.facts[name]
    return ui.format("%s = %s", cli.line(name), cli.line(type(value) == "string" and value or cli.json(value)))
  end)
end

-- ---- the calls ----
-- After the class, if known: the reason, the number of repairs, the code.
local function why_of(entry)
  local code, why, retries = entry.code or "", entry.open and "the model may repair it" or REASONS[reason_of(entry)] or "",
                             entry.retries or 0
  if why == "" and retries == 0 and not entry.not_enforced then return "" end
  if entry.halted then why = "the run was told to end: " .. why end
  if entry.not_enforced then
    why = "not enforced (mode shadow): " .. ((entry.code or "") == "" and "a policy was against it" or why)
  end
  local tried = retries > 0 and ui.format("%s%s tried", why ~= "" and "; " or "", ui.count(retries, "repair")) or ""
  return (" "):rep(math.max(2, CLASS_WIDTH + 2 - #(entry.class or ""))) .. why .. tried
         .. (code ~= "" and code ~= entry.class and ui.format(" [%s]", code) or "")
end

local function colour_of(entry)
  if entry.class == "ok" or entry.class == "partial_data" then return cli.green end
  if entry.not_enforced then return cli.yellow end
  return (entry.code or "") ~= "" and entry.code ~= "llm_gave_up" and cli.red or cli.yellow
end

local function print_call(entry, width, turn_now)
  local tool = (entry.tool or ""):sub(1, width)
  ui.say("  %-19s %4d %4d  %s%s  %s%s%s%s", entry.open and "now" or ui.time(entry.at_ms),
         entry.open and turn_now or entry.turn or 0, entry.step or 0, cli.line(tool), (" "):rep(width - #tool),
         colour_of(entry), entry.class, cli.plain, why_of(entry))
end

local function print_history(list, turn_now)
  if not list or #list == 0 then return ui.say "\nno calls are kept" end
  local width = 4
  for _, entry in ipairs(list) do width = math.max(width, math.min(#(entry.tool or ""), TOOL_WIDTH_MAX)) end
  ui.say("\n%s  %-19s %4s %4s  %-" .. width .. "s  %-" .. CLASS_WIDTH .. "s  %s%s", cli.bold, "WHEN", "TURN", "STEP", "TOOL",
         "CLASS", "WHY", cli.plain)
  for _, entry in ipairs(list) do print_call(entry, width, turn_now) end
end

local function is_shell_word(word) return word:find "^[%w_.:/@][%w_.:/@-]*$" end

-- For the last refusal of this turn that --reset ends.
local function print_way_out(a, id)
  for i = #(a.history or {}), 1, -1 do
    local entry = a.history[i]
    if RESETS[reason_of(entry)] and not entry.not_enforced and entry.turn == a.turn then
      if is_shell_word(id) and is_shell_word(entry.tool or "") then
        ui.say("\nto allow it again: toolgate session %s --reset %s", id, entry.tool)
      end
      return
    end
  end
end

local function print_session(a, id)
  ui.say("%s%s, turn %d, step %d", title "session", cli.line(a.session or id), a.turn, a.step)
  if a.stand_in then ui.say("%s", ui.yellow "         Redis is down: this is what this daemon knows") end
  if (a.goal or "") ~= "" then ui.say("%s%s", title "goal", cli.line(a.goal)) end
  print_calls(a.budgets or {}, a.history)
  print_known(a)
  print_history(a.history, a.turn)
  print_way_out(a, id)
end

local function uid_of(user)
  if not user then return nil end
  local uid = cli.user_id(user) or tonumber(user:match "^%d+$")
  if not uid then fail("--user: no such user on this host: '%s'", user) end
  return uid
end

local function forget_lax(o, what)
  local tool, path = what:match "^([^:]*):?(.*)$"
  local a = rpc(o, "toolgate/session", { forget_lax = tool, path = path ~= "" and path or nil })
  if not o.json then ui.say("%s: what was learnt of its schema is forgotten; models are asked again", a.forgotten_lax) end
  return 0
end

return command {
  name = "session", operands = "ID", summary = "show a session as the ledger has it",
  about = [[
Prints the calls of a session of this user with time, turn, step, tool and class, why they were
refused, and how to let them go on. --reset ends the refusals of one tool, --forget deletes the
session. All daemons on one Redis give the same answer.]],
  exits = [[
  0  the session is on stdout, or was reset
  2  usage, no daemon, no such session]],
  example = [[
  toolgate session chat-7
  toolgate session chat-7 --reset search_orders]],
  options = {
    text { name = "reset", argument = "TOOL", words = "reset the loops and budgets of one tool, so that it may be called again" },
    flag { name = "forget", words = "delete the whole session" },
    flag { name = "forget-lax", words = "forget what the fleet has learnt of a tool's schema; ID is TOOL, or TOOL:PATH" },
    text { name = "user", letter = "u", argument = "NAME",
           words = "another user's session (only for root and the daemon's user)" },
    socket, json,
  },
  least = 1,

  run = function(o)
    local id = o[1]
    if o["forget-lax"] then return forget_lax(o, id) end
    if o.reset and o.forget then fail "--reset and --forget: choose one; --forget covers every tool" end
    local a = rpc(o, "toolgate/session", { session = id, uid = uid_of(o.user), reset = o.reset, forget = o.forget })
    if o.json then return 0 end
    if o.reset then
      ui.say("%s: %s may be called again; its loops and budgets are reset", cli.line(id, 200), cli.line(o.reset, 200))
    elseif o.forget then
      ui.say("%s: deleted, with its history, budgets, ids and facts", cli.line(id, 200))
    else
      print_session(a, id)
    end
  end,
}
