-- All recorded sessions beside the repository in one report: the runaways are found, and a stricter policy's new refusals
-- are listed.
local recordings = require "recordings"
local trajectories = require "trajectories"
local replay, row = recordings.replay, recordings.row

local RUNAWAYS, SAVED, SESSIONS = 6, 530, 557

describe("the recorded sessions", function()
  local sessions, arguments, folder = trajectories.sessions(), {}, nil

  setup(function()
    for path in io.popen("ls " .. trajectories.folder .. "/trajectories-*.ndjson 2>/dev/null"):lines() do
      arguments[#arguments + 1] = path
    end
    for _, toolset in ipairs(sessions and trajectories.toolsets(sessions) or {}) do
      arguments[#arguments + 1] = "--tools"
      arguments[#arguments + 1] = toolset .. "=" .. trajectories.tools_file(toolset)
    end
  end)
  before_each(function() folder = recordings.new() end)

  local function story(name, body)
    it(name, function()
      if not sessions then return pending("no " .. trajectories.folder) end
      body()
    end)
  end

  story("are one report, with the runaways and the calls that would have been saved", function()
    local code, report, err = replay(unpack(arguments))
    assert.equal(0, code, err)
    assert.same({ SESSIONS, RUNAWAYS, {} }, { report.sessions, report.loops.runaways, report.skipped })
    assert.is_true(report.loops.calls_saved >= SAVED, report.loops.calls_saved)
    local runaway = {}
    for _, session in ipairs(sessions) do
      runaway[session.name] = trajectories.repeats(session) >= trajectories.RUNAWAY_REPEATS
    end
    for i = 1, RUNAWAYS do assert.is_true(runaway[report.loops.list[i].session], report.loops.list[i].session) end
  end)

  story("show what a stricter policy refuses", function()
    local stricter = folder:policies("stricter", { search_direct_flight = [[
-- search_direct_flight: no search from Newark.
return tool "search_direct_flight" {
  check = function(args) if args.origin == "EWR" then return refuse("no_newark", "Newark is closed.") end end,
}
]] })
    local none, recorded = folder:policies("none", {}), 0
    for _, session in ipairs(sessions) do
      for _, call in ipairs(session) do
        local from_newark = call.tool == "search_direct_flight" and call.arguments:find '"origin"%s*:%s*"EWR"'
        recorded = recorded + (from_newark and 1 or 0)
      end
    end
    arguments[#arguments + 1] = "--policies=" .. none
    arguments[#arguments + 1] = "--against=" .. stricter
    arguments[#arguments + 1] = "--fail-on-new"
    local code, report, err = replay(unpack(arguments))
    assert.equal(1, code, err)
    local refused = 0
    for _, d in ipairs(report.against.differences) do
      assert.equal("search_direct_flight", d.tool)
      if d.code == "no_newark" then refused = refused + d.calls end
    end
    assert.is_true(recorded > 0)
    assert.equal(recorded, refused)
    assert.equal(3, #row(report.against.differences, { code = "no_newark" }).examples)
  end)
end)
