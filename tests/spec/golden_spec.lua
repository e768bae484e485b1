-- The rules of golden files (tests/support/golden.lua), in a temporary folder.
local golden = require "golden"
local stdlib = require "posix.stdlib"

describe("a golden text", function()
  local folder, journal, before

  local function variable(name, value)
    before[name] = before[name] or { os.getenv(name) }
    stdlib.setenv(name, value)
  end

  before_each(function()
    before = {}
    folder = process.directory()
    golden.folder, journal = folder, folder .. "/journal"
    variable("GOLDEN_JOURNAL", journal)
    variable("GOLDEN", nil)
  end)
  after_each(function()
    for name, value in pairs(before) do stdlib.setenv(name, value[1]) end
    golden.folder = "tests/golden"
  end)

  local function file() return process.read(folder .. "/area.txt") end

  -- Works as `make golden`: checks each { key, text }, then writes the file.
  local function write(checks, whole)
    variable("GOLDEN", "write")
    for _, each in ipairs(checks) do golden.check("area", each[1], each[2]) end
    variable("GOLDEN", nil)
    local problems = golden.finish(journal, true, whole)
    os.remove(journal)
    return problems
  end

  it("passes after it was written, with inner newlines", function()
    assert.same({}, write { { "b", "two\n\nlines\n" }, { "a", "" } })
    golden.check("area", "b", "two\n\nlines\n")
    golden.check("area", "a", "")
    assert.same({ a = "", b = "two\n\nlines" }, golden.sections "area")
  end)

  it("fails if it changed, and the error shows both texts", function()
    write { { "a", "old" } }
    local ok, why = pcall(golden.check, "area", "a", "new")
    assert.is_false(ok)
    assert.matches("expected\nold\n.*got\nnew\n", why)
  end)

  it("fails if it has no section", function()
    write { { "a", "old" } }
    local ok, why = pcall(golden.check, "area", "b", "text")
    assert.is_false(ok)
    assert.matches("no section 'b': run `make golden`", why, 1, true)
  end)

  it("that no test checks is a problem if the whole suite ran", function()
    write { { "a", "1" }, { "b", "2" } }
    golden.check("area", "a", "1")
    assert.same({}, golden.finish(journal, false, false))
    local problems = golden.finish(journal, false, true)
    assert.equal(1, #problems)
    assert.matches("no test checks 'b'", problems[1], 1, true)
  end)

  it("that no test checks is removed if the whole suite wrote, and kept otherwise", function()
    write { { "a", "1" }, { "b", "2" } }
    write { { "a", "3" } }
    assert.same({ a = "3", b = "2" }, golden.sections "area")
    write({ { "a", "4" } }, true)
    assert.same({ a = "4" }, golden.sections "area")
  end)

  it("has one text for each key", function()
    assert.same({}, write { { "a", "1" }, { "a", "1" } })
    local problems = write { { "a", "1" }, { "a", "2" } }
    assert.equal(1, #problems)
    assert.matches("'a' is checked with two texts", problems[1], 1, true)
  end)

  it("is sorted by its key, independent of the order of checks", function()
    write { { "b", "2" }, { "c", "3" }, { "a", "1" } }
    local one = file()
    os.remove(folder .. "/area.txt")
    write { { "c", "3" }, { "a", "1" }, { "b", "2" } }
    assert.equal(one, file())
    assert.matches("=== a\n1\n\n=== b\n2\n\n=== c\n3\n$", one)
  end)

  it("has placeholders for values that vary from run to run", function()
    write { { "a", "/tmp/toolgate-spec-Ab12cD/x pid=17 127.0.0.1:54321 toolgate 0.1.2 2026-11-22T10:00:00.123Z" } }
    assert.equal("<dir>/x pid=<pid> 127.0.0.1:<port> toolgate <version> <time>", golden.sections("area").a)
    golden.check("area", "a", folder .. "/x pid=18 127.0.0.1:1234 toolgate 2.0.0 2027-01-01T00:00:00.000Z")
    variable("GOLDEN", "write")
    golden.check("area", "a", "took 17 ms", { ["%d+ ms"] = "<ms> ms" })
    golden.finish(journal, true, false)
    assert.equal("took <ms> ms", golden.sections("area").a)
  end)

  it("must not contain a line that looks like a heading", function()
    assert.is_false(pcall(golden.check, "area", "a", "x\n=== b\ny"))
  end)
end)
