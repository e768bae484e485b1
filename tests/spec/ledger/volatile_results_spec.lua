-- Results that differ in times, ids and the like alone are nearly the same: of a read they count half, of an unknown tool
-- fully; other numbers are a read's data, and count half for an unknown tool.

local function definition(name, reads)
  return { name = name, description = name .. ".", annotations = reads and { readOnlyHint = true } or nil,
           inputSchema = { type = "object", additionalProperties = true } }
end

describe("the same call whose result differs", function()
  local client

  before_each(function()
    client = daemon.start { tools = json.encode {
      definition("get_price", true), definition "area_of", definition "Bash", definition "BashOutput" } }:connect()
  end)

  local function does(name, arguments, outcome)
    local place = session("s", { turn = 1 })
    local checked = client:checks(name, arguments, place)
    if checked.verdict ~= "pass" then return checked.code, checked.verdict end
    local report = { callId = checked.callId, name = name, arguments = arguments, _meta = place }
    for field, value in pairs(outcome) do report[field] = value end
    client:asks("toolgate/report", report)
    return "pass"
  end

  -- How many of 30 calls ran, and the code of the first that did not.
  local function ran(name, outcome)
    for i = 1, 30 do
      local code = does(name, { a = 1 }, outcome(i))
      if code ~= "pass" then return i - 1, code end
    end
    return 30
  end

  local function at(i) return ("2026-11-27T10:%02d:%02dZ"):format(i, (i * 7) % 60) end
  local VOLATILE = {
    ["a time"] = function(i) return { price = 12.5, note = "as of " .. at(i) } end,
    ["a time in a text"] = function(i) return "The price is 12.5 at " .. at(i) end,
    ["a number that is a time by its name"] = function(i) return { price = 12.5, updated_at = 1764237600 + i, took_ms = i } end,
    ["a UUID"] = function(i) return { price = 12.5, ref = ("%08x-1111-4222-8333-444455556666"):format(i) } end,
    ["hex with a letter"] = function(i) return "price 12.5 (build " .. ("ab%08x"):format(i) .. ")" end,
    ["a request's id"] = function(i) return { price = 12.5, meta = { request_id = i, trace = "t" .. i } } end,
  }
  for what, result in pairs(VOLATILE) do
    it("in " .. what .. " counts half of a read, fully of an unknown tool", function()
      local function outcome(i) return { result = result(i) } end
      assert.same({ 5, "loop" }, { ran("get_price", outcome) })
      assert.same({ 2, "loop" }, { ran("area_of", outcome) })
    end)
  end

  it("in another number is data of a read, and counts half of an unknown tool", function()
    local function outcome(i) return { result = { length = i, price = 100 + i } } end
    assert.equal("poll_budget", select(2, ran("get_price", outcome)))
    assert.same({ 5, "loop" }, { ran("area_of", outcome) })
  end)

  it("in a word is a new one", function()
    local function outcome(i) return { result = { name = ("x"):rep(i) } } end
    assert.same({ 21, "poll_budget" }, { ran("get_price", outcome) })
    assert.same({ 21, "poll_budget" }, { ran("area_of", outcome) })
  end)

  it("in an error's counter alone counts half", function()
    local function outcome(i) return { error = { message = "no lock after " .. 10 * i .. " tries" } } end
    assert.same({ 5, "loop" }, { ran("get_price", outcome) })
    assert.same({ 3, "same_call" }, { ran("Bash", outcome) }) -- its budget is spent by failures of any kind
  end)

  it("in an error's time alone is the same one", function()
    local function outcome(i) return { error = { message = at(i) .. " no lock" } } end
    assert.same({ 2, "loop" }, { ran("get_price", outcome) })
  end)

  it("never ends a declared poll before its maximum", function()
    assert.same({ 20, "poll_budget" }, { ran("BashOutput", function(i) return { result = "log of " .. at(i) } end) })
  end)

  it("ends in a refusal first, and a halt at the tenth", function()
    local said = {}
    for i = 1, 10 do
      local _, verdict = does("get_price", { a = 1 }, { result = { price = 1, at = at(i) } })
      said[i] = verdict or "pass"
    end
    assert.equal(("pass "):rep(5) .. ("refuse "):rep(4) .. "halt", table.concat(said, " "))
  end)

  it("is a cycle half as fast, too", function()
    local passed = 0
    for i = 1, 16 do
      local name = i % 2 == 0 and "get_price" or "area_of"
      local code = does(name, { a = name }, { result = { n = name, at = name == "get_price" and at(i) or nil } })
      if code == "pass" then passed = passed + 1 end
    end
    assert.is_true(passed >= 5 and passed <= 12, passed)
  end)

  it("in a long result is compared as it is", function()
    local long = ("word "):rep(20000)
    assert.is_true(ran("area_of", function(i) return { result = long .. at(i) } end) > 5)
    assert.equal(2, (ran("get_price", function() return { result = long } end)))
  end)
end)
