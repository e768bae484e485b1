-- The report as Markdown and as a page: the figures are there, and nothing of a recording is read as markup.
local recordings = require "recordings"
local cjson = require "cjson"
local process = require "process"
local daemon = require "daemon"

local EVIL = [[<script>alert(1)</script>|`x`&"]]

describe("the report of a replay", function()
  local folder, log, policies, stricter

  before_each(function()
    folder = recordings.new()
    policies = folder:policies("policies", {})
    stricter = folder:policies("stricter", { put = [[
-- put: stores nothing large.
return tool "put" { check = function(args) return refuse("closed", "No <b>" .. args.text .. "</b>") end }
]] })
    log = folder:file("log.ndjson", { { session = EVIL, tool = "put", arguments = { text = EVIL }, result = EVIL },
                                      { session = EVIL, tool = EVIL, arguments = { text = EVIL }, result = EVIL },
                                      { session = EVIL, tool = EVIL, arguments = { text = EVIL }, result = EVIL },
                                      { session = EVIL, tool = EVIL, arguments = { text = EVIL }, result = EVIL },
                                      '{"' .. EVIL })
  end)
  after_each(function() folder:remove() end)

  local function replay(...)
    local code, out, err = process.run { daemon.binary, "replay", log, "--policies", policies, "--against", stricter, ... }
    assert.equal(0, code, err)
    return out
  end

  -- What --json counts, before the differences.
  local function leads_with_both_figures(text)
    local report = cjson.decode((replay "--json"))
    local saved, lost = text:match "(%d+) saved.-(%d+) would have lost a new result.-Differences"
    assert.same({ report.loops.calls_saved, report.lost_results }, { tonumber(saved), tonumber(lost) })
    assert.is_true(report.loops.calls_saved > 0)
  end

  it("is a page that asks for nothing and runs nothing", function()
    replay("--html", folder.path .. "/report.html")
    local page = process.read(folder.path .. "/report.html")
    assert.truthy(page:find("default-src 'none'", 1, true))
    assert.truthy(page:find("&lt;script&gt;alert(1)&lt;/script&gt;", 1, true))
    for _, forbidden in ipairs { "<script", "<b>", "http:", "https:", "<link", "<img", "onclick", "url(" } do
      assert.is_nil(page:find(forbidden, 1, true), forbidden)
    end
    for _, wanted in ipairs { "Differences", "new_refusal", "closed", "Loops", "log.ndjson:5", "</html>" } do
      assert.truthy(page:find(wanted, 1, true), wanted)
    end
    leads_with_both_figures(page)
  end)

  it("is Markdown whose tables hold whatever a recording holds", function()
    local text = replay "--markdown"
    assert.is_nil(text:find("<script", 1, true))
    local columns -- of the table that is being read
    for line in text:gmatch "[^\n]*" do
      local _, bars = line:gsub("\\|", ""):gsub("|", "")
      if line == "" then columns = nil
      elseif line:sub(1, 1) == "|" then
        columns = columns or bars
        assert.equal(columns, bars, line)
      end
    end
    for _, wanted in ipairs { "# Replay", "**1 new refusals**", "| new_refusal | 1 |", "## Loops" } do
      assert.truthy(text:find(wanted, 1, true), wanted .. "\n" .. text)
    end
    leads_with_both_figures(text)
  end)

  it("names a session with a zero byte by all its bytes", function()
    local call = { session = "a\0b", tool = "t", arguments = { n = 1 } }
    local path = folder:file("zero.ndjson", { call, call, call, call, call })
    local code, report = recordings.replay(path)
    assert.same({ 0, "a\0b" }, { code, report.loops.list[1].session })
  end)

  it("is an error if the page cannot be written", function()
    local code, _, err = process.run { daemon.binary, "replay", log, "--html", folder.path .. "/none/report.html" }
    assert.equal(2, code)
    assert.truthy(err:find("--html", 1, true), err)
  end)
end)
