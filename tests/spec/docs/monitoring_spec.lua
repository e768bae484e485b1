-- What the dashboard, the alert rules and docs/monitoring.md ask for exists on the endpoint.
local metrics = require "metrics"
local json = require("client").json

-- The names of metrics in a text; those of a histogram without their suffix.
local function names(text, types)
  local found = {}
  for name in text:gmatch "[%w_:]+" do
    local base = name:gsub("_bucket$", ""):gsub("_sum$", ""):gsub("_count$", "")
    if types[base] == "histogram" then name = base end
    if name:find "^toolgate_[%l_]+$" or name:find "^mcp_server_" or name:find "^process_" then found[name] = true end
  end
  return found
end

local function unknown(found, types)
  local list = {}
  for name in pairs(found) do
    if not types[name] then list[#list + 1] = name end
  end
  return list
end

describe("the monitoring of an operator", function()
  local types

  local function scrape()
    local gate = daemon.start { config = [[return { metrics = { listen = 'unix:metrics.sock' },
      upstreams = { calendar = { command = "cat" } }, ledger = { redis = 'unix:/nonexistent/redis.sock' } }]] }
    types = metrics.scrape("unix:" .. gate.directory .. "/metrics.sock").types
  end

  it("has a dashboard whose every query names a metric of the endpoint", function()
    scrape()
    local dashboard = json.decode(process.read "docs/monitoring/grafana.json")
    local panels = 0
    for _, panel in ipairs(dashboard.panels) do
      for _, target in ipairs(panel.targets) do
        local found = names(target.expr, types)
        assert.is_truthy(next(found), target.expr)
        assert.same({}, unknown(found, types), panel.title)
      end
      panels = panels + 1
    end
    assert.is_true(panels >= 20)
    for _, variable in ipairs(dashboard.templating.list) do
      if variable.type == "query" then assert.same({}, unknown(names(variable.query.query, types), types)) end
    end
  end)

  it("has alert rules about metrics of the endpoint", function()
    scrape()
    local count = 0
    for expression in process.read("docs/monitoring/toolgate.rules.yml"):gmatch "expr: (.-)\n +%l+:" do
      count = count + 1
      assert.same({}, unknown(names(expression, types), types), expression)
    end
    assert.is_true(count >= 12)
  end)

  it("has a page that lists every metric, and no other", function()
    scrape()
    local page = process.read "docs/monitoring.md"
    local listed, missing = {}, {}
    for name in page:gmatch "\n| `([%l_]+)[`{]" do listed[name] = true end
    for name in pairs(types) do
      if not listed[name] then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
    assert.same({}, unknown(names(page, types), types))
  end)
end)
