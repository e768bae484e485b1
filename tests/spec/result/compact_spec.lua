-- Compaction of results that are too large for a model: what is kept, and the note about the rest.

local function events(fields)
  return ([==[
-- events: many events. For specs.
return tool "events" {
  description = "Events.", effects = "read", gives_ids = { "events[].id" },
  schema = params { n = int "How many", how = optional(str "How it ends"), id = optional(str "One of them"),
                    limit = optional(int "At most") },
  run = function(args)
    local events = {}
    for i = 1, args.n do
      events[i] = { id = "e" .. i, title = "Event " .. i, at = ("2026-05-%%02d"):format(i %% 28 + 1),
                    body = ("words "):rep(50), raw = ("x"):rep(100) }
    end
    if args.how == "failed" then return failed("lost", ("long words "):rep(1000)) end
    return { events = events }
  end,
  result = function(result, call)
    if call.args.how == "partial" then return partial("more_pages", "more follow", { limit = 5 }) end
    if call.args.how == "garbage" then return garbage("odd", "it is odd") end
  end,
  %s
}
]==]):format(fields)
end

describe("a result that is too large", function()
  local client

  local function serve(fields, config)
    client = daemon.start { policies = { ["events.lua"] = events(fields) }, config = config }:connect()
  end

  local function calls(arguments, meta)
    return client:calls("events", arguments, meta or session("s", { turn = 1 }))
  end

  it("keeps its ids and titles, and notes what was removed and how to get it", function()
    serve "compact = { max_bytes = 3000 },"
    local result = calls { n = 40 }
    local shown = json.decode(result.content[1].text)
    assert(#result.content[1].text <= 3000)
    assert.equal(40, #shown.events)
    for i, event in ipairs(shown.events) do assert.equal("e" .. i, event.id) end
    local note = result.content[2].text
    golden.check("feedback", "compaction: a list cut down to ids, titles and times", note)
    assert(verdict(result).compacted.from_bytes > verdict(result).compacted.to_bytes)
  end)

  it("is unchanged if neither the policy nor the configuration sets a limit", function()
    serve ""
    local result = calls { n = 40 }
    assert.equal(50 * 6, #json.decode(result.content[1].text).events[40].body)
    assert.is_nil(result.content[2])
  end)

  it("is compacted by the configuration's default unless the policy disables it", function()
    local config = "return { defaults = { compact = { max_tokens = 1000 } } }"
    serve("", config)
    assert.truthy(verdict(calls { n = 40 }).compacted)
    serve("compact = false,", config)
    assert.is_nil((verdict(calls { n = 40 }) or {}).compacted)
  end)

  it("still matches its output schema", function()
    serve [==[compact = { max_bytes = 2000, drop = { "events[].raw" } },
      output_schema = json [[{"type":"object","required":["events"],"properties":{"events":{"type":"array","items":
        {"type":"object","required":["id","body"],"properties":{"raw":{"type":"string"}}}}}}]],]==]
    local result = calls { n = 40 }
    local shown = result.structuredContent
    assert(#shown.events > 0 and #shown.events < 40)
    for _, event in ipairs(shown.events) do assert.equal(300, #event.body) end
    assert.same(shown, json.decode(result.content[1].text))
    golden.check("feedback", "compaction: items left out to match the output schema", result.content[2].text)
  end)

  it("takes no more of the answer than its budget, with escapes and both of its forms", function()
    for _, unit in ipairs { [['"']], [["\27[0m"]], [["\n"]], [["é"]], [['{"a": 1} ']] } do
      for _, form in ipairs { "value", "text" } do
        client = daemon.start { policies = { ["rows.lua"] = ([==[
-- rows: rows with text that is longer as JSON. For specs.
return tool "rows" { description = "Rows.", effects = "read", schema = params {}, compact = { max_bytes = 5000 }, %s
  run = function()
    local rows, body = {}, (%s):rep(40)
    for i = 1, 300 do rows[i] = %s end
    return %s
  end }
]==]):format(form == "value" and 'output_schema = json [[{"type":"object"}]],' or "", unit,
        form == "value" and "{ id = i, body = body }" or "i .. body",
        form == "value" and "{ rows = rows }" or 'table.concat(rows, "\\n")') } }:connect()
        local result = client:calls("rows", {}, session "s")
        assert.equal(form == "value", result.structuredContent ~= nil)
        local wire = #json.encode(result.content[1].text) + #json.encode(result.structuredContent or "")
        assert(wire <= 5000, form .. " " .. unit .. ": " .. wire)
        assert(wire >= 2500, form .. " " .. unit .. ": " .. wire)
        assert.truthy(verdict(result).compacted.to_bytes <= 5000)
      end
    end
  end)

  it("keeps the item that the call names, and items that match the goal", function()
    serve "compact = { max_bytes = 3000 },"
    for _, event in ipairs(json.decode(calls({ n = 40, id = "e17" }).content[1].text).events) do
      assert.equal(event.id == "e17", event.body ~= nil and event.id == "e17")
    end
  end)

  it("still records all its ids in the session", function()
    client = daemon.start { policies = { ["events.lua"] = events "compact = { max_bytes = 400 },", ["read.lua"] = [==[
-- read: one event. For specs.
return tool "read" { description = "One event.", schema = params { id = str "Which" }, ids = { id = seen() },
  run = function(args) return { id = args.id } end }
]==] } }:connect()
    assert.is_nil(calls({ n = 40 }).content[1].text:find('"e7"', 1, true))
    assert.is_not_true(client:calls("read", { id = "e7" }, session("s", { turn = 1, goal = "read them" })).isError)
  end)

  it("and partial reports both the compaction and the next page", function()
    serve "compact = { max_bytes = 3000 },"
    local said = text({ content = { calls({ n = 40, how = "partial" }).content[2] } })
    golden.check("feedback", "compaction: of a partial result", said)
  end)

  it("is never compacted if it reports an error", function()
    serve "compact = { max_bytes = 300 },"
    local failed = calls { n = 1, how = "failed" }
    assert.is_true(failed.isError)
    assert.is_nil(verdict(failed).compacted)
    local garbage = calls { n = 8, how = "garbage" }
    assert.is_true(garbage.isError)
    assert.is_nil(verdict(garbage).compacted)
    for i = 1, 8 do assert.truthy(text(garbage):find('"id":"e' .. i .. '"', 1, true), text(garbage)) end
    local invalid = client:calls("events", { n = "many", how = { a = 1 } }, session "s")
    assert.is_nil(verdict(invalid).compacted)
    assert.equal(2, #verdict(invalid).messages)
  end)

  it("is compacted in the answer to an agent's report", function()
    client = daemon.start { policies = { ["log.lua"] = [==[
-- log: lines of a log. Run by the agent.
return tool "log" { description = "A log.", effects = "read", schema = params { n = int "Which" },
  compact = { max_bytes = 1000 } }
]==] } }:connect()
    local meta, lines = session("s", { turn = 1, goal = "why did the printer fail?" }), {}
    for i = 1, 200 do lines[i] = i == 120 and "printer on fire" or "all is well " .. i end
    local checked = client:checks("log", { n = 1 }, meta)
    local said = client:asks("toolgate/report", { callId = checked.callId, name = "log", arguments = { n = 1 },
      result = { content = { { type = "text", text = table.concat(lines, "\n") } } }, _meta = meta })
    assert(#said.content[1].text <= 1000)
    assert(said.content[1].text:find("printer on fire", 1, true), said.content[1].text)
    golden.check("feedback", "compaction: of a text, its advice", said.advice)
  end)

  it("is not compacted in shadow mode", function()
    serve "compact = { max_bytes = 300 }, mode = 'shadow',"
    assert.equal(40, #json.decode(calls({ n = 40 }).content[1].text).events)
  end)

  it("for one message is compacted, or refused as result_too_large", function()
    local function prints(fields)
      client = daemon.start { policies = { ["log.lua"] = ([==[
-- log: more than a message may hold. For specs.
return tool "log" { description = "A log.", effects = "read", schema = params {}, %s
  exec = { "sh", "-c", "yes 2026-05-01T10:00:00 a line of a log that goes on and on and on and on | head -c 10000000",
           max_output = 16777216, timeout = "20s" } }
]==]):format(fields) } }:connect()
      return client:calls("log", {}, session "s")
    end
    local result = prints "compact = { max_bytes = 3000 },"
    assert.is_not_true(result.isError, text(result))
    assert(#result.content[1].text <= 3000)
    assert.equal("result_too_large", verdict(prints "").code)
  end)
end)
