-- TOOL: finds records, one page at a time. TODO: name the records, and who may call this.
return tool "TOOL" {
  description = "Find records by words, one page at a time.",
  use_when    = "you need a record and do not have its id",
  effects     = "read",
  gives_ids   = { "items[].id" },

  schema = params {
    query = str { min = 1, "The words to find" },
    page  = optional(int { min = 1, "The page" }, 1),
    limit = optional(int { min = 1, max = 100, "Records on a page" }, 20),
  },

  result = function(result)
    if result.next_page then
      return partial("more_pages", "more records follow", { page = result.next_page })
    end
  end,

  examples = {
    { "words", args = { query = "invoice" }, gives = "pass" },
    { "no words", args = {}, gives = "repair", says = "'query'" },
    { "a page that is not the last", args = { query = "invoice" }, result = { items = array {}, next_page = 2 },
      gives = "partial_data" },
  },
}
