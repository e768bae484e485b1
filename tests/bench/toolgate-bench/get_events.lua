-- get_events: the bench's tool. Read only.
return tool "get_events" {
  description = "Read calendar events by id or by time span.",
  effects = "read",
  schema = json [[{"type":"object","additionalProperties":false,"required":["action"],"properties":{
    "action":{"type":"string","enum":["by_ids","by_time_span"]},
    "ids":{"type":"array","items":{"type":"string"}},
    "start":{"type":"string","format":"date-time"},
    "end":{"type":"string","format":"date-time"},
    "query":{"type":"string","maxLength":200},
    "limit":{"type":"integer","minimum":1,"maximum":500}}}]],
  rules = {
    when { action = "by_ids" }       : needs "ids" : drops "limit",
    when { action = "by_time_span" } : needs "start, end",
  },
  check = function(args, call)
    if args.action == "by_time_span" and args["end"] == args.start then
      return repair { path = "end", code = "empty_span", message = "must not be equal to 'start'" }
    end
  end,
  run = function(args, call)
    return { events = { { id = args.query, title = "Review of the quarter", start = args.start } } }
  end,
}
