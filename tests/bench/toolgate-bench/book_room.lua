-- book_room: books a meeting room. Writes; staff may book ahead, nobody for more than a day. Twenty lines of policy as
-- they are in the field: what `toolgate-bench policy` calls typical.
return tool "book_room" {
  effects = "write",
  schema  = json [[{"type":"object","additionalProperties":false,"required":["room","start","end","people"],"properties":{
    "room":{"type":"string"},"start":{"type":"string","format":"date-time"},"end":{"type":"string","format":"date-time"},
    "people":{"type":"integer","minimum":1},"layout":{"type":"string","enum":["table","rows"]},"title":{"type":"string"}}}]],
  rules = {
    when { layout = "rows" } : needs "title",
    always : defaults { layout = "table" },
  },
  check = function(args, call)
    local from, to = time(args.start), time(args["end"])
    if to <= from then
      return repair { path = "end", code = "before_start", message = "must be after 'start'" }
    end
    if to - from > 24 * 3600 then
      return refuse("too_long", "a room is booked for a day at most", "Book several days one by one.")
    end
    if args.layout == "table" and args.people > 20 then
      return repair { path = "people", code = "too_many", message = "at most 20 sit at a table", suggest = 20 }
    end
  end,
  result = function(result)
    if result.waiting then
      return partial("waiting_list", "the room is taken until " .. result.free_at, { start = result.free_at })
    end
    return ok { coverage = "SATISFIED", facts = { booking = result.id } }
  end,
  examples = {
    { "a room for an hour", gives = "pass",
      args = { room = "Amber", start = "2026-05-04T09:00:00Z", ["end"] = "2026-05-04T10:00:00Z", people = 6 } },
    { "an end before its start", gives = "repair", says = "after 'start'",
      args = { room = "Amber", start = "2026-05-04T09:00:00Z", ["end"] = "2026-05-04T08:00:00Z", people = 6 } },
    { "too many for a table", gives = "repair", says = "at most 20",
      args = { room = "Amber", start = "2026-05-04T09:00:00Z", ["end"] = "2026-05-04T10:00:00Z", people = 60 } },
  },
}
