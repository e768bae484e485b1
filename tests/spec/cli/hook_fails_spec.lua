-- toolgate hook, where something is broken: the assistant runs a call whose hook ends with any code but 0 and 2, or is
-- not done when the assistant's patience ends. So a hook has a deadline, and its own errors are code 2 with a text.
local cjson = require "cjson"
local unistd = require "posix.unistd"

local DEADLINE_S, SLACK_S = 1.5, 3 -- the machine may be loaded; the assistant waits for ten seconds

-- Answers each connection in one of these ways.
local LISTENER = [[
import os, socket, sys, time
path, how = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path + ".new")
listener.listen(0 if how == "accepts nobody" else 8)
waiting = []
def replies(rest): return b"".join(b'{"jsonrpc":"2.0","id":%d,%s}\n' % (i, rest) for i in (1, 2))
if how == "accepts nobody":  # further connections wait until one of these is accepted
    for _ in range(2):
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        try: one.connect(path + ".new")
        except BlockingIOError: pass
        waiting.append(one)
os.rename(path + ".new", path)
while how != "accepts nobody":
    one, _ = listener.accept()
    waiting.append(one)
    if how == "reads nothing": continue
    try:
        one.recv(65536)
        if how == "says half a line": one.sendall(b'{"jsonrpc":"2.0","id":1,"resu')
        if how == "says nonsense": one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        if how == "says no result": one.sendall(b'{"jsonrpc":"2.0","id":1}\n')
        if how == "knows no method": one.sendall(replies(b'"error":{"code":-32601,"message":"no such method"}'))
        if how == "gives no verdict": one.sendall(replies(b'"result":{}'))
        if how == "is overloaded": one.sendall(replies(b'"error":{"code":1005,"message":"too many calls"}'))
        if how == "hangs up": one.close()
    except OSError: pass
time.sleep(3600)
]]

