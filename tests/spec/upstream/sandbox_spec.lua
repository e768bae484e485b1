-- The sandbox of an upstream: a server (tests/support/reaching_server.py) tries to reach what it should not.

local SERVER = daemon.root .. "/tests/support/reaching_server.py"
local WITHOUT_LANDLOCK = { "python3", "-SE", daemon.root .. "/tests/support/without_landlock.py" }

local function kernel_has_landlock()
  local file = io.popen("python3 -SE -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))'")
  local abi = tonumber(file:read "*l") or -1
  file:close()
  return abi > 0
end

describe("the sandbox of an upstream", function()
  local gate, client, folder

  local function starts(sandbox, more)
    more = more or {}
    folder = process.directory()
    os.execute(("cd '%s' && mkdir -p read write state/deep users/ann users/bob"):format(folder))
    for _, name in ipairs { "read/note", "write/note", "outside", "state/deep/secret", "key", "policy-key", "users/ann/token",
                            "users/ann/note", "users/bob/token" } do
      process.write(folder .. "/" .. name, "text")
    end
    os.execute(("chmod 700 '%s/state'; printf '#!/bin/sh\\nexit 0\\n' > '%s/write/tool'; chmod 755 '%s/write/tool'")
               :format(folder, folder, folder))
    gate, client = daemon.open { before = more.before, policies = { ["far.lua"] = ([[
return tool "far" { description = "Asks.", effects = "read", schema = params {},
                    http = { "GET http://127.0.0.1:1/", headers = { Key = "${file:%s/policy-key}" } } }]]):format(folder) },
      config = ([[
return { state = "DIR/state", upstreams = {
  box = { command = "/usr/bin/python3", args = { "%s" }, env = { GIVEN = "x" }, sandbox = %s },
  far = { rest = "http://127.0.0.1:1", headers = { Key = "${file:DIR/key}" } },
  own = { rest = "http://127.0.0.1:1", per_user = true, headers = { Key = "${file:DIR/users/%%u/token}" } } } }
]]):format(SERVER, sandbox):gsub("DIR", folder), environment = { NAMED = "n", SECRET = "s" } }
  end

  local function reach(how, what)
    return text(client:calls("reach", { how = how, what = tostring(what) }))
  end

  local function upstream()
    for _, one in ipairs(client:asks("toolgate/status").upstreams) do
      if one.name == "box" then return one end
    end
  end

  local function is_up()
    process.eventually("the server is up", function() return upstream().state == "up" end)
  end

  local function serves(...)
    if not kernel_has_landlock() then pending "this kernel has no Landlock" return false end
    starts(...)
    is_up()
    assert.equal("on", upstream().sandbox)
    return true
  end

  it("lets it read and write what is named, and nothing else", function()
    if not serves '{ read = { "DIR/read" }, write = { "DIR/write" } }' then return end
    assert.equal("ok", reach("read", folder .. "/read/note"))
    assert.equal("EACCES", reach("write", folder .. "/read/note"))
    assert.equal("EACCES", reach("truncate", folder .. "/read/note"))
    assert.equal("ok", reach("write", folder .. "/write/note"))
    assert.equal("ok", reach("write", folder .. "/write/new"))
    assert.equal("ok", reach("remove", folder .. "/write/new"))
    assert.equal(127, tonumber(reach("execute", folder .. "/write/tool")), "runs what it may write")
    for _, how in ipairs { "read", "write", "truncate", "remove" } do
      assert.equal("EACCES", reach(how, folder .. "/outside"), how)
      assert.equal("EACCES", reach(how, folder .. "/state/deep/secret"), how)
    end
    assert.equal("EACCES", reach("list", "/root"))
    assert.equal("ok", reach("write", "/dev/null"))
  end)

  it("keeps its children in its group, so that they end with it", function()
    if not serves '{ write = { "DIR/write" } }' then return end
    assert.equal("ok", reach("escape", folder .. "/write/pid"))
    local pid = process.eventually("a child has left", function()
      return tonumber(process.read(folder .. "/write/pid") or "")
    end)
    assert.truthy(process.read("/proc/" .. pid .. "/cmdline"):find("reaching_server", 1, true))
    daemon.stop_all()
    process.eventually("it has ended, too", function()
      return not (process.read("/proc/" .. pid .. "/cmdline") or ""):find("reaching_server", 1, true)
    end)
  end)

  it("without `read` hides the state folder and the sockets alone, and lets it write nothing", function()
    if not serves "{}" then return end
    assert.equal("ok", reach("read", folder .. "/outside"))
    assert.equal("ok", reach("read", "/etc/passwd"))
    assert.equal("EACCES", reach("read", folder .. "/state/deep/secret"))
    assert.equal("EACCES", reach("list", folder .. "/state"))
    assert.equal("EACCES", reach("write", folder .. "/outside"))
    assert.equal("EACCES", reach("write", folder .. "/fresh"))
  end)

  local function sees_no_secret()
    for _, path in ipairs { gate.directory .. "/toolgate.lua", gate.directory .. "/policies/far.lua", folder .. "/key",
                            folder .. "/policy-key", folder .. "/users/ann/token", folder .. "/users/bob/token",
                            folder .. "/state/deep/secret", "/etc/shadow" } do
      assert.equal("EACCES", reach("read", path), path)
    end
    assert.equal("EACCES", reach("list", gate.directory .. "/policies"))
    assert.equal("EACCES", reach("list", folder .. "/users/ann"))
    for _, path in ipairs { "/outside", "/users/ann/note", "/read/note" } do
      assert.equal("ok", reach("read", folder .. path), path)
    end
  end

  it("hides from it the configuration, the policies and all secrets, its own and those of users", function()
    if not serves "{}" then return end
    sees_no_secret()
    local policy = gate.directory .. "/policies/far.lua"
    os.execute(("mv '%s' '%s/far.lua' && ln -s '%s/far.lua' '%s'"):format(policy, folder, folder, policy))
    os.execute(("sed -i s/GIVEN/OTHER/ '%s/toolgate.lua'"):format(gate.directory)) -- so that it starts again
    gate:reload()
    process.eventually("it has started again", function() return reach("environment", "OTHER") == "ok" end)
    assert.equal("EACCES", reach("read", folder .. "/far.lua"))
    assert.equal("ok", reach("read", folder .. "/outside"))
  end)

  it("hides them also in a folder that `read` names, unless `read` names them", function()
    if not serves '{ read = { "/" } }' then return end
    sees_no_secret()
    assert.matches("sandbox_narrowed upstream=box read=/ ", gate:log())
    daemon.stop_all()
    serves '{ read = { "DIR", "DIR/key", "DIR/users/bob/token" } }'
    assert.equal("ok", reach("read", folder .. "/key"))
    assert.equal("ok", reach("read", folder .. "/users/bob/token"))
    assert.equal("EACCES", reach("read", folder .. "/users/ann/token"))
    assert.equal("ok", reach("read", folder .. "/outside"))
    daemon.stop_all()
    serves '{ read = { "DIR/users/ann" } }'
    assert.equal("EACCES", reach("read", folder .. "/users/ann/token"))
    assert.equal("ok", reach("read", folder .. "/users/ann/note"))
  end)

  it("does not start it with a folder to write that holds them, unless best_effort says so", function()
    if not kernel_has_landlock() then pending "this kernel has no Landlock" return end
    starts '{ write = { "DIR/users" } }'
    process.eventually("the start failed", function() return (upstream().last_error or ""):find("sandbox.write", 1, true) end)
    assert.not_equal("up", upstream().state)
    daemon.stop_all()
    serves '{ write = { "DIR/users" }, best_effort = true }'
    assert.equal("ok", reach("write", folder .. "/users/new"))
  end)

  it("lets it open no socket, unless network = true, and then none of the host's own", function()
    if not serves "{}" then return end
    for how, what in pairs { unix = gate.socket, tcp = 1, datagram = gate.socket } do
      assert.equal("EACCES", reach(how, what), how)
    end
    assert.equal("ENOSYS", reach("io_uring", ""))
    daemon.stop_all()
    serves "{ network = true }"
    assert.equal("ECONNREFUSED", reach("tcp", 1))
    assert.equal("EACCES", reach("unix", gate.socket))
    assert.equal("EACCES", reach("datagram", gate.socket))
  end)

  it("gives it only the named environment, no descriptor and no privilege, and nobody to signal or to read", function()
    if not serves '{ env = { "NAMED" } }' then return end
    assert.equal("ok", reach("environment", "GIVEN"))
    assert.equal("ok", reach("environment", "NAMED"))
    assert.equal("ok", reach("environment", "PATH"))
    assert.equal("unset", reach("environment", "SECRET"))
    assert.equal("unset", reach("environment", "HOME"))
    for fd = 3, 20 do assert.equal("EBADF", reach("descriptor", fd)) end
    assert.equal("ok", reach("no_new_privs", ""))
    assert.equal("EACCES", reach("environ", gate.child.pid))
    assert.equal("EPERM", reach("kill", gate.child.pid))
  end)

  it("keeps it away from every other process: limits, scheduling, memory, signals, namespaces", function()
    if not serves "{}" then return end
    local pid = gate:status().pid or gate:pid()
    local function state()
      local _, limits = process.run { "prlimit", "--pid", tostring(pid), "--raw" }
      local _, scheduling = process.run { "chrt", "--pid", tostring(pid) }
      local _, niceness = process.run { "ps", "-o", "ni=", "-p", tostring(pid) }
      return limits .. scheduling .. niceness
    end
    local before = state()
    local sibling = process.start({ "sleep", "60" }, { stdout = "/dev/null", stderr = "/dev/null" })
    for _, how in ipairs { "prlimit64", "read_limit", "sched_setscheduler", "sched_setparam", "sched_setattr",
                           "sched_setaffinity", "setpriority", "ioprio_set", "migrate_pages", "move_pages", "kill", "tkill",
                           "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "f_setown", "fiosetown" } do
      for _, other in ipairs { pid, sibling.pid, 1 } do
        assert.equal("EPERM", reach("meddle", how .. " " .. other), how .. " of " .. other)
      end
    end
    for _, how in ipairs { "setpriority_of_user", "ioprio_set_of_user", "clone_parent", "clone_user", "clone_pid" } do
      assert.equal("EPERM", reach("meddle", how .. " 0"), how)
    end
    for _, how in ipairs { "kcmp", "process_madvise", "ptrace", "process_vm_readv", "unshare", "shmget", "msgget", "semget",
                           "raw_pair" } do
      assert.equal("EACCES", reach("meddle", how .. " " .. pid), how)
    end
    sibling:signal(9)
    sibling:wait()
    assert.equal(before, state())
    assert.equal("up", upstream().state)
    assert.equal("ok", reach("itself", ""))
  end)

  it("lets it change no owner or attribute by a path, whosever file that is, and open none to everybody", function()
    if not serves '{ write = { "DIR/write" } }' then return end
    local paths = { gate.socket, folder .. "/state", folder .. "/key", gate.directory .. "/toolgate.lua" }
    local function modes()
      local _, out = process.run { "stat", "-c", "%a %U %G %n", unpack(paths) }
      return out
    end
    local before = modes()
    for _, path in ipairs(paths) do
      assert.equal("EPERM", reach("chmod", path))
      assert.equal("ENOSYS", reach("chmod_at", path))
      assert.equal("EPERM", reach("chown", path))
      assert.equal("ENOTSUP", reach("set_attribute", path))
    end
    assert.equal(before, modes())
    assert.equal("ok", reach("chmod_own", folder .. "/write/mine"))
    assert.equal("ok", reach("chmod_run", folder .. "/write/mine")) -- as npm and uv do
    assert.equal("755\n", select(2, process.run { "stat", "-c", "%a", folder .. "/write/mine" }))
  end)

  it("does not start it on a kernel without Landlock, and says why", function()
    starts("{}", { before = { unpack(WITHOUT_LANDLOCK) } })
    process.eventually("the start failed", function() return (upstream().last_error or ""):find("Landlock", 1, true) end)
    assert.not_equal("up", upstream().state)
    assert.is_nil(upstream().pid)
    assert.equal("incomplete", upstream().sandbox)
    assert.truthy(gate:log():find("Landlock", 1, true))
  end)

  it("starts it there with best_effort, with a warning", function()
    starts('"best_effort"', { before = { unpack(WITHOUT_LANDLOCK) } })
    is_up()
    assert.truthy(upstream().sandbox_missing:find("landlock", 1, true))
    assert.truthy(gate:log():find("sandbox_incomplete", 1, true))
    local _, shown = process.run { daemon.binary, "status", "--socket", gate.socket }
    assert.matches("the upstream box runs without landlock: it may read and write any file", shown)
    assert.equal("EACCES", reach("unix", gate.socket)) -- seccomp is there
  end)

  it("does not start it with a path that does not exist", function()
    if not kernel_has_landlock() then pending "this kernel has no Landlock" return end
    starts '{ write = { "DIR/nowhere" } }'
    process.eventually("the start failed", function() return (upstream().last_error or ""):find("nowhere", 1, true) end)
    assert.not_equal("up", upstream().state)
  end)

  it("holds a command of a policy, too", function()
    if not kernel_has_landlock() then pending "this kernel has no Landlock" return end
    folder = process.directory()
    process.write(folder .. "/note", "text")
    process.write(folder .. "/other", "text")
    local policies = { ["show.lua"] = ([[
return tool "show" {
  description = "Shows a file.", effects = "read", schema = params { path = str "The file" },
  exec = { "cat", "--", "{path}", output = "text", sandbox = { read = { "%s/note" } } },
}]]):format(folder) }
    gate, client = daemon.open { policies = policies }
    local function show(path) return client:calls("show", { path = path }) end
    assert.equal("text", text(show(folder .. "/note")))
    local refused = show(folder .. "/other")
    assert.equal("tool_error", client_of.verdict(refused).error_class)
    assert.truthy(text(refused):find("Permission denied", 1, true))
    daemon.stop_all()
    gate, client = daemon.open { before = { unpack(WITHOUT_LANDLOCK) }, policies = policies }
    assert.equal("unavailable", client_of.verdict(show(folder .. "/note")).error_class)
    assert.truthy(gate:log():find("Landlock", 1, true))
  end)

  it("refuses a sandbox that is none, for a server that toolgate does not start as well", function()
    for _, case in ipairs {
      { 'command = "x", sandbox = "best"', "upstreams.a.sandbox" },
      { 'command = "x", sandbox = { reads = {} }', "upstreams.a.sandbox.reads" },
      { 'command = "x", sandbox = { read = { "~/x" } }', "upstreams.a.sandbox.read" },
      { 'command = "x", sandbox = { network = "yes" }', "upstreams.a.sandbox.network" },
      { 'url = "http://x/", sandbox = {}', "upstreams.a.sandbox" },
    } do
      local log = daemon.fails { config = ("return { upstreams = { a = { %s } } }"):format(case[1]) }
      assert.truthy(log:find(case[2], 1, true), log)
    end
  end)
end)
