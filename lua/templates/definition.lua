-- TOOL: TODO: say in one line what it is for, and who may call it.
--@confirmation
return tool "TOOL" {
  --@upstream
  --@title
  --@description
  -- use_when   = "the user …",
  -- avoid_when = "…: use another_tool",
  --@effects
  --@idempotent

  --@schema

  --@check
  --@examples
}
