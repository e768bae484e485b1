-- create_issue: x.
return tool "create_issue" {
  mode = "shadow",
  effects = "write",
  check = function(args)
    if args.owner ~= "us" then return refuse("foreign_owner", "not our repository", "Use owner us.") end
  end,
  examples = { { "x", args = { owner = "us", repo = "r", title = "t" }, gives = "pass" } },
}
