-- Fair shares: what all users have together (the endpoint's connections, commands that wait, what servers watch, memory of
-- registered tools) one user alone uses up to half, and the next one still finds room.
local fcntl = require "posix.fcntl"
local unistd = require "posix.unistd"
local unix = require "socket.unix"

local OTHER = 65534 -- nobody
local AS_OTHER = ("setpriv --reuid=%d --regid=%d --clear-groups"):format(OTHER, OTHER)

describe("one user's share", function()
  local gate, directory, open
  before_each(function()
    directory, open = process.directory(), {}
    os.execute("chmod 755 " .. directory)
  end)
  after_each(function()
    for _, one in ipairs(open) do one:close() end
  end)

  local function story(name, body)
    it(name, function()
      if unistd.getuid() ~= 0 then return pending "only root has two users" end
      body()
    end)
  end

  local function starts(config, policies)
    gate = daemon.start { policies = policies, config = ("return { socket_mode = '0666', %s }"):format(config) }
    os.execute(("chmod 755 '%s'"):format(gate.socket:match "(.*)/"))
    return gate:connect()
  end

  -- What the daemon answers another user, message by message.
  local function others(...)
    local lines = {}
    for id, message in ipairs { ... } do
      message.jsonrpc, message.id = "2.0", id
      lines[id] = json.encode(message)
    end
    process.write(directory .. "/lines", table.concat(lines, "\n") .. "\n")
    os.execute("chmod 644 " .. directory .. "/lines")
    local _, out, err = process.run { "sh", "-c", ("exec %s '%s' connect '%s' <%s/lines")
      :format(AS_OTHER, daemon.binary, gate.socket, directory) }
    local answers = {}
    for line in out:gmatch "[^\n]+" do
      local answer = json.decode(line)
      if answer.id then answers[answer.id] = answer end
    end
    assert.truthy(answers[1], out .. err)
    return answers
  end

  local function problem(code)
    for _, row in ipairs(gate:status().problems) do
      if row.code == code then return row end
    end
  end

  story("of the endpoint's connections", function()
    local path = directory .. "/metrics.sock"
    starts(("metrics = { listen = 'unix:%s' }"):format(path))
    os.execute("chmod 666 " .. path)
    for i = 1, 524 do
      open[i] = unix()
      assert(open[i]:connect(path))
    end
    process.eventually("those beyond its share are closed", function() return gate:status().metrics.over_share == 12 end)
    assert.same({ 512, 1024 }, { gate:status().metrics.open, gate:status().metrics.most })
    local out = process.runs { "sh", "-c", ("exec %s curl -s --unix-socket '%s' http://localhost/metrics")
      :format(AS_OTHER, path) }
    assert.truthy(out:find("toolgate_", 1, true))
  end)

  story("of the commands that wait, and users take turns", function()
    local fifo = directory .. "/fifo"
    process.run { "mkfifo", "-m", "666", fifo }
    local writer = assert(fcntl.open(fifo, fcntl.O_RDWR))
    local client = starts("limits = { in_flight = 2000, in_flight_all = 4000 }", { ["wait.lua"] = ([==[
-- wait: for specs.
return tool "wait" { description = "Wait.", effects = "read", schema = params { n = int "Which" },
  exec = { "sh", "-c", "read line < %s; echo $0", "{n}", dashes = true } }
]==]):format(fifo) })
    local lines = {}
    for n = 1, 545 do
      lines[n] = json.encode { jsonrpc = "2.0", id = n, method = "tools/call",
                               params = { name = "wait", arguments = { n = n } } }
    end
    client:say_line(table.concat(lines, "\n"))
    local last = client:answer(545)
    assert.equal("busy", client_of.verdict(last.result).code)
    local now = gate:status().commands
    assert.same({ 32, 512, 1024, 1 }, { now.running, now.queued, now.most, now.refused })
    local command = ("exec %s '%s' call wait '{\"n\":1}' --socket '%s'"):format(AS_OTHER, daemon.binary, gate.socket)
    process.start({ "sh", "-c", command },
                  { stdin = "/dev/null", stdout = directory .. "/out", stderr = directory .. "/err" })
    process.eventually("the other user's call waits", function()
      return gate:status().commands.queued == 513, process.read(directory .. "/err")
    end)
    unistd.write(writer, ("\n"):rep(64)) -- for those that run, and for the 32 that follow: any of them may read first
    process.eventually("it ran before the 512", function()
      return (process.read(directory .. "/out") or ""):find("1", 1, true), process.read(directory .. "/err")
    end)
    assert.truthy(gate:status().commands.queued > 400)
    unistd.close(writer)
  end)

  story("of what one server watches", function()
    local books = process.write(directory .. "/books.json", json.encode {
      templates = { { uriTemplate = "book:///{title}/{chapter}", name = "A chapter" } } })
    starts("upstreams = { " .. fixtures.upstream("books", "library_server", { LIBRARY = books }) .. " }")
    process.eventually("it is listed", function() return gate:status().lists.templates == 1 end)
    local asked, client = 0, nil
    for _ = 1, 2 do
      client = gate:connect()
      for _ = 1, 250 do
        asked = asked + 1
        assert.truthy(client:asks("resources/subscribe", { uri = ("book:///x/%d"):format(asked) }))
      end
    end
    local refused = gate:connect():ask("resources/subscribe", { uri = "book:///x/501" }).error
    assert.truthy(refused.message:find("leaves others their share", 1, true), refused.message)
    assert.equal(1, problem("share_used_up").count)
    assert.truthy(others({ method = "resources/subscribe", params = { uri = "book:///y/1" } })[1].result)
    client:asks("resources/unsubscribe", { uri = "book:///x/500" })
    assert.truthy(gate:connect():asks("resources/subscribe", { uri = "book:///x/501" }))
    client:close() -- all that it has watched is free again
    process.eventually("it is gone", function()
      return gate:connect():ask("resources/subscribe", { uri = "book:///x/502" }).result
    end)
  end)

  story("of the memory of registered tools", function()
    starts "limits = { memory = 16777216 }"
    local properties = {}
    for i = 1, 100 do
      properties["property_" .. i] = { type = "string", enum = { "a" .. i, "b", "c" }, description = ("x"):rep(50) }
    end
    local function tools(count)
      local list = {}
      for i = 1, count do list[i] = { name = "t" .. i, inputSchema = { type = "object", properties = properties } } end
      return { tools = list }
    end
    local refused
    for _ = 1, 10 do
      refused = refused or gate:connect():ask("toolgate/register", tools(60)).error
    end
    assert.truthy(refused and refused.message:find("leaves others", 1, true))
    assert.truthy(problem("share_used_up").last:find("registered", 1, true))
    assert.equal("t1", others({ method = "toolgate/register", params = tools(1) })[1].result.tools[1].name)
  end)
end)
