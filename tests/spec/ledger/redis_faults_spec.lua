-- What goes wrong around a ledger in Redis besides outages: many daemons on one session, functions of other versions, a
-- database that is emptied, a daemon's clock that is wrong.
local clocks = require "clock"
local fleets = require "fleet"
local redis = require "redis"

local PATIENT = "return { ledger = { timeout_ms = 5000 } }" -- a busy machine is not an outage

local POLL = [==[
-- poll: a tool that is meant to be asked again.
return tool "poll" {
  description = "Poll.", effects = "read", loop = { poll = { every = "30s", max = 20 } },
  schema = json [[{"type":"object","properties":{"text":{"type":"string"}}}]],
  run = function() return { state = "pending" } end,
}
]==]
local POLICIES = { ["echo.lua"] = fixtures.echo, ["poll.lua"] = POLL }

describe("a conflict storm", function()
  local DAEMONS, CLIENTS, CALLS = 64, 64, 10

  it("of 64 daemons on one session is answered, and each call that passed is counted once", function()
    local fleet = fleets.start { daemons = DAEMONS, policies = POLICIES }
    fleet:until_all_is_merged()
    fleet.measures = true
    local said, counted = { passed = 0, unavailable = 0, other = 0 }, nil
    for i = 1, CLIENTS do
      fleet:begin(function()
        local place = {}
        for n = 1, CALLS do
          local line = fleet:ask(place, "tools/call", ('{"name":"echo","arguments":{"text":"%d.%d"},"_meta":%s}'):format(
            i, n, client_of.json.encode(session("storm", { turn = 1, step = i .. "." .. n }))))
          local what = line:find('"ledger_unavailable"', 1, true) and "unavailable"
                       or line:find('"verdict":"pass"', 1, true) and "passed" or "other"
          said[what] = said[what] + 1
        end
      end)
    end
    fleet:run()
    fleet:begin(function()
      counted = tonumber(fleet:ask({}, "toolgate/session", '{"session":"storm"}'):match '"calls":(%d+)')
    end)
    fleet:run()
    local d = fleet:distribution()
    print(("\n%d calls of %d clients over %d daemons on one session: p50 %.0f ms, p99 %.0f ms, worst %.0f ms, %d unavailable")
      :format(d.count, CLIENTS, DAEMONS, d.p50, d.p99, d.worst, said.unavailable))
    assert.same({}, fleet.problems)
    assert.same({ CLIENTS * CALLS, 0 }, { said.passed + said.unavailable, said.other })
    assert.equal(said.passed, counted)
    assert.truthy(said.unavailable <= CLIENTS * CALLS / 4, said.unavailable .. " are unavailable")
  end)
end)

