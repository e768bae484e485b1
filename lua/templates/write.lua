-- TOOL: changes one record. TODO: name the record, and who may call this.
return tool "TOOL" {
  description = "Change the state of one record.",
  use_when    = "the user asked for this change",
  effects     = "write",
  limits      = { calls_per_turn = 10 },

  schema = params {
    id     = str { min = 1, "The record's id, from an earlier result" },
    state  = enum({ "open", "closed" }, "The record's new state"),
    reason = optional(str { max = 500, "Why it changes" }),
  },

  rules = {
    when { state = "closed" } : needs "reason",
  },

  examples = {
    { "a change with its reason", args = { id = "r-1", state = "closed", reason = "done" }, gives = "pass" },
    { "closing without a reason", args = { id = "r-1", state = "closed" }, gives = "repair", says = "reason" },
    { "a state that does not exist", args = { id = "r-1", state = "close" }, gives = "repair", says = "'closed'" },
  },
}
