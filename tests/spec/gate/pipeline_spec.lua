-- One call of each class: its verdict, isError, and the text that the model reads; then cancelled and hidden ones.

describe("a call", function()
  local client

  before_each(function()
    client = daemon.start { policies = { ["outcome.lua"] = fixtures.outcome, ["echo.lua"] = fixtures.echo,
                                         ["create_task.lua"] = fixtures.create_task } }:connect()
  end)

  -- The table of classes in docs/protocol.md.
  local table_of_classes = {
    { how = "ok",        class = "ok",                verdict = "pass",   error = false },
    { how = "partial",   class = "partial_data",      verdict = "pass",   error = false },
    { how = "garbage",   class = "semantic_garbage",  verdict = "repair", error = true },
    { how = "broken",    class = "schema_mismatch",   verdict = "refuse", error = true },
    { how = "transient", class = "transient",         verdict = "wait",   error = true },
    { how = "failed",    class = "tool_error",        verdict = "repair", error = true },
    { how = "retry",     class = "invalid_arguments", verdict = "repair", error = true },
    { how = "repair",    class = "invalid_arguments", verdict = "repair", error = true },
    { how = "refuse",    class = "forbidden",         verdict = "refuse", error = true },
    { how = "ask",       class = "need_user_input",   verdict = "ask",    error = true },
    { how = "need_user", class = "need_user_input",   verdict = "ask",    error = true },
    { how = "throws",    class = "tool_error",        verdict = "repair", error = true },
    { how = "check_throws", class = "policy_error",   verdict = "refuse", error = true },
  }
  for _, row in ipairs(table_of_classes) do
    it(("that ends as %s is a %s (%s)"):format(row.how, row.verdict, row.class), function()
      local result = client:calls("outcome", { how = row.how })
      local said = verdict(result)
      if row.class ~= "ok" then
        assert.same({ row.class, row.verdict }, { said.error_class, said.verdict })
      elseif said then
        assert.equal("pass", said.verdict)
      end
      assert.equal(row.error, result.isError == true)
      if row.error then assert.is_nil(result.structuredContent) end
      golden.check("feedback", "outcome: " .. row.how, text(result), { ["approve %x+`"] = "approve <id>`" })
    end)
  end

  it("reports the code, the detail and the hint of a refusal", function()
    local said = verdict(client:calls("outcome", { how = "refuse" }))
    assert.equal("not_here", said.code)
    assert.equal("this is not done here", said.detail)
    assert.equal("do something else", said.hint)
  end)

  it("that must wait reports the seconds as a number", function()
    assert.equal(7, verdict(client:calls("outcome", { how = "transient" })).after_s)
  end)

  it("withholds the result if the result hook throws", function()
    local result = client:calls("outcome", { how = "result_throws" })
    assert.is_true(result.isError)
    assert.same({ "policy_error", "result_unchecked" }, { verdict(result).error_class, verdict(result).code })
    golden.check("feedback", "result: its result hook breaks", text(result))
  end)

  it("reports coverage, facts and the exact next call", function()
    local said = verdict(client:calls("outcome", { how = "facts" }))
    assert.equal("SATISFIED", said.coverage)
    assert.same({ colour = "red" }, said.facts)
    assert.same({ tool = "echo", args = { text = "next" } }, said.follow_up)
  end)

  it("may leave out arguments if the tool has none", function()
    local quiet = daemon.start { policies = { ["now.lua"] = [[
-- now: the same moment, always.
return tool "now" { description = "The moment.", schema = json '{"type":"object"}', effects = "read",
                    run = function() return "noon" end }
]] } }:connect()
    assert.is_not_true(quiet:asks("tools/call", { name = "now" }).isError)
  end)

  it("whose result breaks the tool's output schema is a schema_mismatch", function()
    local gate = daemon.start { policies = { ["total.lua"] = [==[
-- total: a sum that is not one.
return tool "total" {
  description = "A total.", schema = json '{"type":"object"}', effects = "read",
  output_schema = json [[{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]}]],
  run = function() return { total = "much" } end,
}
]==] } }
    local result = gate:connect():calls("total", {})
    assert.is_true(result.isError)
    assert.equal("schema_mismatch", verdict(result).error_class)
    assert.equal("schema_violation", verdict(result).code)
    assert.truthy(verdict(result).detail:find("'total'", 1, true))
    local problem = verdict(result).messages[1]
    assert.same({ "result.total", "type", { type = "number" }, "much" },
                { problem.path, problem.code, problem.expected, problem.got })
    assert.truthy(gate:logs("code=schema_violation"):find("at 'total'", 1, true))
    golden.check("feedback", "result: it breaks its output schema", text(result))
    assert.is_nil(result.structuredContent)
  end)

  it("returns structuredContent if the tool declares an output schema", function()
    local total = daemon.start { policies = { ["total.lua"] = [==[
-- total: a sum.
return tool "total" {
  description = "A total.", schema = json '{"type":"object"}', effects = "read",
  output_schema = json [[{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]}]],
  run = function() return { total = 12 } end,
}
]==] } }:connect()
    local result = total:calls("total", {})
    assert.same({ total = 12 }, result.structuredContent)
    assert.truthy(text(result):find('"total":12', 1, true))
  end)

  it("relays the tool's content blocks, and its progress while it runs", function()
    local busy = daemon.start { policies = { ["busy.lua"] = [==[
-- busy: tells how far it is.
return tool "busy" {
  description = "Work.", schema = json '{"type":"object"}', effects = "read",
  run = function(args, call)
    call.progress(1, 2, "half")
    call.progress(2, 2, "done")
    return tool_return { value = "done", content = { { type = "image", data = "aGk=", mimeType = "image/png" } } }
  end,
}
]==] } }:connect()
    busy:say { jsonrpc = "2.0", id = 9, method = "tools/call",
               params = { name = "busy", _meta = { progressToken = "tok" } } }
    local heard = {}
    for i = 1, 2 do
      local notice = busy:hears()
      assert.equal("notifications/progress", notice.method)
      assert.equal("tok", notice.params.progressToken)
      heard[i] = notice.params.progress
    end
    assert.same({ 1, 2 }, heard)
    local answer = busy:hears()
    assert.equal(9, answer.id)
    assert.same({ type = "image", data = "aGk=", mimeType = "image/png" }, answer.result.content[1])
    -- without a progressToken no progress is sent
    assert.is_table(busy:calls("busy", {}).content)
    assert.is_nil(busy.notices)
  end)

  it("sends the tool's log messages to the client, from the requested level", function()
    local chatty = daemon.start { policies = { ["chatty.lua"] = [==[
-- chatty: says what it does.
return tool "chatty" {
  description = "Work.", schema = json '{"type":"object"}', effects = "toggle",
  run = function(args, call)
    call.log("debug", "looking")
    call.log("info", "found")
    call.log("error", "lost")
    for i = 1, 500 do call.log("emergency", ("x"):rep(100000)) end
    return nil
  end,
}
]==] } }:connect()
    local function said(meta)
      chatty.notices = nil
      local result = chatty:calls("chatty", {}, meta)
      local told = {}
      for at, notice in ipairs(chatty.notices or {}) do
        assert.same({ "notifications/message", "chatty" }, { notice.method, notice.params.logger })
        if at <= 3 then told[at] = notice.params.level .. " " .. notice.params.data:sub(1, 5) end
      end
      assert.is_table(result.content)
      return told, #(chatty.notices or {}), chatty.notices and #chatty.notices[#chatty.notices].params.data
    end
    local told, count, longest = said()
    assert.same({ "info found", "error lost", "emergency xxxxx" }, told)
    assert.same({ 100, 4096 }, { count, longest })
    chatty:asks("logging/setLevel", { level = "error" })
    assert.same({ "error lost", "emergency xxxxx", "emergency xxxxx" }, (said()))
    -- the 2026-07-28 protocol: only if the request itself asks
    assert.same({}, (said(client_of.modern())))
    assert.same({ "debug looki", "info found", "error lost" },
                (said(client_of.modern { ["io.modelcontextprotocol/logLevel"] = "debug" })))
  end)

  it("that was cancelled gets no answer, and the next call works", function()
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = 12345 } }
    client:say { jsonrpc = "2.0", method = "notifications/cancelled" }
    assert.is_true(client:hears_only_a_ping())
    -- one write: the daemon reads the call and its cancellation together, and answers at most once
    client.stream:send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",'
      .. '"arguments":{"text":"x"}}}\n{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
    client:say { jsonrpc = "2.0", id = "after", method = "ping" }
    local answers = 0
    while client:hears().id ~= "after" do answers = answers + 1 end
    assert(answers <= 1)
  end)

  it("of a hidden tool is an unknown_tool", function()
    local hidden = daemon.start { policies = {
      ["echo.lua"] = fixtures.echo,
      ["secret.lua"] = (fixtures.echo:gsub('"echo"', '"secret"'):gsub(
        'effects = "read",', 'effects = "read", prepare = function(def, call) return nil end,')),
    } }:connect()
    assert.equal(1, #hidden:asks("tools/list").tools)
    local result = hidden:calls("secret", { text = "x" }, session "s")
    assert.equal("unknown_tool", verdict(result).error_class)
    golden.check("feedback", "unknown tool: the closest one is hidden", text(result))
  end)
end)
