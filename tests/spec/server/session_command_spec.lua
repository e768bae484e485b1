-- toolgate session: what an operator on call sees of a conversation whose model is refused.
local redis = require "redis"

local POLICIES = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                   ["create_task.lua"] = fixtures.create_task }

describe("toolgate session", function()
  local gate, client

  local function start(url, config)
    gate = daemon.start { policies = POLICIES, tools = fixtures.agent_tools, config = config,
                          arguments = url and { "--redis", url } or nil }
    client = gate:connect()
    return gate
  end

  local function toolgate(...)
    return process.run { daemon.binary, "session", "--socket", gate.socket, ... }
  end

  -- Prints the session and compares it with its golden text, without the user and the times of this run.
  local VARIABLE = { ["uid:%d+"] = "uid:<uid>", ["%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d"] = "<time>             " }
  local function shown(key, ...)
    local code, out = toolgate(...)
    assert.equal(0, code, out)
    golden.check("cli", "session: " .. key, out, VARIABLE)
    return out
  end

  local function a_night()
    local first, second = session("chat", { turn = 1 }), session("chat", { turn = 2 })
    client:calls("create_task", { name = "a" }, first)
    client:calls("create_task", { title = "a" }, first)
    for i = 1, 3 do client:calls("create_task", { name = "b" .. i }, first) end
    client:calls("nothing", {}, first)
    client:asks("toolgate/turn", { _meta = session "chat", turn = 2, goal = "close my tickets" })
    client:calls("outcome", { how = "facts" }, second)
    client:calls("outcome", { how = "failed" }, second)
    for _ = 1, 3 do client:calls("echo", { text = "same" }, second) end
    client:calls("create_task", { name = "c" }, second)
    client:checks("book_table", { where = "here" }, second)
  end

  it("prints the turns and calls of a conversation", function()
    start()
    a_night()
    shown("a night of calls", "chat")
  end)

  it("prints the same from Redis, on any daemon", function()
    local store = redis.start()
    start(store:url())
    a_night()
    shown("a night of calls", "chat")
    local first = gate
    start(store:url())
    shown("a night of calls", "chat")
    first:stop()
  end)

  it("reports an outage of Redis, and prints what this daemon knows", function()
    local store = redis.start()
    start(store:url())
    client:calls("echo", { text = "before" }, session "chat")
    store:kill()
    gate:loses_redis()
    client:calls("echo", { text = "after" }, session "chat")
    shown("during an outage of Redis", "chat")
  end)

  it("exits 2 during an outage if the ledger is closed", function()
    local store = redis.start()
    start(store:url(), "return { ledger = { on_outage = 'closed' } }")
    store:kill()
    gate:loses_redis()
    local code, out, err = toolgate "chat"
    assert.same({ 2, "" }, { code, out })
    golden.check("cli", "session: the ledger is closed during an outage of Redis", err, redis.LOST)
    assert.equal(1, select(2, err:gsub("\n", "")), err)
  end)

  it("lets a tool continue with --reset", function()
    start()
    a_night()
    local code, out = toolgate("chat", "--reset", "echo")
    assert.equal(0, code)
    golden.check("cli", "session: --reset", out)
    assert.equal("pass", verdict(client:calls("echo", { text = "same" }, session("chat", { turn = 2 }))).verdict)
  end)

  it("suggests the closest tool for a misspelled --reset", function()
    start()
    a_night()
    local code, out, err = toolgate("chat", "--reset", "ecco")
    assert.same({ 2, "" }, { code, out })
    golden.check("cli", "session: --reset of an unknown tool", err)
  end)

  it("deletes the session with --forget", function()
    start()
    a_night()
    local code, out = toolgate("chat", "--forget")
    assert.equal(0, code)
    golden.check("cli", "session: --forget", out)
    local unknown, none, err = toolgate "chat"
    assert.same({ 2, "" }, { unknown, none })
    golden.check("cli", "session: an unknown session", err)
  end)

  it("separates the sessions of users unless ledger.namespace is shared", function()
    start()
    client:calls("echo", { text = "a" }, session "chat")
    local code, out = toolgate("chat", "--user", "nobody")
    assert.same({ 2, "" }, { code, out })
    start(nil, "return { ledger = { namespace = 'shared' } }")
    client:calls("echo", { text = "a" }, session "chat")
    local words = shown("of all users", "chat")
    assert.truthy(words:find("session  shared/chat, ", 1, true), words)
  end)

  it("prints one JSON object with --json", function()
    start()
    a_night()
    local code, out = toolgate("chat", "--json")
    assert.equal(0, code)
    local known = client_of.json.decode(out)
    assert.same({ 2, 9, "loop" }, { known.turn, #known.history, known.history[8].code })
    assert.equal(1, select(2, out:gsub("\n", "")))
  end)

  it("replaces control characters", function()
    start()
    client:asks("toolgate/turn", { _meta = session "chat", goal = "\27[2Jgone\7\nand a line" })
    client:calls("\27]0;title\7", {}, session "chat")
    local words = shown("control characters are replaced", "chat")
    assert.is_nil(words:find("[\1-\9\11-\31\127]"))
  end)

  it("prints limits and what was spent", function()
    start(nil, "return { defaults = { limits = { calls_per_turn = 2 } } }")
    for i = 1, 3 do client:calls("echo", { text = "n" .. i }, session("chat", { turn = 1 })) end
    assert.truthy(shown("a limit is used up", "chat"):find("[calls_per_turn]\n", 1, true))
  end)

  it("keeps as many calls as the daemon's configuration says, in order", function()
    local store = redis.start()
    local function calls_of(count, from, to)
      start(store:url(), ("return { ledger = { history = %d } }"):format(count))
      for turn = from, to do client:calls("echo", { text = "n" .. turn }, session("chat", { turn = turn })) end
      local turns = {}
      for i, entry in ipairs(client:asks("toolgate/session", { session = "chat" }).history) do turns[i] = entry.turn end
      gate:stop()
      return table.concat(turns, " ")
    end
    assert.equal("3 4 5 6 7", calls_of(5, 1, 7))
    assert.equal("6 7 8", calls_of(3, 8, 8))
    assert.equal("8 9 10", calls_of(3, 9, 10))
    assert.equal("8 9 10 11 12", calls_of(8, 11, 12))
    assert.equal("11 12 13 14 15 16 17 18", calls_of(8, 13, 18))
  end)
end)
