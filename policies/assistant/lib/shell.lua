-- Reads a shell's command line into commands, so that a policy judges words and not substrings. It knows quotes, lists,
-- pipelines, substitutions, redirections, here documents, literal variables and `cd`, and programs that run another program.
-- It stops accidents, not an attacker: what only the shell can know (globs, functions, unknown variables) stays as written.
local M = {}

local NESTED_MAX = 16     -- substitutions, subshells, texts inside texts (bash -c "eval '…'"): what is deeper is not read
local COMMANDS_MAX = 500  -- what follows is not read
local VALUE_MAX = 1024    -- bytes of a variable that is kept: b=$a$a; c=$b$b would grow without end
local VALUES_MAX = 262144 -- bytes of all that are written for their names: $a$a$a… would take all memory
local PROGRAM_MAX = 256   -- bytes of a program inside $(…): that of $($($(…))) has all that are further inside
local FOLDER_MAX = 4096   -- bytes of a folder: cd a/a/a; cd a/a/a … would be read again for each

local KEYWORDS = set { "if", "then", "elif", "else", "fi", "do", "done", "while", "until", "!", "{", "}", "esac", "time" }

local read_list, read_quoted

-- What is known of `$name`: its text, else the expansion as it is written.
local function value_of(s, name, written)
  if name == "HOME" then return "~" end
  local value = s.vars[name]
  if not value then return written end
  s.vars[1] = (s.vars[1] or 0) + #value -- no name of a variable
  return s.vars[1] <= VALUES_MAX and value or written
end

local function rest_of(words, first)
  local rest = {}
  for i = first, #words do rest[#rest + 1] = words[i] end
  return rest
end

-- Reads a list in parentheses. It has a folder of its own.
local function read_nested(s)
  if s.depth >= NESTED_MAX then
    s.at = #s.text + 1
    return
  end
  local folder = s.folder
  s.depth = s.depth + 1
  read_list(s, ")")
  s.depth, s.folder = s.depth - 1, folder
end

-- The programs of the commands from `first` on, as a word shows them: $(curl).
local function programs_from(s, first, opening)
  local programs = {}
  for i = first, #s.commands do programs[#programs + 1] = M.program(s.commands[i]):sub(-PROGRAM_MAX) end
  return opening .. table.concat(programs, "|") .. ")"
end

