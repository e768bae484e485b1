-- The recordings beside the project: their definitions, and daemons with these. CORPUS names another folder.
local process = require "process"
local trajectories = require "trajectories"
local gates = require "gate"
local json = require("client").json

local M = { folder = trajectories.folder }

function M.is_there()
  return io.open(M.folder .. "/defects-groundtruth.ndjson") ~= nil
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
