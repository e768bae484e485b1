-- The forms of secrets that no record of the decision log shows: tests/support/secret_forms.lua.
local cjson = require "cjson"
local forms = require "secret_forms"

local OPEN = [[
-- open: for specs.
return tool "open" { description = "Takes anything.", effects = "read", schema = json [=[{"type":"object"}]=],
  run = function() return 1 end }
]]

-- The row with its own secret instead of each '@'.
local function with(secret, row)
  if type(row) == "string" then
    return (row:gsub("@@", "\0"):gsub("@", secret):gsub("%z", secret .. "@"))
  end
  if type(row) ~= "table" then return row end
  local out = {}
  for key, value in pairs(row) do out[key] = with(secret, value) end
  return out
end

describe("the decision log", function()
  local function recorded(rows)
    local gate = daemon.start { policies = { ["open.lua"] = OPEN } }
    local client, path = gate:connect(), gate.socket .. ".state/decisions.ndjson"
    for _, row in ipairs(rows) do client:calls("open", row) end
    local lines
    process.eventually(#rows .. " records", function()
      lines = process.whole_lines(path)
      return #lines == #rows
    end)
    return lines
  end

  -- What the log shows of each row's secret where `shows` says otherwise.
  local function wrong(kind, shows)
    local rows, found = {}, {}
    for i, row in ipairs(forms[kind]) do rows[i] = with(("zorGlub%03d"):format(i), row) end
    for i, line in ipairs(recorded(rows)) do
      local seen = line:find(("zorGlub%03d"):format(i), 1, true) ~= nil
      if seen ~= shows then found[#found + 1] = cjson.encode(rows[i]) .. "\n  " .. line end
    end
    return table.concat(found, "\n")
  end

  it("hides a secret in each form", function()
    assert.is_true(#forms.hidden >= 59)
    assert.equal("", wrong("hidden", false))
  end)

  it("hides one that is encoded", function()
    local rows = {}
    for i, row in ipairs(forms.encoded) do rows[i] = row[1] end
    for i, line in ipairs(recorded(rows)) do assert.is_nil(line:find(forms.encoded[i][2], 1, true), line) end
  end)

  it("shows what only looks like one", function()
    assert.equal("", wrong("shown", true))
  end)
end)
