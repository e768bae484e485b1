-- How long another client waits while each kind of request is sent at its limits: the 99th percentile and the
-- worst ping. A wait above the bound fails. Ends with `N passed, N failed`.
--   TOOLGATE=build/toolgate luajit tests/bench/stall.lua [SECONDS [KIND]]
package.path = "tests/support/?.lua;" .. package.path
local daemon = require "daemon"
local process = require "process"
local socket = require "socket"
local client_of = require "client"
local http = require "http"
local encode = client_of.json.encode

local SECONDS, ONLY = tonumber(arg[1]) or 2, arg[2]
local P99_MS, WORST_MS = 20, 100
local LATE_WORST_MS = 5 * 50 -- of hooks at their limit, before their tool is busy
local PIPELINED = 1000 -- calls that are sent at once
local SERVED = 1700 -- tools, prompts, resources and templates of a server
local POSTS = 64 -- of HTTP at once
local FREE_BYTES, MS_PER_MIB = 4 * 1024 * 1024, 5 -- a message above the first adds the second for each further MiB

local function repeated(count, write)
  local parts = {}
  for i = 1, count do parts[i] = write(i) end
  return table.concat(parts, ",")
end

local policies = {
  ["compacted.lua"] = [==[
-- compacted: a list that is shortened. Read only.
return tool "compacted" {
  description = "List rows.", effects = "read",
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"}}}]],
  compact = { max_bytes = 20000 },
}
]==],
  ["spin.lua"] = [==[
-- spin: takes as long to judge as it is told. Read only.
return tool "spin" {
  description = "Wait.", effects = "read",
  schema = params { rounds = int, n = int },
  check = function(args) for i = 1, args.rounds do end end,
}
]==],
  ["late.lua"] = [==[
-- late: never ends by itself. Read only.
return tool "late" {
  description = "Wait.", effects = "read",
  schema = params { rounds = int, n = int },
  check = function() while true do end end,
}
]==],
  ["masked.lua"] = [==[
-- masked: rows with a secret in each. Read only.
return tool "masked" {
  description = "List rows.", effects = "read",
  schema = json [[{"type":"object","properties":{"n":{"type":"integer"}}}]],
  redact = { "rows[].secret", "email", "street", "iban", "ssn" },
}
]==],
}

local function object(properties)
  return ('{"type":"object","properties":{%s}}'):format(properties)
end

local function schema_of_list(items)
  return object('"l":{"type":"array","items":' .. items .. "}")
end

local tools = {
  plain = object '"text":{"type":"string"}',
  rows = schema_of_list '{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","minLength":1}}}',
  unique = '{"type":"object","properties":{"l":{"type":"array","uniqueItems":true}}}',
  enum = schema_of_list('{"enum":[' .. repeated(9000, function(i) return ('"value_%d"'):format(i) end) .. "]}"),
  fan = schema_of_list('{"anyOf":[' .. repeated(2000, function(i)
    return ('{"type":"object","properties":{"k":{"const":%d}},"required":["k"]}'):format(i)
  end) .. "]}"),
  pattern = schema_of_list '{"type":"string","pattern":"^((a+)+c|a+b)$"}',
  numbers = schema_of_list '{"type":"integer","maximum":3}',
}

local function row(i) return ('{"id":%d,"name":"row number %d","secret":"s%d"}'):format(i, i, i) end
-- A message holds at most 100,000 values, so that larger ones have longer texts.
local function long_row(i) return (row(i):gsub("row number", ("a row of many words "):rep(14))) end
local rows_1_mib, rows_7_mb = repeated(22000, row), repeated(22000, long_row)
local function secret_row(i) return ('{"id":%d,"name":"row number %d","secret":"cust_%d"}'):format(i, i, i % 4000) end
local function long_secret_row(i) return (secret_row(i):gsub("row number", ("a row of many words "):rep(14))) end
local secrets_1_mib, secrets_7_mb = repeated(18000, secret_row), repeated(21000, long_secret_row)
local function word_of_secret(i) return ("cust_%d street ssn x"):format(i % 4500) end

