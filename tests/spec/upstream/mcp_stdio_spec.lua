-- An MCP server that works, over stdio (tests/support/fake_upstream.py): tools, cancellation, restart, both eras.
local signal = require "posix.signal"

describe("an MCP server over stdio", function()
  local gate, client

  local function serves(fake, more)
    gate, client = daemon.open { config = ([[
return { upstreams = { fake = { command = "python3", args = { "-SE", "%s/tests/support/fake_upstream.py", "an argument" },
                                env = { FAKE = "%s", GIVEN = "${TOOLGATE_SPEC_SECRET}" }, %s } } }
]]):format(daemon.root, fake or "", more or ""), environment = { TOOLGATE_SPEC_SECRET = "hunter2-and-more", NOT_GIVEN = "x" } }
  end

  local function listed() return (select(2, client:tools())) end

  local function has_tools(...)
    local wanted = { ... }
    process.eventually("the tools are listed: " .. table.concat(wanted, " "), function()
      local names = listed()
      for _, name in ipairs(wanted) do if not names[name] then return false end end
      return true
    end)
  end

  local function about()
    return json.decode(text(client:calls("about", {})))
  end

  local function lives(pid)
    return signal.kill(pid, 0) == 0
  end

  -- Returns the call's id.
  local function begins(name, arguments, meta)
    client.last_id = client.last_id + 1
    client:begins(client.last_id, name, arguments, meta)
    return client.last_id
  end

  it("lists its tools with unchanged schemas, and runs them", function()
    serves()
    has_tools("echo", "about", "slow")
    assert.same({ text = { type = "string" } }, listed().echo.inputSchema.properties)
    local result = client:calls("echo", { text = "héllo \"you\"\n" })
    assert.equal("héllo \"you\"\n", result.content[1].text)
    assert.is_nil(result.isError)
    assert.equal("pass", verdict(result).verdict)
  end)

  it("is asked for its tools after the handshake, also if it says before that they have changed", function()
    serves "changes_first"
    has_tools("echo", "about", "slow")
    assert.is_nil(gate:log():find("upstream_failed", 1, true), gate:log())
  end)

  it("gets its arguments, only the configured environment, and its cwd", function()
    serves("", 'cwd = "/usr"')
    has_tools "about"
    local seen = about()
    assert.equal("/usr", seen.cwd)
    assert.same({ "an argument" }, seen.argv)
    assert.equal("hunter2-and-more", seen.env.GIVEN)
    assert.truthy(seen.env.PATH)
    assert.is_nil(seen.env.NOT_GIVEN)
    assert.is_nil(gate:log():find("hunter2", 1, true))
    local status = gate:status()
    assert.is_nil(json.encode(status):find("hunter2", 1, true))
  end)

  it("may print its secrets, which are masked everywhere", function()
    serves()
    has_tools "do"
    local said = "bad token hunter2-and-more, said " .. ("x"):rep(40)
    local long = ("y"):rep(505) .. " hunter2-and-more" -- across where it is cut
    for _, how in ipairs { "refuse", "error_is_text" } do
      local refused = text(client:calls("do", { how = how, code = -32000, words = said }))
      golden.check("feedback", "MCP over stdio: a secret is masked: " .. how, refused)
    end
    local data = text(client:calls("do", { how = "refuse_with_data", words = said }))
    assert.truthy(data:find('Its data: {"said":"bad token ***', 1, true), data)
    assert.is_nil(data:find("hunter2", 1, true), data)
    client:calls("do", { how = "prints", words = said })
    gate:logs "begins=\"bad token ***, said"
    client:calls("do", { how = "exit", words = long })
    gate:logs "upstream_failed"
    assert.is_nil(gate:log():find("hunter2", 1, true))
    assert.is_nil(json.encode((gate:status())):find("hunter2", 1, true))
  end)

  it("that cannot be started is reported without its secrets", function()
    serves("", 'cwd = "/no/${TOOLGATE_SPEC_SECRET}"')
    golden.check("log", "MCP over stdio: the folder does not exist", gate:logs "upstream_failed upstream=fake")
    assert.is_nil(gate:log():find("hunter2", 1, true))
  end)

  it("answers calls of one client in any order, each with its own id", function()
    serves()
    has_tools "hold"
    local ids = {}
    for i = 1, 10 do ids[begins("hold", { name = "call " .. i })] = "held call " .. i end
    process.eventually("all are in flight", function() return gate:status().upstreams[1].in_flight == 10 end)
    local release = begins("release", { now = true })
    ids[release] = "released"
    for _ = 1, 11 do
      local message = client:hears()
      assert.equal(ids[message.id], message.result.content[1].text)
      ids[message.id] = nil
    end
    assert.is_nil(next(ids))
  end)

  it("relays progress to the client that asked for it, also with the token as a string", function()
    serves()
    has_tools "do"
    for _, as_text in ipairs { false, true } do
      client.notices = nil
      local id = begins("do", { how = "progress", as_text = as_text }, { progressToken = "mine" })
      local answer = client:answer(id)
      assert.equal("progress told", answer.result.content[1].text)
      local heard = {}
      for _, notice in ipairs(client.notices) do
        assert.equal("notifications/progress", notice.method)
        assert.equal("mine", notice.params.progressToken)
        heard[#heard + 1] = notice.params.progress .. "/" .. notice.params.total .. " " .. notice.params.message
      end
      assert.same({ "1/3 step 1", "2/3 step 2", "3/3 step 3" }, heard)
    end
    assert.equal("progress not asked for", text(client:calls("do", { how = "progress" })))
  end)

  it("gets the client's cancellation, and the client gets no answer", function()
    serves()
    has_tools "slow"
    local id = begins("slow", { ms = 60000 })
    process.eventually("the call is under way", function()
      local upstream = gate:status().upstreams[1]
      return upstream and upstream.in_flight == 1
    end)
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = id } }
    process.eventually("the server got the cancellation", function() return about().cancelled == 1 end)
    client:hears_only_a_ping()
    assert.equal(0, gate:status().upstreams[1].in_flight)
  end)

  it("gets a cancellation when the client disconnects", function()
    serves()
    has_tools "slow"
    local other = gate:connect()
    other:say '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"ms":60000}}}'
    process.eventually("the call is under way", function() return gate:status().upstreams[1].in_flight == 1 end)
    other:close()
    process.eventually("the server got the cancellation", function() return about().cancelled == 1 end)
  end)

  it("announces changed tools, and clients are notified", function()
    serves()
    has_tools "do"
    client:asks("initialize", { protocolVersion = "2025-11-25", capabilities = json.decode "{}",
                                clientInfo = { name = "spec", version = "1" } })
    client:say { jsonrpc = "2.0", method = "notifications/initialized" }
    client:calls("do", { how = "list_changes" })
    client.notices = nil
    client:hears_notice "notifications/tools/list_changed"
    has_tools "new_1"
  end)

  it("may announce a change right after the handshake", function()
    serves "changes_at_once"
    has_tools("echo", "new_1")
  end)

  it("is asked for every page of its list", function()
    serves "tools=30 pages=4"
    has_tools("tool_0", "tool_29", "echo")
  end)

  it("is restarted after a crash, and calls go on", function()
    serves()
    has_tools "about"
    local pid = about().pid
    local id = begins("slow", { ms = 60000 })
    process.eventually("the call is under way", function() return gate:status().upstreams[1].in_flight == 1 end)
    signal.kill(pid, signal.SIGKILL)
    local answer = client:answer(id)
    assert.truthy(answer.result.isError)
    assert.equal("wait", verdict(answer.result).verdict)
    golden.check("feedback", "MCP over stdio: killed in a call", text(answer.result))
    local fresh = about().pid
    assert.not_equal(pid, fresh)
    local status = gate:status().upstreams[1]
    assert.same({ starts = 2, pid = fresh }, { starts = status.starts, pid = status.pid })
  end)

  it("may fail to start twice", function()
    local count = process.write(process.directory() .. "/count", "")
    serves("count=" .. count .. " fails=2")
    has_tools "echo"
    assert.equal("x", text(client:calls("echo", { text = "x" })))
    assert.equal("xxx", process.read(count))
    process.remove((count:gsub("/count$", "")))
  end)

  it("is used in the modern era if it refuses initialize", function()
    serves "modern"
    has_tools "echo"
    assert.equal("x", text(client:calls("echo", { text = "x" })))
    assert.equal("2026-07-28", gate:status().upstreams[1].protocol)
    client:calls("do", { how = "list_changes" })
    has_tools "new_1"
  end)

  it("elicits from a modern client, and gets the answers", function()
    serves "modern"
    has_tools "do"
    local meta = client_of.modern()
    meta["io.modelcontextprotocol/clientCapabilities"] = { elicitation = json.decode "{}" }
    local asked = client:asks("tools/call", { name = "do", arguments = { how = "needs_input" }, _meta = meta })
    assert.equal("input_required", asked.resultType)
    assert.equal("Which size?", asked.inputRequests.size.params.message)
    local answered = client:asks("tools/call", {
      name = "do", arguments = { how = "needs_input" }, _meta = meta, requestState = asked.requestState,
      inputResponses = { size = { action = "accept", content = { size = "large" } } } })
    assert.truthy(text(answered):find('"size": "large"', 1, true), text(answered))
    assert.truthy(text(answered):find("with s-1", 1, true), text(answered))
    local told = client:calls("do", { how = "needs_input" }) -- a legacy client gets it as feedback
    assert.same({ "ask", "need_user_input" }, { verdict(told).verdict, verdict(told).error_class })
    assert.truthy(text(told):find("Which size?", 1, true), text(told))
  end)

  it("leaves no process behind, including its children", function()
    serves()
    has_tools "do"
    local pid = about().pid
    local grandchild = tonumber(text(client:calls("do", { how = "forks" })))
    assert.truthy(lives(pid) and lives(grandchild))
    gate:stop()
    process.eventually("both are gone", function() return not lives(pid) and not lives(grandchild) end)
  end)

  it("is killed if it ignores EOF and SIGTERM", function()
    serves "ignores_eof ignores_term"
    has_tools "about"
    local pid = about().pid
    gate:stop()
    process.eventually("it is gone", function() return not lives(pid) end)
  end)

  it("does not outlive a daemon that is killed", function()
    serves()
    has_tools "about"
    local pid = about().pid
    gate.expected_code = 9
    gate:signal(signal.SIGKILL)
    gate.child:wait()
    gate.stopped = true
    process.eventually("it is gone", function() return not lives(pid) end)
    process.remove(gate.directory)
  end)
end)
