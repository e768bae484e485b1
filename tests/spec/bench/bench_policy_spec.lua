-- toolgate bench policy: measures, and tells it to people and to programs. How fast it is no test can say.
local process = require "process"
local daemon = require "daemon"
local json = require("client").json

describe("toolgate bench policy", function()
  local function bench(...)
    return process.run({ daemon.binary, "bench", "policy", "--policies", "20", "--seconds", "1", ... }, { patience_s = 60 })
  end

  it("tells programs what each thing cost, and as a ratio to an empty hook", function()
    local code, out, err = bench "--json"
    assert.equal(0, code, err)
    local told = json.decode(out)
    for _, name in ipairs { "empty", "push", "bridge", "change", "rules", "policy", "result", "call", "call_policy",
                            "call_among" } do
      assert.is_true(told.ns[name] > 0, name)
      assert.near(told.ns[name] / told.ns.empty, told.of_empty[name], 1e-6)
    end
    assert.near(told.ns.bridge - told.ns.empty, told.differences_ns.bridge, 1e-6)
    assert.equal(20, told.loaded.policies)
  end)

  it("tells people what was promised beside what it is", function()
    local code, out, err = bench()
    assert.equal(0, code, err)
    assert.matches("the bridge for six arguments +%d+ ns +%-?[%d.]+  at most 600", out)
    assert.matches("a policy of twenty lines beyond the bridge +%-?%d+ ns +%-?[%d.]+  at most 1000", out)
    assert.matches("memory of a loaded policy +%-?%d+ B   at most 2500", out)
  end)

  it("leaves nothing behind", function()
    local folder = process.directory()
    local code = process.run({ daemon.binary, "bench", "policy", "--policies", "3", "--seconds", "1" },
                             { environment = { TMPDIR = folder }, patience_s = 60 })
    assert.equal(0, code)
    assert.equal("", io.popen("ls " .. folder):read "*a")
    process.remove(folder)
  end)

  it("names what can be measured", function()
    local code, _, err = process.run { daemon.binary, "bench", "polices" }
    assert.equal(2, code)
    assert.matches("expected .*'policy'", err)
  end)
end)
