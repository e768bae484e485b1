-- Loaded by busted before the specs (--helper): stops the daemons of each spec, and prints their stderr if it failed;
-- removes the temporary directories at the end.
local busted = require "busted"
local daemon = require "daemon"
local process = require "process"

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

busted.subscribe({ "suite", "end" }, function()
  process.remove_all()
  return nil, true
end)

return true
