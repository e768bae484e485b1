-- What an operator learns about the ledger's Redis: from the log at the start, later from toolgate status.
local proxies = require "redis_proxy"
local redis = require "redis"

-- The parts of log lines and of the status that vary from run to run.
local VARIABLE = { ["%d+ us"] = "<n> us", [": %a+ %d[%d.]+ at"] = ": redis <version> at",
                   ["20%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d"] = "<time>" }
for reason, placeholder in pairs(redis.LOST) do VARIABLE[reason] = placeholder end

local POLICIES = { ["echo.lua"] = fixtures.echo }
local function keeps(...) return { "--appendonly", "yes", ... } end

local function gate_on(url, config)
  return daemon.start { policies = POLICIES, arguments = { "--redis", url }, config = config }
end

-- A busy machine makes a Redis slow: that warning is of redis_slow's own specs.
local function warnings_of(gate)
  local warnings = {}
  for _, warning in ipairs(gate:status().ledger.warnings) do
    if not warning:find("a write took it", 1, true) then warnings[#warnings + 1] = warning end
  end
  return warnings
end

local function ledger_of(gate) return gate:status().ledger end

local function status_of(gate)
  local out = process.runs { daemon.binary, "status", "--socket", gate.socket }
  return out:gsub("  warning: a write took it[^\n]*\n", ""):match "ledger: .-\nconnections"
end

describe("a working Redis", function()
  it("with persistence causes no warning", function()
    local gate = gate_on(redis.start({ arguments = keeps() }):url())
    assert.same({}, warnings_of(gate))
    assert.is_nil(gate:log():find(" warn ", 1, true))
  end)

  it("that may evict keys causes a warning with the fix", function()
    local store = redis.start { arguments = keeps("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") }
    local gate = gate_on(store:url())
    local warnings = warnings_of(gate)
    assert.equal(1, #warnings)
    assert.truthy(gate:logs("redis_eviction_enabled"):find(warnings[1], 1, true))
    assert.truthy(status_of(gate):find("\n  warning: " .. warnings[1] .. "\n", 1, true), status_of(gate))
    golden.check("log", "Redis: it may evict", warnings[1])
  end)

  it("with an eviction policy but unlimited memory causes no warning", function()
    local gate = gate_on(redis.start({ arguments = keeps("--maxmemory-policy", "allkeys-lru") }):url())
    assert.same({}, warnings_of(gate))
  end)

  it("without persistence causes one warning, not one per connection", function()
    local store = redis.start()
    local gate = gate_on(store:url())
    golden.check("log", "Redis: it keeps no file", warnings_of(gate)[1])
    store:does("CLIENT", "KILL", "TYPE", "normal")
    process.eventually("Redis is up", function() return ledger_of(gate).connects == 2 end)
    assert.equal(1, select(2, gate:log():gsub("redis_no_persistence", "")))
    store:does("CONFIG", "SET", "appendonly", "yes")
    store:does("CLIENT", "KILL", "TYPE", "normal")
    process.eventually("it is checked again", function() return #warnings_of(gate) == 0 end)
  end)

  it("that restarted empty is logged as data loss", function()
    local store = redis.start { arguments = { "--maxmemory", "0" } }
    local gate = gate_on(store:url())
    local client = gate:connect()
    client:calls("echo", { text = "a" }, session "s")
    store:kill()
    process.eventually("Redis is down", function() return not ledger_of(gate).connected end)
    store:start_again()
    golden.check("log", "Redis: data lost", gate:logs("redis_data_lost"), VARIABLE)
    store:does("CLIENT", "KILL", "TYPE", "normal")
    process.eventually("Redis is up", function() return ledger_of(gate).connects == 3 end)
    assert.equal(1, select(2, gate:log():gsub("redis_data_lost", "")))
  end)

  it("is in the status with its keys, connections and outages", function()
    local store = redis.start { port = true, password = "not to be seen", arguments = keeps() }
    store:does("SET", "a", "1")
    local gate = gate_on("redis://:not%20to%20be%20seen@127.0.0.1:" .. store.port)
    local client = gate:connect()
    client:calls("echo", { text = "a" }, session "s")
    golden.check("cli", "status: Redis is connected", status_of(gate):match "ledger: .-connections", VARIABLE)
    store:kill()
    process.eventually("Redis is down", function() return not ledger_of(gate).connected end)
    client:calls("echo", { text = "b" }, session "s")
    local words = status_of(gate)
    golden.check("cli", "status: Redis is down", words:match "ledger: .-connections", VARIABLE)
    assert.is_nil(words:find("not to be seen", 1, true))
    local status = gate:status()
    assert.same({ redis = 1, ["local"] = 1, none = 0 }, status.counters.ledger)
  end)

  it("has separate counters for uncounted and for refused calls", function()
    for on_outage, expected in pairs { open = { 0, 0, 2, 0 }, closed = { 0, 0, 0, 2 } } do
      local store = redis.start { arguments = keeps() }
      local gate = gate_on(store:url(), ("return { ledger = { on_outage = '%s' } }"):format(on_outage))
      store:kill()
      process.eventually("Redis is down", function() return not ledger_of(gate).connected end)
      for i = 1, 2 do gate:connect():calls("echo", { text = "n" .. i }, session "s") end
      local ledger = ledger_of(gate)
      assert.same(expected, { ledger.by_redis, ledger.by_stand_in, ledger.uncounted, ledger.refused })
      assert.same({ redis = 0, ["local"] = 0, none = 2 }, gate:status().counters.ledger)
      gate:stop()
    end
  end)
end)

describe("an unreachable Redis", function()
  it("is in the status with the reason and the fix", function()
    local gate = gate_on("unix:/nowhere/redis.sock")
    golden.check("cli", "status: Redis was never there", status_of(gate):match "ledger: .-connections", VARIABLE)
  end)

  it("is retried with a pause that doubles up to a second, with jitter", function()
    local fleet, pauses = {}, { {}, {} }
    for i = 1, 2 do
      fleet[i] = gate_on("unix:/nowhere/redis.sock", "return { log = { level = 'debug' } }")
    end
    for i, gate in ipairs(fleet) do
      gate:logs "redis_reconnect_delayed failures=8 "
      for failures, ms in gate:log():gmatch "redis_reconnect_delayed failures=(%d+) ms=(%d+)" do
        local mean = math.min(20 * 2 ^ (failures - 1), 1000)
        assert.truthy(tonumber(ms) >= mean / 2 and tonumber(ms) <= mean * 1.5, failures .. ": " .. ms)
        if #pauses[i] < 8 then table.insert(pauses[i], ms) end
      end
    end
    assert.not_same(pauses[1], pauses[2])
  end)

  it("is logged again for another reason, and not for the same", function()
    local store = redis.start { port = true, password = "new" }
    local gate = gate_on("redis://:old@127.0.0.1:" .. store.port, "return { log = { level = 'debug' } }")
    assert.truthy(gate:logs("error redis_down"):find("WRONGPASS", 1, true))
    gate:logs "redis_reconnect_delayed failures=4 "
    store:kill()
    golden.check("log", "Redis: connection refused", gate:logs("Connection refused"))
    assert.equal(2, select(2, gate:log():gsub("error redis_down", "")))
  end)

  it("with many short outages is logged a few times, and the rest are counted", function()
    local store = redis.start()
    local gate = gate_on(store:url())
    local client = gate:connect()
    local function ledger() return client:asks("toolgate/status").ledger end
    for i = 1, 20 do
      client:calls("echo", { text = "n" .. i }, session "s") -- a connection that answered is retried soon
      store:does("CLIENT", "KILL", "TYPE", "normal")
      process.eventually("Redis is up", function() return ledger().connects == i + 1 end)
    end
    assert.equal(20, ledger().outages)
    local told = select(2, gate:log():gsub("error redis_down", ""))
    assert.truthy(told >= 5 and told <= 10, told)
    process.eventually("the end of each is logged", function()
      return select(2, gate:log():gsub("info redis_up", "")) == told
    end)
    assert.equal(1, select(2, gate:log():gsub("info redis_connected", "")))
  end)
end)

describe("a Redis", function()
  local function through_proxy(change)
    return proxies.start(redis.start { arguments = keeps() }, 1, { [change] = 1 }, 1):url(1)
  end

  it("without libraries causes a warning, and works", function()
    local gate = gate_on(through_proxy "old")
    local warnings = warnings_of(gate)
    assert.equal(1, #warnings)
    golden.check("log", "Redis: version 6", warnings[1], { ["redis 6%.[%d.]+"] = "redis <version>" })
    local client = gate:connect()
    process.eventually("a call reaches it", function()
      return client_of.verdict(client:calls("echo", { text = process.now() .. "" }, session "s")).ledger == "redis"
    end)
  end)

  it("too old for the scripts is reported, and not used", function()
    local gate = gate_on(through_proxy "ancient")
    golden.check("log", "Redis: older than version 6", gate:logs("redis_down"), VARIABLE)
    assert.equal("local", client_of.verdict(gate:connect():calls("echo", { text = "a" }, session "s")).ledger)
  end)

  it("with slow writes causes a warning before calls time out", function()
    local gate = gate_on(through_proxy "slow", "return { ledger = { timeout_ms = 100 } }")
    local warnings = ledger_of(gate).warnings
    assert.equal(1, #warnings)
    golden.check("log", "Redis: a slow write", warnings[1], { ["%d+%.%d ms"] = "<duration>" })
  end)
end)
