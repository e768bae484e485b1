-- clients/python: its types, its core and its adapters, each with the framework's own test model and a real daemon.
local daemon = require "daemon"
local packages = require "packages"
local process = require "process"
local unistd = require "posix.unistd"

local client = unistd.getcwd() .. "/clients/python"

-- `tap` runs a program that prints TAP, `with_daemon` a body with a daemon; both are run.lua's.
return function(tap, tally, with_daemon)
  local python = packages.python_client()
  local _, types, trouble = process.run({ python, "-m", "mypy", "src" }, { directory = client, patience_s = 300 })
  tally(types:find "^Success", "ok - clients/python passes mypy --strict: " .. (types .. trouble):gsub("%s+$", ""))
  local function runs(script, socket)
    tap("clients/python: " .. script, { "env", "PYTHONDONTWRITEBYTECODE=1", "TOOLGATE=" .. daemon.binary, python,
                                        client .. "/tests/" .. script .. "_test.py", socket }, 300)
  end
  for _, script in ipairs { "guard", "pydantic_ai", "langchain", "openai_agents", "package" } do
    with_daemon({}, function(gate) runs(script, gate.socket) end)
  end
  for _, script in ipairs { "core", "pages" } do runs(script) end -- they start their own daemons
end
