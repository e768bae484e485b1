-- Files that a coding assistant does not write: secrets, what git keeps, and the settings that hook it to the gateway.
local M = {}

local protected = {
  { "%.env$", "holds secrets" },
  { "%.env%.[^/]*$", "holds secrets" },
  { "/%.ssh/", "holds keys" },
  { "%.pem$", "holds keys" },
  { "/%.git/", "belongs to git" },
  { "/%.claude/settings[^/]*%.json$", "holds the hooks that check you" },
  { "/%.codex/", "holds the hooks that check you" },
  { "^/etc/", "belongs to the system" },
}

-- The refusal of a write to `path`, or nil. Some file systems take capitals for the same.
function M.refusal(path)
  path = path:lower():gsub("/%./", "/")
  if ("/" .. path .. "/"):find("/../", 1, true) then
    return refuse("path_leads_up", "a path with .. can lead anywhere", "Give the path without '..'.")
  end
  for _, one in ipairs(protected) do
    if path:find(one[1]) or ("/" .. path):find(one[1]) then
      return refuse("protected_path", "this file " .. one[2] .. " and is not written by an agent",
                    "Tell the user what to change in it.")
    end
  end
end

return M
