-- What a daemon sends to Redis in one commit, and what of its memory of a session ends with the session.
local redis = require "redis"

-- As many facts as one result may give, all of one value; tells which arguments and facts it was shown.
local POLICIES = { ["shows.lua"] = [==[
-- shows: for specs.
return tool "shows" {
  description = "For specs.", effects = "read",
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"},"many":{"type":"boolean"}},"required":["n"]}]],
  result = function(result, call)
    local facts = { n = call.args and call.args.n or -1 }
    for i = 1, call.args and call.args.many and 31 or 1 do facts["k" .. i] = result.value end
    return ok { facts = facts }
  end,
}
]==], ["notes.lua"] = [==[
-- notes: for specs.
return tool "notes" {
  description = "For specs.", effects = "read",
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}]],
  result = function(result, call)
    local facts = {}
    for i = 1, 32 do facts[tostring(result.value * 32 + i)] = 1 end
    return ok { facts = facts }
  end,
}
]==], ["tells.lua"] = [==[
-- tells: for specs.
return tool "tells" {
  description = "For specs.", effects = "read",
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}]],
  run = function(args, call) return call.facts.k1 or "none" end,
}
]==] }

describe("a daemon's memory of a session in Redis", function()
  local store, config

  before_each(function()
    store = redis.start()
    config = ("return { ledger = { redis = 'unix:%s', timeout_ms = 5000 } }"):format(store.socket)
  end)

  local function client() return daemon.start { policies = POLICIES, config = config }:connect() end
  local function reports(on, checked, value)
    return on:asks("toolgate/report", { callId = checked.callId, result = { value = value } })
  end

  it("is committed whole, however many calls and facts come together", function()
    local first, id = client(), 1000
    local names, checked = {}, {}
    for i = 1, 9 do names[i] = { name = "tool" .. i, inputSchema = { type = "object" } } end
    first:asks("toolgate/register", { tools = names })
    for i = 1, 40 do reports(first, first:checks("shows", { n = i }, session "s"), i) end
    for i = 1, 7 do checked[i] = first:checks("shows", { n = 100 + i, many = true }, session "s") end

    local function asks(method, params)
      id = id + 1
      first:say { jsonrpc = "2.0", id = id, method = method, params = params }
    end
    local function checks(name, n)
      asks("toolgate/check", { name = name, arguments = { n = n }, _meta = session "s" })
    end
    store:freeze()
    checks("shows", 200)
    for i = 1, 7 do asks("toolgate/report", { callId = checked[i].callId, result = { value = 500 + i } }) end
    for i = 1, 9 do checks("shows", 200 + i) end
    for i = 1, 9 do checks("tool" .. i, 300) end
    store:thaw()
    for _ = 1001, id do assert.equal("pass", first:hears().result.verdict) end

    local seen = client():asks("toolgate/session", { session = "s" })
    for i = 1, 31 do assert.equal(507, seen.facts["k" .. i]) end
  end)

  it("ends with the session: one begun anew elsewhere has none of its facts", function()
    local first, second = client(), client()
    local function begins(on, value)
      reports(on, on:checks("shows", { n = 1 }, session "s"), value)
      return client_of.text(on:calls("tells", { n = 1 }, session "s"))
    end
    assert.equal("old", begins(first, "old"))
    store:does("DEL", unpack(store:keys()))
    assert.equal("new", begins(second, "new"))
    assert.equal("new", client_of.text(first:calls("tells", { n = 2 }, session "s")))
  end)

  it("is the same elsewhere, however many facts it holds", function()
    local first = client()
    for i = 1, 80 do reports(first, first:checks("notes", { n = i }, session("s", { turn = i })), i) end
    local function count(on)
      local facts = 0
      for _ in pairs(on:asks("toolgate/session", { session = "s" }).facts) do facts = facts + 1 end
      return facts
    end
    assert.equal(1024, count(first))
    assert.equal(1024, count(client()))
  end)
end)
