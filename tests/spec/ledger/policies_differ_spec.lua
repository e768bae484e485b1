-- Two daemons of one Redis with different policies give one session different verdicts: both warn, until they are alike.
local redis = require "redis"

local function policy(limit)
  return ([[
-- list_orders: lists orders. Read only.
return tool "list_orders" { effects = "read",
  schema = { type = "object", properties = { limit = { type = "integer", maximum = %d } } } }
]]):format(limit)
end

describe("daemons of one Redis", function()
  local config

  before_each(function()
    config = ("return { ledger = { redis = %q, timeout_ms = 5000 } }"):format(redis.start():url())
  end)

  local function start(limit)
    local gate = daemon.start { config = config, policies = { ["list_orders.lua"] = policy(limit) } }
    gate.asked = gate:connect()
    return gate
  end

  -- What a daemon warns of its fleet; nil: nothing.
  local function warning(gate)
    for _, one in ipairs(gate.asked:asks("toolgate/status").ledger.warnings or {}) do
      if one:find("other policies", 1, true) then return one end
    end
  end

  it("with the same policies are silent", function()
    local first, second = start(50), start(50)
    first:reload()
    assert.is_nil(warning(first))
    assert.is_nil(warning(second))
    assert.is_nil((first:log() .. second:log()):find("policies_differ", 1, true))
  end)

  it("with different ones warn in status, doctor and log, until they are alike", function()
    local first, second = start(50), start(80)
    process.eventually("the second one warns", function() return warning(second) end)
    assert.truthy(warning(second):find("1 of 2 daemons on this Redis have other policies than this one", 1, true))
    assert.truthy(second:log():find("warn policies_differ", 1, true), second:log())
    local _, said = process.run { daemon.binary, "doctor", "--socket", second.socket }
    assert.truthy(said:find("warning  redis      1 of 2 daemons on this Redis have other policies", 1, true), said)
    first:write_policy("list_orders.lua", policy(60))
    first:reload()
    process.eventually("the first one warns, too", function() return warning(first) end)
    first:write_policy("list_orders.lua", policy(80))
    first:reload()
    process.eventually("the first one is content", function() return not warning(first) end)
    assert.truthy(first:log():find("info policies_alike", 1, true), first:log())
    second:write_policy("list_orders.lua", policy(80) .. "\n")
    second:reload()
    second:write_policy("list_orders.lua", policy(80))
    second:reload()
    process.eventually("and so is the second one", function() return not warning(second) end)
  end)
end)
