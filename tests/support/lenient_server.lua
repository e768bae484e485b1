-- A small MCP server whose schemas are stricter than the server is: every tool but one declares the same arguments and appends
-- the arguments of each call to the file $NOTES, one line of JSON each. What it refuses, it refuses by its own words.
local json = require("cjson").new()

local SCHEMA = [[{"type":"object","properties":{
  "query":{"type":"string","description":"What"},
  "limit":{"type":"integer","description":"How many","maximum":100},
  "kind":{"enum":["a","b"],"description":"Which"},
  "rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}},
  "by":{"anyOf":[{"type":"object","properties":{"field":{"type":"string"}},"required":["field"]},{"type":"object"}]},
  "zone":{"type":"string","default":"UTC"},
  "page":{"type":"integer","description":"Optional. Which page"}},
  "required":["query","limit","zone","page"],"additionalProperties":false}]]

-- Of a union the schema lists only some branches, and of an object whose keys are the user's only one.
local BLOCKS = [[{"type":"object","properties":{
  "blocks":{"type":"array","items":{"type":"object","properties":{
    "type":{"enum":["paragraph","quote"]},"paragraph":{"type":"object"},"quote":{"type":"object"}},"additionalProperties":false}},
  "properties":{"type":"object","properties":{"title":{"type":"string"}},"additionalProperties":false}},
  "additionalProperties":false}]]

-- By name: annotations, and what it refuses (nil: nothing).
local TOOLS = {
  find_rows = { hints = "{}" },
  store_rows = { hints = "{}" },
  picky_rows = { hints = "{}", refuses = function(args)
    if not args.limit then return "Error: missing required argument 'limit'" end
  end },
  moody_rows = { hints = "{}", refuses = function(args)
    if args.query == "fail" then return "Error: limit of requests reached" end
  end },
  broken_rows = { hints = "{}", refuses = function() return "the table does not exist" end },
  post_blocks = { hints = "{}", schema = BLOCKS },
  delete_rows = { hints = '{"destructiveHint":true}' },
}

local function say(message)
  message.jsonrpc = "2.0"
  io.write(json.encode(message), "\n")
  io.flush()
end

local function definitions()
  local list = {}
  for name, tool in pairs(TOOLS) do
    list[#list + 1] = { name = name, description = name .. ".", inputSchema = json.decode(tool.schema or SCHEMA),
                        annotations = json.decode(tool.hints) }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local count = 0
local function call(id, params)
  local args = params.arguments or {}
  local why = TOOLS[params.name].refuses and TOOLS[params.name].refuses(args)
  local file = assert(io.open(os.getenv "NOTES", "a"))
  file:write(params.name, " ", json.encode(args), "\n")
  file:close()
  count = count + 1
  say { id = id, result = { content = { { type = "text", text = why or ("rows %d"):format(count) } }, isError = why ~= nil } }
end

for line in io.lines() do
  local message = json.decode(line)
  if message.method == "initialize" then
    say { id = message.id, result = { protocolVersion = message.params.protocolVersion, capabilities = { tools = {} },
                                      serverInfo = { name = "lenient", version = "1" } } }
  elseif message.method == "tools/list" then
    say { id = message.id, result = { tools = definitions() } }
  elseif message.method == "tools/call" then
    call(message.id, message.params)
  elseif message.id then
    say { id = message.id, error = { code = -32601, message = "no such method" } }
  end
end
