-- A daemon whose address space is limited (ulimit -v, LimitAS= of a service): malloc fails there, and a process without
-- memory ends. What a peer sends is refused before that.
local http_server = require "http_server"

local LIMITED = { "sh", "-c", 'ulimit -v 300000; exec "$@"', "sh" }

describe("in a limited address space", function()
  local gate, client

  local function serves(config)
    if daemon.binary:find("build-san", 1, true) then
      pending "the address sanitizer needs terabytes"
      return false
    end
    gate, client = daemon.open { before = { unpack(LIMITED) }, config = config }
    process.eventually("its tools are known", function()
      return not (gate:status().upstreams or {})[1] or client:asks("tools/list").tools[1]
    end)
    return true
  end

  it("a server's answer that is too large for it fails alone, and is not blamed on the server", function()
    if not serves(fixtures.serving("big", "fake_upstream", {})) then return end
    for _, mb in ipairs { 15, 1, 12, 15, 1, 15, 15, 1 } do -- more in a row than open a circuit
      local result = client:calls("do", { how = "long_line", mb = mb, again = math.random() })
      local class, code = verdict(result).error_class, verdict(result).code
      assert.same(mb == 1 and { "ok" } or { "transient", "no_memory" }, { class, code })
      if mb > 1 then assert.truthy(text(result):find("address space", 1, true), text(result)) end
    end
  end)

  it("so does an answer over HTTP, in one piece or as an event", function()
    local text_of_15_mb = ("x"):rep(15000000)
    local server = http_server.mcp { calls = {
      ["in one piece"] = { fill = 15 * 1000 * 1000 },
      ["as an event"] = { headers = { ["Content-Type"] = "text/event-stream" }, pieces = { "data: " .. text_of_15_mb } },
    } }
    if not serves(('return { upstreams = { far = { url = "%s" } } }'):format(server.url)) then return end
    for _, how in ipairs { "in one piece", "as an event" } do
      local result = client:calls("say", { text = how })
      assert.same({ "transient", "no_memory" }, { verdict(result).error_class, verdict(result).code }, text(result))
    end
    assert.equal("said hello", text(client:calls("say", { text = "hello" })))
  end)

  it("a client's message that is too large for it is an error, and the connection goes on", function()
    if not serves [[return { limits = { message = 16777216 } }]] then return end
    client:say_line('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"' .. ("x"):rep(14000000) .. '"}}')
    local message = client:hears()
    assert.equal(1006, message.error.code)
    assert.truthy(message.error.message:find("address space", 1, true), message.error.message)
    client:hears_only_a_ping()
  end)
end)
