-- A Redis that accepts only TLS, and a stunnel for the daemon with the configuration of docs/scaling.md, in which only
-- the paths and addresses are replaced.
local process = require "process"
local redis = require "redis"
local unistd = require "posix.unistd"

local M = { running = {}, host = "redis.example" }

-- The path of stunnel; nil if it is not installed.
function M.program()
  for _, path in ipairs { "/usr/bin/stunnel4", "/usr/bin/stunnel", "/usr/sbin/stunnel", "/usr/local/bin/stunnel" } do
    if unistd.access(path, "x") then return path end
  end
end

-- The stunnel configuration in docs/scaling.md.
function M.documented()
  local page = process.read "docs/scaling.md"
  return assert(page:match "```ini\n(; /etc/stunnel/.-)```", "docs/scaling.md has no stunnel configuration")
end

local function openssl(directory, ...)
  local code, _, err = process.run({ "openssl", ... }, { directory = directory })
  if code ~= 0 then error("openssl " .. table.concat({ ... }, " ") .. ": " .. err, 0) end
end

-- Makes ca.pem, and server.pem with server.key for that host, in a new directory.
local function certificates(host)
  local directory = process.directory()
  openssl(directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
          "-subj", "/CN=a test's own", "-keyout", "ca.key", "-out", "ca.pem")
  openssl(directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" .. host,
          "-keyout", "server.key", "-out", "server.csr")
  process.write(directory .. "/names", "subjectAltName = DNS:" .. host .. "\n")
  openssl(directory, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
          "-extfile", "names", "-out", "server.pem")
  return directory
end

-- A redis-server on a TLS port (and on its socket, for the spec). `certified`: the host of its certificate; `asks`: it
-- requires client certificates.
function M.redis(certified, asks)
  local directory, port = certificates(certified or M.host), redis.free_port()
  table.insert(M.running, { stop = function() process.remove(directory) end })
  local store = redis.start { arguments = { "--tls-port", port, "--tls-cert-file", directory .. "/server.pem",
                                            "--tls-key-file", directory .. "/server.key", "--tls-ca-cert-file",
                                            directory .. "/ca.pem", "--tls-auth-clients", asks and "yes" or "no",
                                            "--appendonly", "yes" } }
  store.tls_port, store.certificates = port, directory
  return store
end

-- Returns the address of a stunnel to that Redis, and its log. `believed`: the CA it trusts, else that Redis' own;
-- `shows`: it has a client certificate, in the lines of the page for it.
function M.start(store, believed, shows)
  local directory, theirs = process.directory(), store.certificates
  local text, places = M.documented(), 0
  for word, place in pairs { accept = directory .. "/redis.sock", connect = "127.0.0.1:" .. store.tls_port,
                             CAfile = believed or theirs .. "/ca.pem", [";cert"] = theirs .. "/server.pem",
                             [";key"] = theirs .. "/server.key" } do
    local count
    text, count = text:gsub("\n(;?)(" .. word:gsub("^;", "") .. "%s*=%s*)[^\n]*", function(sign, key)
      return "\n" .. (shows and "" or sign) .. key .. place
    end)
    places = places + count
  end
  assert(places == 5, "accept, connect, CAfile, ;cert and ;key must be in docs/scaling.md, each once")
  local child = process.start({ M.program(), process.write(directory .. "/redis.conf", text) },
                              { stdin = "/dev/null", stdout = directory .. "/log", stderr = directory .. "/log" })
  table.insert(M.running, { stop = function()
    child:signal(9)
    pcall(child.wait, child)
    process.remove(directory)
  end })
  process.eventually("stunnel listens", function()
    if child:status() then error("stunnel ended:\n" .. process.read(directory .. "/log"), 0) end
    return unistd.access(directory .. "/redis.sock", "f")
  end)
  return "unix:" .. directory .. "/redis.sock", function() return process.read(directory .. "/log") end
end

function M.stop_all()
  local running = M.running
  M.running = {}
  for _, one in ipairs(running) do one.stop() end
end

return M
