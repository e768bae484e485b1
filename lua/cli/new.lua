-- toolgate new: a first policy that loads and whose examples hold, for an operator to complete. It never overwrites a
-- file, and prints the next commands to type.
local ui = require "ui"
local fill_template = require "policy_template"

local NAME_BYTES     = 200
local DEFAULT_FOLDER = "policies"

-- With --socket the policy belongs where the daemon loads it from. The folder, and whether it is the daemon's.
local function find_folder(o)
  if not o.socket or o.policies or o.print then return o.policies or DEFAULT_FOLDER end
  local paths = cli.rpc(o.socket, "toolgate/status", nil, "exact").paths
  local folder = type(paths) == "table" and paths.policies
  if paths == nil then
    fail("the daemon at %s tells its folder of policies only to root and to the user that runs it: write this one with "
         .. "--print for that user, or into another folder with --policies", o.socket)
  elseif type(folder) ~= "string" then
    fail('the daemon at %s has no folder of policies: name one in its configuration (policies = "…"), or write this one '
         .. "elsewhere with --policies", o.socket)
  end
  local may, why = cli.access(folder, "wx")
  if not may then
    fail("the daemon at %s loads its policies from %s, where you may not write (%s): write this one with --print and give "
         .. "it to a user who may, or into another folder with --policies", o.socket, folder, why)
  end
  return folder, true
end

-- ---- where the tool comes from ----
local function from_template(o, tool)
  if o.schema or o.socket or o.tools then
    fail "--template: a template has its own schema: leave out --schema, --tools and --socket, or the template"
  end
  for _, name in ipairs { "blank", "read", "write", "search", "http" } do
    if o.template == name then tool.template = name end
  end
  if not tool.template then
    fail("--template: expected one of blank, read, write, search, http, got '%s'", o.template)
  end
end

local function read_file(path)
  local value, parts, text = cli.read_json(path)
  if value == nil then fail("%s", parts) end
  return value, parts, text
end

local function from_schema(o, tool)
  local file, parts, text = read_file(o.schema)
  if type(file) ~= "table" or ui.is_array(file) then fail("%s: expected a JSON Schema, an object", o.schema) end
  if parts.inputSchema then
    fail("%s: expected a JSON Schema, got a tool's whole definition: put it into a list and pass that with --tools",
         o.schema)
  end
  tool.schema, tool.description = text, ui.text(file.description)
end

