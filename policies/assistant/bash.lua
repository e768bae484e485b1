-- Bash: the shell of a coding assistant, hooked by `toolgate hook`. Commands that destroy ask first; writing protected files
-- and operating the gateway, by which an agent could approve itself, are refused.
-- Shows: a small reader of a language in lib/, and ask and refuse in check. It stops accidents, not an attacker, who can spell a
-- command in many ways: what holds an attacker is what the shell's user may do.
local commands = require "lib.commands"
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

  check = function(args) return commands.verdict(args.command) end,

  examples = examples,
}
