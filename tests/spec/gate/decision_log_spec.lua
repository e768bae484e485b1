-- The decision log: a record of every call, what it holds, and what it never holds.
local cjson = require "cjson"
local daemon = require "daemon"
local process = require "process"
local fixtures = require "fixtures"

local both = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task }
local ALWAYS = { "v", "ts", "decision_id", "generation", "uid", "session", "turn", "tool", "arguments", "verdict",
                 "error_class", "us" }

local function file_of(gate) return gate.socket .. ".decisions.ndjson" end

-- Waits until the file has `count` records, and returns them.
local function records(path, count)
  local list
  process.eventually(count .. " records in " .. path, function()
    list = {}
    local file = io.open(path)
    if not file then return false end
    for line in file:lines() do list[#list + 1] = cjson.decode(line) end
    file:close()
    return #list >= count
  end)
  assert.equal(count, #list)
  return list
end

describe("the decision log", function()
  after_each(daemon.stop_all)

  it("has a record of every call, passed ones too, with all fixed fields", function()
    local gate = daemon.start { policies = both }
    local client = gate:connect()
    local meta = { ["dev.toolgate/session"] = "chat-7", ["dev.toolgate/turn"] = 3, ["dev.toolgate/call"] = "toolu_1",
                   ["dev.toolgate/step"] = "m12", ["dev.toolgate/ext"] = "crm" }
    client:calls("echo", { text = "hi" }, meta)
    client:checks("create_task", { due_date = "tomorrow" }, meta)
    client:calls("nothing", { a = 1 }, meta)
    local list = records(file_of(gate), 3)
    for i, verdict in ipairs { "pass", "repair", "refuse" } do
      for _, field in ipairs(ALWAYS) do assert.not_nil(list[i][field], field) end
      assert.equal(verdict, list[i].verdict)
      assert.same({ "chat-7", 3, "toolu_1", "m12", "crm" },
                  { list[i].session, list[i].turn, list[i].label, list[i].step, list[i].ext })
      assert.is_true(list[i].us.total >= 0)
      assert.truthy(list[i].ts:match "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$")
    end
    assert.same({ text = "hi" }, list[1].arguments)
    assert.equal("unknown_tool", list[3].error_class)
    assert.same({ "tools/call", "toolgate/check", "tools/call" },
                { list[1].method, list[2].method, list[3].method })
  end)

  it("gives a report the decision_id of its check", function()
    local gate = daemon.start { policies = both }
    local client = gate:connect()
    local check = client:checks("create_task", { title = "Call Ana" })
    client:asks("toolgate/report", { callId = check.callId, result = { id = 5 } })
    local list = records(file_of(gate), 2)
    assert.same({ check.callId, check.callId }, { list[1].decision_id, list[2].decision_id })
    assert.equal("toolgate/report", list[2].method)
    assert.equal("ok", list[2].result.class)
  end)

  it("is off with decisions = false", function()
    local gate = daemon.start { policies = both, config = "return { decisions = false }" }
    gate:connect():calls("echo", { text = "hi" })
    assert.is_false(gate:status().decisions.on)
    gate:stop()
    assert.is_nil(io.open(file_of(gate)))
  end)

  it("writes what is buffered when the daemon stops", function()
    local directory = process.directory()
    local gate = daemon.start { policies = both, config = ("return { decisions = { file = %q } }"):format(directory .. "/log") }
    local client = gate:connect()
    for i = 1, 50 do client:checks("create_task", { title = "task " .. i }) end
    gate:stop()
    assert.equal(50, #records(directory .. "/log", 50))
    process.remove(directory)
  end)
end)
