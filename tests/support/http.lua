-- HTTP as bytes on a socket: what specs of the endpoint send is exactly what they say.
local socket = require "socket"
local unix = require "socket.unix"

local M = { TIMEOUT_S = 20 }

-- "unix:PATH" or "127.0.0.1:PORT".
function M.connect(address)
  local path = address:match "^unix:(.*)"
  local stream = path and unix.stream() or socket.tcp()
  stream:settimeout(M.TIMEOUT_S)
  if path then
    assert(stream:connect(path))
  else
    assert(stream:connect(address:match "(.*):", tonumber(address:match ":(%d+)$")))
  end
  return stream
end

-- A reply's bytes as { status, version, headers, body }; the names of headers in lower case.
function M.parse(bytes)
  local head, body = bytes:match "^(.-)\r\n\r\n(.*)$"
  assert(head, "no HTTP reply: " .. bytes)
  local reply = { headers = {}, body = body }
  reply.version, reply.status = head:match "^HTTP/(%d%.%d) (%d+) "
  reply.status = tonumber(reply.status)
  for name, value in head:gmatch "\r\n([^:\r]+): ([^\r]*)" do reply.headers[name:lower()] = value end
  return reply
end

-- Reads until the server closes.
function M.receive(stream)
  local bytes, why, partial = stream:receive "*a"
  stream:close()
  assert(bytes or why == "closed", why)
  return M.parse(bytes or partial)
end

-- Sends these bytes, and returns the reply once the server has closed.
function M.send(address, bytes)
  local stream = M.connect(address)
  stream:send(bytes)
  return M.receive(stream)
end

-- `headers`: lines without their ends, e.g. { "Origin: http://x" }.
function M.ask(address, method, path, headers, body)
  local lines = { ("%s %s HTTP/1.1"):format(method, path), "Host: localhost" }
  for _, line in ipairs(headers or {}) do
    if line:match "^Host:" then lines[2] = line else lines[#lines + 1] = line end
  end
  if body then lines[#lines + 1] = "Content-Length: " .. #body end
  return M.send(address, table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""))
end

function M.get(address, path, headers)
  return M.ask(address, "GET", path, headers)
end

M.free_port = require("process").free_port

return M
