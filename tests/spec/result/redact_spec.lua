-- redact: no client, log or session shows the fields that a policy names.

local CUSTOMER = [[
-- get_customer: a customer. Read only.
return tool "get_customer" {
  description = "Read a customer.", effects = "read",
  redact = { "customer.email", "iban", "cards[].number", "tags[]" },
  schema = params { how = str },
  run = function(args)
    local customer = { customer = { name = "Ana", email = "ana@example.com" }, email = "shop@example.com",
                       bank = { { iban = "DE02" } }, cards = { { number = 4111, kind = "debit" } }, tags = { "vip" },
                       id = args.how }
    if args.how == "blocks" then
      return tool_return { value = customer,
                           content = { { type = "text", text = '{"iban":"DE02","n":18446744073709551616}' },
                                       { type = "text", text = "no JSON" } } }
    end
    return customer
  end,
  result = function(result)
    if result.id == "garbage" then return garbage("odd", "mail " .. tostring(result.customer.email), "look again") end
    return ok { facts = { mail = result.customer.email } }
  end,
}
]]

local BROKEN = [[
-- get_account: an account. Read only.
return tool "get_account" {
  effects = "read", redact = { "pin" }, schema = params {},
  output_schema = json '{"type":"object","properties":{"pin":{"type":"string","maxLength":4}}}',
  run = function() return { pin = "secret-1234" } end,
}
]]

