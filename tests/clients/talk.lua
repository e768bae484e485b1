-- The dialogues of tests/clients/servers: a real daemon with a real server as upstream, a model that calls its tools,
-- and the text that the model reads.
--
--   return function(talk)
--     local gate = talk.serve { upstreams = { … } }            as in the configuration, or mcp_config = {…}
--     local model = talk.model()                               a connection with its own session
--     model:hears("what the dialogue is about", model:calls("echo", { message = "hello" }), "Echo: hello")
--     model:is_refused(…) :reads_failure(…)                     the same, for calls that fail
--     talk.is_killed_in_a_call(model, "tool", {…})
--   end
local daemon = require "daemon"
local process = require "process"
local client = require "client"
local signal = require "posix.signal"

local M = {}
local model = {}
model.__index = model

-- Converts a Lua value to Lua source, for the configuration.
local function written(value)
  if type(value) ~= "table" then return type(value) == "string" and ("%q"):format(value) or tostring(value) end
  local parts = {}
  for key, one in pairs(value) do
    parts[#parts + 1] = (type(key) == "number" and "" or ("[%q] = "):format(key)) .. written(one)
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- ---- checks ----

function M.new(tally, places)
  local talk = { sessions = 0, started = {}, node = places.node, packages = places.packages, python = places.python,
                 servers = places.servers }

  function talk.check(what, good, otherwise)
    tally(good, (good and "ok - " or "not ok - ") .. talk.title .. ": " .. what)
    if not good then
      local said = type(otherwise) == "string" and otherwise or client.json.encode(otherwise or "")
      print("  #   " .. said:gsub("\n", "\n  #   "))
    end
    return good
  end

  -- ---- the daemon and its server ----

  -- given: upstreams, mcp_config (as a table), policies, config (more keys); waits until every upstream is up.
  function talk.serve(given)
    local config = { upstreams = given.upstreams, log = { level = "debug" } }
    for key, value in pairs(given.config or {}) do config[key] = value end
    local arguments = {}
    if given.mcp_config then
      talk.directory = talk.directory or process.directory()
      arguments = { "--mcp-config", process.write(talk.directory .. "/mcp.json", client.json.encode(given.mcp_config)) }
    end
    talk.gate = daemon.start { config = "return " .. written(config), policies = given.policies, arguments = arguments,
                               environment = given.environment }
    talk.is_up()
    return talk.gate
  end

  function talk.upstream(name)
    for _, one in ipairs(talk.gate:status().upstreams or {}) do
      if not name or one.name == name then return one end
    end
  end

  function talk.is_up()
    return process.eventually("the upstream is up", function()
      local one = talk.upstream()
      return one and one.state == "up" and one, client.json.encode(one or "no upstream")
    end, 60)
  end

  -- Starts a program beside the daemon; returns the first line it prints, and its process.
  function talk.beside(argv)
    talk.directory = talk.directory or process.directory()
    local out = ("%s/program-%d"):format(talk.directory, #talk.started)
    local child = process.start(argv, { stdin = "/dev/null", stdout = out, stderr = out .. ".err" })
    table.insert(talk.started, child)
    local line = process.eventually(argv[#argv] .. " listens", function()
      return process.read(out):match "^([^\n]+)\n"
    end, 60)
    return line, child
  end

  -- The process id of the server that was started last.
  function talk.server_pid()
    local pid
    for number in talk.gate:log():gmatch "upstream_started upstream=%S+ pid=(%d+)" do pid = tonumber(number) end
    return pid
  end

  function talk.model()
    talk.sessions = talk.sessions + 1
    return setmetatable({ talk = talk, line = talk.gate:connect(), session = talk.title .. "-" .. talk.sessions }, model)
  end

  -- ---- killed ----

  -- Stops the server before it is killed, so that the call is certainly in flight. given: unsure (a second run would
  -- act twice), next_tool and next_arguments (another call for after the restart), pid and again (a server that the
  -- daemon does not start).
  function talk.is_killed_in_a_call(one, tool, arguments, given)
    given = given or {}
    local pid = given.pid or talk.server_pid()
    signal.kill(pid, signal.SIGSTOP)
    one:says(tool, arguments)
    one.line:say { jsonrpc = "2.0", id = "first", method = "ping" }
    one.line:answer "first"
    one.line:say { jsonrpc = "2.0", id = "second", method = "ping" } -- the event loop has sent the call by now
    one.line:answer "second"
    signal.kill(pid, signal.SIGKILL)
    local reads = one:answered()
    talk.check("killed in a call: the model reads what to do",
      reads.verdict.verdict == "wait" and reads.verdict.error_class == "transient" and reads.isError
      and reads.text:find(given.unsure and "First check whether it was carried out" or "wait %d+ s") ~= nil, reads)
    one.line:say { jsonrpc = "2.0", id = "anything?", method = "ping" }
    local next_heard, line = one.line:hears()
    talk.check("it gets one answer", next_heard.id == "anything?", line)
    if given.again then given.again() end
    talk.is_up()
    local after = one:calls(given.next_tool or tool, given.next_arguments or arguments)
    talk.check("the next call works, after the restart", not after.isError, after)
    if not given.pid then
      local now = talk.server_pid()
      talk.check("the server runs in a new process", now ~= pid, { was = pid, is = now })
    end
    return reads
  end

  function talk.over()
    for _, child in ipairs(talk.started) do
      child:signal(signal.SIGKILL)
      child:wait()
    end
    if talk.directory then process.remove(talk.directory) end
    talk.directory = nil
  end

  return talk
end

-- ---- a model ----

local function read_by_the_model(result, line)
  return { isError = result.isError == true, text = client.text(result), verdict = client.verdict(result) or {},
           result = result, line = line }
end

function model:says(name, arguments, meta)
  self.last_id = (self.last_id or 0) + 1
  local all = client.session(self.session)
  for key, value in pairs(meta or {}) do all[key] = value end
  local encoded = type(arguments) == "string" and arguments or
    (next(arguments or {}) == nil and "{}" or client.json.encode(arguments))
  self.line:say(('{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":%s}}')
    :format(self.last_id, client.json.encode(name), encoded, client.json.encode(all)))
end

function model:answered()
  local message, line = self.line:answer(self.last_id)
  if os.getenv "SHOW" then print("    | " .. client.text(message.result):gsub("\n", "\n    | ")) end
  return read_by_the_model(message.result or { isError = true, content = {} }, line)
end

function model:calls(name, arguments, meta)
  self:says(name, arguments, meta)
  return self:answered()
end

local function holds(reads, words)
  for _, word in ipairs(words) do
    if not reads.text:find(word, 1, true) then return false end
  end
  return true
end

-- The call succeeds, and the model reads these words.
function model:hears(what, reads, ...)
  return self.talk.check(what, not reads.isError and holds(reads, { ... }), reads)
end

-- The gate refuses the call before it reaches the server.
function model:is_refused(what, reads, ...)
  return self.talk.check(what, reads.isError and reads.verdict.error_class == "invalid_arguments"
                               and holds(reads, { ... }), reads)
end

-- The server fails the call: a tool_error that quotes these words.
function model:reads_failure(what, reads, ...)
  return self.talk.check(what, reads.isError and reads.verdict.error_class == "tool_error" and holds(reads, { ... }),
    reads)
end

function model:lists()
  local names = {}
  for _, tool in ipairs(self.line:asks("tools/list", {}).tools) do names[tool.name] = tool end
  return names
end

return M
