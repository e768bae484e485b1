-- What is stored of a session is damaged, somebody else's, or of a newer toolgate: that session is reported and counted
-- locally, its value stays as it is, and other sessions notice nothing.
local redis = require "redis"

local POLICIES = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task }
local PATIENT = "return { ledger = { timeout_ms = 5000%s } }" -- a busy machine is not an outage
local OLDER, NEWER = 6, 8 -- the first byte: the format

describe("a stored session", function()
  local store, gates, clients, count

  local function begin(daemons, more)
    store, gates, clients, count = redis.start(), {}, {}, 0
    for i = 1, daemons or 1 do
      gates[i] = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() }, tools = fixtures.agent_tools,
                                config = PATIENT:format(more or "") }
      clients[i] = gates[i]:connect()
    end
  end

  local function echo(i, name)
    count = count + 1
    return verdict(clients[i or 1]:calls("echo", { text = "n" .. count }, session(name or "s", { turn = 1 })))
  end

  -- The key of the session's state; other sessions must not have begun yet.
  local function core()
    local found
    for _, key in ipairs(store:keys()) do
      if key:find("}s", 1, true) then found = key end
    end
    return assert(found, "no session is stored")
  end

  local function logged(i, event) return select(2, gates[i]:log():gsub(" " .. event .. " ", "")) end

  -- `change(value)` is what somebody wrote in place of it. Returns that.
  local function damage(change)
    echo()
    local key = core()
    local value = change(store:does("GET", key))
    store:does("SET", key, value)
    return key, value
  end

  local KINDS = {
    { "garbage", function() return "\0somebody else's value" end },
    { "text", function() return "somebody else's value" end, "ledger_format_newer" }, -- by its first byte
    { "empty but for its format", function(value) return value:sub(1, 1) end },
    { "full of ones", function(value) return value:sub(1, 1) .. ("\255"):rep(#value - 1) end },
    { "of a newer format", function(value) return string.char(NEWER) .. value:sub(2) end, "ledger_format_newer" },
    { "truncated", function(value) return value:sub(1, #value - 5) end, keeps_version = true },
    { "longer than any session", function(value) return value .. ("x"):rep(20000) end, keeps_version = true },
  }

  for _, kind in ipairs(KINDS) do
    local what, change, event = kind[1], kind[2], kind[3] or "ledger_value_unreadable"
    it("that is " .. what .. " is reported, counted locally and left as it is", function()
      begin(2)
      local key, value = damage(change)
      echo(1, "another")
      -- The second daemon reads it; the first knows the session, and its commit meets the value if its version differs.
      for i = kind.keeps_version and 2 or 1, 2 do
        for _ = 1, 3 do assert.equal("local", echo(i).ledger) end
        assert.truthy(logged(i, event) >= 1, gates[i]:log())
        golden.check("log", "ledger: a stored session is " .. (event == "ledger_format_newer" and "newer" or "damaged"),
                     gates[i]:logs(" " .. event .. " "), { ['key="?tg2:{[%w_-]+}"?'] = "key=<key>" })
      end
      assert.equal(value, store:does("GET", key))
      for i = 1, 2 do assert.equal("redis", echo(i, "another").ledger) end
      assert.equal(3, clients[1]:asks("toolgate/session", { session = "another" }).budgets.calls)
      for i = 1, 2 do assert.is_true(gates[i]:status().ledger.connected) end
    end)
  end

  it("that an older toolgate wrote begins anew", function()
    begin(2)
    damage(function(value) return string.char(OLDER) .. value:sub(2) end)
    assert.equal("redis", echo(2).ledger)
    assert.equal("redis", echo(1).ledger)
    assert.equal(2, clients[1]:asks("toolgate/session", { session = "s" }).budgets.calls)
    for i = 1, 2 do assert.equal(0, logged(i, "ledger_value_unreadable")) end
  end)

  it("that cannot be read still has loops and budgets, of this daemon alone", function()
    begin()
    damage(function() return "garbage" end)
    local said = {}
    for i = 1, 5 do said[i] = verdict(clients[1]:calls("echo", { text = "same" }, session("s", { turn = 1 }))).verdict end
    assert.same({ "pass", "pass", "refuse", "refuse", "halt" }, said)
  end)

  it("that cannot be read is not counted locally while Redis is down, where on_outage is closed", function()
    begin(1, ", on_outage = 'closed'")
    damage(function() return "garbage" end)
    assert.equal("local", echo().ledger)
    store:kill()
    gates[1]:loses_redis()
    assert.equal("ledger_unavailable", echo().code)
    store:start_again()
    process.eventually("Redis is up", function() return gates[1]:status().ledger.connected end)
    assert.equal("local", echo().ledger)
  end)

  it("that cannot be read is logged a few times, however often it is called", function()
    begin()
    damage(function() return "garbage" end)
    for _ = 1, 50 do echo() end
    assert.truthy(logged(1, "ledger_value_unreadable") <= 10, gates[1]:log())
  end)

  it("that cannot be read is begun anew after its key is deleted and the daemon restarted", function()
    begin()
    local key = damage(function() return "garbage" end)
    assert.equal("local", echo().ledger)
    store:does("DEL", key)
    gates[1]:stop()
    gates[1] = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() }, config = PATIENT:format "" }
    clients[1] = gates[1]:connect()
    assert.equal("redis", echo().ledger)
    assert.equal(1, clients[1]:asks("toolgate/session", { session = "s" }).budgets.calls)
  end)

  it("that cannot be read can be forgotten", function()
    begin()
    local key = damage(function() return "garbage" end)
    assert.equal("local", echo().ledger)
    assert.is_true(clients[1]:asks("toolgate/session", { session = "s", forget = true }).forgotten)
    assert.equal(0, store:does("EXISTS", key))
    assert.equal("redis", echo().ledger)
  end)

  it("whose other parts are damaged keeps its budgets", function()
    begin()
    local function files() return verdict(clients[1]:calls("create_task", { title = "t" }, session("s", { turn = 1 }))) end
    files()
    for _, key in ipairs(store:keys()) do
      if not key:find("}s", 1, true) then
        store:does("DEL", key)
        store:does("SET", key, "garbage")
      end
    end
    gates[1]:stop()
    gates[1] = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() }, config = PATIENT:format "" }
    clients[1] = gates[1]:connect()
    local answers = {}
    for i = 1, 2 do answers[i] = files().verdict end
    assert.truthy(answers[2] == "refuse" or answers[1] == "refuse", table.concat(answers, ", "))
  end)

  it("of version 1 is left alone and never read", function()
    begin()
    store:does("SET", "tg1:{AAAAAAAAAAAAAAAAAAAAAA}:s", "version 1")
    assert.equal("redis", echo().ledger)
    assert.equal("version 1", store:does("GET", "tg1:{AAAAAAAAAAAAAAAAAAAAAA}:s"))
    assert.equal(1, clients[1]:asks("toolgate/session", { session = "s" }).budgets.calls)
  end)
end)