local function call(method, name, arguments)
  return ('"method":"%s","params":{"name":"%s","arguments":%s}'):format(method, name, arguments)
end
local function check(name, arguments) return call("toolgate/check", name, arguments) end
local function report(name, result)
  return ('"method":"toolgate/check","params":{"name":"%s","arguments":{}}'):format(name),
         function(admitted)
           return ('"method":"toolgate/report","params":{"callId":"%s","name":"%s","arguments":{},"result":%s}'):format(
             admitted.callId, name, result)
         end
end

local kinds = {
  { "a text of 1 MiB", function() return check("plain", '{"text":"' .. ("x"):rep(1040000) .. '"}') end },
  { "1 MiB of rows", function() return check("rows", '{"l":[' .. repeated(18000, row) .. "]}") end },
  { "unique numbers", function()
    return check("unique", '{"l":[' .. repeated(90000, function(i) return ("1.%05d"):format(i) end) .. "]}")
  end },
  { "values of a large enum", function()
    return check("enum", '{"l":[' .. repeated(60000, function(i) return ('"value_%d"'):format(i % 9000 + 1) end) .. "]}")
  end },
  { "a fan of alternatives", function()
    return check("fan", '{"l":[' .. repeated(40000, function(i) return ('{"k":%d}'):format(i + 5000) end) .. "]}")
  end },
  { "a pattern that goes back", function()
    return check("pattern", '{"l":[' .. repeated(40000, function() return '"aaaaaaaaaaaaab"' end) .. "]}")
  end },
  { "bulk invalid arguments", function()
    return check("numbers", '{"l":[' .. repeated(60000, function(i) return ('"x%d"'):format(i) end) .. "]}")
  end },
  { "deep nesting", function() return check("plain", '{"text":' .. ("["):rep(60) .. ("]"):rep(60) .. "}") end },
  { "unknown fields", function()
    return check("plain", "{" .. repeated(40000, function(i) return ('"field%d":%d'):format(i, i) end) .. "}")
  end },
  { "a result of 7 MB", function()
    return report("plain", '{"content":[{"type":"text","text":"' .. ("y"):rep(7e6) .. '"}]}')
  end },
  { "compact of 7 MB", function()
    return report("compacted", '{"content":[],"structuredContent":{"rows":[' .. rows_7_mb .. "]}}")
  end },
  { "compact of 1 MiB", function()
    return report("compacted", '{"content":[],"structuredContent":{"rows":[' .. rows_1_mib .. "]}}")
  end },
  { "redaction of 1 MiB", function()
    return report("masked", '{"content":[],"structuredContent":{"rows":[' .. secrets_1_mib .. "]}}")
  end },
  { "redaction of 7 MB", function()
    return report("masked", '{"content":[],"structuredContent":{"rows":[' .. secrets_7_mb .. "]}}")
  end },
  { "redaction of too many values", function()
    return report("masked", '{"content":[],"structuredContent":{"rows":[' .. rows_1_mib .. "]}}")
  end },
  { "redaction of copies in a text", function()
    return report("masked", '{"content":[{"type":"text","text":"' .. repeated(25000, word_of_secret)
                            .. '"}],"structuredContent":{"rows":[' .. repeated(4000, secret_row) .. "]}}")
  end },
  { "redaction of a long secret's beginnings", function()
    return report("masked", '{"content":[{"type":"text","text":"' .. ("-"):rep(500000)
                            .. '"}],"structuredContent":{"rows":[{"secret":"' .. ("-"):rep(500000) .. '!"}]}}')
  end },
  { "a result of 25,000 blocks", function()
    return report("masked", '{"content":[' .. repeated(25000, function(i)
      return ('{"type":"text","text":"cust_%d"}'):format(i % 4000)
    end) .. '],"structuredContent":{"rows":[' .. repeated(4000, secret_row) .. "]}}")
  end },
  { "registering a large enum of objects", function(turn)
    return ('"method":"toolgate/register","params":{"tools":[{"name":"mine","inputSchema":%s}]}'):format(
      object(('"e%d":{"enum":[%s]}'):format(turn, repeated(15000, function(i) return ('{"a":%d}'):format(i) end))))
  end },
}

