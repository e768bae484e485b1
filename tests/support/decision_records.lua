-- Records of the decision log, written by hand in its shape: what toolgate decisions, shadow and replay read.
local M = {}

local second = 0

-- A record of a call; `fields` is added to it. Times are a second apart.
function M.record(fields)
  second = second + 1
  local record = {
    v = 1, ts = ("2026-11-22T09:%02d:%02d.123456Z"):format(math.floor(second / 60), second % 60),
    decision_id = ("d-%04d"):format(second), generation = "4c1f", policy_mode = "enforce", user = "support", uid = 1001,
    session = "chat-7", turn = 3, tool = "get_events", method = "tools/call", verdict = "pass", error_class = "ok",
    us = { total = 812 }, ledger = "local",
  }
  for key, value in pairs(fields) do record[key] = value end
  return record
end

function M.restart() second = 0 end

-- A call that the gate wants repaired.
function M.repair(fields)
  local record = { verdict = "repair", error_class = "invalid_arguments", code = "missing", stage = "schema",
                   detail = "'day' is missing",
                   messages = { { path = "args.day", code = "missing", message = "is missing", severity = "error" } } }
  for key, value in pairs(fields) do record[key] = value end
  return M.record(record)
end

-- A call that passed because the mode is shadow.
function M.shadow(fields)
  local record = { policy_mode = "shadow", result = { class = "ok", hash = "h", bytes = 2 },
                   would = { verdict = "repair", error_class = "invalid_arguments", code = "missing",
                             detail = "'day' is missing",
                             messages = { { path = "args.day", code = "missing", message = "is missing" } } } }
  for key, value in pairs(fields) do record[key] = value end
  return M.record(record)
end

function M.write(path, records, encode)
  local file = assert(io.open(path, "w"))
  for _, record in ipairs(records) do
    file:write(type(record) == "string" and record or encode(record), "\n")
  end
  file:close()
end

return M
