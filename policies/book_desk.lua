-- book_desk: books a desk in the office for one or several days. Everyone may call it; it writes.
-- Shows: annotations above run instead of a schema, and rules with ranges, presence and a predicate.

local taken = { ["2026-05-04"] = { quiet = true }, ["2026-05-05"] = { quiet = true, window = true } }

local function on_weekend(day)
  local at = time(day)
  return at and (at / 86400 + 4) % 7 % 6 == 0 -- 1970-01-01 was a Thursday
end

local function free_on(day)
  local desks = {}
  for _, desk in ipairs { "quiet", "window", "standing" } do
    if not (taken[day] and taken[day][desk]) then desks[#desks + 1] = desk end
  end
  return table.concat(desks, ", ")
end

---@class Visitor
---@field name string First and last name, for the badge
---@field email? string For the invitation

return tool "book_desk" {
  title    = "Desks",
  use_when = "somebody wants to work in the office",
  effects  = "write",

  rules = {
    when { visitors = given } : needs "host",
    when { days = above(5) } : refuses("too_long", "a desk is booked for five days at most", "Book each week separately."),
    when { day = is("on a weekend", on_weekend) } : refuses("closed", "the office is closed on weekends",
                                                            "Book the Friday before or the Monday after."),
  },

  check = function(args)
    if not time(args.day) then
      return repair { path = "day", code = "not_a_date", message = "is not a date — write it like 2026-05-04" }
    end
  end,

  ---Book a desk in the office, for one day or several in a row.
  ---@param day string The first day, e.g. 2026-05-04
  ---@param days? integer Number of days, 1 by default
  ---@param desk "quiet"|"window"|"standing" Which kind of desk
  ---@param visitors? Visitor[] Guests who do not work here
  ---@param host? string The visitors' host,
  --- a colleague's name
  run = function(args)
    if taken[args.day] and taken[args.day][args.desk] then
      return failed("taken", "the " .. args.desk .. " desk is taken on " .. args.day,
                    "Free on that day: " .. free_on(args.day) .. ".")
    end
    return { booked = args.desk, day = args.day, days = args.days or 1, visitors = #(args.visitors or {}) }
  end,

  examples = {
    { "a desk for a day", args = { day = "2026-05-06", desk = "quiet" }, gives = "pass" },
    { "a kind of desk in capitals is repaired",
      args = { day = "2026-05-06", desk = "Window" }, gives = "pass", becomes = { day = "2026-05-06", desk = "window" } },
    { "visitors need a host",
      args = { day = "2026-05-06", desk = "quiet", visitors = { { name = "Ana Ferreira" } } },
      gives = "repair", says = "'host' is missing when visitors is given" },
    { "a visitor without a name",
      args = { day = "2026-05-06", desk = "quiet", visitors = { { email = "ana@example.com" } }, host = "Ben" },
      gives = "repair", says = "name" },
    { "five days are allowed", args = { day = "2026-05-06", desk = "quiet", days = 5 }, gives = "pass" },
    { "six days are not",
      args = { day = "2026-05-06", desk = "quiet", days = 6 }, gives = "refuse too_long", says = "each week" },
    { "a Saturday is refused", args = { day = "2026-05-09", desk = "quiet" }, gives = "refuse closed" },
    { "a day in words", args = { day = "Monday", desk = "quiet" }, gives = "repair", says = "write it like 2026-05-04" },
    { "a desk that is taken: the error names the free ones",
      args = { day = "2026-05-05", desk = "window" }, gives = "tool_error taken", says = "Free on that day: standing" },
  },
}
