-- Peers that are not Redis or that misbehave: the daemon survives, uses little memory, and logs the error.
local redis = require "redis"

local POLICIES = { ["echo.lua"] = fixtures.echo }
local HWM_KB = 500000 -- a regression used 2 GB; sanitizers need half of this

describe("in place of Redis,", function()
  local pretenders, port, gate, client, count = {}

  after_each(function()
    for _, one in ipairs(pretenders) do
      one.child:signal(9)
      pcall(one.child.wait, one.child)
      process.remove(one.directory)
    end
    pretenders = {}
  end)

  -- Returns what it has printed.
  local function pretends(says)
    local directory = process.directory()
    local out = directory .. "/out"
    local child = process.start({ "python3", daemon.root .. "/tests/support/not_redis.py", says.first or "",
                                  says.runs or "", says.forever or "", tostring(says.delay or 0) },
                                { stdin = "/dev/null", stdout = out, stderr = directory .. "/err" })
    table.insert(pretenders, { child = child, directory = directory })
    port = process.eventually("it listens", function() return process.read(out):match "^%d+" end)
    return function() return process.read(out) end
  end

  local function begin(says, config)
    pretends(says)
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", "redis://127.0.0.1:" .. port }, config = config }
    client = gate:connect()
    count = 0
  end

  local function echo()
    count = count + 1
    return verdict(client:calls("echo", { text = "n" .. count }, session("s", { turn = 1 })))
  end

  local function is_small()
    local kb = tonumber(process.read("/proc/" .. gate:pid() .. "/status"):match "VmHWM:%s*(%d+)")
    assert.truthy(kb < HWM_KB, kb .. " kB")
  end

  for what, case in pairs {
    ["a web server"] = { first = [[HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n]],
          why = "is no Redis: Protocol error, got" },
    ["a server that talks first"] = { first = [[+OK\r\n]], forever = [[+OK\r\n]], why = "is no Redis" },
    ["an endless list"] = { first = [[*2147483646\r\n]], forever = [[:1\r\n]],
          why = "nobody asked for, or too much of it" },
    ["an endless string"] = { first = [[$536870912\r\n]], forever = ("x"):rep(4096),
          why = "nobody asked for, or too much of it" },
    ["a deeply nested list"] = { first = ([[*1\r\n]]):rep(64), why = "is no Redis" },
  } do
    it(what .. " is reported as an outage, and the daemon stays small", function()
      begin(case)
      for _ = 1, 3 do assert.equal("local", echo().ledger) end
      assert.truthy(gate:logs("redis_down"):find(case.why, 1, true), gate:log())
      is_small()
    end)
  end

  it("a server with more replies than requests is an outage after the requested reply", function()
    begin({ runs = [[$3\r\nabc\r\n+OK\r\n+OK\r\n]] }, "return { ledger = { timeout_ms = 5000 } }")
    for _ = 1, 5 do assert.truthy(echo().verdict) end
    golden.check("log", "Redis: an answer that nobody asked for", gate:logs("redis_down"))
  end)

  -- Its handshake takes longer than an answer may.
  it("a node of a cluster that is slow to connect to is connected to all the same", function()
    local printed = pretends { runs = [[:1\r\n]], delay = 0.05 }
    begin({ runs = ([[-MOVED 1 127.0.0.1:%s\r\n]]):format(port) }, "return { ledger = { timeout_ms = 200 } }")
    process.eventually("a commit reaches it", function()
      echo()
      return printed():find("fcall", 1, true)
    end)
  end)

  it("a server that takes no more clients is an outage for the reason that it gives", function()
    local store = redis.start()
    store:does("CONFIG", "SET", "maxclients", "1")
    local only = store:stream()
    only:send "PING\r\n"
    assert.equal("+PONG", only:receive "*l")
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", store:url() } }
    assert.truthy(gate:logs("redis_down"):find("max number of clients reached", 1, true), gate:log())
    only:send "CONFIG SET maxclients 100\r\n"
    process.eventually("it is connected", function() return gate:status().ledger.connected end)
    only:close()
  end)

  describe("a password", function()
    local function shows_none(url)
      gate = daemon.start { policies = POLICIES, arguments = { "--redis", url } }
      local status = gate:status()
      assert.truthy(status.ledger.why_away:find("ERR ", 1, true), status.ledger.why_away)
      for _, shown in ipairs { gate:log(), client_of.json.encode(status) } do
        assert.is_nil(shown:find("hidden", 1, true), shown)
      end
    end

    it("is not shown if the server repeats it", function()
      pretends { first = [[-ERR I was told hidden-word, and hidden-word again\r\n]] }
      shows_none("redis://gate:hidden-word@127.0.0.1:" .. port)
      golden.check("log", "Redis: the password is masked", gate:logs "AUTH: ERR")
    end)

    it("is not shown if a Redis without AUTH repeats its arguments truncated", function()
      local store = redis.start { port = true, arguments = { "--rename-command", "AUTH", "" } }
      shows_none(("redis://gate:%s@127.0.0.1:%d"):format(("hidden"):rep(40), store.port))
      golden.check("log", "Redis: it has no AUTH", gate:logs "it has no AUTH")
    end)

    it("of a sentinel is not shown", function()
      pretends { first = [[-ERR unknown command `AUTH`, with args beginning with: `hidden`\r\n-ERR I was told hidden\r\n]] }
      shows_none(("sentinel://127.0.0.1:%s/cache?sentinels=:hidden-word"):format(port))
    end)
  end)

  it("a sentinel that announces names leads to a master by its name", function()
    local master = redis.start { port = true }
    local name = ("0"):rep(60) .. "177.0.0.1" -- the resolver reads it as 127.0.0.1, without asking another
    pretends { first = ([[*2\r\n$%d\r\n%s\r\n$%d\r\n%d\r\n]]):format(#name, name, #tostring(master.port), master.port) }
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", ("sentinel://127.0.0.1:%s/cache"):format(port) } }
    process.eventually("it is connected", function() return gate:status().ledger.connected end)
    assert.equal("127.0.0.1:" .. master.port, gate:status().ledger.master.address)
  end)

  it("a sentinel with malformed messages loses only its own connection", function()
    local master = redis.start { port = true }
    pretends { first = ([[*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%d\r\n]]):format(#tostring(master.port), master.port),
               forever = [[*1\r\n+message\r\n]] }
    gate = daemon.start { policies = POLICIES, arguments = { "--redis", ("sentinel://127.0.0.1:%s/cache"):format(port) } }
    client, count = gate:connect(), 0
    for _ = 1, 5 do assert.truthy(echo().verdict) end
  end)
end)