describe("a Redis", function()
  local store, gate, client, count

  local function begin(given)
    given = given or {}
    store, count = given.store or redis.start(), 0
    gate, client = daemon.open { policies = POLICIES, tools = fixtures.agent_tools, arguments = { "--redis", store:url() },
                                 config = given.config or PATIENT, environment = given.environment }
  end

  local function echo(name)
    count = count + 1
    return verdict(client:calls("echo", { text = "n" .. count }, session(name or "s", { turn = 1 }))).ledger
  end

  local function calls() return client:asks("toolgate/session", { session = "s" }).budgets.calls end

  it("with another version's functions instead of its own gets them again, and keeps the other's", function()
    begin()
    assert.equal("redis", echo())
    store:does("FUNCTION", "FLUSH")
    store:does("FUNCTION", "LOAD",
               "#!lua name=tg2_anotherversion\nredis.register_function('tg2_another_com', function() return 1 end)")
    for _ = 1, 5 do assert.equal("redis", echo()) end
    assert.equal(6, calls())
    local names = {}
    for _, library in ipairs(store:does("FUNCTION", "LIST")) do names[#names + 1] = library[2] end
    assert.equal(2, #names)
    assert.truthy(table.concat(names, " "):find("tg2_anotherversion", 1, true))
    assert.equal(1, gate:status().ledger.connects)
  end)

  it("that is emptied begins every session anew, without an error", function()
    begin()
    for _ = 1, 3 do assert.equal("redis", echo()) end
    store:does "FLUSHALL"
    for _ = 1, 2 do assert.equal("redis", echo()) end
    assert.equal(2, calls())
    assert.is_nil(gate:log():find(" error ", 1, true))
  end)

  it("whose session another client deleted begins it anew", function()
    begin()
    for _ = 1, 3 do assert.equal("redis", echo()) end
    for _, key in ipairs(store:keys()) do store:does("DEL", key) end
    assert.equal("redis", echo())
    assert.equal(1, calls())
  end)
end)

describe("a daemon whose clock is an hour off", function()
  if clocks.cannot then return pending(clocks.cannot) end

  for what, offset in pairs { ahead = 3600, behind = -3600 } do
    it("(" .. what .. ") judges by the time of Redis", function()
      local store, clients, gates = redis.start(), {}, {}
      for i, seconds in ipairs { 0, offset } do
        gates[i] = daemon.start { policies = POLICIES, tools = fixtures.agent_tools, arguments = { "--redis", store:url() },
                                  config = PATIENT, environment = clocks.new(seconds).environment }
        clients[i] = gates[i]:connect()
      end
      local logged = gates[2]:log():match "^(%d+%-%d+%-%d+T%d+:%d+)"
      assert.equal(os.date("!%Y-%m-%dT%H", os.time() + offset), logged:sub(1, 13), "its clock is right")

      -- A reservation neither ends early nor begins late, on either daemon.
      for i = 1, 2 do
        local checked = clients[i]:checks("book_table", { where = "here " .. i }, session "s")
        assert.same({ "pass", "redis" }, { checked.verdict, checked.ledger })
      end
      for i = 1, 2 do
        verdict(clients[i]:calls("echo", { text = "n" .. i }, session "s"))
        local known = clients[i]:asks("toolgate/session", { session = "s" })
        assert.equal(2, known.budgets.waiting)
        assert.equal(0, known.turn) -- no silence began one
        for _, entry in ipairs(known.history) do
          assert.truthy(math.abs(entry.at_ms / 1000 - os.time()) < 60, entry.at_ms)
        end
      end

      -- A pause that one daemon began holds on the other.
      assert.equal("pass", verdict(clients[1]:calls("poll", { text = "a" }, session("p", { turn = 1 }))).verdict)
      local early = verdict(clients[2]:calls("poll", { text = "a" }, session("p", { turn = 1 })))
      assert.same({ "wait", "too_soon" }, { early.verdict, early.code })
      assert.truthy(early.after_s > 0 and early.after_s <= 30, early.after_s)
      assert.equal("pass", verdict(clients[2]:calls("poll", { text = "b" }, session("p", { turn = 1 }))).verdict)
      assert.equal("too_soon", verdict(clients[1]:calls("poll", { text = "b" }, session("p", { turn = 1 }))).code)
      for _, key in ipairs(store:keys()) do
        local left = store:does("TTL", key)
        assert.truthy(left > 86000 and left <= 86400, key .. " lives for " .. left)
      end
    end)

    it("(" .. what .. ") judges by the time of Redis also during an outage", function()
      local store = redis.start()
      local gate, client = daemon.open { policies = POLICIES, arguments = { "--redis", store:url() }, config = PATIENT,
                                         environment = clocks.new(offset).environment }
      local function polls() return verdict(client:calls("poll", { text = "a" }, session("p", { turn = 1 }))) end
      local first = polls()
      assert.same({ "pass", "redis" }, { first.verdict, first.ledger })
      store:kill()
      gate:loses_redis()
      local early = polls()
      assert.same({ "wait", "too_soon", "local" }, { early.verdict, early.code, early.ledger })
      assert.truthy(early.after_s > 0 and early.after_s <= 30, early.after_s)
    end)
  end
end)
