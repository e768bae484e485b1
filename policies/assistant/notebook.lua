-- NotebookEdit: changes a cell of a notebook, hooked by `toolgate hook`. Protected files are refused.
-- Shows: a rule that several policies share (lib/protected.lua).
local protected = require "lib.protected"

return tool "NotebookEdit" {
  description = "Changes a cell of a notebook.",
  effects = "write",
  schema = json [[{"type":"object","properties":{
    "notebook_path":{"type":"string","description":"The notebook"},
    "new_source":{"type":"string","description":"The cell's new text"}},
    "required":["notebook_path"]}]],

  check = function(args) return protected.edit(args.notebook_path) end,

  examples = {
    { "a notebook", args = { notebook_path = "/home/me/n.ipynb", new_source = "1" }, gives = "pass" },
    { "no notebook", args = { new_source = "1" }, gives = "repair" },
    { "run by git", args = { notebook_path = "/home/me/.git/hooks/n.ipynb", new_source = "1" },
      gives = "refuse protected_path" },
  },
}
