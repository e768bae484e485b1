-- toolgate check: the verdict of a call. In this process, with the files that a daemon would load; or, with --session or
-- --socket, from the running daemon. Only a session's call is counted.
local ui = require "ui"
local params = require "call_params"

local function print_trace(stages)
  for _, stage in ipairs(ui.is_array(stages) and stages or {}) do
    stage = ui.table(stage)
    ui.say("  %-8s %9s µs  %s", ui.text(stage.stage), cli.fixed(type(stage.us) == "number" and stage.us or 0, 1),
           ui.text(stage.decision))
  end
end

-- Values as they were sent: a rewrite may be one of their notation.
local function print_rewrites(list, arguments)
  local _, rewrites = cli.parse(list, true)
  ui.say("%s", ui.bold "repaired")
  for _, rewrite in ipairs(rewrites) do ui.say("  %s", cli.shown_json(rewrite)) end
  if arguments then ui.say("%s\n  %s", ui.bold "arguments", cli.shown_json(arguments)) end
end

local function print_section(title, words)
  if words == "" then return end
  ui.say("%s", ui.bold(title))
  ui.indent(cli.lines(words), 2)
end

local function print_verdict(o, a, parts)
  local verdict, class, code, would = ui.text(a.verdict), ui.text(a.error_class), ui.text(a.code), ui.text(a.would)
  io.write(cli.bold, ui.verdict_colour(verdict), verdict, cli.plain, "  ", cli.lines(o[1]))
  if class ~= "" and class ~= "ok" then io.write("  ", class) end
  if code ~= "" and code ~= class then io.write(" ", code) end
  if would ~= "" then io.write("  would: ", would) end -- shadow mode, or no session
  io.write "\n"
  if o.trace then print_trace(a.trace) end
  if ui.is_array(a.rewrites) and #a.rewrites > 0 then print_rewrites(parts.rewrites, parts.arguments) end
  local text, advice = ui.text(a.text), ui.text(a.advice)
  if text ~= advice then print_section("the model reads", text) end -- a check that passes has its notes in both
  print_section("advice", advice)
end

-- The answer, its parts, and the whole as JSON.
local function decide(o)
  local arguments, context = params.arguments(o[2]), params.context(o.context)
  if not (o.session or o.socket) then
    return cli.local_check(o, { name = o[1], arguments = arguments, context = context, goal = o.goal, turn = o.turn,
                                trace = o.trace })
  end
  -- A trace without a session is not counted.
  local request = params.request(o, arguments, context, o.trace or not o.session)
  local a, more = cli.rpc(o.socket, "toolgate/check", request, o.json and "raw" or "shown parts")
  return a, more, more
end

return command {
  name = "check", operands = "TOOL [JSON]", least = 1, most = 2, summary = "show the verdict of a call, run nothing",
  about = [[
Prints the verdict of a call. Without --session it loads the files that serve would load and
decides in this process; nothing is counted. With --session ID it asks the running daemon, which
uses that session's budgets, loops and facts, and counts the call.]],
  exits = [[
  0  pass
  1  any other verdict
  2  usage, arguments that are not JSON, files that do not load, no daemon]],
  example = [[
  toolgate check get_events '{"action": "by_ids"}' --trace --policies policies]],
  options = {
    flag { name = "trace", words = "print each stage: its decision and its time" }, params.goal, params.said, params.turn,
    text { name = "session", argument = "ID", words = "ask the running daemon; the call counts in this session" },
    text { name = "socket", letter = "s", argument = "PATH", words = "the daemon's socket; calls count only with --session" },
    files, flag { name = "json", letter = "j", words = "print the verdict as JSON" },
  },

  run = function(o)
    local a, parts, json = decide(o)
    if o.json then io.write(json, "\n") else print_verdict(o, a, parts) end
    return a.verdict == "pass" and 0 or 1
  end,
}
