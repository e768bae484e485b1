-- lookup_place_contacts: the people who live at, work at or go to a place. Everyone may call it; it only reads.
-- Shows: normalise. It repairs unambiguous mistakes, so that the model needs no second call.

local people = json "fixtures/people.json"

local function holds(text, words)
  return text:lower():find(words:lower(), 1, true) ~= nil
end

local function contacts_at(place)
  local found = {}
  for _, link in ipairs(people.links) do
    if link.place_id == place.id then
      for _, contact in ipairs(people.contacts) do
        if contact.id == link.contact_id then
          found[#found + 1] = { id = contact.id, name = contact.name, as = link.as }
        end
      end
    end
  end
  return found
end

return tool "lookup_place_contacts" {
  title       = "People of a place",
  description = "Find who lives at, works at or goes to a place.",
  use_when    = "you know the place and need the people",
  avoid_when  = "you know the person and need the places: use lookup_contact_places",
  effects     = "read",
  ids         = { place_id = seen { look_up = "place_query, with the place's name" } },
  gives_ids   = { "places[].id", "places[].contacts[].id" },

  schema = json [[{
    "type": "object",
    "properties": {
      "place_id":    { "type": "string", "description": "an id from an earlier result, e.g. \"p1\"" },
      "place_query": { "type": "string", "minLength": 2,
                       "description": "a part of the place's name or address, e.g. \"office\"" }
    },
    "additionalProperties": false
  }]],

  rules = {
    needs_one_of { "place_id", "place_query" },
  },

  -- Models send an id as place_query, or place_query beside an id.
  normalise = function(args)
    if not args.place_id and args.place_query:find "^p%d+$" then
      args.place_id = args.place_query
    end
    if args.place_id then args.place_query = nil end
    return args
  end,

  run = function(args)
    local found = {}
    for _, place in ipairs(people.places) do
      local matches = place.id == args.place_id
      if args.place_query then
        matches = holds(place.name, args.place_query) or holds(place.address, args.place_query)
      end
      if matches then
        found[#found + 1] = { id = place.id, name = place.name, address = place.address,
                              contacts = contacts_at(place) }
      end
    end
    return { places = found }
  end,

  result = function(result)
    if #result.places == 0 then
      return garbage("no_such_place", "no place matches", "Search for one word of its name, or for its street.")
    end
    return ok { coverage = "SATISFIED", facts = { places = #result.places } }
  end,

  examples = {
    { "by name",   args = { place_query = "boulder" }, gives = "pass" },
    { "by street", args = { place_query = "Mill Street" }, gives = "pass" },
    { "an id in place_query is moved",
      args = { place_query = "p1" }, seen = { "p1" }, gives = "pass", becomes = { place_id = "p1" } },
    { "place_query beside an id is dropped",
      args = { place_id = "p1", place_query = "Boulder Hall" }, seen = { "p1" },
      gives = "pass", becomes = { place_id = "p1" } },
    { "no place given",
      args = {}, gives = "repair", says = "place_query" },
    { "an invented id is refused",
      args = { place_id = "boulder-hall" }, goal = "Who goes to Boulder Hall?", gives = "refuse fabricated_id" },
    { "an unknown place",
      args = { place_query = "airport" }, gives = "semantic_garbage no_such_place" },
  },
}
