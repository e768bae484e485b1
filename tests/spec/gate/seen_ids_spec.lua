-- Seen ids: every daemon of a fleet knows the ids that results gave, and is lenient if records are missing.
local daemon = require "daemon"
local client_of = require "client"
local process = require "process"
local redis = require "redis"
local text, verdict = client_of.text, client_of.verdict

local POLICIES = { ["orders.lua"] = [==[
-- orders: lists some. For specs.
return tool "orders" { description = "Orders.", effects = "read", gives_ids = { "ids[]" },
  schema = params { from = int "The first", to = int "The last" },
  run = function(args)
    local ids = {}
    for i = args.from, args.to do ids[#ids + 1] = "o-" .. i end
    return { ids = ids }
  end }
]==], ["order.lua"] = [==[
-- order: one of them. For specs.
return tool "order" { description = "An order.", effects = "read", ids = { id = seen() },
  schema = params { id = str "Which" }, run = function(args) return { id = args.id } end }
]==] }

describe("an id", function()
  local store, gates, clients

  after_each(function()
    daemon.stop_all()
    redis.stop_all()
  end)

  local function begin(count)
    store, gates, clients = redis.start(), {}, {}
    for i = 1, count do
      gates[i] = daemon.start { policies = POLICIES, config = ("return { ledger = { redis = '%s', timeout_ms = 1000 } }")
                                                                :format(store:url()) }
      clients[i] = gates[i]:connect()
    end
  end

  local function lists(client, from, to)
    local result = client:calls("orders", { from = from, to = to }, client_of.session("s", { turn = 1, goal = "read them" }))
    assert.is_not_true(result.isError, text(result))
  end

  -- The verdict for one order; the goal names no id.
  local function reads(client, id)
    local said = verdict(client:calls("order", { id = id }, client_of.session("s", { turn = 1, goal = "read them" })))
    return said.verdict .. (said.error_class ~= "ok" and " " .. tostring(said.error_class) or "")
  end

  it("from another daemon's result is seen, and an unknown id is refused as fabricated", function()
    begin(2)
    lists(clients[1], 1, 3)
    assert.equal("pass", reads(clients[2], "o-2"))
    assert.equal("refuse fabricated_id", reads(clients[2], "o-9"))
  end)

  it("that was evicted by newer ids costs one repair, then passes", function()
    begin(1)
    lists(clients[1], 1, 1)
    for from = 1001, 1601, 100 do lists(clients[1], from, from + 99) end
    assert.equal("repair invalid_arguments", reads(clients[1], "o-1"))
    assert.equal("pass", reads(clients[1], "o-1"))
    assert.equal("pass", reads(clients[1], "o-1650"))
  end)

  -- The daemon that served the session still has the record: another one asks.
  it("whose record Redis dropped costs one repair, then passes", function()
    begin(2)
    lists(clients[1], 1, 3)
    for _, key in ipairs(store:keys()) do
      if key:match "}i$" then store:does("DEL", key) end
    end
    assert.equal("repair invalid_arguments", reads(clients[2], "o-2"))
    assert.equal("pass", reads(clients[2], "o-2"))
  end)

  it("from before an outage of Redis costs one repair on a daemon that has not seen it, then passes", function()
    begin(2)
    lists(clients[1], 1, 3)
    store:kill()
    process.eventually("Redis is down", function()
      return not gates[1]:status().ledger.connected and not gates[2]:status().ledger.connected
    end)
    assert.equal("pass", reads(clients[1], "o-2"))
    assert.equal("repair invalid_arguments", reads(clients[2], "o-2"))
    assert.equal("pass", reads(clients[2], "o-2"))
  end)
end)

describe("an id in the goal", function()
  after_each(daemon.stop_all)

  it("counts as given by the user only as a whole token", function()
    local client = daemon.start { policies = POLICIES }:connect()
    local function reads(goal, id)
      local said = verdict(client:calls("order", { id = id }, client_of.session("goal of " .. id, { goal = goal })))
      return said.verdict .. " " .. said.error_class
    end
    assert.equal("pass ok", reads("close order 5", "5"))
    assert.equal("refuse fabricated_id", reads("show 16 items", "6"))
    assert.equal("refuse fabricated_id", reads("close order o-123", "o-12"))
  end)
end)
