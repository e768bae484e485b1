-- home_assistant: controls lamps, heating, locks and the alarm, as tools within a tool. Everyone may call it, but it
-- unlocks a door or disarms the alarm only if the user's own words ask for it.
-- Shows: ask. The model gets a question with choices for the user, and the call does not run until the user confirms.

local tools = {
  { name = "light_turn_on",   description = "Switch a light on",      needs = { "entity_id" } },
  { name = "light_turn_off",  description = "Switch a light off",     needs = { "entity_id" } },
  { name = "climate_set",     description = "Set a room's heating",   needs = { "entity_id", "temperature" } },
  { name = "lock_unlock",     description = "Unlock a door",          needs = { "entity_id" },
    asks = "Unlock it, so that anybody can come in?", words = { "unlock" } },
  { name = "alarm_disarm",    description = "Switch the alarm off",   needs = {},
    asks = "Switch the alarm off?", words = { "disarm", "alarm off" } },
}

local function named(name)
  for _, inner in ipairs(tools) do
    if inner.name == name then return inner end
  end
end

local function listed()
  local list = {}
  for at, inner in ipairs(tools) do
    list[at] = { name = inner.name, description = inner.description, needs = inner.needs }
  end
  return { tools = list }
end

local function all_names()
  local names = {}
  for at, inner in ipairs(tools) do names[at] = inner.name end
  return table.concat(names, ", ")
end

-- One problem for each argument that the inner tool needs and the call lacks.
local function missing(inner, given)
  local problems = {}
  for _, name in ipairs(inner.needs) do
    if given[name] == nil then
      problems[#problems + 1] = { path = "arguments." .. name, code = "missing",
                                  message = "required by " .. inner.name .. " — provide a value" }
    end
  end
  return problems
end

local function target_of(arguments)
  return arguments.entity_id and " (" .. arguments.entity_id .. ")" or ""
end

-- Whether the user's words mention the action; false without a goal.
local function asked_for(inner, goal)
  for _, word in ipairs(inner.words) do
    if goal and goal:lower():find(word, 1, true) then return true end
  end
  return false
end

return tool "home_assistant" {
  title       = "House",
  description = "Control the house: list_tools lists the actions, call_tool runs one.",
  use_when    = "the user wants something switched, set, locked or unlocked at home",
  effects     = "write",

  schema = json [[{
    "type": "object",
    "properties": {
      "action":    { "type": "string", "enum": ["list_tools", "call_tool"],
                     "description": "list_tools first, then call_tool with one of its names" },
      "tool_name": { "type": "string", "description": "call_tool: a name that list_tools gave" },
      "arguments": { "type": "object", "description": "call_tool: that tool's own arguments",
                     "properties": {
                       "entity_id":   { "type": "string", "description": "what to act on, e.g. \"light.kitchen\"" },
                       "temperature": { "type": "number", "minimum": 5, "maximum": 30, "description": "°C" } } }
    },
    "required": ["action"],
    "additionalProperties": false
  }]],

  rules = {
    when { action = "call_tool" }  : needs "tool_name" : defaults { arguments = {} },
    when { action = "list_tools" } : drops "tool_name, arguments",
  },

  check = function(args, call)
    if args.action == "list_tools" then return end
    local inner = named(args.tool_name)
    if not inner then
      return repair { path = "tool_name", code = "unknown_inner_tool", message = "must be one of " .. all_names() }
    end
    local problems = missing(inner, args.arguments)
    if #problems > 0 then return repair(problems) end
    if inner.asks and not asked_for(inner, call.goal) then
      return ask(inner.asks .. target_of(args.arguments), { "yes, " .. inner.words[1], "no, leave it as it is" })
    end
  end,

  run = function(args)
    if args.action == "list_tools" then return listed() end
    return { done = args.tool_name, entity_id = args.arguments.entity_id }
  end,

  examples = {
    { "list the actions",
      args = { action = "list_tools" }, gives = "pass" },
    { "list_tools drops a name",
      args = { action = "list_tools", tool_name = "light_turn_on" }, gives = "pass", becomes = { action = "list_tools" } },
    { "a lamp needs no question",
      args = { action = "call_tool", tool_name = "light_turn_on", arguments = { entity_id = "light.kitchen" } },
      gives = "pass" },
    { "arguments sent as a string are parsed",
      args = { action = "call_tool", tool_name = "light_turn_on", arguments = '{"entity_id":"light.kitchen"}' },
      gives = "pass",
      becomes = { action = "call_tool", tool_name = "light_turn_on", arguments = { entity_id = "light.kitchen" } } },
    { "call_tool needs a name",
      args = { action = "call_tool" }, gives = "repair", says = "tool_name" },
    { "an unknown inner tool",
      args = { action = "call_tool", tool_name = "light_on", arguments = { entity_id = "light.kitchen" } },
      gives = "repair", says = "light_turn_on" },
    { "a missing argument of the inner tool",
      args = { action = "call_tool", tool_name = "climate_set", arguments = { entity_id = "climate.office" } },
      gives = "repair", says = "arguments.temperature" },
    { "a door is unlocked if the user asked for it",
      args = { action = "call_tool", tool_name = "lock_unlock", arguments = { entity_id = "lock.front_door" } },
      goal = "Please unlock the front door, Ana is outside", gives = "pass" },
    { "heating is set without a question",
      args = { action = "call_tool", tool_name = "climate_set", arguments = { entity_id = "climate.office", temperature = 21 } },
      gives = "pass" },
    { "the alarm is disarmed if the user asked for it",
      args = { action = "call_tool", tool_name = "alarm_disarm" }, goal = "Switch the alarm off, I am home", gives = "pass" },
    { "and not otherwise",
      args = { action = "call_tool", tool_name = "alarm_disarm" }, goal = "I am home, lights please",
      gives = "ask need_user_input", says = "Switch the alarm off?" },
    { "otherwise toolgate asks the user",
      args = { action = "call_tool", tool_name = "lock_unlock", arguments = { entity_id = "lock.front_door" } },
      goal = "Get the house ready for the evening", gives = "ask need_user_input",
      says = "Unlock it, so that anybody can come in? (lock.front_door)" },
  },
}
