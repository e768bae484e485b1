-- The policies for the built-in tools of coding assistants (policies/assistant), which are part of the program: put into a
-- folder of their own for one run, as policies are loaded from folders.
local FILES = { "apply_patch", "bash", "edit", "multiedit", "notebook", "run_shell_command", "webfetch", "write",
                "lib/command_examples", "lib/commands", "lib/protected", "lib/shell" }

-- The shells of other assistants, each with its argument, and what edits their files: those policies under these names.
local SHELLS = { bash = "command", shell_command = "command", exec_command = "cmd", execute_command = "command",
                 developer__shell = "command" }
-- These of older Codex take a list of words, of which the last is the line that the shell runs.
local SHELLS_OF_WORDS = { "shell", "local_shell" }
local EDITORS = { "write", "edit", "write_file", "replace", "write_to_file", "replace_in_file", "developer__text_editor" }

local EDITOR = [[
local protected = require "lib.protected"
return tool "%s" {
  description = "Edits a file.", effects = "write", schema = json '{"type":"object"}',
  check = function(args)
    local path = args.file_path or args.filePath or args.path
    if type(path) == "string" then return protected.edit(path) end
  end,
}
]]

local function texts()
  local all = {}
  for _, name in ipairs(FILES) do all[name] = cli.embedded("policies/assistant/" .. name .. ".lua") end
  for name, member in pairs(SHELLS) do
    all["of_" .. name] = all.bash:gsub('tool "Bash"', ('tool "%s"'):format(name)):gsub("args%.command", "args." .. member)
      :gsub('"command"', ('"%s"'):format(member))
  end
  for _, name in ipairs(SHELLS_OF_WORDS) do
    all["of_" .. name] = "local function line_of(words) return type(words) == 'table' and words[#words] or words or '' end\n"
      .. all.bash:gsub('tool "Bash"', ('tool "%s"'):format(name)):gsub("args%.command", "line_of(args.command)")
      :gsub('"type":"string",', "")
  end
  for _, name in ipairs(EDITORS) do all["of_" .. name] = EDITOR:format(name) end
  return all
end

-- The folder, and a function that removes it. Nil, and why: it cannot be written.
local function unpack_into(folder)
  local written = { folder, folder .. "/lib" }
  local function remove()
    for i = #written, 1, -1 do os.remove(written[i]) end
  end
  for _, path in ipairs(written) do
    local made, why = cli.make_folder(path, 448) -- 0700
    if not made then return nil, path .. ": " .. why end
  end
  for name, text in pairs(texts()) do
    local path = ("%s/%s.lua"):format(folder, name)
    written[#written + 1] = path
    local good, why = cli.write_file(path, text)
    if not good then
      remove()
      return nil, path .. ": " .. why
    end
  end
  return folder, remove
end

return function()
  local name = os.tmpname() -- a file of this user's alone, which the folder takes the place of
  os.remove(name)
  return unpack_into(name)
end
