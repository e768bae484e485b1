-- Upstreams from the configuration and from mcpServers files of other clients: start, change, removal, secrets.
local directory
before_each(function() directory = process.directory() end)

local TOOLS = '[{"name":"%s","inputSchema":{"type":"object"}}]'

-- An entry of mcpServers whose server offers one tool.
local function entry(tool, more)
  process.write(directory .. "/" .. tool .. ".json", TOOLS:format(tool))
  local made = { command = "python3", args = { daemon.root .. "/tests/support/offering.py" },
                  env = { OFFER = directory .. "/" .. tool .. ".json" } }
  for key, value in pairs(more or {}) do made[key] = value end
  return made
end

local function write_servers(servers)
  return process.write(directory .. "/mcp.json", json.encode { mcpServers = servers })
end

local function names(client)
  return table.concat((client:tools()), " ")
end

local function is_gone(pid)
  return process.read("/proc/" .. pid .. "/stat") == ""
end

local function pid_of(gate, name)
  return gate:logs("upstream_started upstream=" .. name):match "pid=(%d+)"
end

describe("an mcpServers file", function()
  it("is served as other clients write it", function()
    write_servers { files = entry("read", { autoApprove = { "read" }, timeout = 60 }), off = entry("no", { disabled = true }) }
    process.write(directory .. "/mcp.json", "// from my editor\n" .. process.read(directory .. "/mcp.json"))
    local gate = daemon.start { arguments = { "--mcp-config", directory .. "/mcp.json" } }
    assert.equal("read", names(gate:connect()))
    assert.same({}, gate:status().generation.warnings)
  end)

  it("is reloaded when it changes, and only changed upstreams are started", function()
    write_servers { a = entry "one" }
    local gate, client = daemon.open { config = ("return { mcp_config = '%s/mcp.json' }"):format(directory) }
    assert.equal("one", names(client))
    local first = pid_of(gate, "a")
    write_servers { a = entry "one", b = entry "two" }
    client:hears_notice("notifications/tools/list_changed")
    assert.equal("one two", names(client))
    write_servers { b = entry "two" }
    client:hears_notice("notifications/tools/list_changed", 2)
    assert.equal("two", names(client))
    process.eventually("the first one's process is gone", function() return is_gone(first) end)
    assert.equal(2, select(2, gate:log():gsub("upstream_started", "")))
  end)

  it("that is broken leaves the running upstreams as they are", function()
    write_servers { a = entry "one" }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    process.write(directory .. "/mcp.json", '{"mcpServers":{')
    gate:logs "reload_failed"
    assert.equal("one {}", text(gate:connect():calls "one"))
  end)

  it("that is no JSON is fatal at the start", function()
    process.write(directory .. "/mcp.json", '{"mcpServers":{')
    assert.truthy(daemon.fails { arguments = { "-m", directory .. "/mcp.json" } }:find("mcp.json:1: ", 1, true))
  end)

  -- What the operator sees: the log, `toolgate status` and `toolgate doctor`, and the warnings themselves.
  local function warnings(gate, ...)
    local _, status = process.run { daemon.binary, "status", "--socket", gate.socket }
    local _, doctor = process.run { daemon.binary, "doctor", "--socket", gate.socket }
    for _, entry_name in ipairs { ... } do
      for place, said in pairs { log = gate:log(), status = status, doctor = doctor } do
        assert.truthy(said:find(entry_name, 1, true), entry_name .. " is not in the " .. place .. ": " .. said)
      end
    end
    local found = {}
    for i, one in ipairs(gate:status().generation.warnings) do found[i] = one:gsub(directory, "DIR") end
    return table.concat(found, "\n")
  end

  it("serves the rest if it repeats a name from the configuration", function()
    write_servers { files = entry "read", others = entry "look" }
    local config = ("return { upstreams = { files = { command = 'sleep', args = { '1000' }, start_timeout = '100ms' } } }")
    local gate = daemon.start { config = config, arguments = { "--mcp-config", directory .. "/mcp.json" } }
    assert.equal("look", names(gate:connect()))
    assert.truthy(warnings(gate, "mcpServers.files"):find("toolgate.lua", 1, true))
  end)

  it("is served without the entries that cannot be used", function()
    process.write(directory .. "/mcp.json", ([[{"mcpServers":{"good":%s,"nothing":null,"empty":{},"number":7,"list":[],
      "typo":{"comand":"x"},"old":{"type":"sse","url":"http://127.0.0.1:9/sse"},"odd":{"type":"x","url":"http://h"},
      "words":{"command":"npx -y server"},"args":{"command":"sh","args":["-c",{}]},"env":{"command":"sh","env":[1]},
      "both":{"command":"sh","url":"http://127.0.0.1:9/mcp"},"off":{"disabled":true}}}]]):format(json.encode(entry "one")))
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    assert.equal("one", names(gate:connect()))
    golden.check("load", "mcpServers: entries that cannot be used",
                 warnings(gate, "nothing", "empty", "number", "list", "typo", "old", "odd", "words", "args", "env", "both"))
    assert.is_nil(gate:log():find("mcpServers.off", 1, true))
  end)

  for label, file in pairs { ["no servers"] = "{}", ["a list"] = '{"mcpServers":[]}', ["null"] = '{"mcpServers":null}' } do
    it("may be empty: " .. label, function()
      process.write(directory .. "/mcp.json", file)
      local gate = daemon.start { policies = {}, arguments = { "-m", directory .. "/mcp.json" } }
      assert.truthy(warnings(gate):find("mcpServers", 1, true))
    end)
  end

  it("may say a name twice", function()
    process.write(directory .. "/mcp.json", ('{"mcpServers":{"a":%s,"a":%s}}'):format(json.encode(entry "one"),
                                                                                        json.encode(entry "one")))
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    assert.equal("one", names(gate:connect()))
    warnings(gate, "duplicate key 'a'")
  end)

  it("may have what is for the other kind of server", function()
    write_servers { a = entry("one", { headers = { X = "y" }, url = "" }) }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    assert.equal("one", names(gate:connect()))
    golden.check("load", "mcpServers: a key that is not for the entry's kind", warnings(gate, "headers"))
  end)

  it("gets a name of its own for each entry whose name is not one of an upstream", function()
    local long = "a-name-that-is-a-little-longer-than-anyone-thought"
    write_servers { ["my server"] = entry "a", ["my.server"] = entry "b", my_server = entry "c", ["天気"] = entry "d",
                    ["example/notes"] = entry "e", [long] = entry "f", [""] = entry "g", ["v1.2"] = entry "h" }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    assert.equal("a b c d e f g h", names(gate:connect()))
    local upstreams, seen = {}, {}
    for i, one in ipairs(gate:status().upstreams) do
      assert.truthy(one.name:match "^[%w_-]+$" and #one.name <= 32, one.name)
      assert.is_nil(seen[one.name])
      upstreams[i], seen[one.name] = one.name, true
    end
    table.sort(upstreams)
    golden.check("load", "mcpServers: names that are derived", table.concat(upstreams, "\n"))
    gate:logs "entry=example/notes upstream=example_notes"
    local first = pid_of(gate, "example_notes")
    write_servers { ["example/notes"] = entry "e", ["my.server"] = entry "b" }
    process.eventually("the others are removed", function() return names(gate:connect()) == "b e" end)
    assert.equal(first, pid_of(gate, "example_notes"))
  end)

  it("may have unknown keys, with a warning", function()
    write_servers { files = entry("read", { arg = {} }) }
    local gate = daemon.start { arguments = { "--mcp-config", directory .. "/mcp.json" } }
    golden.check("load", "mcpServers: an unknown key", gate:status().generation.warnings[1])
    assert.equal("read {}", text(gate:connect():calls "read"))
  end)
end)

describe("the operator", function()
  it("gets the closest key for a misspelled one", function()
    process.write(directory .. "/mcp.json", '{"mcpServers":{"a":{"comand":"x","args":["y"]}}}')
    local _, err = process.runs { daemon.binary, "serve", "--check", "-m", directory .. "/mcp.json" }
    golden.check("load", "mcpServers: neither command nor url", err)
  end)

  it("gets the last error line of an upstream that died", function()
    process.write(directory .. "/mcp.json", client_of.json.encode { mcpServers = { a = { command = "sh", args = { "-c", [[
      echo 'npm error code E404' >&2
      echo "npm error 404  '@a/server@*' could not be found" >&2
      echo 'npm error A complete log of this run can be found in: /tmp/x.log' >&2
      exit 1]] } } } })
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    gate:logs [[why="exit code 1" last_words="npm error 404  '@a/server@*' could not be found"]]
  end)

  it("finds the caches of a server that was too slow whole: it gets SIGTERM, and time to end", function()
    process.write(directory .. "/mcp.json", client_of.json.encode { mcpServers = { slow = { startupTimeout = 1000,
      command = "sh", args = { "-c", "trap 'sleep 0.3; echo whole > $0; exit' TERM; while :; do sleep 0.02; done",
                               directory .. "/cache" } } } })
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    gate:logs "it was not ready within 1000 ms"
    process.eventually("it has cleaned up", function() return process.read(directory .. "/cache") == "whole\n" end)
  end)

  it("has the seconds of Codex to start, whole or not", function()
    for seconds, limit_ms in pairs { [0.3] = 300, [2] = 2000 } do
      process.write(directory .. "/mcp.json", client_of.json.encode { mcpServers = { slow = { command = "sleep", args = { "60" },
                                                                                              startup_timeout_sec = seconds } } })
      local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
      gate:logs(("it was not ready within %d ms"):format(limit_ms))
    end
  end)

  it("sees a server that is too slow started again later each time", function()
    local gate = daemon.start { config = [[return { upstreams = { slow = { command = "sleep", args = { "1000" },
                                                                           start_timeout = "1500ms" } } }]] }
    process.eventually("it waits", function() return gate:status().upstreams[1].failed_in_a_row == 1 end)
    local first = gate:status().upstreams[1].next_try_ms
    assert.truthy(first > 200 and first <= 1900, first) -- what is left of 1 to 1.9 s; it is 200 ms after any other failure
  end)

  it("has the timeout of its entry for each call, in seconds or milliseconds", function()
    local entries = {}
    for name, timeout in pairs { seconds = 1, milliseconds = 1000 } do
      entries[name] = { command = "luajit", args = { "tests/support/plain_server.lua" }, cwd = daemon.root, timeout = timeout,
                        env = { NOTES = directory .. "/" .. name } }
    end
    process.write(directory .. "/mcp.json", client_of.json.encode { mcpServers = entries })
    local client = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }:connect()
    for name in pairs(entries) do
      local said = client_of.verdict(client:calls(name .. "__holds", { n = 1 }))
      assert.same({ "transient", "timeout" }, { said.error_class, said.code })
      assert.truthy(said.detail:find("within %d?%d%d%d ms"), said.detail) -- what is left after the queue
    end
  end)

  it("gets the names of upstreams that are not ready in time", function()
    process.write(directory .. "/mcp.json", client_of.json.encode { mcpServers = {
      a = { command = "sh", args = { "-c", "exit 1" } }, slow = { command = "sleep", args = { "1000" } } } })
    local gate = daemon.start { late = true, arguments = { "-m", directory .. "/mcp.json" } }
    gate:logs "upstreams_not_ready upstreams=slow "
  end)

  it("gets a log line for a removed upstream", function()
    write_servers { a = entry "one", b = entry "two" }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    write_servers { a = entry "one" }
    gate:logs "upstream_removed upstream=b calls_in_flight=0"
  end)

  it("gets in the status each error of a reload, and the time of the next retry", function()
    process.write(directory .. "/mcp.json", client_of.json.encode { mcpServers = { a = { command = "false" } } })
    local gate = daemon.start { policies = {}, arguments = { "-m", directory .. "/mcp.json" } }
    process.eventually("it is down", function() return gate:status().upstreams[1].state == "down" end)
    gate:write_policy("one.lua", 'return tool "one" { x = 1 }')
    gate:write_policy("two.lua", 'return tool "two" { y = 1 }')
    process.eventually("both are refused", function() return ((gate:status().reload or {}).errors or ""):find "two.lua.*'y'" end)
    local _, out = process.run { daemon.binary, "status", "--socket", gate.socket }
    assert.matches("one%.lua:1: .*\n.*two%.lua:1: ", out)
    golden.check("cli", "status: a reload that failed", out:match "[^\n]*\n[^\n]*one%.lua.-two%.lua[^\n]*")
    golden.check("cli", "status: an upstream that is down", out:match "[^\n]*exit code 1[^\n]*", { ["in %d+ s"] = "in <n> s" })
  end)
end)

