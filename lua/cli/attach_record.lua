-- What `toolgate attach` remembers of each file, in ~/.config/toolgate/attached/NAME: `original` and `attached` are the
-- file's bytes, `about.json` says which file it is, which servers.d files are its own, and the command of its hooks.
local jsonc = require "jsonc"
local own = require "own_daemon"
local record = {}

local PRIVATE = 384 -- 0600

local function folder() return own.config_folder() .. "/attached" end

local function read(path) return (cli.file(path)) end

local function write(path, text)
  local written, why = cli.replace_file(path, text, PRIVATE)
  if not written then error({ words = path .. ": " .. why }, 0) end
end

-- All of them: { name, original, attached, about = { file, sections, hook, created } }.
function record.all()
  local out = {}
  for _, name in ipairs(cli.list_folder(folder())) do
    local at = folder() .. "/" .. name
    local about = cli.parse(name:sub(1, 1) ~= "." and read(at .. "/about.json") or "")
    if type(about) == "table" and type(about.file) == "string" and type(about.sections) == "table" then
      out[#out + 1] = { name = name, original = read(at .. "/original") or "", attached = read(at .. "/attached") or "",
                        about = about }
    end
  end
  table.sort(out, function(a, b) return a.about.file < b.about.file end)
  return out
end

function record.of_file(path)
  for _, one in ipairs(record.all()) do
    if one.about.file == path then return one end
  end
end

function record.server_file(name) return own.servers_folder() .. "/" .. name .. ".json" end

-- An error is a table with `words`: nothing of the client has been touched.
function record.keep(one)
  local at = folder() .. "/" .. one.name
  for _, path in ipairs { at, own.servers_folder() } do
    local made, why = own.make_folders(path)
    if not made then error({ words = why }, 0) end
  end
  for name, text in pairs(one.servers or {}) do write(record.server_file(name), text) end
  write(at .. "/original", one.original)
  write(at .. "/attached", one.attached)
  write(at .. "/about.json", cli.json(one.about) .. "\n")
end

-- `keeps_original`: what cannot be given back stays where its user finds it.
function record.forget(one, keeps_original)
  local at = folder() .. "/" .. one.name
  for name in pairs(one.about.sections) do os.remove(record.server_file(name)) end
  os.remove(at .. "/about.json")
  os.remove(at .. "/attached")
  if keeps_original then return at .. "/original" end
  os.remove(at .. "/original")
  os.remove(at)
end

-- The names of upstreams in files of others.
function record.taken_names(except)
  local taken, own_files = {}, {}
  for name in pairs(except and except.about.sections or {}) do own_files[name .. ".json"] = true end
  for _, file in ipairs(cli.list_folder(own.servers_folder())) do
    local text = not own_files[file] and file:find "%.json$" and read(own.servers_folder() .. "/" .. file)
    local servers = text and jsonc.get(jsonc.read(text), "mcpServers")
    for _, item in ipairs(servers and servers.kind == "object" and servers.list or {}) do taken[item.key] = true end
  end
  return taken
end

-- A NAME that no file has: of the client and the folder.
function record.free_name(client, cwd, home, used)
  local base = client
  if cwd ~= home then base = base .. "-" .. (cwd:match "[^/]+$" or "root") end
  base = base:gsub("[^%w_-]", "-"):sub(1, 48)
  local name, n = base, 1
  local function exists(it)
    return used[it] or cli.access(record.server_file(it), "") or cli.access(folder() .. "/" .. it, "")
  end
  while exists(name) do n = n + 1 name = base .. "-" .. n end
  used[name] = true
  return name
end

return record
