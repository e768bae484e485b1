-- book_desk: a desk in the office for some days. Staff may book ahead; it writes, and visitors need a host.
-- Shows: annotations. What run takes is written above it, as editors know it; and rules for more than one value.

local taken = { ["2026-05-04"] = { quiet = true }, ["2026-05-05"] = { quiet = true, window = true } }

local function on_weekend(day)
  local at = time(day)
  return at and (at / 86400 + 4) % 7 % 6 == 0 -- 1970 began on a Thursday
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
---@field email? string Where the invitation goes

return tool "book_desk" {
  title    = "Desks",
  use_when = "somebody wants to work in the office",
  effects  = "write",

  rules = {
    when { visitors = given } : needs "host",
    when { days = above(5) } : refuses("too_long", "a desk is booked for five days at most", "Book each week by itself."),
    when { day = is("on a weekend", on_weekend) } : refuses("closed", "the office is closed on weekends",
                                                            "Book the Friday before or the Monday after."),
  },

  check = function(args)
    if not time(args.day) then
      return repair { path = "day", code = "no_day", message = "is no day — write it like 2026-05-04" }
    end
  end,

  ---Book a desk in the office, for one day or several in a row.
  ---@param day string The first day, e.g. 2026-05-04
  ---@param days? integer How many days; 1 when left out
  ---@param desk "quiet"|"window"|"standing" Which kind of desk
  ---@param visitors? Visitor[] Who comes along and does not work here
  ---@param host? string Who looks after the visitors:
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
    { "a kind of desk in capitals is mended",
      args = { day = "2026-05-06", desk = "Window" }, gives = "pass", becomes = { day = "2026-05-06", desk = "window" } },
    { "visitors need a host",
      args = { day = "2026-05-06", desk = "quiet", visitors = { { name = "Ana Ferreira" } } },
      gives = "repair", says = "'host': required field is missing when visitors is given" },
    { "a visitor without a name",
      args = { day = "2026-05-06", desk = "quiet", visitors = { { email = "ana@example.com" } }, host = "Ben" },
      gives = "repair", says = "name" },
    { "five days are not too many", args = { day = "2026-05-06", desk = "quiet", days = 5 }, gives = "pass" },
    { "six days are", args = { day = "2026-05-06", desk = "quiet", days = 6 }, gives = "refuse too_long", says = "each week" },
    { "a Saturday", args = { day = "2026-05-09", desk = "quiet" }, gives = "refuse closed" },
    { "a day in words", args = { day = "Monday", desk = "quiet" }, gives = "repair", says = "write it like 2026-05-04" },
    { "a desk that is taken: the free ones are named",
      args = { day = "2026-05-05", desk = "window" }, gives = "tool_error taken", says = "Free on that day: standing" },
  },
}
