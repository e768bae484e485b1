-- Files that a coding assistant does not write: secrets, keys, what git runs. Of its own settings and hooks the user decides.
-- Paths are compared in lower case: some file systems take capitals for the same.
local shell = require "lib.shell"

local M = {}

-- Lua patterns over "/path". The first that fits decides; `open` ones may be written.
local PLACES = {
  { "/%.env%.example$", open = true }, { "/%.env%.sample$", open = true }, { "/%.env%.template$", open = true },
  { "/%.env$", "holds secrets" }, { "/%.env%.[^/]*$", "holds secrets" }, { "/%.envrc$", "holds secrets" },
  { "%.pub$", open = true },
  { "/%.ssh/", "holds keys" }, { "/%.gnupg/", "holds keys" }, { "/%.aws/credentials$", "holds keys" },
  { "%.pem$", "holds keys" }, { "%.key$", "holds keys" }, { "%.p12$", "holds keys" }, { "%.pfx$", "holds keys" },
  { "%.keystore$", "holds keys" }, { "/id_rsa$", "holds keys" }, { "/id_ecdsa$", "holds keys" }, { "/id_ed25519$", "holds keys" },
  { "/%.git/hooks/", "is run by git" }, { "/%.git/hooks$", "is run by git" }, { "/%.git/config$", "tells git what to run" },
  { "/%.claude/settings[^/]*%.json$", "checks the assistant", asks = true },
  { "/%.claude/hooks/", "checks the assistant", asks = true }, { "/%.claude/hooks$", "checks the assistant", asks = true },
  { "/%.codex/config%.toml$", "checks the assistant", asks = true },
  { "/%.codex/hooks", "checks the assistant", asks = true },
  { "/%.gemini/settings%.json$", "checks the assistant", asks = true },
  { "/%.claude%.json$", "names the programs that the assistant runs", asks = true },
  { "/%.mcp%.json$", "names the programs that the assistant runs", asks = true },
}

local ETC = { "^/etc/", "belongs to the system" }

local function place_of(path, of_the_system)
  path = ("/" .. path:lower():gsub("\\", "/")):gsub("^/+", "/") -- an assistant on Windows sends C:\project\.env
  for _, place in ipairs(PLACES) do
    if path:find(place[1]) then return not place.open and place or nil end
  end
  return of_the_system and path:find(ETC[1]) and ETC or nil
end

-- The verdict about writing all of `paths`, or nil: the first that is refused, else the first that the user decides.
function M.writes(paths, of_the_system)
  local asked, what
  for _, path in ipairs(paths) do
    path = shell.path({}, path)
    local place = place_of(path, of_the_system)
    if place and not place.asks then
      return refuse("protected_path", path .. " " .. place[2] .. " and is not written by an agent",
                    "Tell the user what to change in it.")
    end
    if place and not asked then asked, what = path, place[2] end
  end
  if asked then return ask(asked .. " " .. what .. ". May the agent change it?", { "Change it", "Leave it as it is" }) end
end

-- The verdict about an editor's write to `path`, which may not be the system's either.
function M.edit(path) return M.writes({ path }, true) end

-- The paths that a patch in Codex' format adds, changes, deletes or moves to.
function M.paths_of_patch(text)
  local paths = {}
  for line in ("\n" .. text):gmatch "\n(%*%*%* [^\r\n]+)" do
    local path = line:match "^%*%*%* %a+ File: (.*)" or line:match "^%*%*%* Move to: (.*)"
    paths[#paths + 1] = path and (path:match "^.*%S" or "")
  end
  return paths
end

return M
