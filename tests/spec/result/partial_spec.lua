-- Partial results: answers that say that more follows, without a policy; and answers that were cut off.

-- A tool that returns the text it is called with.
local function parrot(fields)
  return ([==[
-- say: returns its argument. For specs.
return tool "say" {
  description = "Says it.", effects = "read",
  schema = json [[{"type":"object","required":["text"],"properties":{"text":{"type":"string"},
    "page":{"type":"integer","maximum":3},"cursor":{"type":"string"}}}]],
  run = function(args) return tool_return { content = { { type = "text", text = args.text } } } end,
  %s
}
]==]):format(fields or "")
end

describe("a result that says that more follows", function()
  local client

  local function says(fields, what, more)
    client = client or daemon.start { policies = { ["say.lua"] = parrot(fields) } }:connect()
    local args = more or {}
    args.text = type(what) == "string" and what or json.encode(what)
    return client:calls("say", args, session("s", { turn = 1 }))
  end
  before_each(function() client = nil end)

  it("is partial_data, whole, with the arguments of the next page", function()
    local result = says("", { items = { 1 }, has_more = true }, { page = 1 })
    assert.is_not_true(result.isError)
    local said = verdict(result)
    assert.same({ "pass", "partial_data", "has_more", "NEEDS_MORE_TOOLS" },
                { said.verdict, said.error_class, said.code, said.coverage })
    assert.equal(2, said.next_args.page)
    assert.truthy(said.detail)
    assert.equal('{"has_more":true,"items":[1]}', result.content[1].text)
    golden.check("feedback", "partial: the answer says that more follows", result.content[2].text)
    said = verdict(says("", { items = { 1 }, next_cursor = "c7" }))
    assert.same({ "next_cursor", "c7" }, { said.code, said.next_args.cursor })
  end)

  it("is partial_data if its text says so", function()
    local result = says("", "Showing 1-20 of 53 orders\na\nb")
    assert.same({ "partial_data", "n_of_m" }, { verdict(result).error_class, verdict(result).code })
    golden.check("feedback", "partial: n of m", result.content[2].text)
  end)

  it("has no next_args that the schema refuses", function()
    local said = verdict(says("", { items = { 1 }, has_more = true }, { page = 3 }))
    assert.equal("partial_data", said.error_class)
    assert.is_nil(said.next_args)
  end)

  it("is complete if it says no such thing", function()
    for _, what in ipairs { "Showing 3 of 3 results", "1 of the best", '{"has_more":false,"next_cursor":"x"}',
                            "Step 3 of 5 is done" } do
      assert.equal("ok", (verdict(says("", what)) or { error_class = "ok" }).error_class, what)
    end
  end)

  it("is what the policy's result hook says", function()
    local said = verdict(says("result = function() return ok { coverage = 'SATISFIED' } end,", { has_more = true }))
    assert.same({ "ok", "SATISFIED" }, { said.error_class, said.coverage })
  end)

  it("is not searched with envelopes = false", function()
    assert.equal("ok", verdict(says("envelopes = false,", { has_more = true })).error_class)
  end)
end)

describe("a result that was cut off", function()
  local client

  local CUT = '{"orders":[{"id":"o1","name":"a long enough name of this order","total":12'

  local function serve(fields)
    client = daemon.start { policies = { ["say.lua"] = parrot(fields) } }:connect()
    return client:calls("say", { text = CUT }, session "s")
  end

  it("is a truncated_response with its place, and names no missing field", function()
    local result = serve [==[output_schema = json [[{"type":"object","required":["orders","count"]}]],]==]
    local said = verdict(result)
    assert.is_true(result.isError)
    assert.same({ "schema_mismatch", "truncated_response" }, { said.error_class, said.code })
    assert.truthy(said.detail:find("cut off after " .. #CUT .. " bytes inside orders[0].total", 1, true), said.detail)
    assert.truthy(said.hint)
    assert.is_nil(said.messages)
    golden.check("feedback", "result: it was cut off", text(result))
  end)

  it("is delivered with a note if the tool has no output schema", function()
    local result = serve ""
    assert.is_not_true(result.isError)
    assert.equal(CUT, result.content[1].text)
    assert.same({ "partial_data", "truncated_response" }, { verdict(result).error_class, verdict(result).code })
    golden.check("feedback", "result: it was cut off, and has no output schema", result.content[2].text)
  end)
end)

describe("a result that breaks its output schema", function()
  it("names the field in the verdict's detail", function()
    local client = daemon.start { policies = { ["say.lua"] = parrot [==[output_schema = json [[
      {"type":"object","properties":{"orders":{"type":"array","items":{"type":"object","properties":{
      "total":{"type":"number"}}}}}}]],]==] } }:connect()
    local said = verdict(client:calls("say", { text = '{"orders":[{"total":"much"}]}' }, session "s"))
    assert.equal("schema_violation", said.code)
    assert.truthy(said.detail:find("orders[0].total", 1, true), said.detail)
  end)
end)
