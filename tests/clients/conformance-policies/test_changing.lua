-- test_changing_0: the bridge renames this tool to change the list of tools.
return tool "test_changing_0" {
  description = "Nothing; its name changes.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function() return "here" end,
}
