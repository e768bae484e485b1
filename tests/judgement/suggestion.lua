-- Whether a suggestion of a refusal ({ path, value }) is what the model meant.
local tree = require "json_tree"
local json = require("client").json

local M = {}

-- The value at the path of a suggestion ("args.items[0].name") in a call's arguments; nil: nothing is there.
local function value_at(arguments, path)
  local node = arguments
  for key, index in path:gsub("^args%.?", ""):gmatch "([^.%[%]]*)%[?(%d*)%]?" do
    if node and key ~= "" then node = node.kind == "object" and tree.get(node, key) or nil end
    if node and index ~= "" then node = node.kind == "array" and node[tonumber(index) + 1] or nil end
  end
  return node
end

-- Whether the arguments `later` have the name, or the value, that the suggestion says.
function M.was_right(suggestion, later)
  local wanted = tree.read(json.encode({ suggestion.value }))[1]
  local parent = value_at(later, suggestion.path:match "^(.*)%.[^.]*$" or "args")
  local name = wanted.kind == "string" and parent and parent.kind == "object" and tree.get(parent, wanted.text)
  local value = value_at(later, suggestion.path)
  return name ~= nil and name ~= false or value ~= nil and tree.alike(value, wanted)
end

return M
