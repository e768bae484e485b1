-- --emit-policy: a draft of a policy for the shell that the transcripts show: it asks about programs that never ran in them.
-- What a recording holds gets into the draft only as plain words: names of programs, and paths of printable characters.
local conversation = require "replay/conversation"

local PROGRAMS_MAX = 500
local PATHS_MAX    = 50
local LINE_MAX     = 4096 -- of a longer command nothing is taken

-- Files that hold secrets or are run by others: the draft names those that were touched.
local PROTECTED = { "/%.env$", "/%.env%.", "/%.ssh/", "/%.gnupg/", "/%.aws/credentials", "%.pem$", "/id_rsa", "/id_ed25519",
                    "/%.git/hooks/", "/%.git/config$", "/%.claude/settings", "/%.codex/config", "/%.mcp%.json$", "^//etc/" }

-- The first words of the commands of a line: what is before a word of assignment, or a quote, is not known.
local function programs_of(line)
  local found = {}
  for part in line:gsub("['\"][^'\"\n]*['\"]", "''"):gsub("%d*>&%d+", ""):gmatch "[^;&|\n()]+" do
    local rest = part
    repeat
      local word, after = rest:match "^%s*(%S+)(.*)$"
      rest = after or ""
      if word and word:find "^[%a_][%w_]*=" then word = nil end
      if word and word:find "^[%w_./+-]+$" then found[#found + 1] = word:match "[^/]+$" end
    until word or rest == ""
  end
  return found
end

local function sorted(counts)
  local list = {}
  for name, n in pairs(counts) do list[#list + 1] = { name = name, n = n } end
  table.sort(list, function(a, b) return a.n > b.n or (a.n == b.n and a.name < b.name) end)
  return list
end

local HEAD = [[
-- %s: a draft that toolgate replay made of %d commands in your own sessions. Read it before you use it: what ran there need
-- not be what you want to run again. Programs are those of the whole line, pipes included; a command that hides its program
-- in a quoted text, a script or a substitution is not seen: this stops accidents, not an attacker.
%s
local ran = { -- and how often
]]

local TAIL = [[
}

-- The first words of the commands of a line, without assignments.
local function programs(line)
  local found = {}
  for part in line:gsub("['\"][^'\"\n]*['\"]", "''"):gsub("%%d*>&%%d+", ""):gmatch "[^;&|\n()]+" do
    local word = part:gsub("^%%s*[%%a_][%%w_]*=%%S*", ""):match "^%%s*(%%S+)"
    if word then found[#found + 1] = word:match "[^/]+$" or word end
  end
  return found
end

return tool "%s" {
  description = "Run a command in the shell.",
  schema = json [=[{"type":"object","properties":{"%s":{"type":"string"}},"required":["%s"]}]=],

  check = function(args)
    for _, program in ipairs(programs(args.%s)) do
      if not ran[program] then return ask("Run " .. program .. "? It never ran before.", { "Run it", "Do not run it" }) end
    end
  end,

  examples = {
    { "a program that never ran", args = { %s = "no-such-program-before" }, gives = "ask" },
  },
}
]]

-- `watch` takes each call that a reader finds; write(file) writes the draft. Nil, and why: there is nothing to draft.
return function()
  local shells, programs, paths = {}, 0, {}
  local M = {}

  function M.watch(tool, arguments)
    if type(tool) ~= "string" or not tool:find "^[%w_.-]+$" then return end
    local args = conversation.parsed(arguments)
    if not conversation.is_object(args) then return end
    for _, name in ipairs { "file_path", "path", "notebook_path" } do
      local path = args[name]
      if type(path) == "string" and #path < 200 and not path:find "[^%w_./ ~+@-]" then
        for _, pattern in ipairs(PROTECTED) do
          if ("/" .. path):find(pattern) then paths[path] = (paths[path] or 0) + 1 end
        end
      end
    end
    local member = type(args.command) == "string" and "command" or type(args.cmd) == "string" and "cmd"
    if not member or #args[member] > LINE_MAX then return end
    local shell = shells[tool] or { member = member, ran = {}, commands = 0 }
    shells[tool], shell.commands = shell, shell.commands + 1
    for _, program in ipairs(programs_of(args[member])) do
      if shell.ran[program] or programs < PROGRAMS_MAX then
        programs = programs + (shell.ran[program] and 0 or 1)
        shell.ran[program] = (shell.ran[program] or 0) + 1
      end
    end
  end

  function M.write(name)
    local best, tool
    for each, shell in pairs(shells) do
      if not best or shell.commands > best.commands then best, tool = shell, each end
    end
    if not best then return nil, "the recording has no calls of a shell" end
    local touched = {}
    for i, path in ipairs(sorted(paths)) do
      if i <= PATHS_MAX then touched[#touched + 1] = ("-- Touched: %s (%d)\n"):format(path.name, path.n) end
    end
    local out = { HEAD:format(tool, best.commands, table.concat(touched)) }
    for _, program in ipairs(sorted(best.ran)) do out[#out + 1] = ("  [%q] = %d,\n"):format(program.name, program.n) end
    local m = best.member
    out[#out + 1] = TAIL:format(tool, m, m, m, m)
    local file, why = io.open(name, "w")
    if not file then return nil, why end
    file:write(table.concat(out))
    return file:close()
  end

  return M
end
