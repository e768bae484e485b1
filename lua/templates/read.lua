-- TOOL: reads one record by its id. TODO: name the record, and who may call this.
return tool "TOOL" {
  description = "Read one record by its id.",
  use_when    = "you have the record's id and need its details",
  effects     = "read",
  ids         = { id = seen { look_up = "the tool that finds records" } },

  schema = params {
    id = str { min = 1, "The record's id, from an earlier result" },
  },

  examples = {
    { "an id that an earlier result gave", args = { id = "r-1" }, seen = { "r-1" }, gives = "pass" },
    { "an invented id", args = { id = "r-2" }, seen = { "r-1" }, gives = "repair" },
    { "no id", args = {}, gives = "repair", says = "'id'" },
  },
}
