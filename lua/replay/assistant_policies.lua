-- The policies for the built-in tools of coding assistants (policies/assistant), which are part of the program: put into a
-- folder of their own for one run, as policies are loaded from folders.
local FILES = { "apply_patch", "bash", "edit", "multiedit", "notebook", "webfetch", "write", "lib/command_examples",
                "lib/commands", "lib/protected", "lib/shell" }

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
  for _, name in ipairs(FILES) do
    local path = ("%s/%s.lua"):format(folder, name)
    written[#written + 1] = path
    local good, why = cli.write_file(path, cli.embedded("policies/assistant/" .. name .. ".lua"))
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
