-- Reservations: an admitted call that is never settled holds its place in the budgets until its own deadline.
local redis = require "redis"
local signal = require "posix.signal"

-- A write that may run once per turn, and exceeds its timeout.
local SLOW = [==[
-- %s: writes, slowly. For specs.
return tool "%s" { description = "Write slowly.", effects = "write", retry = { same_call = 1 }, schema = params {},
  exec = { "sleep", "60", timeout = "%ds" } }
]==]
local POLICIES = { ["slow.lua"] = SLOW:format("slow", "slow", 1), ["slower.lua"] = SLOW:format("slower", "slower", 3) }

describe("a call that its client cancels", function()
  it("gives its reservation back", function()
    local gate = daemon.start { policies = POLICIES }
    local client, watcher = gate:connect(), gate:connect()
    local function budgets()
      return (watcher:ask("toolgate/session", { session = "s" }).result or { budgets = {} }).budgets
    end
    for i = 1, 3 do
      client:say { jsonrpc = "2.0", id = i, method = "tools/call",
                   params = { name = "slower", _meta = client_of.session("s", { turn = 1, step = "m" .. i }) } }
      process.eventually("it is let run", function() return budgets().waiting == 1 end)
      client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = i } }
      process.eventually("it is given back", function() return budgets().waiting == 0 end)
    end
    assert.same({ 0, 0 }, { budgets().calls, budgets().no_progress })
  end)
end)

describe("a call whose daemon is killed", function()
  local store, gates, clients, steps

  before_each(function()
    store, gates, clients, steps = redis.start(), {}, {}, 0
    for i = 1, 2 do
      gates[i] = daemon.start { policies = POLICIES, config = ("return { ledger = { redis = '%s', timeout_ms = 5000 } }")
                                                                :format(store:url()) }
      clients[i] = gates[i]:connect()
    end
  end)

  local function place()
    steps = steps + 1
    return client_of.session("s", { turn = 1, step = "m" .. steps })
  end

  local function waiting() return clients[2]:asks("toolgate/session", { session = "s" }).budgets.waiting end

  it("keeps its reservation until its own deadline", function()
    clients[1]:say { jsonrpc = "2.0", id = 1, method = "tools/call", params = { name = "slow", _meta = place() } }
    process.eventually("it is let run", function()
      return (clients[2]:ask("toolgate/session", { session = "s" }).result or { budgets = {} }).budgets.waiting == 1
    end)
    gates[1].child:signal(signal.SIGKILL)
    gates[1].child:wait()
    gates[1].stopped = true
    process.remove(gates[1].directory)
    assert.equal("same_call", verdict(clients[2]:calls("slow", {}, place())).code)
    assert.equal(1, waiting())
    assert.equal("timeout", verdict(clients[2]:calls("slower", {}, place())).code) -- which takes longer than slow's deadline
    assert.equal("timeout", verdict(clients[2]:calls("slow", {}, place())).code) -- it ran
    local known = clients[2]:asks("toolgate/session", { session = "s" })
    assert.equal(0, known.budgets.waiting)
    assert.same({ "slow", "unknown" }, { known.history[3].tool, known.history[3].class })
  end)
end)
