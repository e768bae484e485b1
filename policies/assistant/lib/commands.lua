-- What the commands of a shell do: which destroy something, which write where, which operate the gateway.
local protected = require "lib.protected"
local shell = require "lib.shell"

local M = {}

-- Folders that a build makes again.
local BUILD = set {
  "build", "dist", "out", "target", "bin", "obj", "debug", "release", "tmp", "temp", "node_modules", "bower_components",
  "coverage", "htmlcov", "__pycache__", "_build", "deriveddata", "storybook-static", "test-results", "playwright-report", "venv",
  ".venv", ".tox", ".nox", ".eggs", ".gradle", ".cache", ".next", ".nuxt", ".output", ".turbo", ".vite", ".parcel-cache",
  ".angular", ".svelte-kit", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".nyc_output", ".dart_tool", ".expo",
  ".terraform", ".docusaurus", ".vitepress",
}
local BUILD_NAMES = { "^cmake%-build", "^build[-_]", "^bazel%-", "%.egg%-info$", "%.dsym$", "%.pyc$" }

-- Whether `path` is a build folder or in one. The first folder below / or the home is somebody's own: ~/build is not.
local function is_build(path)
  local parts, own = {}, 0
  for part in path:lower():gmatch "[^/]+" do parts[#parts + 1] = part end
  if path:find "^/" then own = 1 end
  if path:find "^~" then own = 2 end
  if path:find "^/home/" or path:find "^/users/" then own = 3 end
  if path:find "^/tmp/." or path:find "^/var/tmp/." or path:find "^/private/tmp/." or path:find "^%$tmpdir/."
     or path:find "^%${?TMPDIR}?/." then
    return parts[#parts] ~= "*" or #parts > 2
  end
  for i = own + 1, #parts do
    if parts[i] == ".." then return false end
    if BUILD[parts[i]] then return true end
    for _, pattern in ipairs(BUILD_NAMES) do
      if parts[i]:find(pattern) then return true end
    end
  end
  return path:find "^%$%(mktemp%)" ~= nil
end

local function all_build(command, paths)
  for _, path in ipairs(paths) do
    if not is_build(shell.path(command, path)) then return false end
  end
  return #paths > 0
end

local function has(list, pattern)
  for _, each in ipairs(list) do
    if each:find(pattern) then return true end
  end
  return false
end

-- Git's subcommand, its options and operands. Options before the subcommand: -C FOLDER, -c key=value, --no-pager.
local GIT_VALUES = set { "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path" }
local PUSH_VALUES = set { "-o", "--push-option", "--receive-pack", "--exec" }

local GIT = {
  push = function(command, first)
    local flags, operands = shell.options(command, first, PUSH_VALUES)
    if flags.n or flags["--dry-run"] then return nil end
    if flags.f or flags["--force"] or flags["--mirror"] or has(operands, "^%+") then return "overwrites commits of others" end
  end,
  reset = function(command, first)
    if shell.options(command, first)["--hard"] then return "throws changes away" end
  end,
  clean = function(command, first)
    local flags, operands = shell.options(command, first, set { "-e", "--exclude" })
    if (flags.f or flags["--force"]) and not (flags.n or flags["--dry-run"]) and not all_build(command, operands) then
      return "deletes files that git does not know"
    end
  end,
  checkout = function(command, first)
    local flags, operands = shell.options(command, first, set { "-b", "-B", "--orphan" })
    if flags["--ours"] or flags["--theirs"] or flags.b or flags.B or flags.m or flags["--merge"] then return nil end
    if has(command.words, "^%-%-$") and command.words[#command.words] ~= "--" and not all_build(command, operands)
       or operands[#operands] == "." or flags.f or flags["--force"] then
      return "throws changes away"
    end
  end,
  restore = function(command, first)
    local flags, operands = shell.options(command, first, set { "-s", "--source" })
    if flags["--ours"] or flags["--theirs"] or flags["--merge"] or flags.m then return nil end
    local staged_only = (flags.S or flags["--staged"]) and not (flags.W or flags["--worktree"])
    if #operands > 0 and not staged_only and not all_build(command, operands) then return "throws changes away" end
  end,
}

-- The names that `find` looks for.
local function names_of(find)
  local names, words = {}, find.words
  for i, word in ipairs(words) do
    if word == "-name" or word == "-iname" or word == "-path" then names[#names + 1] = words[i + 1] end
  end
  return names
end

local function rm(command)
  local flags, operands = shell.options(command)
  if not (flags.r or flags.R or flags["--recursive"]) or flags["--help"] then return nil end
  local before = command.by == "xargs" and #operands == 0 and command.from
  if before and shell.program(before) == "find" then operands = names_of(before) end
  if not all_build(command, operands) then return "deletes folders" end
end

-- find … -exec rm -rf {}: the names that it looks for are what it deletes.
local function find(command)
  local words, removes = command.words, false
  for i, word in ipairs(words) do
    removes = removes or (word == "-exec" or word == "-execdir") and (words[i + 1] or ""):find "rm$"
              and (words[i + 2] or ""):find "^%-%a*[rR]"
  end
  if removes and not all_build(command, names_of(command)) then return "deletes folders" end
end

-- Texts that a command reads from the pipeline before it, its here document or its own words.
local function texts_of(command)
  local texts = { command.stdin }
  for i = 2, #command.words do texts[#texts + 1] = command.words[i] end
  local before = command.from
  if before then
    local program = shell.program(before)
    if program == "echo" or program == "printf" or program == "cat" then
      texts[#texts + 1] = before.stdin
      for i = 2, #before.words do texts[#texts + 1] = before.words[i] end
    end
  end
  return texts
end

-- Whether a statement of an SQL text drops or empties something. Quoted texts and comments are not statements.
local function drops(text)
  text = text:lower():gsub("\\n", "\n"):gsub("'[^']*'", "''"):gsub("%-%-[^\n]*", "")
  local closed = text:match "^.*%*/" or "" -- behind it, each "/*" would be looked for an end
  text = closed:gsub("/%*.-%*/", " ") .. text:sub(#closed + 1)
  for statement in text:gmatch "[^;]+" do
    local first, second = statement:match "^[%s\"]*(%a+)%s+[\"`]?([%w_$]+)"
    if first == "drop" or first == "truncate" then return true end
    if first == "alter" and statement:find "%f[%a]drop%s+column%f[%A]" then return true end
    if first == "begin" and (second == "drop" or second == "truncate") then return true end
  end
  return false
end

local function sql(command)
  for _, text in ipairs(texts_of(command)) do
    if drops(text) then return "drops or empties a table" end
    local attached = text:match "^%-%-?%a+=?(.+)$" -- -c'DROP …', --command='DROP …', -e'DROP …'
    if attached and drops(attached) then return "drops or empties a table" end
  end
end

local function says(pattern, reason)
  return function(command)
    for _, text in ipairs(texts_of(command)) do
      if text:lower():find(pattern) then return reason end
    end
  end
end

local function chmod(command)
  local flags, operands = shell.options(command)
  local open = operands[1] == "777" or operands[1] == "0777" or (operands[1] or ""):find "^[ao]+%+rwx$"
  if (flags.R or flags["--recursive"]) and open then return "opens files to everyone" end
end

local DISK, NVME = "/dev/[shvx]v?d[a-z]", "/dev/[nm][vm][mc]"

local function disk(command)
  if has(command.words, "^of=" .. DISK) or has(command.words, "^of=" .. NVME) then return "overwrites a disk" end
end

local PROGRAMS = {
  rm = rm, find = find, chmod = chmod, dd = disk,
  psql = sql, mysql = sql, mariadb = sql, sqlite3 = sql, duckdb = sql, sqlcmd = sql, cockroach = sql, clickhouse = sql,
  ["clickhouse-client"] = sql, snowsql = sql, bq = sql, cqlsh = sql, usql = sql, pgcli = sql, mycli = sql, litecli = sql,
  dropdb = function() return "deletes a database" end,
  mysqladmin = says("^drop$", "deletes a database"),
  mongosh = says("%.drop%w*%(", "deletes a collection or a database"),
  mongo = says("%.drop%w*%(", "deletes a collection or a database"),
  ["redis-cli"] = says("^flush%a+$", "empties a database"),
}

local FETCHERS = set { "curl", "wget" }
local INTERPRETERS = set { "python", "python2", "python3", "perl", "ruby", "node", "php" }

local function fetches(command)
  while command do
    if FETCHERS[shell.program(command)] or command.inner and FETCHERS[shell.program(command.inner)] then return true end
    command = command.from
  end
  return false
end

-- Whether the command runs what it reads from stdin: `sh`, `bash -s -- x`, `python3 -`, and not `sh file`, `python3 -c text`.
local function runs_stdin(command)
  local program = shell.program(command)
  local is_shell = shell.is_shell(program)
  if not is_shell and not INTERPRETERS[program] then return false end
  local operand
  for i = 2, #command.words do
    local word = command.words[i]
    if word == "-" or word == "/dev/stdin" or is_shell and word:find "^%-%a*s" then return true end
    if word:find "^%-%a*[ceEm]$" then return false end
    if not word:find "^%-" then
      operand = word
      break
    end
  end
  return not operand
end

local function runs_the_network(command)
  local program = shell.program(command)
  if command.from and runs_stdin(command) and fetches(command.from) then return true end
  if shell.is_shell(program) or program == "eval" or program == "source" or program == "." or INTERPRETERS[program] then
    for i = 2, #command.words do -- sh -c "$(curl …)", source <(curl …)
      local inner = command.words[i]:match "^[$<]%(([%w|_.-]*)%)"
      for each in (inner or ""):gmatch "[^|]+" do
        if FETCHERS[each] then return true end
      end
    end
  end
  return false
end

-- What is lost when the command runs ("deletes folders"), or nil.
function M.destroys(command)
  local program = shell.program(command)
  if program:find "^mkfs" then return "formats a disk" end
  if has(command.writes, "^" .. DISK) or has(command.writes, "^" .. NVME) then return "overwrites a disk" end
  if runs_the_network(command) then return "runs a program from the network" end
  if program == "git" then
    local at = 2
    while command.words[at] and command.words[at]:find "^%-" do at = at + (GIT_VALUES[command.words[at]] and 2 or 1) end
    local judge = GIT[command.words[at]]
    return judge and judge(command, at + 1)
  end
  return PROGRAMS[program] and PROGRAMS[program](command)
end

-- Where the file goes that is copied to a place: into it, if it is a folder.
local function into(command, target, sources)
  local paths = { shell.path(command, target) }
  for _, source in ipairs(sources) do
    local name = shell.name((source:gsub("/$", "")))
    if name ~= "" and (target:find "/$" or target == "." or target == ".." or target == "~") then
      paths[#paths + 1] = shell.path(command, target .. "/" .. name)
    end
  end
  return paths
end

local function copies(command)
  local values = set { "-t", "--target-directory", "-m", "-o", "-g", "-S", "-e", "--exclude", "--mode" }
  local flags, operands = shell.options(command, 2, values)
  local target = flags["--target-directory"] or type(flags.t) == "string" and flags.t
  if target then return into(command, target .. "/", operands) end
  if #operands < 2 then return {} end
  return into(command, table.remove(operands), operands)
end

local function all_operands(command)
  local _, operands = shell.options(command)
  return operands
end

-- Without -e or -f, the first operand is the program: sed -i s/a/b/ file.
local function edited(command)
  local flags, operands = shell.options(command, 2, set { "-e", "-f", "--expression", "--file" })
  local in_place = flags.i or flags["--in-place"]
  for _, word in ipairs(command.words) do in_place = in_place or word:find "^%-%a*i" end
  if not in_place then return {} end
  if not (flags.e or flags.f or flags["--expression"] or flags["--file"]) then table.remove(operands, 1) end
  return operands
end

local function value_of(short, long)
  return function(command)
    local flags = shell.options(command, 2, set { "-" .. short, "--" .. long, "-X", "-H", "-d", "-u", "-A" })
    return { type(flags[short]) == "string" and flags[short] or flags["--" .. long] }
  end
end

local WRITERS = {
  tee = all_operands, truncate = all_operands, cp = copies, mv = copies, install = copies, ln = copies, rsync = copies,
  scp = copies, sed = edited, gsed = edited, perl = edited, rm = all_operands, unlink = all_operands, shred = all_operands,
  curl = value_of("o", "output"), wget = value_of("O", "output-document"),
  dd = function(command)
    local paths = {}
    for _, word in ipairs(command.words) do paths[#paths + 1] = word:match "^of=(.+)$" end
    return paths
  end,
}

-- The paths that the command writes or deletes, by redirections and by what its program does.
function M.writes(command)
  local paths = {}
  for _, path in ipairs(command.writes) do paths[#paths + 1] = path end
  local writer = WRITERS[shell.program(command)]
  for _, path in ipairs(writer and writer(command) or {}) do
    if type(path) == "string" then paths[#paths + 1] = shell.path(command, path) end
  end
  return paths
end

-- The patch in Codex' format that a command applies: apply_patch <<'EOF' … EOF.
function M.patch(command)
  local program = shell.program(command)
  if program == "apply_patch" or program == "applypatch" then return command.words[2] or command.stdin end
end

local OPERATING = {
  approve = true, deny = true, reload = true, stop = true,
  pins = function(words) return has(words, "^accept$") end,
  session = function(words) return has(words, "^%-%-reset") or has(words, "^%-%-forget") end,
}
local METHODS = set { "approve", "deny", "reload", "pins", "session" }
local SPEAKERS = set { "socat", "nc", "ncat", "netcat", "curl", "python", "python3", "perl", "node", "ruby" }

-- Whether the command operates the gateway, by its commands or by a method that it sends to the socket.
function M.operates_gateway(command)
  local program, words = shell.program(command), command.words
  if program == "toolgate" then
    for i = 2, #words do
      local operates = OPERATING[words[i]]
      if operates then return operates == true or operates(words) end
    end
  elseif SPEAKERS[program] then
    for _, text in ipairs(texts_of(command)) do
      for method in text:gmatch "toolgate/(%a+)" do
        if METHODS[method] then return true end
      end
    end
  end
  return false
end

-- The verdict about a line of the shell, or nil.
function M.verdict(line)
  local written, destroys = {}, nil
  for _, command in ipairs(shell.commands(line)) do
    if M.operates_gateway(command) then
      return refuse("self_approval", "an agent does not operate the gateway that checks it",
                    "Ask the user to run this command in a terminal of their own.")
    end
    for _, path in ipairs(M.writes(command)) do written[#written + 1] = path end
    for _, path in ipairs(protected.paths_of_patch(M.patch(command) or "")) do written[#written + 1] = path end
    destroys = destroys or M.destroys(command)
  end
  local verdict = protected.writes(written)
  if verdict then return verdict end
  if destroys then return ask("This command " .. destroys .. ". Run it?", { "Run it", "Do not run it" }) end
end

return M
