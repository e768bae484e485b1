-- mcp-server-fetch of PyPI over stdio, with a local web server.
local socket = require "socket"

-- A web server with one page, in its own process.
local PAGE = [[
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<html><body><h1>Bees</h1><p>Bees dance.</p></body></html>" if self.path == "/bees" else b""
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
print(server.server_port, flush=True)
server.serve_forever()
]]

return function(talk)
  local port = talk.beside { talk.python, "-c", PAGE }
  local site = "http://127.0.0.1:" .. port
  talk.serve { upstreams = { web = { command = talk.python,
    args = { "-m", "mcp_server_fetch", "--allow-private-ips" } } } }
  local model = talk.model()

  -- raw: for Markdown the server would first install a program from npm.
  model:hears("a page is read", model:calls("fetch", { url = site .. "/bees", raw = true }), "Bees dance.")
  model:is_refused("all problems are reported at once",
    model:calls("fetch", { ur = site, max_length = 0, start_index = "last" }),
    "did you mean 'url'", "'ur'", "'max_length'", "'start_index'")
  model:is_refused("an invalid URL does not reach the server", model:calls("fetch", { url = "nonsense" }), "'url'")
  model:reads_failure("a missing page is the server's error",
    model:calls("fetch", { url = site .. "/wasps" }), "404")
  local nobody = socket.bind("127.0.0.1", 0)
  local _, closed = nobody:getsockname()
  nobody:close()
  model:reads_failure("an unreachable site is the server's error",
    model:calls("fetch", { url = ("http://127.0.0.1:%d/bees"):format(closed) }), "Failed to fetch")

  talk.is_killed_in_a_call(talk.model(), "fetch", { url = site .. "/bees", raw = true })
end
