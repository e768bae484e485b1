-- Write: writes a file of the project, hooked by `toolgate hook`. Protected files are refused.
-- Shows: a rule that several policies share (lib/protected.lua).
local protected = require "lib.protected"

return tool "Write" {
  description = "Writes a file of the project.",
  effects = "write",
  schema = json [[{"type":"object","properties":{
    "file_path":{"type":"string","description":"The file"},
    "content":{"type":"string","description":"All of its text"}},
    "required":["file_path","content"]}]],

  check = function(args) return protected.edit(args.file_path) end,

  examples = {
    { "a source file", args = { file_path = "/home/me/src/a.c", content = "" }, gives = "pass" },
    { "no content", args = { file_path = "/home/me/src/a.c" }, gives = "repair" },
    { "its own hooks", args = { file_path = "/home/me/.claude/settings.json", content = "{}" }, gives = "ask" },
    { "the system's", args = { file_path = "/etc/passwd", content = "" }, gives = "refuse protected_path" },
  },
}
