-- docs/judgement.md: the figures of `make judgement` in the words of page.md.
local process = require "process"
local score = require "score"

local TEMPLATE = "tests/judgement/page.md"

local M = {}

-- Writes the page. A figure that is missing is an error: a part was not judged.
function M.write(path, figures)
  local page = process.read(TEMPLATE):gsub("{([%w_]+)}", function(name)
    local value = assert(figures[name], TEMPLATE .. " needs the figure " .. name)
    return type(value) == "number" and score.number(value) or value
  end)
  process.write(path, page)
  print("written: " .. path)
end

return M
