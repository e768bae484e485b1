-- lookup_contact_places: the places where people live, work and go. Everyone may call it; it only reads.
-- Shows: exactly one of several arguments. Three of them identify people, and the model must send one.

local people = json "fixtures/people.json"

local function holds(text, words)
  return text:lower():find(words:lower(), 1, true) ~= nil
end

local function in_group(contact, words)
  for _, group in ipairs(contact.groups) do
    if holds(group, words) then return true end
  end
  return false
end

local function matches(contact, args)
  if args.contact_id then return contact.id == args.contact_id end
  if args.contact_query then return holds(contact.name, args.contact_query) end
  return in_group(contact, args.group_query)
end

local function place_of(link)
  for _, place in ipairs(people.places) do
    if place.id == link.place_id then
      return { id = place.id, name = place.name, address = place.address, as = link.as }
    end
  end
end

local function places_of(contact)
  local found = {}
  for _, link in ipairs(people.links) do
    if link.contact_id == contact.id then found[#found + 1] = place_of(link) end
  end
  return found
end

return tool "lookup_contact_places" {
  title       = "Places of people",
  description = "Find the addresses of one person or of everyone in a group: home, work, and where they train or go.",
  use_when    = "you know the people, not the places",
  avoid_when  = "you know the place and need the people: use lookup_place_contacts",
  effects     = "read",
  ids         = { contact_id = seen { look_up = "lookup_contact, or use contact_query instead" } },
  gives_ids   = { "contacts[].id", "contacts[].places[].id" },

  schema = json [[{
    "type": "object",
    "properties": {
      "contact_id":    { "type": "string", "description": "one person, by an id from an earlier result" },
      "contact_query": { "type": "string", "minLength": 2, "description": "one person, by a part of the name" },
      "group_query":   { "type": "string", "minLength": 2, "description": "everyone in a group, e.g. \"climbing\"" }
    },
    "additionalProperties": false
  }]],

  rules = {
    needs_one_of { "contact_id", "contact_query", "group_query" },
    exclusive    { "contact_id", "contact_query", "group_query" },
  },

  run = function(args)
    local found = {}
    for _, contact in ipairs(people.contacts) do
      if matches(contact, args) then
        found[#found + 1] = { id = contact.id, name = contact.name, places = places_of(contact) }
      end
    end
    return { contacts = found }
  end,

  -- If several people match a name, the user decides, not the model.
  result = function(result, call)
    local found = result.contacts
    if #found == 0 then
      return garbage("nobody_found", "no contact or group matches", "Find the person with lookup_contact first.")
    end
    if call.args.contact_query and #found > 1 then
      local choices = {}
      for at, contact in ipairs(found) do choices[at] = contact.name .. " (" .. contact.id .. ")" end
      return need_user("Which " .. call.args.contact_query .. " do you mean?", choices)
    end
    return ok { coverage = "SATISFIED", facts = { contacts = #found } }
  end,

  examples = {
    { "one person by name",       args = { contact_query = "Chloe" },   gives = "pass" },
    { "a whole group",            args = { group_query = "climbing" },  gives = "pass" },
    { "one person by a known id", args = { contact_id = "c1" }, seen = { "c1" }, gives = "pass" },
    { "no person and no group",
      args = {}, gives = "repair", says = "group_query" },
    { "two arguments at once",
      args = { contact_query = "Ana", group_query = "family" }, gives = "repair", says = "contact_query" },
    { "an invented id is refused",
      args = { contact_id = "contact_001" }, goal = "Where does Ana live?", gives = "refuse fabricated_id" },
    { "two Bens: the user decides",
      args = { contact_query = "Ben" }, gives = "ask need_user_input", says = "Which Ben do you mean?" },
  },
}