-- Servers with many tools, resources and prompts.
local directory = process.directory()
process.write(directory .. "/tools.json", "[" .. repeated(SERVED, function(i)
  return ('{"name":"served_%d","description":"Do it.","inputSchema":%s}'):format(i, tools.rows)
end) .. "]")
process.write(directory .. "/library.json", ('{"prompts":[%s],"resources":[%s],"templates":[%s]}'):format(
  repeated(SERVED, function(i) return ('{"name":"p%d","description":"Say it."}'):format(i) end),
  repeated(SERVED, function(i) return ('{"uri":"doc://%d","name":"d%d"}'):format(i, i) end),
  repeated(SERVED, function(i) return ('{"uriTemplate":"t%d://{id}","name":"t%d"}'):format(i, i) end)))
local endpoint = "unix:" .. directory .. "/metrics"
local gate = daemon.start { policies = policies, config = ([[return {
  metrics = { listen = "%s", page = true },
  upstreams = {
    many = { command = "python3", args = { "%s/tests/support/offering.py" }, env = { OFFER = "%s/tools.json" } },
    library = { command = "python3", args = { "-SE", "%s/tests/support/library_server.py" },
                env = { LIBRARY = "%s/library.json", HEARD = "%s/heard" } } } }]]):format(
  endpoint, daemon.root, directory, daemon.root, directory, directory) }

