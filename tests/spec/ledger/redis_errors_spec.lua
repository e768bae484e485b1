-- Error replies of real Redis servers, and what happens to the call that gets one.
local redis = require "redis"

local POLICIES = { ["echo.lua"] = fixtures.echo }
local PATIENT = "return { ledger = { timeout_ms = 1000 } }" -- a busy machine is not an outage

describe("a Redis that replies", function()
  local store, gate, client

  local function begin(given, url)
    store = redis.start(given)
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", url or store:url() }, config = PATIENT }
    client = gate:connect()
  end

  local counter = 0
  local function echo()
    counter = counter + 1
    return verdict(client:calls("echo", { text = "n" .. counter }, session("s", { turn = 1 }))).ledger
  end

  local function connected() return gate:status().ledger.connected end
  local function calls() return client:asks("toolgate/session", { session = "s" }).budgets.calls end

  -- `begins` causes the error: the next calls are counted locally; after `ends` Redis has all of them.
  local function an_outage(word, begins, ends)
    assert.equal("redis", echo())
    begins()
    assert.equal("local", echo())
    assert.truthy(gate:logs("redis_down"):find(word, 1, true))
    assert.equal("local", echo())
    ends()
    gate:has_merged()
    assert.equal("redis", echo())
    assert.equal(4, calls())
  end

  -- The two ways to run a script: as a function of a library, and by its hash if functions are unavailable.
  for how, is in pairs { ["that a function is unknown"] = { flush = "FUNCTION", runs = "fcall" },
                         NOSCRIPT = { flush = "SCRIPT", runs = "evalsha" } } do
    it(how .. " gets the scripts again, and no call fails", function()
      begin { arguments = is.runs == "evalsha" and { "--rename-command", "FUNCTION", "" } or nil }
      assert.equal("redis", echo())
      local before = store:calls(is.runs)
      store:does(is.flush, "FLUSH")
      for i = 1, 20 do
        client:begins(i, "echo", { text = "f" .. i }, session("s", { turn = 1 }))
      end
      for _ = 1, 20 do assert.equal("redis", verdict(client:hears().result).ledger) end
      assert.equal(21, calls())
      assert.equal(1, gate:status().ledger.connects)
      assert.truthy(store:calls(is.runs) > before)
    end)
  end

  it("READONLY because it became a replica is an outage", function()
    begin()
    an_outage("READONLY", function()
      store:does("CONFIG", "SET", "replica-read-only", "yes")
      store:does("REPLICAOF", "127.0.0.1", redis.free_port())
    end, function() store:does("REPLICAOF", "NO", "ONE") end)
  end)

  it("OOM is an outage until it has memory", function()
    begin()
    an_outage("OOM", function() store:does("CONFIG", "SET", "maxmemory", "1") end,
              function() store:does("CONFIG", "SET", "maxmemory", "0") end)
  end)

  it("BUSY is an outage until its script has ended", function()
    begin()
    an_outage("BUSY", function()
      store:does("CONFIG", "SET", "busy-reply-threshold", "1")
      store:sends("EVAL", "while true do end", "0")
      process.eventually("it is busy", function() return (select(2, store:tries "PING") or ""):find "BUSY" end)
    end, function() store:does("SCRIPT", "KILL") end)
  end)

  it("MISCONF because it cannot save is an outage", function()
    begin()
    an_outage("MISCONF", function()
      store:does("CONFIG", "SET", "save", "3600 1")
      store:does("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")
      os.execute("mkdir " .. store.directory .. "/dump.rdb") -- a folder in the place of the dump
      store:does "BGSAVE"
      process.eventually("the save has failed", function() return store:info "rdb_last_bgsave_status" == "err" end)
    end, function() store:does("CONFIG", "SET", "stop-writes-on-bgsave-error", "no") end)
  end)

  it("NOREPLICAS because replicas are missing is an outage", function()
    begin()
    an_outage("NOREPLICAS", function() store:does("CONFIG", "SET", "min-replicas-to-write", "1") end,
              function() store:does("CONFIG", "SET", "min-replicas-to-write", "0") end)
  end)

  it("LOADING is an outage until it has loaded", function()
    begin { arguments = { "--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024" } }
    assert.equal("redis", echo())
    for i = 1, 50 do store:does("SET", "other:" .. i, ("x"):rep(100)) end
    store:does "SAVE"
    store:kill()
    assert.equal("local", echo())
    store:start_again()
    process.eventually("the status reports LOADING", function()
      return gate:status().ledger.why_away and gate:status().ledger.why_away:find("LOADING", 1, true)
    end)
    assert.equal("local", echo())
    gate:has_merged()
    assert.equal(3, calls())
  end)

  it("LOADING on an open connection during a reload is an outage until it has loaded", function()
    begin { arguments = { "--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024" } }
    assert.equal("redis", echo())
    for i = 1, 50 do store:does("SET", "other:" .. i, ("x"):rep(100)) end
    store:sends("DEBUG", "RELOAD")
    process.eventually("it is loading", function() return (select(2, store:tries "PING") or ""):find "LOADING" end)
    assert.equal("local", echo())
    assert.truthy(gate:logs("redis_down"):find("LOADING", 1, true))
    gate:has_merged()
    assert.equal("redis", echo())
    assert.equal(3, calls())
  end)

  it("NOAUTH is reported, and retried", function()
    begin()
    assert.equal("redis", echo())
    store:does("CONFIG", "SET", "requirepass", "new")
    store.password = "new"
    store:does("CLIENT", "KILL", "TYPE", "normal")
    process.eventually("Redis is down", function()
      local ledger = gate:status().ledger
      return not ledger.connected and ledger.why_away:find("NOAUTH", 1, true)
    end)
    assert.equal("local", echo())
    store:does("CONFIG", "SET", "requirepass", "")
    gate:has_merged()
    assert.equal(2, calls())
  end)

  it("NOPERM is an outage", function()
    begin()
    an_outage("NOPERM", function() store:does("ACL", "SETUSER", "default", "-fcall") end,
              function() store:does("ACL", "SETUSER", "default", "+fcall") end)
  end)

  it("that a script lacks a permission is an outage", function()
    begin()
    an_outage("give its user the rights", function() store:does("ACL", "SETUSER", "default", "-set") end,
              function() store:does("ACL", "SETUSER", "default", "+set") end)
  end)

  local function rules(words)
    local all = { "ACL", "SETUSER", "gate", "on", ">pw", "resetkeys", "~tg2:*", "nocommands", "+@all" }
    for word in words:gmatch "%S+" do all[#all + 1] = word end
    store:does(unpack(all))
  end

  local function start_as_gate()
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", "redis://gate:pw@127.0.0.1:" .. store.port },
                          config = "return { ledger = { timeout_ms = 1000 }, log = { level = 'debug' } }" }
  end

  it("NOPERM names the command, whichever of the scripts' commands it is", function()
    store = redis.start { port = true }
    for command in ("fcall get getrange set setrange hset hdel hgetall expire pexpire del time"):gmatch "%a+" do
      rules("-" .. command)
      start_as_gate()
      local said = gate:logs("redis_down"):lower()
      assert.truthy(said:find("%f[%a]" .. command .. "%f[%A]"), command .. ": " .. said)
      assert.truthy(said:find("give its user the rights", 1, true), said)
      gate:stop()
    end
  end)

  -- Found when the daemon connects, not by the first call.
  for what, rights in pairs {
    ["may run no functions"] = "-fcall",
    ["may not write as the scripts do"] = "-hset",
    ["may not read"] = "-@read +info",
    ["may not ask the time"] = "-time",
    ["may touch other keys only"] = "resetkeys ~other:*",
  } do
    it("NOPERM to a user who " .. what .. " is an outage until the rights are granted, logged once", function()
      store = redis.start { port = true }
      rules(rights)
      start_as_gate()
      client = gate:connect()
      for _ = 1, 20 do assert.equal("local", echo()) end
      assert.is_false(connected())
      golden.check("log", "Redis: rights are missing", gate:logs("redis_down"),
                   { ['why=".-; '] = 'why="<the error of Redis>; ' })
      gate:logs "redis_reconnect_delayed failures=4 " -- each try has found it out
      assert.is_false(connected())
      assert.equal(1, select(2, gate:log():gsub("error redis_down", "")))
      rules ""
      gate:has_merged()
      assert.equal("redis", echo())
      assert.equal(21, calls())
    end)
  end

  it("WRONGTYPE for a session's key falls back to the local ledger, and the log names script and key", function()
    begin()
    assert.equal("redis", echo())
    for _, key in ipairs(store:keys()) do
      if key:match "}s$" then
        store:does("DEL", key)
        store:does("LPUSH", key, "somebody else's")
      end
    end
    assert.equal("local", echo())
    local said = gate:logs "redis_refused"
    assert.truthy(said:find("WRONGTYPE", 1, true), said)
    assert.equal(store:keys()[1]:match "^(.*}).$", said:match "key=(%S+)")
    assert.is_true(connected())
  end)

  it("WRONGTYPE for the key of call ids is logged once, and the key is asked for until it is there", function()
    store = redis.start()
    store:does("LPUSH", "tg2:callid_key", "somebody else's")
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() }, config = PATIENT }
    gate:logs "redis_callid_key_unknown"
    local asked = store:calls "fcall"
    process.eventually("it was asked for again", function() return store:calls "fcall" >= asked + 5 end)
    assert.equal(1, select(2, gate:log():gsub("redis_callid_key_unknown", "")))
    store:does("DEL", "tg2:callid_key")
    process.eventually("it is there", function() return store:does("EXISTS", "tg2:callid_key") == 1 end)
  end)

  for what, how in pairs {
    ["a list"] = function(key) store:does("LPUSH", key, "somebody else's") end,
    ["too short to be one"] = function(key) store:does("SET", key, "garbage") end,
    ["other numbers"] = function(key) store:does("SET", key, ("\255"):rep(500)) end,
  } do
    it("with a session that is " .. what .. " answers every call, and can forget the session", function()
      begin()
      assert.equal("redis", echo())
      for _, key in ipairs(store:keys()) do
        store:does("DEL", key)
        how(key)
      end
      for _ = 1, 10 do assert.truthy(echo()) end
      assert.truthy(select(2, gate:log():gsub("ledger_merged", "")) <= 1, gate:log())
      assert.is_true(client:asks("toolgate/session", { session = "s", forget = true }).forgotten)
      assert.equal("redis", echo())
      assert.equal(1, calls())
    end)
  end

  it("that it is a replica is an error with the fix if it is named directly", function()
    local master = redis.start { port = true }
    store = redis.start { port = true, arguments = { "--replicaof", "127.0.0.1 " .. master.port } }
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() }, config = PATIENT }
    client = gate:connect()
    assert.equal("local", echo())
    golden.check("log", "Redis: a replica", gate:logs("redis_down"))
  end)

  it("MASTERDOWN because it is a replica without a master is an outage", function()
    -- READONLY would come first with functions.
    store = redis.start { port = true, arguments = { "--rename-command", "FUNCTION", "" } }
    store:does("CONFIG", "SET", "replica-serve-stale-data", "no")
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() }, config = PATIENT }
    client = gate:connect()
    assert.equal("redis", echo())
    store:does("REPLICAOF", "127.0.0.1", redis.free_port())
    assert.equal("local", echo())
    assert.truthy(gate:logs("redis_down"):find("MASTERDOWN", 1, true))
  end)
