-- Where the assistants of this user keep their sessions, and what is there. Only regular files of this user are named: no
-- links, pipes or devices. Only databases are opened.
local database = require "replay/database"

local FILES_MAX = 100000
local DEPTH_MAX = 8
local DAY_MS = 86400000

-- `database`: SQLite files, and what reads them.
local PLACES = {
  { "Claude Code", ".claude/projects", "%.jsonl$" },
  { "Codex", ".codex/sessions", "%.jsonl[.zst]*$" }, -- also compressed
  { "gemini-cli", ".gemini/tmp", "/chats/.*%.jsonl?$" },
  { "opencode", ".local/share/opencode", "/storage/part/.*%.json$", database = { "/opencode%.db$", database.opencode } },
  { "goose", ".local/share/goose/sessions", "%.jsonl$", database = { "/sessions%.db$", database.goose } },
  { "pi", ".pi/agent/sessions", "%.jsonl$" },
  { "Cline", ".cline/data/sessions", "%.messages%.json$" },
}
for _, editor in ipairs { "Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf" } do
  for name, extension in pairs { Cline = "saoudrizwan.claude-dev", ["Roo Code"] = "rooveterinaryinc.roo-cline" } do
    PLACES[#PLACES + 1] = { name, (".config/%s/User/globalStorage/%s/tasks"):format(editor, extension),
                            "/api_conversation_history%.json$" }
  end
end

-- Calls visit(path, look) with each regular file of this user below the folder, and visit(path) with what is left out: links,
-- pipes, what others own, folders that may not be read. `left` counts down what may be visited.
local function walk(folder, visit, left, depth)
  local names = cli.list_folder(folder)
  table.sort(names)
  if not names[1] and cli.stat(folder, true) then return visit(folder) end -- a folder has at least "." and ".."
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name
    local look = name ~= "." and name ~= ".." and cli.stat(path, true)
    if left.files == 0 then return end
    if look and look.kind == "folder" and look.uid == cli.uid and depth < DEPTH_MAX then
      walk(path, visit, left, depth + 1)
    elseif look then
      left.files = left.files - 1
      visit(path, look.kind == "file" and look.uid == cli.uid and look or nil)
    end
  end
end

-- What is there of the last days: the files, the oldest first, and { assistant, folder, files, older, bytes, newest, unread,
-- why, left_out } of each place that has any. The third result: what a path is called that is not a file's own.
return function(home, days)
  local since, files, found, left = cli.now() - days * DAY_MS, {}, {}, { files = FILES_MAX }
  local function take(entry, path, look, shown)
    entry.files, entry.bytes = entry.files + 1, entry.bytes + look.size
    entry.newest = math.max(entry.newest or 0, look.at)
    files[#files + 1] = { path = path, at = look.at, shown = shown }
  end
  for _, place in ipairs(PLACES) do
    local folder = home .. "/" .. place[2]
    local entry = { assistant = place[1], folder = folder, files = 0, older = 0, bytes = 0, unread = 0, left_out = 0 }
    walk(folder, function(path, look)
      local linked = not look and cli.stat(path)
      if not look then
        entry.left_out = entry.left_out + ((path:find(place[3]) or linked and linked.kind == "folder") and 1 or 0)
      elseif place.database and path:find(place.database[1]) then
        local lines, why = database.lines(place.database[2], path, since)
        if lines then take(entry, lines, look, path) end
        if why then entry.unread, entry.why = entry.unread + 1, why end
      elseif path:find(place[3]) and look.size > 0 then
        if look.at < since then
          entry.older = entry.older + 1
        else
          take(entry, path, look)
        end
      end
    end, left, 1)
    if entry.files + entry.older + entry.unread + entry.left_out > 0 then found[#found + 1] = entry end
  end
  table.sort(files, function(a, b) return a.at < b.at or (a.at == b.at and a.path < b.path) end)
  local shown = {}
  for i, file in ipairs(files) do files[i], shown[file.path] = file.path, file.shown end
  return files, found, shown, left.files == 0 and FILES_MAX
end
