-- Starts http_server.py for a spec, sets its answers and reads the requests it got.
local process = require "process"
local signal = require "posix.signal"
local client = require "client"

local M = { running = {} }
local server = {}
server.__index = server

-- given: routes = { ["GET /path"] = answer or { answer, … } }, tls = true.
function M.start(given)
  local self = setmetatable({ directory = process.directory() }, server)
  self:answers(given.routes or {})
  self.child = process.start({ "python3", "tests/support/http_server.py", self.directory, given.tls and "tls" or nil }, {
    stdin = "/dev/null", stdout = self.directory .. "/stdout", stderr = self.directory .. "/stderr" })
  table.insert(M.running, self)
  self.port = process.eventually("the HTTP server accepts", function()
    if self.child:status() then error(process.read(self.directory .. "/stderr"), 0) end
    local port = process.read(self.directory .. "/port")
    return port ~= "" and port
  end)
  self.address = (given.tls and "https://localhost:" or "http://127.0.0.1:") .. self.port
  self.certificate = self.directory .. "/server.pem"
  return self
end

-- An MCP server at /mcp with the options of http_server.py.
function M.mcp(options, given)
  given = given or {}
  local answer = { mcp = next(options) and options or { era = "legacy" } }
  given.routes = { ["POST /mcp"] = answer, ["GET /mcp"] = answer, ["DELETE /mcp"] = answer }
  local self = M.start(given)
  self.url = self.address .. "/mcp"
  return self
end

-- Replaces the answers; the count of requests per route continues.
function server:answers(routes)
  local lists = {}
  for key, answer in pairs(routes) do lists[key] = answer[1] and answer or { answer } end
  process.write(self.directory .. "/routes.new", client.json.encode(next(lists) and lists or { none = { {} } }))
  os.rename(self.directory .. "/routes.new", self.directory .. "/routes.json")
end

-- The requests in order: method, path, query, headers, body, connection.
function server:saw()
  local list = {}
  local seen = process.read(self.directory .. "/seen.jsonl")
  for line in seen:gmatch "([^\n]+)\n" do list[#list + 1] = client.json.decode(line) end -- not half a line
  return list
end

-- Waits for `count` requests for which `wanted` is true; returns them.
function server:sees(what, wanted, count)
  return process.eventually("the HTTP server sees " .. what, function()
    local found = {}
    for _, request in ipairs(self:saw()) do
      if wanted(request) then found[#found + 1] = request end
    end
    return #found >= (count or 1) and found
  end)
end

function server:stop()
  if self.stopped then return end
  self.stopped = true
  self.child:signal(signal.SIGKILL)
  self.child:wait()
end

function M.stop_all()
  for _, one in ipairs(M.running) do
    one:stop()
    process.remove(one.directory)
  end
  M.running = {}
end

return M
