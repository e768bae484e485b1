-- toolgate completion: the scripts of the shells, and the candidates that these scripts ask for while somebody types. The
-- candidates come from what commands declare, so that a new option is completed without more.

local ui = require "ui"

-- A candidate and its description on one line, or a request to the shell: ":files", ":folders".
local SCRIPTS = {}

SCRIPTS.bash = [=[
# bash completion of toolgate
_toolgate() {
    local line current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) compopt -o filenames
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current") ;;
        :folders) compopt -o filenames
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$current") ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("$1" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _toolgate toolgate
]=]

SCRIPTS.zsh = [=[
#compdef toolgate
# zsh completion of toolgate
_toolgate() {
    local line found_none=1
    local -a found
    for line in "${(@f)$(${words[1]} completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        '') ;;
        :files) _files && found_none=0 ;;
        :folders) _files -/ && found_none=0 ;;
        *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( ${#found} )) && _describe toolgate found && found_none=0
    return found_none
}
if [ "$funcstack[1]" = _toolgate ]; then _toolgate "$@"; else compdef _toolgate toolgate; fi
]=]

SCRIPTS.fish = [=[
# fish completion of toolgate
function __toolgate_candidates
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    command -q $before[1]; or return
    for line in ($before[1] completion words -- $before[2..] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :folders
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c toolgate -f -a '(__toolgate_candidates)'
]=]

local function starts(word, with) return word:sub(1, #with) == with end

-- What is completed: the words behind the program's name, of which the last is being typed and may be empty.
local function add(c, candidate, words)
  if starts(candidate, c.current) then io.write(candidate, "\t", words, "\n") end
end

local function add_commands(c)
  for _, name in ipairs(cli.commands()) do add(c, name, require(name).summary) end
end

local function add_files() print ":files" end
local function add_folders() print ":folders" end

-- What a running daemon serves. A shell puts a candidate on its line as it is: `$(…)` in a name would run at the next Enter.
local function add_tools(c)
  cli.end_after(2)
  local a = cli.ask(c.socket, "toolgate/tools", nil, "exact")
  local tools = a and ui.is_array(a.tools) and a.tools or {}
  for _, tool in ipairs(tools) do
    local name = ui.text(ui.table(tool).name)
    if name:find "^[%w_%-./:@]+$" then add(c, name, "tool") end
  end
end

local function add_vocabulary(c)
  for _, word in ipairs(assert(loadstring(cli.embedded "policy/reference.lua"))().words) do add(c, word.name, word.group) end
end

-- What the argument of an option or an operand is, by its name in --help.
local KINDS = { PATH = add_files, FILE = add_files, ["DIR|FILE"] = add_files, SCHEMA = add_files, INSTANCE = add_files,
                SOCKET = add_files, DIR = add_folders, TOOL = add_tools, WORD = add_vocabulary }

local function add_values(c, what)
  if KINDS[what] then return KINDS[what](c) end
  if not what:find "^[a-z]" then return end
  for name in what:gmatch "[^|]+" do add(c, name, "") end -- "text|json": a candidate each
end

local function option_of(options, word)
  for _, option in ipairs(options) do
    if word == "--" .. option.name or option.letter and word == "-" .. option.letter then return option end
  end
end

local function add_options(c, options)
  for _, option in ipairs(options) do add(c, "--" .. option.name, option.words) end
  add(c, "--help", "print this help")
end

-- The name of the operand at an index, without brackets; of "SCHEMA INSTANCE..." the last one is any later one too.
local function operand_at(operands, index)
  for word in operands:gmatch "%S+" do
    local name = word:match "^%[?([^%].]*)"
    if index == 0 then return name end
    index = index - 1
    if word:find("...", 1, true) then return name end
  end
  return ""
end

local function complete_command(c, declaration, words)
  local pending, operands -- the option whose value is next
  operands = 0
  for i = 2, #words - 1 do
    local word = words[i]
    if word ~= "=" then -- bash takes --socket=PATH apart
      if pending and pending.name == "socket" then c.socket = word end
      local option = not pending and option_of(declaration.options, word)
      if not pending and not option and word:sub(1, 1) ~= "-" then operands = operands + 1 end
      pending = option and option.argument and option or nil
    end
  end
  if c.current == "=" then c.current = "" end
  if pending then
    add_values(c, pending.argument)
  elseif c.current:sub(1, 1) == "-" then
    add_options(c, declaration.options)
  else
    add_values(c, operand_at(declaration.operands, operands))
  end
end

local function complete(words)
  local c = { current = words[#words] }
  if #words == 1 or words[1] == "help" and #words == 2 then return add_commands(c) end
  for _, name in ipairs(cli.commands()) do
    if name == words[1] then complete_command(c, require(name), words) end
  end
end

return command {
  name = "completion", operands = "bash|zsh|fish", summary = "print a shell's completion script",
  about = [[
Prints the script that makes bash, zsh or fish complete toolgate's commands, options, files and the
tools of a running daemon. The Debian package and `make install` install these scripts. A script
calls `toolgate completion words -- WORD...`, which prints what may stand for the last WORD.]],
  exits = [[
  0  printed
  2  usage]],
  example = [[
  source <(toolgate completion bash)
  toolgate completion fish > ~/.config/fish/completions/toolgate.fish]],
  least = 1, most = 1000,

  run = function(o)
    local what = o[1]
    if what == "words" then
      table.remove(o, 1)
      if o[1] then complete(o) end
    elseif #o == 1 and SCRIPTS[what] then
      io.write(SCRIPTS[what])
    else
      fail("expected bash, zsh or fish, got '%s'", #o == 1 and what or o[2])
    end
  end,
}
