-- docs/agent_loop.py: the loop of an agent that runs its own tools. The model's calls are listed here.

local SCRIPT = [==[
import json, sys
sys.path[:0] = ["docs", "clients/python/src"]
sys.dont_write_bytecode = True
from agent_loop import run
from toolgate.sync import Gate

ran = []
def get_weather(city, days=1):
    ran.append([city, days])
    if city == "Atlantis":
        raise LookupError("no such city: Atlantis")
    return {"sky": "grey", "days": days}

calls = iter([
    ("get_weather", {"town": "Bern"}),
    ("get_weather", {"city": "Bern", "days": "2"}),
    ("get_weather", {"city": "Atlantis"}),
    ("get_wether", {"city": "Bern"}),
] + [("get_weather", {"city": "Basel"})] * 9)
messages = run(lambda _: next(calls, None), {"get_weather": get_weather}, Gate(sys.argv[1]).session("agent"), [])
print(json.dumps({"ran": ran, "messages": messages}))
]==]

describe("the agent loop in docs/agent_loop.py", function()
  it("checks before each call and reports after it", function()
    local gate = daemon.start { tools = fixtures.agent_tools }
    local out = process.runs({ "python3", "-c", SCRIPT, gate.socket }, { directory = daemon.root })
    local played = client_of.json.decode(out)
    assert.same({ { "Bern", 2 }, { "Atlantis", 1 }, { "Basel", 1 }, { "Basel", 1 } }, played.ran)

    local function read(i) return played.messages[i].reads end
    for i = 1, 4 do golden.check("feedback", "agent loop: message " .. i, read(i)) end
    assert.truthy(read(2):find("grey", 1, true), read(2))
    assert.truthy(read(4):find("get_weather", 1, true), read(4))
    -- two ran, two were refused, and the fifth ended the run
    assert.equal(4 + 5, #played.messages)
  end)

  it("passes the redacted result to its model", function()
    local gate = daemon.start { policies = { ["get_weather.lua"] = [[
-- get_weather: the weather, without what is none of the model's business. For specs.
return tool "get_weather" { description = "The weather.", effects = "read", redact = { "sky" },
  schema = params { city = str "Where", days = optional(int "How many") } }
]] } }
    local out = process.runs({ "python3", "-c", SCRIPT, gate.socket }, { directory = daemon.root })
    local read = client_of.json.encode(client_of.json.decode(out).messages[2].reads)
    assert.is_nil(read:find("grey", 1, true), read)
    assert.truthy(read:find("[redacted]", 1, true), read)
  end)

  it("has at most ten lines of code", function()
    local code, lines = process.read("docs/agent_loop.py"):gsub('"""..-"""', ""), 0
    for line in code:gmatch "[^\n]+" do
      if line:find "%S" and not line:find "^%s*#" then lines = lines + 1 end
    end
    assert(lines <= 10, lines .. " lines")
  end)
end)
