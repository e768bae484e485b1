-- Recordings in a temporary folder, and what toolgate replay says of them.
local process = require "process"
local daemon = require "daemon"
local json = require("client").json

local M = {}

-- A folder with the methods of this module; folder:remove() deletes it.
function M.new()
  return setmetatable({ path = process.directory() }, { __index = M })
end

function M:remove() process.remove(self.path) end

-- Writes a file: a string as it is, a list of tables as NDJSON, another table as one document.
function M:file(name, content)
  if type(content) == "table" and (content[1] or next(content) == nil) then
    local lines = {}
    for i, record in ipairs(content) do lines[i] = type(record) == "string" and record or json.encode(record) end
    content = table.concat(lines, "\n") .. "\n"
  elseif type(content) == "table" then
    content = json.encode(content)
  end
  return process.write(self.path .. "/" .. name, content)
end

-- A folder of policies: { list_orders = "return tool …" }.
function M:policies(name, files)
  os.execute("mkdir " .. self.path .. "/" .. name)
  for tool, source in pairs(files) do
    process.write(("%s/%s/%s.lua"):format(self.path, name, tool), source)
  end
  return self.path .. "/" .. name
end

-- The exit code, the report that --json prints, and what stderr says.
function M.replay(...)
  local code, out, err = process.run { daemon.binary, "replay", "--json", ... }
  return code, out ~= "" and json.decode(out) or nil, err
end

-- The row of a table with these members: row(report.problems, { tool = "t", code = "missing" }).
function M.row(tbl, wanted)
  for _, row in ipairs(tbl.rows or tbl) do
    local same = true
    for key, value in pairs(wanted) do same = same and row[key] == value end
    if same then return row end
  end
end

return M
