-- toolgate spawner: it starts upstreams by name for a daemon, and for nobody and nothing else.
local signal = require "posix.signal"
local unistd = require "posix.unistd"
local unix = require "socket.unix"

local IS_ROOT = unistd.geteuid() == 0

describe("toolgate spawner", function()
  local spawner, folder, gate, client
  after_each(function()
    if spawner then signal.kill(spawner.pid, signal.SIGKILL) end
    spawner = nil
  end)

  -- A folder with the server, which every user may run: the checkout may lie where only its owner may look.
  local function prepares(mode)
    folder = process.directory()
    os.execute(("cd '%s'; chmod %s .; mkdir etc; cp '%s/tests/support/reaching_server.py' server.py; chmod 755 server.py")
      :format(folder, mode, daemon.root))
    return folder .. "/server.py"
  end

  local function log() return process.read(folder .. "/stderr") or "" end

  local function logs(what)
    process.eventually("the spawner logs " .. what, function() return log():find(what, 1, true) end)
  end

  local function connects()
    local socket = unix()
    socket:settimeout(10)
    return socket:connect(folder .. "/spawner.sock") and socket or nil
  end

  -- `before`: a command that runs the spawner.
  local function spawns(more, before)
    local server = prepares(before and "1777" or "755") -- `before` may change the user
    process.write(folder .. "/etc/spawner.lua", ([[
return { %s upstreams = { box = { command = "/usr/bin/python3", args = { "%s" }, sandbox = {} },
                       nobody = { command = "/usr/bin/python3", args = { "%s" }, user = "nobody" },
                       missing = { command = "/no/such/program" } } }
]]):format(more or "", server, server))
    local argv = before or {}
    for _, word in ipairs { daemon.binary, "spawner", "-c", folder .. "/etc/spawner.lua",
                            "--socket", folder .. "/spawner.sock" } do
      argv[#argv + 1] = word
    end
    spawner = process.start(argv, { stdin = "/dev/null", stdout = folder .. "/stdout", stderr = folder .. "/stderr",
                                    directory = daemon.root })
    logs "spawner_ready"
  end

  local function serves(upstreams)
    gate, client = daemon.open { config = ('return { spawner = "unix:%s/spawner.sock", upstreams = { %s } }')
                                          :format(folder, upstreams) }
  end

  local function upstream() return client:asks("toolgate/status").upstreams[1] end
  local function is_up()
    process.eventually("the server is up", function() return upstream().state == "up" end)
    return upstream().pid
  end
  local function lives(pid) return signal.kill(pid, 0) == 0 end
  local function parent_of(pid) return tonumber((process.read("/proc/" .. pid .. "/status") or ""):match "PPid:%s*(%d+)") end
  local function says(line, connection)
    connection = connection or assert(connects())
    connection:send(line)
    return connection:receive "*l"
  end

  it("starts an upstream by name, and hands its pipes to the daemon", function()
    spawns()
    serves "box = { spawned = true }"
    local pid = is_up()
    assert.is_true(upstream().spawned)
    assert.equal(spawner.pid, parent_of(pid))
    assert.equal("ok", text(client:calls("reach", { how = "no_new_privs", what = "" })))
    assert.equal("EACCES", text(client:calls("reach", { how = "unix", what = folder .. "/spawner.sock" })))
  end)

  it("ends the process when the daemon stops, and when it is killed", function()
    spawns()
    serves "box = { spawned = true }"
    local pid = is_up()
    daemon.stop_all()
    process.eventually("the process is gone", function() return not lives(pid) end)
    serves "box = { spawned = true }"
    pid = is_up()
    signal.kill(gate.child.pid, signal.SIGKILL)
    gate.stopped = true
    process.eventually("the process is gone", function() return not lives(pid) end)
  end)

  it("reports an exit, after which the daemon starts it again", function()
    spawns()
    serves "box = { spawned = true }"
    local pid = is_up()
    signal.kill(pid, signal.SIGKILL)
    process.eventually("another process is up", function()
      local now = upstream()
      return now.state == "up" and now.pid and now.pid ~= pid
    end)
    assert.truthy(gate:log():find("killed by SIGKILL", 1, true))
  end)

  it("runs it as the user that its own configuration names, without capabilities", function()
    if not IS_ROOT then pending "only root may change the user" return end
    spawns()
    serves "nobody = { spawned = true }"
    local status = process.read("/proc/" .. is_up() .. "/status")
    assert.equal("65534", status:match "Uid:%s*(%d+)")
    assert.equal("65534", status:match "Groups:%s*(%d+)")
    assert.equal("0000000000000000", status:match "CapPrm:%s*(%x+)")
    assert.equal("0000000000000000", status:match "CapEff:%s*(%x+)")
  end)

  it("warns, as root, of an upstream that names no user", function()
    if not IS_ROOT then pending "only root" return end
    spawns()
    logs "warn upstream_as_root upstream=box"
    assert.is_nil(log():find("upstream_as_root upstream=nobody", 1, true))
  end)

  it("needs no other privilege than to change the user and to end processes, and hands none on", function()
    if not IS_ROOT then pending "only root may give capabilities" return end
    spawns(nil, { "setpriv", "--reuid=1", "--regid=1", "--clear-groups", "--inh-caps=-all,+setuid,+setgid,+kill",
                  "--ambient-caps=-all,+setuid,+setgid,+kill", "--bounding-set=-all,+setuid,+setgid,+kill", "--" })
    os.execute(("chmod 666 '%s/spawner.sock'"):format(folder))
    serves "nobody = { spawned = true }, box = { spawned = true }"
    local function pid_of(name)
      for _, one in ipairs(client:asks("toolgate/status").upstreams) do
        if one.name == name then return one.state == "up" and one.pid end
      end
    end
    local users = { nobody = "65534", box = "1" }
    local pids = {}
    for name, uid in pairs(users) do
      pids[name] = process.eventually(name .. " is up", function() return pid_of(name) end)
      local status = process.read("/proc/" .. pids[name] .. "/status")
      assert.equal(uid, status:match "Uid:%s*(%d+)")
      for _, set in ipairs { "CapInh", "CapPrm", "CapEff", "CapAmb" } do
        assert.equal("0000000000000000", status:match(set .. ":%s*(%x+)"), name .. " " .. set)
      end
    end
    daemon.stop_all()
    for name, pid in pairs(pids) do
      process.eventually(name .. " is gone", function() return not lives(pid) end)
    end
  end)

  it("names no reason but its log to who asks for what it cannot start", function()
    spawns()
    serves "missing = { spawned = true }"
    logs "/no/such/program"
    process.eventually("the daemon has the error", function()
      return (upstream().last_error or ""):find("spawn_refused", 1, true)
    end)
    assert.is_nil(upstream().last_error:find("/no/such", 1, true))
  end)

  it("answers whoever asks for another name, says garbage, or too much, and goes on", function()
    spawns()
    assert.truthy(says("start other\n"):find("^refused "))
    assert.truthy(says("start ../box\n"):find("^refused "))
    assert.truthy(says("start box --evil\n"):find("^refused "))
    assert.truthy(says("GET / HTTP/1.1\r\n"):find("^refused "))
    assert.truthy(says("end\n"):find("^refused "))
    assert.truthy(says(("x"):rep(1000000)):find("^refused "))
    assert.truthy(says("\0\0\0\0\n"):find("^refused "))
    local connection = connects()
    assert.truthy(says("start box\n", connection):find("^started "))
    assert.truthy(says("start box\n", connection):find("^refused "))
    assert.is_nil(lives(tonumber(log():match "spawned upstream=box pid=(%d+)")) and connection:receive "*l" or nil)
    assert.truthy(says("start box\n"):find("^started "))
  end)

  it("kills the process of a daemon that vanishes in mid-handover", function()
    spawns()
    for _ = 1, 5 do
      local connection = assert(connects())
      connection:send "start box\n"
      connection:close()
    end
    process.eventually("no child is left", function()
      local children = process.read(("/proc/%d/task/%d/children"):format(spawner.pid, spawner.pid)) or ""
      for pid in children:gmatch "%d+" do
        if (process.read("/proc/" .. pid .. "/cmdline") or ""):find("reaching_server", 1, true) then return false end
      end
      return true
    end)
    assert.truthy(says("start box\n"):find("^started "))
  end)

  it("closes connections beyond its limit, and those that ask nothing are no obstacle", function()
    spawns()
    local held = {}
    for i = 1, 257 do held[i] = assert(connects()) end
    logs "too many connections"
    for i = 1, 257 do held[i]:close() end
    process.eventually("it starts again", function() return (says "start box\n" or ""):find "^started " end)
  end)

  it("serves no other user, unless `allow` names that one", function()
    if not IS_ROOT then pending "needs a second user" return end
    local function asked_by_nobody()
      os.execute(("chmod 666 '%s/spawner.sock'"):format(folder))
      local out = folder .. "/answer"
      os.execute(([[runuser -u nobody -- /usr/bin/python3 -SE -c 'import socket
s = socket.socket(socket.AF_UNIX); s.connect("%s/spawner.sock")
try:
  s.send(b"start box\n"); print(s.recv(100).decode())
except OSError: print("closed")' > '%s']]):format(folder, out))
      return process.read(out)
    end
    spawns()
    assert.is_nil(asked_by_nobody():find("started", 1, true))
    logs "connection_refused uid=65534"
    signal.kill(spawner.pid, signal.SIGKILL)
    spawns 'allow = { { users = { "nobody" }, tools = { "*" } } },'
    assert.truthy(asked_by_nobody():find("started", 1, true))
  end)

  it("is not needed for a user of its own, if the daemon is root", function()
    if not IS_ROOT then pending "only root may change the user" return end
    local server = prepares "755"
    gate, client = daemon.open { config = ('return { upstreams = { nobody = { command = "/usr/bin/python3", args = { "%s" }, '
                                           .. 'user = "nobody" } } }'):format(server) }
    assert.equal("65534", process.read("/proc/" .. is_up() .. "/status"):match "Uid:%s*(%d+)")
  end)

  it("starts nothing as a user that does not exist", function()
    local server = prepares "755"
    gate, client = daemon.open { config = ('return { upstreams = { lost = { command = "/usr/bin/python3", args = { "%s" }, '
                                           .. 'user = "nobody-at-all" } } }'):format(server) }
    process.eventually("the reason is told", function()
      return (upstream().last_error or ""):find("no user 'nobody-at-all'", 1, true)
    end)
  end)

  it("refuses a file that others may write or replace, also one with mcpServers", function()
    local place = process.directory()
    os.execute(("mkdir '%s/open'"):format(place))
    process.write(place .. "/spawner.lua", "return {}")
    process.write(place .. "/open/spawner.lua", "return {}")
    process.write(place .. "/servers.json", '{"mcpServers":{"a":{"command":"/bin/true"}}}')
    process.write(place .. "/imports.lua", ('return { mcp_config = "%s/servers.json" }'):format(place))
    local function checks(file)
      local pipe = io.popen(("'%s' spawner --check -c '%s/%s' 2>&1; echo $?"):format(daemon.binary, place, file))
      local out = pipe:read "*a"
      pipe:close()
      return out, out:match "(%d+)%s*$"
    end
    local function refuses(file, fix)
      local out, code = checks(file)
      assert.truthy(out:find(fix, 1, true), out)
      assert.equal("1", code)
    end
    for _, file in ipairs { "spawner.lua", "open/spawner.lua", "imports.lua" } do
      local out, code = checks(file)
      assert.equal("0", code, out)
    end
    os.execute(("cd '%s'; chmod 666 spawner.lua servers.json; chmod 777 open"):format(place))
    refuses("spawner.lua", "chmod go-w")
    refuses("open/spawner.lua", "chmod o-w")
    refuses("imports.lua", "servers.json decides what runs")
  end)

  it("names the keys that have an effect in the daemon's file alone", function()
    local place = process.directory()
    process.write(place .. "/spawner.lua", [[return { operators = { users = { "root" } }, state = "state", socket = "s",
      decisions = { file = "log" },
      upstreams = { a = { command = "/bin/true", user = "nobody", timeout = "20s" } } }]])
    local out = io.popen(("'%s' spawner --check -c '%s/spawner.lua' 2>&1"):format(daemon.binary, place)):read "*a"
    local unused = {}
    for key in out:gmatch "warning: %S+: (%S+) has no effect in the spawner's file: " do
      unused[#unused + 1] = key
    end
    table.sort(unused)
    assert.same({ "operators", "socket", "upstreams.a.timeout" }, unused)
  end)

  it("runs no program that others may write or replace", function()
    prepares "755"
    os.execute(("cd '%s'; mkdir -p open/deep ours; chmod 777 open; for at in open/deep ours; do "
                .. "printf '#!/bin/sh\\nexec sleep 99\\n' > $at/run; chmod 755 $at/run; done; "
                .. "cp ours/run ours/loose; chmod 757 ours/loose; ln -s ../ours/run open/link; ln -s ../open/deep/run ours/link")
      :format(folder))
    local programs = { below = "open/deep/run", loose = "ours/loose", linked = "open/link",
                       leads = "ours/link", good = "ours/run",
                       relative = "./../open/deep/run" }
    local upstreams = {}
    for name, path in pairs(programs) do
      upstreams[#upstreams + 1] = ("%s = { command = %q }"):format(name,
        path:sub(1, 1) == "." and path or folder .. "/" .. path)
    end
    programs.inside = "deep/run"
    process.write(folder .. "/etc/name", "deep/run")
    os.execute(("chmod 600 '%s/etc/name'"):format(folder))
    upstreams[#upstreams + 1] = ("inside = { command = '${file:%s/etc/name}', cwd = '%s/open' }"):format(folder, folder)
    process.write(folder .. "/etc/spawner.lua", "return { upstreams = { " .. table.concat(upstreams, ", ") .. " } }")
    spawner = process.start({ daemon.binary, "spawner", "-c", folder .. "/etc/spawner.lua",
                              "--socket", folder .. "/spawner.sock" },
      { stdin = "/dev/null", stdout = folder .. "/stdout", stderr = folder .. "/stderr", directory = daemon.root })
    logs "spawner_ready"
    for name in pairs(programs) do
      local answer = says("start " .. name .. "\n")
      assert.equal(name == "good" and "started" or "refused", answer:match "%a+", name .. ": " .. answer .. "\n" .. log())
    end
    local text, refusals = log(), 0
    for line in text:gmatch "spawn_refused [^\n]+" do
      refusals = refusals + (line:find("chmod", 1, true) and 1 or 0)
    end
    assert.equal(6, refusals, text)
  end)

  -- A link in the middle of a chain lies where everybody may write: it leads elsewhere at any moment.
  it("runs what it has looked at, not what lies at its path a moment later", function()
    prepares "755"
    os.execute(("cd '%s'; mkdir -p open ours; chmod 777 open; cp /bin/sleep ours/good; cp /bin/sleep open/bad; "
                .. "ln -s ../ours/good open/turns; ln -s ../open/turns ours/chain"):format(folder))
    process.write(folder .. "/etc/spawner.lua",
                  ("return { upstreams = { turns = { command = %q, args = { '99' } } } }"):format(folder .. "/ours/chain"))
    spawner = process.start({ daemon.binary, "spawner", "-c", folder .. "/etc/spawner.lua",
                              "--socket", folder .. "/spawner.sock" },
      { stdin = "/dev/null", stdout = folder .. "/stdout", stderr = folder .. "/stderr", directory = daemon.root })
    logs "spawner_ready"
    local turning = process.start({ "python3", "-c", [[
import os
while True:
    for to in ("../ours/good", "bad"):
        os.symlink(to, "next"); os.rename("next", "turns")
]] }, { stdin = "/dev/null", directory = folder .. "/open" })
    local ran = 0
    for _ = 1, 100 do
      local pid = says("start turns\n"):match "started (%d+)"
      local exe = pid and require("posix.unistd").readlink("/proc/" .. pid .. "/exe")
      ran = ran + (pid and 1 or 0)
      assert.is_nil(exe and exe:match "open/bad")
    end
    turning:signal(9)
    assert.truthy(ran > 0)
  end)

  it("leaves nothing behind when it ends", function()
    spawns()
    serves "box = { spawned = true }"
    local pid = is_up()
    signal.kill(spawner.pid, signal.SIGTERM)
    process.eventually("the process is gone", function() return not lives(pid) end)
    process.eventually("the daemon knows", function() return (upstream().last_error or ""):find("spawner", 1, true) end)
  end)

  it("is configured apart: a spawned upstream has no command, and needs a spawner", function()
    for _, case in ipairs {
      { 'upstreams = { a = { spawned = true } }', "upstreams.a.spawned" },
      { 'spawner = "/x", upstreams = { a = { spawned = true, command = "x" } }', "upstreams.a.command" },
      { 'spawner = "/x", upstreams = { a = { spawned = true, sandbox = {} } }', "upstreams.a.sandbox" },
    } do
      local said = daemon.fails { config = ("return { %s }"):format(case[1]) }
      assert.truthy(said:find(case[2], 1, true), said)
    end
  end)
end)
