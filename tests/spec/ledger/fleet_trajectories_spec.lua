-- Recorded sessions on three daemons with one Redis: each reply equals the reply of a single daemon with the local
-- ledger; runaway sessions are stopped, and other sessions only if a person judged it right. Runs three times: with the
-- published tool definitions, whose effects toolgate guesses; with effects that an operator would declare; and as a stock
-- MCP client would call, without turns and steps. tests/golden/trajectories.txt lists every refusal.
local redis = require "redis"
local trajectories = require "trajectories"

local WAYS = { { "with undeclared effects" }, { "with declared effects", declared = true }, { "without turns", bare = true } }
local PATIENT = "return { ledger = { timeout_ms = 5000 } }" -- a busy machine is not an outage
local RUNAWAYS, SAVED = 6, 530

-- The other sessions with a refused call, judged by a person. A new entry must be read and judged.
local JUDGED = {
  ["livemcp/629106a5-9508-4ac9-97c3-f22f6069ee7f"] = "A region that is not in the enum; the next call has one that is.",
  ["livemcp/08644b1a-ac5e-45a9-8ad1-3a3942e8d366"] = "The editor called without its file_hash, five times.",
  ["livemcp/a984d31b-f3e9-47d4-8726-19a06e6babc5"] = "Colours as text where numbers are asked for; where effects are"
    .. " declared, also the second and third creation of one presentation, and a slide that failed before.",
  ["livemcp/4aa079dd-9d2d-440d-a654-9ba9cb3868b0"] = "File names where URLs are asked for; the tool said so, too.",
  ["livemcp/b276e772-28b5-42fd-bb85-fd73e017fe25"] = "A tool's name with blanks, which nobody offers; the right one passes.",
  ["livemcp/90098a9c-2a37-4655-82b1-6b58c5154660"] = "Reader and editor called with missing fields; the right call passes.",
  ["livemcp/71a7a42a-54af-4552-ad9b-d36f4912cc1c"] = "The same two; the right call passes after the last repair, too.",
  ["tau/gpt4o-airline/8-1"] = "Declared a write: a second and third booking whose payment does not add up; the hand-over passes.",
  ["tau/gpt4o-airline/9-2"] = "Thinks and books in a circle, the same payment each time, which never adds up.",
  ["tau2/gptoss120b-airline/9-0"] = "Books again what was just booked; the tool had reported too many reservations.",
  ["tau2/gptoss120b-airline/8-0"] = "A payment without its id and amount, which the environment refused.",
  ["tau2/gptoss120b-airline/20-0"] = "Two payments without their id, which the environment refused.",
  ["tau2/gptoss120b-airline/42-0"] = "A payment without its amount, which the environment refused.",
  ["tau2/whissle-airline/20-0"] = "Two payments without id and amount three times, which the environment refused.",
  ["tau2/gptoss120b-airline/24-0"] = "Hands over a second time what was handed over, where effects are declared.",
  ["tau2/gptoss120b-airline/31-0"] = "The same.",
  ["tau2/gptoss120b-airline/43-0"] = "The same.",
  ["tau2/gptoss120b-airline/26-0"] = "Hands over a second or third time what was handed over, in two turns.",
  ["tau2/gptoss120b-airline/38-0"] = "Hands over a second or third time what was handed over.",
  ["tau2/gptoss120b-airline/45-0"] = "Hands over a second or third time what was handed over.",
  ["tau2/gptoss120b-airline/48-0"] = "Hands over eight times what was handed over; the fifth ends the run.",
  -- Only without turns, which would tell that the user spoke in between:
  ["tau2/gpt5-toolorch-retail/9-0"] = "Reads the same two products a third time in a row, without any other call between; they"
    .. " have not changed, and it has read them twice. Only the second of the pair is refused.",
  ["tau2/qwen25-7b-airline/15-0"] = "Books a third time in a row with a payment method that does not exist.",
  ["tau2/qwen25-7b-airline/27-0"] = "Asks a third time in a row for a reservation that does not exist.",
  ["tau2/qwen25-7b-airline/20-0"] = "Books a third time in a row with a certificate that does not exist.",
  ["tau2/qwen25-7b-airline/29-0"] = "Searches two days that have no flight a third and a fourth time; pays a third time with a"
    .. " card that does not exist. The right card passes.",
}

local sessions = trajectories.sessions()

local function gate_for(toolset, declared, ...)
  return daemon.start { tools = trajectories.tools_file(toolset), arguments = { ... }, config = PATIENT,
                        policies = declared and trajectories.policies(sessions, toolset) or nil }:connect()
end

-- The replies of each session, from a fleet and from a single daemon.
local function replay_all(way)
  local fleet_said, alone_said = {}, {}
  for _, toolset in ipairs(trajectories.toolsets(sessions)) do
    local store = redis.start()
    local alone, fleet = { gate_for(toolset, way.declared) }, {}
    for i = 1, 3 do fleet[i] = gate_for(toolset, way.declared, "--redis", store:url()) end
    for _, session in ipairs(sessions) do
      if session.toolset == toolset then
        fleet_said[session] = trajectories.replay(session, fleet, way.bare)
        alone_said[session] = trajectories.replay(session, alone, way.bare)
      end
    end
    daemon.stop_all()
    redis.stop_all()
  end
  return fleet_said, alone_said
end

