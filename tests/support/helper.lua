-- Loaded by busted before the specs (--helper): stops what each test started, and prints the daemons' stderr if it failed;
-- removes the temporary directories at the end. The words that every spec uses are global (.luacheckrc lists them).
local busted = require "busted"
local client = require "client"
local daemon = require "daemon"
local process = require "process"

_G.client_of, _G.daemon, _G.process = client, daemon, process
_G.golden, _G.fixtures = require "golden", require "fixtures"
for _, word in ipairs { "json", "modern", "problems", "session", "text", "verdict" } do _G[word] = client[word] end

busted.subscribe({ "test", "start" }, function()
  daemon.last_words = {}
  return nil, true
end)

-- Those who ask stop before those who answer. A daemon that ends in another way than it should fails the test.
local STARTERS = { "tmux", "bridge", "fleet", "daemon", "redis_proxy", "stunnel", "redis", "http_server" }
busted.after_each(function()
  local trouble
  for _, name in ipairs(STARTERS) do
    if package.loaded[name] then
      local ok, why = pcall(package.loaded[name].stop_all)
      trouble = trouble or not ok and why
    end
  end
  if trouble then error(trouble, 0) end
end)

busted.subscribe({ "test", "end" }, function(element, _, status)
  if status == "failure" or status == "error" then
    for _, words in ipairs(daemon.last_words) do
      io.stderr:write(("\n--- stderr of the daemon in '%s':\n%s---\n"):format(element.name, words:sub(-4000)))
    end
  end
  return nil, true
end)

busted.subscribe({ "suite", "end" }, function()
  process.remove_all()
  return nil, true
end)

return true
