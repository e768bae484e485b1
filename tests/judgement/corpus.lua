-- The recordings beside the project: definitions, labelled calls, sessions. CORPUS names another folder.
local process = require "process"
local trajectories = require "trajectories"
local gates = require "gate"
local json = require("client").json

local M = { folder = trajectories.folder }

function M.is_there()
  return io.open(M.folder .. "/defects-groundtruth.ndjson") ~= nil
end

-- Each line of the files that match a pattern of the shell.
function M.lines(pattern)
  local files = io.popen("ls " .. M.folder .. "/" .. pattern .. " 2>/dev/null"):read "*a"
  return coroutine.wrap(function()
    for path in files:gmatch "[^\n]+" do
      for line in io.lines(path) do coroutine.yield(line) end
    end
  end)
end

-- { toolset = { tool = definition } }.
function M.definitions()
  local sets = {}
  for path in io.popen("ls " .. M.folder .. "/tools-*.json"):lines() do
    local set = {}
    for _, tool in ipairs(json.decode(process.read(path))) do set[tool.name] = tool end
    sets[path:match "tools%-(.*)%.json$"] = set
  end
  return sets
end

local function place_of(row)
  return table.concat({ row.source, row.session, tostring(row.turn), row.tool }, "|")
end

-- Published ground truth without the calls that break their own schema.
function M.labelled()
  local defects, calls = {}, {}
  for line in M.lines "defects-groundtruth.ndjson" do defects[place_of(json.decode(line))] = true end
  for line in M.lines "calls-*-groundtruth.ndjson" do
    local row = json.decode(line)
    if row.expect == "valid" and not defects[place_of(row)] then
      calls[#calls + 1] = { tool = row.tool, toolset = row.toolset, arguments = trajectories.raw(line, "arguments") }
    end
  end
  return calls
end

-- A function that gives the gate with a toolset's tools, started once. `of_upstream`: servers list them.
function M.opener()
  local opened = {}
  return function(toolset, of_upstream)
    local key = toolset .. (of_upstream and " of an upstream" or "")
    opened[key] = opened[key] or gates.start(trajectories.tools_file(toolset), of_upstream)
    return opened[key]
  end
end

return M
