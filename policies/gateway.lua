-- gateway: what every agent is told when it connects, and which tools it sees.
-- Shows: prepare_tools. With a goal known, a tool that changes something is shown only if the goal speaks of it: an
-- agent that was asked a question has no way to unlock a door. Tools that only read are always there, and without a
-- goal everything is.

local changing = {
  create_task    = { "task", "todo", "to do", "remind", "note", "write down", "plan", "project" },
  home_assistant = { "house", "home", "light", "lamp", "heat", "warm", "cold", "temperature", "door", "lock", "alarm",
                     "turn on", "turn off", "switch" },
}

local function speaks_of(goal, words)
  for _, word in ipairs(words) do
    if goal:find(word, 1, true) then return true end
  end
  return false
end

return gateway {
  instructions = "These tools check every call. When one is refused, the answer says what was wrong and what to do: "
              .. "follow it, and do not repeat the same call unchanged. Use only ids that a tool or the user gave you.",

  prepare_tools = function(defs, call)
    if not call.goal or call.goal == "" then return defs end
    local goal, shown = call.goal:lower(), {}
    for _, def in ipairs(defs) do
      local words = changing[def.name]
      if not words or speaks_of(goal, words) then shown[#shown + 1] = def end
    end
    return shown
  end,
}
