-- A published schema that is stricter than its server (tests/support/lenient_server.lua): contradictions advise, a model
-- may insist, and what the server accepts is remembered.

local notes

local CONFIG = [[
return { %s upstreams = { rows = { command = "luajit", args = { "%s/tests/support/lenient_server.lua" },
                                   env = { NOTES = "%s" } %s } } }
]]

local function serve(given)
  given = given or {}
  local gate, client = daemon.open { config = CONFIG:format(given.ledger or "", daemon.root, notes, given.upstream or ""),
                                     policies = given.policies, environment = given.environment, before = given.before }
  process.eventually("the tools are listed", function() return #client:asks("tools/list").tools >= 5 end)
  return client, gate
end

-- What the server has received.
local function received() return process.whole_lines(notes) end

describe("a schema that its server does not keep", function()
  before_each(function() notes = process.directory() .. "/notes" end)

  local turn
  -- The verdict's word, code and whether the arguments fit.
  local function calls(client, name, args, in_session)
    turn = (turn or 0) + 1
    local result = client:calls(name, args, session(in_session or "s", { turn = turn }))
    local v = verdict(result)
    return { v.verdict, v.code or "", v.valid }, v, result
  end

  local REFUSED, PASSED, FITS = { "repair", "invalid_arguments", false }, { "pass", "schema_lax", false }, { "pass", "", true }
  local FULL = { query = "x", limit = 3, zone = "UTC", page = 1 }
  local LACKS_LIMIT = { query = "x", zone = "UTC", page = 1 }

  local function other(args, more)
    local copy = {}
    for name, value in pairs(args) do copy[name] = value end
    for name, value in pairs(more) do copy[name] = value end
    return copy
  end

  describe("and that contradicts itself", function()
    it("does not refuse what is required and has a default, or is described as optional", function()
      local client, gate = serve()
      local passed, v, result = calls(client, "find_rows", { query = "x", limit = 3 })
      assert.same(FITS, passed)
      local found = client_of.problems(result)
      table.sort(found)
      assert.same({ "args.page missing", "args.zone missing" }, found)
      assert.same({ "warning", "warning" }, { v.messages[1].severity, v.messages[2].severity })
      assert.equal("rows 1", text(result)) -- the model reads nothing of it
      local _, words = process.run { daemon.binary, "status", "--socket", gate.socket }
      assert.truthy(words:find("'zone' is required, and it has a default", 1, true), words)
    end)

    it("is kept by schema = 'strict' of a policy", function()
      local client = serve { policies = { ["find_rows.lua"] = 'return tool "find_rows" { schema = "strict" }' } }
      assert.same(REFUSED, calls(client, "find_rows", { query = "x", limit = 3 }))
      assert.same(FITS, calls(client, "store_rows", { query = "x", limit = 3 }))
    end)

    it("judges by the object that declares properties, not by the open one beside it", function()
      local client = serve()
      local _, _, result = calls(client, "find_rows", other(FULL, { by = { feild = "x" } }))
      assert.same(FITS, (calls(client, "find_rows", other(FULL, { by = { field = "x" } }))))
      assert.truthy(verdict(result).verdict == "repair" or verdict(result).rewrites)
    end)
  end)

  describe("and a model that insists", function()
    it("is let run, with a note, and is asked no more once the server has accepted it", function()
      local client = serve()
      local refused = calls(client, "find_rows", LACKS_LIMIT)
      assert.same(REFUSED, refused)
      local passed, v, result = calls(client, "find_rows", other(LACKS_LIMIT, { query = "y" }))
      assert.same(PASSED, passed)
      assert.same({ "args.limit missing" }, client_of.problems(result))
      assert.equal("warning", v.messages[1].severity)
      golden.check("feedback", "schema_lax: insisted", text(result))
      assert.equal(1, #received())
      passed, v, result = calls(client, "find_rows", other(LACKS_LIMIT, { query = "z" }))
      assert.equal("ok", v.error_class)
      assert.same(PASSED, passed)
      golden.check("feedback", "schema_lax: accepted before", text(result))
      assert.same(REFUSED, calls(client, "store_rows", LACKS_LIMIT)) -- another tool
      assert.same(REFUSED, calls(client, "find_rows", { limit = 1, zone = "UTC", page = 1 })) -- another problem
    end)

    it("is refused again for the rest of the session if the server refuses the arguments", function()
      local client = serve()
      assert.same(REFUSED, calls(client, "picky_rows", LACKS_LIMIT))
      local _, _, result = calls(client, "picky_rows", other(LACKS_LIMIT, { query = "y" }))
      assert.equal("tool_error", verdict(result).error_class)
      for i = 1, 2 do
        assert.same(REFUSED, calls(client, "picky_rows", other(LACKS_LIMIT, { query = "z" .. i })))
      end
      assert.same(REFUSED, calls(client, "picky_rows", LACKS_LIMIT, "t")) -- another session asks anew
    end)

    it("learns nothing from an error of another kind", function()
      local client = serve()
      assert.same(REFUSED, calls(client, "broken_rows", LACKS_LIMIT))
      for i = 1, 2 do
        local _, v = calls(client, "broken_rows", other(LACKS_LIMIT, { query = "y" .. i }))
        assert.equal("tool_error", v.error_class)
      end
    end)

    it("is heard for array elements alike, whatever their index", function()
      local client = serve()
      assert.same(REFUSED, calls(client, "find_rows", other(FULL, { rows = { { id = 1 }, { x = 1 } } })))
      assert.same(PASSED, calls(client, "find_rows", other(FULL, { rows = { { x = 1 } } })))
    end)

    it("reads in the refusal that the same call is let through", function()
      local client = serve()
      local _, v, result = calls(client, "find_rows", LACKS_LIMIT)
      assert.equal("repair", v.verdict)
      assert.truthy(text(result):find("If the server accepts it, send the same call again", 1, true), text(result))
      _, _, result = calls(client, "find_rows", other(FULL, { limit = 1000 }))
      assert.is_nil(text(result):find("send the same call again", 1, true))
      _, _, result = calls(client, "delete_rows", LACKS_LIMIT)
      assert.is_nil(text(result):find("send the same call again", 1, true))
    end)

    it("is heard for all names of an object whose keys are the user's", function()
      local client = serve()
      assert.same(REFUSED, calls(client, "post_blocks", { properties = { Packed = { checkbox = true } } }))
      assert.same(PASSED, calls(client, "post_blocks", { properties = { Department = { select = "x" } } }))
      assert.same(PASSED, calls(client, "post_blocks", { properties = { ["Start Date"] = "x", Owner = "y" } }))
      -- a misspelled name is meant to be another one: it is asked about by itself
      assert.same(REFUSED, calls(client, "post_blocks", { properties = { titel = "x" } }))
    end)

    it("is heard for a branch of a union that the schema does not list", function()
      local client = serve()
      local function block(kind) return { blocks = { { type = kind, [kind] = { text = "x" } } } } end
      assert.same(REFUSED, calls(client, "post_blocks", block "callout"))
      assert.same(PASSED, calls(client, "post_blocks", block "heading_2"))
      assert.same(PASSED, calls(client, "post_blocks", block "toggle"))
      for _ = 1, 2 do assert.same(REFUSED, calls(client, "post_blocks", { blocks = { { type = "callout" } } })) end
    end)

    it("is heard when other problems have used up the attempts", function()
      local client = serve()
      local function at(step, args)
        return client:calls("find_rows", args, session("s", { turn = 1, step = "m" .. step }))
      end
      for i = 1, 3 do at(i, other(FULL, { limit = 1000 + i })) end
      local result = at(4, LACKS_LIMIT)
      assert.equal("refuse", verdict(result).verdict)
      assert.truthy(text(result):find("send the same call again", 1, true), text(result))
      assert.equal("schema_lax", verdict(at(5, LACKS_LIMIT)).code)
    end)

    it("is not heard for parameters that a policy is about", function()
      local client = serve { policies = { ["find_rows.lua"] = [[
return tool "find_rows" { ids = { zone = seen {} }, rules = { when { kind = "b" } : needs "rows" } }]] } }
      for _, more in ipairs { { zone = { x = 1 } }, { kind = { "b" } }, { rows = "all" } } do
        for _ = 1, 2 do assert.not_equal("pass", calls(client, "find_rows", other(FULL, more))[1]) end
      end
      assert.same({}, received())
    end)

    it("keeps what was accepted, whatever fails later", function()
      local client = serve()
      assert.same(REFUSED, calls(client, "moody_rows", LACKS_LIMIT))
      assert.same(PASSED, calls(client, "moody_rows", other(LACKS_LIMIT, { query = "y" })))
      local _, v = calls(client, "moody_rows", other(LACKS_LIMIT, { query = "fail" }))
      assert.equal("tool_error", v.error_class)
      assert.same(PASSED, calls(client, "moody_rows", other(LACKS_LIMIT, { query = "z" })))
    end)

    it("is heard by the tools that an agent registers, too", function()
      local client = daemon.start { tools = [[ [{"name":"note","inputSchema":{"type":"object",
        "properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}}] ]] }:connect()
      local function checks(step, args)
        return client:checks("note", args, session("r", { turn = 1, step = "m" .. step }))
      end
      local refused = checks(1, { text = "a", flags = "gi" })
      assert.equal("repair", refused.verdict)
      golden.check("feedback", "schema_lax: offered", refused.text)
      local passed = checks(2, { text = "b", flags = "gi" })
      assert.same({ "pass", "schema_lax" }, { passed.verdict, passed.code })
    end)

    it("is not heard for bounds, enums and values that are too large", function()
      local client = serve()
      for _, more in ipairs { { limit = 1000 }, { kind = "c" } } do
        for _ = 1, 2 do assert.same(REFUSED, calls(client, "find_rows", other(FULL, more))) end
      end
      -- nor where one of them stands beside a problem that may be insisted on
      for _ = 1, 2 do assert.same(REFUSED, calls(client, "find_rows", other(LACKS_LIMIT, { kind = "c" }))) end
      -- nor for a call that arrives empty, which may have been cut off
      for _ = 1, 2 do assert.same(REFUSED, (calls(client, "store_rows", {}))) end
      assert.same({}, received())
    end)

    it("is not heard in the step that asked", function()
      local client = serve()
      for i = 1, 2 do
        local v = verdict(client:calls("find_rows", other(LACKS_LIMIT, { query = "q" .. i }),
                                       session("s", { turn = 1, step = "m1" })))
        assert.equal("repair", v.verdict)
      end
      assert.equal("schema_lax", verdict(client:calls("find_rows", other(LACKS_LIMIT, { query = "q3" }),
                                                      session("s", { turn = 1, step = "m2" }))).code)
    end)

    it("is never heard for a tool that destroys, nor where a policy says strict or wrote the schema", function()
      local client = serve { policies = {
        ["find_rows.lua"] = 'return tool "find_rows" { schema = "strict" }',
        ["store_rows.lua"] = 'return tool "store_rows" { schema = params { query = str "What", limit = int "How many" } }',
        ["delete_rows.lua"] = 'return tool "delete_rows" { schema = "learn" }',
      } }
      for _, name in ipairs { "delete_rows", "find_rows", "store_rows" } do
        for i = 1, 2 do assert.same(REFUSED, calls(client, name, { query = "q" .. i, zone = name ~= "store_rows" and "z" or nil,
                                                                  page = name ~= "store_rows" and 1 or nil }), name) end
      end
      assert.same({}, received())
    end)

    it("does not get past a policy's rules, normalise or check", function()
      local client = serve { policies = { ["find_rows.lua"] = [[
return tool "find_rows" {
  rules = { when { query = "SECRET" } : refuses("hidden", "This is hidden", "Ask for something else.") },
  normalise = function(args) args.query = args.query:upper() return args end,
}]] } }
      assert.same(REFUSED, calls(client, "find_rows", LACKS_LIMIT))
      for _ = 1, 2 do assert.not_equal("pass", calls(client, "find_rows", other(LACKS_LIMIT, { query = "secret" }))[1]) end
      assert.same(PASSED, calls(client, "find_rows", other(LACKS_LIMIT, { query = "abc" })))
      assert.equal(1, #received())
      assert.truthy(received()[1]:find('"query":"ABC"', 1, true), received()[1])
    end)

    it("is let run by check and report, too", function()
      local client = serve()
      local function checks(query)
        turn = turn + 1
        return client:checks("find_rows", other(LACKS_LIMIT, { query = query }), session("c", { turn = turn }))
      end
      assert.equal("repair", checks("a").verdict)
      local passed = checks "b"
      assert.same({ "pass", "schema_lax" }, { passed.verdict, passed.code })
      client:asks("toolgate/report", { callId = passed.callId, result = { content = { { type = "text", text = "two rows" } } } })
      local v = checks "c"
      assert.same({ "pass", "schema_lax", 1 }, { v.verdict, v.code, v.attempt })
    end)
  end)

  it("is strict or advises for all tools of an upstream where the configuration says so, unless a policy does", function()
    local client = serve { upstream = ', schema = "strict"',
                           policies = { ["store_rows.lua"] = 'return tool "store_rows" { schema = "learn" }' } }
    assert.same(REFUSED, calls(client, "find_rows", { query = "x", limit = 3 }))
    assert.same(FITS, calls(client, "store_rows", { query = "x", limit = 3 }))
    client = serve { upstream = ', schema = "advise"' }
    assert.same(FITS, calls(client, "find_rows", { query = "x" }))
  end)

  describe("is learnt by the fleet", function()
    local redis = require "redis"

    local function learns(client, other_client)
      for i = 1, 3 do
        local on = i == 2 and other_client or client
        assert.same(REFUSED, calls(on, "find_rows", LACKS_LIMIT, "s" .. i))
        assert.same(PASSED, calls(on, "find_rows", other(LACKS_LIMIT, { query = "y" }), "s" .. i))
      end
    end

    it("in memory, by three sessions, and is listed with the line that makes it permanent", function()
      local client, gate = serve()
      learns(client, client)
      local passed, _, result = calls(client, "find_rows", LACKS_LIMIT, "new")
      assert.same(PASSED, passed)
      assert.truthy(text(result):find("accepted that before", 1, true), text(result))
      assert.same(REFUSED, calls(client, "store_rows", { query = "x" }, "new")) -- a tool of the same schema, another problem
      local status = client:asks "toolgate/status"
      assert.same({ 1, "find_rows", "limit", "missing" },
                  { #status.schema_lax, status.schema_lax[1].tool, status.schema_lax[1].path, status.schema_lax[1].code })
      local _, words = process.run { daemon.binary, "status", "--socket", gate.socket }
      local shown = words:match "(schemas that their servers do not keep:.-\n)%S" or words
      golden.check("cli", "status: what the fleet has learnt", (shown:gsub("until %S+ ?%S*;", "until <time>;")))
      local code, said = process.run { daemon.binary, "session", "--forget-lax", "find_rows:limit", "--socket", gate.socket }
      assert.same({ 0, "find_rows: what was learnt of its schema is forgotten; models are asked again\n" }, { code, said })
      assert.same({}, client:asks("toolgate/status").schema_lax or {})
    end)

    it("in Redis, over daemons", function()
      local store = redis.start()
      local on_redis = ("ledger = { redis = %q, timeout_ms = 5000 },"):format(store:url())
      local first = serve { ledger = on_redis }
      local second = serve { ledger = on_redis }
      learns(first, second)
      process.eventually("both daemons know it", function()
        return #second:asks("toolgate/status").schema_lax == 1 and #first:asks("toolgate/status").schema_lax == 1
      end)
      for i, client in ipairs { first, second } do
        assert.same(PASSED, calls(client, "find_rows", LACKS_LIMIT, "new" .. i))
      end
      local third = serve { ledger = on_redis } -- a new daemon knows it, too
      assert.same(PASSED, calls(third, "find_rows", LACKS_LIMIT, "new3"))
    end)

    it("in Redis, once, from what was found while Redis was away", function()
      local store = redis.start()
      local on_redis = ("ledger = { redis = %q, timeout_ms = 500 },"):format(store:url())
      local client = serve { ledger = on_redis }
      store:kill()
      for i = 1, 2 do
        assert.same(REFUSED, calls(client, "find_rows", LACKS_LIMIT, "s" .. i))
        assert.same(PASSED, calls(client, "find_rows", other(LACKS_LIMIT, { query = "y" }), "s" .. i))
      end
      store:start_again()
      process.eventually("Redis has been told", function()
        local ledger = client:asks("toolgate/status").ledger
        return ledger.connected and ledger.waiting == 0 and ledger.merged >= 2
      end)
      local second = serve { ledger = on_redis }
      assert.same(PASSED, calls(second, "find_rows", LACKS_LIMIT, "s1")) -- the session knows it
      assert.same(REFUSED, calls(second, "find_rows", LACKS_LIMIT, "new")) -- two sessions are too few for the fleet
      assert.same(PASSED, calls(second, "find_rows", other(LACKS_LIMIT, { query = "y" }), "new"))
      process.eventually("the fleet knows it", function()
        return #second:asks("toolgate/status").schema_lax == 1
      end)
    end)
  end)

  it("advises only where a policy says so", function()
    local client = serve { policies = { ["find_rows.lua"] = 'return tool "find_rows" { schema = "advise" }' } }
    local _, v, result = calls(client, "find_rows", other(LACKS_LIMIT, { kind = "c" }))
    assert.same({ "pass", true }, { v.verdict, v.valid })
    local found = client_of.problems(result)
    table.sort(found)
    assert.same({ "args.kind enum", "args.limit missing" }, found)
    assert.equal(1, #received())
  end)

  it("is reported with the words that are known if a policy has another one", function()
    local words = daemon.fails { policies = { ["a.lua"] = 'return tool "a" { schema = "lerarn" }' } }
    golden.check("load", "policy: schema is no word", words)
  end)
end)
