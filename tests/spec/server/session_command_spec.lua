-- toolgate session: somebody is called at night and asks what happened in a conversation, and why the model is refused.
local daemon = require "daemon"
local client_of = require "client"
local fixtures = require "fixtures"
local process = require "process"
local redis = require "redis"
local session, verdict = client_of.session, client_of.verdict

local POLICIES = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                   ["create_task.lua"] = fixtures.create_task }

describe("toolgate session", function()
  local gate, client

  after_each(function()
    daemon.stop_all()
    redis.stop_all()
  end)

  local function start(url, config)
    gate = daemon.start { policies = POLICIES, tools = fixtures.agent_tools, config = config,
                          arguments = url and { "--redis", url } or nil }
    client = gate:connect()
    return gate
  end

  local function toolgate(...)
    local argv = { daemon.binary, "session", "--socket", gate.socket, ... }
    local code, out, err = process.run(argv)
    return code, out, err
  end

  -- Its words, with the user and the times of this run taken out.
  local function shown(...)
    local code, out = toolgate(...)
    assert.equal(0, code, out)
    return (out:gsub("uid:%d+", "uid:N"):gsub("%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d", "TIME               "))
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

  local NIGHT = [[
session  uid:N/chat, turn 2, step 13
goal     close my tickets
calls    6, 5 in this turn, which began TIME               ; 1 not settled yet
stuck    the last 3 calls brought nothing new
repairs  create_task: 1 invalid call, the model may try again
facts    colour = red

  WHEN                TURN STEP  TOOL         CLASS              WHY
  TIME                   1    2  create_task  ok                 1 repair tried
  TIME                   1    5  create_task  invalid_arguments  invalid time and again; 2 repairs tried [retry_budget_exceeded]
  TIME                   1    6  nothing      unknown_tool       there is no such tool
  TIME                   2    7  outcome      ok
  TIME                   2    8  outcome      tool_error         it ran, and answered with an error
  TIME                   2    9  echo         ok
  TIME                   2   10  echo         ok
  TIME                   2   11  echo         loop               the same call brings the same result, over and over
  now                    2   12  create_task  invalid_arguments  the model was told what to repair

to let it go on: toolgate session chat --reset echo
]]

  it("tells the night", function()
    start()
    a_night()
    assert.equal(NIGHT, shown "chat")
  end)

  it("tells it the same from Redis, and by any daemon", function()
    local store = redis.start()
    start(store:url())
    a_night()
    assert.equal(NIGHT, shown "chat")
    local first = gate
    start(store:url())
    assert.equal(NIGHT, shown "chat")
    first:stop()
  end)

  it("says so where Redis is away, and tells what is known here", function()
    local store = redis.start()
    start(store:url())
    client:calls("echo", { text = "before" }, session "chat")
    store:kill()
    process.eventually("it is away", function() return not gate:status().ledger.connected end)
    client:calls("echo", { text = "after" }, session "chat")
    local words = shown "chat"
    assert.truthy(words:find("Redis is away: this is what this daemon counted meanwhile, not the whole\n", 1, true), words)
    assert.truthy(words:find("calls    1, 1 in this turn", 1, true), words)
  end)

  it("refuses to guess where the ledger is closed", function()
    local store = redis.start()
    start(store:url(), "return { ledger = { on_outage = 'closed' } }")
    store:kill()
    process.eventually("it is away", function() return not gate:status().ledger.connected end)
    local code, out, err = toolgate "chat"
    assert.same({ 2, "" }, { code, out })
    assert.truthy(err:find("the ledger did not answer", 1, true), err)
    assert.equal(1, select(2, err:gsub("\n", "")), err)
  end)

  it("lets a tool go on", function()
    start()
    a_night()
    local code, out = toolgate("chat", "--reset", "echo")
    assert.same({ 0, "chat: echo may be called again, its runs and budgets begin anew\n" }, { code, out })
    assert.equal("pass", verdict(client:calls("echo", { text = "same" }, session("chat", { turn = 2 }))).verdict)
  end)

  it("does not take a name that is mistyped", function()
    start()
    a_night()
    local code, out, err = toolgate("chat", "--reset", "ecco")
    assert.same({ 2, "" }, { code, out })
    assert.equal("toolgate session: the daemon says: nothing was reset: there is no tool 'ecco'; did you mean 'echo'?\n", err)
  end)

  it("forgets", function()
    start()
    a_night()
    local code, out = toolgate("chat", "--forget")
    assert.same({ 0, "chat: forgotten, with its history, budgets, ids and facts\n" }, { code, out })
    local _, _, err = toolgate "chat"
    assert.equal("toolgate session: the daemon says: no session 'chat': it made no call yet, has expired, or belongs to "
                 .. "another user\n", err)
  end)

  it("is somebody's: another user's of that name is another, unless the operator has all users share theirs", function()
    start()
    client:calls("echo", { text = "a" }, session "chat")
    local code, out = toolgate("chat", "--user", "nobody")
    assert.same({ 2, "" }, { code, out })
    start(nil, "return { ledger = { namespace = 'shared' } }")
    client:calls("echo", { text = "a" }, session "chat")
    local words = shown "chat"
    assert.truthy(words:find("session  shared/chat, ", 1, true), words)
  end)

  it("is one JSON object for programs", function()
    start()
    a_night()
    local code, out = toolgate("chat", "--json")
    assert.equal(0, code)
    local known = client_of.json.decode(out)
    assert.same({ 2, 9, "loop" }, { known.turn, #known.history, known.history[8].code })
    assert.equal(1, select(2, out:gsub("\n", "")))
  end)

  it("prints nothing that steers a terminal", function()
    start()
    client:asks("toolgate/turn", { _meta = session "chat", goal = "\27[2Jgone\7\nand a line" })
    client:calls("\27]0;title\7", {}, session "chat")
    local words = shown "chat"
    assert.is_nil(words:find("[\1-\9\11-\31\127]"))
    assert.truthy(words:find("goal     ?[2Jgone??and a line\n", 1, true), words)
  end)

  it("shows what is limited and what was spent", function()
    start(nil, "return { defaults = { limits = { calls_per_turn = 2 } } }")
    for i = 1, 3 do client:calls("echo", { text = "n" .. i }, session("chat", { turn = 1 })) end
    local words = shown "chat"
    assert.truthy(words:find("limits.calls_per_turn is used up [calls_per_turn]\n", 1, true), words)
    assert.is_nil(words:find("to let it go on", 1, true), words)
  end)

  it("keeps as many calls as each daemon's configuration says, in order", function()
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
    assert.equal("9 10 11 12", calls_of(8, 11, 12)) -- the first call of the new size still took the place of 8
    assert.equal("11 12 13 14 15 16 17 18", calls_of(8, 13, 18))
  end)
end)