describe("a hook that fails", function()
  local folder, socket, children
  before_each(function()
    folder, children = process.directory(), {}
    socket = folder .. "/s"
  end)
  after_each(function()
    for _, child in ipairs(children) do
      child:signal(9)
      child:wait()
    end
  end)

  local CALL = { session_id = "s", hook_event_name = "PreToolUse", tool_name = "Bash", tool_use_id = "toolu_1",
                 tool_input = { command = "ls" } }

  local function with(more)
    local event = {}
    for key, value in pairs(CALL) do event[key] = value end
    for key, value in pairs(more) do event[key] = value end
    return event
  end

  local function listens(how)
    children[#children + 1] = process.start({ "python3", "-c", LISTENER, socket, how }, { stderr = folder .. "/err" })
    process.eventually("it listens", function() return os.rename(socket, socket) end)
  end

  -- The answer (nil: none), the exit code, stderr and the seconds it took.
  local function hears(event, ...)
    local began = process.now()
    local code, out, err = process.run({ daemon.binary, "hook", "--socket", socket, ... },
                                       { input = type(event) == "string" and event or cjson.encode(event),
                                         environment = { XDG_RUNTIME_DIR = folder } })
    return out ~= "" and cjson.decode(out) or nil, code, err, process.now() - began
  end

  local function decision(answer) return answer and answer.hookSpecificOutput.permissionDecision end

  local function blocks(code, err)
    assert.equal(2, code)
    assert.matches("^toolgate hook: %S", err)
  end

  -- As --on-unavailable says, and in time.
  local function is_unavailable(told)
    local answer, code, err, took = hears(CALL, "--on-unavailable", told)
    assert.equal(0, code, err)
    assert.equal(told, decision(answer) or "allow")
    assert.matches("^toolgate hook: %S", err)
    assert.is_true(took < DEADLINE_S + SLACK_S, told .. " took " .. took)
  end

  it("is late for a daemon that is stopped", function()
    local gate = daemon.start {}
    socket = gate.socket
    gate:signal(19)
    for _, told in ipairs { "ask", "deny", "allow" } do is_unavailable(told) end
    local answer = hears(with { turn_id = "t" })
    assert.equal("deny", decision(answer)) -- Codex would run what it is told to ask about
    answer = hears(with { hook_event_name = "UserPromptSubmit" })
    assert.is_nil(answer)
    gate:signal(18)
  end)

  for _, how in ipairs { "accepts nobody", "reads nothing", "says nothing", "says half a line" } do
    it("is late for a listener that " .. how, function()
      listens(how)
      is_unavailable "ask"
    end)
  end

  it("is late with a call that a stopped daemon has no room for", function()
    local gate = daemon.start {}
    socket = gate.socket
    gate:signal(19)
    local answer, code, _, took = hears(with { tool_input = { command = ("x"):rep(4000000) } })
    assert.equal("ask", decision(answer))
    assert.equal(0, code)
    assert.is_true(took < DEADLINE_S + SLACK_S)
    gate:signal(18)
  end)

  for _, how in ipairs { "hangs up", "is overloaded" } do
    it("does as it was told for a listener that " .. how, function()
      listens(how)
      for _, told in ipairs { "ask", "deny", "allow" } do is_unavailable(told) end
    end)
  end

  for _, how in ipairs { "says nonsense", "says no result", "knows no method", "gives no verdict" } do
    it("blocks the call for a listener that " .. how, function()
      listens(how)
      for _, told in ipairs { "ask", "allow" } do
        local answer, code, err = hears(CALL, "--on-unavailable", told)
        assert.is_nil(answer)
        blocks(code, err)
      end
    end)
  end

  it("blocks the call for a path that is no daemon's socket", function()
    process.write(socket, "")
    local answer, code, err = hears(CALL, "--on-unavailable", "allow")
    assert.is_nil(answer)
    blocks(code, err)
    socket = ("/tmp/x"):rep(40)
    answer, code, err = hears(CALL, "--on-unavailable", "allow")
    assert.is_nil(answer)
    blocks(code, err)
  end)

  it("allows no call that the model made too large to be checked", function()
    local gate = daemon.start {}
    socket = gate.socket
    local answer = hears(with { tool_input = { command = ("x"):rep(9000000) } }, "--on-unavailable", "allow")
    assert.equal("deny", decision(answer))
  end)

  it("waits for no stdin that has no end", function()
    local reads, writes = unistd.pipe()
    local child = process.start({ daemon.binary, "hook", "--on-unavailable", "allow" },
                                { stdin = reads, stdout = folder .. "/out", stderr = folder .. "/err" })
    unistd.write(writes, '{"hook_event_name":')
    local how, code = child:wait()
    unistd.close(reads)
    unistd.close(writes)
    assert.equal("exited", how)
    blocks(code, process.read(folder .. "/err"))
    assert.equal("", process.read(folder .. "/out"))
    child = process.start({ daemon.binary, "hook" }, { stdin = "/dev/zero", stderr = folder .. "/err" })
    assert.equal(2, select(2, child:wait()))
  end)

  it("blocks the call if nobody can read its answer", function()
    local reads, writes = unistd.pipe()
    unistd.close(reads)
    local event = process.write(folder .. "/event", cjson.encode(CALL))
    for _, out in ipairs { writes, "/dev/full" } do
      local child = process.start({ daemon.binary, "hook", "--socket", folder .. "/none" },
                                  { stdin = event, stdout = out, stderr = folder .. "/err" })
      local how, code = child:wait()
      assert.equal("exited", how)
      blocks(code, process.read(folder .. "/err"))
    end
    unistd.close(writes)
    assert.equal(2, (process.run { "sh", "-c", ("'%s' hook --socket /none < '%s' >&-"):format(daemon.binary, event) }))
  end)

  it("blocks the call if it is ended before it has an answer", function()
    for _, number in ipairs { 6, 11, 15, 1, 24 } do -- as for want of memory, by a fault, a request, a limit
      local reads, writes = unistd.pipe()
      local child = process.start({ daemon.binary, "hook" }, { stdin = reads, stderr = folder .. "/err" })
      process.eventually("it waits for stdin", function()
        local caught = process.read(("/proc/%d/status"):format(child.pid)):match "SigCgt:%s*%x*(%x%x%x%x)%s"
        return caught and tonumber(caught, 16) % 0x4000 >= 0x2000 -- SIGALRM, which is the last
      end)
      child:signal(number)
      local how, code = child:wait()
      unistd.close(reads)
      unistd.close(writes)
      assert.equal("exited", how, "signal " .. number)
      blocks(code, process.read(folder .. "/err"))
    end
  end)

  it("blocks the call if it is called wrongly", function()
    for _, arguments in ipairs { { "PreTolUse" }, { "PreToolUse" }, { "--on-unavailable", "maybe" }, { "--client", "x" },
                                 { "--on-unknown" }, { "--soket", "x" } } do
      local answer, code, err = hears(CALL, unpack(arguments))
      assert.is_nil(answer)
      blocks(code, err)
    end
  end)

  it("blocks an event that is one of ours but for its spelling, or is about a call that nobody else would check", function()
    for _, name in ipairs { "PreToolUs", "preToolUse", "pre_tool_use", "BeforeToolCall", "PreToolUseV2", "PostTooluse" } do
      local answer, code, err = hears(with { hook_event_name = name }, "--on-unknown", "allow")
      assert.is_nil(answer, name)
      blocks(code, err)
    end
    for _, name in ipairs { "UserPromptSubmitt", "precompact", "SesionStart", "PostToolBach" } do
      local _, code, err = hears({ session_id = "s", hook_event_name = name }, "--on-unknown", "allow")
      blocks(code, err)
    end
  end)

  it("lets pass the assistant's other events, also those that it may get one day", function()
    for _, name in ipairs { "Stop", "SubagentStop", "SessionEnd", "PostCompact", "Notification", "Interrupt", "FullMoon" } do
      local event = { session_id = "s", hook_event_name = name }
      local answer, code, err = hears(event)
      assert.is_nil(answer, name)
      assert.equal(0, code, name .. err)
      assert.matches(name, err)
      assert.equal(2, select(2, hears(event, "--on-unknown", "deny")))
    end
    assert.equal(0, select(2, hears(with { hook_event_name = "PermissionRequest" })))
  end)
end)
