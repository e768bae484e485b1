-- A Redis Cluster that fails over: the daemon goes on through the nodes that are left.
local redis = require "redis"

local POLICIES = { ["echo.lua"] = fixtures.echo }
local PATIENT = "return { ledger = { timeout_ms = 5000 } }" -- a busy machine is not an outage
local SESSIONS = 12

local function gate_on(address)
  return daemon.start { policies = POLICIES, arguments = { "--redis", address }, config = PATIENT }
end

describe("a Redis Cluster of three masters", function()
  local nodes, replica, count

  before_each(function()
    nodes, count = redis.cluster(3), 0
    replica = redis.replica_in(nodes)
  end)

  -- One call of each session; returns how many of them Redis counted.
  local function calls(client)
    local by_redis = 0
    count = count + 1
    for i = 1, SESSIONS do
      local said = verdict(client:calls("echo", { text = "n" .. count }, session("s" .. i, { turn = 1 })))
      by_redis = by_redis + (said.ledger == "redis" and 1 or 0)
    end
    return by_redis
  end

  local function survives(address)
    local gate = gate_on(address)
    local client = gate:connect()
    process.eventually("all sessions are counted in Redis", function() return calls(client) == SESSIONS end)
    process.eventually("the replica has everything", function()
      return replica:info "slave_repl_offset" == nodes[1]:info "master_repl_offset"
    end)
    nodes[1]:kill()
    process.eventually("the replica has taken over, and the daemon uses it", function() return calls(client) == SESSIONS end)
    assert.equal("master", replica:info "role")
    process.eventually("everything is merged", function() return gate:status().ledger.waiting == 0 end)
    for i = 1, SESSIONS do
      assert.equal(count, client:asks("toolgate/session", { session = "s" .. i }).budgets.calls)
    end
    assert.is_true(gate:status().ledger.connected)
    return gate
  end

  it("whose first named node dies is used through the second", function()
    local gate = survives(("cluster://127.0.0.1:%d,127.0.0.1:%d"):format(nodes[1].port, nodes[2].port))
    assert.truthy(gate:logs("redis_node_down"):find("port=" .. nodes[1].port, 1, true))
  end)

  it("whose only named node dies is used through the nodes that the cluster has named", function()
    survives(nodes[1]:url())
  end)

  it("whose first named node is dead at the start is up at once", function()
    local gate = gate_on(("cluster://127.0.0.1:%d,127.0.0.1:%d"):format(redis.free_port(), nodes[2].port))
    assert.equal(SESSIONS, calls(gate:connect()))
    assert.is_nil(gate:log():find("redis_down", 1, true))
    assert.same({ 0, true }, { gate:status().ledger.outages, gate:status().ledger.connected })
  end)

  it("of which every named node is dead is an outage until one is back", function()
    local gate = gate_on(("cluster://127.0.0.1:%d,127.0.0.1:%d"):format(nodes[1].port, nodes[2].port))
    local client = gate:connect()
    for _, node in ipairs(nodes) do node:kill() end
    replica:kill()
    process.eventually("it is noticed", function() return calls(client) == 0 end)
    assert.truthy(gate:logs "redis_down")
    for _, node in ipairs(nodes) do node:start_again() end
    process.eventually("Redis counts again", function() return calls(client) == SESSIONS end)
  end)
end)

describe("a Redis that is no cluster", function()
  it("is not used as one: each of several would count for itself", function()
    local store = redis.start { port = true }
    local gate = gate_on(("cluster://127.0.0.1:%d"):format(store.port))
    golden.check("log", "Redis: no node of a cluster", gate:logs "redis_down")
  end)
end)
