-- gateway: the instructions that every agent gets when it connects, and the tools that it sees.
-- Shows: prepare_tools. If the goal is known, a tool that changes something is listed only if the goal mentions it, so
-- an agent that was asked a question cannot unlock a door. Without a goal, and for tools that only read, nothing is
-- hidden.

local changing = {
  create_task    = { "task", "todo", "to do", "remind", "note", "write down", "plan", "project" },
  home_assistant = { "house", "home", "light", "lamp", "heat", "warm", "cold", "temperature", "door", "lock", "alarm",
                     "turn on", "turn off", "switch" },
}

local function mentions(goal, words)
  for _, word in ipairs(words) do
    if goal:find(word, 1, true) then return true end
  end
  return false
end

return gateway {
  instructions = "Every call is checked. If a call is refused, the reply states the reason and the next step: follow it, "
              .. "and do not repeat the call unchanged. Use only ids that a tool or the user gave you.",

  prepare_tools = function(defs, call)
    if not call.goal or call.goal == "" then return defs end
    local goal, shown = call.goal:lower(), {}
    for _, def in ipairs(defs) do
      local words = changing[def.name]
      if not words or mentions(goal, words) then shown[#shown + 1] = def end
    end
    return shown
  end,
}
