-- The page of the metrics endpoint as HTTP: who gets what, its headers, and the JSON that its script reads.
-- tests/clients/page.mjs opens it in a browser.
local http = require "http"

local TOKEN = "0123456789abcdef0123"
local FILES = { ["/"] = "text/html; charset=utf-8", ["/app.js"] = "text/javascript; charset=utf-8",
                ["/app.css"] = "text/css; charset=utf-8" }
local PRIVATE = { "/api/status.json", "/api/decisions.json", "/api/tools.json", "/api/tool.json?name=echo",
                  "/api/sessions.json" }
local POLICIES = { ["echo.lua"] = fixtures.echo, ["create_task.lua"] = fixtures.create_task }
local JSON_BODY = "Content-Type: application/json"

-- `given`: listen ("unix" or "tcp"), page, token, decisions; further arguments of daemon.start.
local function start(given)
  given = given or {}
  local directory = process.directory()
  local address = given.listen == "tcp" and "127.0.0.1:" .. http.free_port() or "unix:" .. directory .. "/metrics.sock"
  local keys = { ("listen = %q"):format(address) }
  if given.page ~= false then keys[#keys + 1] = "page = true" end
  if given.token then
    process.write(directory .. "/token", given.token .. "\n")
    os.execute("chmod 600 " .. directory .. "/token")
    keys[#keys + 1] = ("token_file = %q"):format(directory .. "/token")
  end
  local gate = daemon.start { policies = given.policies or POLICIES, tools = given.tools,
    config = ("return { metrics = { %s }, decisions = %s }"):format(table.concat(keys, ", "),
      given.decisions or "{ arguments = 'masked' }") }
  return gate, address, directory
end

local function get(address, path, headers)
  local reply = http.get(address, path, headers)
  if reply.status == 200 and reply.headers["content-type"] == "application/json" then reply.json = json.decode(reply.body) end
  return reply
end

local function check(address, call, headers)
  local reply = http.ask(address, "POST", "/api/check.json", headers or { JSON_BODY }, json.encode(call))
  if reply.status == 200 then reply.json = json.decode(reply.body) end
  return reply
end

describe("the page", function()
  it("is off unless metrics.page says so", function()
    local _, address = start { page = false }
    for path in pairs(FILES) do assert.equal(404, get(address, path).status, path) end
    for _, path in ipairs(PRIVATE) do assert.equal(404, get(address, path).status, path) end
    assert.equal(404, check(address, { tool = "echo" }).status)
    assert.equal(200, get(address, "/metrics").status)
  end)

  it("serves its files with a strict policy and nothing from elsewhere", function()
    local _, address = start()
    for path, kind in pairs(FILES) do
      local reply = get(address, path)
      assert.equal(200, reply.status)
      assert.equal(kind, reply.headers["content-type"])
      assert.equal("nosniff", reply.headers["x-content-type-options"])
      assert.equal("no-referrer", reply.headers["referrer-policy"])
      assert.equal("no-store", reply.headers["cache-control"])
      local policy = reply.headers["content-security-policy"]
      for _, rule in ipairs { "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
                              "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'" } do
        assert.truthy(policy:find(rule, 1, true), rule)
      end
      assert.falsy(policy:find("unsafe", 1, true))
      assert.falsy(reply.body:gsub("http://www%.w3%.org/2000/svg", ""):find("https?://"), "refers to another host")
      for _, banned in ipairs { "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=\"" } do
        assert.falsy(reply.body:find(banned, 1, true), banned)
      end
      assert.equal(0, #http.ask(address, "HEAD", path).body)
      assert.equal(405, http.ask(address, "POST", path, { JSON_BODY }, "{}").status)
    end
  end)

  it("needs a token on TCP: else the configuration is refused, with what to do", function()
    local err, code = daemon.fails { config = "return { metrics = { listen = '127.0.0.1:" .. http.free_port()
                                              .. "', page = true } }" }
    assert.not_equal(0, code)
    assert.truthy(err:find("metrics.token_file", 1, true), err)
  end)

  it("with a token gives users' content only for it, in a header, on a Unix socket, too", function()
    for _, listen in ipairs { "tcp", "unix" } do
      local _, address = start { listen = listen, token = TOKEN }
      for path in pairs(FILES) do assert.equal(200, get(address, path).status, path) end
      for _, path in ipairs(PRIVATE) do
        assert.equal(401, get(address, path).status, path)
        assert.equal(401, get(address, path, { "Authorization: Bearer " .. TOKEN .. "x" }).status, path)
        assert.equal(401, get(address, path .. (path:find "?" and "&" or "?") .. "token=" .. TOKEN).status, path)
        assert.equal(200, get(address, path, { "Authorization: Bearer " .. TOKEN }).status, path)
      end
      assert.equal(401, check(address, { tool = "echo" }).status)
      assert.equal(200, check(address, { tool = "echo" }, { JSON_BODY, "Authorization: Bearer " .. TOKEN }).status)
      assert.equal(200, get(address, "/metrics").status)
      daemon.stop_all()
    end
  end)

  it("answers no page of another origin and no foreign name, also behind ssh -L", function()
    for _, listen in ipairs { "unix", "tcp" } do
      local _, address = start { listen = listen, token = TOKEN }
      local paths = { "/", unpack(PRIVATE) }
      for _, path in ipairs(paths) do
        for _, header in ipairs { "Host: evil.example", "Host: localhost.evil.example:9464", "Host: 10.0.0.1", "Host:",
                                  "Origin: http://evil.example", "Origin: null", "Origin: http://localhost:1" } do
          local reply = get(address, path, { header, "Authorization: Bearer " .. TOKEN })
          assert.equal(403, reply.status, listen .. " " .. path .. " " .. header)
          assert.is_nil(reply.headers["access-control-allow-origin"])
        end
        for _, host in ipairs { "localhost:9464", "127.0.0.1:9464", "[::1]:9464", "LOCALHOST" } do
          assert.equal(200, get(address, path, { "Host: " .. host, "Origin: http://" .. host:lower(),
                                                 "Authorization: Bearer " .. TOKEN }).status, path .. host)
        end
      end
      local call = { tool = "echo", arguments = { text = "a" } }
      local own = { JSON_BODY, "Authorization: Bearer " .. TOKEN }
      assert.equal(403, check(address, call, { own[1], own[2], "Origin: http://evil.example" }).status)
      assert.equal(403, check(address, call, { own[1], own[2], "Host: evil.example" }).status)
      for _, kind in ipairs { "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x" } do
        assert.equal(415, check(address, call, { own[2], "Content-Type: " .. kind }).status, kind)
      end
      daemon.stop_all()
    end
  end)

  it("has the latest decisions, masked, each once", function()
    local gate, address = start()
    local first = get(address, "/api/decisions.json").json
    assert.same({}, first.records)
    gate:connect():calls("create_task", { titel = "a", password = "hunter2hunter2" }, client_of.session "chat-1")
    local second = get(address, "/api/decisions.json?after=" .. first.next).json
    assert.equal(1, #second.records)
    local record = second.records[1]
    assert.equal("create_task", record.tool)
    assert.equal("chat-1", record.session)
    assert.equal("repair", record.verdict)
    assert.falsy(json.encode(second):find("hunter2", 1, true))
    assert.same({}, get(address, "/api/decisions.json?after=" .. second.next).json.records)
    -- numbers of another process, or none at all
    for _, after in ipairs { "999999", "", "-1", "x", "99999999999999999999" } do
      assert.equal(1, #get(address, "/api/decisions.json?after=" .. after).json.records, after)
    end
  end)

  it("keeps a bounded number of decisions, the latest", function()
    local gate, address = start { decisions = "false" }
    local client = gate:connect()
    for i = 1, 320 do client:calls("echo", { text = "t" .. i }, client_of.session("s" .. i)) end
    local answer = get(address, "/api/decisions.json?after=0").json
    assert.equal(300, #answer.records)
    assert.equal("s21", answer.records[1].session)
    assert.equal("s320", answer.records[300].session)
    assert.equal(320, answer.next)
    for i = 1, 40 do client:calls("echo", { text = ("x"):rep(100000) }, client_of.session("big" .. i)) end
    local reply = get(address, "/api/decisions.json?after=0")
    assert.is_true(#reply.body < 2200000, #reply.body)
    assert.equal("big40", reply.json.records[#reply.json.records].session)
  end)

  it("lists tools in pages, with what they were called", function()
    local gate, address = start()
    local client = gate:connect()
    for _ = 1, 3 do client:calls("create_task", { titel = "a" }, client_of.session "a") end
    client:calls("echo", { text = "b" }, client_of.session "a")
    client:calls("no_such_tool", {}, client_of.session "a")
    local answer = get(address, "/api/tools.json").json
    assert.equal(3, answer.total)
    assert.equal("create_task", answer.tools[1].tool)
    assert.equal(3, answer.tools[1].counts.calls)
    assert.equal(3, answer.tools[1].counts.refused)
    assert.equal("enforce", answer.tools[1].mode)
    local names = {}
    for i, tool in ipairs(get(address, "/api/tools.json?sort=name").json.tools) do names[i] = tool.tool end
    assert.same({ "create_task", "echo", "unknown" }, names)
    answer = get(address, "/api/tools.json?sort=name&offset=1&limit=1").json
    assert.equal(3, answer.total)
    assert.equal(1, #answer.tools)
    assert.equal("echo", answer.tools[1].tool)
    assert.equal("echo", get(address, "/api/tools.json?q=%45CH").json.tools[1].tool)
    assert.equal(0, get(address, "/api/tools.json?q=nothing+like+it").json.total)
    assert.equal(0, #get(address, "/api/tools.json?offset=999999").json.tools)
  end)

  it("lists 10,000 tools in pages", function()
    local tools = {}
    for i = 1, 10000 do
      tools[i] = { name = ("tool_%05d"):format(i), description = "Reads.", inputSchema = { type = "object" } }
    end
    local _, address = start { policies = {}, tools = json.encode(tools) }
    local reply = get(address, "/api/tools.json?limit=10000&sort=name")
    assert.equal(10000, reply.json.total)
    assert.equal(200, #reply.json.tools)
    assert.equal("tool_00001", reply.json.tools[1].tool)
    assert.equal("tool_09999", get(address, "/api/tools.json?q=09999").json.tools[1].tool)
    assert.is_true(#get(address, "/api/status.json").body < 100000)
  end)

  it("has status and sessions", function()
    local gate, address = start()
    local client = gate:connect()
    for _ = 1, 5 do client:calls("echo", { text = "same" }, client_of.session "stuck") end
    local status = get(address, "/api/status.json").json
    assert.equal(gate:pid(), status.pid)
    assert.equal(2, status.generation.tools)
    assert.equal("local", status.ledger.engine)
    assert.is_true(status.counters.calls_saved > 0)
    assert.equal(1, status.counters.loops)
    assert.same({}, status.upstreams)
    local sessions = get(address, "/api/sessions.json").json
    assert.equal("stuck", sessions.in_a_loop.sessions[1].session)
    assert.equal("echo", sessions.in_a_loop.sessions[1].loop.tool)
    assert.equal("stuck", sessions.recent.sessions[1].session)
    assert.equal("stuck", sessions.refusals.sessions[1].session)
  end)

  it("gives a policy that uses up its time a pause, whichever users it is asked for", function()
    local _, address = start { policies = { ["late.lua"] = [==[
-- late: never ends. For specs.
return tool "late" { description = "Wait.", effects = "read", schema = params {}, check = function() while true do end end }
]==] } }
    for i = 1, 2 do
      local reply = check(address, { tool = "late", arguments = {}, user = "user" .. i })
      assert.equal("policy_error", reply.json.error_class)
    end
    process.eventually("it has a pause, which each late one renews", function()
      return check(address, { tool = "late", arguments = {}, user = "another" }).json.code == "busy"
    end)
  end)

  it("has what the playground needs of a tool", function()
    local _, address = start()
    local tool = get(address, "/api/tool.json?name=create_task").json
    assert.equal("create_task", tool.tool)
    assert.truthy(tool.input_schema.properties.title)
    assert.truthy(tool.sample.title)
    assert.equal(404, get(address, "/api/tool.json?name=nobody").status)
    assert.equal(404, get(address, "/api/tool.json").status)
  end)

  it("checks a call stage by stage, runs nothing and counts nothing", function()
    local gate, address = start()
    local before = get(address, "/api/status.json").json.counters
    local verdict = check(address, { tool = "create_task", arguments = { titel = "a" } }).json
    assert.equal("repair", verdict.verdict)
    assert.equal("invalid_arguments", verdict.error_class)
    assert.truthy(verdict.text:find("titel", 1, true))
    local stages = {}
    for _, stage in ipairs(verdict.trace) do stages[stage.stage] = stage.decision end
    assert.truthy(stages.schema:find "repair")
    assert.equal("pass", check(address, { tool = "echo", arguments = { text = "a" }, user = "ada", goal = "say a" }).json.verdict)
    assert.equal("unknown_tool", check(address, { tool = "nobody" }).json.error_class)
    assert.same(before, get(address, "/api/status.json").json.counters)
    assert.same({}, get(address, "/api/decisions.json").json.records)
    assert.same({}, gate:connect():asks("toolgate/sessions").sessions)
  end)

  it("refuses a check that is none", function()
    local _, address = start()
    for _, body in ipairs { "", "{", "[]", "null", '{"arguments":{}}', '{"tool":7}', '{"tool":""}', "\255", ("["):rep(1000) } do
      local reply = http.ask(address, "POST", "/api/check.json", { JSON_BODY }, body)
      assert.equal(400, reply.status, body:sub(1, 20))
      assert.equal("text/plain; charset=utf-8", reply.headers["content-type"])
    end
    assert.equal(413, http.ask(address, "POST", "/api/check.json", { JSON_BODY }, (" "):rep(70000)).status)
    assert.equal(405, get(address, "/api/check.json").status)
  end)

  it("sends what peers wrote as JSON strings, unchanged", function()
    local gate, address = start()
    local evil = '<img src=x onerror=alert(1)>"\'</script>\27[31m'
    gate:connect():calls("echo", { text = evil }, client_of.session(evil))
    gate:connect():calls(evil, {}, client_of.session(evil))
    local records = get(address, "/api/decisions.json").json.records
    assert.equal(evil, records[1].session)
    assert.equal(evil, records[1].arguments.text)
    assert.equal(evil, records[2].tool)
    assert.equal("application/json", get(address, "/api/decisions.json").headers["content-type"])
    assert.equal(evil, get(address, "/api/sessions.json").json.recent.sessions[1].session)
  end)

  it("goes with a reload", function()
    local gate, address = start()
    gate:connect():calls("echo", { text = "a" }, client_of.session "a")
    assert.equal(200, get(address, "/").status)
    local path = gate.directory .. "/toolgate.lua"
    local config = process.read(path)
    process.write(path, (config:gsub("page = true", "page = false")))
    gate:reload()
    -- The daemon also sees the files change by itself: a reload may be that of the change before.
    process.eventually("the page is gone", function() return get(address, "/").status == 404 end)
    gate:connect():calls("echo", { text = "b" }, client_of.session "a")
    process.write(path, config)
    gate:reload()
    process.eventually("the page is back", function() return get(address, "/").status == 200 end)
    assert.same({}, get(address, "/api/decisions.json").json.records)
    gate:connect():calls("echo", { text = "c" }, client_of.session "a")
    assert.equal(1, #get(address, "/api/decisions.json").json.records)
  end)
end)
