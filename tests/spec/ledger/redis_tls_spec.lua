-- Redis behind TLS, with the stunnel configuration of docs/scaling.md.
local stunnel = require "stunnel"

describe("a Redis behind TLS", function()
  if not stunnel.program() then
    pending "needs stunnel: apt-get install stunnel4"
    return
  end

  local function gate_on(url)
    return daemon.start { policies = { ["echo.lua"] = fixtures.echo }, arguments = { "--redis", url } }
  end

  -- A handshake takes longer than the daemon waits for Redis at its start, if the machine is busy.
  local function connected(gate)
    process.eventually("Redis is reached", function() return gate:status().ledger.connected end)
    return gate
  end

  it("is used through the documented stunnel", function()
    local store = stunnel.redis()
    local gate = connected(gate_on(stunnel.start(store)))
    local client = gate:connect()
    local said = {}
    for i = 1, 3 do
      local heard = verdict(client:calls("echo", { text = "same" }, session("s", { turn = 1 })))
      said[i] = heard.verdict .. " by " .. heard.ledger
    end
    assert.same({ "pass by redis", "pass by redis", "refuse by redis" }, said)
    assert.truthy(#store:keys() > 0)
  end)

  it("that restarts is an outage, as without TLS", function()
    local store = stunnel.redis()
    store:does("CONFIG", "SET", "appendfsync", "always") -- with `everysec` a busy disk may lose a second of writes
    local gate = connected(gate_on(stunnel.start(store)))
    local client = gate:connect()
    client:calls("echo", { text = "a" }, session "s")
    store:kill()
    gate:loses_redis()
    assert.equal("local", verdict(client:calls("echo", { text = "b" }, session "s")).ledger)
    store:start_again()
    gate:has_merged()
    assert.equal(2, client:asks("toolgate/session", { session = "s" }).budgets.calls)
  end)

  -- If stunnel rejects the certificate, the daemon sees an outage and sends nothing.
  local function is_turned_away(store, url, log, words)
    local gate = gate_on(url)
    assert.equal("local", verdict(gate:connect():calls("echo", { text = "a" }, session "s")).ledger)
    local ledger = gate:status().ledger
    assert.is_false(ledger.connected)
    assert.truthy(gate:logs("redis_down"):find("address=" .. url, 1, true))
    assert.equal(0, ledger.connects)
    process.eventually("stunnel's log says why", function() return log():find(words, 1, true) end)
    assert.same({}, store:keys())
  end

  it("is rejected with another host's certificate", function()
    local store = stunnel.redis "somebody.else"
    local url, log = stunnel.start(store)
    is_turned_away(store, url, log, "Subject checks failed")
  end)

  it("that requires a client certificate gets the stunnel's", function()
    local store = stunnel.redis(nil, "asks")
    local gate = connected(gate_on((stunnel.start(store, nil, "shows"))))
    assert.equal("redis", verdict(gate:connect():calls("echo", { text = "a" }, session "s")).ledger)
    gate:stop()
    gate = gate_on((stunnel.start(store)))
    assert.equal("local", verdict(gate:connect():calls("echo", { text = "a" }, session "s")).ledger)
  end)

  it("is rejected with a certificate of another authority", function()
    local store, other = stunnel.redis(), stunnel.redis()
    local url, log = stunnel.start(store, other.certificates .. "/ca.pem")
    is_turned_away(store, url, log, "Pre-verification error")
  end)
end)
