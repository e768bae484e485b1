-- toolgate reload: makes the running daemon load everything again, and prints the result.
local ui = require "ui"

local function print_result(a)
  ui.complain("error", a.errors)
  ui.complain("warning", a.warnings)
  if not a.ok then
    ui.say("%s: generation %d (%s) is still served", ui.count(#(a.errors or {}), "error"), a.generation, a.hash)
  elseif a.unchanged then
    ui.say("unchanged: generation %d (%s), tools: %d, policies: %d, in %d ms", a.generation, a.hash, a.tools, a.policies, a.ms)
  else
    ui.say("generation %d (%s), tools: %d, policies: %d, examples passed: %d, in %d ms", a.generation, a.hash, a.tools,
           a.policies, a.examples, a.ms)
  end
end

return command {
  name = "reload", summary = "load configuration, tools and policies again",
  about = [[
The running daemon builds a new generation beside the one it serves, runs every example, and swaps
it in. If anything is wrong, it keeps the old generation, and this command prints the errors: file
and line, the example, what was expected and what was found. Calls go on during the reload. The
daemon also reloads by itself when files change, unless the configuration says watch = false.]],
  exits = [[
  0  the new generation is served, or nothing had changed
  1  there are errors; the old generation is still served
  2  usage, no daemon, or not allowed]],
  example = "  toolgate reload && toolgate status",
  options = { socket, json },

  run = function(o)
    local a = rpc(o, "toolgate/reload")
    if not o.json then print_result(a) end
    return a.ok and 0 or 1
  end,
}
