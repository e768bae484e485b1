-- toolgate top in a real terminal (tmux): what it draws, its keys, and that it gives the terminal back.
local signal = require "posix.signal"
local tmux = require "tmux"

describe("toolgate top", function()
  local gate

  before_each(function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task } }
  end)

  local function call(name, arguments, session)
    return gate:connect():calls(name, arguments, client_of.session(session or "s"))
  end

  local function start(given)
    local terminal = tmux.start(given)
    terminal:types("stty -a >" .. terminal.directory .. "/before; echo earlier'' line")
    terminal:shows "earlier line"
    terminal:types(("%s top --socket %s"):format(daemon.binary, gate.socket))
    terminal:shows "q quit"
    terminal:shows ("toolgate " .. process.read("src/base/version.h"):match 'TOOLGATE_VERSION "([^"]+)"')
    return terminal
  end

  -- The shell's prompt, its earlier screen and its terminal settings are back.
  local function is_restored(terminal)
    terminal:shows_no_longer "q quit"
    terminal:shows "earlier line"
    terminal.checks = (terminal.checks or 0) + 1 -- the screen may still show the last one's
    local path = terminal.directory .. "/after" .. terminal.checks
    terminal:types(("stty -a >%s; echo check''ed %d"):format(path, terminal.checks))
    terminal:shows("checked " .. terminal.checks)
    assert.equal(process.read(terminal.directory .. "/before"), process.read(path))
  end

  it("shows tools with their refusals, and sorts by key", function()
    for _ = 1, 3 do call("echo", { text = "a" }) end
    for i = 1, 2 do call("create_task", { titel = i }, "s" .. i) end
    local terminal = start()
    local screen = terminal:shows "create_task"
    assert.truthy(screen:find "echo +3", screen)
    assert.truthy(screen:find("create_task +2 .-100 %%"), screen)
    terminal:press "n"
    assert.truthy(terminal:shows("by name"):find "create_task.*echo")
    terminal:press "r"
    assert.truthy(terminal:shows("by rate"):find "echo.*create_task")
    terminal:press "f"
    assert.truthy(terminal:shows("by refusals"):find "create_task.*echo")
    terminal:press "q"
    is_restored(terminal)
  end)

  it("shows calls a second while calls are made", function()
    local terminal, calls = start(), 0
    process.eventually("a rate above 0", function()
      calls = calls + 1
      call("echo", { text = tostring(calls) })
      local screen = terminal:screen()
      return tonumber(screen:match "echo +%d+ +(%d+%.%d)" or 0) > 0 and screen:find "pass %d+%.%d/s", screen
    end)
  end)

  it("shows sessions in a loop and upstreams that are down, without the escape sequences of their names", function()
    gate:stop()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo },
                          config = "return { upstreams = { calendar = { command = '/nonexistent/server' } } }" }
    for _ = 1, 5 do call("echo", { text = "same" }, "chat\27]0;owned\7\27[2J\226\128\174\230\151\165") end
    local terminal = start { columns = 120 }
    local screen = terminal:shows "SESSIONS IN A LOOP"
    assert.truthy(screen:find("chat?]0;owned??[2J?\230\151\165", 1, true), screen)
    assert.truthy(screen:find("0 of 1 up", 1, true), screen)
    terminal:shows "! calendar is down"
    local out = process.runs { daemon.binary, "top", "--once", "--socket", gate.socket }
    assert.falsy(out:find "[%z\1-\9\11-\31\127]")
    assert.truthy(out:find("1 loop found", 1, true), out)
    terminal:press "q"
    is_restored(terminal)
  end)

  it("gives the terminal back after SIGINT, SIGTERM and while it is suspended", function()
    local terminal = start()
    terminal:press "C-z"
    is_restored(terminal)
    terminal:types "fg"
    terminal:shows "q quit"
    terminal:press "C-c"
    is_restored(terminal)
    terminal:types(("%s top --socket %s & echo pid=$!; fg"):format(daemon.binary, gate.socket))
    terminal:shows "q quit"
    terminal:types "" -- any other key does nothing
    terminal:press "C-z"
    local pid = terminal:shows("pid="):match "pid=(%d+)"
    terminal:types "clear; echo; echo earlier line; fg"
    terminal:shows "q quit"
    signal.kill(tonumber(pid), signal.SIGTERM)
    is_restored(terminal)
  end)

  it("fits the terminal, also after a resize", function()
    local terminal = start { columns = 100, rows = 24 }
    for _, size in ipairs { { 40, 10 }, { 20, 3 }, { 160, 50 } } do
      terminal:resize(size[1], size[2])
      process.eventually("the frame has the new width", function()
        local screen, longest, lines = terminal:screen(), 0, 0
        for line in screen:gmatch "[^\n]*" do
          longest = math.max(longest, #line)
          lines = lines + (line ~= "" and 1 or 0)
        end
        return longest <= size[1] and lines <= size[2] and screen:find("toolgate %d"), screen
      end)
    end
    terminal:shows "q quit"
  end)

  it("leaves out columns that a narrow terminal cannot show whole, down to one column", function()
    call("echo", { text = "x" }, "narrow")
    local terminal = start { columns = 100, rows = 24 }
    for _, size in ipairs { { 60, "CALLS  CALLS/S   REF/S  REFUSED$" }, { 30, "CALLS/S   REF/S$" }, { 24, "CALLS/S$" },
                            { 20, "^TOOL, by rate$" }, { 1, "^~$" } } do
      terminal:resize(size[1], 24)
      process.eventually(size[1] .. " columns", function()
        local screen = terminal:screen()
        for line in screen:gmatch "[^\n]+" do
          if line:gsub("%s+$", ""):find(size[2]) then return true end
        end
        return false, screen
      end)
    end
    terminal:resize(100, 24)
    terminal:shows "q quit"
  end)

  it("uses colours, but none with NO_COLOR", function()
    local terminal = start()
    assert.truthy(terminal:screen(true):find "\27%[1m")
    terminal = start { environment = { "NO_COLOR=1" } }
    assert.falsy(terminal:screen(true):find "\27")
    terminal:press "q"
    terminal:resize(80, 24)
    terminal:types(("%s top --once --socket %s; echo do''ne"):format(daemon.binary, gate.socket))
    assert.falsy(terminal:shows("done"):find "FREQUENT")
  end)

  it("names the gateway file whose function fails", function()
    gate:stop()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo,
      ["all.lua"] = '-- For specs.\nreturn gateway { prepare_tools = function() error("no list") end }' } }
    gate:connect():asks "tools/list"
    local _, out = process.run { daemon.binary, "top", "--once", "--socket", gate.socket }
    assert.truthy(out:find "! [^\n]*all%.lua: the policy failed: [^\n]*no list", out)
  end)

  it("says that the daemon is gone, and connects to the next one", function()
    local terminal = start()
    gate:signal(signal.SIGTERM)
    gate.child:wait()
    terminal:shows "no daemon at"
    local next_one = daemon.start { socket = gate.socket, policies = { ["echo.lua"] = fixtures.echo } }
    terminal:shows "the daemon has restarted"
    terminal:shows_no_longer "no daemon at"
    next_one:stop()
    terminal:press "q"
    is_restored(terminal)
  end)

  it("--once prints one frame", function()
    call("echo", { text = "a" })
    local out = process.runs { daemon.binary, "top", "--once", "--socket", gate.socket }
    assert.truthy(out:find("echo +1"), out)
    assert.falsy(out:find("\27", 1, true), out)
    local failed, nothing, why = process.run { daemon.binary, "top", "--once", "--socket", "/tmp/nobody-serves-here.sock" }
    assert.equal(2, failed)
    assert.equal("", nothing)
    golden.check("cli", "top: no daemon", why)
  end)

  it("says why it does not start", function()
    local code, _, err = process.run { daemon.binary, "top", "--socket", gate.socket }
    assert.equal(2, code)
    golden.check("cli", "top: no terminal", err)
    code, _, err = process.run { daemon.binary, "top", "--interval", "3601" }
    assert.equal(2, code)
    golden.check("cli", "top: an interval that is too long", err)
  end)
end)
