-- A small MCP server for specs of calls: its tools answer, fail, hold calls and release them, by name. It appends each
-- event to the file $NOTES, one word per line.
local json = require("cjson").new()
local unistd = require "posix.unistd"
local signal = require "posix.signal"

local held, asked = {}, {}
local NOTES = os.getenv "NOTES"

local function note(word)
  local file = assert(io.open(NOTES, "a"))
  file:write(word, "\n")
  file:close()
end

-- How often this word was noted, earlier processes included.
local function noted(word)
  local count, file = 0, io.open(NOTES)
  for line in file and file:lines() or function() end do count = count + (line == word and 1 or 0) end
  if file then file:close() end
  return count
end

local function say(message)
  message.jsonrpc = "2.0"
  io.write(json.encode(message), "\n")
  io.flush()
end

local function answer(id, text, more)
  local result = { content = { { type = "text", text = text } } }
  for key, value in pairs(more or {}) do result[key] = value end
  say { id = id, result = result }
end

local function die()
  signal.kill(unistd.getpid(), signal.SIGKILL)
end

-- By name: the properties it takes, its annotations, and its function.
local TOOLS = {
  echo = { takes = '"text":{"type":"string"}', run = function(id, args) answer(id, args.text) end },
  fails = { run = function(id) answer(id, "no such row", { isError = true }) end },
  refuses = { run = function(id) say { id = id, error = { code = -32000, message = "the table is locked" } } end },
  nonsense = { run = function(id) say { id = id, result = { task = { taskId = "t1" } } } end },
  dies = { run = die },
  dies_reading = { hints = '"readOnlyHint":true', run = die },
  -- Dies `times` times, then answers.
  recovers = { takes = '"times":{"type":"integer"}', hints = '"idempotentHint":true', run = function(id, args)
    if noted "recovers" <= args.times then die() end
    answer(id, "at last")
  end },
  -- Reports an overload once, then does not answer.
  hangs_on = { hints = '"readOnlyHint":true', run = function(id)
    if noted "hangs_on" == 1 then answer(id, "503 Service Unavailable", { isError = true }) end
  end },
  holds = { takes = '"n":{"type":"integer"}', run = function(id) held[#held + 1] = id end },
  lets_go = { run = function(id)
    for _, one in ipairs(held) do answer(one, "let go") end
    held = {}
    answer(id, "all")
  end },
  tells = { run = function(id, _, meta)
    for i = 1, 2 do
      say { method = "notifications/progress", params = { progressToken = meta.progressToken, progress = i, total = 2 } }
    end
    say { method = "notifications/message", params = { level = "info", data = "half way" } }
    answer(id, "done")
  end },
  asks = { run = function(id)
    say { id = "question-1", method = "elicitation/create", params = { message = "Which size?", requestedSchema = {
      type = "object", properties = { size = { type = "string" } }, required = { "size" } } } }
    asked["question-1"] = id
  end },
}

local function definitions()
  local list = {}
  for name, tool in pairs(TOOLS) do
    list[#list + 1] = json.decode(('{"name":"%s","description":"It %s.","inputSchema":{"type":"object","properties":{%s}},'
      .. '"annotations":{%s}}'):format(name, name, tool.takes or "", tool.hints or ""))
    if not tool.takes then list[#list].inputSchema.properties = nil end
    if not tool.hints then list[#list].annotations = nil end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local METHODS = {
  initialize = function(id, params)
    say { id = id, result = { protocolVersion = params.protocolVersion, capabilities = { tools = { listChanged = true } },
                              serverInfo = { name = "plain", version = "1" } } }
  end,
  ["tools/list"] = function(id) say { id = id, result = { tools = definitions() } } end,
  ["tools/call"] = function(id, params)
    note(params.name)
    TOOLS[params.name].run(id, params.arguments or {}, params._meta or {})
  end,
  ["notifications/cancelled"] = function() note "cancelled" end,
}

for line in io.lines() do
  local message = json.decode(line)
  if message.method and METHODS[message.method] then
    METHODS[message.method](message.id, message.params or {})
  elseif message.method and message.id then
    say { id = message.id, error = { code = -32601, message = "no such method" } }
  elseif message.id and asked[message.id] then
    local said = message.result or {}
    answer(asked[message.id], said.action == "accept" and "size " .. said.content.size or "not answered")
    asked[message.id] = nil
  end
end
note "ended"
