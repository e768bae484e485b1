-- get_events: calendar events, by time span or by id. Everyone may call it; it only reads.
-- Shows: rules. They declare as data what each action needs and drops, and toolgate describes them to the model.

local calendar = json "fixtures/calendar.json"

local function events_with(ids)
  local wanted, found = set(ids), {}
  for _, event in ipairs(calendar) do
    if wanted[event.id] then found[#found + 1] = event end
  end
  return { events = found, has_more = false }
end

-- At most `limit` events that begin in the span; `next_start` is the time of the first one left out.
local function events_between(start, stop, limit)
  local found = {}
  for _, event in ipairs(calendar) do
    local begins = time(event.start)
    if begins >= time(start) and begins < time(stop) then
      if #found == limit then
        return { events = found, has_more = true, next_start = event.start }
      end
      found[#found + 1] = event
    end
  end
  return { events = found, has_more = false }
end

return tool "get_events" {
  title       = "Calendar events",
  description = "Read calendar events by time span or by id.",
  use_when    = "you need to know what is in the calendar, when an event is, or who attends it",
  avoid_when  = "you want a person's address or phone number: use lookup_contact",
  schema      = json "get_events.schema.json",
  effects     = "read",
  ids         = { ids = seen { look_up = "get_events, action by_time_span" } },
  gives_ids   = { "events[].id", "events[].attendee_ids[]" },

  rules = {
    when { action = "by_ids" }       : needs "ids"        : drops "start, end, limit",
    when { action = "by_time_span" } : needs "start, end" : drops "ids" : defaults { limit = 50 },
  },

  check = function(args)
    if args.action == "by_time_span" and time(args["end"]) < time(args.start) then
      return repair {
        path = "end", code = "before_start", message = "is before 'start' — swap the two",
        suggest = { start = args["end"], ["end"] = args.start },
      }
    end
  end,

  run = function(args)
    if args.action == "by_ids" then return events_with(args.ids) end
    return events_between(args.start, args["end"], args.limit)
  end,

  result = function(result)
    if result.has_more and #result.events == 0 then
      return garbage("empty_first_page", "has_more=true, but the page has no events", "Widen the time span.")
    end
    if result.has_more then
      return partial("more_events", "more events follow in this time span", { start = result.next_start })
    end
    return ok { coverage = "SATISFIED", facts = { events = #result.events } }
  end,

  examples = {
    { "a day",
      args = { action = "by_time_span", start = "2026-05-04T00:00:00Z", ["end"] = "2026-05-05T00:00:00Z" },
      gives = "pass" },
    { "by_ids drops limit",
      args = { action = "by_ids", ids = { "e1" }, limit = 10 }, seen = { "e1" },
      gives = "pass", becomes = { action = "by_ids", ids = { "e1" } } },
    { "one id becomes a list of one",
      args = { action = "by_ids", ids = "e1" }, seen = { "e1" },
      gives = "pass", becomes = { action = "by_ids", ids = { "e1" } } },
    { "by_ids needs ids",
      args = { action = "by_ids" }, gives = "repair", says = "ids" },
    { "a date in words is not a date",
      args = { action = "by_time_span", start = "tomorrow", ["end"] = "2026-05-05T00:00:00Z" },
      gives = "repair", says = "expected ISO datetime" },
    { "a span that ends before it starts: the repair suggests the swapped times",
      args = { action = "by_time_span", start = "2026-05-05T00:00:00Z", ["end"] = "2026-05-04T00:00:00Z" },
      gives = "repair", says = "swap the two" },
    { "an invented id is refused",
      args = { action = "by_ids", ids = { "evt-123" } }, goal = "what is on today?",
      gives = "refuse fabricated_id" },
    { "more events follow: the result names the next call",
      args = { action = "by_time_span", start = "2026-05-04T00:00:00Z", ["end"] = "2026-05-08T00:00:00Z", limit = 2 },
      gives = "partial_data more_events", says = "2026-05-05T17:00:00Z" },
    { "an empty first page of a longer list",
      args = { action = "by_time_span", start = "2026-05-01T00:00:00Z", ["end"] = "2026-05-02T00:00:00Z" },
      result = { has_more = true, events = {} },
      gives = "semantic_garbage empty_first_page", says = "widen the time span" },
  },
}
