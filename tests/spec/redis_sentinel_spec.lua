-- A master that is replaced: sentinels know who is the next, and the daemon follows, under load.
local daemon = require "daemon"
local client_of = require "client"
local fixtures = require "fixtures"
local process = require "process"
local redis = require "redis"
local verdict, session = client_of.verdict, client_of.session

describe("a master that sentinels watch", function()
  local master, replica, sentinel, gate, client, counter

  after_each(function()
    daemon.stop_all()
    redis.stop_all()
  end)

  local function begin()
    counter = 0
    master = redis.start { port = true, arguments = { "--repl-diskless-sync-delay", "0" } }
    replica = redis.start { port = true, arguments = { "--replicaof", "127.0.0.1 " .. master.port } }
    process.eventually("the replica follows", function() return replica:info "master_link_status" == "up" end)
    sentinel = redis.sentinel(master)
    process.eventually("the sentinel knows both", function() return sentinel:info("master0"):find("slaves=1", 1, true) end)
    gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, config = "return { ledger = { timeout_ms = 1000 } }",
                          arguments = { "--redis",
      ("sentinel://127.0.0.1:%d,127.0.0.1:%d/cache"):format(redis.free_port(), sentinel.port) } } -- the first is not there
    client = gate:connect()
  end

  local function echo()
    counter = counter + 1
    return verdict(client:calls("echo", { text = "n" .. counter }, session("s", { turn = 1 }))).ledger
  end

  -- The one that sentinels name now, with calls all the while: how many of them were answered by whom.
  local function calls_until_promoted()
    local by = { redis = 0, ["local"] = 0 }
    process.eventually("the replica is the master, and the daemon is there", function()
      local who = echo()
      by[who] = by[who] + 1
      return replica:info "role" == "master" and who == "redis"
    end)
    return by
  end

  local function is_told_all()
    process.eventually("it has been told all", function() return gate:status().ledger.waiting == 0 end)
    return client:asks("toolgate/session", { session = "s" }).budgets.calls
  end

  it("is found by the sentinel that answers", function()
    begin()
    assert.equal("redis", echo())
    assert.truthy(#master:keys() > 0)
  end)

  it("and is killed: every call is answered, and all are counted by the one that follows", function()
    begin()
    for _ = 1, 20 do assert.equal("redis", echo()) end
    process.eventually("the replica has heard all", function()
      return replica:info "slave_repl_offset" == master:info "master_repl_offset"
    end)
    master:kill()
    local by = calls_until_promoted()
    assert.truthy(by["local"] > 0)
    assert.equal(counter, is_told_all())
    assert.truthy(#replica:keys() > 0)
  end)

  it("and steps down: what it does not take any more goes to the one that follows", function()
    begin()
    assert.equal("redis", echo())
    process.eventually("the replica has heard all", function()
      return replica:info "slave_repl_offset" == master:info "master_repl_offset"
    end)
    process.eventually("the sentinel finds the replica fit", function()
      return sentinel:tries("SENTINEL", "FAILOVER", "cache")
    end)
    calls_until_promoted()
    assert.truthy(gate:logs("ledger_away"):find("another server is the master", 1, true))
    process.eventually("it is at the new one", function() return gate:status().ledger.connects >= 2 end)
    assert.equal("redis", echo())
    is_told_all()
    assert.truthy(#replica:keys() > 0)
  end)

  it("is said not to be known where the name is another", function()
    begin()
    local other = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, arguments = { "--redis",
      ("sentinel://127.0.0.1:%d/other"):format(sentinel.port) } }
    assert.truthy(other:logs("ledger_away"):find("knows no master 'other'", 1, true))
  end)
end)
