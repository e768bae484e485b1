-- The user's own daemon: who starts it, who does not, and how it ends. Each spec has a HOME of its own.
local cjson = require "cjson"

local LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
local FAKE = daemon.root .. "/tests/support/fake_upstream.py"

describe("the user's own daemon", function()
  local home, environment, socket

  before_each(function()
    home = io.popen("realpath " .. process.directory()):read "*l"
    socket = home .. "/run/toolgate/toolgate.sock"
    environment = { HOME = home, XDG_RUNTIME_DIR = home .. "/run", XDG_CONFIG_HOME = "", XDG_STATE_HOME = "",
                    TOOLGATE_SOCKET = "" }
    os.execute("mkdir -m 700 " .. home .. "/run")
  end)
  after_each(function() process.run({ daemon.binary, "stop" }, { environment = environment }) end)

  local function run(input, ...)
    return process.run({ daemon.binary, ... }, { input = input, environment = environment })
  end
  local function with(more)
    local out = {}
    for name, value in pairs(environment) do out[name] = value end
    for name, value in pairs(more) do out[name] = value end
    return out
  end
  local function listens()
    local connection = client_of.connect(socket)
    if connection then connection:close() end
    return connection ~= nil
  end
  local function pid()
    local code, out = run("", "status", "--json")
    return code == 0 and cjson.decode(out).pid
  end
  local function configure(text, name)
    os.execute("mkdir -p " .. home .. "/.config/toolgate")
    process.write(home .. "/.config/toolgate/" .. (name or "toolgate.lua"), text)
  end

  it("is started by connect, found by the next one, and ended by stop", function()
    local code, out, err = run(LIST, "connect")
    assert.equal(0, code, err)
    assert.same({}, cjson.decode(out).result.tools)
    assert.matches("started the user's own daemon at " .. socket .. ": " .. home .. "/.config/toolgate/policies", err, 1, true)
    local first = pid()
    code, out, err = run(LIST, "connect")
    assert.equal(0, code)
    assert.matches("tools", out)
    assert.equal("", err)
    assert.equal(first, pid())
    code, out = run("", "stop")
    assert.equal(0, code)
    assert.matches("process " .. first, out, 1, true)
    assert.falsy(listens())
    assert.equal(1, (run("", "stop")))
  end)

  it("leaves a decision log, which is found when the daemon has ended", function()
    local call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"no_such_tool","arguments":{}}}\n'
    assert.equal(0, (run(LIST .. call, "connect")))
    assert.equal(0, (run("", "stop")))
    local code, out, err = run("", "decisions")
    assert.equal(0, code, err)
    assert.matches("no_such_tool", out)
  end)

  it("begins a new log where the one before has become long, and keeps that", function()
    local log = home .. "/.local/state/toolgate/daemon.log"
    os.execute(("mkdir -p -m 700 %s/.local/state/toolgate && truncate -s 9M %s"):format(home, log))
    assert.equal(0, (run(LIST, "connect")))
    assert.matches("^%d[^\n]* daemon_ready", process.read(log):match "[^\n]*daemon_ready")
    assert.equal("9437184\n", (select(2, process.run { "stat", "-c", "%s", log .. ".1" })))
  end)

  it("has a session, a folder and files of its own, and nothing of the client's", function()
    local line = ("exec 7</etc/hostname; umask 0; exec %s connect"):format(daemon.binary)
    assert.equal(0, (process.run({ "sh", "-c", line }, { input = LIST, environment = environment, directory = home })))
    local proc = "/proc/" .. pid()
    local function link(name) return io.popen("readlink " .. proc .. "/" .. name):read "*l" end
    assert.equal("/", link "cwd")
    assert.equal("/dev/null", link "fd/0")
    assert.equal(home .. "/.local/state/toolgate/daemon.log", link "fd/2")
    assert.falsy(io.popen("ls -l " .. proc .. "/fd"):read("*a"):find("hostname", 1, true))
    local stat = process.read(proc .. "/stat"):match "%) (.*)"
    assert.equal(tostring(pid()), stat:match "^%S+ %S+ %S+ (%d+)") -- it leads its session
    assert.equal("0077", process.read(proc .. "/status"):match "Umask:%s*(%d+)")
  end)

  it("has the user's configuration, and does not start with the defaults if that does not load", function()
    configure "return { policies = 'mine' }"
    os.execute("mkdir " .. home .. "/.config/toolgate/mine")
    local code, _, err = run(LIST, "connect")
    assert.equal(0, code, err)
    assert.matches("toolgate/toolgate.lua", err, 1, true)
    run("", "stop")
    configure "return { polices = 'mine' }"
    code, _, err = run(LIST, "connect")
    assert.equal(2, code)
    assert.matches("did not start", err)
    assert.matches("did you mean 'policies'", err)
    assert.falsy(listens())
  end)

  it("has the user's policies where there is no configuration", function()
    os.execute("mkdir -p " .. home .. "/.config/toolgate/policies")
    configure(require("fixtures").echo, "policies/echo.lua")
    local _, _, err = run(LIST, "connect")
    assert.matches(".config/toolgate/policies", err, 1, true)
    assert.equal(1, cjson.decode((select(2, run("", "status", "--json")))).generation.policies)
  end)

  for label, more in pairs { ["a socket was named"] = { "connect", "SOCKET" },
                             ["--no-start is given"] = { "connect", "--no-start" } } do
    it("is not started where " .. label, function()
      local words = {}
      for i, word in ipairs(more) do words[i] = word == "SOCKET" and socket or word end
      words[#words + 1] = "--wait"
      words[#words + 1] = "1"
      local code, out = run(LIST, unpack(words))
      assert.equal(2, code)
      assert.matches("unavailable", out)
      assert.falsy(listens())
    end)
  end

  it("is not started where the environment names a socket", function()
    local named = with { TOOLGATE_SOCKET = home .. "/named.sock" }
    local code, _, err = process.run({ daemon.binary, "connect", "--wait", "1" }, { input = LIST, environment = named })
    assert.equal(2, code)
    assert.matches("named.sock", err)
    assert.falsy(listens())
    assert.is_nil(client_of.connect(home .. "/named.sock"))
  end)

  it("is not started on a host with a daemon of the system", function()
    os.execute(("mkdir -p %s/etc/toolgate && cp /etc/passwd /etc/group %s/etc && touch %s/etc/toolgate/toolgate.lua"):format(home,
               home, home))
    local line = ("mount --bind %s/etc /etc && exec %s connect --wait 1"):format(home, daemon.binary)
    if os.execute "unshare -m true 2>/dev/null" ~= 0 then return pending "needs root" end
    local code, out = process.run({ "unshare", "-m", "sh", "-c", line }, { input = LIST, environment = environment })
    assert.equal(2, code)
    assert.matches("unavailable", out)
    assert.falsy(listens())
  end)

  it("is one, whoever starts it at the same time", function()
    local children = {}
    process.write(home .. "/in", LIST)
    for i = 1, 6 do
      children[i] = process.start({ daemon.binary, "connect" }, { environment = environment, stdin = home .. "/in",
                                                                  stdout = home .. "/out" .. i, stderr = home .. "/err" .. i })
    end
    for i, child in ipairs(children) do
      local _, code = child:wait()
      assert.equal(0, code, process.read(home .. "/err" .. i))
      assert.matches('"tools"', process.read(home .. "/out" .. i))
    end
    local log = process.read(home .. "/.local/state/toolgate/daemon.log")
    assert.equal(1, select(2, log:gsub("daemon_ready", "")), log)
  end)

  it("ends after its idle time without a connection", function()
    local child = process.start({ daemon.binary, "serve", "--user", "--idle", "1" },
                                { environment = environment, stdin = "/dev/null", stderr = home .. "/log" })
    process.eventually("it listens", listens)
    local _, code = child:wait()
    assert.equal(0, code)
    assert.matches("daemon_idle", process.read(home .. "/log"))
    assert.falsy(listens())
  end)

  it("is started again by a bridge whose client asks when it has ended", function()
    os.execute("mkfifo " .. home .. "/in")
    local child = process.start({ "sh", "-c", ("exec %s connect <%s/in"):format(daemon.binary, home) },
                                { environment = environment, stdout = home .. "/out", stderr = home .. "/err" })
    local input = io.open(home .. "/in", "w")
    input:setvbuf "no"
    input:write(LIST)
    process.eventually("an answer", function() return process.read(home .. "/out"):find('"id":1', 1, true) end)
    local first = pid()
    run("", "stop")
    input:write((LIST:gsub('"id":1', '"id":2')))
    process.eventually("an answer", function() return process.read(home .. "/out"):find('"id":2', 1, true) end)
    assert.not_equal(first, pid())
    input:close()
    local _, code = child:wait()
    assert.equal(0, code)
  end)

  it("is started by a hook, which then asks it", function()
    local event = cjson.encode { session_id = "s", hook_event_name = "PreToolUse", tool_name = "Bash", tool_use_id = "toolu_1",
                                 tool_input = { command = "ls" } }
    local code, out, err = run(event, "hook")
    assert.equal(0, code, err)
    assert.equal("", out)
    assert.truthy(listens())
    assert.matches("Bash", (select(2, run("", "sessions"))) .. (select(2, run("", "status", "--all"))))
    run("", "stop")
    code, out = run(event, "hook", "--no-start")
    assert.equal(0, code)
    assert.matches("no daemon", out)
    assert.falsy(listens())
  end)

  it("keeps a hook from letting a call run where its configuration does not load", function()
    configure "return {"
    local event = cjson.encode { session_id = "s", hook_event_name = "PreToolUse", tool_name = "Bash", tool_use_id = "toolu_1",
                                 tool_input = { command = "ls" } }
    local code, out = run(event, "hook")
    assert.equal(0, code)
    assert.equal("ask", cjson.decode(out).hookSpecificOutput.permissionDecision)
  end)

  it("says after a second what takes so long", function()
    os.execute("mkdir -p " .. home .. "/.config/toolgate/servers.d")
    configure('{"mcpServers":{"slow":{"command":"sh","args":["-c","sleep 2; exec python3 ' .. FAKE .. '"]}}}',
              "servers.d/a.json")
    local code, out, err = run(LIST, "connect", "--servers", "a")
    assert.equal(0, code, err)
    assert.matches("is starting", err)
    assert.matches('"echo"', out)
  end)

  it("takes a file that attach has made while it runs", function()
    run(LIST, "connect")
    os.execute("mkdir -p " .. home .. "/.cursor")
    process.write(home .. "/.cursor/mcp.json", '{"mcpServers":{"f":{"command":"python3","args":["' .. FAKE .. '"]}}}')
    assert.equal(0, (run("", "attach", "--yes")))
    process.eventually("the tools are there", function()
      return (select(2, run(LIST, "connect", "--servers", "cursor"))):find('"echo"', 1, true)
    end)
  end)

  it("is systemd's where its socket unit is enabled, and is not started a second time", function()
    if os.execute "command -v systemd-socket-activate >/dev/null" ~= 0 then return pending "systemd is not installed" end
    local words = process.read("systemd/user/toolgate.service"):match "\nExecStart=/usr/bin/toolgate ([^\n]+)"
    local argv = { "systemd-socket-activate", "-l", (process.read("systemd/user/toolgate.socket")
                   :match("\nListenStream=([^\n]+)"):gsub("%%t", home .. "/run")), "-E", "HOME=" .. home,
                   "-E", "XDG_RUNTIME_DIR=" .. home .. "/run", daemon.binary }
    for word in words:gmatch "%S+" do argv[#argv + 1] = word end
    os.execute("mkdir -m 700 " .. home .. "/run/toolgate")
    local systemd = process.start(argv, { stderr = home .. "/systemd.log", environment = environment })
    process.eventually("systemd listens", function() return os.execute("test -S " .. socket) == 0 end)
    local code, out, err = run(LIST, "connect")
    assert.same({ 0, "" }, { code, err })
    assert.same({}, cjson.decode(out).result.tools)
    assert.equal(systemd.pid, pid())
    assert.equal(0, (run("", "stop")))
    systemd:wait()
  end)

  it("says without a HOME why none is started", function()
    local code, _, err = process.run({ "env", "-i", daemon.binary, "connect", "--wait", "1" }, { input = LIST })
    assert.equal(2, code)
    assert.matches("no daemon at", err)
  end)
end)

describe("toolgate", function()
  it("says its version to each of the words for it", function()
    local told, version = process.run { daemon.binary, "--version" }
    assert.equal(0, told)
    assert.truthy(version:find "%d+%.%d+")
    for _, word in ipairs { "version", "-v", "-V" } do
      local out = process.runs { daemon.binary, word }
      assert.equal(version, out)
    end
  end)
end)
