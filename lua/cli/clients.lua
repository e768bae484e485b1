-- The MCP clients whose files `toolgate attach` changes: where these are, where servers are in them, and what an entry
-- says. A section: { id, style, cwd, value (JSON) } or, in TOML, the tables below mcp_servers.
local jsonc = require "jsonc"
local ui = require "ui"
local clients = {}

-- `project`: the file belongs to the folder that is so many names above it. Paths are below HOME, or the working directory.
local FILES = {
  { "claude-code", home = { ".claude.json" }, here = { ".mcp.json" } },
  { "claude-desktop", home = { ".config/Claude/claude_desktop_config.json",
                               "Library/Application Support/Claude/claude_desktop_config.json" } },
  { "cursor", home = { ".cursor/mcp.json" }, here = { ".cursor/mcp.json" } },
  { "vscode", home = { ".config/Code/User/mcp.json" }, here = { ".vscode/mcp.json" } },
  { "windsurf", home = { ".codeium/windsurf/mcp_config.json" } },
  { "codex", home = { ".codex/config.toml" }, here = { ".codex/config.toml" } },
  { "gemini", home = { ".gemini/settings.json" }, here = { ".gemini/settings.json" } },
  { "opencode", home = { ".config/opencode/opencode.json", ".config/opencode/opencode.jsonc" },
    here = { "opencode.json", "opencode.jsonc" } },
  { "zed", home = { ".config/zed/settings.json" }, here = { ".zed/settings.json" } },
}

-- Where each assistant has its hooks, and the word for --client.
local HOOKS = {
  { "claude", ".claude/settings.json", "claude%-code" }, { "codex", ".codex/hooks.json", "codex" },
  { "gemini", ".gemini/settings.json", "gemini" },
}

