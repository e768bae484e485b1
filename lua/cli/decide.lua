-- What approve and deny share: the answer to a question of a policy.
local ui = require "ui"

return function(method, c)
  c.operands, c.least, c.options = "ID", 1, { socket, json }
  c.exits = [[
  0  it is answered
  1  no such question, its time is over, or it has an answer already
  2  usage, no daemon, no operator]]
  function c.run(o)
    local a = rpc(o, method, { id = o[1] })
    if o.json then return a.ok and 0 or 1 end
    for _, why in ipairs(a.errors or {}) do cli.warn(why) end
    if a.ok then ui.say("%s: %s %s", a.state, a.tool, a.arguments) end
    if a.ok and a.state == "approved" then
      ui.say("It runs once, when the agent makes this call again within %d s.", a.expires_s)
    end
    return a.ok and 0 or 1
  end
  return command(c)
end
