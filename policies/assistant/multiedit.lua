-- MultiEdit: replaces several texts in a file of the project, hooked by `toolgate hook`. Protected files are refused.
local protected = require "lib.protected"

return tool "MultiEdit" {
  description = "Replaces several texts in a file of the project.",
  effects = "write",
  schema = json [[{"type":"object","properties":{
    "file_path":{"type":"string","description":"The file"},
    "edits":{"type":"array","description":"The replacements","items":{"type":"object"}}},
    "required":["file_path","edits"]}]],

  check = function(args) return protected.edit(args.file_path) end,

  examples = {
    { "a source file", args = { file_path = "/home/me/src/a.c", edits = { { old_string = "a", new_string = "b" } } },
      gives = "pass" },
    { "no edits", args = { file_path = "/home/me/src/a.c" }, gives = "repair" },
    { "secrets", args = { file_path = "/home/me/.env", edits = { { old_string = "a", new_string = "b" } } },
      gives = "refuse protected_path" },
  },
}
