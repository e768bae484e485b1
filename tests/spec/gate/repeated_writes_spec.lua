-- Identical writes whose results hold a fresh id each time: refused from the third on, whether the tool's effects are
-- annotated, follow from its name, or are unknown; reads go on.

-- Every tool returns the next id.
local SERVER = [[
local json = require("cjson").new()
local ids = 0
local function tool(name, hints)
  return { name = name, description = name .. ".", annotations = json.decode(hints),
           inputSchema = { type = "object", properties = { title = { type = "string" } } } }
end
local TOOLS = { tool("create_note", "{}"), tool("note_down", '{"readOnlyHint":false,"destructiveHint":false}'),
                tool("jot", "{}"), tool("list_notes", "{}") }
for line in io.lines() do
  local message, result = json.decode(line), nil
  if message.method == "initialize" then
    result = { protocolVersion = message.params.protocolVersion, capabilities = { tools = {} },
               serverInfo = { name = "notes", version = "1" } }
  elseif message.method == "tools/list" then
    result = { tools = TOOLS }
  elseif message.method == "tools/call" then
    ids = ids + 1
    result = { content = { { type = "text", text = json.encode { id = ("note-%%d"):format(4711 + ids), created = true } } } }
  end
  if message.id then io.write(json.encode { jsonrpc = "2.0", id = message.id, result = result }, "\n") io.flush() end
end
]]

describe("an identical write that returns a fresh id each time", function()
  local client

  before_each(function()
    local server = process.write(process.directory() .. "/notes.lua", (SERVER:gsub("%%%%", "%%")))
    local gate = daemon.start { config = ('return { upstreams = { notes = { command = "luajit", args = { %q } } } }')
                                         :format(server) }
    client = gate:connect()
    process.eventually("the tools are listed", function() return #client:asks("tools/list").tools == 4 end)
  end)

  local function verdicts(name, meta)
    local out = {}
    for i = 1, 6 do
      local v = verdict(client:calls(name, { title = "milk" }, meta(i)))
      out[i] = v.verdict .. (v.code and " " .. v.code or "")
    end
    return out
  end

  local PLACES = {
    ["in one turn"] = function() return session("s", { turn = 1 }) end,
    ["without turns"] = function() return session "s" end,
  }
  for where, place in pairs(PLACES) do
    for name, what in pairs { create_note = "known by its name", note_down = "annotated", jot = "unknown" } do
      it(("of a tool whose effects are %s is refused from the third on, %s"):format(what, where), function()
        local got = verdicts(name, place)
        assert.same({ "pass", "pass" }, { got[1], got[2] })
        for i = 3, 4 do assert.equal("refuse", got[i]:match "%a+", table.concat(got, ", ")) end
        for i = 5, 6 do assert.equal("halt loop", got[i], table.concat(got, ", ")) end
      end)
    end

    it("is let run if the tool reads, " .. where, function()
      for _, word in ipairs(verdicts("list_notes", place)) do assert.equal("pass", word) end
    end)
  end
end)
