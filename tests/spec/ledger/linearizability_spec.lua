-- Linearizability: the answers that the agents of a fleet heard are those of one ledger that applies the requests of each
-- session one at a time. tests/support/linearize.lua is the checker, ledger_model.lua the specification. `make soak` plays
-- the same stories for longer.
local linearizability = require "linearizability"

local SIZE = { sessions = 30, groups = 16, agents = 4, calls = 6 }
local SIZES = { split = { sessions = 4, groups = 4, agents = 4, calls = 6 } }
local BOUND = 50000 -- a story takes seconds; each session that is not decided a minute more, of the 10 that a file has
-- Of the sessions of a story: the search for an order is bounded, and on a busy machine more requests overlap.
local UNDECIDED_MAX = 4

describe("a fleet", function()
  for _, story in ipairs(linearizability.STORIES) do
    it(story[2] .. (story.is_wrong and " is found out" or " answers as one ledger"), function()
      local seed = os.time() % 1000000
      local seen = linearizability.play(story, SIZES[story[1]] or SIZE, seed, BOUND)
      local where = "seed " .. seed
      if story.is_wrong then
        assert.equal(0, seen.explained, where)
        assert.truthy(seen.wrong[1]:find("Nothing can follow", 1, true))
        return
      end
      assert.same({}, seen.problems, where)
      assert.same({}, seen.wrong, where)
      assert.is_true(#seen.undecided <= UNDECIDED_MAX, where .. ": " .. table.concat(seen.undecided, "\n"))
      assert.is_true(story.lenient or seen.unavailable == 0, "calls were unavailable without an outage")
      assert.is_true(not story.kills or seen.kills > 0, "no daemon was killed")
      assert.is_true(not story.redis_kills or seen.redis_kills > 0, "Redis was not killed")
      assert.is_true(not story.redis_stops or seen.redis_stops > 0, "Redis was not stopped")
      assert.is_true(story.kills ~= nil or seen.lost == 0, "calls were lost without a killed daemon")
    end)
  end
end)
