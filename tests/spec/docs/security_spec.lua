-- docs/security.md: every test that it names exists, and every row of the OWASP tables names one or says "not covered".

local page = process.read "docs/security.md"

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

describe("docs/security.md", function()
  it("names only tests that exist", function()
    local named = 0
    for name in page:gmatch "`([%w_]+/[%w_]+_spec)`" do
      assert.is_true(exists("tests/spec/" .. name .. ".lua"), "docs/security.md names tests/spec/" .. name .. ".lua")
      named = named + 1
    end
    for name in page:gmatch "`(tests/[%w_/]+%.%w+)`" do
      assert.is_true(exists(name), "docs/security.md names " .. name)
    end
    assert.is_true(named > 50)
  end)

  it("names a test in each row of its tables, or says that nothing does", function()
    local rows = 0
    for row in page:gmatch "\n(| [MA][CS][PI]%d%d [^\n]+)" do
      rows = rows + 1
      local held = row:match "|([^|]+)|%s*$"
      assert.truthy(held:find("_spec`", 1, true) or held:find("not covered", 1, true), row)
    end
    assert.equal(20, rows)
  end)

  it("names a test for each limit of a boundary", function()
    local tables = 0
    for rows in (page .. "\n\n"):gmatch "\n|[^\n]-| held by |\n|[^\n]+\n(.-)\n\n" do
      tables = tables + 1
      for row in rows:gmatch "[^\n]+" do
        local held = row:match "|([^|]+)|%s*$"
        assert.truthy(held:find("`", 1, true) or held:find("not covered", 1, true), row)
      end
    end
    assert.is_true(tables >= 5)
  end)
end)
