-- Loading is sliced: a daemon that loads a heavy folder goes on serving, and says which limit a file exceeds.

local head = [[return tool "heavy" { description = "d",
  schema = json '{"type":"object","properties":{"n":{"type":"integer"}}}', ]]

-- `count` examples, written in the file one by one.
local function written(count)
  local lines = {}
  for i = 1, count do lines[i] = ("  { 'e%d', args = { n = %d }, gives = 'pass' },"):format(i, i) end
  return "examples = {\n" .. table.concat(lines, "\n") .. "\n},"
end

describe("a heavy reload", function()
  local gate, client
  before_each(function()
    gate, client = daemon.open { policies = { ["echo.lua"] = fixtures.echo } }
  end)

  it("serves others meanwhile", function()
    local operator = gate:connect()
    gate:write_policy("heavy.lua", head .. written(200) ..
      "run = function(args) local x = 0 for i = 1, 3e5 do x = x + i end return x end }")
    operator:say { jsonrpc = "2.0", id = "reload", method = "toolgate/reload" }
    local served = 0
    while not gate:log():find(" reload_done ", 1, true) do
      assert.same({}, client:asks "ping")
      served = served + 1
    end
    assert.is_true(served >= 20, "served " .. served)
    assert.equal(200, operator:answer("reload").result.examples)
  end)

  it("takes a file of 5,000 examples, and its time is in proportion to their number", function()
    gate:write_policy("heavy.lua", head .. written(5000) .. "run = function(args) return args end }")
    local reply = client:ask("toolgate/reload")
    assert.same({ true, 5000 }, { reply.result.ok, reply.result.examples })
  end)

  it("keeps the generation if a file takes too long, and names the limit", function()
    gate:write_policy("heavy.lua", "local t = {} for i = 1, 1e9 do t[i % 10 + 1] = i end\n" .. head
                                   .. "run = function() end }")
    local reply = client:ask("toolgate/reload")
    assert.is_false(reply.result.ok)
    assert.matches("heavy%.lua.*took longer to load than the 200 ms", reply.result.errors[1])
    assert.is_not_true(client:calls("echo", { text = "x" }).isError)
  end)

  it("takes a path of 100,000 lists", function() -- whose search was as deep: a stack overflow with the sanitizer
    gate:write_policy("heavy.lua", head .. [[gives_ids = { ("[]"):rep(100000) },
      examples = { { "a number", args = { n = 1 }, gives = "pass" } }, run = function() return { 1, { 2 } } end }]])
    assert.is_true(client:ask("toolgate/reload").result.ok)
  end)
end)
