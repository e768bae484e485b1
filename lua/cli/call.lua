-- toolgate call: one tools/call through the daemon; prints what the model reads.
local ui = require "ui"
local params = require "call_params"

-- MCP content blocks: text as it is, anything else in brackets.
local function print_content(content)
  for _, block in ipairs(ui.is_array(content) and content or {}) do
    block = ui.table(block)
    local kind, mime = ui.text(block.type), ui.text(block.mimeType)
    io.write(kind == "text" and ui.text(block.text) or "[" .. kind .. (mime ~= "" and ", " .. mime or "") .. "]", "\n")
  end
end

return command {
  name = "call", operands = "TOOL [JSON]", least = 1, most = 2, summary = "call a tool through the daemon",
  about = [[
Sends one tools/call and prints what the model reads: the result, or the feedback of a call that
did not pass. JSON is the object of arguments; - reads it from stdin.]],
  exits = [[
  0  the tool ran and its result passed
  1  the call did not pass: the feedback is on stdout
  2  usage, arguments that are not JSON, no daemon]],
  example = [[
  toolgate call search_orders '{"customer_id": "cust-7"}' --session me]],
  options = {
    socket, text { name = "session", argument = "ID", words = "the session of the call" }, params.turn, params.goal,
    params.said, flag { name = "json", letter = "j", words = "print the whole result as JSON" },
  },

  run = function(o)
    local arguments, context = params.arguments(o[2]), params.context(o.context)
    local request = params.request(o, arguments, context)
    local a
    if o.json then
      a = rpc(o, "tools/call", request)
    else
      a = cli.rpc(o.socket, "tools/call", request, cli.is_terminal and "shown" or "exact") -- a file gets the bytes as sent
      print_content(a.content)
    end
    return a.isError == true and 1 or 0
  end,
}
