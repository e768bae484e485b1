-- A refused repetition of a call that failed quotes the error, also where other daemons of the fleet made the calls.
local client = require "client"
local fleet_redis = require "redis"

local POLICIES = {
  ["lookup.lua"] = [[
-- lookup: fails for everything. Read only.
return tool "lookup" {
  schema = params { id = str "Id", n = optional(int "Number") }, effects = "read",
  run = function(args) return failed("gone", "no row " .. args.id .. " in table\n\"orders\"") end,
}
]],
  ["mine.lua"] = [[
-- mine: run by the agent. Read only.
return tool "mine" { schema = params { id = str "Id" }, effects = "read" }
]],
}

local function refused(result)
  local verdict = client.verdict(result)
  return verdict.verdict == "refuse" or verdict.verdict == "halt"
end

-- Calls until it is refused; returns the text that the model reads.
local function repeats(connections, id, meta)
  for i = 1, 6 do
    local result = connections[(i - 1) % #connections + 1]:calls("lookup", { id = id }, meta)
    if refused(result) then return client.text(result), i end
  end
  error("it was never refused")
end

describe("a loop over an error", function()
  it("quotes the error in one line", function()
    local agent = daemon.start { policies = POLICIES }:connect()
    local text, at = repeats({ agent }, "A7", client.session("s", { turn = 1 }))
    assert.equal(3, at)
    assert.truthy(text:find([[The last error: "no row A7 in table\n\"orders\""]], 1, true), text)
    assert.is_nil(text:find("the result you already have", 1, true))
  end)

  it("quotes only the error of the same arguments", function()
    local agent = daemon.start { policies = POLICIES }:connect()
    local meta = client.session("s", { turn = 1 })
    repeats({ agent }, "A7", meta)
    agent:calls("lookup", { id = "B8" }, meta)
    local result = agent:calls("lookup", { id = "A7" }, meta)
    if refused(result) then assert.is_nil(client.text(result):find("B8", 1, true)) end
  end)

  it("quotes what an agent has reported, cut", function()
    local agent = daemon.start { policies = POLICIES }:connect()
    local meta, check = client.session("s", { turn = 1 }), nil
    for _ = 1, 3 do
      check = agent:checks("mine", { id = "x" }, meta)
      if check.verdict ~= "pass" then break end
      agent:asks("toolgate/report", { callId = check.callId, error = { message = "ENOENT: " .. ("long "):rep(200) } })
    end
    assert.equal("refuse", check.verdict)
    assert.truthy(check.text:find('The last error: "ENOENT: long', 1, true), check.text)
    assert.is_true(#check.text < 1000)
  end)

  it("quotes what another daemon has seen", function()
    local store = fleet_redis.start()
    local config = ("return { ledger = { redis = %q } }"):format(store:url())
    local agents = {}
    for i = 1, 2 do agents[i] = daemon.start { policies = POLICIES, config = config }:connect() end
    local text = repeats(agents, "A7", client.session("s", { turn = 1 }))
    assert.truthy(text:find("The last error: \"no row A7", 1, true), text)
    store:stop()
  end)
end)
