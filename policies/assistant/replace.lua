-- replace: replaces text in a file for gemini-cli, hooked by `toolgate hook --client gemini`. Protected files are refused.
local protected = require "lib.protected"

return tool "replace" {
  description = "Replaces text in a file of the project.",
  effects = "write",
  schema = json [[{"type":"object","properties":{
    "file_path":{"type":"string","description":"The file"},
    "old_string":{"type":"string","description":"Text that is there"},
    "new_string":{"type":"string","description":"Text that replaces it"}},
    "required":["file_path","old_string","new_string"]}]],

  check = function(args) return protected.edit(args.file_path) end,

  examples = {
    { "a source file", args = { file_path = "/home/me/src/a.c", old_string = "a", new_string = "b" }, gives = "pass" },
    { "no new text", args = { file_path = "/home/me/src/a.c", old_string = "a" }, gives = "repair" },
    { "secrets", args = { file_path = "/home/me/.env", old_string = "a", new_string = "b" }, gives = "refuse protected_path" },
  },
}
