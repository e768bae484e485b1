-- Words of agents and servers reach logs and terminals without a character that either would obey or hide.
local cjson = require "cjson"

-- ESC, CSI, LINE SEPARATOR, RLO, LRI, tag A, ZWSP, BOM.
local HIDDEN = { "\27", "\194\155", "\226\128\168", "\226\128\174", "\226\129\166", "\243\160\129\129", "\226\128\139",
                 "\239\187\191" }
local WORDS = "a" .. table.concat(HIDDEN) .. "[2Jb"

local function is_plain(text)
  for _, character in ipairs(HIDDEN) do assert.is_nil(text:find(character, 1, true), text) end
end

describe("words of others", function()
  local gate

  local function start(config)
    gate = daemon.start { config = config, policies = { ["open.lua"] = [==[
-- open: fails with what it is given. For specs.
return tool "open" {
  description = "Opens.", effects = "read", schema = params { what = str "What." },
  run = function() return 1 end, check = function(args) error("cannot open " .. args.what) end,
}
]==] } }
    return gate:connect()
  end

  local function prints(...)
    local _, out, err = process.run { daemon.binary, ... }
    is_plain(out .. err)
    return out .. err
  end

  for format, config in pairs { text = 'return { log = { level = "debug" } }',
                                json = 'return { log = { level = "debug", format = "json" } }' } do
    it("are escaped in the log as " .. format, function()
      local client = start(config)
      client:calls(WORDS, {}, session(WORDS))
      client:calls("open", { what = WORDS }, session "s")
      gate:logs "policy_error"
      is_plain(gate:log())
      assert.truthy(gate:log():find("\\u202e", 1, true), gate:log())
    end)
  end

  it("in a server's list are one line a tool", function()
    local offer = process.directory() .. "/offer.json"
    process.write(offer, cjson.encode { { name = "a\nb", description = "One\nTwo",
                                          inputSchema = { type = "object" } } })
    gate = daemon.start { config = fixtures.serving("shop", "offering", { OFFER = offer }) }
    local client = gate:connect()
    process.eventually("the tool is listed", function() return #client:asks("tools/list").tools == 1 end)
    local printed = prints("tools", "--socket", gate.socket)
    assert.equal(1, select(2, printed:gsub("\n", "\n")), printed)
  end)

  it("in a file's schema are escaped where a provider's API would not take them", function()
    local file = process.directory() .. "/tools.json"
    local schema = { type = "object", properties = { at = { type = "string", format = WORDS, [WORDS] = 1 } } }
    process.write(file, cjson.encode { { name = "find", description = "Finds.", inputSchema = schema } })
    local printed = prints("tools", "--format", "gemini", "--tools", file)
    assert.truthy(printed:find("the format 'a\\x1b", 1, true), printed)
  end)

  it("are escaped on a terminal, and by escapes of JSON in --json", function()
    local client = start()
    client:calls("open", { what = WORDS }, session(WORDS))
    client:calls(WORDS, {}, session(WORDS))
    assert.truthy(prints("status", "--all", "--socket", gate.socket):find("\\u{202e}", 1, true))
    prints("sessions", "--socket", gate.socket)
    prints("session", WORDS, "--socket", gate.socket)
    prints("check", "open", cjson.encode { what = WORDS }, "--socket", gate.socket)
    prints("check", WORDS, "{}", "--socket", gate.socket)
    local last = cjson.decode(prints("status", "--json", "--socket", gate.socket)).policy_faults[1].last
    assert.truthy(last:find(WORDS:sub(1, 4), 1, true), last)
  end)
end)
