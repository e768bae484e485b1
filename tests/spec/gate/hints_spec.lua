-- The hints of a tool's annotations: what each of them makes the gate do, from an upstream's definition alone.

local directory
before_each(function() directory = process.directory() end)

-- `handle` says nothing of what the tool does, so that only the hints count.
local function start(annotations, more)
  local offer = process.write(directory .. "/tools.json", ([=[[{"name":"handle","annotations":%s,"inputSchema":{"type":"object",
    "properties":{"count":{"type":"integer"}},"required":["count"],"additionalProperties":false}}]]=]):format(annotations))
  local gate = daemon.start { policies = {}, config = ("return { upstreams = { %s }, %s }"):format(
    fixtures.upstream("a", "offering", { OFFER = offer }), more or "") }
  return gate:connect(), gate
end

-- How often the same call runs in a turn before it is refused, and the refusal's code; the fake's result never changes.
local function same_calls(client)
  for count = 0, 20 do
    local v = verdict(client:calls("handle", { count = 1 }, session("s", { turn = 1 })))
    if v.verdict ~= "pass" then return count, v.code end
  end
end

describe("the hints of a tool", function()
  it("decide how often the same call runs", function()
    for annotations, expected in pairs { ["{}"] = 2, ['{"readOnlyHint":true}'] = 2, ['{"readOnlyHint":false}'] = 2,
                                         ['{"destructiveHint":true}'] = 2, ['{"destructiveHint":false}'] = 2,
                                         ['{"readOnlyHint":false,"destructiveHint":true}'] = 2,
                                         ['{"readOnlyHint":true,"destructiveHint":true}'] = 2 } do
      assert.same({ expected, "loop" }, { same_calls((start(annotations))) }, annotations)
      daemon.stop_all()
    end
  end)

  it("decide whether a misspelled name is corrected or only suggested", function()
    for annotations, expected in pairs { ["{}"] = "pass", ['{"readOnlyHint":true}'] = "pass", ['{"readOnlyHint":false}'] = "pass",
                                         ['{"destructiveHint":true}'] = "repair" } do
      local v = verdict(start(annotations):calls("handle", { Count = 1 }))
      assert.equal(expected, v.verdict, annotations)
      assert.equal(expected == "pass" and 2 or 0, #(v.rewrites or {}), annotations)
      daemon.stop_all()
    end
  end)

  it("decide whether a changed result excuses the same call", function()
    local schema = { type = "object" }
    local function calls(annotations)
      local client = daemon.start {}:connect()
      client:asks("toolgate/register", { tools = { { name = "handle", annotations = annotations, inputSchema = schema } } })
      for count = 0, 9 do
        local checked = client:checks("handle", { count = 1 }, session("s", { turn = 1 }))
        if checked.verdict ~= "pass" then return count end
        client:asks("toolgate/report", { callId = checked.callId, result = { now = count } })
      end
      return 10
    end
    local reads, writes = calls { readOnlyHint = true }, calls { readOnlyHint = false }
    assert.equal(10, reads)
    assert.equal(2, writes)
    assert.equal(2, calls { destructiveHint = true }) -- by itself it is a write in budgets
  end)

  it("decide whether toolgate repeats a failed call itself", function()
    local server = directory .. "/busy.py"
    process.write(server, [[
import json, os, sys
calls = 0
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}}
    elif request["method"] == "tools/list":
        hints = json.loads(os.environ["HINTS"])
        result = {"tools": [{"name": "handle", "inputSchema": {"type": "object"}, "annotations": hints}]}
    else:
        calls += 1
        text = "call %d" % calls if calls > 1 else "Error: read timed out"
        result = {"isError": calls == 1, "content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
]])
    for annotations, class in pairs { ['{\\"idempotentHint\\":true}'] = "ok", ['{\\"readOnlyHint\\":true}'] = "ok",
                                      ["{}"] = "transient", ['{\\"readOnlyHint\\":false}'] = "transient" } do
      local gate = daemon.start { config = ([[return { defaults = { retry = { again = { times = 1, backoff = "1ms" } } },
        upstreams = { a = { command = "python3", args = { "%s" }, env = { HINTS = "%s" } } } }]]):format(server, annotations) }
      assert.equal(class, verdict(gate:connect():calls("handle", {})).error_class, annotations)
      daemon.stop_all()
    end
  end)

  it("are marked as contradictory by lint, and so is a policy that denies them", function()
    local function codes(definition, policy)
      process.write(directory .. "/t.json", "[" .. definition .. "]")
      os.execute("rm -rf " .. directory .. "/p; mkdir " .. directory .. "/p")
      if policy then process.write(directory .. "/p/t.lua", policy) end
      local _, out = process.run { daemon.binary, "lint", directory .. "/p", "--tools", directory .. "/t.json", "--json",
                                 "--theirs" }
      local _, count = out:gsub('"hints"', "")
      return count
    end
    local function tool(name, annotations)
      return ('{"name":"%s","description":"D.","annotations":%s,"inputSchema":{"type":"object"}}'):format(name, annotations)
    end
    assert.equal(1, codes(tool("handle", '{"readOnlyHint":true,"destructiveHint":true}')))
    assert.equal(1, codes(tool("delete_file", '{"readOnlyHint":true}')))
    assert.equal(1, codes(tool("handle", '{"destructiveHint":true}'), 'return tool "handle" { effects = "read" }'))
    assert.equal(1, codes(tool("handle", '{"readOnlyHint":true}'), 'return tool "handle" { effects = "write" }'))
    assert.equal(0, codes(tool("handle", '{"readOnlyHint":true,"destructiveHint":false}'),
                          'return tool "handle" { effects = "read" }'))
    assert.equal(0, codes(tool("delete_file", '{"destructiveHint":true,"idempotentHint":true}')))
  end)
end)
