-- A FastMCP server (orders.py) over streamable HTTP. The test starts it, not the daemon.
return function(talk)
  local url, server = talk.beside { talk.python, talk.servers .. "/orders.py", "0" }
  local port = url:match ":(%d+)/"
  talk.serve { upstreams = { orders = { url = url } } }
  local model = talk.model()

  local listed = model:lists()
  talk.check("its tools are listed", listed.find_order and listed.cancel_order and listed.count_stock, listed)
  local reads = model:calls("find_order", { order_id = 7 })
  model:hears("an order is read", reads, "shipped")
  talk.check("with its structured content", reads.result.structuredContent.cents == 1250, reads)

  local line = model.line
  line.notices = {}
  model:hears("shelves are counted", model:calls("count_stock", { shelves = 3 }, { progressToken = 7 }), "3 shelves")
  local shelves = {} -- another upstream's list may be announced in between
  for _, notice in ipairs(line.notices) do
    if notice.method == "notifications/progress" then shelves[#shelves + 1] = notice.params end
  end
  talk.check("and each shelf is relayed as progress", #shelves == 3 and shelves[3].message == "shelf 3"
    and shelves[3].progressToken == 7, line.notices)

  model:is_refused("all problems are reported at once", model:calls("cancel_order", { order_id = "seven", raeson = "late" }),
    "'order_id': expected integer", "'raeson'", "did you mean 'reason'")
  model:reads_failure("a missing order is the server's error",
    model:calls("find_order", { order_id = 9 }), "there is no order 9; the orders are 7 and 8")
  model:reads_failure("an exception in the tool is the server's error",
    model:calls("divide", { cents = 100, people = 0 }), "division by zero")

  talk.is_killed_in_a_call(talk.model(), "cancel_order", { order_id = 8, reason = "too late" }, {
    pid = server.pid, unsure = true,
    again = function() talk.beside { talk.python, talk.servers .. "/orders.py", port } end,
  })
end
