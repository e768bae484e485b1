-- toolgate tools --format: what a provider answers with 400 for the whole list is written as it takes it, or left out, and told.
local trajectories = require "trajectories"

local TYPES = { string = true, number = true, integer = true, boolean = true, array = true, object = true, null = true }
local GEMINI = {}
for word in ([[$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf
              oneOf properties additionalProperties required]]):gmatch "%S+" do GEMINI[word] = true end
local SCHEMA = {
  openai = function(item) return item["function"].name, item["function"].parameters end,
  mistral = function(item) return item["function"].name, item["function"].parameters end,
  anthropic = function(item) return item.name, item.input_schema end,
  gemini = function(item) return item.name, item.parametersJsonSchema end,
  bedrock = function(item) return item.toolSpec.name, item.toolSpec.inputSchema.json end,
}
local PROVIDERS = { "openai", "anthropic", "gemini", "mistral", "bedrock" }

-- What is wrong with a schema of a list, by each provider's rules; written anew, so that it does not repeat a slip.
local function faults(who, s, found, top)
  if type(s) ~= "table" then return found end
  local function fault(words) found[#found + 1] = words end
  local claude = who == "anthropic" or who == "bedrock"
  for _, key in ipairs(top and (claude or who == "openai") and { "anyOf", "oneOf", "allOf" } or {}) do
    if s[key] then fault(key .. " at the top") end
  end
  if top and who == "openai" and (s.enum or s["not"]) then fault "enum or not at the top" end
  for _, name in ipairs(type(s.type) == "table" and s.type or { s.type }) do
    if not TYPES[name] then fault("type " .. tostring(name)) end
  end
  if type(s.exclusiveMinimum) == "boolean" or type(s.exclusiveMaximum) == "boolean" then fault "a boolean bound" end
  if (who == "openai" or who == "gemini") and type(s.enum) == "table" and #s.enum == 0 then fault "an empty enum" end
  if (who == "openai" or who == "gemini") and s.type == "array" and not s.items and not s.prefixItems then fault "no items" end
  if type(s.items) == "table" and s.items[1] then fault "a list of items" end
  if who == "openai" and type(s.pattern) == "string" and s.pattern:find "%(%?<?[=!]" then fault "a lookaround" end
  if type(s["$ref"]) == "string" and (claude or not s["$ref"]:find "^#/[$d]") then fault(s["$ref"]) end
  if who == "gemini" then
    for key in pairs(s) do
      if not GEMINI[key] then fault(key) end
      if s["$ref"] and key:sub(1, 1) ~= "$" then fault(key .. " beside $ref") end
    end
    for _, name in ipairs(type(s.required) == "table" and s.required or {}) do
      if not (s.properties or {})[name] then fault("required " .. name) end
    end
    for _, one in ipairs(type(s.enum) == "table" and s.enum or {}) do
      if type(one) ~= "string" and type(one) ~= "number" then fault "a value that is no string or number" end
    end
  end
  for _, named in ipairs { "properties", "$defs", "definitions" } do
    for name, one in pairs(type(s[named]) == "table" and s[named] or {}) do
      if who == "gemini" and type(one) == "boolean" then fault "a boolean schema" end
      if claude and named == "properties" and not (name:find "^[%w_.-]+$" and #name <= 64) then fault("named " .. name) end
      faults(who, one, found)
    end
  end
  for _, one in ipairs { "items", "additionalProperties", "not" } do faults(who, s[one], found) end
  for _, list in ipairs { "anyOf", "oneOf", "allOf", "prefixItems" } do
    for _, one in ipairs(type(s[list]) == "table" and s[list] or {}) do faults(who, one, found) end
  end
  return found
end

local empty -- a folder of policies

local function written(path, format, ...)
  local out, err = process.runs { daemon.binary, "tools", "--policies", empty, "--tools", path, "--format", format, ... }
  local schemas = {}
  for _, item in ipairs(json.decode(out)) do
    local name, schema = SCHEMA[format](item)
    schemas[name] = schema
  end
  return schemas, err, out
end

describe("a provider's format", function()
  local directory
  before_each(function()
    directory = process.directory()
    empty = directory .. "/policies"
    process.run { "mkdir", empty }
  end)

  local function write(tools)
    local list = {}
    for name, schema in pairs(tools) do
      list[#list + 1] = ('{"name":"%s","description":"d","inputSchema":%s}'):format(name, schema)
    end
    return process.write(directory .. "/tools.json", "[" .. table.concat(list, ",") .. "]")
  end

  local function with(q, more) return ('{"type":"object","properties":{"q":%s}%s}'):format(q, more or "") end

  local ODD = {
    any = with '{"type":"any"}', types = with '{"type":["string","date"]}',
    draft4 = with '{"minimum":0,"exclusiveMinimum":true}',
    maximum = with '{"exclusiveMaximum":true}', bare = with '{"type":["array","null"]}',
    deep = with '{"anyOf":[{"type":"array"}]}',
    tuple = with '{"type":"array","items":[{"type":"string"},{"type":"number"}]}', none = with '{"enum":[]}',
    mixed = with '{"enum":["a",true,null]}',
    zz = with('{"type":"string"}', ',"required":["q","zz"]'),
    pointer = with('{"type":"string"}', ',"additionalProperties":{"$ref":"#/properties/q"}'),
    named = with('{"$ref":"#/$defs/d","description":"x"}', ',"$defs":{"d":{"type":"array"}}'),
    old = with('{"$ref":"#/definitions/d"}', ',"definitions":{"d":{"type":"string","pattern":"^(?=a)"}}'),
    tree = with('{"$ref":"#/$defs/n"}', ',"$defs":{"n":{"type":"object","properties":{"c":{"$ref":"#/$defs/n"}}}}'),
    either = with('{"type":"string"}', ',"anyOf":[{"required":["q"]},{"not":{"required":["q"]}}]'),
    ifs = with('{"type":"string"}', ',"if":{"required":["q"]},"then":{"required":["q"]}'),
    all = with '{"allOf":[{"type":"object","properties":{"a":{"const":1}}},{"properties":{"b":{"const":[1]}}}]}',
    odata = '{"type":"object","properties":{"$filter":{"type":"string"},"q":{"type":"string"}}}',
    look = with '{"type":"string","pattern":"^(?<!x)a"}', off = with '{"type":"object","properties":{"no":false,"yes":true}}',
    email = with '{"type":"string","format":"email"}', big = with '{"type":"integer","maximum":18446744073709551615}',
  }

  for _, who in ipairs(PROVIDERS) do
    it(who .. ": odd schemas are written so that it takes them, and each change is told by the tool's name", function()
      local tools = { sound = with('{"type":"string","minLength":1,"title":"Q"}', ',"required":["q"]') }
      for name, schema in pairs(ODD) do tools[name] = schema end
      local schemas, told = written(write(tools), who)
      for name, schema in pairs(ODD) do
        assert.truthy(schemas[name], name .. " is left out")
        assert.same({}, faults(who, schemas[name], {}, true), name)
        if #faults(who, json.decode(schema), {}, true) > 0 then
          assert.truthy(("\n" .. told):find("\n" .. name .. ": ", 1, true), name .. " is not in: " .. told)
        end
      end
      assert.same({ "q" }, schemas.sound.required)
      if who ~= "gemini" then assert.is_nil(("\n" .. told):find("\nsound: ", 1, true), told) end
    end)
  end

  it("leaves out, with a word, a tool that would lose a parameter", function()
    local path = write { union = '{"type":"object","oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}', sound = with "{}",
                         odata = '{"type":"object","properties":{"$filter":{"type":"string"}},"required":["$filter"]}' }
    local both = { "union", "odata" }
    for who, gone in pairs { openai = { "union" }, anthropic = both, bedrock = both, gemini = {} } do
      local schemas, told = written(path, who)
      assert.truthy(schemas.sound)
      for _, name in ipairs(gone) do
        assert.is_nil(schemas[name], who)
        assert.truthy(told:find(name .. ": ", 1, true), told)
      end
    end
  end)

  it("merges all schemas of allOf where a provider knows no allOf, those of references too", function()
    local defs = '"$defs":{"base":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},'
      .. '"node":{"type":"object","properties":{"child":{"allOf":[{"$ref":"#/$defs/node"},{"properties":{"n":{}}}]}}}}'
    local more = '{"properties":{"b":{"type":"string"}},"required":["b"]}'
    local schemas = written(write {
      two = '{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},' .. more .. "]}",
      beside = '{"type":"object","allOf":[' .. more .. '],"properties":{"a":{"type":"string"}},"required":["a"]}',
      named = '{"type":"object","allOf":[{"$ref":"#/$defs/base"},' .. more .. "]," .. defs .. "}",
      tree = with('{"$ref":"#/$defs/node"}', "," .. defs),
    }, "gemini")
    for _, name in ipairs { "two", "beside", "named" } do
      local s = schemas[name]
      table.sort(s.required)
      assert.same({ type = "string" }, s.properties.a, name)
      assert.same({ type = "string" }, s.properties.b, name)
      assert.same({ "a", "b" }, s.required, name)
    end
    assert.truthy(schemas.tree["$defs"].node.properties.child.properties.n)
  end)

  it("merges hundreds of schemas of allOf, each name once and in its order", function()
    local parts, names = {}, { "all" }
    for i = 1, 300 do
      names[i + 1] = "p" .. i
      parts[i] = ('{"properties":{"p%d":{"type":"string"},"all":{"type":"string"}},"required":["all","p%d"]}'):format(i, i)
    end
    local many = written(write { many = '{"type":"object","allOf":[' .. table.concat(parts, ",") .. "]}" }, "gemini").many
    assert.same(names, many.required)
    for _, name in ipairs(names) do assert.same({ type = "string" }, many.properties[name]) end
  end)

  describe("with a hostile schema", function()
    local function repeated(count, format)
      local list = {}
      for i = 1, count do list[i] = format:format(i) end
      return table.concat(list, ",")
    end

    it("writes the other tools, and says that what references make of that one is too large", function()
      local client = daemon.start({ policies = {} }):connect()
      local tools = { { name = "sound", inputSchema = json.decode(with '{"type":"string"}') } }
      for i = 1, 8 do
        tools[i + 1] = { name = "t" .. i, inputSchema = json.decode(with('{"type":"string"}', (',"$defs":{"A":{"enum":["%s"]}},'
          .. '"patternProperties":{%s}'):format(("e"):rep(100000), repeated(200, '"^p%d":{"$ref":"#/$defs/A"}')))) }
      end
      client:asks("toolgate/register", { tools = tools })
      local said, names = client:asks("toolgate/tools", { format = "anthropic" }), {}
      for _, tool in ipairs(said.tools) do names[tool.name] = true end
      assert.same({ sound = true }, names)
      assert.equal(8, #said.warnings)
      for _, warning in ipairs(said.warnings) do assert.matches("too large once its", warning.text) end
    end)

    it("counts what replaced references cost, for all tools of a list together", function()
      local client, tools = daemon.start({ policies = {} }):connect(), {}
      local defs = { '"d9":{"type":"string"}' }
      for i = 0, 8 do
        defs[#defs + 1] = ('"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}')
                            :format(i, i + 1, i + 1)
      end
      local schema = json.decode(with('{"$ref":"#/$defs/d0"}', ',"$defs":{' .. table.concat(defs, ",") .. "}"))
      for i = 1, 60 do tools[i] = { name = "t" .. i, inputSchema = schema } end
      tools[61] = { name = "z", inputSchema = json.decode(with '{"type":"string"}') }
      client:asks("toolgate/register", { tools = tools })
      for _ = 1, 2 do -- the next list has as much
        local said, names, left_out = client:asks("toolgate/tools", { format = "anthropic" }), {}, 0
        for _, tool in ipairs(said.tools) do names[tool.name] = true end
        for _, warning in ipairs(said.warnings) do
          left_out = left_out + (warning.text:find "the list is too large" and 1 or 0)
        end
        assert.truthy(names.z and #said.tools > 10 and #said.tools < 61, #said.tools)
        assert.equal(61 - #said.tools, left_out)
      end
    end)

    it("leaves out what does not fit one line, rather than all", function()
      local client = daemon.start({ policies = {} }):connect()
      local tools = {}
      for i = 1, 60 do
        tools[i] = { name = "t" .. i, inputSchema = json.decode(with('{"type":"string"}', (',"$defs":{"A":{"enum":["%s"]}},'
          .. '"patternProperties":{%s}'):format(("e"):rep(10000), repeated(20, '"^p%d":{"$ref":"#/$defs/A"}')))) }
      end
      client:asks("toolgate/register", { tools = tools })
      local said = client:asks("toolgate/tools", { format = "anthropic" })
      assert.truthy(#said.tools > 10 and #said.tools < 60, #said.tools)
      local left_out = 0
      for _, warning in ipairs(said.warnings) do
        left_out = left_out + (warning.text == "left out: the list is too long with it" and 1 or 0)
      end
      assert.equal(60 - #said.tools, left_out)
    end)

    it("says of many changes how many there are, and of long names the beginning", function()
      local name = ("n"):rep(99) .. ("ü"):rep(20000)
      local inner = with(('{"type":"object","properties":{%s}}'):format(repeated(500, '"p%d":{"x-own":1}')))
      local _, told = written(write { t = inner:gsub('"q"', '"' .. name .. '"') }, "gemini")
      assert.matches("and 468 more changes", told)
      assert.truthy(#told < 20000, #told)
      assert.truthy(told:find(("n"):rep(99) .. "ü/p1:", 1, true), told)
    end)
  end)

  it("keeps the order of members and numbers as they were written", function()
    local schema = '{"type":"object","properties":{"z":{"type":"number","minimum":0.1,"maximum":18446744073709551615},"a":'
      .. '{"type":"string","enum":["b","a"]},"m":{"type":"integer","default":-3}},"required":["z","a"]}'
    local _, told, out = written(write { t = schema }, "openai")
    assert.truthy(out:find(schema, 1, true), out)
    assert.equal("", told)
  end)

  describe("a long list", function()
    after_each(daemon.stop_all)

    local function with_tools(gate)
      local client, tools = gate:connect(), {}
      for i = 1, 500 do tools[i] = { name = "t" .. i, inputSchema = { type = "object" } } end
      client:asks("toolgate/register", { tools = tools })
      return client
    end
    local function list(id)
      return { jsonrpc = "2.0", id = id or "list", method = "toolgate/tools", params = { format = "openai" } }
    end
    local PING = { jsonrpc = "2.0", id = "ping", method = "ping" }

    it("is written in turns: other requests are answered before it, and it is complete", function()
      local gate = daemon.start { policies = {} }
      local client = with_tools(gate)
      for i = 1, 3 do client:say(list(i)) end
      client:say(PING)
      assert.equal("ping", client:hears().id)
      for i = 1, 3 do assert.equal(500, #client:answer(i).result.tools) end
    end)

    it("is of the tools at its beginning, also if they are replaced and reloaded meanwhile", function()
      local client = with_tools(daemon.start { policies = {} })
      client:say(list())
      client:say { jsonrpc = "2.0", id = "new", method = "toolgate/register", params = { tools = { { name = "new" } } } }
      client:say { jsonrpc = "2.0", id = "reload", method = "toolgate/reload" }
      local message
      repeat message = client:hears() until message.id == "list"
      assert.equal(500, #message.result.tools)
    end)

    it("follows one that is cancelled just before its turn", function()
      local gate = daemon.start { policies = {} }
      local client, others = with_tools(gate), {}
      for i = 1, 4 do others[i] = with_tools(gate) end
      for n = 1, 8 do
        for _, other in ipairs(others) do other:say(list("other" .. n)) end
        for i = 1, 3 do client:say(list(n .. "-" .. i)) end
        client:answer(n .. "-1")
        client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = n .. "-2" } }
        local message
        repeat message = client:hears() until message.id == n .. "-3"
        for _, other in ipairs(others) do other:answer("other" .. n) end
      end
    end)

    it("has as much for its references as it would have alone", function()
      local gate, clients, leaf, refs, tools = daemon.start { policies = {} }, {}, {}, {}, {}
      for i = 1, 60 do leaf["p" .. i], refs["r" .. i] = { type = "string" }, { ["$ref"] = "#/$defs/leaf" } end
      for i = 1, 8 do
        tools[i] = { name = "t" .. i, inputSchema = { type = "object", properties = refs, ["$defs"] = {
          leaf = { type = "object", properties = leaf } } } }
      end
      for i = 1, 3 do
        clients[i] = gate:connect()
        clients[i]:asks("toolgate/register", { tools = tools })
      end
      for _, client in ipairs(clients) do
        client:say { jsonrpc = "2.0", id = "list", method = "toolgate/tools", params = { format = "anthropic" } }
      end
      for _, client in ipairs(clients) do
        assert.equal(8, #client:answer("list").result.tools)
      end
    end)

    it("waits for a large tool that is written in part, whether that is ended, cancelled, or its client leaves", function()
      local gate, clients, one_of = daemon.start { policies = {} }, {}, {}
      for i = 1, 3000 do one_of[i] = { type = "object", properties = { k = { const = i } } } end
      local large = { name = "large", inputSchema = { type = "object", properties = { l = { anyOf = one_of } } } }
      for i = 1, 5 do
        clients[i] = gate:connect()
        clients[i]:asks("toolgate/register", { tools = { large, { name = "small", inputSchema = { type = "object" } } } })
      end
      for _, client in ipairs(clients) do
        client:say(list())
        client:say(list "second")
      end
      clients[1]:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "list" } }
      clients[2]:close()
      clients[3]:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "second" } }
      local message
      repeat message = clients[1]:hears() until message.id == "second"
      assert.equal(2, #message.result.tools)
      for i = 3, 5 do assert.equal(3000, select(2, json.encode(clients[i]:answer("list").result.tools):gsub('"const"', ""))) end
      for i = 4, 5 do assert.equal(2, #clients[i]:answer("second").result.tools) end
      clients[1]:hears_only_a_ping()
    end)

    it("ends with its client, or when it is cancelled", function()
      local gate = daemon.start { policies = {} }
      local gone, client = with_tools(gate), with_tools(gate)
      gone:say(list())
      gone:say(list())
      gone:close()
      client:say(list())
      client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = "list" } }
      client:hears_only_a_ping()
      assert.equal(500, #client:asks("toolgate/tools", { format = "gemini" }).tools)
    end)
  end)

  it("of a daemon is the same, and its changes are told likewise", function()
    local gate = daemon.start { arguments = { "--tools", write { bare = ODD.bare } } }
    local code, out, err = process.run { daemon.binary, "tools", "--socket", gate.socket, "--format", "gemini" }
    daemon.stop_all()
    assert.equal(0, code, err)
    assert.truthy(out:find('"items":{}', 1, true), out)
    assert.truthy(err:find("bare: #/q: a list without 'items'", 1, true), err)
  end)

  it("takes every definition that was recorded from real servers", function()
    local count = 0
    for path in io.popen("ls " .. trajectories.folder .. "/tools-*.json 2>/dev/null"):lines() do
      for _, who in ipairs(PROVIDERS) do
        local schemas = written(path, who)
        for name, schema in pairs(schemas) do
          assert.same({}, faults(who, schema, {}, true), name)
          count = count + 1
        end
      end
    end
    if count == 0 then return pending("no " .. trajectories.folder) end
    assert.truthy(count >= 5 * 1000, count)
  end)

  it("names the source of each provider's rules and when it was read", function()
    local text = process.read(daemon.root .. "/lua/provider_formats.lua")
    for _, who in ipairs(PROVIDERS) do
      local entry = text:match("\n  " .. who .. " = {(.-)\n  },")
      assert.matches('source = "https://', entry)
      assert.matches('read = "20%d%d%-%d%d%-%d%d', entry)
    end
  end)
end)
