-- Redis Sentinel: the daemon finds the master and follows a failover under load.
local redis = require "redis"
local socket = require "socket"

describe("a master behind Sentinel", function()
  local master, replica, sentinel, gate, client, counter

  -- `password`: the sentinel's; `behind`: the query part of the address.
  local function begin(password, behind)
    counter = 0
    master = redis.start { port = true, arguments = { "--repl-diskless-sync-delay", "0" } }
    replica = redis.start { port = true, arguments = { "--replicaof", "127.0.0.1 " .. master.port } }
    process.eventually("the replica follows", function() return replica:info "master_link_status" == "up" end)
    sentinel = redis.sentinel(master, password)
    process.eventually("the sentinel knows both", function() return sentinel:info("master0"):find("slaves=1", 1, true) end)
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, config = "return { ledger = { timeout_ms = 1000 } }",
                          arguments = { "--redis",
      ("sentinel://127.0.0.1:%d,127.0.0.1:%d/cache%s"):format(redis.free_port(), sentinel.port, behind or "") } }
      -- the first is unreachable
    client = gate:connect()
  end

  local function echo()
    counter = counter + 1
    return verdict(client:calls("echo", { text = "n" .. counter }, session("s", { turn = 1 }))).ledger
  end

  -- Calls until the replica is the master and the daemon uses it; returns the calls by engine.
  local function calls_until_promoted()
    local by = { redis = 0, ["local"] = 0 }
    process.eventually("the replica is the master, and the daemon is there", function()
      local who = echo()
      by[who] = by[who] + 1
      return replica:info "role" == "master" and who == "redis"
    end)
    return by
  end

  local function merged_calls()
    process.eventually("everything is merged", function() return gate:status().ledger.waiting == 0 end)
    return client:asks("toolgate/session", { session = "s" }).budgets.calls
  end

  it("is found through a sentinel that answers", function()
    begin()
    assert.equal("redis", echo())
    assert.truthy(#master:keys() > 0)
    local told = gate:status().ledger.master
    assert.same({ "cache", "127.0.0.1:" .. master.port }, { told.name, told.address })
  end)

  it("that is killed loses no call: all are counted on the new master", function()
    begin()
    for _ = 1, 20 do assert.equal("redis", echo()) end
    local since = gate:status().ledger.master.since_ms
    process.eventually("the replica has everything", function()
      return replica:info "slave_repl_offset" == master:info "master_repl_offset"
    end)
    master:kill()
    local by = calls_until_promoted()
    assert.truthy(by["local"] > 0)
    assert.equal(counter, merged_calls())
    assert.truthy(#replica:keys() > 0)
    local told = gate:status().ledger.master
    assert.equal("127.0.0.1:" .. replica.port, told.address)
    assert.is_true(told.since_ms > since)
    local _, words = process.run { daemon.binary, "status", "--socket", gate.socket }
    golden.check("cli", "status: the master behind Sentinel", words:match "[^\n]*master of[^\n]*",
                 { ["%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d"] = "<time>" })
  end)

  local function steps_down()
    assert.equal("redis", echo())
    process.eventually("the replica has everything", function()
      return replica:info "slave_repl_offset" == master:info "master_repl_offset"
    end)
    process.eventually("the sentinel finds the replica fit", function()
      return sentinel:tries("SENTINEL", "FAILOVER", "cache")
    end)
    calls_until_promoted()
    gate:logs "redis_down"
    process.eventually("it is at the new one", function() return gate:status().ledger.connects >= 2 end)
    assert.equal("redis", echo())
    merged_calls()
    assert.truthy(#replica:keys() > 0)
  end

  it("that is replaced by a failover hands its sessions to the new master", function()
    begin()
    steps_down()
  end)

  -- Without the pause the old master accepts writes for a second and then loses them.
  it("that is replaced after CLIENT PAUSE, as docs/scaling.md describes, loses no call", function()
    begin()
    for _ = 1, 20 do assert.equal("redis", echo()) end
    process.eventually("the replica has everything", function()
      return replica:info "slave_repl_offset" == master:info "master_repl_offset"
    end)
    local pause = process.read("docs/scaling.md"):match "(CLIENT PAUSE %d+ WRITE)"
    local words = {}
    for word in pause:gmatch "%S+" do words[#words + 1] = word end
    master:does(unpack(words))
    process.eventually("the sentinel finds the replica fit", function()
      return sentinel:tries("SENTINEL", "FAILOVER", "cache")
    end)
    local by = calls_until_promoted()
    assert.truthy(by["local"] > 0)
    assert.equal(counter, merged_calls())
  end)

  it("is found through sentinels with a password, also after a failover", function()
    begin("a word of theirs", "?sentinels=:a word of theirs")
    steps_down()
    assert.falsy(gate:log():find("of theirs", 1, true))
    assert.falsy(client:asks("toolgate/status").ledger.address:find("sentinels", 1, true))
  end)

  it("is found by a sentinel user with minimal rights", function()
    begin("unused", "?sentinels=watch:password")
    assert.equal("local", echo())
    local documented = process.read "docs/configuration.md":match "(ACL SETUSER watch [^`]+)"
    local words = {}
    for word in documented:gmatch "%S+" do words[#words + 1] = word end
    sentinel:does(unpack(words))
    process.eventually("the sentinel lets it in", function() return echo() == "redis" end)
  end)

  it("is not found without the sentinels' password, and the log gives the fix", function()
    begin "a word of theirs"
    assert.equal("local", echo())
    golden.check("log", "Sentinel: it wants a password", gate:logs("redis_down"))
    gate:stop()
    begin("a word of theirs", "?sentinels=:a guess")
    assert.equal("local", echo())
    golden.check("log", "Sentinel: a wrong password", gate:logs "redis_down")
    assert.falsy(gate:log():find("a guess", 1, true))
  end)

  it("is found through sentinels without a password, even if one is configured", function()
    begin(nil, "?sentinels=:a guess")
    assert.equal("redis", echo())
  end)

  it("is found behind two sentinels that do not answer", function()
    begin()
    local silent = { assert(socket.bind("127.0.0.1", 0)), assert(socket.bind("127.0.0.1", 0)) }
    local function port(one) return select(2, one:getsockname()) end
    local other = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, arguments = { "--redis",
      ("sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/cache"):format(port(silent[1]), port(silent[2]), sentinel.port) } }
    process.eventually("it is connected", function() return other:status().ledger.connected end)
    for _, one in ipairs(silent) do one:close() end
  end)

  it("with an unknown name is reported", function()
    begin()
    local other = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, arguments = { "--redis",
      ("sentinel://127.0.0.1:%d/other"):format(sentinel.port) } }
    golden.check("log", "Sentinel: an unknown master", other:logs("redis_down"))
  end)
end)
