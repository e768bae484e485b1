-- docs/operating.md: its policy and configuration, shadow, replay against the policy, enforce and roll back, as printed.

local page = process.read "docs/operating.md"

local function block(first)
  for lua in page:gmatch "\n```lua\n(.-)\n```" do
    if lua:find(first, 1, true) == 1 then return lua end
  end
  error("no block that begins with " .. first)
end

describe("docs/operating.md", function()
  -- A server with the tool of the page, in place of npm's.
  local SERVER = [[
import json, sys
tool = {"name": "read_text_file", "inputSchema": {"type": "object", "required": ["path"], "properties": {
    "path": {"type": "string"}, "head": {"type": "integer"}, "tail": {"type": "integer"}}}}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    r = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "files", "version": "1"}},
         "tools/list": {"tools": [tool]}, "tools/call": {"content": [{"type": "text", "text": "a line"}]}}.get(m["method"])
    reply = {"result": r} if r else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps(dict(reply, jsonrpc="2.0", id=m["id"])), flush=True)
]]

  it("leads from shadow to an enforced policy and back", function()
    local directory = process.directory()
    assert.equal(0, (process.run { "mkdir", directory .. "/stricter", directory .. "/policies", directory .. "/state" }))
    local server = process.write(directory .. "/server.py", SERVER)
    process.write(directory .. "/stricter/read_text_file.lua", block "-- read_text_file")
    local command = ('command = "python3", args = { %q }'):format(server)
    local config = block("return {"):gsub('command = "[^"]*", args = {[^}]*}', command)
      :gsub("unix:/run/toolgate", "unix:" .. directory)
      :gsub("return {", ("return {\n  state = %q,"):format(directory .. "/state"), 1)
    local gate = daemon.start { config = config, policies = directory .. "/policies" }
    local path = gate.directory .. "/toolgate.lua"
    local function run(...)
      return process.run { daemon.binary, ... }
    end
    local function call()
      return (run("call", "read_text_file", '{"path": "/srv/shared/a.txt", "head": 300}', "--socket", gate.socket))
    end
    local function change(from, to)
      process.write(path, (process.read(path):gsub(('mode = "%s"'):format(from), ('mode = "%s"'):format(to))))
      local code, out, err = run("reload", "--socket", gate.socket)
      assert.equal(0, code, out .. err)
    end
    process.eventually("the server is up", function() return gate:status().upstreams[1].state == "up" end)
    assert.equal(0, call())
    local log = directory .. "/state/decisions.ndjson"
    process.eventually("the call is recorded", function() return process.read(log):find("read_text_file", 1, true) end)

    -- Every command of the page that looks: it ends as the page says.
    local socket = { "--socket", gate.socket }
    for _, words in ipairs { { "doctor", unpack(socket) }, { "status", unpack(socket) }, { "tools", unpack(socket) },
                             { "sessions", unpack(socket) }, { "top", "--once", unpack(socket) },
                             { "replay", log, "-c", path },
                             { "decisions", log, "--refused", "--would", "--since", "7d" },
                             { "decisions", "--follow", "--limit", "1", unpack(socket) } } do
      local code, out, err = run(unpack(words))
      assert.equal(0, code, table.concat(words, " ") .. "\n" .. out .. err)
    end
    local looked, said = run("shadow", unpack(socket))
    assert.equal(1, looked) -- one call says nothing
    assert.matches("^read_text_file: 1 calls, 0 would not have run", said)
    local _, html = process.run { "curl", "-s", "--unix-socket", directory .. "/metrics.sock", "http://localhost/" }
    assert.matches("<title>toolgate", html)

    local code, out, err = run("test", directory .. "/stricter", "-c", path)
    assert.equal(0, code, out .. err)
    code, out = run("replay", log, "-c", path, "--against", directory .. "/stricter", "--fail-on-new")
    assert.equal(1, code)
    assert.matches("maximum", out)

    assert.equal(0, (process.run { "cp", directory .. "/stricter/read_text_file.lua", directory .. "/policies" }))
    change("shadow", "enforce")
    assert.equal(1, call())
    change("enforce", "shadow")
    assert.equal(0, call())
  end)
end)
