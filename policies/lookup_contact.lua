-- lookup_contact: finds people by name, or reads one by id. Everyone may call it; it only reads.
-- Shows: seen ids. The model may use an id that a tool or the user gave, not an invented one.

local people = json "fixtures/people.json"

local function holds(text, words)
  return text:lower():find(words:lower(), 1, true) ~= nil
end

local function with_id(id)
  for _, contact in ipairs(people.contacts) do
    if contact.id == id then return { contact } end
  end
  return {}
end

local function matching(query)
  local found = {}
  for _, contact in ipairs(people.contacts) do
    if holds(contact.name, query) or holds(contact.email, query) then
      found[#found + 1] = { id = contact.id, name = contact.name }
    end
  end
  return found
end

return tool "lookup_contact" {
  title       = "Contacts",
  description = "Find people in the address book by name or email (search), or read one in full (get).",
  use_when    = "you need a person's id, email, phone number or groups",
  avoid_when  = "you need a person's address: use lookup_contact_places",
  effects     = "read",
  ids         = { contact_id = seen { look_up = "lookup_contact, action search" } },
  gives_ids   = { "contacts[].id" },

  schema = json [[{
    "type": "object",
    "properties": {
      "action":     { "type": "string", "enum": ["search", "get"],
                      "description": "search finds ids and names; get reads one in full" },
      "query":      { "type": "string", "minLength": 2,
                      "description": "search: a part of the name or email, e.g. \"Ana\"" },
      "contact_id": { "type": "string",
                      "description": "get: an id from an earlier result, e.g. \"c1\"" }
    },
    "required": ["action"],
    "additionalProperties": false
  }]],

  rules = {
    when { action = "search" } : needs "query"      : drops "contact_id",
    when { action = "get" }    : needs "contact_id" : drops "query",
  },

  run = function(args)
    if args.action == "get" then return { contacts = with_id(args.contact_id) } end
    return { contacts = matching(args.query) }
  end,

  result = function(result, call)
    local found = result.contacts
    if #found == 0 then
      return garbage("nobody_found", "no contact matches", "Search for a shorter part of the name.")
    end
    if call.args.action == "search" and #found == 1 then
      return ok {
        coverage = "NEEDS_MORE_TOOLS",
        follow_up = { tool = "lookup_contact", args = { action = "get", contact_id = found[1].id } },
      }
    end
    return ok { coverage = "SATISFIED", facts = { contacts = #found } }
  end,

  examples = {
    { "one match: the result names the next call, with the id",
      args = { action = "search", query = "ana" }, gives = "pass", says = "c1" },
    { "several people with one name are a valid result",
      args = { action = "search", query = "Ben" }, gives = "pass" },
    { "get with an id from a search",
      args = { action = "get", contact_id = "c1" }, seen = { "c1" }, gives = "pass" },
    { "get with an id that the user gave",
      args = { action = "get", contact_id = "c2" }, goal = "What is the phone number of c2?", gives = "pass" },
    { "capitals in the action are repaired, and get drops query",
      args = { action = "GET", contact_id = "c1", query = "Ana" }, seen = { "c1" },
      gives = "pass", becomes = { action = "get", contact_id = "c1" } },
    { "search needs query",
      args = { action = "search", contact_id = "c1" }, gives = "repair", says = "query" },
    { "get needs an id",
      args = { action = "get", query = "Ana" }, gives = "repair", says = "contact_id" },
    { "an invented id is refused",
      args = { action = "get", contact_id = "ana-ferreira" }, goal = "What is Ana's phone number?",
      gives = "refuse fabricated_id", says = "search" },
    { "nobody with that name",
      args = { action = "search", query = "Zacharias" },
      gives = "semantic_garbage nobody_found", says = "shorter" },
  },
}
