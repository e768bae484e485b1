-- Prometheus' own tool reads what toolgate serves and ships: the text of the endpoint, the alert rules with their tests,
-- and each query of the dashboard. Prints TAP; promtool is in Debian's package prometheus.
package.path = "tests/support/?.lua;" .. package.path
local daemon = require "daemon"
local http = require "http"
local process = require "process"
local json = require("client").json

local failed = false

local function promtool(title, arguments, input)
  local argv = { "promtool" }
  for i, argument in ipairs(arguments) do argv[i + 1] = argument end
  local code, out, err = process.run(argv, { patience_s = 60, input = input })
  failed = failed or code ~= 0
  print((code == 0 and "ok - " or "not ok - ") .. title)
  if code ~= 0 then print("# " .. (out .. err):gsub("\n", "\n# ")) end
end

local gate = daemon.start {
  policies = "policies",
  config = [[return { metrics = { listen = 'unix:metrics.sock' }, upstreams = { calendar = { command = "cat" } },
                      ledger = { redis = 'unix:/nonexistent/redis.sock' } }]],
}
local client = gate:connect()
client:calls("get_events", { action = "by_ids" }, { ["dev.toolgate/session"] = "a" })
client:calls("get_events", { action = "by_ids", ids = { "e1" } }, { ["dev.toolgate/session"] = "a" })
client:calls("nope", {}, { ["dev.toolgate/session"] = "a" })
local text = http.get("unix:" .. gate.directory .. "/metrics.sock", "/metrics").body
promtool("promtool check metrics", { "check", "metrics" }, text)
promtool("promtool check rules", { "check", "rules", "docs/monitoring/toolgate.rules.yml" })
promtool("promtool test rules", { "test", "rules", "tests/clients/monitoring/rules_test.yml" })

-- Queries become recording rules, so that promtool reads their syntax.
local rules = { "groups: [{ name: dashboard, rules: [" }
for _, panel in ipairs(json.decode(process.read "docs/monitoring/grafana.json").panels) do
  for _, target in ipairs(panel.targets) do
    local query = target.expr:gsub("%$__rate_interval", "1m"):gsub("%$%l+", ".*")
    rules[#rules + 1] = ("{ record: 'a:b:c%d', expr: '%s' },"):format(#rules, (query:gsub("'", "''")))
  end
end
rules[#rules + 1] = "] }]"
promtool("promtool reads the dashboard's queries",
  { "check", "rules", process.write(gate.directory .. "/dashboard.yml", table.concat(rules, "\n") .. "\n") })
daemon.stop_all()
os.exit(failed and 1 or 0)