-- Skips to the closing text, or to the end.
local function skip_past(s, closing)
  local _, last = s.text:find(closing, s.at, true)
  s.at = (last or #s.text) + 1
end

-- The commands inside a substitution are commands like all others.
local function read_substitution(s, opening)
  local first = #s.commands + 1
  read_nested(s)
  return programs_from(s, first, opening)
end

local function read_backticks(s)
  local closing = s.text:find("`", s.at, true) or #s.text + 1
  local first = #s.commands + 1
  M.read_into(s, s.text:sub(s.at, closing - 1), s)
  s.at = closing + 1
  return programs_from(s, first, "$(")
end

-- At the byte after `$`.
local function read_expansion(s)
  local text, at = s.text, s.at
  if text:sub(at, at + 1) == "((" then
    skip_past(s, "))")
    return "$(())"
  end
  if text:sub(at, at) == "(" then
    s.at = at + 1
    return read_substitution(s, "$(")
  end
  local name = text:match("^{([%a_][%w_]*)}", at)
  if name then
    s.at = at + #name + 2
    return value_of(s, name, "${" .. name .. "}")
  end
  if text:sub(at, at) == "{" then
    skip_past(s, "}")
    return "$" .. text:sub(at, s.at - 1)
  end
  name = text:match("^[%a_][%w_]*", at) or text:match("^[%d@*#?$!-]", at)
  if name then
    s.at = at + #name
    return value_of(s, name, "$" .. name)
  end
  return "$"
end

-- A text in double quotes, or a here document's: up to `closing`, or to the end.
function read_quoted(s, closing)
  local parts = {}
  while s.at <= #s.text do
    local stop = s.text:find('["\\$`]', s.at) or #s.text + 1
    parts[#parts + 1] = s.text:sub(s.at, stop - 1)
    local byte = s.text:sub(stop, stop)
    s.at = stop + 1
    if byte == closing then break
    elseif byte == "\\" then
      local escaped = s.text:sub(s.at, s.at)
      parts[#parts + 1] = escaped:find '["\\$`]' and escaped or escaped == "\n" and "" or "\\" .. escaped
      s.at = s.at + 1
    elseif byte == "$" then parts[#parts + 1] = read_expansion(s)
    elseif byte == "`" then parts[#parts + 1] = read_backticks(s)
    else parts[#parts + 1] = byte end
  end
  return table.concat(parts)
end

-- One word from s.at, or nil where none begins. Second result: whether a part of it was quoted.
local function read_word(s)
  local parts, quoted = {}, false
  while s.at <= #s.text do
    local stop = s.text:find("[%s;&|()<>'\"\\$`]", s.at) or #s.text + 1
    parts[#parts + 1] = s.text:sub(s.at, stop - 1)
    local byte = s.text:sub(stop, stop)
    s.at = stop + 1
    if byte == "'" then
      local closing = s.text:find("'", s.at, true) or #s.text + 1
      parts[#parts + 1], quoted, s.at = s.text:sub(s.at, closing - 1), true, closing + 1
    elseif byte == '"' then
      parts[#parts + 1], quoted = read_quoted(s, '"'), true
    elseif byte == "\\" then
      local escaped = s.text:sub(s.at, s.at)
      parts[#parts + 1] = escaped == "\n" and "" or escaped
      quoted, s.at = true, s.at + 1
    elseif byte == "$" and not s.text:find("^['\"]", s.at) then -- $'…' and $"…" are read as the plain quotes
      parts[#parts + 1] = read_expansion(s)
    elseif byte == "`" then parts[#parts + 1] = read_backticks(s)
    elseif (byte == "<" or byte == ">") and s.text:sub(s.at, s.at) == "(" then
      s.at = s.at + 1
      parts[#parts + 1] = read_substitution(s, byte .. "(")
    elseif byte ~= "$" then
      s.at = stop
      break
    end
  end
  local word = table.concat(parts)
  if word == "" and not quoted then return nil end
  return word, quoted
end

local function skip_blanks(s)
  s.at = s.text:find("[^ \t\r]", s.at) or #s.text + 1
  while s.text:find("^\\\n", s.at) do s.at = s.text:find("[^ \t\r]", s.at + 2) or #s.text + 1 end
end

-- Where the line that ends a here document begins, and the next line. Lines are compared: as a pattern, a delimiter of many
-- line breaks is tried at each of a text's.
local function find_end(s, here)
  local at, delimiter, returned = s.at, here.delimiter, here.delimiter .. "\r"
  while at <= #s.text do
    local stop = s.text:find("\n", at, true) or #s.text + 1
    local line = s.text:sub(at, stop - 1)
    if here.tabs then line = line:gsub("^\t+", "") end
    if line == delimiter or line == returned then return at, stop + 1 end
    at = stop + 1
  end
end

-- The here documents that a line announced begin behind its end.
local function read_here_documents(s)
  for _, here in ipairs(s.here) do
    local stop, next = find_end(s, here)
    local body = s.text:sub(s.at, stop and stop - 2 or #s.text)
    s.at = next or #s.text + 1
    if not here.quoted and body:find "[$`]" then
      body = read_quoted({ text = body, at = 1, commands = s.commands, vars = s.vars, folder = s.folder, here = {},
                           depth = s.depth }, nil)
    end
    here.command.stdin = body
  end
  s.here = {}
end

-- At `<`, `>` or `&>`. Its word is a place that is written, a text for stdin, or of no interest.
local function read_redirection(s, command)
  local operator = s.text:match("^&>>?", s.at) or s.text:match("^<<<", s.at) or s.text:match("^<<%-?", s.at)
                   or s.text:match("^>[>|&]?", s.at) or s.text:match("^<[>&]?", s.at)
  s.at = s.at + #operator
  skip_blanks(s)
  local word, quoted = read_word(s)
  if not word then return end
  if operator:find("^<<%-?$") then
    s.here[#s.here + 1] = { command = command, delimiter = word, quoted = quoted, tabs = operator == "<<-" }
  elseif operator == "<<<" then command.stdin = word
  elseif operator:find(">", 1, true) and not (operator == ">&" and word:find "^[%d-]+$") then
    command.writes[#command.writes + 1] = M.path(command, word)
  end
end

local function new_command(s, from)
  return { words = {}, writes = {}, folder = s.folder, from = from }
end

-- Assignments before a command are kept where no command follows: D=build; rm -rf $D.
local function take_assignments(s, command)
  local words, first = command.words, 1
  while words[first] and words[first]:find "^[%a_][%w_]*%+?=" do first = first + 1 end
  for i = 1, first > #words and #words or 0 do
    local name, value = words[i]:match "^([%a_][%w_]*)=(.*)$"
    if name and (not value:find("$", 1, true) or value:find "^%$%(mktemp%)") then
      s.vars[name] = #value <= VALUE_MAX and value or nil
    end
  end
  if first > 1 then command.words = rest_of(words, first) end
end

-- Adds the command. Returns it, or nil if there is none.
local function finish(s, command)
  local first = 1
  while KEYWORDS[command.words[first]] do first = first + 1 end
  if first > 1 then command.words = rest_of(command.words, first) end
  take_assignments(s, command)
  if #command.words == 0 and #command.writes == 0 or #s.commands >= COMMANDS_MAX then return nil end
  s.commands[#s.commands + 1] = command
  if command.words[1] == "cd" or command.words[1] == "pushd" then
    local to = command.words[2] == "--" and command.words[3] or command.words[2]
    s.folder = not to and "~" or to == "-" and "$OLDPWD" or M.path(command, to)
    if #s.folder > FOLDER_MAX then s.folder = "$OLDPWD" end
  end
  return command
end

-- Commands up to `closing` (")" or nil: the end).
function read_list(s, closing)
  local command = new_command(s)
  local function ends(piped)
    local done = finish(s, command)
    command = new_command(s, piped and (done or s.commands[#s.commands]) or nil)
  end
  while s.at <= #s.text do
    skip_blanks(s)
    local byte = s.text:sub(s.at, s.at)
    if byte == "" then break
    elseif byte == "\n" then
      s.at = s.at + 1
      if #s.here > 0 then read_here_documents(s) end
      ends(false)
    elseif byte == "#" then
      s.at = s.text:find("\n", s.at, true) or #s.text + 1
    elseif byte == ";" then
      s.at = s.at + 1
      ends(false)
    elseif s.text:find("^&>", s.at) or byte == "<" and not s.text:find("^<%(", s.at)
           or byte == ">" and not s.text:find("^>%(", s.at) then
      read_redirection(s, command)
    elseif byte == "&" then
      s.at = s.at + (s.text:find("^&&", s.at) and 2 or 1)
      ends(false)
    elseif byte == "|" then
      local two = s.text:find("^||", s.at)
      s.at = s.at + ((two or s.text:find("^|&", s.at)) and 2 or 1)
      ends(not two)
    elseif byte == ")" then
      s.at = s.at + 1
      if closing then break end
      ends(false)
    elseif byte == "(" then
      s.at = s.at + 1
      if s.text:sub(s.at, s.at) == "(" and #command.words == 0 then skip_past(s, "))")
      elseif s.text:find("^%s*%)", s.at) then -- a function's name was before it
        skip_past(s, ")")
        command = new_command(s)
      else read_nested(s) end
    elseif s.text:find("^%d+[<>]", s.at) then
      s.at = s.text:find("[<>]", s.at)
    elseif s.text:find("^%[%[%s", s.at) and #command.words == 0 then skip_past(s, "]]")
    else
      local word = read_word(s)
      if word then command.words[#command.words + 1] = word
      else s.at = s.at + 1 end
    end
  end
  ends(false)
end

-- Programs that run the program behind them: the options that take a value, and how many words come before it.
local RUNNERS = {
  sudo = { "-u", "-g", "-C", "-D", "-h", "-p", "-R", "-T", "--user", "--group", "--chdir" }, doas = { "-u", "-C" },
  env = { "-u", "-C", "--unset", "--chdir" }, nice = { "-n" }, ionice = { "-c", "-n" }, nohup = {}, setsid = {},
  command = {}, builtin = {}, exec = { "-a" }, stdbuf = { "-i", "-o", "-e" }, unbuffer = {}, chronic = {}, time = { "-f", "-o" },
  timeout = { "-k", "-s", "--signal", "--kill-after", before = 1 },
  xargs = { "-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs", "--delimiter" },
  ["docker exec"] = { "-e", "-u", "-w", "--env", "--user", "--workdir", before = 1 },
  ["podman exec"] = { "-e", "-u", "-w", "--env", "--user", "--workdir", before = 1 },
  ["docker-compose exec"] = { "-e", "-u", "-w", "--index", before = 1 },
  ["docker compose exec"] = { "-e", "-u", "-w", "--index", before = 1 },
  ["kubectl exec"] = { "-n", "-c", "--namespace", "--container", before = 1 },
}
local SHELLS = set { "sh", "bash", "zsh", "dash", "ksh", "ash", "fish" }
local SSH_VALUES = set { "-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-E", "-m", "-W", "-w" }

function M.is_shell(program) return SHELLS[program] or false end

-- A path without its folder. Like all patterns here it takes a time that grows with the text alone: "[^/]*$" tries each place.
function M.name(path) return (path:gsub("^.*/", "")) end

-- The first word without its folder.
function M.program(command)
  command.program = command.program or M.name(command.words[1] or "")
  return command.program
end

-- The words from the first operand behind `first`, where `values` are the options that take the next word.
local function operand_after(words, first, values)
  while words[first] and words[first]:find "^%-" do
    if words[first] == "--" then return first + 1 end
    first = first + (values[words[first]] and 2 or 1)
  end
  return first
end

-- The command that `command` runs (sudo, env, xargs, docker exec), or the text that it reads as commands (bash -c, eval, ssh).
function M.runs(command)
  local words, program = command.words, M.program(command)
  if program == "eval" then return nil, table.concat(words, " ", 2) end
  if SHELLS[program] then
    for i = 2, #words do
      if words[i]:find "^%-%a+$" and words[i]:find("c", 2, true) then return nil, words[i + 1] end
      if not words[i]:find "^[-+]" then return nil end
    end
    return nil, command.stdin
  end
  if program == "ssh" then
    local at = operand_after(words, 2, SSH_VALUES) + 1
    return nil, words[at] and table.concat(words, " ", at) or command.stdin
  end
  local runner, at = RUNNERS[program], 2
  if not runner and words[2] then
    runner, at = RUNNERS[program .. " " .. words[2]], 3
    if not runner and words[3] then runner, at = RUNNERS[program .. " " .. words[2] .. " " .. words[3]], 4 end
  end
  if not runner then return nil end
  local values = {}
  for _, option in ipairs(runner) do values[option] = true end
  at = operand_after(words, at, values)
  while program == "env" and words[at] and words[at]:find "^[%a_][%w_]*=" do at = at + 1 end
  at = at + (runner.before or 0)
  if words[at] == "--" then at = at + 1 end
  if not words[at] then return nil end
  return { words = rest_of(words, at), writes = {}, folder = command.folder, from = command.from, stdin = command.stdin,
           by = program }
end

-- A path behind a known `cd`, without ".", "//" and the ".." that can be resolved.
function M.path(command, path)
  if command.folder and not path:find "^[/~$]" then path = command.folder .. "/" .. path end
  local parts = {}
  for part in path:gmatch "[^/]+" do
    local before = parts[#parts]
    if part == ".." and before and before ~= ".." and not before:find "^[~$]" then parts[#parts] = nil
    elseif part ~= "." then parts[#parts + 1] = part end
  end
  return (path:find "^/" and "/" or "") .. table.concat(parts, "/") .. (path:find "./$" and "/" or "")
end

-- Options and operands. `values`: options whose value is the next word. Of `-rf`, both r and f are set; of `--a=b`, "--a".
function M.options(command, first, values)
  local flags, operands, words, at = {}, {}, command.words, first or 2
  while words[at] do
    local word = words[at]
    if word == "--" then
      for i = at + 1, #words do operands[#operands + 1] = words[i] end
      break
    elseif word:find "^%-%-" then
      local name, value = word:match "^(%-%-[^=]+)=(.*)$"
      flags[name or word] = value or true
      if not name and values and values[word] then flags[word], at = words[at + 1] or true, at + 1 end
    elseif word:find "^%-." then
      for i = 2, #word do flags[word:sub(i, i)] = true end
      local last = "-" .. word:sub(-1)
      if values and values[last] then flags[word:sub(-1)], at = words[at + 1] or true, at + 1 end
    else
      operands[#operands + 1] = word
    end
    at = at + 1
  end
  return flags, operands
end

-- Reads a text that `by` runs: its commands are added to those of `s`.
function M.read_into(s, text, by)
  if s.depth >= NESTED_MAX then return end
  read_list({ text = text, at = 1, commands = s.commands, vars = s.vars, folder = by.folder, here = {}, depth = s.depth + 1 })
end

-- The commands of a text, also those inside substitutions, sudo, bash -c and so on. Each has
-- words, writes (paths that redirections write), stdin (of a here document), from (the command before it in the pipeline),
-- folder (after cd), by (the program that runs it), inner (the command that it runs), program.
function M.commands(text)
  local s = { text = text, at = 1, commands = {}, vars = {}, here = {}, depth = 0 }
  read_list(s)
  local depths, at = {}, 1
  while s.commands[at] do
    local command, depth = s.commands[at], depths[at] or 0
    local inner, words = M.runs(command)
    if depth < NESTED_MAX and #s.commands < COMMANDS_MAX then
      local before = #s.commands
      if inner then
        command.inner = inner
        s.commands[before + 1] = inner
      elseif words then M.read_into(s, words, command) end
      for i = before + 1, #s.commands do depths[i] = depth + 1 end
    end
    at = at + 1
  end
  return s.commands
end

return M
