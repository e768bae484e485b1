-- A policy that uses up its time, call after call: its tool has a pause for the user who calls it.
local unistd = require "posix.unistd"

local OTHER, IN_A_ROW = 65534, 5 -- nobody; BUSY_LATE_IN_A_ROW

local function policy(name, fields)
  return ([==[
-- %s: never ends if it is told so. For specs.
return tool "%s" {
  description = "Wait.", effects = "read", schema = params { slow = bool, n = optional(int) },
  %s
  check = function(args) while args.slow do end end,
  run = function() return "done" end,
}
]==]):format(name, name, fields or "")
end

describe("a tool whose policy is late", function()
  local gate, client
  before_each(function()
    gate, client = daemon.open { config = "return { socket_mode = '0666', limits = { policy_ms = 5 } }", policies = {
      ["slow.lua"] = policy "slow", ["other.lua"] = policy "other", ["tried.lua"] = policy("tried", "mode = 'shadow',") } }
  end)

  local sent = 0
  local function calls(name, slow)
    sent = sent + 1
    return client:calls(name, { slow = slow, n = sent })
  end

  local function code(result) return verdict(result).code end

  local function makes_busy(name)
    for _ = 1, IN_A_ROW do calls(name, true) end
  end

  it("five times in a row is busy to that user, for a while, and says when to try again", function()
    for _ = 1, IN_A_ROW do assert.equal("policy_error", verdict(calls("slow", true)).error_class) end
    local result = calls("slow", false)
    local said = verdict(result)
    assert.same({ "wait", "transient", "busy" }, { said.verdict, said.error_class, said.code })
    assert.is_true(said.after_s > 0 and said.after_s <= 10)
    golden.check("feedback", "a policy that was late too often", text(result), { ["%d+ s"] = "<n> s" })
    assert.equal("done", text(calls("other", false)))
    gate:logs(("tool_busy tool=slow uid=%d for_s=10 late_calls=5"):format(unistd.geteuid()))
    local busy = gate:status().busy
    assert.same({ 1, "slow", unistd.geteuid() }, { #busy, busy[1].tool, busy[1].uid })
    local _, status = process.run { daemon.binary, "status", "--socket", gate.socket }
    assert.truthy(status:find("slow is busy to uid %d+ for another %d+ s: ", 1), status)
  end)

  it("spends nothing while it is busy", function()
    makes_busy "slow"
    for _ = 1, 60 do assert.equal("busy", code(client:calls("slow", { slow = false }))) end
  end)

  it("is not busy if one call in between is in time", function()
    for i = 1, 3 * IN_A_ROW do
      local slow = i % IN_A_ROW ~= 0
      local result = calls("slow", slow)
      assert.equal(slow and "policy_error" or "ok", verdict(result).error_class)
    end
    assert.is_nil(gate:status().busy)
  end)

  it("is not refused where nothing is enforced: its hooks have the pause", function()
    makes_busy "tried"
    assert.equal("done", text(calls("tried", true)))
    assert.equal(1, #gate:status().busy)
  end)

  it("is refused to a check, while a report of what has run is heard", function()
    local check = client:asks("toolgate/check", { name = "slow", arguments = { slow = false } })
    makes_busy "slow"
    assert.equal("busy", client:asks("toolgate/check", { name = "slow", arguments = { slow = false } }).code)
    local report = client:asks("toolgate/report", { callId = check.callId, name = "slow", arguments = { slow = false },
                                                    result = { content = { { type = "text", text = "x" } } } })
    assert.equal("pass", report.verdict)
  end)

  it("twice in a row in dry runs has a short pause for dry runs alone, which a pause of calls leaves out", function()
    local function tries(name, slow)
      return client:asks("toolgate/check", { name = name, arguments = { slow = slow },
                                             _meta = { ["dev.toolgate/trace"] = true } })
    end
    for _, name in ipairs { "slow", "tried" } do
      for _ = 1, 2 do assert.not_equal("busy", tries(name, true).code) end
      process.eventually("it has a pause, which each late one renews", function()
        local said = tries(name, true)
        return said.code == "busy" and said.after_s == 1
      end)
    end
    assert.equal("done", text(calls("slow", false)))
    assert.is_nil(gate:status().busy)
    makes_busy "slow"
    process.eventually("the pause is over", function() return tries("slow", false).verdict == "pass" end)
    assert.equal("busy", code(calls("slow", false)))
  end)

  if unistd.geteuid() ~= 0 then
    pending("is not busy to others: needs root, to change the user")
    return
  end

  it("is not busy to others, who don't see whose it is", function()
    makes_busy "slow"
    local script = ([[
      local stream = require("socket.unix").stream()
      assert(stream:connect(%q))
      stream:send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"slow":false}}}\n')
      print(stream:receive "*l")
      stream:send('{"jsonrpc":"2.0","id":2,"method":"toolgate/status"}\n')
      print(stream:receive "*l")
    ]]):format(gate.socket)
    local _, out, err = process.run {
      "setpriv", "--reuid=" .. OTHER, "--regid=" .. OTHER, "--clear-groups", "luajit", "-e", script }
    assert.truthy(out:find('"text":"done"', 1, true), out .. err)
    assert.is_nil(out:find('"busy"', 1, true))
  end)
end)
