-- toolgate retries a transient failure itself if the policy allows it and a second run does no harm.
local http_server = require "http_server"

describe("a transient failure", function()
  local gate, client, notes

  local function serves(policies, defaults)
    notes = process.directory() .. "/notes"
    gate, client = daemon.open { policies = policies, config = ([[
return { defaults = { %s },
         upstreams = { plain = { command = "luajit", args = { "%s/tests/support/plain_server.lua" },
                                 env = { NOTES = "%s" } } } }
]]):format(defaults or "", daemon.root, notes) }
  end

  local function noted(word)
    return select(2, process.read(notes):gsub(word .. "\n", ""))
  end

  local function policy(name, fields)
    return { [name .. ".lua"] = ('-- %s: for specs.\nreturn tool "%s" { description = "For specs.", %s }\n'):format(name, name,
                                                                                                               fields) }
  end

  it("is retried until it succeeds, and the feedback counts the tries", function()
    serves(policy("recovers", 'retry = { again = { times = 3, backoff = "10ms", within = "30s" } }'))
    local result = client:calls("recovers", { times = 2 }, session "s")
    assert.same({ "pass", 3, 1 }, { verdict(result).verdict, verdict(result).tries, verdict(result).attempt })
    golden.check("feedback", "retry: passed after three tries", text(result))
    assert.equal(3, noted "recovers")
  end)

  it("counts as one call in budgets and history", function()
    serves(policy("recovers", 'retry = { again = { times = 3, backoff = "10ms", within = "30s" } }, '
                              .. 'limits = { calls_per_session = 2 }'))
    assert.equal(3, verdict(client:calls("recovers", { times = 2 }, session "s")).tries)
    assert.equal(1, #client:asks("toolgate/session", { session = "s" }).history)
    assert.equal("pass", verdict(client:calls("recovers", { times = 1 }, session "s")).verdict)
    assert.equal("calls_per_session", verdict(client:calls("recovers", { times = 0 }, session "s")).code)
  end)

  it("is reported after as many tries as the policy allows", function()
    serves(policy("recovers", 'retry = { again = { times = 2, backoff = "10ms", within = "30s" } }'))
    local result = client:calls("recovers", { times = 9 }, session "s")
    assert.same({ "wait", "transient", 3 }, { verdict(result).verdict, verdict(result).error_class, verdict(result).tries })
    golden.check("feedback", "retry: failed three times", text(result))
    assert.equal(3, noted "recovers")
  end)

  it("is retried by the configuration's defaults unless the policy overrides them", function()
    local policies = {}
    for name, fields in pairs { reads = 'effects = "read",', writes = 'effects = "write", idempotent = false,',
                                never = 'effects = "read", retry = { again = false },',
                                once = 'effects = "read", retry = { again = { times = 1 } },' } do
      policies[name .. ".lua"] = policy(name, fields .. ' schema = params { times = int "How often it fails" }, '
                                              .. 'upstream = "plain/recovers"')[name .. ".lua"]
    end
    serves(policies, 'retry = { again = { times = 2, backoff = "10ms", within = 30 } }')
    -- The server counts all calls, and fails those up to the number in `times`.
    local function tries(name, times) return verdict(client:calls(name, { times = times }, session(name))).tries or 1 end
    assert.same({ 3, 1, 2, 1 }, { tries("reads", 2), tries("never", 9), tries("once", 5), tries("writes", 9) })
    assert.equal(7, noted "recovers")
  end)

  it("has the same bounds in the configuration as in a policy", function()
    local words = daemon.fails { config = [[
return { defaults = { retry = { again = { times = 9, backof = 1, within = "2h" } } } }]] }
    for _, field in ipairs { "times", "backof", "within" } do
      assert.truthy(words:find("defaults.retry.again." .. field, 1, true), words)
    end
    golden.check("load", "configuration: bounds of retry.again", words)
  end)

  it("is not retried after the policy's time limit", function()
    serves(policy("recovers", 'retry = { again = { times = 5, backoff = "100ms", within = "100ms" } }'))
    client:calls("recovers", { times = 9 }, session "s")
    assert.truthy(noted "recovers" <= 2) -- the first pause may be shorter than 100 ms, the second is not
  end)

  it("doubles the pause at each retry, with jitter", function()
    serves(policy("slips", 'effects = "read", schema = json [[{"type":"object"}]], '
                           .. 'run = function() return transient "not yet" end, '
                           .. 'retry = { again = { times = 3, backoff = "16ms", within = "30s" } }'))
    local pauses, seen = {}, {}
    for call = 1, 12 do client:calls("slips", { n = call }, session("s" .. call)) end
    for tries, pause in gate:log():gmatch "call_retry tool=slips.- tries=(%d) pause_ms=(%d+)" do
      pauses[#pauses + 1] = tonumber(pause)
      local least = 16 * 2 ^ (tries - 1) * 3 / 4
      assert.truthy(tonumber(pause) >= least and tonumber(pause) <= least / 3 * 5, tries .. ": " .. pause)
      if tries == "3" then seen[pause] = true end
    end
    assert.equal(36, #pauses)
    assert.truthy(next(seen, (next(seen))), "all have waited the same")
  end)

  it("takes no longer than the policy allows, all tries together", function()
    serves(policy("hangs_on", 'retry = { again = { times = 2, backoff = "10ms", within = "500ms" } }'))
    local result = client:calls("hangs_on", {}, session "s") -- the server alone would have a minute
    assert.same({ "transient", "timeout", 2 }, { verdict(result).error_class, verdict(result).code, verdict(result).tries })
    assert.equal(2, noted "hangs_on")
  end)

  it("is reported at once if no policy allows a retry", function()
    serves {}
    assert.equal("transient", verdict(client:calls("recovers", { times = 1 }, session "s")).error_class)
    assert.equal(1, noted "recovers")
  end)

  it("is reported at once if the call may have run and must not run twice", function()
    serves(policy("dies", 'retry = { again = true }'))
    assert.is_nil(verdict(client:calls("dies", {}, session "s")).tries)
    assert.equal(1, noted "dies")
  end)

  it("is reported at once if the policy declares idempotent = false, against the tool's own annotation", function()
    serves(policy("recovers", 'retry = { again = { backoff = "10ms" } }, idempotent = false'))
    assert.is_nil(verdict(client:calls("recovers", { times = 1 }, session "s")).tries)
  end)

  it("is reported at once in shadow mode", function()
    serves(policy("recovers", 'mode = "shadow", retry = { again = { backoff = "10ms" } }'))
    assert.is_nil(verdict(client:calls("recovers", { times = 1 }, session "s")).tries)
  end)

  it("is retried if a Lua tool or a result hook reports it", function()
    local files = policy("tries", [[effects = "read", retry = { again = { times = 2, backoff = "1ms" } },
      schema = params { where = str "Where it fails" },
      run = function(args, call)
        call.log("info", "try")
        return args.where == "run" and transient "not yet" or { ready = false }
      end,
      result = function(result) if not result.ready then return transient "not ready" end end]])
    serves(files)
    for i, where in ipairs { "run", "result" } do
      client.notices = nil
      local result = client:calls("tries", { where = where }, session("s" .. i))
      assert.same({ "transient", 3, 3 }, { verdict(result).error_class, verdict(result).tries, #client.notices })
    end
  end)

  it("is not retried after the client has cancelled the call", function()
    serves(policy("recovers", 'retry = { again = { times = 5, backoff = "20s", within = "60s" } }'))
    client:begins(1, "recovers", { times = 9 })
    process.eventually("it has failed once", function() return gate:status().upstreams[1].failures == 1 end)
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = 1 } }
    client:hears_only_a_ping()
    assert.equal(1, noted "recovers")
  end)
end)

describe("an HTTP request that fails with a transient error", function()
  local server

  -- The server answers 503 twice, then 200. Returns the result and the number of requests.
  local function asks(http, fields)
    server = http_server.start { routes = { ["GET /"] = { { status = 503 }, { status = 503 }, { body = { found = 1 } } },
                                            ["POST /"] = { { status = 503 }, { body = { made = 1 } } } } }
    local gate = daemon.start { policies = { ["asks.lua"] = ([[
-- asks: for specs.
return tool "asks" { description = "For specs.", http = "%s", schema = json '{"type":"object"}',
                     retry = { again = { times = 2, backoff = "10ms", within = "30s" } }, %s }
]]):format(http:gsub("SERVER", server.address), fields or "") } }
    return gate:connect():calls("asks", {}, session "s"), #server:saw()
  end

  it("is retried if it is a GET", function()
    local result, seen = asks "GET SERVER/"
    assert.same({ "pass", 3, 3 }, { verdict(result).verdict, verdict(result).tries, seen })
  end)

  it("is not retried if it is a POST, which may have been carried out", function()
    local result, seen = asks "POST SERVER/"
    assert.same({ "transient", 1 }, { verdict(result).error_class, seen })
    assert.is_nil(verdict(result).tries)
    golden.check("feedback", "retry: HTTP POST that may have been carried out", text(result))
  end)

  it("is retried if it is a POST declared idempotent", function()
    local result, seen = asks("POST SERVER/", "idempotent = true")
    assert.same({ "pass", 2, 2 }, { verdict(result).verdict, verdict(result).tries, seen })
  end)

  it("is retried with any method if the server was never reached", function()
    local result = asks "POST http://127.0.0.1:1/"
    assert.same({ "transient", 3 }, { verdict(result).error_class, verdict(result).tries })
    golden.check("feedback", "retry: HTTP POST that never reached the server", text(result))
  end)
end)

describe("a command that is killed by a signal", function()
  it("is run again if the tool only reads", function()
    local gate = daemon.start { policies = { ["looks.lua"] = [[
-- looks: for specs.
return tool "looks" { description = "For specs.", effects = "read", schema = json '{"type":"object"}',
                      retry = { again = { times = 2, backoff = "10ms", within = "30s" } },
                      exec = { "sh", "-c", "echo >> looked; test $(wc -l < looked) -gt 2 || kill -9 $$; echo seen",
                               cwd = "]] .. process.directory() .. [[" } }
]] } }
    local result = gate:connect():calls("looks", {}, session "s")
    assert.same({ "pass", 3 }, { verdict(result).verdict, verdict(result).tries })
    assert.truthy(text(result):find("seen", 1, true), text(result))
  end)
end)
