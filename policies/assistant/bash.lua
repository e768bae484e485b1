-- Bash: the shell of a coding assistant, hooked by `toolgate hook`. Commands that destroy ask first; writing protected files
-- and operating the gateway, by which an agent could approve itself, are refused.
-- Shows: a small reader of a language in lib/, and ask and refuse in check. It stops accidents, not an attacker, who can spell a
-- command in many ways: what holds an attacker is what the shell's user may do.
local shell = require "lib.shell"
local commands = require "lib.commands"
local protected = require "lib.protected"
local expected = require "lib.command_examples"

local examples = {
  { "more arguments of the assistant", args = { command = "make", timeout = 1000, description = "Build" }, gives = "pass" },
  { "no command", args = { cmd = "ls" }, gives = "repair" },
}
local function add(lines, gives)
  for _, line in ipairs(lines) do examples[#examples + 1] = { line, args = { command = line }, gives = gives } end
end
add(expected.pass, "pass")
add(expected.ask, "ask")
for code, lines in pairs(expected.refuse) do add(lines, "refuse " .. code) end

return tool "Bash" {
  description = "Run a command in the shell.",
  schema = json [[{"type":"object","properties":{
    "command":{"type":"string","description":"The command line"}},"required":["command"]}]],
  -- A shell may read or write, so its effects stay unknown: `git status` is asked again after each edit.
  loop = { volatile = { "description", "timeout" } },

  check = function(args)
    local written, destroys = {}, nil
    for _, command in ipairs(shell.commands(args.command)) do
      if commands.operates_gateway(command) then
        return refuse("self_approval", "an agent does not operate the gateway that checks it",
                      "Ask the user to run this command in a terminal of their own.")
      end
      for _, path in ipairs(commands.writes(command)) do written[#written + 1] = path end
      for _, path in ipairs(protected.paths_of_patch(commands.patch(command) or "")) do written[#written + 1] = path end
      destroys = destroys or commands.destroys(command)
    end
    local verdict = protected.writes(written)
    if verdict then return verdict end
    if destroys then return ask("This command " .. destroys .. ". Run it?", { "Run it", "Do not run it" }) end
  end,

  examples = examples,
}
