-- test_changing_0: a tool whose name the bridge changes, so that the list of tools does.
return tool "test_changing_0" {
  description = "Nothing; its name changes.",
  effects     = "read",
  schema      = json [[{"type":"object"}]],
  run = function() return "here" end,
}