-- Notes the first definition of that name; `names` are those of all, for the closest one.
local function search(tool, json, names, path)
  local definitions, texts = cli.parse(json, true)
  if not ui.is_array(definitions) then return false end
  for i, definition in ipairs(definitions) do
    definition = ui.table(definition)
    local name = ui.text(definition.name)
    names[#names + 1] = name
    if name == tool.name and not tool.defined then
      local _, parts = cli.parse(texts[i], true)
      tool.defined, tool.definition, tool.tools_file = true, texts[i], path
      tool.schema = type(definition.inputSchema) == "table" and cli.keys(definition.inputSchema) and parts.inputSchema or "{}"
      tool.description, tool.annotations = ui.text(definition.description), definition.annotations
      tool.title = ui.text(definition.title)
      if tool.title == "" then tool.title = ui.text(ui.table(tool.annotations).title) end
    end
  end
  return true
end

local function unknown(tool, names, where, hint)
  local near = cli.suggest(tool.name, names)
  fail("no tool '%s' among the %d of %s%s; %s", tool.name, #names, where, near and (" (did you mean '%s'?)"):format(near) or "",
       hint)
end

-- The files that serve would read, of the configuration and of the command line. Without any nothing is known of the
-- tool.
local function from_files(o, tool)
  local loaded = cli.load { config = o.config, tools = o.tools, ["mcp-config"] = o["mcp-config"], offline = true,
                            only_config = true }
  if not loaded.config then fail("%s", loaded.problem) end
  local paths, names = loaded.config.tools, {}
  for _, path in ipairs(paths) do
    local _, parts, text = read_file(path)
    if parts.result then _, parts = cli.parse(parts.result, true) end
    if not search(tool, text:find "^%s*%[" and text or parts.tools or "null", names, path) then
      fail('%s: expected an array of {name, description, inputSchema} or {"tools": […]}', path)
    end
  end
  if #paths > 0 and not tool.defined then
    unknown(tool, names, "the files of tools", "`toolgate tools` with the same --tools lists them; without --tools toolgate "
            .. "new writes an empty policy")
  end
  tool.definition = nil -- the file has it
end

local function from_daemon(o, tool)
  local a, parts = cli.rpc(o.socket, "toolgate/tools", nil, "parts")
  local names = {}
  search(tool, parts.tools or "null", names)
  if not tool.defined then
    unknown(tool, names, "the daemon at " .. o.socket, "`toolgate tools` with the same --socket lists them")
  end
  local place = ui.table(ui.table(a.runs_at)[tool.name])
  if place.kind ~= "mcp" then return end
  local upstream, name = ui.text(place.upstream), ui.text(place.tool)
  tool.upstream = name == tool.name and upstream or upstream .. "/" .. name -- "docs" if it has the same name there
end

local function find_tool(o)
  local tool = { name = o[1], title = "", description = "", upstream = "", with_schema = o["with-schema"] }
  if o.template then
    from_template(o, tool)
  else
    (o.socket and from_daemon or o.schema and from_schema or from_files)(o, tool)
    tool.template = tool.schema and "definition" or "blank"
  end
  if tool.name:find "[^%w_./-]" and not tool.defined then -- a name that a definition has is the server's affair
    fail("'%s': expected a tool's name of letters, digits, _, -, . and / (providers take only letters, digits, _ and -, at "
         .. "most 64 of them)", tool.name)
  end
  if tool.with_schema then tool.tools_file = nil end
  return tool
end

-- ---- the file ----
-- There can be only one policy for a tool.
local function refuse_second(folder, path, tool)
  for _, name in ipairs(cli.list_folder(folder)) do
    local other = folder .. "/" .. name
    if name:find "%.lua$" and other ~= path and cli.tool_of_policy(other) == tool then
      fail("%s is the policy of '%s' already: edit that file", other, tool)
    end
  end
end

local function write(o, folder, path, text)
  local made, why = cli.make_folder(folder)
  if not made then fail("%s: expected a folder for policies: %s", folder, why) end
  local written, trouble, reason = cli.write_file(path, text, o.force)
  if reason == "exists" then
    fail("%s exists already, the policy of '%s': --force overwrites it, --print writes to stdout instead", path, o[1])
  elseif not written then
    fail("%s: %s", path, trouble)
  end
end

-- The schema's file, if it is in the folder of policies.
local function name_in_folder(file, folder)
  local parent, name = file:match "^(.*)/([^/]*)$"
  local a, b = cli.stat(parent == "" and "/" or parent or "."), cli.stat(folder)
  if a and b and a.file == b.file then return name or file end
end

local function print_next(o, tool, folder, is_daemons)
  local call = cli.shown_json(tool.schema and cli.sample(tool.schema) or "{}")
  local check = "  toolgate check " .. ui.word(tool.name) .. " " .. ui.word(call)
  if is_daemons then
    io.write("The daemon loads it by itself, and loads it anew when it changes. Next: write in its first line what it is ",
             "for and who may call it, then\n  toolgate test --socket ", o.socket, "\n", check, " --socket ", o.socket,
             " --trace\n  toolgate reload --socket ", o.socket, "\n")
    return
  end
  local with = (o.config and " -c " .. o.config or "") .. (folder ~= DEFAULT_FOLDER and " --policies " .. folder or "")
  for _, path in ipairs(o.tools or {}) do with = with .. " --tools " .. path end
  io.write "Next: write in its first line what it is for and who may call it, then\n"
  if tool.upstream ~= "" then
    with = with .. " --tools tools.json"
    ui.say("  toolgate tools --format mcp --socket %s > tools.json", o.socket)
  end
  io.write("  toolgate test", with, "\n  toolgate lint", with, "\n", check, with, " --trace\n")
  if tool.upstream ~= "" then ui.say("  toolgate reload --socket %s", o.socket) else ui.say("  toolgate serve%s", with) end
end

return command {
  name = "new", operands = "TOOL", least = 1, summary = "write a first policy for a tool",
  about = [[
Writes TOOL.lua into the folder of policies, with examples that hold as they stand. The policy
starts from a tool's definition (--tools or --socket), a JSON Schema (--schema) or a template
(--template); by default it is a blank one. What toolgate does not know is marked TODO.
With --socket it goes into the folder that the daemon there loads, if you may write it.
Existing files are not overwritten.]],
  exits = [[
  0  written, and its examples hold
  1  written, but something in it does not hold
  2  usage, a tool or file that does not exist, a file that exists already]],
  example = [[
  toolgate new close_ticket
  toolgate new get_order --template read
  toolgate new get_weather --tools tools.json
  toolgate new read_file --socket /tmp/toolgate.sock
  toolgate new create_invoice --schema invoice.schema.json --print]],
  options = {
    text { name = "template", argument = "blank|read|write|search|http", words = "what to start from (default blank)" },
    text { name = "schema", argument = "FILE", words = "start from the tool's JSON Schema" },
    text { name = "socket", letter = "s", argument = "PATH",
           words = "start from the tool that this daemon lists, and write into its folder" },
    flag { name = "with-schema", words = "write a definition's schema into the policy, so that it needs no --tools" },
    flag { name = "print", words = "print the policy instead of writing a file" },
    flag { name = "force", words = "overwrite an existing file" },
    files,
  },

  run = function(o)
    if o[1] == "" or #o[1] > NAME_BYTES then fail("expected a tool's name of 1 to %d bytes", NAME_BYTES) end
    local folder, is_daemons = find_folder(o)
    local tool = find_tool(o)
    local stem = tool.name:gsub("[^%w_.-]", "_"):gsub("^%.", "_") -- "server/tool" is one file
    local path = folder .. "/" .. stem .. (stem:find "_spec$" and "_policy.lua" or ".lua") -- *_spec.lua is no policy
    if o.schema then tool.schema_file = name_in_folder(o.schema, folder) end
    local policy = fill_template(tool)
    if o.print then
      io.write(policy)
      return
    end
    refuse_second(folder, path, tool.name)
    write(o, folder, path, policy)
    local definition = tool.definition and cli.memory_file("[" .. tool.definition .. "]")
    local loaded = cli.load { config = o.config, tools = definition and { definition } or o.tools,
                              ["mcp-config"] = o["mcp-config"], policies = path, offline = true, log = "error" }
    if not loaded.generation then
      ui.complain("error", loaded.errors)
      cli.warn(path .. " is written, but does not hold yet: fix the errors above")
      return 1
    end
    ui.say("%s is written; %s", path, loaded.examples == 1 and "its example holds."
           or ("its %d examples hold."):format(loaded.examples))
    print_next(o, tool, folder, is_daemons)
  end,
}