local function ends_with(path, tail) return path:sub(-#tail - 1) == "/" .. tail end

-- Its client, and the folder in which its servers start: the project's, else the user's.
function clients.of_file(path, home)
  for _, row in ipairs(FILES) do
    for _, tail in ipairs(row.home) do
      if path == home .. "/" .. tail then return row[1], home end
    end
    for _, tail in ipairs(row.here or {}) do
      if ends_with(path, tail) then return row[1], path:sub(1, -#tail - 2) end
    end
  end
  return "mcp", path:match "^(.*)/" ~= "" and path:match "^(.*)/" or "/"
end

-- The files that there are, for this user and this folder.
function clients.find(home, here)
  local out, seen = {}, {}
  local function add(path)
    local real = cli.real_path(path)
    if real and not seen[real] then seen[real], out[#out + 1] = true, path end
  end
  for _, row in ipairs(FILES) do
    for _, tail in ipairs(row.home) do add(home .. "/" .. tail) end
    for _, tail in ipairs(here ~= home and row.here or {}) do add(here .. "/" .. tail) end
  end
  return out
end

-- The files of hooks of the assistants that this user has.
function clients.find_hooks(home)
  local out = {}
  for _, row in ipairs(HOOKS) do
    if cli.access(home .. "/" .. row[2]:match "^[^/]+", "") then out[#out + 1] = home .. "/" .. row[2] end
  end
  return out
end

-- The --client of a file of hooks.
function clients.hook_client(path)
  for _, row in ipairs(HOOKS) do
    if path:find("/" .. row[2]:match "^[^/]+", 1, true) and path:find "%.json$" then return row[1] end
  end
end

-- The sections of JSON that have servers.
function clients.sections(root, cwd)
  local out = {}
  local function add(id, style, value, folder)
    if value and value.kind == "object" then
      out[#out + 1] = { id = id, style = style, value = value, cwd = folder or cwd }
    end
  end
  add("mcpServers", "plain", jsonc.get(root, "mcpServers"))
  add("servers", "vscode", jsonc.get(root, "servers"))
  add("context_servers", "zed", jsonc.get(root, "context_servers"))
  local mcp = jsonc.get(root, "mcp")
  local inner = jsonc.get(mcp, "servers")
  if inner and not jsonc.get(inner, "type") then add("mcp.servers", "vscode", inner) else add("mcp", "opencode", mcp) end
  local projects = jsonc.get(root, "projects")
  for _, project in ipairs(projects and projects.kind == "object" and projects.list or {}) do
    add("projects " .. project.key, "plain", jsonc.get(project.value, "mcpServers"), project.key)
  end
  return out
end

-- ---- entries ----

local function without_dots(path, cwd)
  if path:find "^%./" then path = path:sub(3) end
  return cwd .. "/" .. path
end

local function text_of(value, cwd)
  return (value:gsub("%${workspaceFolder}", (cwd:gsub("%%", "%%%%"))):gsub("%${env:([%w_]+)}", "${%1}"))
end

local function strings(value, cwd)
  if type(value) == "string" then return text_of(value, cwd) end
  if type(value) ~= "table" then return value end
  for key, item in pairs(value) do value[key] = strings(item, cwd) end
  return value
end

-- opencode has the words of the command in one list, Zed had an object, Codex names variables.
local function to_plain(entry)
  local command = entry.command
  if type(command) == "table" and command.path then
    entry.command, entry.args, entry.env = command.path, command.args, command.env
  elseif type(command) == "table" then
    local args = cli.array {}
    for i = 2, #command do args[i - 1] = command[i] end
    for _, word in ipairs(ui.table(entry.args)) do args[#args + 1] = word end
    entry.command, entry.args = command[1], args
  end
  entry.env = entry.env or entry.environment
  entry.headers = entry.headers or entry.http_headers
  local function add(member, key, form, name)
    if type(name) ~= "string" then return end
    entry[member] = ui.table(entry[member])
    entry[member][key] = form:format(name)
  end
  for header, name in pairs(ui.table(entry.env_http_headers)) do add("headers", header, "${%s}", name) end
  add("headers", "Authorization", "Bearer ${%s}", entry.bearer_token_env_var)
  for _, name in ipairs(ui.table(entry.env_vars)) do add("env", name, "${%s:-}", name) end
  for _, key in ipairs { "env_http_headers", "http_headers", "bearer_token_env_var", "env_vars", "source", "environment",
                         "required" } do
    entry[key] = nil
  end
  if entry.type == "local" or entry.type == "remote" then entry.type = nil end
  return entry
end

-- The command line of this program in a file: `toolgate connect …`.
function clients.is_toolgate(entry)
  if type(entry) ~= "table" then return false end
  local command, args = entry.command, entry.args or {}
  if type(command) == "table" then command, args = command.path or command[1], command.args or command end
  if type(command) ~= "string" or command:match "[^/]*$" ~= "toolgate" then return false end
  local connects = false
  for i, word in ipairs(ui.table(args)) do
    if word == "--servers" then return true, args[i + 1] end
    connects = connects or word == "connect"
  end
  return connects
end

-- The entry as the daemon reads it; nil and why it stays where it is (nil: nothing to say).
function clients.convert(entry, raw, cwd)
  if type(entry) ~= "table" or clients.is_toolgate(entry) then return nil end
  if entry.disabled == true or entry.enabled == false then return nil end
  local asks = raw:match "%${(input:[^}]*)}" or raw:match "%${(command:[^}]*)}" or raw:match "%${(config:[^}]*)}"
  if asks then return nil, "only the client knows ${" .. asks .. "}" end
  if entry.envFile then return nil, "it reads an envFile" end
  local out = strings(to_plain(entry), cwd)
  local url = out.url or out.serverUrl or out.httpUrl
  if out.type == "sse" or out.transport == "sse" then return nil, "toolgate has no transport sse" end
  if type(out.command) ~= "string" and type(url) ~= "string" then return nil, "it has neither a command nor a url" end
  if type(out.command) == "string" then
    if out.command:find "/" and not out.command:find "^[/~$]" then out.command = without_dots(out.command, cwd) end
    if type(out.cwd) ~= "string" then out.cwd = cwd elseif not out.cwd:find "^[/~$]" then out.cwd = without_dots(out.cwd, cwd) end
  end
  return out
end

-- Programs that start a server for each conversation. Others keep one for all: its calls must not count as one session's.
local IS_ONE_CONVERSATION = { ["claude-code"] = true, codex = true, gemini = true, opencode = true }

-- The words of `toolgate connect`, as a list's inside of JSON or TOML.
function clients.words(client, name)
  local words = { "connect", "--servers", name }
  if IS_ONE_CONVERSATION[client] then words[4], words[5] = "--session", "auto" end
  for i, word in ipairs(words) do words[i] = cli.quote(word) end
  return table.concat(words, ", ")
end

-- What stands in its place, as JSON.
function clients.entry(style, program, list)
  if style == "opencode" then
    return ('{ "type": "local", "command": [%s, %s], "enabled": true }'):format(cli.quote(program), list)
  end
  return ('{ %s"command": %s, "args": [%s] }'):format(style == "vscode" and '"type": "stdio", ' or "", cli.quote(program), list)
end

return clients