describe("redact", function()
  local gate, client

  before_each(function()
    gate, client = daemon.open { policies = { ["get_customer.lua"] = CUSTOMER, ["get_account.lua"] = BROKEN } }
  end)

  local function hides(text)
    for _, secret in ipairs { "ana@", "DE02", "4111", "vip", "secret" } do
      assert.is_nil(text:find(secret, 1, true), text)
    end
  end

  it("replaces strings and numbers by path and by name, and keeps the rest", function()
    local result = client:calls("get_customer", { how = "plain" })
    hides(client_of.text(result))
    assert.same({ customer = { name = "Ana", email = "[redacted]" }, email = "shop@example.com",
                  bank = { { iban = "[redacted]" } }, cards = { { number = 0, kind = "debit" } },
                  tags = { "[redacted]" }, id = "plain" }, client_of.json.decode(result.content[1].text))
    golden.check("feedback", "redact: a number is masked", result.content[2].text)
  end)

  it("covers each text block that is JSON", function()
    local text = client_of.text(client:calls("get_customer", { how = "blocks" }))
    hides(text)
    assert.truthy(text:find('{"iban":"[redacted]","n":18446744073709551616}\nno JSON', 1, true), text)
  end)

  it("covers facts and quoted text", function()
    local meta = client_of.session("s", { turn = 1 })
    client:calls("get_customer", { how = "plain" }, meta)
    hides(client_of.json.encode((client:asks("toolgate/session", { session = "s" }))))
    local text = client_of.text(client:calls("get_customer", { how = "garbage" }, meta))
    assert.truthy(text:find("mail [redacted]", 1, true), text)
    hides(text)
  end)

  it("covers a result that breaks its schema", function()
    local result = client:calls("get_account", {})
    assert.is_true(result.isError)
    hides(client_of.json.encode(result))
  end)

  -- A tool whose value, text and error are the call's, behind an output schema.
  local function echo(fields, schema)
    gate:write_policy("echo.lua", ([[
-- echo: returns what it is given. For specs.
return tool "echo" {
  effects = "read", redact = { %s },
  schema = json '{"type":"object","properties":{"value":{"type":"object"},"text":{"type":"string"}}}',
  %s
  run = function(args)
    if not args.text then return args.value end
    return tool_return { value = args.value, content = { { type = "text", text = args.text } } }
  end,
}
]]):format(fields, schema and ("output_schema = json [==[" .. schema .. "]==],") or ""))
    gate:reload()
  end

  it("keeps the type of what it masks, so that the output schema still holds", function()
    echo('"rows", "owner", "open", "level"', [[{"type":"object","required":["rows"],"properties":{
      "rows":{"type":"array","items":{"type":"string"}},"owner":{"type":"object"},"open":{"type":"boolean"},
      "level":{"type":"integer"}}}]])
    local result = client:calls("echo", { value = { rows = { "alpha-1" }, owner = { name = "Ana" }, open = true,
                                                    level = 7 } })
    assert.is_not_true(result.isError, client_of.text(result))
    assert.same({ rows = {}, owner = {}, open = false, level = 0 }, result.structuredContent)
    for _, part in ipairs { '"rows":[]', '"owner":{}', '"open":false', '"level":0' } do
      assert.truthy(result.content[1].text:find(part, 1, true), result.content[1].text)
    end
  end)

  it("masks with a sample where the output schema wants more than the type, and leaves an optional field out", function()
    echo('"tier", "phones", "when", "odd"', [[{"type":"object","required":["tier","phones"],"properties":{
      "tier":{"enum":["gold","silver"]},"phones":{"$ref":"#/$defs/phones"},"when":{"type":"string","format":"date"},
      "odd":{"type":"string","not":{"const":"[redacted]"},"pattern":"^(?=a)a.*z$"}},
      "$defs":{"phones":{"type":"array","minItems":1,"items":{"type":"string","minLength":3}}}}]])
    local result = client:calls("echo", { value = { tier = "silver", phones = { "0171-555" }, when = "2026-01-31",
                                                    odd = "a-hidden-z" } })
    assert.is_not_true(result.isError, client_of.text(result))
    local shown = result.structuredContent
    assert.equal("gold", shown.tier)
    assert.equal(1, #shown.phones)
    assert.truthy(shown.when:match("^%d%d%d%d%-%d%d%-%d%d$"), shown.when)
    assert.is_nil(shown.odd)
    local said = client_of.json.encode(result)
    for _, secret in ipairs { "0171", "2026-01-31", "a-hidden-z" } do assert.is_nil(said:find(secret, 1, true), said) end
  end)

  it("withholds a result that cannot be masked so that its output schema holds", function()
    echo('"odd"', [[{"type":"object","required":["odd"],"properties":{
      "odd":{"type":"string","pattern":"^(?=a)a.*z$"}}}]])
    local result = client:calls("echo", { value = { odd = "a-hidden-z" } })
    assert.is_true(result.isError)
    assert.same({ "schema_mismatch", "redaction_unfit" },
                { client_of.verdict(result).error_class, client_of.verdict(result).code })
    assert.is_nil(client_of.json.encode(result):find("a-hidden-z", 1, true))
  end)

  it("withholds a result with more values than it looks for, and says to ask for less", function()
    echo('"rows[].mail"')
    local rows = {}
    for i = 1, 4097 do rows[i] = { mail = ("customer-%d@example.com"):format(i) } end
    local result = client:calls("echo", { value = { rows = rows } })
    assert.same({ "schema_mismatch", "redaction_too_complex" },
                { client_of.verdict(result).error_class, client_of.verdict(result).code })
    golden.check("feedback", "redact: more values than are looked for", client_of.text(result))
    rows[4097] = nil
    local said = client_of.text(client:calls("echo", { value = { rows = rows } }))
    assert.is_nil(said:find("@example.com", 1, true))
    assert.truthy(said:find('{"mail":"[redacted]"}', 1, true), said:sub(1, 200))
  end)

  local function masked(fields, value, text)
    echo(fields)
    local said = client_of.json.encode(client:calls("echo", { value = value, text = text }))
    for _, secret in ipairs { "ana@", "DE02" } do assert.is_nil(said:lower():find(secret:lower(), 1, true), said) end
    return said
  end

  it("masks every copy: in prose, in other fields, in keys, in any case, in JSON inside a string", function()
    local value = { email = "ana@example.com", note = "mail to Ana@Example.com today", by = { ["ana@example.com"] = 1 },
                    raw = '{"email":"ana@example.com","n":1}' }
    local said = masked('"email"', value, "Found ana@example.com (verified).")
    assert.truthy(said:find("Found [redacted] (verified).", 1, true), said)
    assert.is_nil(masked('"email"', value):find("example.com", 1, true))
  end)

  it("masks named values in text that is no JSON, or JSON that breaks off", function()
    masked('"bank.iban"', { a = 1 }, "name: Ana\niban: DE02 1203\ncity: Rome")
    masked('"iban"', { a = 1 }, '[{"iban":"DE02 1203","n":1},{"iban":"DE0')
    masked('"iban"', { a = 1 }, '```json\n{"iban": "DE02 1203"}\n```')
    masked('"iban"', { a = 1 }, '{"iban": "DE02 1203"}\n{"iban": "DE02 9"}')
    masked('"iban", "iban_old"', { a = 1 }, "iban_old: DE02 1203, iban=DE02 9")
  end)

  it("leaves words that only contain a masked value, and short ones", function()
    echo('"code"')
    local said = client_of.text(client:calls("echo", { value = { code = "cat" }, text = "cat concatenates" }))
    assert.truthy(said:find("cat concatenates", 1, true), said)
    said = client_of.text(client:calls("echo", { value = { code = "late" }, text = "late chocolate" }))
    assert.truthy(said:find("[redacted] chocolate", 1, true), said)
  end)

  it("covers errors that an agent reports, and results with isError", function()
    gate:write_policy("find.lua", [[
-- find: run by the agent. For specs.
return tool "find" { description = "Finds.", redact = { "email" }, schema = params {} }
]])
    gate:reload()
    local function reports(what)
      what.callId = client:checks("find", {}, client_of.session "s").callId
      return client_of.json.encode((client:asks("toolgate/report", what)))
    end
    hides(reports { error = { message = '{"error":"taken","email":"ana@example.com"}' } })
    hides(reports { error = { message = "taken (email=ana@example.com)" } })
    hides(reports { result = { isError = true, content = { { type = "text", text = "email: ana@example.com is taken" } } } })
    hides(reports { result = { content = { { type = "resource", resource = { uri = "db://ana@example.com",
      text = '{"email":"ana@example.com"}' } }, { type = "text", text = "ana@example.com" } },
      _meta = { email = "ana@example.com" } } })
  end)

  local function tests(redact, result)
    gate:write_policy("find.lua", ([[
-- find: finds. For specs.
return tool "find" {
  description = "Finds.", redact = { %s }, schema = params {},
  examples = { { "finds", args = {}, result = %s, gives = "pass" } },
}
]]):format(redact, result))
  end

  it("is an error of the examples if no result of theirs has the field", function()
    tests('"email", "emial"', '{ email = "ana@example.com" }')
    gate:reload()
    local said = gate:logs("generation_error")
    assert.truthy(said:find("'emial'", 1, true), said)
    assert.truthy(said:find("correct the path", 1, true), said)
  end)

  it("is shown by examples in the whole answer, text blocks too", function()
    gate:write_policy("find.lua", [[
-- find: finds. For specs.
return tool "find" {
  description = "Finds.", redact = { "email" }, schema = params {},
  examples = {
    { "masks both", args = {}, gives = "pass",
      result = { content = { { type = "text", text = "mail ana@example.com" } },
                 structuredContent = { email = "ana@example.com" } },
      shows = { content = { { type = "text", text = "mail [redacted]" } },
                structuredContent = { email = "[redacted]" } } } },
}
]])
    gate:reload()
    gate:logs("reload_done")
    gate:write_policy("find.lua", [[
-- find: finds. For specs.
return tool "find" {
  description = "Finds.", redact = { "email" }, schema = params {},
  examples = {
    { "masks both", args = {}, gives = "pass",
      result = { content = { { type = "text", text = "mail ana@example.com" } },
                 structuredContent = { email = "ana@example.com" } },
      shows = { content = { { type = "text", text = "mail ana@example.com" } } } } },
}
]])
    gate:reload()
    assert.truthy(gate:logs("generation_error"):find("shows", 1, true))
  end)

  it("does nothing in shadow mode", function()
    gate:write_policy("get_customer.lua", (CUSTOMER:gsub("effects", 'mode = "shadow", effects', 1)))
    gate:reload()
    assert.truthy(client_of.text(client:calls("get_customer", { how = "plain" })):find("ana@example.com", 1, true))
  end)
end)