end)

describe("a Redis Cluster", function()
  local nodes, gate, client, counter = nil, nil, nil, 0

  -- Shared by all cases, because the setup takes seconds.
  setup(function()
    nodes = redis.cluster(2, "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "15000")
    redis.running = {} -- helper.lua stops these after each test
  end)
  teardown(function() for _, node in ipairs(nodes) do node:stop() end end)

  before_each(function()
    for _, node in ipairs(nodes) do node:does "FLUSHALL" end
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", nodes[1]:url() }, config = PATIENT }
    client = gate:connect()
  end)

  local function echo(name)
    counter = counter + 1
    return verdict(client:calls("echo", { text = "n" .. counter }, session(name, { turn = 1 }))).ledger
  end

  -- Returns a session whose keys are on the first node, and the prefix of its keys.
  local function session_on_the_first()
    for i = 1, 100 do
      assert.equal("redis", echo("m" .. i))
      local keys = nodes[1]:keys()
      if #keys > 0 then return "m" .. i, keys[1]:match "^(.*})" end
    end
  end

  local function calls(name) return client:asks("toolgate/session", { session = name }).budgets.calls end

  it("redirects with MOVED, which the daemon follows once per slot", function()
    local function moved()
      local count = nodes[1]:info "errorstat_MOVED"
      return count and tonumber(count:match "count=(%d+)") or 0
    end
    for i = 1, 20 do assert.equal("redis", echo("s" .. i)) end
    local moves = moved()
    assert.truthy(moves > 0)
    for i = 1, 20 do assert.equal("redis", echo("s" .. i)) end
    for i = 1, 20 do assert.equal(2, calls("s" .. i)) end
    assert.truthy(#nodes[1]:keys() > 0 and #nodes[2]:keys() > 0)
    assert.equal(moves, moved())
  end)

  describe("that moves a slot", function()
    local name, slot, two

    local function moves(without)
      local stem
      name, stem = session_on_the_first()
      if without then nodes[1]:does("DEL", stem .. without) end
      slot = nodes[1]:does("CLUSTER", "KEYSLOT", stem)
      local one = nodes[1]:does("CLUSTER", "MYID")
      two = nodes[2]:does("CLUSTER", "MYID")
      nodes[2]:does("CLUSTER", "SETSLOT", slot, "IMPORTING", one)
      nodes[1]:does("CLUSTER", "SETSLOT", slot, "MIGRATING", two)
      for _, key in ipairs(nodes[1]:keys()) do nodes[1]:does("MIGRATE", "127.0.0.1", nodes[2].port, key, 0, 1000) end
    end

    local function has_moved()
      for i = 2, 1, -1 do nodes[i]:does("CLUSTER", "SETSLOT", slot, "NODE", two) end
    end

    local function moves_back()
      for _, node in ipairs(nodes) do node:does "FLUSHALL" end
      local one = nodes[1]:does("CLUSTER", "MYID")
      for i = 1, 2 do nodes[i]:does("CLUSTER", "SETSLOT", slot, "NODE", one) end
    end

    it("replies ASK, and then MOVED", function()
      moves()
      assert.equal("redis", echo(name))
      assert.truthy(nodes[1]:info "errorstat_ASK")
      has_moved()
      assert.equal("redis", echo(name))
      assert.equal(3, calls(name))
      moves_back()
    end)

    it("replies TRYAGAIN if keys are missing: the result waits until the slot has moved", function()
      moves "j" -- the result writes its note there
      echo(name)
      process.eventually("the result waits", function() return gate:status().ledger.waiting == 1 end)
      assert.is_true(gate:status().ledger.connected)
      has_moved()
      process.eventually("everything is merged", function() return gate:status().ledger.waiting == 0 end)
      assert.equal("redis", echo(name))
      assert.equal(3, calls(name))
      moves_back()
    end)
  end)

  it("that loses a node keeps the sessions of the other", function()
    for i = 1, 20 do echo("s" .. i) end
    nodes[2]:kill()
    local by = { redis = 0, ["local"] = 0 }
    for i = 1, 20 do
      local who = echo("s" .. i)
      by[who] = by[who] + 1
    end
    assert.truthy(by.redis > 0 and by["local"] > 0)
    assert.is_true(gate:status().ledger.connected)
    nodes[2]:start_again()
    redis.cluster_is_well(nodes)
    process.eventually("everything is merged", function() return gate:status().ledger.waiting == 0 end)
  end)

  it("without a slot's node replies CLUSTERDOWN, which is an outage for the sessions of that node", function()
    local name, stem = session_on_the_first()
    nodes[1]:does("CLUSTER", "DELSLOTS", nodes[1]:does("CLUSTER", "KEYSLOT", stem))
    assert.equal("local", echo(name))
    golden.check("log", "Redis: a node of a cluster is down", gate:logs "redis_node_down", { ["port=%d+"] = "port=<port>" })
    assert.is_true(gate:status().ledger.connected)
  end)
end)