describe("secrets of upstreams", function()
  it("reach only the process they are for", function()
    process.write(directory .. "/token", "from-a-file\n")
    write_servers { fake = {
      command = "python3", args = { daemon.root .. "/tests/support/fake_upstream.py" },
      env = { TOKEN = "${MY_TOKEN}", FILED = "${file:" .. directory .. "/token}", OTHER = "${UNSET_ONE:-else}" } } }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" }, environment = { MY_TOKEN = "hunter2" } }
    local seen = json.decode(text(gate:connect():calls "about")).env
    assert.equal("hunter2", seen.TOKEN)
    assert.equal("from-a-file", seen.FILED)
    assert.equal("else", seen.OTHER)
    assert.is_nil(seen.MY_TOKEN)
    local _, out = process.run { daemon.binary, "status", "--json", "--socket", gate.socket }
    for _, shown in ipairs { gate:log(), out } do
      assert.falsy(shown:find("hunter2", 1, true), shown)
      assert.falsy(shown:find("from-a-file", 1, true), shown)
    end
  end)

  it("that are missing keep only that upstream from starting, and the log names the variable", function()
    write_servers { a = entry("one", { args = { "${NO_SUCH_VARIABLE}" } }), b = entry "two" }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    assert.equal("two", names(gate:connect()))
    gate:logs "NO_SUCH_VARIABLE"
  end)

  it("that are missing are named in the log and the status, and not to the model", function()
    local policies = {}
    for _, name in ipairs { "variable", "file", "address" } do
      policies[name .. ".lua"] = ([==[
-- %s: is run by the server of this name. For specs.
return tool "%s" { description = "Read.", effects = "read", upstream = "%s", schema = params {} }
]==]):format(name, name, name)
    end
    local gate, client = daemon.open { policies = policies, config = [[return { upstreams = {
      variable = { command = "cat", env = { TOKEN = "${NOT_SET_ONE}" }, timeout = "300ms" },
      file     = { command = "cat", args = { "${file:/not/there/two}" }, timeout = "300ms" },
      address  = { url = "http://127.0.0.1:9/mcp", headers = { Key = "${NOT_SET_THREE}" }, timeout = "300ms" },
    } }]] }
    local function heard()
      local said = ""
      for _, name in ipairs { "variable", "file", "address" } do
        local result = client:calls(name)
        assert.equal("unavailable", client_of.verdict(result).error_class)
        said = said .. json.encode(result)
      end
      return said
    end
    local early = heard() -- before they are down for good
    for _, name in ipairs { "variable", "file", "address" } do gate:logs("upstream_down upstream=" .. name) end
    local late = heard()
    local _, shown = process.run { daemon.binary, "status", "--socket", gate.socket }
    for _, missing in ipairs { "NOT_SET_ONE", "/not/there/two", "NOT_SET_THREE" } do
      assert.is_nil((early .. late):find(missing, 1, true), early .. late)
      assert.truthy(gate:log():find(missing, 1, true))
      assert.truthy(shown:find(missing, 1, true), shown)
    end
  end)
end)

describe("a daemon with upstreams", function()
  it("stops them when it stops", function()
    write_servers { a = entry "one", b = entry "two" }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    local a, b = pid_of(gate, "a"), pid_of(gate, "b")
    gate:stop()
    assert.truthy(is_gone(a))
    assert.truthy(is_gone(b))
  end)

  it("can be stopped while it waits for them", function()
    local waits = entry "one"
    waits.env.GATE = directory .. "/never"
    write_servers { a = waits }
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" }, fails = true }
    local a = pid_of(gate, "a")
    gate:stop()
    assert.truthy(is_gone(a))
    assert.falsy(gate.child:status() == "killed")
  end)

  it("retries those that are down on reload", function()
    write_servers { a = entry "one" }
    os.remove(directory .. "/one.json")
    local gate = daemon.start { arguments = { "-m", directory .. "/mcp.json" } }
    process.eventually("it is down", function() return gate:status().upstreams[1].state == "down" end)
    local client = gate:connect()
    assert.equal("", names(client))
    process.write(directory .. "/one.json", TOOLS:format "one")
    gate:reload()
    client:hears_notice "notifications/tools/list_changed"
    assert.equal("one", names(client))
  end)
end)
