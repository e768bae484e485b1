-- Who calls and whose turn it is: sub-agents, persons who ask again, and contexts that were compacted.
local redis = require "redis"

local function tool(name, effects)
  return ([==[
-- %s: for specs.
return tool "%s" { description = "For specs.", %s schema = params { of = str "What" },
                   run = function() return "the same" end }
]==]):format(name, name, effects)
end

local POLICIES = { ["look.lua"] = tool("look", 'effects = "read",'), ["any.lua"] = tool("any", ""),
                   ["erase.lua"] = tool("erase", 'effects = "destructive",') }

for _, engine in ipairs { "memory", "Redis" } do
  describe("a session in " .. engine, function()
    local client

    before_each(function()
      local arguments = engine == "Redis" and { "--redis", redis.start():url() } or nil
      client = daemon.start { policies = POLICIES, arguments = arguments,
                              config = "return { ledger = { timeout_ms = 5000 } }" }:connect()
    end)

    local function calls(name, more)
      local meta = session("s", more and more.turn and { turn = more.turn })
      for key, value in pairs(more or {}) do
        if key ~= "turn" then meta["dev.toolgate/" .. key] = value end
      end
      return client_of.verdict(client:calls(name, { of = "it" }, meta)).verdict
    end

    local function row(count, name, more)
      local list = {}
      for i = 1, count do list[i] = calls(name, more) end
      return table.concat(list, " ")
    end

    it("counts the calls of each agent by themselves, if its tool reads or is unknown", function()
      -- "one" has made it once; what other agents do stands in no row of its own, and a shell's success re-arms a shell's call
      for name, then_five in pairs { look = "pass refuse refuse halt halt", any = "pass pass refuse refuse halt" } do
        for _, agent in ipairs { "one", "two", "three", "four" } do
          assert.equal("pass", calls(name, { turn = 1, agent = agent }), name .. " of " .. agent)
        end
        assert.equal(then_five, row(5, name, { turn = 1, agent = "one" }))
        assert.equal("pass", calls(name, { turn = 1 }))
      end
    end)

    it("has one budget for what destroys, whoever calls", function()
      assert.equal("pass", calls("erase", { turn = 1, agent = "one" }))
      assert.equal("refuse", calls("erase", { turn = 1, agent = "two" }))
      assert.equal("refuse", calls("erase", { turn = 1 }))
    end)

    it("refuses in the fifth turn what programs repeat, and never what a person asks again", function()
      local by_program, by_person = {}, {}
      for turn = 1, 8 do by_program[turn] = calls("look", { turn = turn }) end
      assert.equal("pass pass pass pass refuse refuse refuse refuse", table.concat(by_program, " "))
      for turn = 9, 16 do by_person[turn - 8] = calls("look", { turn = turn, turn_by = "person" }) end
      assert.equal(("pass "):rep(7) .. "pass", table.concat(by_person, " "))
    end)

    it("begins a refused run again with two free calls when a person asks", function()
      assert.equal("pass pass refuse refuse", row(4, "any", { turn = 1 }))
      assert.same({ turn = 2, gaveUp = 0 }, client:asks("toolgate/turn", { by = "person", _meta = session "s" }))
      assert.equal("pass pass refuse", row(3, "any"))
    end)

    it("forgets what a compacted context has read, and not what was destroyed; no turn begins", function()
      assert.equal("pass pass refuse", row(3, "look", { turn = 1 }))
      assert.equal("pass", calls("erase", { turn = 1 }))
      for _ = 1, 2 do
        assert.same({ turn = 1, gaveUp = 0 }, client:asks("toolgate/turn", { compacted = true, _meta = session "s" }))
      end
      assert.equal("pass pass refuse", row(3, "look", { turn = 1 }))
      assert.equal("refuse", calls("erase", { turn = 1 }))
    end)

    it("says what it does not understand", function()
      local function code(method, params) return client:ask(method, params).error.code end
      assert.equal(-32602, code("toolgate/turn", { by = "nobody", _meta = session "s" }))
      assert.equal(-32602, code("toolgate/turn", { compacted = "yes", _meta = session "s" }))
      for key, value in pairs { ["dev.toolgate/turn_by"] = "nobody", ["dev.toolgate/agent"] = ("x"):rep(129) } do
        local meta = session "s"
        meta[key] = value
        assert.equal(-32602, code("tools/call", { name = "look", arguments = { of = "it" }, _meta = meta }), key)
      end
    end)
  end)
end