local function registers(client)
  local list = {}
  for name, schema in pairs(tools) do list[#list + 1] = ('{"name":"%s","inputSchema":%s}'):format(name, schema) end
  for i = 1, 1000 - #list do
    list[#list + 1] = ('{"name":"other_%d","description":"Do it.","inputSchema":%s}'):format(i, tools.rows)
  end
  client:say_line('{"jsonrpc":"2.0","id":0,"method":"toolgate/register","params":{"tools":['
                  .. table.concat(list, ",") .. "]}}")
  return client:answer(0)
end

local question = 0
local function ask(client, body)
  question = question + 1
  client:say_line(('{"jsonrpc":"2.0","id":%d,%s}'):format(question, body))
  local message = client:answer(question)
  return message, #body
end

-- Sends the kind of request again and again for SECONDS.
local function drive(client, make)
  local over, sent, bytes, said = socket.gettime() + SECONDS, 0, 0
  local first, second = make(0)
  repeat
    local message, size = ask(client, sent == 0 and first or second and first or (make(sent)))
    if second and message.result and message.result.callId then
      message, size = ask(client, second(message.result))
    end
    said = message.error and message.error.message or message.result.verdict or "answered"
    bytes, sent = math.max(bytes, size), sent + 1
  until socket.gettime() > over
  return sent, bytes, said
end

-- Rounds of the policy "spin" that take so long.
local function rounds_of(client, ms)
  local rounds, took = 1000, 0
  while took < ms do
    rounds = rounds * 1.25
    local least = math.huge
    for n = 1, 5 do
      local began = socket.gettime()
      ask(client, check("spin", ('{"rounds":%d,"n":%d}'):format(rounds, n)))
      least = math.min(least, (socket.gettime() - began) * 1000)
    end
    took = least
  end
  return rounds
end

-- A kind of request that is sent PIPELINED times at once, on each of some connections.
local function pipelined(connections, ms)
  local name = ("%d calls at once on %d, %s"):format(PIPELINED, connections, ms and ms .. " ms each" or "each late")
  return { name, worst_ms = not ms and LATE_WORST_MS or nil, pipes = function(client)
    local rounds, lines, clients = ms and rounds_of(client, ms) or 1, {}, {}
    for n = 1, PIPELINED do
      local arguments = ('{"rounds":%d,"n":%d}'):format(rounds, n)
      lines[n] = ('{"jsonrpc":"2.0","id":%d,%s}\n'):format(n, check(ms and "spin" or "late", arguments))
    end
    for i = 1, connections do clients[i] = gate:connect() end
    return table.concat(lines), clients, PIPELINED
  end }
end

-- Requests of one kind, many at once from a connection that has tools of its own.
local function at_once(count, name, write)
  kinds[#kinds + 1] = { ("%d %s at once"):format(count, name), pipes = function()
    local lines, one = {}, gate:connect()
    registers(one)
    for n = 1, count do lines[n] = ('{"jsonrpc":"2.0","id":%d,"method":%s}\n'):format(n, write(n)) end
    return table.concat(lines), { one }, count
  end }
end
for _, format in ipairs { "mcp", "openai", "anthropic", "gemini", "mistral", "bedrock" } do
  at_once(20, "lists for " .. format, function()
    return ('"toolgate/tools","params":{"format":"%s","strict":%s}'):format(format, tostring(format == "openai"))
  end)
end
for _, method in ipairs { "tools/list", "prompts/list", "resources/list", "resources/templates/list", "toolgate/pins",
                          "toolgate/schemas", "toolgate/servers" } do
  at_once(20, method, function() return ('"%s","params":{}'):format(method) end)
end
for _, method in ipairs { "toolgate/status", "toolgate/sessions", "toolgate/approvals", "initialize" } do
  at_once(500, method, function() return ('"%s","params":{}'):format(method) end)
end
at_once(20, "toolgate/reload", function() return '"toolgate/reload","params":{}' end)
at_once(500, "toolgate/session", function(n) return ('"toolgate/session","params":{"session":"s%d"}'):format(n) end)
at_once(500, "toolgate/turn", function(n) return ('"toolgate/turn","params":{"session":"s%d"}'):format(n) end)
at_once(200, "resources/read", function(n) return ('"resources/read","params":{"uri":"doc://%d"}'):format(n) end)
at_once(200, "reads by a template", function(n) return ('"resources/read","params":{"uri":"t%d://x"}'):format(n) end)
at_once(200, "reads of nobody's", function(n) return ('"resources/read","params":{"uri":"none://%d"}'):format(n) end)
at_once(200, "resources/subscribe", function(n) return ('"resources/subscribe","params":{"uri":"doc://%d"}'):format(n) end)
at_once(200, "prompts/get", function(n) return ('"prompts/get","params":{"name":"p%d"}'):format(n) end)
at_once(200, "subscriptions/listen", function()
  return ('"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":%s}'):format(
    encode(client_of.modern()))
end)
at_once(200, "tools/call", function(n) return call("tools/call", "served_" .. n, '{"l":[]}'):gsub('^"method":', "") end)
at_once(10, "calls with 1 MiB", function(n)
  return call("tools/call", "served_" .. n, '{"l":[' .. repeated(18000, row) .. "]}"):gsub('^"method":', "")
end)
at_once(10, "checks of alternatives", function()
  return check("fan", '{"l":[' .. repeated(4000, function(i) return ('{"k":%d}'):format(i + 5000) end) .. "]}"):gsub(
    '^"method":', "")
end)
at_once(5, "registrations of 500", function(turn)
  return ('"toolgate/register","params":{"tools":[%s]}'):format(repeated(500, function(i)
    return ('{"name":"own_%d","inputSchema":%s}'):format(i, object(('"e%d_%d":{"type":"integer"}'):format(turn, i)))
  end))
end)

-- Posts of one kind, POSTS at once, each on a connection of its own.
local function posted(name, path, body)
  local request = ("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s")
    :format(body == "" and "GET" or "POST", path, #body, body)
  kinds[#kinds + 1] = { ("%d %s at once"):format(POSTS, name), drives = function()
    local over, sent, reply = socket.gettime() + SECONDS, 0, nil
    repeat
      local streams = {}
      for i = 1, POSTS do
        streams[i] = http.connect(endpoint)
        assert(streams[i]:send(request))
      end
      for _, stream in ipairs(streams) do reply = http.receive(stream) end
      sent = sent + POSTS
    until socket.gettime() > over
    return sent, #request, reply.status
  end }
end
posted("posted checks", "/api/check.json", '{"tool":"masked","arguments":{"n":1,"text":"' .. ("x"):rep(60000) .. '"}}')
posted("posted late checks", "/api/check.json", '{"tool":"late","arguments":{"rounds":1,"n":1}}')
for _, path in ipairs { "/metrics", "/api/status.json", "/api/tools.json", "/api/sessions.json", "/api/decisions.json" } do
  posted("GET " .. path, path, "")
end

for _, connections in ipairs { 1, 4 } do
  for _, ms in ipairs { 0.4, 4 } do kinds[#kinds + 1] = pipelined(connections, ms) end
  kinds[#kinds + 1] = pipelined(connections)
end

-- What closed connections have sent is still served.
local function is_idle()
  local before
  process.eventually("the daemon has served what was sent", function()
    local now = gate:status().counters.checks
    local idle = now == before
    before = now
    socket.sleep(0.2)
    return idle
  end)
end

-- Sends as many calls at once again and again for SECONDS, without waiting for the answers.
local function drive_pipes(lines, clients, count)
  local over, sent, said, sockets, unsent = socket.gettime() + SECONDS, 0, "no answer yet", {}, {}
  for i, one in ipairs(clients) do
    one.stream:settimeout(0)
    sockets[i], unsent[one.stream] = one.stream, lines
  end
  repeat
    local readable, writable = socket.select(sockets, sockets, 0.01)
    for _, stream in ipairs(readable) do
      local line, _, part = stream:receive "*l"
      line = line or part
      said = line:match '"code":"(%w+)"' or line:match '"error":{"code":(%d+)' or line:match '"verdict":"(%w+)"' or said
    end
    for _, stream in ipairs(writable) do
      local last, _, partly = stream:send(unsent[stream])
      unsent[stream] = unsent[stream]:sub((last or partly) + 1)
      if unsent[stream] == "" then
        unsent[stream], sent = lines, sent + count
      end
    end
  until socket.gettime() > over
  for _, one in ipairs(clients) do one.stream:close() end
  is_idle()
  return sent, #lines, said
end

local function measure(client, kind)
  local lines, clients, count
  if kind.pipes then lines, clients, count = kind.pipes(client) end
  local stop = gate.directory .. "/stop"
  os.remove(stop)
  local pings = io.popen(("luajit tests/bench/stall_ping.lua %s %s"):format(gate.socket, stop))
  local sent, bytes, said
  if lines then
    sent, bytes, said = drive_pipes(lines, clients, count)
  elseif kind.drives then
    sent, bytes, said = kind.drives()
  else
    sent, bytes, said = drive(client, kind[2])
  end
  io.open(stop, "w"):close()
  local pinged, p99, worst = pings:read "*a":match "(%d+) (%S+) (%S+)"
  pings:close()
  return sent, bytes, said, tonumber(pinged), tonumber(p99), tonumber(worst)
end

local client = gate:connect()
local registered = registers(client)
assert(registered.result, encode(registered))
print(("%-38s %6s %8s %6s %8s %8s  %s"):format("request", "sent", "bytes", "pings", "p99 ms", "worst ms", "last answer"))
local passed, failed = 0, 0
for _, kind in ipairs(kinds) do
  if not ONLY or kind[1]:find(ONLY, 1, true) then
    local sent, bytes, said, pings, p99, worst = measure(client, kind)
    local more = math.max(0, bytes - FREE_BYTES) / 1048576 * MS_PER_MIB
    local bad = p99 > P99_MS + more or worst > (kind.worst_ms or WORST_MS) + more
    if bad then failed = failed + 1 else passed = passed + 1 end
    print(("%-38s %6d %8d %6d %8.1f %8.1f  %s%s"):format(kind[1], sent, bytes, pings, p99, worst, said,
                                                          bad and "  ABOVE THE BOUND" or ""))
  end
end
daemon.stop_all()
process.remove(directory)
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
