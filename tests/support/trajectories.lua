-- Replays recorded sessions of real models through toolgate/check and toolgate/report, on one daemon or on several in
-- turn. The recordings are beside the repository; specs are pending without them.
local client = require "client"
local process = require "process"

local M = { folder = os.getenv "CORPUS" or "../shared/data/corpus" }
local json = client.json

M.RUNAWAY_REPEATS = 64 -- identical calls that make a session a runaway; other sessions have at most 9

-- ---- JSON text --------------------------------------------------------------

local function string_end(text, at)
  repeat
    at = text:find('["\\]', at + 1)
    local escaped = text:byte(at) == 92
    if escaped then at = at + 1 end
  until not escaped
  return at
end

local function value_end(text, at)
  local first = text:sub(at, at)
  if first == '"' then return string_end(text, at) end
  if first ~= "{" and first ~= "[" then return text:find("[,}%]%s]", at) - 1 end
  local depth = 0
  repeat
    at = text:find('["{}%[%]]', at)
    local mark = text:sub(at, at)
    if mark == '"' then at = string_end(text, at)
    elseif mark == "{" or mark == "[" then depth = depth + 1
    else depth = depth - 1 end
    at = at + 1
  until depth == 0
  return at - 1
end

-- The JSON text of an object's member, unchanged: a Lua table keeps neither number spelling nor empty lists.
function M.raw(text, name)
  local at = text:find("[^{%s]")
  while at do
    local key_end = string_end(text, at)
    local key = text:sub(at + 1, key_end - 1)
    local from = text:find("[^:%s]", key_end + 1)
    local to = value_end(text, from)
    if key == name then return text:sub(from, to) end
    at = text:find('"', to + 1)
  end
end

-- ---- the record ---------------------------------------------------------------

local function recorded(line)
  local row = json.decode(line)
  return { session = row.session, toolset = row.toolset, turn = row.turn, step = row.step, tool = row.tool,
           env = row.env, is_error = row.is_error, arguments = M.raw(line, "arguments"), result = M.raw(line, "result") }
end

local function key_of(call) return call.tool .. " " .. call.arguments end

-- The call that a session makes most often, and its count.
function M.repeats(session)
  local times, most = {}, nil
  for _, call in ipairs(session) do
    local key = key_of(call)
    times[key] = (times[key] or 0) + 1
    if not most or times[key] > times[most] then most = key end
  end
  return times[most], most
end

-- The files of the recordings that match a pattern of the shell.
function M.paths(pattern)
  return io.popen("ls " .. M.folder .. "/" .. pattern .. " 2>/dev/null"):lines()
end

-- Each line of them.
function M.lines(pattern)
  return coroutine.wrap(function()
    for path in M.paths(pattern) do
      for line in io.lines(path) do coroutine.yield(line) end
    end
  end)
end

