-- What the Makefile makes of lua/: by what is in the files, not by when they were written.
local process = require "process"

describe("the embedded Lua", function()
  local directory

  before_each(function()
    directory = process.directory()
    assert.equal(0, (process.run { "cp", "-R", "Makefile", "lua", directory }))
  end)
  after_each(function() process.remove(directory) end)

  local function made()
    -- SAN=: whatever this suite is built with.
    local code, _, err = process.run { "make", "-s", "-C", directory, "BUILD=b", "SAN=", "b/gen/embedded.c" }
    assert.equal(0, code, err)
    return process.read(directory .. "/b/gen/embedded.c")
  end

  local function comes_from_the_past(name, text)
    process.write(directory .. "/lua/policy/" .. name, text)
    os.execute("touch -d 2020-01-01 '" .. directory .. "/lua/policy/" .. name .. "'")
  end

  it("is made anew where a file is added, changed or gone that is older than it", function()
    local before = made()
    assert.is_nil(before:find("policy/late.lua", 1, true))
    comes_from_the_past("late.lua", "return 1")
    local added = made()
    assert.truthy(added:find("policy/late.lua", 1, true))
    comes_from_the_past("late.lua", "return 2")
    local changed = made()
    assert.not_equal(added, changed)
    os.remove(directory .. "/lua/policy/late.lua")
    assert.equal(before, made())
  end)
end)
