-- A tool's failure reaches the model whole: its text, what is beside it, and the data of a JSON-RPC error.
local offered = require "offered"

local function words(n)
  return { { type = "text", text = "row" .. ("\nrow"):rep(n) .. " last" } }
end
local PICTURE, LINK = { type = "image", data = "AAAA", mimeType = "image/png" },
                      { type = "resource_link", uri = "file:///shot.png", name = "shot" }

local TOOLS = {
  rich = { answer = { isError = true, structuredContent = { step = 3 },
                      content = { { type = "text", text = "failed at step 3" }, PICTURE, LINK } } },
  pictures = { answer = { isError = true, content = { PICTURE } } },
  told_twice = { answer = { isError = true, structuredContent = { step = 3 },
                            content = { { type = "text", text = '{"step":3}' } } } },
  long = { answer = { isError = true, content = words(5000) } },
  data = { error = { code = -32602, message = "Invalid arguments",
                     data = { { path = { "top" }, message = "Expected number, received string" } } } },
  only_data = { error = { code = -32000, message = "", data = { reason = "the table is locked" } } },
  plain_data = { error = { code = -32603, message = "it failed", data = "at line 7" } },
  long_data = { error = { code = -32000, message = ("m"):rep(9000) .. " last", data = { rows = ("d"):rep(20000) .. " end" } } },
  nothing_beside = { answer = { isError = true, structuredContent = json.null, content = words(1) } },
  nothing_given = { error = { code = -32000, message = "it failed", data = json.null } },
  limited = { error = { code = -32000, message = "Too many requests", data = { retryAfter = 7 } } },
  secret = { error = { code = -32000, message = 'no user "kimberley-7"',
                       data = { user = "kimberley-7", why = "kimberley-7 is locked" } } },
}

local function definitions()
  local list = {}
  for name, answer in pairs(TOOLS) do list[#list + 1] = { name = name, inputSchema = { type = "object" }, _meta = answer } end
  return list
end

for _, over in ipairs(offered.OVER) do
  describe("the failure of a tool over " .. over, function()
    local client
    local function serves(policies)
      client = offered.start(over, definitions(), { policies = policies }):connect()
    end

    local function fails(name)
      local result = client:calls(name, {}, { ["dev.toolgate/session"] = name })
      assert.is_true(result.isError, name)
      assert.is_nil(result.structuredContent)
      return result, text(result)
    end

    it("that was one call too many did not run, and says when to call again", function()
      serves()
      local result = client:calls("limited", {})
      assert.same({ "wait", "rate_limited", 7 }, { verdict(result).verdict, verdict(result).code, verdict(result).after_s })
      assert.truthy(text(result):find("the call did not run", 1, true), text(result))
    end)

    it("has no data beside it that is null", function()
      serves()
      for _, name in ipairs { "nothing_beside", "nothing_given" } do
        assert.is_nil(select(2, fails(name)):find("null", 1, true), name)
      end
    end)

    it("keeps its structure as JSON, its pictures and its links", function()
      serves()
      local rich, said = fails "rich"
      assert.same({ "text", "image", "resource_link" },
                  { rich.content[1].type, rich.content[2].type, rich.content[3].type })
      assert.same({ PICTURE, LINK }, { rich.content[2], rich.content[3] })
      golden.check("feedback", "a failure with structured content", (said:gsub(": 3", ":3")))
      assert.same(PICTURE, fails("pictures").content[2])
    end)

    it("says once what its text has already", function()
      serves()
      local _, said = fails "told_twice"
      local _, count = said:gsub('"step"', "")
      assert.equal(1, count, said)
    end)

    it("is as long as the tool says it, unless its policy shortens results", function()
      serves { ["a.lua"] = 'return tool "data" { compact = { max_bytes = 200 } }',
               ["b.lua"] = 'return tool "long_data" { compact = { max_bytes = 200 } }' }
      local _, said = fails "long"
      assert.truthy(said:find("row last", 1, true))
      _, said = fails "data"
      assert.truthy(said:find("Expected number", 1, true), said)
      _, said = fails "long_data"
      assert.truthy(#said < 1500 and said:find("(8805 bytes more)", 1, true), said)
    end)

    it("keeps the data of a JSON-RPC error", function()
      serves()
      for name, part in pairs { data = '[{"message":"Expected number, received string","path":["top"]}]',
                                only_data = "the table is locked", plain_data = '"at line 7"', long_data = "d end" } do
        local _, said = fails(name)
        assert.truthy(said:gsub(", ", ","):gsub(": ", ":"):find((part:gsub(", ", ",")), 1, true), said)
      end
      assert.truthy(select(2, fails "long_data"):find("mmm last", 1, true))
    end)

    it("is masked like a result", function()
      serves { ["secret.lua"] = 'return tool "secret" { redact = { "user" } }' }
      local _, said = fails "secret"
      assert.is_nil(said:find("kimberley-7", 1, true), said)
      assert.truthy(said:find("is locked", 1, true), said)
    end)
  end)
end
