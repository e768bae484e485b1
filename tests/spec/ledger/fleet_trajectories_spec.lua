-- Recorded sessions on three daemons with one Redis: each reply equals the reply of a single daemon with the local
-- ledger; runaway sessions are stopped, and other sessions only if a person judged it right. Runs twice: with the
-- published tool definitions, and with effects that an operator would declare.
local daemon = require "daemon"
local redis = require "redis"
local trajectories = require "trajectories"

local RUNAWAYS, SAVED = 6, 530

-- The other sessions with a refused call, judged by a person. A new entry must be read and judged.
local JUDGED = {
  ["livemcp/629106a5-9508-4ac9-97c3-f22f6069ee7f"] = "A region that is not in the enum; the next call has one that is.",
  ["livemcp/08644b1a-ac5e-45a9-8ad1-3a3942e8d366"] = "The editor called without its file_hash, five times.",
  ["livemcp/a984d31b-f3e9-47d4-8726-19a06e6babc5"] = "Colours as text where numbers are asked for; where effects are"
    .. " declared, also the third creation of one presentation, with the same id as before.",
  ["livemcp/4aa079dd-9d2d-440d-a654-9ba9cb3868b0"] = "File names where URLs are asked for; the tool said so, too.",
  ["livemcp/b276e772-28b5-42fd-bb85-fd73e017fe25"] = "A tool's name with blanks, which nobody offers; the right one passes.",
  ["livemcp/90098a9c-2a37-4655-82b1-6b58c5154660"] = "Reader and editor called with missing fields; the right call passes.",
  ["livemcp/71a7a42a-54af-4552-ad9b-d36f4912cc1c"] = "The same two; the right call passes after the last repair, too.",
  ["tau/gpt4o-airline/8-1"] = "Declared a write: a third booking whose payment does not add up; the hand-over passes.",
  ["tau/gpt4o-airline/9-2"] = "Thinks and books in a circle, the same payment each time, which never adds up.",
  ["tau2/gptoss120b-airline/9-0"] = "Books again what was just booked; the tool had reported too many reservations.",
  ["tau2/gptoss120b-airline/26-0"] = "Hands over a third time what was handed over, in two turns.",
  ["tau2/gptoss120b-airline/38-0"] = "Hands over a third time what was handed over.",
  ["tau2/gptoss120b-airline/45-0"] = "Hands over a third time what was handed over.",
  ["tau2/gptoss120b-airline/48-0"] = "Hands over eight times what was handed over; the fifth ends the run.",
}

local sessions = trajectories.sessions()

local function gate_for(toolset, declared, ...)
  return daemon.start { tools = trajectories.tools_file(toolset), arguments = { ... },
                        policies = declared and trajectories.policies(sessions, toolset) or nil }:connect()
end

-- The replies of each session, from a fleet and from a single daemon.
local function replay_all(declared)
  local fleet_said, alone_said = {}, {}
  for _, toolset in ipairs(trajectories.toolsets(sessions)) do
    local store = redis.start()
    local alone, fleet = { gate_for(toolset, declared) }, {}
    for i = 1, 3 do fleet[i] = gate_for(toolset, declared, "--redis", store:url()) end
    for _, session in ipairs(sessions) do
      if session.toolset == toolset then
        fleet_said[session] = trajectories.replay(session, fleet)
        alone_said[session] = trajectories.replay(session, alone)
      end
    end
    daemon.stop_all()
    redis.stop_all()
  end
  return fleet_said, alone_said
end

local function show(session, said)
  local codes, list = {}, {}
  for _, one in ipairs(said) do
    local code = one.verdict.verdict ~= "pass" and one.verdict.code
    if code and not codes[code] then list[#list + 1] = code end
    if code then codes[code] = (codes[code] or 0) + 1 end
  end
  for i, code in ipairs(list) do list[i] = codes[code] .. " " .. code end
  print(("  %-50s %2d calls, %s: %s"):format(session.name, #session, table.concat(list, ", "),
                                            JUDGED[session.name] or "NOT JUDGED"))
end

for _, declared in ipairs { false, true } do
  describe("recorded sessions with " .. (declared and "declared" or "undeclared") .. " effects", function()
    local fleet, alone

    setup(function()
      if sessions then fleet, alone = replay_all(declared) end
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

    local function passes_all(said)
      for _, one in ipairs(said) do
        if one.verdict.verdict ~= "pass" then return false end
      end
      return true
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
        if trajectories.repeats(session) >= trajectories.RUNAWAY_REPEATS then
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
      for _, session in ipairs(sessions) do
        local said = fleet[session]
        if trajectories.repeats(session) < trajectories.RUNAWAY_REPEATS and not passes_all(said) then
          show(session, said)
          assert.truthy(JUDGED[session.name], session.name .. " has a refusal that nobody has judged")
        end
      end
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
