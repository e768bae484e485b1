-- The user's own daemon: `toolgate connect` and `toolgate hook` start it where none listens. Never where somebody chose a
-- socket, or where this host has a daemon of the system: a guard that is down must not be replaced by an empty one.
local own = {}

local SYSTEM_CONFIG = "/etc/toolgate/toolgate.lua"
local SYSTEM_SOCKET = "/run/toolgate/toolgate.sock"
local IDLE_S        = "600" -- without a connection: then it ends
local PRIVATE       = 448 -- 0700
local POLL_US       = 20000
local TELL_US       = 1000000 -- until the first word on stderr
local LOG_BYTES     = 4096 -- of the log's end, in an error
local LOG_MAX_BYTES = 8388608 -- of a log that the next daemon goes on with

local function home()
  local path = os.getenv "HOME" or ""
  if not path:find "^/" then fail "HOME is not set: the user's own files cannot be found" end
  return path
end

local function folder(variable, default)
  local given = os.getenv(variable) or ""
  return (given:find "^/" and given or home() .. default) .. "/toolgate"
end

function own.config_folder() return folder("XDG_CONFIG_HOME", "/.config") end
function own.state_folder() return folder("XDG_STATE_HOME", "/.local/state") end
function own.servers_folder() return own.config_folder() .. "/servers.d" end

-- With the folders above it; private from here on. Or nil and why.
function own.make_folders(path)
  for part in (path .. "/"):gmatch "()/" do
    local at = path:sub(1, math.max(1, part - 1)) -- "/" first
    local made, why = cli.make_folder(at, PRIVATE)
    if not made then return nil, at .. ": " .. why end
  end
  return true
end

-- Polls until it holds; false: not within this time.
function own.wait(holds, ms)
  local began = cli.mono_us()
  while not holds() do
    if cli.mono_us() - began > ms * 1000 then return false end
    cli.sleep_until(cli.mono_us() + POLL_US)
  end
  return true
end

-- The configuration of `toolgate serve --user`, by its options; and in words. A file that cannot be read is an error of the
-- daemon.
function own.configuration()
  local at = own.config_folder()
  local file, policies, servers = at .. "/toolgate.lua", at .. "/policies", own.servers_folder()
  local options = { ["default-policies"] = policies, ["mcp-config"] = { servers } }
  if select(3, cli.stat(file)) ~= "missing" then options.config = file end
  return options, table.concat({ options.config or policies, servers }, ", ")
end

-- The socket; nil and why: none may be started for it.
function own.startable(named)
  local path, default = cli.default_socket()
  if not (os.getenv "HOME" or ""):find "^/" then return nil, "HOME is not set" end
  if named or (os.getenv "TOOLGATE_SOCKET" or "") ~= "" then return nil, "its socket was named" end
  if cli.access(SYSTEM_CONFIG, "") then return nil, SYSTEM_CONFIG .. " exists: start that daemon" end
  if path ~= default then return nil, "this host has a daemon of the system: start that" end
  if path == SYSTEM_SOCKET and cli.uid ~= 0 then
    return nil, "neither XDG_RUNTIME_DIR nor /run/user/" .. cli.uid .. " gives this user a folder for its socket"
  end
  return path
end

-- Of a daemon that is about to start. One that has become long is kept as the only older one: nobody else rotates it.
local function log_file()
  local log = own.state_folder() .. "/daemon.log"
  if (cli.stat(log) or { size = 0 }).size > LOG_MAX_BYTES then os.rename(log, log .. ".1") end
  return log
end

-- Starts it, without a word and without waiting: its process and its log. Or nil and why.
function own.spawn()
  local log = log_file()
  local made, why = own.make_folders(own.state_folder())
  if not made then return nil, why end
  local pid
  pid, why = cli.spawn({ "serve", "--user", "--idle", IDLE_S }, log)
  return pid, pid and log or why
end

local function log_end(path, from)
  local file = io.open(path)
  if not file then return "" end
  local size = file:seek "end"
  file:seek("set", math.max(from, size - LOG_BYTES))
  local words = file:read "*a"
  file:close()
  return words
end

-- Waits until a daemon listens at this socket, and starts it; at most this long. True; or nil and why not.
function own.start(path, ms)
  if not cli.connect(path) then return true end
  local from, began = (cli.stat(log_file()) or { size = 0 }).size, cli.mono_us()
  local pid, log = own.spawn()
  if not pid then return nil, log end
  local _, words = own.configuration()
  local told, ended = false, false
  local up = own.wait(function()
    if not cli.connect(path) then return true end
    ended = ended or cli.has_ended(pid)
    if not told and cli.mono_us() - began > TELL_US then
      told = true
      cli.warn(("the user's own daemon is starting (%s); its log is %s"):format(words, log))
    end
    -- One that ends at once may have found another that is starting.
    return ended and cli.lock(path .. ".lock") ~= false
  end, ms)
  if not cli.connect(path) then
    cli.warn(("started the user's own daemon at %s: %s"):format(path, words))
    return true
  end
  if up then return nil, ("the user's own daemon (%s) did not start; %s says:\n%s"):format(words, log, log_end(log, from)) end
  return nil, ("the user's own daemon has not answered within %d s; its log is %s"):format(ms / 1000, log)
end

return own
