-- docs/recipes: the code on the pages runs, and prints what the pages show.
local redis = require "redis"
local http_server = require "http_server"

-- The blocks of one language, in the order of the page.
local function blocks(page, language)
  local found = {}
  for block in (process.read("docs/recipes/" .. page .. ".md")):gmatch("\n```" .. language .. "\n(.-)\n```") do
    found[#found + 1] = block .. "\n"
  end
  assert(#found > 0, page .. " has no block of " .. language)
  return found
end

-- "…" on a line of its own stands for any lines.
local function shows(page, said)
  local at = 1
  for line in page:gmatch "[^\n]+" do
    if line ~= "…" then
      local from, to = said:find(line, at, true)
      assert(from, ("the page shows %q; what came is:\n%s"):format(line, said))
      at = to + 1
    end
  end
end

local function holds(source)
  local folder = process.directory()
  process.write(folder .. "/" .. source:match 'return tool "([%w_]+)"' .. ".lua", source)
  local code, out, err = process.run { daemon.binary, "test", folder }
  local _, found, complaints = process.run { daemon.binary, "lint", folder, "--json" }
  process.remove(folder)
  assert.equal(0, code, out .. err)
  assert.equal("", found .. complaints)
end

describe("the recipe for a Python agent", function()
  -- make conformance runs its Python (clients/python/tests/pages_test.py): `guard` needs pydantic.
  it("has a policy that passes its examples", function() holds(blocks("python-agent", "lua")[1]) end)
end)

describe("the recipe for a coding assistant", function()
  it("loads the file that the assistant had", function()
    local folder = process.directory()
    local file = process.write(folder .. "/servers.json", blocks("coding-assistant", "json")[1])
    local code, out, err = process.run { daemon.binary, "serve", "--check", "--mcp-config", file, "--policies", folder }
    process.remove(folder)
    assert.equal(0, code, out .. err)
  end)

  -- The tools of the file server, as it lists them.
  local TOOLS = daemon.root .. "/tests/support/filesystem_tools.json"
  local lib, writing = unpack(blocks("coding-assistant", "lua"))

  it("has policies that pass their examples with the server's own tools", function()
    local folder = process.directory()
    os.execute("mkdir " .. folder .. "/lib")
    process.write(folder .. "/lib/paths.lua", lib)
    process.write(folder .. "/writing.lua", writing)
    local code, out, err = process.run { daemon.binary, "test", folder, "--tools", TOOLS }
    local _, found, complaints = process.run { daemon.binary, "lint", folder, "--tools", TOOLS }
    process.remove(folder)
    assert.equal(0, code, out .. err)
    assert.is_nil((found .. complaints):find("writing.lua", 1, true), found .. complaints)
  end)

  it("guards every tool of the file server that writes, and none that reads", function()
    local gate, client = daemon.open {
      policies = { ["lib/paths.lua"] = lib, ["writing.lua"] = writing },
      config = fixtures.serving("files", "offering", { OFFER = TOOLS }),
    }
    assert.same({}, gate:status().generation.unmatched)
    local wrote = 0
    for _, tool in ipairs(client_of.json.decode((process.read(TOOLS)))) do
      for _, path in ipairs { "src/a.txt", "web/package-lock.json", "./.env", ".git/config" } do
        local arguments = {}
        for name, schema in pairs(tool.inputSchema.properties) do
          arguments[name] = schema.type == "string" and not schema.enum and path
                            or name == "edits" and { { oldText = "a", newText = "b" } } or name == "paths" and { path } or nil
        end
        local writes = not tool.annotations.readOnlyHint
        local class = verdict(client:calls(tool.name, arguments)).error_class
        assert.equal(writes and path ~= "src/a.txt" and "forbidden" or "ok", class, tool.name .. " " .. path)
        wrote = wrote + (writes and 1 or 0)
      end
    end
    assert.equal(16, wrote)
    local code, out = process.run { daemon.binary, "call", "write_file", '{"path":"a/yarn.lock","content":""}',
                                    "--socket", gate.socket }
    assert.equal(1, code)
    shows(blocks("coding-assistant", "text")[1]:gsub("package%-lock%.json", "yarn.lock"), out)
  end)
end)

describe("the recipe for a REST API", function()
  local configuration, get, search, close = unpack(blocks("rest-api", "lua"))
  local policies = { ["get_ticket.lua"] = get, ["search_tickets.lua"] = search, ["close_ticket.lua"] = close }
  local api, client

  -- As on the page, except the API's address.
  local function serves(routes)
    local plain = {}
    for route, answer in pairs(routes) do plain[route:gsub(" /", " /api/v2/", 1)] = answer end
    api = http_server.start { routes = plain }
    client = daemon.start { policies = policies, environment = { TICKETS_TOKEN = "the-key" },
                            config = configuration:gsub('policies  = "policies",', "")
                                                  :gsub("https://tickets.example.com", api.address) }:connect()
  end

  local function calls(name, arguments) return client:calls(name, arguments, session "s") end

  local function hears(result, class, ...)
    assert.equal(class, verdict(result).error_class)
    for _, words in ipairs { ... } do assert.truthy(text(result):find(words, 1, true), text(result)) end
    assert.is_nil(text(result):find("the-key", 1, true))
  end

  it("has policies that pass their examples, and a configuration that loads them", function()
    local folder = process.directory()
    os.execute("mkdir " .. folder .. "/policies")
    process.write(folder .. "/toolgate.lua", configuration)
    for name, policy in pairs(policies) do
      holds(policy)
      process.write(folder .. "/policies/" .. name, policy)
    end
    local code, out, err = process.run { daemon.binary, "serve", "--check", "-c", folder .. "/toolgate.lua" }
    process.remove(folder)
    assert.equal(0, code, out .. err)
    assert.matches("tools: 3, policies: 3", out, 1, true)
  end)

  it("searches, reads and closes a ticket with a key that the model never sees", function()
    serves { ["GET /tickets"] = { body = { tickets = { { number = 7, title = "Login fails" } }, next_page = 2 } },
             ["GET /tickets/7"] = { body = { number = 7, title = "Login fails" } },
             ["POST /tickets/7/close"] = { body = { number = 7, state = "closed" } } }
    hears(calls("search_tickets", { words = "login" }), "partial_data", "Login fails", '"page":2')
    hears(calls("get_ticket", { number = "7" }), "ok", "Login fails")
    hears(calls("close_ticket", { number = 7, answer = "Fixed in 2.4." }), "ok", "closed")
    local seen = {}
    for i, request in ipairs(api:saw()) do
      seen[i] = ("%s %s %s, %s"):format(request.method, request.path, request.query, request.headers.authorization)
      if request.method == "POST" then assert.same({ answer = "Fixed in 2.4." }, request.body) end
    end
    assert.same({ "GET /api/v2/tickets words=login, Bearer the-key", "GET /api/v2/tickets/7 , Bearer the-key",
                  "POST /api/v2/tickets/7/close , Bearer the-key" }, seen)
  end)

  it("gives the class and text of each failure of the API", function()
    serves { ["GET /tickets/1"] = { status = 404, body = { message = "no ticket 1" } },
             ["GET /tickets/2"] = { status = 401, body = { message = "who are you?" } },
             ["GET /tickets/3"] = { status = 403, body = { message = "not yours" } },
             ["GET /tickets/4"] = { status = 429, headers = { ["Retry-After"] = "20" } },
             ["GET /tickets/5"] = { status = 503, body = "down for repair" },
             ["GET /tickets/6"] = { body = "<html>Please log in</html>", headers = { ["Content-Type"] = "text/html" } } }
    for number, class in ipairs { "tool_error", "unavailable", "tool_error", "transient", "transient", "schema_mismatch" } do
      local result = calls("get_ticket", { number = number })
      hears(result, class)
      golden.check("feedback", "recipes: ticket " .. number, text(result))
    end
    api:sees("three tries", function(request) return request.path == "/api/v2/tickets/5" end, 3)
  end)
end)

describe("the recipe for a fleet", function()
  local folder, children, server
  before_each(function()
    server = redis.start()
    folder, children = process.directory(), {}
    os.execute("mkdir " .. folder .. "/policies")
    local config, find, send = unpack(blocks("fleet", "lua"))
    process.write(folder .. "/fleet.lua", (config:gsub('"redis://[^"]*"', '"' .. server:url() .. '"')))
    process.write(folder .. "/policies/find_order.lua", find)
    process.write(folder .. "/policies/send_note.lua", send)
    holds(find)
    holds(send)
  end)
  after_each(function()
    for _, child in ipairs(children) do
      child:signal(15)
      child:wait()
    end
  end)

  -- Each line of a page's block, in the folder; those with & stay.
  local function runs(block)
    local said = {}
    for line in block:gmatch "[^\n]+" do
      local argv = { "sh", "-c", "exec " .. line:gsub("^toolgate", "'" .. daemon.binary .. "'"):gsub(" &$", "") }
      if line:find(" &$") then
        local socket = folder .. "/" .. line:match "worker%-%d.sock"
        children[#children + 1] = process.start(argv, { directory = folder, stdin = "/dev/null",
                                                        stdout = socket .. ".out", stderr = socket .. ".err" })
        process.eventually("the daemon listens", function()
          return process.read(socket .. ".err"):find("daemon_ready", 1, true)
        end)
      else
        local _, out, err = process.run(argv, { directory = folder })
        assert.equal("", err)
        said[#said + 1] = out
      end
    end
    return table.concat(said)
  end

  it("starts two daemons that share loops and rates, and say so", function()
    local start, loop, rate, look, status = unpack(blocks("fleet", "sh"))
    local shown = blocks("fleet", "text")
    runs(start)
    assert.equal(shown[1], runs(loop))
    shows(shown[2], runs(rate))
    shows("chat-7\nfind_order\nthe same call again, with nothing new", runs(look))
    server:kill()
    runs "toolgate call find_order '{\"number\": 8}' --session chat-9 --socket worker-1.sock"
    assert.truthy(runs(status):find("until then each daemon counts for itself", 1, true))
  end)
end)
