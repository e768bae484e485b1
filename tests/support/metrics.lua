-- Prometheus' text format, read back: samples by their text, and what the metrics are.
local http = require "http"

local M = {}

-- { samples = { ['x{a="b"}'] = 5 }, types = { x = "counter" }, text }; an error for what the format does not allow.
function M.parse(text)
  local found = { samples = {}, types = {}, text = text }
  local name
  for line in text:gmatch "[^\n]+" do
    local kind = line:match "^# (%u+) "
    if kind == "HELP" then
      name = line:match "^# HELP ([%w_:]+) .+"
      assert(not found.types[name], "twice: " .. line)
    elseif kind == "TYPE" then
      local type_of, word = line:match "^# TYPE ([%w_:]+) (%l+)$"
      assert(type_of == name, line)
      found.types[name] = word
    else
      local series, value = line:match "^(.+) ([%d.]+)$"
      local base = series:match "^[%w_:]+"
      assert(base == name or (found.types[name] == "histogram" and base:gsub("_%l+$", "") == name), line)
      assert(not found.samples[series], "twice: " .. line)
      found.samples[series] = tonumber(value)
    end
  end
  assert(text:sub(-1) == "\n")
  return found
end

function M.scrape(address)
  local reply = http.get(address, "/metrics")
  assert(reply.status == 200, reply.body)
  return M.parse(reply.body)
end

-- Samples whose names begin so, without zeros.
function M.of(found, prefix)
  local some = {}
  for series, value in pairs(found.samples) do
    if series:sub(1, #prefix) == prefix and value ~= 0 then some[series] = value end
  end
  return some
end

return M
