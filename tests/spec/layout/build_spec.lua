-- The Makefile embeds lua/ by file content, not by modification time.

describe("the embedded Lua", function()
  local directory

  before_each(function()
    directory = process.directory()
    assert.equal(0, (process.run { "cp", "-R", "Makefile", "lua", "src", directory }))
  end)

  local function embedded()
    -- SAN=: the same build directory, with or without sanitizers.
    process.runs { "make", "-s", "-C", directory, "BUILD=b", "SAN=", "b/gen/embedded.c" }
    return process.read(directory .. "/b/gen/embedded.c")
  end

  local function write_old_file(name, text)
    process.write(directory .. "/lua/policy/" .. name, text)
    os.execute("touch -d 2020-01-01 '" .. directory .. "/lua/policy/" .. name .. "'")
  end

  it("is rebuilt if an older file is added, changed or removed", function()
    local before = embedded()
    assert.is_nil(before:find("policy/late.lua", 1, true))
    write_old_file("late.lua", "return 1")
    local added = embedded()
    assert.truthy(added:find("policy/late.lua", 1, true))
    write_old_file("late.lua", "return 2")
    local changed = embedded()
    assert.not_equal(added, changed)
    os.remove(directory .. "/lua/policy/late.lua")
    assert.equal(before, embedded())
  end)
end)
