-- Plays the demo's dialogue over the socket and prints for each call the verdict, the repairs and what the model reads.
-- Colour on a terminal only.
local daemon = require "daemon"
local client = require "client"
local json = client.json
local unistd = require "posix.unistd"

local M = { own_tool = {} }

local SESSION = "demo"
local RESULT_MAX = 96 -- characters of a result that are shown

local COLOURS = { pass = "32", repair = "33", wait = "33", ask = "35", refuse = "31", halt = "1;31" }
local on_a_terminal = unistd.isatty(1) and os.getenv "NO_COLOR" == nil

local function painted(colour, text)
  return on_a_terminal and ("\27[%sm%s\27[0m"):format(colour, text) or text
end

local function show(format, ...)
  io.write(format:format(...), "\n")
end

-- For an agent that runs a tool itself: it registers the tool, checks before the call and reports after it.
function M.own_tool.registers(definition)
  return { definition = definition }
end
function M.own_tool.checks(tool, arguments, expected, because)
  return { method = "toolgate/check", tool = tool, arguments = arguments, expected = expected, because = because }
end
function M.own_tool.reports(outcome, expected, because)
  return { method = "toolgate/report", outcome = outcome, expected = expected, because = because }
end

-- ---- requests --------------------------------------------------------------------------------------------------

local player = {}
player.__index = player

-- The session, and the goal of the user.
function player:meta()
  return ('"_meta":{"dev.toolgate/session":"%s","dev.toolgate/goal":%s}'):format(SESSION, json.encode(self.goal or ""))
end

-- Parameters are JSON text, so that the printed bytes are the bytes that were sent.
function player:asks(method, params)
  self.last_id = self.last_id + 1
  self.connection:say_line(('{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}'):format(self.last_id, method, params))
  local reply, line = self.connection:answer(self.last_id)
  if not reply.result then error(method .. ": expected a result, got " .. line, 0) end
  return reply.result
end

function player:opens()
  self:asks("initialize", '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo","version":"1"}')
  self.connection:say_line '{"jsonrpc":"2.0","method":"notifications/initialized"}'
end

function player:says(line)
  local method = line.method or "tools/call"
  if method == "toolgate/report" then
    local outcome = line.outcome:match "^{(.*)}$"
    return self:asks(method, ('"callId":%s,"name":%s,"arguments":%s,%s,%s'):format(
      json.encode(self.checked.id), json.encode(self.checked.tool), self.checked.arguments, outcome, self:meta()))
  end
  local result = self:asks(method, ('"name":%s,"arguments":%s,%s'):format(json.encode(line.tool), line.arguments,
                                                               self:meta()))
  if method == "toolgate/check" then
    self.checked = { id = result.callId, tool = line.tool, arguments = json.encode(result.arguments) }
  end
  return result
end

-- ---- output ----------------------------------------------------------------------------------------------------

local function in_short(text)
  if #text <= RESULT_MAX then return text end
  return text:sub(1, RESULT_MAX):gsub("[\128-\191]*$", "") .. " …"
end

local function indented(text, colour)
  for line in (text:gsub("\n+$", "") .. "\n"):gmatch "(.-)\n" do show("     %s %s", painted(colour, "|"), line) end
end

local function rewrite_in_words(change)
  local where = change.path:gsub("^/", ""):gsub("/", ".")
  if change.op == "remove" then return where .. " dropped" end
  return where .. " is " .. json.encode(change.value)
end

local function verdict_of(result)
  return client.verdict(result) or result.verdict and (type(result.verdict) == "table" and result.verdict or result)
end

local function shows_verdict(verdict)
  local words = verdict.error_class == "ok" and "" or " " .. verdict.error_class
  if verdict.code and verdict.code ~= verdict.error_class then words = words .. ", " .. verdict.code end
  if verdict.verdict == "pass" and verdict.coverage then words = words .. " " .. verdict.coverage end
  if verdict.attempts_left then words = words .. (", attempts left: %d"):format(verdict.attempts_left) end
  show("     %s%s", painted(COLOURS[verdict.verdict] or "0", verdict.verdict), words)
  if verdict.verdict == "pass" and verdict.rewrites and #verdict.rewrites > 0 then
    local changes = {}
    for at, change in ipairs(verdict.rewrites) do changes[at] = rewrite_in_words(change) end
    show("     repaired: %s", table.concat(changes, "; "))
  end
end

-- What the model reads. A tool's own result is truncated here only; feedback is printed completely.
local function shows_text(result, verdict)
  local colour = COLOURS[verdict.verdict] or "0"
  local shown = {}
  for at, block in ipairs(result.content or {}) do
    shown[block.text or ""] = true
    if verdict.verdict == "pass" and at == 1 then
      indented(in_short(block.text), colour)
    else
      indented(block.text, colour)
    end
  end
  for _, own in ipairs { result.text or "", result.advice or "" } do
    if own ~= "" and not shown[own] then indented(own, colour) end
    shown[own] = true
  end
end

local function described(line)
  if line.outcome then return "toolgate/report " .. line.outcome end
  if line.method then return line.method .. " " .. line.tool .. " " .. line.arguments end
  return line.tool .. " " .. line.arguments
end

function player:shows(line, result)
  local verdict = verdict_of(result) or error("no verdict in the reply to " .. described(line), 0)
  self.calls = self.calls + 1
  show("\n%3d. %s", self.calls, painted("1", described(line)))
  show("     %s", painted("2", "-- " .. line.because))
  shows_verdict(verdict)
  shows_text(result, verdict)
  local got = verdict.verdict .. " " .. verdict.error_class
  if got ~= line.expected then
    self.unexpected = self.unexpected + 1
    show("     %s", painted("1;31", ("UNEXPECTED: wanted %s, got %s"):format(line.expected, got)))
  end
end

-- ---- playing ---------------------------------------------------------------------------------------------------

function player:plays(line)
  if line.goal then
    self.goal = line.goal
    self:asks("toolgate/turn", ('"goal":%s,%s'):format(json.encode(line.goal), self:meta()))
    show("\n%s %s", painted("36", "The user:"), painted("1", line.goal))
  elseif line.definition then
    self:asks("toolgate/register", ('"tools":[%s],%s'):format(line.definition, self:meta()))
    show("\n     The agent registers a tool of its own: %s", json.decode(line.definition).name)
  else
    self:shows(line, self:says(line))
  end
end

local function play(dialogue, options)
  daemon.binary = options.binary
  local served = daemon.start { policies = options.policies }
  local self = setmetatable({ connection = served:connect(), last_id = 0, calls = 0, unexpected = 0 }, player)
  self:opens()
  show("An agent connects to %s at %s", options.binary, served.socket)
  for _, line in ipairs(dialogue) do self:plays(line) end
  return self
end

-- Returns the exit code. The daemon is stopped in any case, and must exit with code 0.
function M.play(dialogue, options)
  local ok, played = xpcall(play, function(why) return tostring(why) end, dialogue, options)
  local ended, trouble = pcall(daemon.stop_all)
  if not ok or not ended then
    io.stderr:write("demo: ", not ok and played or trouble, "\n")
    for _, words in ipairs(daemon.last_words) do io.stderr:write("the daemon's log:\n", words) end
    return 1
  end
  show("\n%d calls, %s", played.calls, played.unexpected == 0 and painted("32", "every verdict as expected")
       or painted("1;31", played.unexpected .. " not as expected"))
  return played.unexpected == 0 and 0 or 1
end

return M
