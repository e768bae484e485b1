-- What a client sends, and what the tool hears after the repairs of values: docs/policy.md, `coerce`.

-- A tool that answers with the arguments it heard.
local function listener(schema, fields)
  return ([==[
-- hears: says which arguments it was run with.
return tool "hears" {
  description = "Repeats what it hears.", effects = "read", %s
  schema = json [=[%s]=], output_schema = json '{"type":"object"}',
  run = function(args) return { heard = args } end,
}
]==]):format(fields or "", schema)
end

local function hears(schema, args, fields)
  local client = daemon.start { policies = { ["hears.lua"] = listener(schema, fields) } }:connect()
  local result = client:calls("hears", args)
  if result.isError then return nil, verdict(result) end
  return result.structuredContent.heard, verdict(result)
end

local FILES = [[{"type":"object","required":["file_path"],"properties":{
  "file_path":{"type":"string"}, "limit":{"type":"integer"}, "deep":{"type":"boolean"},
  "tags":{"type":"array","items":{"type":"string"}},
  "days":{"type":"array","items":{"type":"string","format":"date"}},
  "edits":{"type":"array","items":{"type":"object","properties":{"old_text":{"type":"string"}}}},
  "rows":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
  "headers":{"type":"object","properties":{"limit":{}},"additionalProperties":{"type":"string"}}}}]]

