-- make judgement: anyone's own transcripts, and the figures that the documentation quotes.
local recordings = require "recordings"

local function judgement(folder)
  return process.run { "env", "RECORDINGS=" .. folder, "TOOLGATE=" .. daemon.binary, "luajit", "tests/judgement/run.lua" }
end

describe("make judgement RECORDINGS=DIR", function()
  local folder

  before_each(function() folder = recordings.new() end)

  it("says how many calls would have been refused wrongly, what was saved, and which failures were recognised", function()
    local records = { { session = "s", tool = "build", arguments = {}, result = "Error: no such target", is_error = true } }
    for i = 1, 30 do
      records[#records + 1] = { session = "s", tool = "get_state", arguments = { id = 7 }, result = "idle", step = tostring(i) }
    end
    folder:file("mine.ndjson", records)
    folder:file("notes.txt", "not a transcript\n")
    local code, said, err = judgement(folder.path)
    assert.equal(0, code, err)
    assert.truthy(said:find("calls 31, sessions 1, files 2 in ", 1, true), said)
    assert.truthy(said:find "refused though they brought something new, of 10,000 calls +0%.0 %(0%) +0%.0 %(0%)", said)
    assert.truthy(said:find "saved: [^\n]+ 28 +28\n", said)
    assert.truthy(said:find "failures marked as such, shown by their text +1 of 1 +1 of 1", said)
    assert.truthy(said:find("refused by: loop 28", 1, true), said)
  end)

  it("says so if no file is a transcript", function()
    folder:file("notes.txt", "not a transcript\n")
    local code, said = judgement(folder.path)
    assert.equal(1, code)
    assert.truthy(said:find("holds no transcript", 1, true), said)
  end)
end)

it("the README quotes the figure of docs/judgement.md", function()
  local page, readme = process.read "docs/judgement.md", process.read "README.md"
  local wrong, lost, calls = page:match "%*%*([%d.]+) wrong refusals in 10,000 recorded calls%*%* %(([%d,]+) of ([%d,]*%d)"
  assert.truthy(wrong, page)
  assert.truthy(readme:find(("%s wrong refusals in 10,000 recorded calls (%s of %s)"):format(wrong, lost, calls), 1, true))
end)
