-- One connection to the daemon, as dialogue: client:say{…}, client:hears(). One JSON object per line; say_line and
-- hears_line send and receive raw lines.
local cjson = require("cjson").new()
local unix = require "socket.unix"

local M = { PATIENCE_S = 60 }
cjson.encode_sparse_array(true)
cjson.decode_max_depth(4000)

-- As cjson.encode, but with members sorted by name, so that every run sends the same bytes.
local function encode(value)
  if type(value) ~= "table" or next(value) == nil then return cjson.encode(value) end
  local names, parts = {}, {}
  for name in pairs(value) do
    if type(name) ~= "string" then names = nil break end
    names[#names + 1] = name
  end
  if names then
    table.sort(names)
    for i, name in ipairs(names) do parts[i] = cjson.encode(name) .. ":" .. encode(value[name]) end
    return "{" .. table.concat(parts, ",") .. "}"
  end
  for i = 1, #value do parts[i] = encode(value[i]) end
  for key in pairs(value) do if not parts[key] then return cjson.encode(value) end end
  return "[" .. table.concat(parts, ",") .. "]"
end
M.json = setmetatable({ encode = encode }, { __index = cjson })

local MODERN = "2026-07-28"
local META = "io.modelcontextprotocol/"

local client = {}
client.__index = client

function M.connect(path)
  local stream = unix.stream()
  stream:settimeout(M.PATIENCE_S)
  local ok, why = stream:connect(path)
  if not ok then
    stream:close()
    return nil, why
  end
  return setmetatable({ stream = stream, last_id = 0 }, client)
end

function client:say_line(line)
  return assert(self.stream:send(line .. "\n"))
end

function client:say(message)
  return self:say_line(type(message) == "string" and message or encode(message))
end

-- Waits in seconds, as a machine that was suspended meanwhile has not waited.
local function receive(stream)
  local line, why, part
  stream:settimeout(1)
  for _ = 1, M.PATIENCE_S do
    line, why, part = stream:receive("*l", part)
    if why ~= "timeout" then break end
  end
  stream:settimeout(M.PATIENCE_S)
  return line, why
end

function client:hears_line()
  local line, why = receive(self.stream)
  if not line then error("no line from the daemon: " .. tostring(why), 2) end
  return line
end

function client:hears()
  local line, why = receive(self.stream)
  if not line then error("no line from the daemon: " .. tostring(why), 2) end
  local message = cjson.decode(line)
  return message, line
end

-- Waits until the daemon closes the connection; returns the lines before that.
function client:hears_the_end()
  local lines = {}
  while true do
    local line, why = receive(self.stream)
    if not line then
      if why ~= "closed" then error("expected the end, got " .. tostring(why), 2) end
      return lines
    end
    lines[#lines + 1] = line
  end
end

-- Asserts that nothing is in flight for this client: the reply to a ping comes next.
function client:hears_only_a_ping()
  self:say { jsonrpc = "2.0", id = "is-anything-left", method = "ping" }
  local message, line = self:hears()
  if message.id ~= "is-anything-left" then error("expected only the ping's reply, got " .. line, 2) end
  return true
end

-- Sends a request and returns its reply; notifications in between are kept in self.notices.
function client:ask(method, params, id)
  self.last_id = self.last_id + 1
  id = id or self.last_id
  self:say { jsonrpc = "2.0", id = id, method = method, params = params }
  return self:answer(id)
end

function client:answer(id)
  while true do
    local message, line = self:hears()
    if message.id == nil and message.method then
      self.notices = self.notices or {}
      table.insert(self.notices, message)
    elseif message.id == id then
      return message, line
    else
      error(("expected the answer to %s, got %s"):format(tostring(id), line), 2)
    end
  end
end

-- Waits for `count` notifications; they are kept in self.notices.
function client:hears_notice(method, count)
  self.notices = self.notices or {}
  while #self.notices < (count or 1) do
    local message, line = self:hears()
    if message.method ~= method then error(("expected %s, got %s"):format(method, line), 2) end
    table.insert(self.notices, message)
  end
  return self.notices[#self.notices]
end

-- The result of a request that must not fail.
function client:asks(method, params)
  local message, line = self:ask(method, params)
  if not message.result then error(("%s: expected a result, got %s"):format(method, line), 2) end
  return message.result, line
end

function client:calls(name, arguments, meta)
  if arguments == nil or next(arguments) == nil then
    -- cjson encodes an empty table as an array or an object by its own rules
    self.last_id = self.last_id + 1
    self:say(('{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":{}%s}}'):format(
      self.last_id, cjson.encode(name), meta and (',"_meta":' .. encode(meta)) or ""))
    return assert(self:answer(self.last_id).result)
  end
  return self:asks("tools/call", { name = name, arguments = arguments, _meta = meta })
end

-- The names of the tools that are listed, in their order, and the tools by name.
function client:tools()
  local names, by_name = {}, {}
  for i, tool in ipairs(self:asks("tools/list", {}).tools) do names[i], by_name[tool.name] = tool.name, tool end
  return names, by_name
end

-- Sends a call without waiting for its answer.
function client:begins(id, name, arguments, meta)
  self:say { jsonrpc = "2.0", id = id, method = "tools/call",
             params = { name = name, arguments = arguments, _meta = meta } }
end

function client:checks(name, arguments, meta)
  return self:asks("toolgate/check", { name = name, arguments = arguments, _meta = meta })
end

function client:close()
  self.stream:close()
end

-- The _meta of a request in the modern era (2026-07-28), with further keys.
function M.modern(more)
  local meta = { [META .. "protocolVersion"] = MODERN, [META .. "clientCapabilities"] = cjson.decode "{}" }
  for key, value in pairs(more or {}) do meta[key] = value end
  return meta
end

function M.session(name, more)
  local meta = { ["dev.toolgate/session"] = name }
  for key, value in pairs(more or {}) do meta["dev.toolgate/" .. key] = value end
  return meta
end

-- The text that the model reads.
function M.text(result)
  local parts = {}
  for _, block in ipairs(result.content or {}) do parts[#parts + 1] = block.text end
  return table.concat(parts, "\n")
end

function M.verdict(result)
  return result._meta and result._meta["dev.toolgate/verdict"] or nil
end

-- The problems of the arguments as { "args.title missing", ... }, in the order of the feedback.
function M.problems(result)
  local list = {}
  for i, message in ipairs(M.verdict(result).messages or {}) do list[i] = message.path .. " " .. message.code end
  return list
end

return M
