-- toolgate tools: lists the tools as a model sees them, from files or from the running daemon.
local ui = require "ui"

local DESCRIPTION_BYTES  = 100 -- in the list for people
local NAME_COLUMNS       = 128 -- a longer name is cut
local DESCRIPTION_COLUMN = 24

local function cut(words, bytes) return #words <= bytes and words or cli.cut(words, bytes):gsub("%s+$", "") .. "…" end

-- "  [upstream docs, there find]"
local function place_of(name, place)
  local kind, upstream, there = ui.text(place.kind), ui.text(place.upstream), ui.text(place.tool)
  if kind == "" then return "" end
  local who = upstream ~= "" and "upstream " or kind == "exec" and "a command" or "an HTTP endpoint"
  if there ~= "" and there ~= name then upstream = upstream .. ", there " .. ui.clip(there, NAME_COLUMNS) end
  return ui.dim("  [" .. who .. upstream .. "]")
end

-- "  [guarded by policies/paths.lua]": files of several tools; its own is named after it.
local function guards_of(paths)
  if not ui.is_array(paths) then return "" end
  local shown = {}
  for i, path in ipairs(paths) do shown[i] = ui.text(path) end
  return ui.dim("  [guarded by " .. table.concat(shown, ", ") .. "]")
end

local function print_names(a)
  local places, guards, guesses = ui.table(a.runs_at), ui.table(a.guarded_by), ui.table(a.guessed_effects)
  local guessed = false
  for _, tool in ipairs(a.tools) do
    tool = ui.table(tool)
    local name, description = ui.text(tool.name), ui.text(tool.description):match "^[^\n]*"
    local shown, used = cli.clip(name, NAME_COLUMNS)
    io.write(ui.bold(shown), (" "):rep(DESCRIPTION_COLUMN - used), " ",
             ui.clip(cut(description, DESCRIPTION_BYTES), DESCRIPTION_BYTES + 1), place_of(name, ui.table(places[name])),
             guards_of(guards[name]))
    local effects = ui.text(guesses[name])
    if effects ~= "" then io.write(ui.dim("  [" .. effects .. "?]")) end
    guessed = guessed or effects ~= ""
    io.write "\n"
  end
  if guessed then
    io.stderr:write "[read?], [write?] and [destructive?] are guessed from the tool's name; "
    io.stderr:write 'declare effects = "…" in its policy.\n'
  end
end

-- One tool a line, as it was sent, and the whole is one JSON array.
local function print_array(json)
  local _, tools = cli.parse(json, true)
  io.write "[\n"
  for i, tool in ipairs(tools) do io.write(cli.shown_json(tool), i < #tools and ",\n" or "\n") end
  io.write "]\n"
end

-- A server that starts has yet to list its tools: without this line they would seem not to exist.
local function print_starting(status, tools)
  local names = {}
  for _, u in ipairs(ui.table(ui.table(status).upstreams)) do
    u = ui.table(u)
    local words = ui.text(u.last_stderr)
    if u.state == "starting" then
      names[#names + 1] = ui.text(u.name) .. (words ~= "" and " (it wrote last: " .. ui.clip(words, 200) .. ")" or "")
    end
  end
  if #names == 0 then return end
  io.stderr:write(ui.count(#tools, "tool"), ", ", ui.count(#names, "server"), #names == 1 and " is" or " are", " starting: ",
                  table.concat(names, ", "), "\n")
end

-- The daemon to ask: the one that is named; if no files are, the one of this user, if it runs.
local function find_daemon(o)
  if o.socket or o.config or o.policies or o.tools or o["mcp-config"] then return o.socket end
  local path = cli.default_socket()
  if not cli.ask(path, "toolgate/status", nil, "exact") then return nil end
  io.stderr:write("as the daemon at ", ui.clip(path, 200), " serves them; --policies DIR reads files\n")
  return path
end

-- What its provider's API would not have taken: one line a change, by the tool's name.
local function print_changes(warnings)
  for _, one in ipairs(ui.is_array(warnings) and warnings or {}) do
    one = ui.table(one)
    io.stderr:write(ui.clip(ui.text(one.tool), NAME_COLUMNS), ": ", cli.line(ui.text(one.text)), "\n")
  end
end

return command {
  name = "tools", summary = "list the tools as a model sees them",
  about = [[
Prints names and descriptions; with --format the definitions, in the form that a provider's API
takes; stderr lists what had to change for that. Asks the daemon, if one runs; with files named, or
without a daemon, loads what serve would.]],
  exits = [[
  0  the list is on stdout
  2  usage, files that do not load, no daemon]],
  example = [[
  toolgate tools --policies policies
  toolgate tools --format openai --strict --socket /tmp/toolgate.sock]],
  options = {
    choice { name = "format", letter = "f", argument = "mcp|openai|anthropic|gemini|mistral|bedrock",
             words = "print the definitions as JSON" },
    flag   { name = "strict", words = "openai: strict mode" },
    flag   { name = "json", letter = "j", words = "the same as --format mcp" },
    text   { name = "socket", letter = "s", argument = "PATH", words = "ask the daemon there" },
    files,
  },

  run = function(o)
    local format, names = o.format or "mcp", not o.format and not o.json
    local a, parts
    local socket = find_daemon(o)
    if socket then
      a, parts = cli.rpc(socket, "toolgate/tools", { format = format, strict = o.strict or false }, names and "shown" or "parts")
      if not ui.is_array(a.tools) then
        fail "expected a list of tools from the daemon: does it have the same version as this program?"
      end
    else
      a, parts = cli.local_tools(o, format, o.strict)
    end
    if names then print_names(a) else print_array(parts.tools) end
    print_changes(a.warnings)
    if socket then print_starting(cli.ask(socket, "toolgate/status", nil, "exact"), a.tools) end
  end,
}
