-- The name of an imported tool depends on its own name alone: not on the others that its server offers, nor on their order.
local offered = require "offered"

local NAMES = { "查询", "删除", "поиск", "moneyflow", "moneyflow_备份", "bücher_suchen", "bucher_suchen", "Ñandú", "e\204\129cole",
                "Łódź", "👍", "!!!", ("x"):rep(150) .. "a", ("x"):rep(150) .. "b", ("é"):rep(100), "get weather", "a b", "a/b" }

-- original = given; `left` names are not offered.
local function names(over, order, left)
  local list, given = {}, {}
  for i = order > 0 and 1 or #NAMES, order > 0 and #NAMES or 1, order do
    if not left or not left[NAMES[i]] then
      list[#list + 1] = { name = NAMES[i], description = tostring(i), inputSchema = { type = "object" } }
    end
  end
  local client = offered.start(over, list):connect()
  for _, tool in ipairs(client:asks("tools/list").tools) do
    given[NAMES[tonumber(tool.description)]] = tool
  end
  return given, client
end

for _, over in ipairs(offered.OVER) do
  describe("the name of a tool over " .. over, function()
    it("says something, reaches the tool, and so does its server's name", function()
      local given, client = names(over, 1)
      for _, name in ipairs(NAMES) do
        local tool = assert(given[name], name .. " is not listed")
        assert.truthy(#tool.name <= 128 and not tool.name:find "[^%w_.-]" and tool.name:find "%w", tool.name)
        assert.is_nil(tool.name:find "____", tool.name)
        if over == "stdio" then
          for _, by in ipairs { tool.name, #name <= 128 and name or nil } do
            local result = client:calls(by, {}, { ["dev.toolgate/session"] = by })
            assert.truthy(text(result):find(name, 1, true), text(result))
            assert.is_nil(text(result):find("is called", 1, true), text(result))
          end
        end
        assert.equal(name:find "[^%w_.-]" and name or #name > 128 and name or nil, tool.title)
      end
      assert.equal("moneyflow", given.moneyflow.name)
      assert.matches("^get_weather_%x%x%x%x%x%x$", given["get weather"].name)
      assert.matches("^bucher_suchen_%x%x%x%x%x%x$", given["bücher_suchen"].name)
      assert.matches("^ecole_%x+$", given["e\204\129cole"].name)
      assert.matches("^Lodz_%x+$", given["Łódź"].name)
      assert.matches("^tool_%x+$", given["查询"].name)
    end)

    it("stays in another order and without its neighbours", function()
      local given = names(over, 1)
      daemon.stop_all()
      local other = names(over, -1, { bucher_suchen = true, ["删除"] = true, moneyflow = true, [("x"):rep(150) .. "a"] = true })
      for name, tool in pairs(other) do assert.equal(given[name].name, tool.name) end
    end)
  end)
end

describe("the name of a tool that a policy names with '_' for other characters", function()
  it("is the policy's, as it was always", function()
    local gate = offered.start("stdio", { { name = "get weather" } },
                               { policies = { ["w.lua"] = 'return tool "get_weather" { effects = "read" }' } })
    local client = gate:connect()
    assert.equal("get_weather", client:asks("tools/list").tools[1].name)
    assert.truthy(text(client:calls("get weather", {})):find("get weather", 1, true))
  end)

  it("has its upstream's prefix", function()
    local gate = offered.start("stdio", { { name = "查询" }, { name = "get weather" } }, { upstream = 'prefix = "always"' })
    local list = gate:connect():asks("tools/list").tools
    assert.matches("^a__get_weather_%x+$", list[1].name)
    assert.matches("^a__tool_%x+$", list[2].name)
  end)
end)
