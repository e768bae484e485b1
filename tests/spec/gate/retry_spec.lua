-- What fails for the moment is tried again by toolgate itself, where the policy says so and where it does no harm.
local daemon = require "daemon"
local golden = require "golden"
local client_of = require "client"
local http_server = require "http_server"
local process = require "process"
local text, verdict, session = client_of.text, client_of.verdict, client_of.session

describe("a call that fails for the moment", function()
  local gate, client, notes

  local function serves(policies, defaults)
    notes = process.directory() .. "/notes"
    gate = daemon.start { policies = policies, config = ([[
return { defaults = { %s },
         upstreams = { plain = { command = "luajit", args = { "%s/tests/support/plain_server.lua" },
                                 env = { NOTES = "%s" } } } }
]]):format(defaults or "", daemon.root, notes) }
    client = gate:connect()
  end
  after_each(daemon.stop_all)

  local function noted(word)
    return select(2, process.read(notes):gsub(word .. "\n", ""))
  end

  local function policy(name, fields)
    return { [name .. ".lua"] = ('-- %s: for specs.\nreturn tool "%s" { description = "For specs.", %s }\n'):format(name, name,
                                                                                                               fields) }
  end

  it("is tried again until it succeeds, and the model is told", function()
    serves(policy("recovers", 'retry = { again = { times = 3, backoff = "10ms", within = "30s" } }'))
    local result = client:calls("recovers", { times = 2 }, session "s")
    assert.same({ "pass", 3, 1 }, { verdict(result).verdict, verdict(result).tries, verdict(result).attempt })
    golden.check("feedback", "retry: passed after three tries", text(result))
    assert.equal(3, noted "recovers")
  end)

  it("is one call to budgets and to the session's history", function()
    serves(policy("recovers", 'retry = { again = { times = 3, backoff = "10ms", within = "30s" } }, '
                              .. 'limits = { calls_per_session = 2 }'))
    assert.equal(3, verdict(client:calls("recovers", { times = 2 }, session "s")).tries)
    assert.equal(1, #client:asks("toolgate/session", { session = "s" }).history)
    assert.equal("pass", verdict(client:calls("recovers", { times = 1 }, session "s")).verdict)
    assert.equal("calls_per_session", verdict(client:calls("recovers", { times = 0 }, session "s")).code)
  end)

  it("is tried as often as the policy says, and then told", function()
    serves(policy("recovers", 'retry = { again = { times = 2, backoff = "10ms", within = "30s" } }'))
    local result = client:calls("recovers", { times = 9 }, session "s")
    assert.same({ "wait", "transient", 3 }, { verdict(result).verdict, verdict(result).error_class, verdict(result).tries })
    golden.check("feedback", "retry: failed three times", text(result))
    assert.equal(3, noted "recovers")
  end)

  it("is tried again as the configuration says of all tools, unless its policy says otherwise", function()
    local policies = {}
    for name, fields in pairs { reads = 'effects = "read",', writes = 'effects = "write", idempotent = false,',
                                never = 'effects = "read", retry = { again = false },',
                                once = 'effects = "read", retry = { again = { times = 1 } },' } do
      policies[name .. ".lua"] = policy(name, fields .. ' schema = params { times = int "How often it fails" }, '
                                              .. 'upstream = "plain/recovers"')[name .. ".lua"]
    end
    serves(policies, 'retry = { again = { times = 2, backoff = "10ms", within = 30 } }')
    -- The server counts all calls, and fails those up to the number it is told.
    local function tries(name, times) return verdict(client:calls(name, { times = times }, session(name))).tries or 1 end
    assert.same({ 3, 1, 2, 1 }, { tries("reads", 2), tries("never", 9), tries("once", 5), tries("writes", 9) })
    assert.equal(7, noted "recovers")
  end)

  it("is configured with the same bounds as in a policy", function()
    local words = daemon.fails { config = [[
return { defaults = { retry = { again = { times = 9, backof = 1, within = "2h" } } } }]] }
    for _, field in ipairs { "times", "backof", "within" } do
      assert.truthy(words:find("defaults.retry.again." .. field, 1, true), words)
    end
    golden.check("load", "configuration: bounds of retry.again", words)
  end)

  it("is not tried later than the policy allows", function()
    serves(policy("recovers", 'retry = { again = { times = 5, backoff = "2s", within = "100ms" } }'))
    assert.is_nil(verdict(client:calls("recovers", { times = 9 }, session "s")).tries)
    assert.equal(1, noted "recovers")
  end)

  it("waits twice as long each time, and not as long as others do", function()
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

  it("is told at once where no policy wants it tried again", function()
    serves {}
    assert.equal("transient", verdict(client:calls("recovers", { times = 1 }, session "s")).error_class)
    assert.equal(1, noted "recovers")
  end)

  it("is told at once where it may have been carried out and may not be twice", function()
    serves(policy("dies", 'retry = { again = true }'))
    assert.is_nil(verdict(client:calls("dies", {}, session "s")).tries)
    assert.equal(1, noted "dies")
  end)

  it("is told at once where the operator says that twice is too often, whatever the tool says of itself", function()
    serves(policy("recovers", 'retry = { again = { backoff = "10ms" } }, idempotent = false'))
    assert.is_nil(verdict(client:calls("recovers", { times = 1 }, session "s")).tries)
  end)

  it("is told at once in shadow mode", function()
    serves(policy("recovers", 'mode = "shadow", retry = { again = { backoff = "10ms" } }'))
    assert.is_nil(verdict(client:calls("recovers", { times = 1 }, session "s")).tries)
  end)

  it("may be one that is written in Lua, or one whose result says so", function()
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

  it("is not tried again once its client has cancelled it", function()
    serves(policy("recovers", 'retry = { again = { times = 5, backoff = "20s", within = "60s" } }'))
    client:say { jsonrpc = "2.0", id = 1, method = "tools/call", params = { name = "recovers", arguments = { times = 9 } } }
    process.eventually("it has failed once", function() return gate:status().upstreams[1].failures == 1 end)
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = 1 } }
    client:hears_only_a_ping()
    assert.equal(1, noted "recovers")
  end)
end)

describe("a request that fails for the moment", function()
  local server

  after_each(function()
    daemon.stop_all()
    http_server.stop_all()
  end)

  -- Answers 503 twice, then 200; what a call of it says, and how often the server was asked.
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

  it("is tried again where it gets", function()
    local result, seen = asks "GET SERVER/"
    assert.same({ "pass", 3, 3 }, { verdict(result).verdict, verdict(result).tries, seen })
  end)

  it("is not where it posts: the first may have been carried out", function()
    local result, seen = asks "POST SERVER/"
    assert.same({ "transient", 1 }, { verdict(result).error_class, seen })
    assert.is_nil(verdict(result).tries)
    golden.check("feedback", "retry: HTTP POST that may have been carried out", text(result))
  end)

  it("is where posting twice is declared to be as good as once", function()
    local result, seen = asks("POST SERVER/", "idempotent = true")
    assert.same({ "pass", 2, 2 }, { verdict(result).verdict, verdict(result).tries, seen })
  end)

  it("is tried again whatever it does where the server was surely not reached", function()
    local result = asks "POST http://127.0.0.1:1/"
    assert.same({ "transient", 3 }, { verdict(result).error_class, verdict(result).tries })
    golden.check("feedback", "retry: HTTP POST that never reached the server", text(result))
  end)
end)

describe("a command that dies", function()
  after_each(daemon.stop_all)

  it("is run again where it only reads", function()
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
