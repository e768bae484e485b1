-- Nobody reads the daemon's stderr: every call is answered all the same, the log is bounded, and once somebody reads it
-- again, it says how many lines are missing.
local verdict = require "client".verdict

local PIPE_BYTES, QUEUE_BYTES = 65536, 1048576 -- LOG_QUEUE_MAX_BYTES
local LONG = ("x"):rep(900) -- an error of a policy, which is logged with each call
local REFUSALS = math.ceil((PIPE_BYTES + QUEUE_BYTES) / #LONG) + 100

local BROKEN = [==[
-- broken: fails with what it is given. For specs.
return tool "broken" {
  description = "Fails.", effects = "read", schema = params { what = str "What." },
  run = function() return 1 end, check = function(args) error(args.what) end,
}
]==]

describe("a log that nobody reads", function()
  local gate, folder, flow

  before_each(function()
    folder = process.directory()
    flow = folder .. "/flow"
    gate = daemon.start { policies = { ["broken.lua"] = BROKEN },
                          before = { "python3", "-SE", daemon.root .. "/tests/support/stalled_reader.py", flow } }
  end)

  local function refuses_many(client)
    for i = 1, REFUSALS do
      assert.equal("policy_error", verdict(client:calls("broken", { what = LONG .. i })).error_class)
    end
  end

  it("stalls no call, and reports what it lost", function()
    refuses_many(gate:connect())
    assert.truthy(gate:status().log_lines_dropped > 0)
    local _, shown = process.run { daemon.binary, "status", "--socket", gate.socket }
    assert.matches("the log has lost %d+ lines since the daemon started", shown)
    process.write(flow, "")
    local lost = process.eventually("the log says how many lines it lost", function()
      return (process.read(flow .. ".log") or ""):match "warn log_lines_dropped lines=(%d+)"
    end)
    assert.equal(gate:status().log_lines_dropped, tonumber(lost))
    gate:connect():calls("another", {})
    process.eventually("lines flow again", function()
      return process.read(flow .. ".log"):find("call tool=another", 1, true)
    end)
    local written = select(2, process.read(flow .. ".log"):gsub("tool=broken", "")) -- two lines a call
    assert.equal(2 * REFUSALS, written + tonumber(lost))
  end)

  it("does not keep the daemon from ending", function()
    refuses_many(gate:connect())
    gate:stop()
  end)
end)
