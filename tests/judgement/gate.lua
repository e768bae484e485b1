-- A daemon with recorded tools, asked through toolgate/check and toolgate/report with JSON text as it was recorded.
local client = require "client"
local daemon = require "daemon"
local process = require "process"
local trajectories = require "trajectories"
local tree = require "json_tree"
local json = client.json

local M = {}

local gate = {}
gate.__index = gate

local OFFER = require("posix.unistd").getcwd() .. "/tests/support/offering.py"
local TOOLS_OF_AN_UPSTREAM = 900 -- the gate takes at most 1,000

-- Servers that list the definitions of `file` between them, as the configuration's `upstreams`.
local function upstreams_of(file)
  local servers, definitions = {}, tree.read(process.read(file))
  for from = 1, #definitions, TOOLS_OF_AN_UPSTREAM do
    local part = { kind = "array" }
    for i = from, math.min(from + TOOLS_OF_AN_UPSTREAM - 1, #definitions) do part[#part + 1] = definitions[i] end
    local offer = process.write(process.directory() .. "/tools.json", tree.write(part))
    servers[#servers + 1] = ('part_%d = { command = "python3", args = { %q }, env = { OFFER = %q } }'):format(from, OFFER, offer)
  end
  return ("return { upstreams = { %s } }"):format(table.concat(servers, ", "))
end

-- What a daemon says; `given` is as daemon.start takes it.
function M.of(given)
  local self = setmetatable({ sessions = 0 }, gate)
  self.daemon = daemon.start(given)
  self.connection = self.daemon:connect()
  return self
end

-- `file`: definitions, as of tools/list. `of_upstream`: MCP servers list them, so that their schemas are the servers'
-- own; else an agent runs them.
function M.start(file, of_upstream)
  local self = M.of(of_upstream and { config = upstreams_of(file) } or { tools = file })
  if of_upstream then
    process.eventually("the upstreams are up", function()
      for _, upstream in ipairs(self.daemon:status().upstreams) do
        if upstream.state ~= "up" then return false end
      end
      return true
    end)
  end
  return self
end

-- Sends params given as JSON text; returns the result as text, or nil and the error.
function gate:ask(method, params)
  local connection = self.connection
  connection.last_id = connection.last_id + 1
  connection:say_line(('{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}'):format(connection.last_id, method, params))
  local line = connection:hears_line()
  return trajectories.raw(line, "result"), line
end

-- A session of its own for each call unless one is given.
function gate:place(name, session, turn, step)
  self.sessions = self.sessions + 1
  local meta = ('"dev.toolgate/session":%s'):format(json.encode(session or "alone " .. self.sessions))
  if turn then meta = meta .. (',"dev.toolgate/turn":%d,"dev.toolgate/step":"%s"'):format(turn, step) end
  return ('"name":%s,"_meta":{%s}'):format(json.encode(name), meta)
end

-- { verdict, arguments (a tree), text, callId } of a check.
function gate:check(name, arguments, session, turn, step)
  local place = self:place(name, session, turn, step)
  local said, line = self:ask("toolgate/check", ('%s,"arguments":%s'):format(place, arguments))
  if not said then error(("toolgate/check of %s %s was answered %s"):format(name, arguments, line), 0) end
  local verdict = json.decode(said)
  local passed = trajectories.raw(said, "arguments")
  return { verdict = verdict, arguments = passed and tree.read(passed), text = verdict.text or "",
           call_id = verdict.callId, place = place }
end

-- The verdict of a report; `outcome` is "result":… or "error":… as text.
function gate:report(checked, outcome)
  local said, line = self:ask("toolgate/report", ('"callId":%s,%s'):format(json.encode(checked.call_id), outcome))
  if not said then error("toolgate/report was answered " .. line, 0) end
  return json.decode(said)
end

function gate:stop()
  self.daemon:stop()
end

return M
