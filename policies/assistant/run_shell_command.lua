-- run_shell_command: gemini-cli's shell, hooked by `toolgate hook --client gemini`, and judged as Bash is.
local commands = require "lib.commands"

return tool "run_shell_command" {
  description = "Run a command in the shell.",
  schema = json [[{"type":"object","properties":{
    "command":{"type":"string","description":"The command line"}},"required":["command"]}]],
  loop = { volatile = { "description" } },

  check = function(args) return commands.verdict(args.command) end,

  examples = {
    { "a build", args = { command = "make", description = "Build" }, gives = "pass" },
    { "no command", args = { cmd = "make" }, gives = "repair" },
    { "a push by force", args = { command = "git push -f" }, gives = "ask" },
    { "secrets", args = { command = "echo A=1 > .env" }, gives = "refuse protected_path" },
  },
}
