-- A daemon before one MCP server that offers these definitions, over stdio or HTTP (OVER); a tool's `_meta.answer` is the
-- result of its calls, `_meta.error` their JSON-RPC error.
local client_of = require "client"
local daemon = require "daemon"
local http_server = require "http_server"
local process = require "process"

local M = { OVER = { "stdio", "HTTP" } }

-- `definitions`: a list, or its JSON. `more`: what daemon.start takes beside; `upstream` adds fields to the upstream.
function M.start(over, definitions, more)
  local directory = process.directory()
  if type(definitions) == "table" then definitions = client_of.json.encode(definitions) end
  process.write(directory .. "/tools.json", definitions)
  local source = ([[command = "python3", args = { "%s/tests/support/offering.py" }, env = { OFFER = "%s/tools.json", %s }]])
    :format(daemon.root, directory, more and more.env or "")
  if over == "HTTP" then source = ("url = '%s'"):format(http_server.mcp({ tools_file = directory .. "/tools.json" }).url) end
  more = more or {}
  more.config = ("return { upstreams = { a = { %s, %s } }, %s }"):format(source, more.upstream or "", more.config or "")
  return daemon.start(more), directory .. "/tools.json"
end

return M
