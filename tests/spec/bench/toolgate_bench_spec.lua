-- toolgate-bench: the output of each command, as text and as JSON. No test asserts a speed.
local json = require("client").json

describe("toolgate-bench policy", function()
  local function bench(...)
    return process.run({ daemon.bench, "policy", "--policies", "20", "--seconds", "1", ... }, { patience_s = 60 })
  end

  it("prints the cost of each step as JSON, also relative to an empty hook", function()
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

  it("prints each cost beside its limit", function()
    local code, out, err = bench()
    assert.equal(0, code, err)
    assert.matches("the bridge for six arguments +%d+ ns +%-?[%d.]+  at most 600", out)
    assert.matches("a policy of twenty lines beyond the bridge +%-?%d+ ns +%-?[%d.]+  at most 1000", out)
    assert.matches("memory of a loaded policy +%-?%d+ B   at most 2500", out)
  end)

  it("leaves no files behind", function()
    local folder = process.directory()
    process.runs({ daemon.bench, "policy", "--policies", "3", "--seconds", "1" },
                 { environment = { TMPDIR = folder }, patience_s = 60 })
    assert.equal("", io.popen("ls " .. folder):read "*a")
  end)

  it("suggests the closest command", function()
    local code, _, err = process.run { daemon.bench, "polices" }
    assert.equal(2, code)
    golden.check("cli", "bench: an unknown command", err)
  end)
end)

describe("toolgate-bench socket", function()
  it("measures verdicts beside an echo over the same socket code", function()
    local out = process.runs({ daemon.bench, "socket", "--connections", "2", "--depth", "1",
                               "--seconds", "1", "--json" }, { patience_s = 60 })
    assert.is_table(json.decode(out))
    assert.truthy(out:find("echo", 1, true), out)
  end)
end)

describe("toolgate-bench bowtie", function()
  local function ask(lines)
    local code, out, err = process.run({ daemon.bench, "bowtie" },
                                       { input = table.concat(lines, "\n") .. "\n" })
    local answers = {}
    for line in out:gmatch "[^\n]+" do answers[#answers + 1] = json.decode(line) end
    return answers, code, err
  end
  local START = [[{"cmd": "start", "version": 1}]]
  local STOP = [[{"cmd": "stop"}]]

  it("answers start, dialect, run and stop", function()
    local case = [[{"cmd": "run", "seq": 5, "case": {"schema": {"$ref": "http://localhost/int", "type": "string"},
      "registry": {"http://localhost/int": {"type": "integer"}}, "tests": [{"instance": 1}, {"instance": "x"}]}}]]
    local answers, code = ask { START, [[{"cmd": "dialect", "dialect": "http://json-schema.org/draft-07/schema#"}]],
      (case:gsub("\n", " ")), STOP }
    assert.are.equal(0, code)
    assert.are.equal("toolgate", answers[1].implementation.name)
    assert.are.equal(3, #answers[1].implementation.dialects)
    assert.is_true(answers[2].ok)
    -- beside $ref, draft-07 ignores every other keyword
    assert.are.same({ seq = 5, results = { { valid = true }, { valid = false } } }, answers[3])
    assert.is_nil(answers[4])
  end)

  it("reports a case that fails, and continues with the next", function()
    local answers = ask { START, [[{"cmd": "run", "seq": 1, "case": {"schema": {"$ref": "http://nowhere/"}, "tests": []}}]],
      [[{"cmd": "run", "seq": 2, "case": {"schema": true, "tests": [{"instance": 1}]}}]], STOP }
    assert.is_true(answers[2].errored)
    assert.is_truthy(answers[2].context.message:find("http://nowhere/", 1, true))
    assert.are.same({ { valid = true } }, answers[3].results)
  end)

  it("refuses an unknown dialect, and another version of the protocol", function()
    local answers = ask { START, [[{"cmd": "dialect", "dialect": "http://json-schema.org/draft-03/schema#"}]], STOP }
    assert.is_false(answers[2].ok)
    local none, code, err = ask { [[{"cmd": "start", "version": 2}]] }
    assert.are.same({ 0, 2 }, { #none, code })
    golden.check("cli", "bench bowtie: an unknown version", err)
  end)

  it("exits 2 with an error if a line is not a request", function()
    local _, code, err = ask { "hello" }
    assert.are.equal(2, code)
    golden.check("cli", "bench bowtie: a line that is not a request", err)
  end)
end)
