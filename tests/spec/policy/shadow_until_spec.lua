-- Mode "shadow" with an end: a date that cannot be read is refused, and one that has come is said everywhere, while
-- nothing is enforced that was not.
local clocks = require "clock"

local FUTURE, PAST = "9999-12-31", "2026-01-31"

local function policy(fields)
  return ([[
return tool "pay" {
  description = "Pays.", schema = params { amount = int "Cents" }, effects = "write",
  %s
  run = function(args) return { paid = args.amount } end,
  examples = { { "an amount", args = { amount = 1 }, gives = "pass" } },
}]]):format(fields)
end

local function overlay(date)
  return ([[
return policy {
  tools = { "pay" }, mode = "shadow", shadow_until = "%s",
  check = function(args) if args.amount > 100 then return refuse("much", "Too much.", "Pay less.") end end,
  examples = { { "much", tool = "pay", args = { amount = 101 }, gives = "refuse much" } },
}]]):format(date)
end

describe("shadow_until", function()
  local folder

  before_each(function() folder = process.directory() end)

  -- Writes the files, and runs a command on them.
  local function run(files, ...)
    process.run { "mkdir", "-p", folder .. "/policies" }
    for name, text in pairs(files) do process.write(folder .. "/" .. name, text) end
    return process.run { daemon.binary, ... }
  end

  local function fails_to_load(fields, ...)
    local code, _, err = run({ ["policies/pay.lua"] = policy(fields) }, "test", folder .. "/policies")
    assert.equal(1, code)
    for _, words in ipairs { "pay.lua:3: ", ... } do assert.truthy(err:find(words, 1, true), err) end
  end

  it("is a date, and the end of a mode that is declared beside it", function()
    fails_to_load('mode = "shadow", shadow_until = "1 December",', "2026-12-01")
    fails_to_load('mode = "shadow", shadow_until = "2026-02-30",', "2026-12-01")
    fails_to_load('mode = "shadow", shadow_until = 20261201,', "2026-12-01")
    fails_to_load(('mode = "enforce", shadow_until = "%s",'):format(FUTURE), 'mode = "shadow"')
    fails_to_load(('shadow_until = "%s",'):format(FUTURE), 'mode = "shadow"')
    fails_to_load(('mode = "shadow", until = "%s",'):format(FUTURE), "shadow_until")
  end)

  it("holds in the defaults by the same rules", function()
    local function check(defaults)
      local code, _, err = run({ ["toolgate.lua"] = "return { defaults = { " .. defaults .. " } }",
                                 ["policies/pay.lua"] = policy "" }, "serve", "--check", "-c", folder .. "/toolgate.lua",
                                 "-p", folder .. "/policies")
      return code, err
    end
    assert.equal(0, (check(('mode = "shadow", shadow_until = "%s"'):format(FUTURE))))
    for _, wrong in ipairs { 'mode = "shadow", shadow_until = "soon"', ('shadow_until = "%s"'):format(FUTURE) } do
      local code, err = check(wrong)
      assert.equal(1, code)
      assert.truthy(err:find("defaults.shadow_until", 1, true), err)
    end
    local code, err = check(('mode = "shadow", shadow_until = "%s"'):format(PAST))
    assert.equal(1, code)
    assert.truthy(err:find("defaults: mode", 1, true), err)
  end)

  it("fails test, lint and serve --check from its date on, and not before", function()
    for date, expected in pairs { [FUTURE] = 0, [PAST] = 1 } do
      local files = { ["policies/pay.lua"] = policy(('mode = "shadow", shadow_until = "%s",'):format(date)) }
      for _, argv in ipairs { { "test", folder .. "/policies" }, { "lint", folder .. "/policies" },
                             { "serve", "--check", "-p", folder .. "/policies" } } do
        local code, out, err = run(files, unpack(argv))
        assert.equal(expected, code, out .. err)
        assert.equal(expected == 1, (out .. err):find("shadow_until", 1, true) ~= nil, out .. err)
      end
      files = { ["policies/pay.lua"] = policy "", ["policies/much.lua"] = overlay(date) }
      local code, out = run(files, "lint", folder .. "/policies", "--json")
      assert.equal(expected, code, out)
      assert.equal(expected == 1, out:find('"shadow-expired"', 1, true) ~= nil, out)
      process.run { "rm", folder .. "/policies/much.lua" }
    end
  end)

  it("leaves the mode as it is, and is in the log, the status and doctor", function()
    local gate = daemon.start { policies = { ["pay.lua"] = policy "", ["much.lua"] = overlay(PAST) },
                                config = ('return { defaults = { mode = "shadow", shadow_until = "%s" } }'):format(PAST) }
    local said = select(2, gate:log():gsub("shadow_expired", ""))
    assert.equal(2, said)
    local reply = gate:connect():calls("pay", { amount = 101 }, session "s")
    assert.is_not_true(reply.isError)
    local expired = gate:status().generation.shadow_expired
    assert.equal(2, #expired)
    assert.truthy(expired[2].file:find("much.lua", 1, true))
    local _, out = process.run { daemon.binary, "status", "--socket", gate.socket }
    assert.equal(2, select(2, out:gsub("set mode = \"enforce\"", "")))
    assert.truthy(out:find("needs attention", 1, true))
    _, out = process.run { daemon.binary, "doctor", "--json", "--socket", gate.socket }
    local found = 0
    for _, finding in ipairs(json.decode(out).findings) do
      if finding.code == "shadow_expired" then
        found = found + 1
        assert.equal("warning", finding.level)
      end
    end
    assert.equal(2, found)
  end)

  it("comes at midnight, without a reload", function()
    if clocks.cannot then return pending(clocks.cannot) end
    local clock = clocks.new(0)
    local day, now = 86400, os.time()
    local midnight = now + 10 * day - (now + 10 * day) % day
    clock:shift(midnight - 2 - os.time())
    local gate = daemon.start { policies = { ["pay.lua"] = policy(('mode = "shadow", shadow_until = "%s",')
                                                                   :format(os.date("!%Y-%m-%d", midnight))) },
                                config = ('return { metrics = { listen = "unix:%s/m" } }'):format(folder),
                                environment = clock.environment }
    assert.is_nil(gate:log():match "shadow_expired")
    local function metric()
      local _, text = process.run { "curl", "-s", "--unix-socket", folder .. "/m", "http://localhost/metrics" }
      return text:match "\ntoolgate_shadow_expired (%d)"
    end
    assert.equal("0", metric())
    gate:logs "shadow_expired"
    assert.equal("1", metric())
    assert.equal(1, #gate:status().generation.shadow_expired)
  end)
end)
