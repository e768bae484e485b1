-- toolgate sessions: which conversations the daemon serves, and which of them are stuck.
local redis = require "redis"

local POLICIES = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                   ["create_task.lua"] = fixtures.create_task }

describe("toolgate sessions", function()
  local gate, client

  local function start(url)
    gate = daemon.start { policies = POLICIES, arguments = url and { "--redis", url } or nil }
    client = gate:connect()
    return client
  end

  local function list(params) return client:asks("toolgate/sessions", params) end

  local function by_name(params)
    local found = {}
    for _, each in ipairs(list(params).sessions) do found[each.session] = each end
    return found
  end

  local function names(params)
    local found = {}
    for i, each in ipairs(list(params).sessions) do found[i] = each.session end
    return table.concat(found, " ")
  end

  -- Each call in a turn and message of its own, as an agent's loop makes them.
  local function repeats(name, times)
    local last
    for i = 1, times do
      last = client:calls("echo", { text = "same" }, session(name, { turn = 1, step = "m" .. i }))
    end
    return last
  end

  local function three_sessions()
    client:calls("create_task", { name = "a" }, session("busy", { turn = 1 }))
    for i = 1, 5 do client:calls("echo", { text = "n" .. i }, session("busy", { turn = 2 })) end
    repeats("stuck", 4)
    client:calls("echo", { text = "once" }, session "calm")
  end

  it("has of each its turn, calls, refusals and loop", function()
    start()
    three_sessions()
    local found, all = by_name(), list()
    local busy, stuck, calm = found.busy, found.stuck, found.calm
    assert.same({ 2, 5, 5, 1 }, { busy.turn, busy.calls, busy.calls_in_turn, busy.refusals })
    assert.is_nil(busy.loop)
    assert.same({ tool = "echo", times = 4, code = "loop" }, stuck.loop)
    assert.same({ 2, 2 }, { stuck.calls, stuck.refusals })
    assert.same({ 1, 0 }, { calm.calls, calm.refusals })
    assert.is_nil(calm.loop)
    assert.same({ 3, 1, 3, "local" }, { all.known, all.in_loop, all.refusals, all.engine })
    assert.is_true(calm.last_ms >= stuck.last_ms)
    assert.is_number(calm.uid)
    assert.is_nil(calm.anonymous)
  end)

  it("lists first what is asked for", function()
    start()
    three_sessions()
    assert.equal("calm", names({ limit = 1 }))
    assert.equal("stuck busy calm", names { sort = "refusals" })
    assert.equal("busy stuck calm", names { sort = "calls" })
    assert.equal("stuck", names { loops = true })
    assert.equal("stuck busy", names { sort = "refusals", limit = 2 })
  end)

  it("forgets a loop with the next turn, and when another call has passed", function()
    start()
    repeats("chat", 4)
    assert.is_table(by_name().chat.loop)
    client:calls("echo", { text = "other" }, session("chat", { turn = 1, step = "m5" }))
    assert.is_nil(by_name().chat.loop)
    repeats("next", 4)
    client:asks("toolgate/turn", { _meta = session "next" })
    assert.is_nil(by_name().next.loop)
  end)

  it("reports calls that run in circles although nothing refuses them", function()
    start()
    for i = 1, 3 do
      client:calls("create_task", { titel = "a" }, session("chat", { turn = 1, step = "m" .. i }))
    end
    local loop = by_name().chat.loop
    assert.same({ "create_task", 3 }, { loop.tool, loop.times })
  end)

  it("names anonymous connections", function()
    start()
    client:calls("echo", { text = "a" })
    local only = list().sessions[1]
    assert.is_true(only.anonymous)
    assert.is_nil(only.uid)
  end)

  it("forgets a session that was deleted", function()
    start()
    client:calls("echo", { text = "a" }, session "chat")
    client:asks("toolgate/session", { session = "chat", forget = true })
    assert.equal(0, list().known)
  end)

  it("lists with Redis what this daemon served, the calls of the whole fleet counted", function()
    local store = redis.start()
    local here = start(store:url())
    client:calls("echo", { text = "1" }, session("shared", { turn = 1 }))
    start(store:url())
    client:calls("echo", { text = "2" }, session("shared", { turn = 1 }))
    client:calls("echo", { text = "3" }, session("other", { turn = 1 }))
    assert.equal(2, by_name().shared.calls)
    assert.equal("redis", list().engine)
    client = here
    assert.equal("shared", names())
  end)

  it("refuses a sort that does not exist, and users who do not run the daemon", function()
    start()
    local reply = client:ask("toolgate/sessions", { sort = "size" })
    assert.equal(-32602, reply.error.code)
    golden.check("methods", "toolgate/sessions: an unknown sort", reply.error.message)
  end)

  it("keeps the same memory however many sessions there are", function()
    start()
    for i = 1, 1100 do client:calls("echo", { text = "a" }, session("chat-" .. i)) end
    local all = list { limit = 1000 }
    assert.same({ 1000, 1024, 1024 }, { #all.sessions, all.known, all.most })
    assert.equal("chat-1100", all.sessions[1].session)
  end)

  describe("for people", function()
    local VARIABLE = { ["%d+ s ago"] = "now    ", [" ago  "] = " ago  " }

    local function shown(key, ...)
      local user = require("posix.pwd").getpwuid(require("posix.unistd").getuid()).pw_name
      local out = process.runs { daemon.binary, "sessions", "--socket", gate.socket, ... }
      VARIABLE[user .. " *"] = "<user>  "
      VARIABLE["USER *"] = "USER    "
      golden.check("cli", "sessions: " .. key, out, VARIABLE)
      return out
    end

    it("prints a line each", function()
      start()
      shown("none yet")
      three_sessions()
      shown("one is in a loop", "--sort", "calls")
      shown("the first", "--limit", "1", "--sort", "calls")
      repeats("calm", 1)
      shown("only loops", "--loops")
    end)

    it("refuses an unknown sort before it connects", function()
      local code, _, err = process.run { daemon.binary, "sessions", "--sort", "size", "--socket", "/nowhere/s" }
      assert.equal(2, code)
      assert.truthy(err:find("recent, refusals or calls, got 'size'", 1, true), err)
      assert.is_nil(err:find("nowhere", 1, true))
    end)

    it("replaces control characters", function()
      start()
      client:calls("echo", { text = "a" }, session "\27[2Jgone\7 \xe2\x80\xaegnp.exe")
      local out = shown("control characters are replaced")
      assert.is_nil(out:find("[\1-\9\11-\31\127]"))
      assert.is_nil(out:find("\xe2\x80\xae", 1, true))
    end)

    it("prints one JSON object with --json", function()
      start()
      three_sessions()
      local out = process.runs { daemon.binary, "sessions", "--socket", gate.socket, "--json", "--loops" }
      assert.equal("stuck", client_of.json.decode(out).sessions[1].session)
    end)
  end)
end)