describe("a repair", function()
  local repaired = {
    { "renames a required field",               { filePath = "a" }, { file_path = "a" } },
    { "renames an optional field, whose value would be lost otherwise",
      { file_path = "a", Limit = 5 }, { file_path = "a", limit = 5 } },
    { "renames at every depth",
      { file_path = "a", edits = { { oldText = "x" } } }, { file_path = "a", edits = { { old_text = "x" } } } },
    { "renames and converts", { file_paths = "a", Limits = "5" }, { file_path = "a", limit = 5 } },
    { "reads yes as true",    { file_path = "a", deep = "yes" }, { file_path = "a", deep = true } },
    { "reads 1 as true",      { file_path = "a", deep = 1 }, { file_path = "a", deep = true } },
    { "takes a number as text", { file_path = 42 }, { file_path = "42" } },
    { "takes a text out of a list of one", { file_path = { "a" } }, { file_path = "a" } },
    { "leaves out an optional None", { file_path = "a", limit = "None" }, { file_path = "a" } },
    { "leaves out an optional blank", { file_path = "a", limit = "" }, { file_path = "a" } },
    { "splits a text whose parts are all dates",
      { file_path = "a", days = "2026-05-03, 2026-05-04" },
      { file_path = "a", days = { "2026-05-03", "2026-05-04" } } },
  }
  for _, row in ipairs(repaired) do
    it(row[1] .. ", and reports it", function()
      local heard, said = hears(FILES, row[2])
      assert.same(row[3], heard)
      assert.is_true(#said.rewrites > 0)
    end)
  end

  it("lists the changes below a long name as one, since each path would have the name", function()
    local digits, name = {}, ("n"):rep(4000)
    for i = 1, 300 do digits[i] = tostring(i) end
    local schema = [[{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}}]]
    local client = daemon.start { policies = { ["hears.lua"] = listener(schema) } }:connect()
    local result = client:calls("hears", { [name] = digits })
    local rewrites = verdict(result).rewrites
    assert.equal(300, result.structuredContent.heard[name][300])
    assert.equal(1, #rewrites)
    assert.equal("", rewrites[1].path)
    assert.equal("Note: the arguments were read otherwise in many places.", result.content[#result.content].text)
  end)

  local refused = {
    { "two spellings of one name",          { filePath = "a", FilePath = "a" }, nil },
    { "a text that may be a list",          { file_path = "a", tags = "a, b" }, "list" },
    { "a list that may be one list or two", { file_path = "a", rows = { 1, 2 } }, "list" },
    { "a required value of another type",   { file_path = { "a", "b" } }, nil },
    { "a list that was cut off",            { file_path = "a", tags = '["a", "b' }, nil },
  }
  for _, row in ipairs(refused) do
    it("never guesses: " .. row[1], function()
      local heard, said = hears(FILES, row[2])
      assert.is_nil(heard)
      assert.equal("repair", said.verdict)
      assert.equal("invalid_arguments", said.error_class)
      if row[3] then
        local codes = {}
        for _, problem in ipairs(said.messages) do codes[problem.code] = true end
        assert.is_true(codes[row[3]] ~= nil)
      end
    end)
  end

  it("leaves the keys of a map alone", function()
    local heard, said = hears(FILES, { file_path = "a", headers = { Limit = "5" } })
    assert.same({ file_path = "a", headers = { Limit = "5" } }, heard)
    assert.is_nil(said and said.rewrites)
  end)

  it("renames nothing if the policy says so", function()
    local heard = hears(FILES, { file_path = "a", Limit = 5 }, "coerce = { names = false },")
    assert.same({ file_path = "a", Limit = 5 }, heard)
  end)

  it("converts no words if the policy says so", function()
    local _, said = hears(FILES, { file_path = "a", deep = "yes" }, "coerce = { words = false },")
    assert.equal("repair", said.verdict)
  end)

  it("replaces no name in a call that stays invalid, so that the answer lists it", function()
    local _, said = hears(FILES, { filePath = "a", limit = "five" })
    local paths = {}
    for _, problem in ipairs(said.messages) do paths[problem.path] = problem.code end
    assert.equal("type", paths["args.limit"])
    assert.truthy(paths["args.file_path"] or paths["args.filePath"])
  end)
end)

local MEETING = [[{"type":"object","properties":{"at":{"type":"string","format":"date-time"},
  "slots":{"type":"array","items":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]}},
  "note":{"anyOf":[{"type":"string","format":"date-time"},{"type":"string"}]}}}]]

describe("a date-time without its time zone", function()
  it("passes as it is, with a warning", function()
    local heard, said = hears(MEETING, { at = "2026-05-03T10:00:00" })
    assert.same({ at = "2026-05-03T10:00:00" }, heard)
    assert.is_nil(said.rewrites)
    assert.equal("format", said.messages[1].code)
    assert.equal("warning", said.messages[1].severity)
    assert.equal("args.at", said.messages[1].path)
  end)

  it("gets the zone of the policy, in summer and in winter, at any depth", function()
    local heard = hears(MEETING,
      { at = "2026-05-03T10:00:00.5", slots = { "2026-01-03T10:00:00", "2026-05-03T10:00:00Z" },
        note = "2026-05-03T10:00:00" },
      'timezone = "Europe/Berlin",')
    assert.same({ at = "2026-05-03T10:00:00.5+02:00",
                  slots = { "2026-01-03T10:00:00+01:00", "2026-05-03T10:00:00Z" },
                  note = "2026-05-03T10:00:00" }, heard)
  end)

  it("is refused if the zone's clocks skip it or show it twice", function()
    for _, at in ipairs { "2026-03-29T02:30:00", "2026-10-25T02:30:00" } do
      local heard, said = hears(MEETING, { at = at }, 'timezone = "Europe/Berlin",')
      assert.is_nil(heard)
      assert.equal("repair", said.verdict)
      assert.equal("format", said.messages[1].code)
      assert.equal("error", said.messages[1].severity)
    end
  end)

  it("is refused under formats = strict", function()
    local heard, said = hears(MEETING, { at = "2026-05-03T10:00:00" }, 'formats = "strict",')
    assert.is_nil(heard)
    assert.equal("format", said.messages[1].code)
    assert.truthy(said.messages[1].message:find "time zone")
  end)

  it("is refused if it is no date-time", function()
    for _, at in ipairs { "2026-05-03", "2026-02-30T10:00:00", "2026-05-03T25:00:00", "10:00 on Monday", "soon" } do
      assert.is_nil((hears(MEETING, { at = at }, 'timezone = "Europe/Berlin",')))
    end
  end)

  it("must be in the schema for a time zone to have an effect, or a warning says so", function()
    local started = daemon.start { policies = { ["hears.lua"] = listener(FILES, 'timezone = "Europe/Berlin",') } }
    assert.truthy(started:status().generation.warnings[1]:find("timezone has no effect", 1, true))
  end)
end)
