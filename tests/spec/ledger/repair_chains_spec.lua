-- The end of a repair chain: one log line at the right level, and the counters.
local cjson = require "cjson"

local ORDER = [==[
-- order: one order. For specs.
return tool "order" {
  description = "An order.", effects = "read", gives_ids = { "id" }, ids = { id = seen() },
  schema = params { id = str "Which", lines = optional(int "How many of its lines") },
  run = function(args) return { id = args.id } end,
}
]==]

describe("a repair chain", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["create_task.lua"] = fixtures.create_task, ["order.lua"] = ORDER,
                                              ["outcome.lua"] = fixtures.outcome },
                                 config = "return { log = { level = 'debug' } }" }
  end)

  local function place(turn, goal) return client_of.session("s", { turn = turn or 1, goal = goal, ext = "crm" }) end

  local function calls(tool, arguments, ...) return verdict(client:calls(tool, arguments, place(...))) end

  -- "level tool outcome retries" of each log line, in order; all are of this extension.
  local function ends()
    local list = {}
    for level, words in gate:log():gmatch "(%l+) validation_retry_outcome ([^\n]*)" do
      local tool, outcome, retries = words:match "^tool=(%S+) ext=crm outcome=(%S+) retry_count=(%d+)$"
      list[#list + 1] = ("%s %s %s %s"):format(level, tool or words, outcome, retries)
    end
    return list
  end

  local function counts()
    local counters = gate:status().counters
    return { counters.repair_chains, counters.fabricated_id_on_retry }
  end

  it("without a retry is logged at debug level, and not counted", function()
    calls("create_task", { title = "a" })
    assert.same({ "debug create_task no_retry 0" }, ends())
    assert.same({ 0, 0 }, counts())
  end)

  it("that repaired the call is logged with its retries", function()
    calls("create_task", { name = "a" })
    calls("create_task", { name = "b" })
    calls("create_task", { title = "b" })
    assert.same({ "info create_task success 2" }, ends())
    assert.same({ 1, 0 }, counts())
  end)

  -- A client must not need to know that there was a chain.
  it("that repaired the call leaves a reply with the same fields as an immediate success", function()
    local function fields(of, into, path)
      for key, value in pairs(of) do
        into[path .. tostring(key)] = type(value)
        if type(value) == "table" then fields(value, into, path .. key .. ".") end
      end
      return into
    end
    local first = client:calls("create_task", { title = "a" }, client_of.session("one"))
    client:calls("create_task", { name = "a" }, client_of.session("other"))
    local retried = client:calls("create_task", { title = "a" }, client_of.session("other"))
    assert.same(fields(first, {}, ""), fields(retried, {}, ""))
  end)

  it("that goes on long after its end is a halt, in a session without turns, too", function()
    for _, place_of in ipairs { function() return client_of.session "no turns" end,
                                function() return client_of.session("turns", { turn = 1 }) end } do
      local words = {}
      for i = 1, 23 do
        local v = client_of.verdict(client:calls("create_task", { name = "n" .. i }, place_of()))
        words[i] = v.verdict .. " " .. v.code
      end
      for i = 3, 21 do assert.equal("refuse retry_budget_exceeded", words[i], i) end
      for i = 22, 23 do assert.equal("halt retry_budget_exceeded", words[i], i) end
      -- what fits still runs
      assert.equal("pass", client_of.verdict(client:calls("create_task", { title = "a" }, place_of())).verdict)
    end
  end)

  -- The model's output ended: five successful sessions had up to 39 such calls.
  it("of arguments that arrive empty or cut off is a halt from the 50th", function()
    for _, arguments in ipairs { "{}", [["{\"title\": \"a long title that the model never fini"]] } do
      local name, said = "lost " .. #arguments, {}
      for i = 1, 52 do
        client:say_line(([[{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_task","arguments":%s,]]
          .. [["_meta":{"dev.toolgate/session":"%s","dev.toolgate/turn":1}}}]]):format(i, arguments, name))
        said[i] = verdict(client:hears().result).verdict
      end
      assert.same({ "repair", "repair", "refuse" }, { said[1], said[2], said[3] })
      for i = 3, 48 do assert.equal("refuse", said[i], name .. ", call " .. i) end
      assert.equal("halt", said[51], name)
    end
  end)

  -- A provider gives each call an id of its own, and a client sends it along.
  it("goes on when each call has a new id, and valid arguments pass", function()
    local left = {}
    for i = 1, 30 do
      local meta = place()
      meta["dev.toolgate/call"] = "toolu_" .. i
      local v = verdict(client:calls("create_task", { name = "n" .. i }, meta))
      left[i] = v.verdict .. " " .. v.attempts_left
    end
    assert.same({ "repair 2", "repair 1", "refuse 0" }, { left[1], left[2], left[3] })
    for i = 4, 21 do assert.equal("refuse 0", left[i], i) end
    for i = 22, 30 do assert.equal("halt 0", left[i], i) end
    local meta = place()
    meta["dev.toolgate/call"] = "toolu_31"
    assert.equal("pass", verdict(client:calls("create_task", { title = "a" }, meta)).verdict)
    assert.same({ 1, 0 }, counts())
  end)

  -- Nobody could read the answer to the first before the fourth was sent.
  it("of each of four calls that are written at once begins with all attempts", function()
    local function at_once(names, argument)
      local lines, heard = {}, {}
      for i, name in ipairs(names) do
        lines[i] = cjson.encode { jsonrpc = "2.0", id = name, method = "tools/call", params = {
          name = "create_task", arguments = { [argument] = name }, _meta = place() } }
      end
      client:say_line(table.concat(lines, "\n"))
      for _ in ipairs(names) do
        local v = verdict(client:hears().result)
        heard[#heard + 1] = v.verdict .. " " .. (v.attempts_left or "")
      end
      return heard
    end
    assert.same({ "repair 2", "repair 2", "repair 2", "repair 2" }, at_once({ "a", "b", "c", "d" }, "name"))
    assert.same({ "repair 1", "repair 1", "repair 1", "repair 1" }, at_once({ "e", "f", "g", "h" }, "name"))
    assert.same({ "refuse 0", "refuse 0", "refuse 0", "refuse 0" }, at_once({ "i", "j", "k", "l" }, "name"))
    at_once({ "m" }, "title")
    assert.same({ "repair 2" }, at_once({ "n" }, "name"))
  end)

  it("that is exhausted is logged once, even if the model continues", function()
    for i = 1, 5 do calls("create_task", { name = "n" .. i }) end
    assert.same({ "warn create_task exhausted 2" }, ends())
    calls("create_task", { title = "a" })
    assert.same({ "warn create_task exhausted 2", "debug create_task no_retry 0" }, ends())
    assert.same({ 1, 0 }, counts())
  end)

  it("that ends with repeated arguments is redundant", function()
    calls("create_task", { name = "a" })
    calls("create_task", { name = "b" })
    assert.equal("retry_budget_exceeded", calls("create_task", { name = "a" }).code)
    assert.same({ "warn create_task redundant 2" }, ends())
  end)

  it("that is open at the end of the turn is llm_gave_up, unless it has ended before", function()
    for i = 1, 3 do calls("create_task", { name = "n" .. i }) end
    calls("order", { lines = 1 })
    calls("order", { lines = 2 })
    calls("outcome", { how = { 1 } })
    client:asks("toolgate/turn", { _meta = place(2) })
    assert.same({ "warn create_task exhausted 2", "info order llm_gave_up 1", "info outcome llm_gave_up 0" }, ends())
    assert.same({ 3, 0 }, counts())
  end)

  it("is llm_gave_up at the first call of a new turn", function()
    calls("create_task", { name = "a" })
    calls("create_task", { title = "b" }, 2)
    assert.same({ "info create_task llm_gave_up 0", "debug create_task no_retry 0" }, ends())
    assert.same({ 1, 0 }, counts())
  end)

  it("with a fabricated id ends with a warning and its own counter", function()
    calls("order", { lines = 1 }, 1, "find my order")
    assert.same({ "refuse", "fabricated_id" }, { calls("order", { id = "o9" }, 1, "find my order").verdict,
                                                 calls("order", { id = "o8" }, 1, "find my order").error_class })
    assert.same({ "warn order fabricated_id_on_retry 1" }, ends())
    assert.same({ 1, 1 }, counts())
  end)

  it("that is exhausted does not end again with a fabricated id", function()
    for i = 1, 3 do calls("order", { lines = i }, 1, "find my order") end
    assert.equal("fabricated_id", calls("order", { id = "o9" }, 1, "find my order").error_class)
    assert.same({ "warn order exhausted 2" }, ends())
  end)

  for how, word in pairs { partial = "a partial result", broken = "a broken result", garbage = "an empty result" } do
    it("ends as success with a call that ran and returned " .. word, function()
      calls("outcome", { how = { 1 } })
      assert.equal(2, calls("outcome", { how = { 2 } }).attempts_left + 1)
      calls("outcome", { how = how })
      assert.same({ "info outcome success 2" }, ends())
    end)
  end

  for _, how in ipairs { "failed", "transient" } do
    it("continues after a valid call that was " .. how, function()
      calls("outcome", { how = { 1 } })
      calls("outcome", { how = how })
      assert.equal(1, calls("outcome", { how = { 2 } }).attempts_left)
      calls("outcome", { how = "ok" })
      assert.same({ "info outcome success 2" }, ends())
    end)
  end
end)

describe("a sub-agent's repair chain", function()
  it("ends with the report of the call that repaired it, though a report names no agent", function()
    local gate, client = daemon.open { tools = fixtures.agent_tools }
    local meta = client_of.session("s", { turn = 1, agent = "researcher" })
    assert.equal("repair", client:checks("get_weather", { town = "Bern" }, meta).verdict)
    local checked = client:checks("get_weather", { city = "Bern" }, meta)
    client:asks("toolgate/report", { callId = checked.callId, result = "grey" })
    local chains = gate:status().counters.chains
    assert.same({ 1, 0 }, { chains.success, chains.llm_gave_up })
    assert.equal(1, client:checks("get_weather", { town = "Brno" }, meta).attempt)
  end)
end)
