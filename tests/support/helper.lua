-- Loaded by busted before the specs (--helper): stops the daemons of each spec, and prints their stderr if it failed.
local busted = require "busted"
local daemon = require "daemon"

busted.subscribe({ "test", "start" }, function()
  daemon.last_words = {}
  return nil, true
end)

busted.subscribe({ "test", "end" }, function(element, _, status)
  pcall(daemon.stop_all)
  if status == "failure" or status == "error" then
    for _, words in ipairs(daemon.last_words) do
      io.stderr:write(("\n--- stderr of the daemon in '%s':\n%s---\n"):format(element.name, words:sub(-4000)))
    end
  end
  return nil, true
end)

return true