-- All sessions in recorded order, each a list of calls with its name and toolset; nil without recordings.
function M.sessions()
  local sessions, by_name = {}, {}
  for line in M.lines "trajectories-*.ndjson" do
    local call = recorded(line)
    local session = by_name[call.session]
    if not session then
      session = { name = call.session, toolset = call.toolset }
      by_name[call.session] = session
      sessions[#sessions + 1] = session
    end
    session[#session + 1] = call
  end
  return sessions[1] and sessions
end

-- Published ground truth without the calls that break their own schema.
function M.labelled()
  local function place_of(row) return table.concat({ row.source, row.session, tostring(row.turn), row.tool }, "|") end
  local defects, calls = {}, {}
  for line in M.lines "defects-groundtruth.ndjson" do defects[place_of(json.decode(line))] = true end
  for line in M.lines "calls-*-groundtruth.ndjson" do
    local row = json.decode(line)
    if row.expect == "valid" and not defects[place_of(row)] then
      calls[#calls + 1] = { tool = row.tool, toolset = row.toolset, arguments = M.raw(line, "arguments") }
    end
  end
  return calls
end

function M.toolsets(sessions)
  local list, known = {}, {}
  for _, session in ipairs(sessions) do
    if not known[session.toolset] then
      known[session.toolset] = true
      list[#list + 1] = session.toolset
    end
  end
  return list
end

function M.tools_file(toolset)
  local path = M.folder .. "/tools-" .. toolset .. ".json"
  return path:sub(1, 1) == "/" and path or require("posix.unistd").getcwd() .. "/" .. path
end

-- ---- what an operator would declare -----------------------------------------

-- Lua patterns of tool names, the first match counts; a tool without a match stays undeclared.
local EFFECTS = {
  toggle = { "^toggle_", "^reboot_", "^reset_", "^reseat_", "^cd$", "^ppt__switch_" },
  read = { "^get", "^find_", "^search_", "^list_", "^check_", "^can_", "^run_speed_test$", "^calculate$", "^think$",
           "^route$", "^pwd$", "^ls$", "^grep$", "^cat$", "^wc$", "^diff$", "^sort$", "__get", "__find_", "__search",
           "__read_", "__summarize", "__extract_", "_search$", "__fetch$", "leaderboard$", "__whois", "analysis$" },
  write = { "^update_", "^book_", "^cancel_", "^send_", "^transfer_", "^modify_", "^exchange_", "^return_", "^enable_",
            "^disconnect_", "^set_", "^make_", "^resume_", "^refuel_", "^grant_", "^mkdir$", "^mv$", "^rm$",
            "__write_", "__edit_", "__create_", "__add_" },
}

function M.effects_of(tool)
  for _, word in ipairs { "toggle", "read", "write" } do
    for _, pattern in ipairs(EFFECTS[word]) do
      if tool:find(pattern) then return word end
    end
  end
end

-- Policies that only declare the effects of the tools in a toolset's sessions.
function M.policies(sessions, toolset)
  local offered, policies = {}, {}
  for _, tool in ipairs(json.decode(process.read(M.tools_file(toolset)))) do offered[tool.name] = true end
  for _, session in ipairs(sessions) do
    for _, call in ipairs(session) do
      local effects = session.toolset == toolset and offered[call.tool] and M.effects_of(call.tool)
      if effects then
        policies[call.tool:gsub("[^%w]", "_") .. ".lua"] =
          ("-- %s: recorded.\nreturn tool %q { effects = %q }\n"):format(call.tool, call.tool, effects)
      end
    end
  end
  return policies
end

-- ---- replaying ------------------------------------------------------------------

-- The recorded outcome, as toolgate/report takes it.
local function outcome(call)
  if not call.is_error then return ('"result":{"content":[{"type":"text","text":%s}]}'):format(call.result) end
  return ('"error":{"message":%s,"transient":%s}'):format(call.result, tostring(call.env == "transient"))
end

local function asks(connection, method, params)
  connection.last_id = connection.last_id + 1
  connection:say_line(('{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}'):format(connection.last_id, method, params))
  local line = connection:hears_line()
  local result = M.raw(line, "result")
  if not result then error(("%s was answered %s"):format(method, line), 0) end
  return result
end

-- The reply without the call's id and the ledger's name, which differ between daemons.
local function said_alike(result)
  return (result:gsub('"callId":"[^"]*"', '"callId":""'):gsub('"ledger":"%a+"', '"ledger":""'))
end

-- What a client tells of a call's place; `bare`: the session alone, as stock MCP clients do.
local function place_of(session, call, bare)
  local name = json.encode(session.name)
  if bare then return ('{"dev.toolgate/session":%s}'):format(name) end
  return ('{"dev.toolgate/session":%s,"dev.toolgate/turn":%d,"dev.toolgate/step":"%s"}'):format(name, call.turn, call.step)
end

-- Replays a session; a refused call is not reported, and the recording continues. Checks and reports go to the
-- connections in turn. `bare`: without turns and steps. Returns for each call { verdict, check, report }.
function M.replay(session, connections, bare)
  local said, turn = {}, 0
  local function next_one()
    turn = turn % #connections + 1
    return connections[turn]
  end
  for i, call in ipairs(session) do
    local place = ('"name":%s,"_meta":%s'):format(json.encode(call.tool), place_of(session, call, bare))
    local check = asks(next_one(), "toolgate/check", ('%s,"arguments":%s'):format(place, call.arguments))
    said[i] = { verdict = json.decode(check), check = said_alike(check), engine = M.raw(check, "ledger") }
    if said[i].verdict.verdict == "pass" then
      said[i].report = said_alike(asks(next_one(), "toolgate/report", ('%s,"callId":%s,"arguments":%s,%s'):format(
        place, M.raw(check, "callId"), M.raw(check, "arguments"), outcome(call))))
    end
  end
  return said
end

-- ---- assertions -------------------------------------------------------------------

-- Refusals by the session's memory: budgets, loops and chains, not problems of a single call.
local MEMORY = { loop = true, cycle = true, same_call = true, retry_budget_exceeded = true, transient_budget = true,
                 duplicate_in_step = true, already_broken = true, poll_budget = true }

function M.is_stopped(verdict)
  return verdict.verdict == "refuse" and MEMORY[verdict.code] or verdict.verdict == "halt"
end

-- Of identical calls in a row in one turn the third and later ones must be stopped; an earlier one may be, by the
-- same-call budget. Returns the first call that was not.
function M.passed_as_third(session, said)
  local row = 0
  for i, call in ipairs(session) do
    local before = session[i - 1]
    row = before and before.turn == call.turn and key_of(before) == key_of(call) and row + 1 or 1
    if row >= 3 and not M.is_stopped(said[i].verdict) then return i end
  end
end

function M.stopped(said)
  local count = 0
  for _, one in ipairs(said) do
    if M.is_stopped(one.verdict) then count = count + 1 end
  end
  return count
end

-- A refused repetition that should have passed: of a toggle, or after another change since the same call ran. Returns
-- the first one.
function M.wrongly_stopped(session, said)
  for i, call in ipairs(session) do
    local verdict = said[i].verdict
    if M.is_stopped(verdict) and verdict.code ~= "retry_budget_exceeded" then
      if M.effects_of(call.tool) == "toggle" then return i end
      for j = i - 1, 1, -1 do
        local earlier, effects = session[j], M.effects_of(session[j].tool)
        if key_of(earlier) == key_of(call) then break end
        local changes = effects == "write" or effects == "toggle"
        local failed = tostring(said[j].report):find('"error_class":"tool_error"', 1, true) -- without isError
        if changes and earlier.env == "ok" and not failed and said[j].verdict.verdict == "pass" and earlier.tool ~= call.tool then
          return i
        end
      end
    end
  end
end

return M
