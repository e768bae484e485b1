-- search_orders: a customer's orders, a page at a time. Everyone may call it; it only reads.
-- Shows: result. The hook reports a page that is not the last, and an empty page of a longer list.

local PAGE = 3

-- The shop divides into pages first and filters by status afterwards, as many back ends do: a page may be empty
-- although the next one is not.
local orders = {
  { id = "o-101", customer_id = "cust-7", status = "placed",    total = "19.90" },
  { id = "o-102", customer_id = "cust-7", status = "placed",    total = "5.00" },
  { id = "o-103", customer_id = "cust-7", status = "shipped",   total = "42.50" },
  { id = "o-104", customer_id = "cust-7", status = "delivered", total = "12.00" },
  { id = "o-105", customer_id = "cust-7", status = "delivered", total = "88.10" },
  { id = "o-201", customer_id = "cust-8", status = "shipped",   total = "7.25" },
}

local function of_customer(id)
  local found = {}
  for _, order in ipairs(orders) do
    if order.customer_id == id then found[#found + 1] = order end
  end
  return found
end

return tool "search_orders" {
  title       = "Orders",
  description = "Read a customer's orders, oldest first, three to a page.",
  use_when    = "you need a customer's orders, or the status of an order",
  effects     = "read",
  gives_ids   = { "orders[].id" },

  schema = json [[{
    "type": "object",
    "properties": {
      "customer_id": { "type": "string", "description": "the customer's number, e.g. \"cust-7\"" },
      "page":        { "type": "integer", "minimum": 1, "description": "1 by default" },
      "status":      { "type": "string", "enum": ["placed", "shipped", "delivered"],
                       "description": "only orders in this state" }
    },
    "required": ["customer_id"],
    "additionalProperties": false
  }]],

  output_schema = json [[{
    "type": "object",
    "properties": {
      "orders":   { "type": "array", "items": { "type": "object", "required": ["id", "status", "total"] } },
      "page":     { "type": "integer" },
      "has_more": { "type": "boolean" }
    },
    "required": ["orders", "page", "has_more"]
  }]],

  rules = {
    always : defaults { page = 1 },
  },

  run = function(args)
    local all, found, last = of_customer(args.customer_id), {}, args.page * PAGE
    for at = last - PAGE + 1, math.min(last, #all) do
      if not args.status or all[at].status == args.status then found[#found + 1] = all[at] end
    end
    return { orders = found, page = args.page, has_more = #all > last }
  end,

  result = function(result)
    local next_page = result.page + 1
    if result.has_more and #result.orders == 0 then
      return garbage("empty_first_page",
                     "page " .. result.page .. " is empty, but more pages follow: the shop filters after paging",
                     "Ask for page " .. next_page .. " with the same status, or leave 'status' out.")
    end
    if result.has_more then
      return partial("more_pages", "page " .. result.page .. " is not the last", { page = next_page })
    end
    return ok { coverage = "SATISFIED", facts = { orders = #result.orders } }
  end,

  examples = {
    { "everything on one page",
      args = { customer_id = "cust-8" }, gives = "pass", becomes = { customer_id = "cust-8", page = 1 } },
    { "a page number sent as a string",
      args = { customer_id = "cust-7", page = "2" }, gives = "pass", becomes = { customer_id = "cust-7", page = 2 } },
    { "a misspelled status",
      args = { customer_id = "cust-7", status = "shipping" }, gives = "repair", says = "did you mean 'shipped'?" },
    { "a misspelled field",
      args = { custommer_id = "cust-7" }, gives = "repair", says = "did you mean 'customer_id'?" },
    { "more pages follow: the result names the next call",
      args = { customer_id = "cust-7" }, gives = "partial_data more_pages", says = '"page":2' },
    { "an empty first page of a longer list",
      args = { customer_id = "cust-7", status = "delivered" },
      gives = "semantic_garbage empty_first_page", says = "ask for page 2" },
    { "a broken back end is reported as such",
      args = { customer_id = "cust-7" }, result = { orders = "none" },
      gives = "refuse schema_mismatch" },
  },
}
