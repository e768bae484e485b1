-- Counts the instructions of a daemon's work with callgrind. A count takes two runs of N and 2N calls, each with a daemon
-- of its own, and divides the difference by N: what starting, stopping and the first calls cost drops out. Unlike a
-- time, the count hardly depends on the machine or its load.
local daemon = require "daemon"
local process = require "process"

local M = { START_S = 60, WORK_S = 600 } -- a daemon under valgrind runs 50 times slower

M.available = os.execute "command -v valgrind >/dev/null 2>&1" == 0

-- ---- the work ----

local SCHEMA = [[{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}]]

-- An MCP server that answers each message as it arrives, in 30 lines, because the client waits for it.
local ECHO_SERVER = [[
import json, sys
def answer(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": ]] .. SCHEMA .. [[}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "Echo: " + message["params"]["arguments"]["message"]}]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(message)
        if result is None:
            reply["error"] = {"code": -32601, "message": "unknown method"}
        else:
            reply["result"] = result
        sys.stdout.write(json.dumps(reply, separators=(",", ":")) + "\n")
        sys.stdout.flush()
]]

-- Without the decision log, which has a subject of its own.
local QUIET = [[log = { level = "warn" }, decisions = false]]

-- About 300 bytes, as toolgate-bench socket sends; the number makes every call another one, so that no budget refuses.
local function request(number, method, rest)
  return ('{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"get_events","arguments":'
          .. '{"action":"by_time_span","start":"2026-05-01T00:00:00Z","end":"2026-05-02T00:00:00Z","limit":50,'
          .. '"query":"q%d"}%s,"_meta":{"dev.toolgate/session":"bench-1","dev.toolgate/turn":1}}}\n')
    :format(number, method, number, rest or "")
end

local function ask(stream, line, wanted)
  assert(stream:send(line))
  local answer = assert(stream:receive "*l")
  assert(answer:find(wanted, 1, true), answer)
  return answer
end

-- `records`: with the decision log, as it is by default.
local function by_policy(_, records)
  return {
    policies = { ["get_events.lua"] = process.read "tests/bench/toolgate-bench/get_events.lua" },
    config = "return { " .. (records and QUIET:gsub("decisions = false", "") or QUIET) .. " }",
    arguments = { "--no-watch" },
  }
end

local function check(stream, number)
  return ask(stream, request(number, "toolgate/check"), '"verdict":"pass"')
end

-- Each in a turn of its own, so that no repair budget ends; `from` and `to`: how the arguments are spoiled.
local function spoiled_checks(from, to, wanted)
  return function(stream, first, count)
    for number = first, first + count - 1 do
      local line = request(number, "toolgate/check"):gsub(from, to, 1):gsub('turn":1', 'turn":' .. number - 999999999)
      ask(stream, line, wanted)
    end
  end
end

-- What is measured: a daemon, and the function that makes `count` calls numbered from `first`.
M.subjects = {
  { name = "check", about = "toolgate/check of get_events: schema, rules, check hook, ledger; one at a time",
    daemon = by_policy,
    calls = function(stream, first, count)
      for number = first, first + count - 1 do check(stream, number) end
    end },
  { name = "recorded", about = "the same check with the decision log, as it is by default",
    daemon = function(directory) return by_policy(directory, true) end,
    calls = function(stream, first, count)
      for number = first, first + count - 1 do check(stream, number) end
    end },
  { name = "measured", about = "the same check with the metrics endpoint: calls are timed",
    daemon = function(directory)
      local given = by_policy()
      given.config = ("return { %s, metrics = { listen = 'unix:%s/metrics.sock' } }"):format(QUIET, directory)
      return given
    end,
    calls = function(stream, first, count)
      for number = first, first + count - 1 do check(stream, number) end
    end },
  { name = "repair", about = "the same check with a number as a string, which is repaired",
    daemon = by_policy, calls = spoiled_checks('"limit":50', '"limit":"50"', '"verdict":"pass"') },
  { name = "refuse", about = "the same check without a required parameter",
    daemon = by_policy, calls = spoiled_checks('"action":"by_time_span",', "", '"verdict":"repair"') },
  { name = "report", about = "the same, and toolgate/report of a small result",
    daemon = by_policy,
    calls = function(stream, first, count)
      for number = first, first + count - 1 do
        local id = check(stream, number):match '"callId":"([^"]+)"'
        ask(stream, request(number, "toolgate/report", (',"callId":"%s","result":{"events":[{"id":"e%d","title":"Review"}]}')
                            :format(id, number)), '"verdict":"pass"')
      end
    end },
  { name = "call", about = "tools/call of get_events, run in Lua; one at a time",
    daemon = by_policy,
    calls = function(stream, first, count)
      for number = first, first + count - 1 do
        ask(stream, request(number, "tools/call"), "Review of the quarter")
      end
    end },
  { name = "proxy", about = "tools/call of an echo in an MCP server over stdio, without a policy; 16 in flight",
    daemon = function(directory)
      local server = process.write(directory .. "/echo.py", ECHO_SERVER)
      return {
        config = ('return { %s, defaults = { limits = { calls_per_session = 1000000000 } }, '
                  .. 'upstreams = { echo = { command = "python3", args = { %q } } } }'):format(QUIET, server),
        arguments = { "--no-watch" },
      }
    end,
    ready = function(gate)
      process.eventually("the upstream is up", function() return gate:status().upstreams[1].state == "up" end, M.START_S)
    end,
    calls = function(stream, first, count)
      local sent = 0
      local function send()
        assert(stream:send(('{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":'
                            .. '{"message":"hello %d"},"_meta":{"dev.toolgate/session":"bench-1","dev.toolgate/turn":1}}}\n')
          :format(first + sent, first + sent)))
        sent = sent + 1
      end
      for _ = 1, math.min(16, count) do send() end
      for _ = 1, count do
        local answer = assert(stream:receive "*l")
        assert(answer:find("Echo: hello", 1, true), answer)
        if sent < count then send() end
      end
    end },
}

-- ---- the output of callgrind ----

-- A room of src, or the library. The program's own object without a source file is what it links statically: yajl.
local function room_of(file, object)
  local name = object:match "([^/]*)$"
  return file:match "/?src/(%a+)/" or (name == "toolgate" and "yajl" or name == "???" and "compiled Lua" or name)
end

local function add(costs, key, cost)
  costs[key] = (costs[key] or 0) + cost
end

-- Returns { total, rooms = { room = instructions }, functions = { [name] = { room, own, inclusive } } }. A function that
-- the compiler inlined counts for the room of its own file, and otherwise as part of the function around it.
local function read_profile(path)
  local names = { fl = {}, fn = {}, ob = {} }
  local KIND = { fl = "fl", fi = "fl", fe = "fl", fn = "fn", ob = "ob" } -- those that are called have cob=, cfn=
  local object, file, functions, rooms, total = "", "", {}, {}, 0
  local current, callee
  local function name_of(kind, text)
    local id, name = text:match "^(%(%d+%))%s*(.*)$"
    if not id then return text end
    if name ~= "" then names[kind][id] = name end
    return names[kind][id]
  end
  for line in io.lines(path) do
    local key, text = line:match "^(%l+)=(.*)$"
    if key == "calls" then
      callee = true -- the next line is the inclusive cost of the calls
    elseif KIND[key] then
      local name = name_of(KIND[key], text)
      if key == "ob" then
        object = name
      elseif key == "fn" then
        current = functions[name] or { room = room_of(file, object), own = 0, inclusive = 0 }
        functions[name] = current
      else
        file = name
      end
    elseif key == "cfn" or key == "cob" or key == "cfi" or key == "cfl" then
      name_of(key == "cfn" and "fn" or key == "cob" and "ob" or "fl", text)
    else
      local cost = line:match "^[%d+*-]+ (%d+)$"
      if cost and current then
        current.inclusive = current.inclusive + cost
        if not callee then
          current.own = current.own + cost
          total = total + cost
          add(rooms, room_of(file, object), tonumber(cost))
        end
        callee = nil
      end
    end
  end
  return { total = total, rooms = rooms, functions = functions }
end

local function run(subject, count)
  local directory = process.directory()
  local given = subject.daemon(directory)
  local out = directory .. "/callgrind"
  given.before = { "valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" .. out }
  given.patience_s = M.START_S
  local gate = daemon.start(given)
  if subject.ready then subject.ready(gate) end
  local stream = gate:connect().stream
  stream:settimeout(M.WORK_S)
  subject.calls(stream, 1000000000, count) -- ten digits: each message has the same length
  gate:stop()
  local profile = read_profile(out)
  process.remove(directory)
  return profile
end

-- Returns { total, rooms, functions } of one call of the subject, from `count` and twice as many.
function M.measure(subject, count)
  local once, twice = run(subject, count), run(subject, 2 * count)
  local each = { total = (twice.total - once.total) / count, rooms = {}, functions = {} }
  for room, cost in pairs(twice.rooms) do each.rooms[room] = (cost - (once.rooms[room] or 0)) / count end
  for name, cost in pairs(twice.functions) do
    local before = once.functions[name] or { own = 0, inclusive = 0 }
    each.functions[name] = { room = cost.room, own = (cost.own - before.own) / count,
                             inclusive = (cost.inclusive - before.inclusive) / count }
  end
  return each
end

-- ---- the budget ----

local BUDGET = "tests/bench/budget.txt"
M.BUDGET_CALLS = 1000

M.BUDGETED = { "check", "recorded" } -- without the decision log and with it

-- The committed number of instructions of BUDGET_CALLS calls of the subject.
function M.budget(name)
  return tonumber(process.read(BUDGET):match("\n" .. name .. " (%d+)\n"))
end

-- The same, counted now.
function M.spent(name)
  return M.measure(M.subject(name), M.BUDGET_CALLS).total * M.BUDGET_CALLS
end

-- `counted`: { [name] = instructions }; the others stay as they are.
function M.write_budget(counted)
  local lines = { ("# Instructions of %d calls of each subject (tests/bench/callgrind.lua). Only `make budget` writes this file.")
    :format(M.BUDGET_CALLS) }
  for _, name in ipairs(M.BUDGETED) do
    lines[#lines + 1] = ("%s %d"):format(name, counted[name] or M.budget(name))
  end
  process.write(BUDGET, table.concat(lines, "\n") .. "\n")
end

function M.subject(name)
  for _, subject in ipairs(M.subjects) do
    if subject.name == name then return subject end
  end
end

return M
