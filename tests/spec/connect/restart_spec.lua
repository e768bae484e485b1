-- toolgate connect while daemons are killed, late, or replaced: the client hears one answer to each request.
local bridges = require "bridge"
local signal = require "posix.signal"

-- A tool that notes that it runs, and ends when `go` exists.
local function waits(name, effects)
  return ([==[
-- %s: for specs.
return tool "%s" {
  description = "For specs.", effects = "%s", loop = { repeats = 1000000 },
  annotations = { readOnlyHint = %s },
  schema = params { folder = str "A folder" },
  exec = { "sh", "-c", "echo x >> $1/ran; while [ ! -e $1/go ]; do sleep 0.01; done; echo done", "sh", "{folder}" },
}
]==]):format(name, name, effects, tostring(effects == "read"))
end

local POLICIES = { ["look.lua"] = waits("look", "read"), ["change.lua"] = waits("change", "write"),
                   ["echo.lua"] = fixtures.echo }

describe("toolgate connect, through a restart", function()
  local client

  local function starts(...)
    client = bridges.start(...)
    return client
  end

  local function answer(id)
    local message, line = client:hears()
    assert.equal(id, message.id, line)
    return message
  end

  local function lists(id)
    client:say { id = id, method = "tools/list" }
    return answer(id).result.tools
  end

  -- A call that the daemon has begun.
  local function begins(id, tool)
    client:call(id, tool, { folder = client.directory })
    process.eventually("the tool runs", function() return process.read(client.directory .. "/ran") ~= "" end)
  end

  it("answers a call that only reads once, with the time to repeat it after", function()
    starts():serves { policies = POLICIES }
    lists(1)
    begins(2, "look")
    client:kills()
    local result = answer(2).result
    local verdict = client_of.verdict(result)
    assert.is_true(result.isError)
    assert.same({ "wait", "unavailable", "gateway_restarted", 2 },
                { verdict.verdict, verdict.error_class, verdict.code, verdict.after_s })
    process.write(client.directory .. "/go", "")
    client:serves {}
    client:call(3, "look", { folder = client.directory })
    assert.is_not_true(answer(3).result.isError)
    client:has_nothing_to_say()
  end)

  it("says that any other call may have run, and does not repeat it", function()
    starts():serves { policies = POLICIES }
    lists(1)
    begins(2, "change")
    client:kills()
    local verdict = client_of.verdict(answer(2).result)
    assert.same({ "refuse", "gateway_restarted" }, { verdict.verdict, verdict.code })
    assert.is_nil(verdict.after_s)
    client:serves {}
    client:has_nothing_to_say()
    assert.equal("x\n", process.read(client.directory .. "/ran"))
  end)

  it("says that a call has no answer when its input has ended", function()
    starts():serves { policies = POLICIES }
    begins(1, "look")
    local code, rest = client:ends()
    assert.same({ 2, "" }, { code, rest })
    assert.matches("without an answer after stdin ended: 1", client:err(), 1, true)
    process.write(client.directory .. "/go", "")
  end)

  it("takes a call for one that writes if the client has never listed the tools", function()
    starts():serves { policies = POLICIES }
    begins(2, "look")
    client:kills()
    assert.is_nil(client_of.verdict(answer(2).result).after_s)
  end)

  it("answers another method with an error", function()
    starts():serves { policies = POLICIES }
    lists(1)
    begins(2, "change")
    client:say { id = 3, method = "toolgate/call_that_no_daemon_knows" }
    answer(3)
    client:kills()
    answer(2)
  end)

  it("lets requests wait for the next daemon, in order", function()
    starts():serves { policies = POLICIES }
    client:has_nothing_to_say()
    client:kills()
    process.eventually("the bridge has noticed", function() return client:err() ~= "" end)
    for id = 1, 5 do client:call(id, "echo", { text = tostring(id) }) end
    client:serves {}
    for id = 1, 5 do assert.equal('{"said":"' .. id .. '"}', client_of.text(answer(id).result)) end
    client:has_nothing_to_say()
  end)

  it("waits for a daemon that is late", function()
    starts()
    client:say { id = 1, method = "initialize", params = {
      protocolVersion = "2025-06-18", capabilities = {}, clientInfo = { name = "s", version = "1" } } }
    process.eventually("the bridge tells what is missing", function() return client:err():find("no daemon", 1, true) end)
    client:serves { policies = POLICIES }
    assert.equal("2025-06-18", answer(1).result.protocolVersion)
    assert.equal(0, (client:ends()))
  end)

  it("answers what waited too long, and works on", function()
    starts("--wait", "1")
    client:call(1, "echo", { text = "x" })
    assert.equal("gateway_away", client_of.verdict(answer(1).result).code)
    client:say { id = 2, method = "prompts/list" }
    local failure = answer(2).error
    assert.same({ 1015, false }, { failure.code, failure.data.sent })
    client:serves { policies = POLICIES }
    process.eventually("the daemon answers", function()
      client:call(3, "echo", { text = "x" })
      return not answer(3).result.isError
    end)
  end)

  it("bounds what waits", function()
    starts("--wait", "5")
    for id = 1, 1025 do client:call(id, "echo", { text = "x" }) end
    assert.equal("gateway_away", client_of.verdict(answer(1025).result).code)
  end)

  it("answers no cancelled request, sent or not", function()
    starts():serves { policies = POLICIES }
    begins("sent", "change")
    client:say { method = "notifications/cancelled", params = { requestId = "sent" } }
    client:has_nothing_to_say()
    client:kills()
    process.eventually("the bridge has noticed", function() return client:err() ~= "" end)
    client:call("waiting", "echo", { text = "x" })
    client:say { method = "notifications/cancelled", params = { requestId = "waiting" } }
    client:serves {}
    client:has_nothing_to_say()
  end)

  it("initializes the next daemon as the client did, and tells of other tools", function()
    starts():serves { policies = POLICIES }
    client:say { id = 1, method = "initialize", params = {
      protocolVersion = "2025-06-18", capabilities = {}, clientInfo = { name = "named-so", version = "1" } } }
    answer(1)
    client:say { method = "notifications/initialized" }
    assert.equal(3, #lists(2))
    client:kills()
    client:serves {}
    client:has_nothing_to_say()
    client:kills()
    client:serves { policies = { ["echo.lua"] = fixtures.echo } }
    assert.equal("notifications/tools/list_changed", client:hears().method)
    assert.equal(1, #lists(3))
    client:has_nothing_to_say()
  end)

  it("subscribes again for a modern client, which hears of it once", function()
    local meta = { ["io.modelcontextprotocol/protocolVersion"] = "2026-07-28",
                   ["io.modelcontextprotocol/clientCapabilities"] = { x = 1 },
                   ["io.modelcontextprotocol/clientInfo"] = { name = "s", version = "1" } }
    starts():serves { policies = POLICIES }
    client:say { id = "list", method = "tools/list", params = { _meta = meta } }
    answer "list"
    client:say { id = "sub", method = "subscriptions/listen",
                 params = { _meta = meta, notifications = { toolsListChanged = true } } }
    assert.equal("notifications/subscriptions/acknowledged", client:hears().method)
    client.gate:stop() -- its last words end the subscription, for this daemon
    client:serves { policies = POLICIES }
    client:has_nothing_to_say()
    client.gate:write_policy("more.lua", (fixtures.echo:gsub("echo", "more")))
    client.gate:reload()
    local notice = client:hears()
    assert.same({ "notifications/tools/list_changed", "sub" },
                { notice.method, notice.params._meta["io.modelcontextprotocol/subscriptionId"] })
    client:has_nothing_to_say()
  end)

  it("watches resources again, and says that prompts and resources may be others", function()
    starts()
    local library, heard = client.directory .. "/library.json", client.directory .. "/heard"
    process.write(library, [[{"resources":[{"uri":"a:1","name":"1"}],"prompts":[{"name":"p"}]}]])
    local config = fixtures.serving("books", "library_server", { LIBRARY = library, HEARD = heard })
    client:serves { config = config }
    local function asks(id, method, params)
      client:say { id = id, method = method, params = params }
      return answer(id)
    end
    local n = 0
    process.eventually("the resource is listed", function()
      n = n + 1
      return #asks("list" .. n, "resources/list").result.resources == 1
    end)
    asks(1, "resources/subscribe", { uri = "a:1" })
    asks(2, "resources/subscribe", { uri = "a:2" })
    asks(3, "resources/unsubscribe", { uri = "a:2" })
    client:kills()
    os.remove(heard)
    client:serves { config = config }
    assert.equal("notifications/resources/list_changed", client:hears().method)
    process.eventually("the server is told again", function() return process.read(heard):find("resources/subscribe", 1, true) end)
    assert.is_nil(process.read(heard):find("a:2", 1, true))
    client.gate:connect():calls("do", { notify = "resources/updated", params = { uri = "a:1" } })
    repeat
      local said = client:hears()
    until said.method == "notifications/resources/updated" and said.params.uri == "a:1"
  end)

  it("watches resources again that the next daemon's server lists late", function()
    starts()
    local library, heard, go = client.directory .. "/library.json", client.directory .. "/heard", client.directory .. "/go"
    process.write(library, [[{"resources":[{"uri":"a:1","name":"1"}]}]])
    process.write(go, "")
    local config = ([[
return { upstreams = { books = { command = "sh", args = { "-c", "while [ ! -e %s ]; do sleep 0.01; done; exec python3 -SE %s" },
                                 env = { LIBRARY = "%s", HEARD = "%s" } } } }]])
      :format(go, daemon.root .. "/tests/support/library_server.py", library, heard)
    client:serves { config = config }
    client:say { id = "hello", method = "initialize", params = {
      protocolVersion = "2025-06-18", capabilities = {}, clientInfo = { name = "s", version = "1" } } }
    answer "hello"
    client:say { method = "notifications/initialized" }
    local n = 0
    process.eventually("the resource is listed", function()
      n = n + 1
      client:say { id = "list" .. n, method = "resources/list" }
      repeat
        local said = client:hears()
        if said.id == "list" .. n then return #said.result.resources == 1 end
      until false
    end)
    client:say { id = 1, method = "resources/subscribe", params = { uri = "a:1" } }
    answer(1)
    client:kills()
    os.remove(heard)
    os.remove(go)
    client:serves { config = config }
    assert.equal("notifications/resources/list_changed", client:hears().method)
    client:has_nothing_to_say() -- it has subscribed, and was refused
    process.write(go, "")
    process.eventually("the server is told again", function() return process.read(heard):find("resources/subscribe", 1, true) end)
  end)

  it("cancels a question of the daemon that is gone, and passes no late answer on", function()
    local asks = [==[
-- pay: asks first.
return tool "pay" {
  description = "Pay.", effects = "write", schema = params { amount = int "Cents" },
  check = function(call) return ask("Pay?") end,
  run = function(args) return { paid = args.amount } end,
}
]==]
    starts():serves { policies = { ["pay.lua"] = asks } }
    client:say { id = 1, method = "initialize", params = {
      protocolVersion = "2025-06-18", capabilities = { elicitation = { form = {} } },
      clientInfo = { name = "s", version = "1" } } }
    answer(1)
    client:call(2, "pay", { amount = 5 })
    local first = client:hears()
    assert.equal("elicitation/create", first.method)
    client:kills()
    local heard = { client:hears(), (client:hears()) }
    local cancelled = heard[1].method and heard[1] or heard[2]
    assert.same({ "notifications/cancelled", first.id }, { cancelled.method, cancelled.params.requestId })
    client:serves {}
    client:call(3, "pay", { amount = 5 })
    local second = client:hears()
    assert.equal("elicitation/create", second.method)
    assert.not_equal(first.id, second.id)
    local name = next(second.params.requestedSchema.properties)
    client:say { id = first.id, result = { action = "decline" } }
    client:has_nothing_to_say()
    client:say { id = second.id, result = { action = "accept", content = { [name] = true } } }
    assert.equal('{"paid":5}', client_of.text(answer(3).result))
  end)

  it("keeps its --session auto, whose name the next daemon hears", function()
    starts("--session", "auto"):serves { policies = POLICIES }
    client:has_nothing_to_say()
    client:kills()
    client:serves {}
    for id = 1, 3 do client:call(id, "echo", { text = "x" }) answer(id) end
    client:call(4, "echo", { text = "x" })
    assert.equal("loop", client_of.verdict(answer(4).result).error_class)
  end)

  it("ends what a model left unrepaired, with its own session", function()
    for _, story in ipairs { { "auto", 1 }, { "shared", 0 } } do
      starts("--session", story[1]):serves { policies = POLICIES }
      client:call(1, "echo", { txt = "x" })
      assert.equal("repair", client_of.verdict(answer(1).result).verdict)
      assert.equal(0, client:ends())
      assert.equal(story[2], client.gate:status().counters.repair_chains, story[1])
      client.gate:stop()
    end
  end)

  it("gets no call lost by systemd's socket while no daemon runs", function()
    local path = process.directory()
    local socket = path .. "/s"
    local policies = path .. "/policies"
    os.execute("chmod 755 " .. path .. "; mkdir " .. policies)
    process.write(policies .. "/echo.lua", fixtures.echo)
    local activator = process.start({ "systemd-socket-activate", "-l", socket, daemon.binary, "serve",
                                      "--policies", policies }, { stderr = path .. "/err", stdin = "/dev/null" })
    local early = {}
    for i = 1, 10 do -- the first starts the daemon; all have spoken before it serves
      early[i] = process.eventually("the socket listens", function() return (client_of.connect(socket)) end)
      early[i]:say { jsonrpc = "2.0", id = i, method = "ping" }
    end
    for i = 1, 10 do assert.equal(i, early[i]:hears().id) early[i]:close() end
    activator:signal(signal.SIGTERM)
    activator:wait()
  end)
end)
