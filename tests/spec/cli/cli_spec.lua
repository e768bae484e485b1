-- The subcommands that talk to a running daemon, and what all subcommands share: --help, errors, colour.
local stat = require "posix.sys.stat"

local COMMANDS = { "serve", "connect", "call", "check", "tools", "test", "new", "words", "lint", "session",
                   "sessions", "status", "top", "replay", "doctor", "spawner", "hook" }

describe("toolgate", function()
  local gate

  before_each(function()
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task } }
  end)

  local function toolgate(...)
    return process.run { daemon.binary, ... }
  end

  for _, command in ipairs(COMMANDS) do
    it(command .. " --help has an example", function()
      local code, out = toolgate(command, "--help")
      assert.equal(0, code)
      assert.truthy(out:find("toolgate " .. command, 1, true), out)
      assert.truthy(out:lower():find("example", 1, true), out)
      golden.check("cli", "help: " .. command, out)
    end)
  end

  it("reports that standard output cannot be written", function()
    local code, _, err = process.run { "sh", "-c", 'exec "$0" "$@" >/dev/full', daemon.binary, "status",
                                       "--socket", gate.socket }
    assert.equal(2, code)
    golden.check("cli", "standard output cannot be written", err)
  end)

  it("distinguishes a file that is not a socket from a daemon that is gone", function()
    local code, _, err = toolgate("status", "--socket", gate.stderr)
    assert.equal(2, code)
    golden.check("cli", "socket: the path is not a socket", err)
  end)

  it("lists its commands, and suggests the closest command and option", function()
    local _, out = toolgate "--help"
    for _, command in ipairs(COMMANDS) do assert.truthy(out:find(command, 1, true), command) end
    golden.check("cli", "help: toolgate", out)
    local code, _, err = toolgate "chekc"
    assert.not_equal(0, code)
    golden.check("cli", "usage: an unknown command", err)
    code, _, err = toolgate("check", "--trcae")
    assert.not_equal(0, code)
    golden.check("cli", "usage: an unknown option", err)
  end)

  it("call runs a tool, and its exit code follows the verdict", function()
    local code, out = toolgate("call", "--socket", gate.socket, "echo", '{"text":"hello"}')
    assert.equal(0, code)
    assert.truthy(out:find("hello", 1, true))
    code, out = toolgate("call", "--socket", gate.socket, "create_task", '{"titel":"x"}')
    assert.not_equal(0, code)
    golden.check("cli", "call: a call that is not run", out)
  end)

  it("call --json prints JSON", function()
    local _, out = toolgate("call", "--socket", gate.socket, "--json", "echo", '{"text":"hello"}')
    assert.is_table(client_of.json.decode(out))
  end)

  it("check --trace prints each stage with its decision and time, and counts nothing", function()
    for _ = 1, 4 do
      local code, out = toolgate("check", "--socket", gate.socket, "create_task", '{"titel":"x"}', "--trace")
      assert.not_equal(0, code)
      for _, stage in ipairs { "known", "schema" } do assert.truthy(out:find(stage, 1, true), out) end
      assert.truthy(out:find "µs", out)
      assert.is_nil(out:find("retry_budget_exceeded", 1, true), out)
    end
  end)

  it("check shows a hidden character of a name as what it is, and adds nothing to the name", function()
    gate:stop()
    gate = daemon.start { policies = { ["count.lua"] = [[
return tool "count" { schema = params { ["n\226\128\174x"] = int "How many" }, run = function() return {} end }]] } }
    local _, out = toolgate("check", "--socket", gate.socket, "count", '{"n\226\128\174x":"5"}')
    assert.truthy(out:find('{"n\\\\u{202e}x":5}', 1, true), out)
  end)

  it("tools asks the daemon that runs, unless files are named", function()
    local function lists(...)
      local _, out, err = process.run({ daemon.binary, "tools", ... }, { environment = { TOOLGATE_SOCKET = gate.socket } })
      return out, err
    end
    local out, err = lists()
    assert.truthy(out:find("create_task", 1, true), out)
    assert.truthy(err:find("as the daemon at " .. gate.socket, 1, true), err)
    out = lists("--policies", process.directory())
    assert.is_nil(out:find("create_task", 1, true), out)
  end)

  it("tools lists the tools in each format", function()
    local code, out = toolgate("tools", "--socket", gate.socket)
    assert.equal(0, code)
    assert.truthy(out:find("echo", 1, true) and out:find("create_task", 1, true), out)
    for _, format in ipairs { "mcp", "openai", "anthropic", "gemini" } do
      code, out = toolgate("tools", "--socket", gate.socket, "--format", format)
      assert.equal(0, code)
      assert.is_table(client_of.json.decode(out))
    end
  end)

  it("test runs the examples of a folder, one line each", function()
    local code, out = toolgate("test", "policies")
    assert.equal(0, code, out)
    assert.truthy(out:find("get_events", 1, true), out)
    local directory = process.directory()
    process.write(directory .. "/echo.lua", (fixtures.echo:gsub("effects",
      [[examples = { { "says it", args = { text = "x" }, gives = "pass" },
                     { "is wrong", args = { text = "x" }, gives = "refuse" } }, effects]])))
    code, out = toolgate("test", directory)
    assert.equal(1, code)
    golden.check("cli", "test: a folder with a failing example", out)
  end)

  it("status prints text, and with --json JSON", function()
    local code, out = toolgate("status", "--socket", gate.socket)
    assert.equal(0, code)
    assert.truthy(out:find("generation", 1, true), out)
    code, out = toolgate("status", "--socket", gate.socket, "--json")
    assert.equal(0, code)
    assert.is_table(client_of.json.decode(out))
  end)

  it("prints no colours into a file", function()
    for _, command in ipairs { { "status" }, { "tools" }, { "check", "echo", '{"text":"x"}', "--trace" } } do
      local argv = { unpack(command) }
      argv[#argv + 1] = "--socket"
      argv[#argv + 1] = gate.socket
      local _, out = toolgate(unpack(argv))
      assert.is_nil(out:find("\27", 1, true), out)
    end
  end)

  it("names the socket if no daemon serves there", function()
    for _, command in ipairs { "status", "tools" } do
      local code, _, err = toolgate(command, "--socket", "/tmp/nobody-serves-here.sock")
      assert.not_equal(0, code)
      assert.truthy(err:find("/tmp/nobody-serves-here.sock", 1, true), err)
    end
  end)

  it("gives no file and no socket the number of a standard descriptor that is closed", function()
    local closed = daemon.start { before = { "sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh" },
                                  policies = { ["echo.lua"] = fixtures.echo } }
    for fd = 0, 2 do
      assert.equal(stat.stat("/dev/null").st_rdev, stat.stat(("/proc/%d/fd/%d"):format(closed.child.pid, fd)).st_rdev)
    end
  end)
end)
