-- Seen ids: every daemon of a fleet knows the ids that results gave, and is lenient if records are missing.
local redis = require "redis"

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
    for _, gate in ipairs(gates) do gate:loses_redis() end
    assert.equal("pass", reads(clients[1], "o-2"))
    assert.equal("repair invalid_arguments", reads(clients[2], "o-2"))
    assert.equal("pass", reads(clients[2], "o-2"))
  end)
end)

-- As any MCP client sends: no session, no turn, no goal, no step.
describe("a made-up id without a goal", function()
  local client, gate
  local function policy(name, effects, options)
    return ([==[
-- %s: changes orders. For specs.
return tool "%s" { description = "Do it.", effects = "%s", ids = { ["ids[]"] = seen%s },
  schema = params { ids = list(str) }, run = function() return { done = true } end }
]==]):format(name, name, effects, options or "()")
  end
  before_each(function()
    gate, client = daemon.open { policies = {
      ["orders.lua"] = POLICIES["orders.lua"],
      ["show.lua"] = policy("show", "read"),
      ["move.lua"] = policy("move", "write", " { look_up = \"orders\", strict = true }"),
      ["erase.lua"] = policy("erase", "destructive", " { look_up = \"orders\" }") } }
  end)

  local function says(name, ...)
    local said = verdict(client:calls(name, { ids = { ... } }))
    return said.verdict .. (said.error_class == "ok" and "" or " " .. said.code)
  end

  it("is refused each time it is another one, and passes only if the model insists on each of them", function()
    for i = 1, 3 do assert.truthy(says("show", "x-" .. i):find "^re%a+ ", i) end
    assert.equal("pass", says("show", "x-1"))
    assert.equal("pass", says("show", "x-3", "x-1"))
    assert.not_equal("pass", says("show", "x-3", "x-4"))
    assert.equal("pass", says("show", "x-4", "x-3"))
  end)

  it("never reaches a tool that destroys data: whoever insists is told to look it up, or to ask the user", function()
    for round = 1, 3 do
      for i = 1, 6 do
        local result = client:calls("erase", { ids = { "x-" .. i } })
        local said = verdict(result)
        assert.equal("unseen_id", said.problems and said.problems[1] and said.problems[1].code or said.code, text(result))
        assert.truthy(text(result):find("orders", 1, true), text(result))
        assert.equal(round == 1 and "repair" or "ask", said.verdict == "refuse" and "repair" or said.verdict)
      end
    end
    golden.check("feedback", "the model insists on an id of a destructive tool",
                 text(client:calls("erase", { ids = { "x-1", "x-2" } })), { ["toolgate approve %w+"] = "toolgate approve <id>" })
  end)

  it("is a question to the user where a policy says strict", function()
    assert.equal("repair unseen_id", says("move", "x-1"))
    assert.equal("ask unseen_id", says("move", "x-1"))
  end)

  it("runs once the user has agreed to that very call", function()
    says("erase", "x-1")
    local asked = verdict(client:calls("erase", { ids = { "x-1" } }))
    process.runs { daemon.binary, "approve", "--socket", gate.socket, asked.approval }
    assert.equal("pass", says("erase", "x-1"))
    assert.equal("ask unseen_id", says("erase", "x-1", "x-1"))
  end)

  it("passes without a question once a result has given it", function()
    says("erase", "o-1")
    client:calls("orders", { from = 1, to = 2 })
    assert.equal("pass", says("erase", "o-1"))
  end)

  it("is refused to each of several calls that were sent at once", function()
    local lines = {} -- in one write, so that the daemon reads all of them before it answers
    for id = 1, 4 do
      lines[id] = client_of.json.encode { jsonrpc = "2.0", id = id, method = "tools/call",
                                params = { name = "show", arguments = { ids = { "x-1" } } } }
    end
    client:say_line(table.concat(lines, "\n"))
    for id = 1, 4 do assert.is_true(client:answer(id).result.isError, id) end
  end)

  it("is remembered until the turn ends, also by another daemon", function()
    local store = redis.start()
    local one, other = unpack((function()
      local clients = {}
      for i = 1, 2 do
        local config = ("return { ledger = { redis = '%s', timeout_ms = 1000 } }"):format(store:url())
        clients[i] = daemon.start { policies = { ["show.lua"] = policy("show", "read") }, config = config }:connect()
      end
      return clients
    end)())
    local function says_in(of, turn)
      return verdict(of:calls("show", { ids = { "x-1" } }, client_of.session("s", { turn = turn }))).verdict
    end
    assert.equal("repair", says_in(one, 1))
    assert.equal("pass", says_in(other, 1))
    assert.equal("repair", says_in(one, 2))
    redis.stop_all()
  end)
end)

describe("an id in the goal", function()
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

describe("many ids in one call", function()
  local MANY = { ["orders.lua"] = POLICIES["orders.lua"], ["ship.lua"] = [==[
-- ship: many orders. For specs.
return tool "ship" { description = "Ships.", effects = "write",
  ids = { ["ids[]"] = seen { shape = shape { prefix = "o-" } } },
  schema = params { ids = list(str, "Which") }, run = function(args) return { count = #args.ids } end }
]==] }
  local place = client_of.session("s", { turn = 1, goal = "ship them" })

  local function begins()
    local client = daemon.start { policies = MANY }:connect()
    client:calls("orders", { from = 1, to = 100 }, place)
    return client
  end

  local function ids(from, to, last)
    local list = {}
    for i = from, to do list[#list + 1] = "o-" .. i end
    list[#list + 1] = last
    return list
  end

  it("are looked up up to the last one", function()
    local client = begins()
    assert.equal("pass", verdict(client:calls("ship", { ids = ids(1, 64) }, place)).verdict)
    local said = verdict(client:calls("ship", { ids = ids(1, 63, "o-999") }, place))
    assert.equal("fabricated_id", said.error_class)
    said = verdict(client:calls("ship", { ids = ids(1, 64, "x-1") }, place))
    assert.equal("impossible_id", said.code)
  end)

  it("are asked for in several calls if they are too many to be looked up, and repeated ones count once", function()
    local client = begins()
    local answer = client:calls("ship", { ids = ids(1, 64, "o-999") }, place)
    assert.same({ "repair", "too_many_ids" }, { verdict(answer).verdict, verdict(answer).code })
    assert.truthy(text(answer):find("Make several calls, each with at most 64", 1, true), text(answer))
    local twice = ids(1, 64)
    for i = 1, 64 do twice[64 + i] = "o-" .. i end
    assert.equal("pass", verdict(client:calls("ship", { ids = twice }, place)).verdict)
  end)
end)
