-- TOOL: TODO: say in one line what it is for, and who may call it.
return tool "TOOL" {
  --@upstream
  --@description
  -- use_when   = "the user …",
  -- avoid_when = "…: use another_tool",
  --@effects

  --@schema

  --@examples
}
