-- TOOL: reads one record from an HTTP API. TODO: name the record, the address, and who may call this.
return tool "TOOL" {
  description = "Read one record by its id.",
  use_when    = "you have the record's id and need its details",
  effects     = "read",

  http = { "GET https://api.example.com/v1/records/{id}" },

  schema = params {
    id = str { min = 1, "The record's id" },
  },

  examples = {
    { "an id", args = { id = "r-1" }, gives = "pass" },
    { "no id", args = {}, gives = "repair", says = "'id'" },
  },
}
