-- TOOL: TODO: say in one line what it is for, and who may call it.
return tool "TOOL" {
  description = "TODO: say in one sentence what the tool does.",
  -- effects = "read", -- or "write", "destructive", "toggle": how often the same call may be made

  -- TODO: the tool's parameters. As it stands, the tool takes none.
  schema = params {
    -- NAME = str "What it is",
    -- NAME = optional(int { min = 1 }, 10),
  },

  examples = {
    { "a call without arguments passes", args = {}, gives = "pass" },
  },
}
