-- apply_patch: Codex' editor of files, hooked by `toolgate hook`. A patch that touches a protected file is refused.
-- Shows: a policy over a text that holds several paths.
local protected = require "lib.protected"

return tool "apply_patch" {
  description = "Applies a patch to files of the project.",
  effects = "write",
  schema = json [[{"type":"object","properties":{
    "command":{"type":"string","description":"The patch, from *** Begin Patch to *** End Patch"}},"required":["command"]}]],

  check = function(args) return protected.writes(protected.paths_of_patch(args.command), true) end,

  examples = {
    { "a source file that names secrets", gives = "pass",
      args = { command = "*** Begin Patch\n*** Update File: src/a.c\n@@\n-// see .env\n+// see .env.example\n*** End Patch" } },
    { "no patch", args = { patch = "x" }, gives = "repair" },
    { "secrets", args = { command = "*** Begin Patch\n*** Add File: .env\n+KEY=1\n*** End Patch" },
      gives = "refuse protected_path" },
    { "a file that becomes git's hook", gives = "refuse protected_path",
      args = { command = "*** Begin Patch\n*** Update File: a.c\n*** Move to: .git/hooks/pre-push\n@@\n-a\n+b\n*** End Patch" } },
    { "the assistant's hooks", args = { command = "*** Begin Patch\n*** Delete File: .codex/hooks.json\n*** End Patch" },
      gives = "ask" },
  },
}
