-- redact: no client, log or session shows the fields that a policy names.
local daemon = require "daemon"
local client_of = require "client"

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
    gate = daemon.start { policies = { ["get_customer.lua"] = CUSTOMER, ["get_account.lua"] = BROKEN } }
    client = gate:connect()
  end)
  after_each(daemon.stop_all)

  local function hides(text)
    for _, secret in ipairs { "ana@", "DE02", "4111", "vip", "secret" } do
      assert.is_nil(text:find(secret, 1, true), text)
    end
  end

  it("replaces strings and numbers by path and by name, and keeps the rest", function()
    local text = client_of.text(client:calls("get_customer", { how = "plain" }))
    hides(text)
    assert.same({ customer = { name = "Ana", email = "[redacted]" }, email = "shop@example.com",
                  bank = { { iban = "[redacted]" } }, cards = { { number = client_of.json.null, kind = "debit" } },
                  tags = { "[redacted]" }, id = "plain" }, client_of.json.decode(text))
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

  it("does nothing in shadow mode", function()
    gate:write_policy("get_customer.lua", (CUSTOMER:gsub("effects", 'mode = "shadow", effects', 1)))
    gate:reload()
    assert.truthy(client_of.text(client:calls("get_customer", { how = "plain" })):find("ana@example.com", 1, true))
  end)
end)
