-- The linearizability checker (tests/support/linearize.lua) explains right histories, and finds faults in wrong ones.
local histories = require "ledger_history"
local linearize = require "linearize"

-- A register that adds and tells its sum: requests { add = n, heard = sum, inv, ret }.
local COUNTER = {
  begin = function() return { sum = 0 } end,
  clone = function(state) return { sum = state.sum } end,
  apply = function(state, request)
    state.sum = state.sum + request.add
    return state.sum
  end,
  agrees = function(_, request, answer) return not request.heard or request.heard == answer, answer end,
  digest = function(state) return tostring(state.sum) end,
  describe = function(request) return ("add %d -> %s"):format(request.add, tostring(request.heard)) end,
}

local function counter(history) return linearize.check(history, COUNTER).result end

describe("the linearizability checker", function()
  it("explains concurrent requests by another order than that of their answers", function()
    assert.equal("explained", counter { { inv = 1, ret = 4, add = 1, heard = 3 }, { inv = 2, ret = 5, add = 2, heard = 2 } })
  end)

  it("does not put a request before one that was answered earlier", function()
    assert.equal("wrong", counter { { inv = 1, ret = 2, add = 1, heard = 3 }, { inv = 3, ret = 4, add = 2, heard = 2 } })
  end)

  it("lets a lost request happen at any later time, or never", function()
    local lost = { inv = 1, add = 5, optional = true }
    local function with(first, second)
      return counter { lost, { inv = 2, ret = 3, add = 1, heard = first }, { inv = 4, ret = 5, add = 1, heard = second } }
    end
    assert.equal("explained", with(1, 7))
    assert.equal("explained", with(1, 2))
    assert.equal("explained", with(6, 7))
    assert.equal("wrong", with(6, 2))
  end)

  it("does not let a request happen before the one it follows from", function()
    local first = { inv = 1, add = 5, optional = true }
    local undo = { inv = 1, add = -5, optional = true, after = first }
    assert.equal("wrong", counter { first, undo, { inv = 2, ret = 3, add = 0, heard = -5 } })
    assert.equal("explained", counter { first, undo, { inv = 2, ret = 3, add = 0, heard = 5 },
                                        { inv = 4, ret = 5, add = 0, heard = 0 } })
  end)

  it("wants a request without an answer that has a deadline before it", function()
    local late = { inv = 1, add = 5, by = 4 }
    local function with(last)
      return counter { late, { inv = 2, ret = 3, add = 1, heard = 1 }, { inv = 5, ret = 6, add = 0, heard = last } }
    end
    assert.equal("explained", with(6))
    assert.equal("wrong", with(1))
  end)

  it("reports the shortest prefix that no order explains", function()
    local seen = linearize.check({ { inv = 1, ret = 2, add = 1, heard = 1 }, { inv = 3, ret = 4, add = 1, heard = 3 },
                                   { inv = 5, ret = 6, add = 1, heard = 4 } }, COUNTER)
    assert.equal("wrong", seen.result)
    assert.truthy(seen.story:find("the first 2 answers", 1, true), seen.story)
    assert.truthy(seen.story:find("Nothing can follow:\n    add 1 -> 3: 2", 1, true), seen.story)
  end)

  it("gives up at its bound", function()
    local history = {}
    for i = 1, 12 do history[i] = { inv = i, ret = 20 + i, add = 2 ^ i, heard = 1 } end
    history[13] = { inv = 50, ret = 51, add = 0, heard = 1 }
    for i = 1, 12 do history[i].heard = nil end
    assert.equal("undecided", linearize.check(history, COUNTER, 1000).result)
  end)
end)

-- ---- histories of the ledger with a known fault ---------------------------------------

local LIMITS = { note = histories.limits "write", look = histories.limits "read",
                 spend = histories.limits("read", { tool = { calls_per_turn = 3 } }) }

-- Sequential requests of session "s", answered by the model; `faulty(request)` = "twice", "never" or nil is what the
-- recorded ledger did with a request, which it answered nevertheless.
local function recorded(script, faulty)
  local spec = histories.specification "s"
  local state, history, position, admissions = spec.begin(), {}, 0, {}
  for i, line in ipairs(script) do
    local kind, tool, args, class = line:match "^(%S+) (%S+) (%S+) ?(%S*)"
    if kind == "admit" then admissions[tool .. args] = "call " .. i end
    local request = { kind = kind, session = "s", tool = tool, args = args, limits = LIMITS[tool], so_far = "valid",
                      refused_as = "", reservation_ms = 0, turn = 1, step = "m" .. i, turn_idle_s = 0,
                      admission = admissions[tool .. args], class = class, label = class, result = "r", fact = "",
                      cost_told = false }
    if kind == "settle" then request.step = "" end
    local fault = faulty and faulty(request, i)
    local answer = spec.apply(fault == "never" and spec.clone(state) or state, request)
    if fault == "twice" then
      local again = setmetatable({ admission = request.admission .. " again" }, { __index = request })
      spec.apply(state, again)
    end
    request.inv, request.ret, position = position + 1, position + 2, position + 2
    request.heard = { repeats = answer.unchanged and answer.repeats or 0 }
    if kind == "admit" then
      request.heard = { verdict = answer.says == "run" and "pass" or answer.says, attempt = answer.attempt,
                        code = answer.code ~= "" and answer.code or nil, repeats = answer.repeats }
    end
    history[#history + 1] = request
  end
  return linearize.check(history, spec)
end

local SPENDS = { "admit spend a", "settle spend a ok", "admit spend b", "settle spend b ok", "admit spend c",
                 "settle spend c ok" }
local REPEATS = { "admit look a", "settle look a ok", "admit note b", "admit look a", "settle look a ok" }

describe("a recorded ledger", function()
  it("without a fault is explained", function()
    for _, script in ipairs { SPENDS, REPEATS } do assert.equal("explained", recorded(script).result) end
  end)

  it("that counted an admit twice is found out", function()
    local seen = recorded(SPENDS, function(_, i) return i == 1 and "twice" or nil end)
    assert.equal("wrong", seen.result)
    assert.truthy(seen.story:find("calls_per_turn", 1, true), seen.story)
  end)

  it("that lost a settle is found out", function()
    local seen = recorded({ "admit look a", "settle look a schema_mismatch", "admit look a" },
                          function(_, i) return i == 2 and "never" or nil end)
    assert.equal("wrong", seen.result)
    assert.truthy(seen.story:find("verdict: heard pass, the model refuse", 1, true), seen.story)
  end)

  it("that judged by an older state is found out", function()
    local seen = recorded(SPENDS, function(_, i) return i == 3 and "never" or nil end)
    assert.equal("explained", seen.result) -- too little was spent for anybody to notice
    local longer = { unpack(SPENDS) }
    longer[#longer + 1] = "admit spend d"
    assert.equal("wrong", recorded(longer, function(_, i) return i == 3 and "never" or nil end).result)
  end)
end)

describe("a check that found the ledger unavailable, and that Redis has", function()
  local function places(kills)
    local release = { kind = "settle", admission = "c", tool = "look", label = "cancelled", optional = true,
                      takes_back = { gate = { kills = kills }, kills = 0 } }
    return histories.places_of({ release }, { "look ok - turn 1 step 1 retries 0" }).c
  end

  it("was taken back by a daemon that lives, so the journal tells of it", function() assert.same({}, places(0)) end)

  -- Found by the story "closed" under load: the calls of a killed daemon stay reserved, and no journal tells of them.
  it("may stay reserved if its daemon was killed before it took it back", function() assert.is_nil(places(1)) end)
end)
