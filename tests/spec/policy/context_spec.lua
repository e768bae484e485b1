-- call.context: what the agent's program says of a request in _meta["dev.toolgate/context"], for every hook.
local cjson = require "cjson"

local KEY = "dev.toolgate/context"

local gateway = [==[
-- gateway: a guest sees the tools that the context names. For specs.
return gateway {
  prepare_tools = function(defs, call)
    local allowed = call.context and call.context.tools
    if not allowed then return defs end
    local shown = {}
    for _, def in ipairs(defs) do
      for _, name in ipairs(allowed) do
        if def.name == name then shown[#shown + 1] = def end
      end
    end
    return shown
  end,
}
]==]

local notes = [==[
-- notes: writes a note; guests write short ones only. For specs.
return tool "notes" {
  description = "Write a note.",
  schema = params { text = str "The note", seen_role = optional(str "Filled in") },
  rules = {
    when { text = is("long for this role", function(text, args, call)
      return call.context ~= nil and call.context.role == "guest" and #text > 5
    end) } : refuses("too_long", "guests write up to 5 letters"),
  },
  prepare = function(def, call)
    if call.context and call.context.role == "banned" then return nil end
    if call.context then def.description = "For a " .. call.context.role end
    return def
  end,
  normalise = function(args, call) args.seen_role = call.context and call.context.role end,
  check = function(args, call)
    if call.context then call.context.role = "changed" end -- a copy: no other hook sees it
    if call.context and call.context.quota == 0 then return refuse("no_quota", "nothing left") end
  end,
  run = function(args, call) return { role = call.context and call.context.role, noted = args.seen_role } end,
  result = function(result, call)
    if call.context and call.context.strict then return garbage("strict", "the context says so", "stop") end
  end,
  examples = {
    { "a guest is brief", args = { text = "a long note" }, context = { role = "guest" }, gives = "refuse too_long" },
    { "an owner is not", args = { text = "a long note" }, context = { role = "owner" }, gives = "pass",
      becomes = { text = "a long note", seen_role = "owner" } },
  },
}
]==]

local mine = { name = "mine", description = "Run by the agent.",
               inputSchema = { type = "object", properties = { n = { type = "integer" } } } }
local other = { name = "other", description = "Run by the agent, too.", inputSchema = mine.inputSchema }

local mine_policy = [==[
-- mine: a policy for a tool that an agent registers.
return tool "mine" {
  prepare = function(def, call)
    if call.context and call.context.hide then return nil end
    return def
  end,
  check = function(args, call)
    if call.context and call.context.role == "guest" then return refuse("guests_out", "not for guests") end
  end,
  result = function(result, call)
    if call.context and call.context.strict then return garbage("strict", "the context says so", "stop") end
  end,
}
]==]

local function context(of, more)
  local meta = session("s", more)
  meta[KEY] = of
  return meta
end

describe("call.context", function()
  local gate, client
  before_each(function()
    gate, client = daemon.open { policies = { ["notes.lua"] = notes, ["gateway.lua"] = gateway, ["mine.lua"] = mine_policy },
                                 config = "return { log = { level = 'debug' } }" }
  end)

  local function shown(method, meta)
    local names, words = {}, {}
    for _, def in ipairs(client:asks(method, { _meta = meta }).tools) do
      names[#names + 1], words[def.name] = def.name, def.description
    end
    return names, words
  end

  it("is nil without one", function()
    local result = client:calls("notes", { text = "hello there" }, session "s")
    assert.equal('{}', result.content[1].text)
  end)

  it("reaches rules, normalise, check, run and result", function()
    local result = client:calls("notes", { text = "hi" }, context { role = "guest" })
    assert.same({ role = "guest", noted = "guest" }, cjson.decode(result.content[1].text))
    assert.equal("too_long", verdict(client:calls("notes", { text = "hello there" }, context { role = "guest" })).code)
    assert.equal("no_quota", verdict(client:calls("notes", { text = "ab" }, context { role = "x", quota = 0 })).code)
    assert.equal("strict", verdict(client:calls("notes", { text = "cd" }, context { role = "x", strict = true })).code)
  end)

  it("decides what is listed and what can be called, each request with its own", function()
    local _, words = shown("tools/list", context { role = "guest" })
    assert.equal("For a guest", words.notes)
    assert.same({}, (shown("tools/list", context { role = "banned" })))
    assert.equal("unknown_tool", verdict(client:calls("notes", { text = "a" }, context { role = "banned" })).error_class)
    assert.equal("pass", verdict(client:calls("notes", { text = "a" }, context { role = "owner" })).verdict)
    assert.equal("unknown_tool",
                 verdict(client:calls("notes", { text = "a" }, context { role = "x", tools = {} })).error_class)
  end)

  it("reaches the hooks of a registered tool, in check and report", function()
    client:asks("toolgate/register", { tools = { mine } })
    local function check(of)
      return client:asks("toolgate/check", { name = "mine", arguments = { n = 1 }, _meta = context(of) })
    end
    assert.equal("guests_out", check { role = "guest" }.code)
    local checked = check { role = "owner" }
    assert.equal("pass", checked.verdict)
    assert.equal("strict", client:asks("toolgate/report", { callId = checked.callId, result = { ok = true },
                                                            _meta = context { strict = true } }).code)
    assert.equal("unknown_tool", check { role = "owner", hide = true }.error_class)
  end)

  it("lets prepare_tools choose among registered tools, too, in the list and in a check", function()
    client:asks("toolgate/register", { tools = { mine, other } })
    local only = { tools = { "mine", "notes" }, role = "owner" }
    assert.same({ "mine", "notes" }, (shown("toolgate/tools", context(only))))
    assert.same({ "mine", "notes", "other" }, (shown("toolgate/tools", context { role = "owner" })))
    local n = 0
    local function class_of(name, of)
      n = n + 1
      return client:asks("toolgate/check", { name = name, arguments = { n = n }, _meta = context(of) }).error_class
    end
    assert.equal("unknown_tool", class_of("other", only))
    assert.equal("ok", class_of("mine", only))
    assert.equal("ok", class_of("other", { role = "owner" }))
    client:asks("toolgate/register", { tools = { { name = "third", inputSchema = mine.inputSchema } } })
    assert.equal("ok", class_of("third", { role = "owner" }))
    assert.equal("unknown_tool", class_of("third", only))
    assert.equal("ok", class_of("other", { role = "owner" }))
  end)

  it("does not make a call another one", function()
    local said
    for i = 1, 4 do
      said = verdict(client:calls("notes", { text = "same", seen_role = "x" }, context { role = "owner", n = i }))
    end
    assert.equal("loop", said.error_class)
  end)

  it("must be an object of a bounded size", function()
    local why = client:ask("tools/list", { _meta = context "guest" }).error.message
    assert.matches("dev%.toolgate/context: expected an object, got \"guest\"", why)
    local size = client:ask("tools/call", { name = "notes", arguments = { text = "a" },
                                                 _meta = context { text = ("x"):rep(16384) } }).error.message
    assert.matches("dev%.toolgate/context: expected at most 16384 bytes of JSON, got 16395", size)
  end)

  it("is in no log", function()
    client:calls("notes", { text = "hi" }, context { role = "s3cret-role", quota = 0 })
    client:ask("tools/list", { _meta = context "s3cret-role" })
    assert.is_nil(gate:log():find("s3cret", 1, true))
  end)
end)

describe("the context of an example", function()
  it("must be a table with names", function()
    local folder = process.directory()
    process.write(folder .. "/notes.lua", (notes:gsub('{ role = "guest" }', '{ "guest" }', 1)))
    local code, _, err = process.run { daemon.binary, "test", folder }
    process.remove(folder)
    assert.not_equal(0, code)
    assert.matches("context.*expected a table with names", err)
  end)
end)

describe("toolgate check --context", function()
  local folder
  before_each(function()
    folder = process.directory()
    process.write(folder .. "/notes.lua", notes)
  end)

  local function check(said)
    return process.run { daemon.binary, "check", "notes", '{"text":"a long note"}', "--policies", folder,
                         "--context", said }
  end

  it("is seen by the policy", function()
    assert.equal(0, (check '{"role":"owner"}'))
    local code, out = check '{"role":"guest"}'
    assert.equal(1, code)
    assert.matches("too_long", out)
  end)

  it("must be an object", function()
    for _, wrong in ipairs { '"guest"', "{role" } do
      local code, _, err = check(wrong)
      assert.equal(2, code)
      assert.matches("%-%-context: expected", err)
    end
  end)
end)
