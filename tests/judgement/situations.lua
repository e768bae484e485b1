-- Situations that the recordings do not hold: what an agent can make a gate let through by repeating itself.
local gates = require "gate"
local score = require "score"

local TOOLS = [[
[{"name":"get_clock","inputSchema":{"type":"object"}},
 {"name":"sprocket","inputSchema":{"type":"object"}},
 {"name":"get_page","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}},
 {"name":"delete_page","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}},
 {"name":"book","inputSchema":{"type":"object","properties":{"seat":{"type":"integer"}},"required":["seat"]}}]
]]

local POLICIES = {
  ["get_job.lua"] = [[
-- get_job: the state of a job, which may be polled.
return tool "get_job" { schema = { type = "object" }, effects = "read", loop = { poll = true } }
]],
  ["delete_order.lua"] = [[
-- delete_order: only ids that the session has seen.
return tool "delete_order" {
  schema = { type = "object", properties = { id = { type = "string" } }, required = { "id" } },
  effects = "destructive",
  ids = { id = seen { look_up = "list_orders" } },
}
]],
}

local M = {}

local function text(said) return ('"result":{"content":[{"type":"text","text":"%s"}]}'):format(said) end

-- How many of `times` calls run; `call(i)` and `result(i)` are JSON text.
local function runs(gate, session, tool, times, call, result)
  local ran = 0
  for i = 1, times do
    local said = gate:check(tool, call(i), session, 1, tostring(i))
    if said.verdict.verdict == "pass" then
      ran = ran + 1
      gate:report(said, text(result(i)))
    end
  end
  return ran
end

local function same(arguments) return function() return arguments end end

local function clock(i) return ("it is 2026-11-27T10:00:%02dZ"):format(i) end

-- A deletion, 40 other reads, and the deletion again, three times.
local function deletions_among_reads(gate)
  local ran = 0
  for _ = 1, 3 do
    ran = ran + runs(gate, "deletes", "delete_page", 1, same '{"id":"p1"}', same "deleted")
    runs(gate, "deletes", "get_page", 40, function(i) return ('{"n":%d}'):format(i) end, function(i) return "page " .. i end)
  end
  return ran
end

-- How many times a model is told to repair arguments that stay wrong, each call with an id of its own.
local function repairs_offered(gate)
  local offered = 0
  for i = 1, 30 do
    local said = gate:check("book", ('{"seat":"window %d"}'):format(i), "chain", 1, tostring(i))
    if said.verdict.verdict == "repair" then offered = offered + 1 end
  end
  return offered
end

local function invented_ids(gate)
  return runs(gate, "ids", "delete_order", 6, function(i) return ('{"id":"ord-%d%d"}'):format(i, i * 7919) end, same "deleted")
end

function M.judge_all()
  local gate = gates.of { tools = TOOLS, policies = POLICIES }
  local figures = {
    clock_read = runs(gate, "read", "get_clock", 30, same "{}", clock),
    clock_unknown = runs(gate, "unknown", "sprocket", 30, same "{}", clock),
    clock_poll = runs(gate, "poll", "get_job", 30, same "{}", clock),
    deletions = deletions_among_reads(gate), repairs = repairs_offered(gate), invented_ids = invented_ids(gate),
  }
  score.judge(figures.clock_read <= 6, "30 identical reads whose results differ in a time: %d run (to reach: 6)",
    figures.clock_read)
  score.judge(figures.clock_unknown <= 3, "the same of a tool whose effects are unknown: %d run (to reach: 3)",
    figures.clock_unknown)
  score.judge(figures.clock_poll <= 20, "the same of a tool that may be polled: %d run (to reach: poll.max, 20)",
    figures.clock_poll)
  score.judge(figures.deletions == 1, "one deletion, sent three times with 40 reads between: %d run (to reach: 1)",
    figures.deletions)
  score.judge(figures.repairs <= 2, "30 calls with wrong arguments and fresh ids: told to repair %d times (to reach: 2)",
    figures.repairs)
  score.judge(figures.invented_ids == 0, "6 deletions with invented ids, each a new one: %d run (to reach: 0)",
    figures.invented_ids)
  score.keep(figures)
  gate:stop()
end

return M
