-- toolgate attach: puts `toolgate connect` in place of the MCP servers of a client's file, which the user's own daemon
-- serves from then on; and back.
local attach_text = require "attach_text"
local clients = require "clients"
local own = require "own_daemon"
local record = require "attach_record"
local ui = require "ui"

local TRIES   = 3 -- of a file that its client writes meanwhile
local LOCK_MS = 10000 -- for another attach to end

local here, home, program -- of this command

local function refuse(words) error({ words = words }, 0) end

-- ---- what the user reads ----

-- The lines between the first and the last that differ.
local function show_difference(path, before, after)
  local a, b, from, tail = ui.lines(before), ui.lines(after), 1, 0
  while from <= #a and from <= #b and a[from] == b[from] do from = from + 1 end
  while tail < math.min(#a, #b) - from + 1 and a[#a - tail] == b[#b - tail] do tail = tail + 1 end
  io.write(("--- %s\n+++ %s\n@@ line %d @@\n"):format(cli.line(path), cli.line(path), from))
  for i = from, #a - tail do io.write(cli.red, "-", cli.lines(a[i]), cli.plain, "\n") end
  for i = from, #b - tail do io.write(cli.green, "+", cli.lines(b[i]), cli.plain, "\n") end
end

local function agrees(o)
  if o.yes or not (cli.is_terminal and cli.stderr_is_terminal) then return true end
  io.write "Change this file? [y/N] "
  io.flush()
  return (io.read "*l" or ""):lower():find "^y" ~= nil
end

-- ---- one file ----

-- Its real path, text and state. A missing file is an error, or empty text.
local function look(path, may_be_missing)
  local real = cli.real_path(path)
  if not real and may_be_missing then
    local folder = cli.real_path(path:match "^(.*)/" or ".")
    if not folder then refuse(path .. ": its folder does not exist") end
    return folder .. "/" .. path:match "[^/]+$", "", nil
  end
  if not real then refuse(path .. ": no such file") end
  local text, state = cli.file(real)
  if not text then refuse(("%s: %s"):format(path, state)) end
  if state.uid ~= cli.uid then
    refuse(("%s belongs to %s: run this as that user"):format(path, cli.user_name(state.uid) or "uid " .. state.uid))
  end
  return real, text, state
end

-- The text as it was before this program changed it; a change of the client's since then is kept.
local function base_of(text, kept, cwd)
  if not kept then return text end
  if text == kept.attached then return kept.original end
  local base, why = attach_text.detach(text, kept.original, kept.about, kept.about.file, cwd)
  return base or refuse(("%s: %s"):format(kept.about.file, why))
end

local function server_text(path, list)
  local out = {}
  for i, one in ipairs(list) do out[i] = ("    %s: %s"):format(cli.quote(one[1]), one[2]) end
  return ("// `toolgate attach` moved these servers from %s; `toolgate attach --undo` moves them back.\n"
          .. '{\n  "mcpServers": {\n%s\n  }\n}\n'):format(cli.line(path), table.concat(out, ",\n"))
end

-- What the file becomes: { original, attached, about, servers (texts), notes }.
local function plan_of(real, text, kept, o)
  local client, cwd = clients.of_file(real, home)
  local base, used = base_of(text, kept, cwd), {}
  local wants_hooks = o.hooks or kept and kept.about.hook
  local wants_servers = not o.hooks or kept and next(kept.about.sections) ~= nil
  if kept and base == "" then wants_servers = false end -- attach made the file, for hooks
  local new = { original = base, attached = base, notes = {}, servers = {},
                about = { file = real, sections = {}, created = kept and kept.about.created } }
  local function name_for(id)
    for name, section in pairs(kept and kept.about.sections or {}) do
      if section == id then return name end
    end
    return record.free_name(client, id:match "^projects (.*)" or cwd, home, used)
  end
  if wants_servers then
    local plan, why = attach_text.servers(base, { path = real, client = client, cwd = cwd, program = program, name = name_for,
                                                  taken = record.taken_names(kept) })
    if not plan then refuse(("%s: %s"):format(real, why)) end
    new.attached, new.notes, new.about.sections = plan.text, plan.notes, plan.sections
    for name, list in pairs(plan.servers) do new.servers[name] = server_text(real, list) end
  end
  if wants_hooks then
    local kind = clients.hook_client(real)
    if not kind then refuse(real .. ": expected the settings of Claude Code or gemini-cli, or Codex' hooks.json") end
    local line = ("%s hook --client %s"):format(ui.word(program), kind)
    local changed, why = attach_text.hooks(new.attached, require "hook_answer".hooks(kind, line))
    if not changed then refuse(("%s: %s"):format(real, why)) end
    new.attached, new.about.hook = changed, line
  end
  new.name = kept and kept.name or next(new.about.sections) or record.free_name(client .. "-hooks", home, home, used)
  return new
end

local function write_client(real, text, state)
  local written, why, kind = cli.replace_file(real, text, state and state.mode or 384, state and state.version)
  if written then return true end
  if kind == "changed" then return false end
  refuse(("%s was not changed: %s"):format(real, why))
end

-- True: it is done; false: the client has written the file meanwhile.
local function try_attach(path, o)
  local real, text, state = look(path, o.hooks)
  local kept = record.of_file(real)
  local new = plan_of(real, text, kept, o)
  if new.attached == text then
    io.write(("%s: %s\n"):format(path, kept and "is attached already" or "has no servers to attach"))
    return true
  end
  for _, note in ipairs(new.notes) do io.write(("%s: %s\n"):format(path, cli.line(note))) end
  show_difference(path, text, new.attached)
  if o["dry-run"] then return true end
  if not agrees(o) then
    io.write(path, ": left as it is\n")
    return true
  end
  new.about.created = new.about.created or state == nil or nil
  local good, why = pcall(function()
    record.keep(new)
    return write_client(real, new.attached, state)
  end)
  if not good or not why then -- as it was
    if kept then
      pcall(record.keep, kept)
    else
      record.forget(new)
    end
    if not good then error(why, 0) end
    return false
  end
  local names = {}
  for name in pairs(new.about.sections) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do io.write(("%s: its servers are now in %s\n"):format(path, record.server_file(name))) end
  if new.about.hook then io.write(("%s: hooks are `%s`\n"):format(path, new.about.hook)) end
  return true
end

local function try_undo(path, o)
  local real = cli.real_path(path) or path:sub(1, 1) == "/" and path or here .. "/" .. path
  local kept = record.of_file(real)
  if not kept then
    io.write(path, ": is not attached\n")
    return true
  end
  if not cli.access(real, "") then
    local at = not o["dry-run"] and record.forget(kept, true)
    io.write(("%s does not exist any more; what it had been%s\n"):format(path, at and " is " .. at or ""))
    return true
  end
  local text, state = select(2, look(real))
  local as_left = text == kept.attached
  local _, cwd = clients.of_file(real, home)
  local before = base_of(text, kept, cwd)
  show_difference(path, text, before)
  if o["dry-run"] then return true end
  if not agrees(o) then return true end
  if as_left and kept.about.created then
    os.remove(real)
  elseif not write_client(real, before, state) then
    return false
  end
  record.forget(kept)
  io.write(path, as_left and ": is as it was\n"
                 or ": was changed since; only what attach had put there was changed back\n")
  return true
end

-- ---- the command ----

local function files_of(o)
  if #o > 0 then return o end
  if o.undo then
    local out = {}
    for i, one in ipairs(record.all()) do out[i] = one.about.file end
    return out
  end
  return o.hooks and clients.find_hooks(home) or clients.find(home, here)
end

local function one_file(path, o)
  for _ = 1, TRIES do
    local good, done = pcall(o.undo and try_undo or try_attach, path, o)
    if good and done then return true end
    if not good then
      if type(done) ~= "table" then error(done, 0) end
      cli.warn(done.words)
      return false
    end
  end
  cli.warn(path .. ": another program writes it again and again; end the client, and run this once more")
  return false
end

return command {
  name = "attach", operands = "[FILE...]", most = 64, summary = "put toolgate in front of a client's MCP servers",
  about = [[
Moves the MCP servers of a client's file into ~/.config/toolgate/servers.d, and puts `toolgate connect`
in their place, which starts the user's own daemon. Knows the files of Claude Code, Claude Desktop,
Cursor, VS Code, Windsurf, Codex CLI, gemini-cli, opencode and Zed; without FILE it changes those that
exist in the home folder and here. Comments and all other settings stay. On a terminal it shows what it
would change and asks; otherwise it acts.]],
  exits = [[
  0  done, or nothing to do
  1  a file could not be changed; stderr has the reason
  2  usage]],
  example = [[
  toolgate attach --dry-run
  toolgate attach .mcp.json
  toolgate attach --undo]],
  options = {
    flag { name = "hooks", words = "the hooks of Claude Code, Codex CLI and gemini-cli instead of servers" },
    flag { name = "undo", words = "change back; without FILE, all files" },
    flag { name = "dry-run", words = "show what would be changed, change nothing" },
    flag { name = "yes", letter = "y", words = "do not ask" },
  },
  run = function(o)
    home, here = cli.real_path(os.getenv "HOME" or ""), cli.real_path "."
    if not home then fail "HOME is not set, or no folder" end
    program = cli.real_path "/proc/self/exe"
    if not o["dry-run"] then
      local made, why = own.make_folders(own.servers_folder())
      if not made then fail("%s", why) end
      local locked, reason = cli.lock(own.config_folder() .. "/attach.lock", LOCK_MS)
      if not locked then fail("%s", reason or "another `toolgate attach` has not ended within 10 s") end
    end
    local files, status = files_of(o), 0
    if #files == 0 then io.write(o.undo and "nothing is attached\n" or "no client's file was found\n") end
    for _, path in ipairs(files) do
      if not one_file(path, o) then status = 1 end
    end
    return status
  end,
}
