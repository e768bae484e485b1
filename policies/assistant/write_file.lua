-- write_file: writes a file for gemini-cli, hooked by `toolgate hook --client gemini`. Protected files are refused.
local protected = require "lib.protected"

return tool "write_file" {
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
    { "its own settings", args = { file_path = "/home/me/.gemini/settings.json", content = "{}" }, gives = "ask" },
    { "secrets, from Windows", args = { file_path = "C:\\project\\.env", content = "A=1" }, gives = "refuse protected_path" },
  },
}
