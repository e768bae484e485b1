-- Upstreams with per_user: each user who calls has an instance with their own credentials, and nobody else's.
local http_server = require "http_server"
local signal = require "posix.signal"
local unistd = require "posix.unistd"

local SERVER = daemon.root .. "/tests/support/reaching_server.py"
local IS_ROOT = unistd.geteuid() == 0
local OTHERS = { nobody = 65534, daemon = 1, bin = 2 }

describe("an upstream with per_user", function()
  local gate, folder

  local function token(user, value) process.write(folder .. "/" .. user, value .. "\n") end

  local function places()
    folder = process.directory()
    for _, user in ipairs { "root", "nobody", "daemon" } do token(user, "token-of-" .. user) end
  end

  -- `more`: further keys of the upstream.
  local function serves(more)
    places()
    gate = daemon.start { config = ([[
return { socket_mode = "0666", upstreams = { box = {
  command = "/usr/bin/python3", args = { "%s" }, per_user = true, env = { TOKEN = "${file:%s/%%u}" }, %s } } }
]]):format(SERVER, folder, more or "") }
    process.eventually("its tools are listed", function() return #gate:connect():asks("tools/list").tools == 1 end)
  end

  -- Sends one request as this user; returns its response.
  local function asks_as(user, method, params)
    local line = client_of.json.encode { jsonrpc = "2.0", id = 1, method = method, params = params }
    local script = ([[
      local stream = require("socket.unix").stream()
      stream:settimeout(20)
      assert(stream:connect(%q))
      stream:send(%q .. "\n")
      print(stream:receive "*l" or "closed")
    ]]):format(gate.socket, line)
    local uid = OTHERS[user] or user
    local _, out, err = process.run { "setpriv", "--reuid=" .. uid, "--regid=65534", "--clear-groups", "luajit", "-e", script }
    assert(out ~= "", err)
    return client_of.json.decode(out)
  end

  local function calls_as(user, tool, arguments)
    return asks_as(user, "tools/call", { name = tool, arguments = arguments }).result
  end

  local function has_token(user, value)
    return client_of.text(calls_as(user, "reach", { how = "same", what = "TOKEN=" .. value }))
  end

  local function instances()
    local found = {}
    for _, one in ipairs(gate:status().upstreams or {}) do found[one.name] = one end
    return found
  end

  local function refuses(what, config)
    local said = daemon.fails { config = config }
    assert.truthy(said:find(what, 1, true), said)
  end

  it("is configured with strings that name the user, or it would have no effect", function()
    refuses("upstreams.a.per_user: has no effect", 'return { upstreams = { a = { command = "x", per_user = true } } }')
    refuses("upstreams.a.per_user: has no effect",
            'return { upstreams = { a = { command = "x", per_user = true, env = { A = "%u" } } } }')
    refuses("per_user = true alone", 'return { upstreams = { a = { command = "x", env = { A = "${file:/x/%u}" } } } }')
    refuses("upstreams.a.user_idle: has no effect", 'return { upstreams = { a = { command = "x", user_idle = "5s" } } }')
    refuses("upstreams.a.per_user: is not possible with spawned",
            'return { spawner = "/x", upstreams = { a = { spawned = true, per_user = true } } }')
  end)

  if not IS_ROOT then
    pending("applies to other users: needs root, to change the user")
    return
  end

  it("gives each user a process with their own credentials", function()
    serves()
    assert.equal("ok", has_token("nobody", "token-of-nobody"))
    assert.equal("ok", has_token("daemon", "token-of-daemon"))
    assert.equal("ENOENT", has_token("daemon", "token-of-nobody"))
    local found = instances()
    assert.equal(OTHERS.nobody, found["box@nobody"].uid)
    assert.equal(1, found["box@nobody"].calls)
    assert.equal(2, found["box@daemon"].calls)
    assert.equal(0, found.box.calls)
    assert.is_true(found.box.per_user)
    local pids = { [found.box.pid] = true, [found["box@nobody"].pid] = true, [found["box@daemon"].pid] = true }
    local count = 0
    for _ in pairs(pids) do count = count + 1 end
    assert.equal(3, count)
  end)

  it("in a sandbox shows no user's process the files of another user, nor the folder they are in", function()
    serves 'sandbox = { env = {} },'
    assert.equal("ok", has_token("nobody", "token-of-nobody"))
    for _, path in ipairs { "/daemon", "/nobody", "/root" } do
      local seen = calls_as("nobody", "reach", { how = "read", what = folder .. path })
      assert.equal("EACCES", client_of.text(seen), path)
    end
    assert.equal("EACCES", client_of.text(calls_as("nobody", "reach", { how = "list", what = folder })))
    local config = gate.directory .. "/toolgate.lua"
    assert.equal("EACCES", client_of.text(calls_as("nobody", "reach", { how = "read", what = config })))
  end)

  it("lists its tools with the credentials of the daemon's user, who uses the upstream itself", function()
    serves()
    assert.equal("ok", client_of.text(gate:connect():calls("reach", { how = "same", what = "TOKEN=token-of-root" })))
    local found = instances()
    assert.equal(1, found.box.calls)
    found.box = nil
    assert.is_nil(next(found))
  end)

  it("tells its instructions to the daemon's user alone, as they may say whose credentials it has", function()
    places()
    process.write(folder .. "/library", '{"instructions":"You are logged in as root-of-wiki."}')
    gate = daemon.start { config = ([[
return { socket_mode = "0666", upstreams = { wiki = { command = "/usr/bin/python3",
         args = { "%s/tests/support/library_server.py" },
         per_user = true, env = { TOKEN = "${file:%s/%%u}", LIBRARY = "%s/library" } } } }
]]):format(daemon.root, folder, folder) }
    local own = { _meta = client_of.modern() }
    process.eventually("they are known", function()
      return (gate:connect():asks("server/discover", own).instructions or ""):find("root-of-wiki", 1, true)
    end)
    assert.is_nil(asks_as("nobody", "server/discover", own).result.instructions)
  end)

  it("serves nobody without credentials of their own, and tells the operator which file is missing", function()
    serves()
    local result = calls_as("bin", "reach", { how = "same", what = "TOKEN=token-of-root" })
    assert.equal("unavailable", client_of.verdict(result).error_class)
    assert.is_nil(client_of.text(result):find(folder, 1, true))
    assert.truthy(instances()["box@bin"].last_error:find(folder .. "/bin", 1, true))
    assert.truthy(gate:log():find(folder .. "/bin", 1, true))
    token("bin", "token-of-bin")
    gate:connect():asks "toolgate/reload"
    process.eventually("with the file it is served", function() return has_token("bin", "token-of-bin") == "ok" end)
  end)

  it("borrows no credentials: no link leads to a user's file, nobody else may write it, and an empty one is none", function()
    serves()
    local path = folder .. "/daemon"
    local function refuses_because(what)
      gate:connect():asks "toolgate/reload" -- tries at once
      process.eventually("it is refused: " .. what, function()
        local verdict = client_of.verdict(calls_as("daemon", "reach", { how = "same", what = "TOKEN=x" }))
        assert.equal("unavailable", verdict.error_class)
        return (instances()["box@daemon"].last_error or ""):find(what, 1, true)
      end)
    end
    os.remove(path)
    os.execute(("ln -s '%s/nobody' '%s'"):format(folder, path))
    refuses_because "a symbolic link leads there"
    os.remove(path)
    os.execute(("ln '%s/nobody' '%s'"):format(folder, path))
    refuses_because "a hard link"
    os.remove(path)
    token("daemon", "token-of-daemon")
    os.execute(("chown nobody '%s'"):format(path))
    refuses_because "belongs to another user"
    os.execute(("chown daemon '%s'; chmod 666 '%s'"):format(path, path))
    refuses_because "others may write to it"
    os.execute(("chmod 600 '%s'; : > '%s'"):format(path, path))
    refuses_because "is empty"
    token("daemon", "token-of-daemon")
    gate:connect():asks "toolgate/reload"
    process.eventually("it is served", function() return has_token("daemon", "token-of-daemon") == "ok" end)
  end)

  it("reads resources from each user's own instance, and lists nobody's", function()
    places()
    local library = process.write(folder .. "/library.json", [[{"resources":[{"uri":"mail:1","name":"of the daemon"}],
      "templates":[{"uriTemplate":"mail:{n}","name":"a mail"}],"prompts":[{"name":"sort"}]}]])
    os.execute("chmod 755 " .. folder)
    gate = daemon.start { config = ([[
return { socket_mode = "0666", upstreams = { mail = {
  command = "/usr/bin/python3", args = { "%s/tests/support/library_server.py" }, per_user = true,
  env = { LIBRARY = "%s", TOKEN = "${file:%s/%%u}" } } } }
]]):format(daemon.root, library, folder) }
    local client = gate:connect()
    process.eventually("its prompts are listed", function() return #client:asks("prompts/list", {}).prompts == 1 end)
    assert.same({}, client:asks("resources/list", {}).resources)
    for _, user in ipairs { "nobody", "daemon" } do
      local said = asks_as(user, "resources/read", { uri = "mail:1" })
      assert.equal("mail:1 of token-of-" .. user, said.result.contents[1].text)
    end
    assert.equal("unavailable", asks_as("bin", "resources/read", { uri = "mail:1" }).error.data.name)
    assert.truthy(client:ask("resources/subscribe", { uri = "mail:1" }).error)
  end)

  it("serves no user without a name on this host", function()
    serves()
    local verdict = client_of.verdict(calls_as(54321, "reach", { how = "same", what = "TOKEN=x" }))
    assert.equal("unavailable", verdict.error_class)
    assert.equal("no_user", verdict.code)
  end)

  it("ends a user's process when they have not called for a while, and starts it again, with the file of then", function()
    serves 'user_idle = "200ms",'
    assert.equal("ok", has_token("nobody", "token-of-nobody"))
    local pid = (instances()["box@nobody"] or {}).pid
    process.eventually("it has ended", function() return not instances()["box@nobody"] end)
    if pid then process.eventually("its process, too", function() return signal.kill(pid, 0) ~= 0 end) end
    assert.truthy(gate:log():find("upstream_idle upstream=box@nobody", 1, true))
    token("nobody", "another-token")
    assert.equal("ok", has_token("nobody", "another-token"))
  end)

  it("keeps users' processes at a reload that does not change it, and ends them at one that does", function()
    serves()
    assert.equal("ok", has_token("nobody", "token-of-nobody"))
    local pid = instances()["box@nobody"].pid
    local path = gate.directory .. "/toolgate.lua"
    local config = process.read(path)
    process.write(path, (config:gsub("per_user = true,", "per_user = true, timeout = 7,")))
    gate:connect():asks "toolgate/reload"
    assert.equal(pid, instances()["box@nobody"].pid)
    process.write(path, (config:gsub("per_user = true,", "per_user = true, cwd = '/',")))
    gate:connect():asks "toolgate/reload"
    process.eventually("it has ended", function() return signal.kill(pid, 0) ~= 0 end)
    assert.equal("ok", has_token("nobody", "token-of-nobody"))
    process.write(path, "return { socket_mode = '0666' }")
    gate:connect():asks "toolgate/reload"
    process.eventually("all are gone", function() return not next(instances()) end)
  end)

  it("over HTTP sends each user's own header, in a session of their own", function()
    places()
    local server = http_server.mcp { era = "legacy" }
    gate = daemon.start { config = ([[
return { socket_mode = "0666", upstreams = { far = {
  url = "%s", per_user = true, headers = { Authorization = "Bearer ${file:%s/%%u}" } } } }
]]):format(server.url, folder) }
    process.eventually("its tools are listed", function() return #gate:connect():asks("tools/list").tools > 0 end)
    local tool = gate:connect():asks("tools/list").tools[1].name
    calls_as("nobody", tool, { text = "x" })
    local seen = server:sees("the call", function(request)
      return type(request.body) == "table" and request.body.method == "tools/call"
    end, 1)
    for _, request in ipairs(seen) do assert.equal("Bearer token-of-nobody", request.headers.authorization) end
    for _, request in ipairs(server:saw()) do
      if request.headers.authorization ~= "Bearer token-of-nobody" then
        assert.equal("Bearer token-of-root", request.headers.authorization)
      end
    end
  end)

  it("has instances for a bounded number of users, whose names stay inside their folder", function()
    folder = process.directory()
    local passwd = {}
    for uid = 20000, 20256 do passwd[#passwd + 1] = ("user%d:x:%d:1::/:/bin/false"):format(uid, uid) end
    passwd[#passwd + 1] = "../root:x:30000:1::/:/bin/false"
    process.write(folder .. "/passwd", "root:x:0:0::/root:/bin/sh\n" .. table.concat(passwd, "\n") .. "\n")
    gate = daemon.start {
      before = { "unshare", "-m", "sh", "-c", ("mount --bind '%s/passwd' /etc/passwd && exec \"$@\""):format(folder), "sh" },
      policies = { ["far.lua"] = [[
-- far: asks a service. For specs.
return tool "far" { description = "Asks.", effects = "read", schema = params {}, upstream = "api", http = "GET /x" }]] },
      config = ([[
return { socket_mode = "0666", upstreams = { api = { rest = "http://127.0.0.1:1", per_user = true,
                                                     headers = { Key = "${file:%s/%%u}" } } } }]]):format(folder) }
    local _, out, err = process.run { "python3", "-SE", "-c", [[
import json, os, socket, sys
line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "far", "arguments": {}}}) + "\n"
def call(uid):
    os.seteuid(uid)
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    os.seteuid(0)
    client.sendall(line.encode())
    answer = json.loads(client.makefile().readline())["result"]
    return answer["_meta"]["dev.toolgate/verdict"].get("code", "none")
print(call(30000))
for uid in range(20000, 20257): last = call(uid)
print(last, call(20000))
]], gate.socket }
    local named, last, first = out:match "(%S+)\n(%S+) (%S+)"
    assert.equal("no_user", named, err)
    assert.equal("busy", last)
    assert.not_equal("busy", first)
    assert.equal(257, #gate:status().upstreams) -- 256 users, and the upstream itself
  end)
end)
