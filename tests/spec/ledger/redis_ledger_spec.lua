-- A ledger in Redis that several daemons share: budgets, loops, passwords and settings.
local redis = require "redis"
local socket = require "socket"

-- Three calls of a user in a minute, and ten in an hour.
local LIMITED = [==[
-- limited: for specs.
return tool "limited" {
  description = "For specs.", effects = "read", schema = params { n = int "Which" },
  rate = { "3/minute", "10/hour", by = "user" },
  check = function(args) if args.n < 0 then return refuse "not that one" end end,
  run = function(args) return { n = args.n } end,
}
]==]

local POLICIES = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                   ["create_task.lua"] = fixtures.create_task, ["limited.lua"] = LIMITED }

-- A busy machine is not an outage.
local PATIENT = "return { ledger = { timeout_ms = 5000 } }"

local function gate_on(url, config)
  return daemon.start { policies = POLICIES, tools = fixtures.agent_tools, arguments = { "--redis", url },
                        config = config or PATIENT }
end

local function ledger_of(gate)
  return gate:status().ledger
end

describe("a ledger in Redis", function()
  it("is named in the verdict and in the status, without its password", function()
    local store = redis.start { port = true, password = "secret-word" }
    local gate = gate_on(store:url(3))
    assert.equal("redis", verdict(gate:connect():calls("echo", { text = "a" }, session "s")).ledger)
    local ledger, line = ledger_of(gate)
    assert.equal("redis", ledger.engine)
    assert.is_true(ledger.connected)
    assert.equal("local", ledger.on_outage)
    assert.truthy(ledger.server:find "^%a+ %d+%.%d+") -- redis, valkey
    assert.equal(("redis://127.0.0.1:%d/3"):format(store.port), ledger.address)
    assert.is_nil((line or ""):find("secret-word", 1, true))
    assert.is_nil(gate:log():find("secret-word", 1, true))
    assert.same({}, store:keys()) -- database 0
  end)

  it("counts repairs of two daemons together", function()
    local store = redis.start()
    local one, other = gate_on(store:url()):connect(), gate_on(store:url()):connect()
    local function attempts(client, name)
      local said = verdict(client:calls("create_task", { name = name }, session "s"))
      return { said.verdict, said.attempts_left }
    end
    assert.same({ "repair", 2 }, attempts(one, "a"))
    assert.same({ "repair", 1 }, attempts(other, "b"))
    local last = verdict(one:calls("create_task", { name = "c" }, session "s"))
    assert.same({ "refuse", "retry_budget_exceeded" }, { last.verdict, last.code })
  end)

  it("detects a loop over several daemons", function()
    local store = redis.start()
    local gates = { gate_on(store:url()):connect(), gate_on(store:url()):connect(), gate_on(store:url()):connect() }
    local said = {}
    for i = 1, 5 do
      said[i] = verdict(gates[i % 3 + 1]:calls("echo", { text = "same" }, session("s", { turn = 1 }))).verdict
    end
    assert.same({ "pass", "pass", "refuse", "refuse", "halt" }, said)
  end)

  it("takes the calls of a rate on every daemon, and keeps it until there is room for all of them", function()
    local store = redis.start()
    local clients, said = { gate_on(store:url()):connect(), gate_on(store:url()):connect() }, {}
    local function limited(i, n) return verdict(clients[i % 2 + 1]:calls("limited", { n = n }, session("s" .. i))) end
    for i = 1, 5 do -- a call that its check refuses gives its place back
      if i <= 3 then assert.equal("refuse", limited(i, -1).verdict) end
      said[i] = limited(i, i)
    end
    assert.same({ "pass", "pass", "pass" }, { said[1].verdict, said[2].verdict, said[3].verdict })
    for i = 4, 5 do -- what waits takes nothing
      assert.same({ "wait", "rate_limit", "redis" }, { said[i].verdict, said[i].code, said[i].ledger })
      assert.is_true(said[i].after_s > 0 and said[i].after_s <= 20, said[i].after_s)
    end
    local rates = 0
    for _, key in ipairs(store:keys()) do
      if key:sub(-1) == "r" then
        rates = rates + 1
        local left = store:does("TTL", key)
        assert.is_true(left > 1000 and left <= 1080, key .. " lives for " .. left)
      end
    end
    assert.equal(1, rates)
  end)

  it("logs that Redis refuses the key of a rate, which this daemon counts alone then", function()
    local store = redis.start()
    local gate = gate_on(store:url())
    local client = gate:connect()
    local function limited(n) return verdict(client:calls("limited", { n = n }, session "s")).verdict end
    assert.equal("pass", limited(1))
    for _, key in ipairs(store:keys()) do
      if key:sub(-1) == "r" then
        store:does("DEL", key)
        store:does("LPUSH", key, "somebody else's")
      end
    end
    for n = 2, 4 do assert.equal("pass", limited(n)) end
    assert.equal("wait", limited(5))
    assert.truthy(gate:logs("redis_refused"):find("WRONGTYPE", 1, true))
  end)

  -- The client of a daemon that has read all of these requests before Redis answers the first of them.
  local function after_a_freeze(requests)
    local store = redis.start()
    local client = gate_on(store:url()):connect()
    store:freeze()
    for i, request in ipairs(requests) do
      client:say { jsonrpc = "2.0", id = not request.silent and "frozen" .. i or nil, method = request[1], params = request[2] }
    end
    client:asks "ping"
    store:thaw()
    return client
  end

  it("gives back what a cancelled call took of a rate", function()
    local client = after_a_freeze {
      { "tools/call", { name = "limited", arguments = { n = 1 }, _meta = session "s1" } },
      { "notifications/cancelled", { requestId = "frozen1" }, silent = true } }
    for n = 2, 4 do assert.equal("pass", verdict(client:calls("limited", { n = n }, session("s" .. n))).verdict) end
    assert.equal("rate_limit", verdict(client:calls("limited", { n = 5 }, session "s5")).code)
  end)

  it("keeps the call that came behind the forgetting of a session that was none", function()
    local client = after_a_freeze {
      { "toolgate/session", { session = "s", forget = true } },
      { "tools/call", { name = "echo", arguments = { text = "a" }, _meta = session "s" } } }
    assert.equal(1014, client:hears().error.code)
    assert.equal("pass", verdict(client:hears().result).verdict)
    assert.equal(1, client:asks("toolgate/session", { session = "s" }).budgets.calls)
  end)

  it("knows the callIds of every daemon, also after it was emptied", function()
    local store = redis.start()
    local checked = gate_on(store:url()):connect():checks("book_table", { where = "here" }, session "s")
    local function reported() -- by another daemon
      local said = gate_on(store:url()):connect():ask("toolgate/report", { callId = checked.callId, result = "done",
                                                                           _meta = session "s" })
      return said.error and said.error.message:match "^params.callId: (toolgate gave no check)"
             or said.result.code or said.result.verdict
    end
    assert.equal("pass", reported())
    store:does "FLUSHALL"
    store:does("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    process.eventually("a daemon brings the key back", function() return store:does("EXISTS", "tg2:callid_key") == 1 end)
    assert.equal(-1, store:does("TTL", "tg2:callid_key"))
    assert.equal("call_forgotten", reported()) -- its session is gone
    daemon.stop_all()
    store:does "FLUSHALL"
    assert.equal("toolgate gave no check", reported()) -- nobody has the key
  end)

  it("keeps a session while every daemon restarts", function()
    local store = redis.start()
    local first = gate_on(store:url())
    first:connect():calls("outcome", { how = "facts" }, session "s")
    first:stop()
    local known = gate_on(store:url()):connect():asks("toolgate/session", { session = "s" })
    assert.equal(1, #known.history)
    assert.same({ colour = "red" }, known.facts)
  end)

  it("shares turns, resets and forgetting", function()
    local store = redis.start()
    local one, other = gate_on(store:url()):connect(), gate_on(store:url()):connect()
    assert.equal(1, one:asks("toolgate/turn", { _meta = session "s", goal = "to see" }).turn)
    assert.equal(2, other:asks("toolgate/turn", { _meta = session "s" }).turn)
    one:calls("echo", { text = "a" }, session "s")
    assert.is_true(other:asks("toolgate/session", { session = "s", forget = true }).forgotten)
    assert.equal(1014, one:ask("toolgate/session", { session = "s" }).error.code)
    assert.same({}, store:keys())
  end)

  it("answers 200 calls in flight, each with its own reply", function()
    local store = redis.start()
    local client = gate_on(store:url()):connect()
    for i = 1, 200 do
      client:begins(i, "echo", { text = "n" .. i }, session("s" .. i % 7))
    end
    local heard = {}
    for _ = 1, 200 do
      local message = client:hears()
      heard[message.id] = client_of.text(message.result)
    end
    for i = 1, 200 do assert.truthy(heard[i]:find('"n' .. i .. '"', 1, true), heard[i]) end
  end)

  it("releases the reservation of a client that disconnected", function()
    local store = redis.start()
    local gate = gate_on(store:url())
    local client = gate:connect()
    store:freeze()
    client:say { jsonrpc = "2.0", id = 1, method = "toolgate/check",
                 params = { name = "book_table", arguments = { where = "here" }, _meta = session "s" } }
    process.eventually("the call is under way", function() return ledger_of(gate).by_redis == 0 end)
    client:close()
    process.eventually("the daemon has seen it", function() return gate:status().connections.calls_in_flight <= 1 end)
    store:thaw()
    local again = gate:connect()
    process.eventually("nothing is reserved", function()
      local reply = again:ask("toolgate/session", { session = "s" })
      return reply.error or reply.result.budgets.calls == 0 and reply.result.budgets.waiting == 0
    end)
  end)

  it("gives back the rate of a client that disconnected before it was admitted", function()
    local store = redis.start()
    local gate = gate_on(store:url())
    local leaving = gate:connect()
    store:freeze()
    for i = 1, 3 do
      leaving:say { jsonrpc = "2.0", id = i, method = "tools/call",
                    params = { name = "limited", arguments = { n = i }, _meta = session("gone" .. i) } }
    end
    local function in_flight() return gate:status().connections.calls_in_flight end
    process.eventually("the calls are under way", function() return in_flight() >= 3 end)
    leaving:close()
    process.eventually("the daemon has seen it", function() return in_flight() <= 1 end)
    store:thaw()
    local client = gate:connect()
    for i = 1, 3 do
      process.eventually("its place is free", function() -- 20 s pass before one is free that was not given back
        return verdict(client:calls("limited", { n = i }, session("s" .. i))).verdict == "pass"
      end, 10)
    end
  end)

  -- The sanitizers report what is not freed.
  it("ends while Redis owes it an answer about a rate", function()
    local store = redis.start()
    local gate = gate_on(store:url(), "return { ledger = { timeout_ms = 10000 } }")
    local client = gate:connect()
    store:freeze()
    client:begins(1, "limited", { n = 1 }, session "s")
    process.eventually("the call is under way", function() return gate:status().connections.calls_in_flight >= 1 end)
    gate:stop()
    store:thaw()
  end)

  it("reads its password from a file, again when it changes", function()
    local store = redis.start { password = "first" }
    local directory = process.directory()
    local file = process.write(directory .. "/password", "first\n")
    local gate = gate_on("unix:" .. store.socket,
      ("return { ledger = { redis = 'unix:%s', password_file = '%s', timeout_ms = 5000 } }"):format(store.socket, file))
    assert.is_true(ledger_of(gate).connected)
    process.write(file, "second\n")
    store:does("CONFIG", "SET", "requirepass", "second")
    store.password = "second"
    store:does("CLIENT", "KILL", "TYPE", "normal")
    process.eventually("Redis is up", function() return ledger_of(gate).connects == 2 end)
    assert.is_nil(gate:log():find("first", 1, true))
  end)

  it("takes secrets in its address from the environment", function()
    local store = redis.start { port = true, password = "from the env" }
    local gate = daemon.start { policies = POLICIES, environment = { LEDGER_PASSWORD = "from%20the%20env" },
                                config = ([[return { ledger = {
                                  redis = "redis://:${LEDGER_PASSWORD}@127.0.0.1:%d", timeout_ms = 5000 } }]])
                                  :format(store.port) }
    assert.is_true(ledger_of(gate).connected)
  end)

  it("takes the password for --redis from the configured file", function()
    local store = redis.start { port = true, password = "of the file" }
    local file = process.write(os.tmpname(), "of the file\n")
    local gate = gate_on("redis://127.0.0.1:" .. store.port,
                         ("return { ledger = { password_file = '%s', timeout_ms = 5000 } }"):format(file))
    assert.is_true(ledger_of(gate).connected)
    os.remove(file)
  end)

  it("works for the user with minimal rights in docs/configuration.md", function()
    local store = redis.start { port = true }
    local words = {}
    local documented = process.read "docs/configuration.md":match "(ACL SETUSER gate [^\n]+)"
    for word in documented:gmatch "%S+" do words[#words + 1] = word end
    store:does(unpack(words))
    local gate = gate_on(("redis://gate:password@127.0.0.1:%d"):format(store.port))
    local before = store:calls "fcall"
    assert.equal("redis", verdict(gate:connect():calls("echo", { text = "a" }, session "s")).ledger)
    assert.truthy(store:calls "fcall" - before >= 2) -- and the daemon writes itself down
  end)

  it("reports an invalid address without its contents", function()
    local function refused(key, config)
      local words, code = daemon.fails { policies = POLICIES, config = config }
      assert.equal(1, code)
      assert.truthy(words:find("ledger.redis", 1, true), words)
      assert.is_nil(words:find("hidden", 1, true), words)
      golden.check("load", "ledger.redis: " .. key, words)
    end
    refused("no host", "return { ledger = { redis = 'redis://u:hidden@' } }")
    refused("TLS", "return { ledger = { redis = 'rediss://x' } }")
    refused("an environment variable is not set", "return { ledger = { redis = 'redis://:${NO_SUCH_NAME}@x' } }")
  end)

  it("is checked by serve --check without a connection", function()
    for key, url in pairs { ["an environment variable is not set"] = "redis://:${NO_SUCH_NAME}@x",
                            ["the port is not a number"] = "redis://x:port",
                            ["a user without a password"] = "redis://gate@x" } do
      local code, _, err = process.run { daemon.binary, "serve", "--check", "--redis", url }
      assert.equal(1, code)
      assert.truthy(err:find("ledger.redis: ", 1, true), err)
      golden.check("load", "serve --check --redis: " .. key, err)
      golden.check("load", "serve --redis: " .. key, (daemon.fails { policies = POLICIES, arguments = { "--redis", url } }))
    end
    assert.equal(0, (process.run { daemon.binary, "serve", "--check", "--redis", "redis://nobody.invalid" }))
  end)

  for _, ttl_s in ipairs { 100, 31536000 } do -- a year in milliseconds is more than 32 bits hold
    it("keeps all keys of a session for ledger.ttl_s after its last call: " .. ttl_s, function()
      local store = redis.start()
      local client = gate_on(store:url(), ("return { ledger = { ttl_s = %d, timeout_ms = 5000 } }"):format(ttl_s)):connect()
      client:calls("outcome", { how = "facts" }, session("s", { goal = "find order o-17" }))
      local keys = store:keys()
      assert.is_true(#keys >= 3, #keys) -- session, history, facts, and possibly ids
      for _, key in ipairs(keys) do
        local left = store:does("TTL", key)
        assert.is_true(left > ttl_s - 60 and left <= ttl_s, key .. " lives for " .. left)
      end
    end)
  end

  it("renews all keys of a session with a later call", function()
    local store = redis.start()
    local client = gate_on(store:url(), "return { ledger = { ttl_s = 30, timeout_ms = 5000 } }"):connect()
    client:calls("outcome", { how = "facts" }, session "s")
    for _, key in ipairs(store:keys()) do store:does("EXPIRE", key, 10) end
    socket.sleep(1.1) -- a session is renewed once a second at most
    client:calls("echo", { text = "later" }, session "s")
    for _, key in ipairs(store:keys()) do
      local left = store:does("TTL", key)
      assert.is_true(left > 20 and left <= 30, key .. " lives for " .. left)
    end
  end)

  it("does not wait for settles with settle = 'sent', and none is lost", function()
    local store = redis.start()
    local gate = gate_on(store:url(), "return { ledger = { settle = 'sent', timeout_ms = 10000 } }")
    local client = gate:connect()
    for i = 1, 20 do client:calls("echo", { text = "n" .. i }, session "s") end
    local checked = client:checks("book_table", { where = "here" }, session "s")
    store:freeze()
    client:asks("toolgate/report", { callId = checked.callId, name = "book_table", arguments = { where = "here" },
                                     result = { content = { { type = "text", text = "done" } } }, _meta = session "s" })
    assert.is_true(ledger_of(gate).connected) -- no call has waited until the timeout
    store:thaw()
    local known = client:asks("toolgate/session", { session = "s" })
    assert.same({ 21, 0, 21, 0 }, { known.budgets.calls, known.budgets.waiting, #known.history, ledger_of(gate).outages })
  end)

  it("is reached by host name and IPv6 address", function()
    local store = redis.start { port = true, arguments = { "--bind", "127.0.0.1", "-::1" } }
    assert.is_true(ledger_of(gate_on(("redis://localhost:%d"):format(store.port))).connected)
  end)
end)