-- "2 loop, 1 same_call of create_task": the refusals of a session, in the order in which they first came.
local function refusals(session, said)
  local counts, list = {}, {}
  for i, one in ipairs(said) do
    if one.verdict.verdict ~= "pass" then
      local what = one.verdict.code .. " of " .. session[i].tool
      if not counts[what] then list[#list + 1] = what end
      counts[what] = (counts[what] or 0) + 1
    end
  end
  for i, what in ipairs(list) do list[i] = counts[what] .. " " .. what end
  return #list > 0 and table.concat(list, ", ") or nil
end

local function is_runaway(session) return trajectories.repeats(session) >= trajectories.RUNAWAY_REPEATS end

for _, way in ipairs(WAYS) do
  describe("recorded sessions " .. way[1], function()
    local fleet, alone

    setup(function()
      if sessions then fleet, alone = replay_all(way) end
    end)
    teardown(function()
      daemon.stop_all()
      redis.stop_all()
    end)

    local function story(name, body)
      it(name, function()
        if not sessions then return pending("no " .. trajectories.folder) end
        body()
      end)
    end

    story("get the same replies from three daemons with Redis and from one without", function()
      local calls = 0
      for _, session in ipairs(sessions) do
        for i in ipairs(session) do
          calls = calls + 1
          local where = session.name .. ", call " .. i
          assert.equal(alone[session][i].check, fleet[session][i].check, where)
          assert.equal(alone[session][i].report, fleet[session][i].report, where)
          assert.same({ '"local"', '"redis"' }, { alone[session][i].engine, fleet[session][i].engine }, where)
        end
      end
      assert.is_true(calls > 5000, calls)
    end)

    story("that run away are stopped from the third identical call", function()
      local runaways, calls, saved = 0, 0, 0
      for _, session in ipairs(sessions) do
        if is_runaway(session) then
          assert.is_nil(trajectories.passed_as_third(session, fleet[session]), session.name)
          runaways, calls = runaways + 1, calls + #session
          saved = saved + trajectories.stopped(fleet[session])
        end
      end
      print(("\n%d runaways: %d of their %d calls are saved"):format(runaways, saved, calls))
      assert.equal(RUNAWAYS, runaways)
      assert.is_true(saved >= SAVED, saved)
    end)

    story("that do not run away are stopped only if a person judged it right", function()
      local lines = {}
      for _, session in ipairs(sessions) do
        local refused = refusals(session, fleet[session])
        if refused then
          lines[#lines + 1] = ("%s, %d calls: %s\n    %s"):format(session.name, #session, refused,
            is_runaway(session) and "Runs away." or JUDGED[session.name] or "NOT JUDGED")
        end
      end
      local text = table.concat(lines, "\n")
      assert.is_nil(text:find("NOT JUDGED", 1, true), text)
      golden.check("trajectories", way[1], text)
    end)

    story("get no refusal of a toggle, a reboot after a change, or a re-check after a fix", function()
      for _, session in ipairs(sessions) do
        assert.is_nil(trajectories.wrongly_stopped(session, fleet[session]), session.name)
      end
    end)

    story("get argument errors only for calls that the tool itself refused", function()
      for _, session in ipairs(sessions) do
        for i, call in ipairs(session) do
          local class = fleet[session][i].verdict.error_class
          local is_argument_error = class == "invalid_arguments" or class == "unknown_tool"
          assert.is_true(not is_argument_error or call.is_error, session.name .. ", call " .. i)
        end
      end
    end)
  end)
end

describe("published definitions", function()
  it("are all taken, and every schema of theirs is understood", function()
    if not sessions then return pending("no " .. trajectories.folder) end
    for path in trajectories.paths "tools-*.json" do
      local client = daemon.start { tools = process.read(path) }:connect()
      for _, tool in ipairs(json.decode(process.read(path))) do
        assert.not_equal("unknown_tool", client:checks(tool.name).error_class, tool.name)
      end
      for _, warning in ipairs(client:asks("toolgate/status").generation.warnings) do
        assert.is_nil(warning:find("is accepted here", 1, true), warning)
      end
    end
  end)
end)

describe("published calls with the right arguments", function()
  it("pass, but for those that break their own schema", function()
    if not sessions then return pending("no " .. trajectories.folder) end
    local gates, count = {}, 0
    for _, call in ipairs(trajectories.labelled()) do
      gates[call.toolset] = gates[call.toolset] or gate_for(call.toolset)
      count = count + 1
      gates[call.toolset]:say_line(('{"jsonrpc":"2.0","id":%d,"method":"toolgate/check","params":{"name":%s,"arguments":%s,'
        .. '"_meta":{"dev.toolgate/session":"truth %d"}}}'):format(count, json.encode(call.tool), call.arguments, count))
      local line = gates[call.toolset]:hears_line()
      assert.truthy(line:find('"verdict":"pass"', 1, true), call.tool .. " " .. call.arguments .. ": " .. line)
      assert.is_nil(line:find('"rewrites"', 1, true), call.tool .. " " .. call.arguments .. ": " .. line)
    end
    assert.is_true(count > 2000, count)
  end)
end)

describe("trajectories.raw", function()
  it("returns the JSON text of a member unchanged", function()
    local text = [[{"a": {"x": [1.10, {}], "y": "a \"}\\"}, "b":[], "c": 18446744073709551615, "d" : "\\"}]]
    assert.equal([[{"x": [1.10, {}], "y": "a \"}\\"}]], trajectories.raw(text, "a"))
    assert.equal("[]", trajectories.raw(text, "b"))
    assert.equal("18446744073709551615", trajectories.raw(text, "c"))
    assert.equal([["\\"]], trajectories.raw(text, "d"))
    assert.is_nil(trajectories.raw(text, "e"))
  end)
end)
