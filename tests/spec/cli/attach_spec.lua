-- toolgate attach: a client's file goes in, one that names toolgate comes out, and goes back. Each spec has a HOME of its own.
local cjson = require "cjson"

local FAKE = daemon.root .. "/tests/support/fake_upstream.py"
local LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'

describe("toolgate attach", function()
  local home, environment

  before_each(function()
    home = process.directory()
    home = io.popen("realpath " .. home):read "*l"
    environment = { HOME = home, XDG_RUNTIME_DIR = home .. "/run", XDG_CONFIG_HOME = "", XDG_STATE_HOME = "",
                    TOOLGATE_SOCKET = "" }
    os.execute("mkdir -m 700 " .. home .. "/run")
  end)
  after_each(function() process.run({ daemon.binary, "stop" }, { environment = environment }) end)

  local function run(...)
    return process.run({ daemon.binary, ... }, { environment = environment })
  end
  local function put(name, text)
    local path = home .. "/" .. name
    os.execute("mkdir -p '" .. path:match "(.*)/" .. "'")
    process.write(path, text)
    return path
  end
  local function attach(...)
    local code, out, err = run("attach", ...)
    assert.equal(0, code, out .. err)
    return out
  end
  local function refuses(words, ...)
    local code, out, err = run("attach", ...)
    assert.equal(1, code, out)
    assert.truthy(err:find(words, 1, true), err)
  end
  local function moved(name) return process.read(home .. "/.config/toolgate/servers.d/" .. name .. ".json") end

  -- The text without comments and last commas.
  local function json(text)
    return cjson.decode((text:gsub("^//[^\n]*", ""):gsub("(%s)//[^\n]*", "%1"):gsub("/%*.-%*/", ""):gsub(",(%s*[}%]])", "%1")))
  end

  local function servers_of(name) return json(moved(name)).mcpServers end

  local CURSOR = [[
{
  // mine
  "before": [1, 2,],
  "mcpServers": {
    "files": { "command": "python3", "args": ["]] .. FAKE .. [["] },
    /* the second */
    "web": { "url": "https://example.org/mcp", "headers": { "A": "${env:KEY}" } },
  },
  "after": "\u00e9", // end
}
]]

  it("moves a client's servers behind toolgate, and undo restores the bytes", function()
    local path = put(".cursor/mcp.json", CURSOR)
    attach(path)
    local now = process.read(path)
    local entries = json(now).mcpServers
    assert.same({ "connect", "--servers", "cursor" }, entries.toolgate.args)
    assert.is_nil(entries.files)
    assert.is_nil(entries.web)
    assert.truthy(now:find('{\n  // mine\n  "before": [1, 2,],\n', 1, true), now)
    assert.truthy(now:find('"after": "\\u00e9", // end\n}\n', 1, true), now)
    assert.equal(home, servers_of("cursor").files.cwd)
    assert.equal("${KEY}", servers_of("cursor").web.headers.A)
    attach("--undo", path)
    assert.equal(CURSOR, process.read(path))
    assert.is_nil(io.open(home .. "/.config/toolgate/servers.d/cursor.json"))
    assert.is_nil(io.open(home .. "/.config/toolgate/attached/cursor/original"))
  end)

  it("leaves a client whose command line answers with its servers' tools, and with no other file's", function()
    local path = put(".cursor/mcp.json", CURSOR)
    put(".codeium/windsurf/mcp_config.json", '{"mcpServers":{"other":{"command":"python3","args":["' .. FAKE .. '"]}}}')
    attach()
    local entry = json(process.read(path)).mcpServers.toolgate
    local out, err = process.runs({ entry.command, unpack(entry.args) }, { input = LIST, environment = environment })
    assert.matches("started the user's own daemon", err)
    local names = {}
    for _, tool in ipairs(cjson.decode(out).result.tools) do names[#names + 1] = tool.name end
    assert.truthy(#names > 0)
    for _, name in ipairs(names) do assert.is_nil(name:find "other", out) end
    local _, all = process.run({ daemon.binary, "connect" }, { input = LIST, environment = environment })
    assert.equal(2 * #names, #cjson.decode(all).result.tools, all)
    local _, none, words = process.run({ daemon.binary, "connect", "--servers", "none" },
                                       { input = LIST, environment = environment })
    assert.same(0, #cjson.decode(none).result.tools)
    assert.matches("none.json does not exist", words)
  end)

  it("takes what a client has narrowed, and serves no more of it", function()
    local spelled = { "enabled_tools", "includeTools" }
    for i, client in ipairs { ".cursor/mcp.json", ".codeium/windsurf/mcp_config.json" } do
      put(client, ('{"mcpServers":{"a":{"command":"python3","args":["%s"],"%s":["echo"]}}}'):format(FAKE, spelled[i]))
      attach()
    end
    local _, out = process.run({ daemon.binary, "connect" }, { input = LIST, environment = environment })
    local tools = cjson.decode(out).result.tools
    assert.equal(2, #tools, out)
    for _, tool in ipairs(tools) do assert.matches("echo", tool.name) end
  end)

  it("lets a client of one file's servers call those alone", function()
    put(".cursor/mcp.json", CURSOR)
    attach()
    local call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}\n'
    local _, out = process.run({ daemon.binary, "connect", "--servers", "cursor" }, { input = call, environment = environment })
    assert.is_not_true(cjson.decode(out).result.isError, out)
    _, out = process.run({ daemon.binary, "connect", "--servers", "others" }, { input = call, environment = environment })
    assert.falsy(out:find('"text":"x"', 1, true), out)
    assert.truthy(out:find("error", 1, true) or cjson.decode(out).result.isError, out)
  end)

  it("is done once: again it changes nothing, and takes in what the client has added", function()
    local path = put(".cursor/mcp.json", CURSOR)
    attach(path)
    local first = process.read(path)
    assert.matches("is attached already", attach(path))
    assert.equal(first, process.read(path))
    process.write(path, (first:gsub('"mcpServers": {', '%0\n    "new": { "command": "x" },')))
    attach(path)
    assert.is_nil(json(process.read(path)).mcpServers.new)
    assert.equal("x", servers_of("cursor").new.command)
    attach("--undo", path)
    local back = json(process.read(path)).mcpServers
    assert.truthy(back.new and back.files and back.web)
    assert.is_nil(back.toolgate)
  end)

  it("changes back only its own where the client has changed the file since", function()
    local path = put(".cursor/mcp.json", CURSOR)
    attach(path)
    process.write(path, (process.read(path):gsub('"before": %[1, 2,%]', '"before": "changed"')))
    assert.matches("only what attach had put there was changed back", attach("--undo", path))
    local back = json(process.read(path))
    assert.equal("changed", back.before)
    assert.equal("python3", back.mcpServers.files.command)
    assert.is_nil(back.mcpServers.toolgate)
    assert.truthy(process.read(path):find("// mine", 1, true))
  end)

  it("shows with --dry-run what it would change, and changes nothing", function()
    local path = put(".cursor/mcp.json", CURSOR)
    local out = attach("--dry-run", path)
    assert.truthy(out:find('+    "toolgate": {', 1, true), out)
    assert.truthy(out:find('-    "files": {', 1, true), out)
    assert.equal(CURSOR, process.read(path))
    assert.is_nil(io.open(home .. "/.config/toolgate/servers.d"))
  end)

  -- The file, the text, where its entry is, and its servers as the daemon reads them.
  for _, client in ipairs {
    { "Claude Code's project", "proj/.mcp.json", '{"mcpServers":{"a":{"type":"stdio","command":"./a","args":["-x"]}}}',
      { "mcpServers" }, "claude-code-proj" },
    { "Claude Desktop", ".config/Claude/claude_desktop_config.json", '{"mcpServers":{"a":{"command":"a","args":["-x"]}}}',
      { "mcpServers" }, "claude-desktop" },
    { "VS Code", "proj/.vscode/mcp.json", '{"servers":{"a":{"type":"stdio","command":"${workspaceFolder}/a","args":["-x"]}}}',
      { "servers" }, "vscode-proj" },
    { "Windsurf", ".codeium/windsurf/mcp_config.json", '{"mcpServers":{"a":{"command":"a","args":["-x"]}}}',
      { "mcpServers" }, "windsurf" },
    { "gemini-cli", ".gemini/settings.json", '{"theme":"x","mcpServers":{"a":{"command":"a","args":["-x"]}}}',
      { "mcpServers" }, "gemini" },
    { "opencode", ".config/opencode/opencode.json",
      '{"mcp":{"a":{"type":"local","command":["a","-x"],"environment":{"K":"v"},"enabled":true}}}', { "mcp" }, "opencode" },
    { "Zed", ".config/zed/settings.json", '{"context_servers":{"a":{"command":{"path":"a","args":["-x"],"env":{}}}}}',
      { "context_servers" }, "zed" },
  } do
    local label, file, text, place, name = unpack(client)
    it("knows the file of " .. label, function()
      local path = put(file, text)
      attach(path)
      local entry = json(process.read(path))
      for _, key in ipairs(place) do entry = entry[key] end
      local words = type(entry.toolgate.command) == "table" and entry.toolgate.command
                    or { entry.toolgate.command, unpack(entry.toolgate.args) }
      assert.equal(daemon.binary, words[1])
      assert.equal(name, words[4])
      local is_one = label:find "^Claude Code" or label == "gemini-cli" or label == "opencode" -- a conversation
      assert.equal(is_one and "auto" or nil, words[6])
      assert.is_nil(entry.a)
      local server = servers_of(name).a
      assert.matches("a$", server.command)
      assert.same({ "-x" }, server.args)
      local folder = file:find "^proj" and home .. "/proj" or home
      assert.equal(folder, server.cwd)
      if label ~= "VS Code" and file:find "^proj" then assert.equal(folder .. "/a", server.command) end
      attach("--undo", path)
      assert.equal(text, process.read(path))
    end)
  end

  it("knows the servers of each project in ~/.claude.json, and keeps them apart", function()
    local text = cjson.encode { numStartups = 3, mcpServers = { all = { command = "a" } },
                                projects = { ["/p/one"] = { mcpServers = { x = { command = "b" } } },
                                             ["/p/two"] = { mcpServers = {}, history = { "h" } } } }
    local path = put(".claude.json", text)
    attach(path)
    local now = json(process.read(path))
    assert.equal("claude-code", now.mcpServers.toolgate.args[3])
    assert.equal("claude-code-one", now.projects["/p/one"].mcpServers.toolgate.args[3])
    assert.same({}, now.projects["/p/two"].mcpServers)
    assert.equal("/p/one", servers_of("claude-code-one").x.cwd)
    assert.is_nil(servers_of("claude-code").x)
    attach("--undo")
    assert.equal(text, process.read(path))
  end)

  it("knows Codex' config.toml, with comments and tables of tables", function()
    local text = table.concat({ 'model = "m" # mine', "", "# first", "[mcp_servers.one]", 'command = "a"', "args = [",
                                "  '-x', # why", "]", "startup_timeout_sec = 0.5", "tool_timeout_sec = 1800.5", "",
                                "[mcp_servers.one.env]", 'K = "v\\tw"', "",
                                "[profiles.p]", "y = 1", "", '[mcp_servers."tw.o"]', 'url = "https://e/mcp"',
                                'bearer_token_env_var = "T"', "" }, "\n")
    local path = put(".codex/config.toml", text)
    attach(path)
    local now = process.read(path)
    assert.truthy(now:find('model = "m" # mine\n\n# first\n[mcp_servers.toolgate]\ncommand = ', 1, true), now)
    assert.truthy(now:find("[profiles.p]\ny = 1\n", 1, true), now)
    assert.falsy(now:find("tw.o", 1, true), now)
    local servers = servers_of "codex"
    assert.same({ command = "a", args = { "-x" }, env = { K = "v\tw" }, startup_timeout_sec = 0.5, tool_timeout_sec = 1800.5,
                  cwd = home }, servers.one)
    assert.same({ url = "https://e/mcp", headers = { Authorization = "Bearer ${T}" } }, servers.tw_o)
    process.write(path, "new = 1\n" .. now)
    attach("--undo", path)
    local back = process.read(path)
    assert.falsy(back:find("toolgate", 1, true), back)
    assert.truthy(back:find("new = 1\n", 1, true) and back:find('[mcp_servers."tw.o"]\nurl = ', 1, true), back)
    attach(path)
    assert.truthy(servers_of("codex").one and servers_of("codex").tw_o)
  end)

  it("leaves where it is what only the client can start, and says so", function()
    local text = '{"servers":{"ask":{"command":"a","env":{"K":"${input:key}"}},"sse":{"type":"sse","url":"http://x"},'
                 .. '"off":{"command":"b","disabled":true},"part":{"command":"c","envFile":".env"},'
                 .. '"mine":{"command":"/usr/bin/toolgate","args":["connect"]},"good":{"command":"e"}}}'
    local path = put("proj/.vscode/mcp.json", text)
    local out = attach(path)
    for _, words in ipairs { "ask stays", "input:key", "sse stays", "part stays", "envFile" } do
      assert.truthy(out:find(words, 1, true), out)
    end
    local now = json(process.read(path)).servers
    assert.truthy(now.ask and now.sse and now.off and now.part and now.mine and now.toolgate)
    assert.is_nil(now.good)
  end)

  it("says nothing is to be done for a file that names toolgate already, or has no servers", function()
    local mine = '{"mcpServers":{"gate":{"command":"toolgate","args":["connect","/tmp/x.sock"]}}}'
    local path = put(".cursor/mcp.json", mine)
    assert.matches("no servers to attach", attach(path))
    assert.equal(mine, process.read(path))
    assert.matches("no servers to attach", attach(put("a/.mcp.json", "{}")))
    assert.matches("no servers to attach", attach(put("b/.mcp.json", '{"mcpServers":{}}')))
  end)

  it("refuses what it cannot read, and goes on with the next file", function()
    local good = put(".cursor/mcp.json", CURSOR)
    for name, text in pairs { ["no JSON"] = "hello", ["cut"] = '{"mcpServers": {"a": {', ["two"] = "{} {}",
                              ["a list"] = '{"mcpServers": {"a": 1 "b": 2}}', ["empty"] = "" } do
      local bad = put(name .. "/.mcp.json", text)
      refuses("line 1", bad, good)
      assert.equal(text, process.read(bad))
      assert.truthy(json(process.read(good)).mcpServers.toolgate)
    end
    refuses("line 3", put("t/config.toml", "a = 1\nb = [1,\n"))
    refuses("no such file", home .. "/none.json")
    refuses("not a file", home .. "/run")
  end)

  it("follows a link to its file, and keeps the link", function()
    local real = put("dotfiles/mcp.json", CURSOR)
    os.execute(("mkdir %s/.cursor && ln -s %s %s/.cursor/mcp.json"):format(home, real, home))
    attach(home .. "/.cursor/mcp.json")
    assert.truthy(json(process.read(real)).mcpServers.toolgate)
    assert.equal(0, os.execute("test -L " .. home .. "/.cursor/mcp.json"))
    attach("--undo", home .. "/.cursor/mcp.json")
    assert.equal(CURSOR, process.read(real))
  end)

  it("keeps the mode of the file, and gives its own files to nobody else", function()
    local path = put(".cursor/mcp.json", CURSOR)
    os.execute("chmod 640 " .. path)
    attach(path)
    local function mode(of) return io.popen("stat -c %a '" .. of .. "'"):read "*l" end
    assert.equal("640", mode(path))
    assert.equal("600", mode(home .. "/.config/toolgate/servers.d/cursor.json"))
    assert.equal("600", mode(home .. "/.config/toolgate/attached/cursor/original"))
    assert.equal("700", mode(home .. "/.config/toolgate/servers.d"))
  end)

  it("leaves a file of another user", function()
    local path = put(".cursor/mcp.json", CURSOR)
    if os.execute("chown 12345 " .. path .. " 2>/dev/null") ~= 0 then return pending "needs root" end
    refuses("belongs to", path)
    assert.equal(CURSOR, process.read(path))
  end)

  it("changes nothing on a full disk", function()
    local path = put(".cursor/mcp.json", CURSOR)
    local line = ("{ (ulimit -f 0; trap '' XFSZ; exec %s attach %s) 2>&1; echo rc $?; } | cat"):format(daemon.binary, path)
    local _, out = process.run({ "sh", "-c", line }, { environment = environment })
    assert.matches("rc 1", out)
    assert.matches("too large", out)
    assert.equal(CURSOR, process.read(path))
    assert.is_nil(io.open(home .. "/.config/toolgate/attached/cursor/about.json"))
    assert.equal("", io.popen("ls " .. home .. "/.config/toolgate/servers.d"):read "*a")
  end)

  -- At a terminal, with `answers` to the questions; `meanwhile` (a text) is written to the file before the first.
  local TERMINAL = [=[
import os, pty, sys
program, path, meanwhile, answers = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]
pid, fd = pty.fork()
if pid == 0:
    os.execv(program, [program, "attach", path])
seen = b""
for answer in answers:
    while seen.count(b"[y/N]") == 0:
        seen += os.read(fd, 4096)
    seen = b""
    if meanwhile:
        open(path, "w").write(meanwhile)
        meanwhile = ""
    os.write(fd, answer.encode() + b"\n")
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
]=]

  it("asks at a terminal, and looks again at a file that its client has written meanwhile", function()
    local path = put(".cursor/mcp.json", CURSOR)
    local function at_terminal(meanwhile, answers)
      process.runs({ "python3", "-c", TERMINAL, daemon.binary, path, meanwhile, answers },
                   { environment = environment })
    end
    at_terminal("", "n")
    assert.equal(CURSOR, process.read(path))
    local newer = CURSOR:gsub("%[1, 2,%]", '"written by the client"')
    at_terminal(newer, "yy")
    local now = json(process.read(path))
    assert.equal("written by the client", now.before)
    assert.truthy(now.mcpServers.toolgate)
    attach("--undo", path)
    assert.equal(newer, process.read(path))
  end)

  it("lets two at once change a file one after the other", function()
    local path = put(".cursor/mcp.json", CURSOR)
    local children = {}
    for i = 1, 4 do
      children[i] = process.start({ daemon.binary, "attach", path }, { environment = environment, stdout = "/dev/null",
                                                                        stderr = home .. "/err" .. i })
    end
    for i, child in ipairs(children) do
      local _, code = child:wait()
      assert.equal(0, code, process.read(home .. "/err" .. i))
    end
    attach("--undo", path)
    assert.equal(CURSOR, process.read(path))
  end)

  it("tells of a file that is gone when it is undone, and keeps what it had", function()
    local path = put(".cursor/mcp.json", CURSOR)
    attach(path)
    os.remove(path)
    local kept = attach("--undo", path):match "what it had been is (%S+)"
    assert.equal(CURSOR, process.read(kept))
    assert.matches("is not attached", attach("--undo", path))
  end)

  it("puts hooks into the settings of Claude Code, gemini-cli and Codex, and takes them out", function()
    local text = '{\n  "model": "x", // mine\n  "hooks": {\n    "PreToolUse": [{ "matcher": "Bash", "hooks": '
                 .. '[{ "type": "command", "command": "own" }] }]\n  }\n}\n'
    local claude = put(".claude/settings.json", text)
    local gemini = put(".gemini/settings.json", '{"mcpServers":{"a":{"command":"a"}}}')
    os.execute("mkdir " .. home .. "/.codex")
    attach "--hooks"
    local now = json(process.read(claude)).hooks
    assert.equal(2, #now.PreToolUse)
    assert.equal("own", now.PreToolUse[1].hooks[1].command)
    assert.equal(daemon.binary .. " hook --client claude", now.PreToolUse[2].hooks[1].command)
    assert.equal("block", now.PreToolUse[2].hooks[1].onFailure)
    assert.equal(10000, json(process.read(gemini)).hooks.BeforeTool[1].hooks[1].timeout)
    assert.truthy(json(process.read(gemini)).mcpServers.a)
    assert.truthy(json(process.read(home .. "/.codex/hooks.json")).hooks.PreToolUse)
    attach(gemini)
    assert.truthy(json(process.read(gemini)).mcpServers.toolgate)
    assert.truthy(json(process.read(gemini)).hooks.BeforeTool)
    process.write(claude, (process.read(claude):gsub('"model": "x"', '"model": "y"')))
    attach "--undo"
    assert.equal((text:gsub('"x"', '"y"')), process.read(claude))
    assert.equal('{"mcpServers":{"a":{"command":"a"}}}', process.read(gemini))
    assert.is_nil(io.open(home .. "/.codex/hooks.json"))
  end)

  it("has no servers to move of a file that it made for hooks", function()
    os.execute("mkdir " .. home .. "/.gemini")
    attach "--hooks"
    assert.matches("is attached already", attach())
    attach "--undo"
    assert.is_nil(io.open(home .. "/.gemini/settings.json"))
  end)

  it("leaves entries that are none, and takes its own out beside them", function()
    local odd = '"a": null, "b": true, "c": 7, "d": {"command":"x","env_vars":"E","http_headers":"h","bearer_token_env_var":[]}'
    local path = put(".cursor/mcp.json", '{"mcpServers":{' .. odd .. "}}")
    attach(path)
    assert.equal("x", servers_of("cursor").d.command)
    process.write(path, (process.read(path):gsub("^{", '{"hooks":{"x":[null,{"hooks":[true,{"command":"own"}]}]},')))
    assert.matches("only what attach had put there was changed back", attach("--undo", path))
    local back = json(process.read(path)).mcpServers
    assert.equal("x", back.d.command)
    assert.equal(cjson.null, back.a)
    assert.is_nil(back.toolgate)
  end)

  it("gives servers of one name in two files names of their own", function()
    put(".cursor/mcp.json", '{"mcpServers":{"git.hub":{"command":"a"}}}')
    put(".codeium/windsurf/mcp_config.json", '{"mcpServers":{"git.hub":{"command":"b"}}}')
    attach()
    assert.equal("a", servers_of("cursor").git_hub.command)
    assert.equal("b", servers_of("windsurf").git_hub_2.command)
  end)
end)
