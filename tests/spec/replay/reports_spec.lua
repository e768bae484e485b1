-- The report as Markdown and as a page: the figures are there, and nothing of a recording is read as markup.
local recordings = require "recordings"
local cjson = require "cjson"

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

  local function replay(...)
    local out = process.runs { daemon.binary, "replay", log, "--policies", policies, "--against", stricter, ... }
    return out
  end

  -- What --json counts, before the differences.
  local function leads_with_both_figures(text)
    local report = cjson.decode((replay "--json"))
    local saved, lost = text:match "would have stopped (%d+) call.-(%w+) calls? would have been stopped that had.-Differences"
    assert.same({ report.loops.calls_saved, report.lost_results }, { tonumber(saved), tonumber(lost) or 0 })
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

  it("draws the calls of each session in their order, and shows nothing of a recording as markup", function()
    local lines = {}
    for i = 1, 4 do lines[i] = { session = "<b>s", tool = "t", arguments = { n = 1 }, result = "same" } end
    lines[5] = { session = "<b>s", tool = "t", arguments = { n = 2 }, is_error = true, result = "broken" }
    local page = folder.path .. "/page.html"
    local code = process.run { daemon.binary, "replay", folder:file("s.ndjson", lines), "--html", page }
    local text = process.read(page)
    assert.equal(0, code)
    assert.truthy(text:find('<span class=quiet>&lt;b&gt;s', 1, true), text)
    local marks = {}
    for mark, n in text:match "<div class=t>(.-)</div>":gmatch '<i class=(%l) style="flex:(%d+)"' do
      marks[#marks + 1] = mark:rep(tonumber(n))
    end
    assert.equal("wwrrf", table.concat(marks))
    assert.falsy(text:find("<b>s", 1, true))
  end)

  it("takes the tools of upstreams from beside a log, without a configuration", function()
    os.execute("mkdir " .. folder.path .. "/upstreams")
    local list = '{"upstream":"shop","tools":[{"name":"buy","inputSchema":{"type":"object","properties":{"n":{"maximum":5}}}}]}'
    folder:file("upstreams/shop.tools.json", list)
    folder:file("upstreams/other.tools.json", "no JSON")
    folder:file("upstreams/twice.tools.json", list)
    local _, report = recordings.replay(folder:file("d.ndjson", { { session = "s", tool = "buy", arguments = { n = 9 } } }))
    assert.same({ 1, {} }, { report.refused, report.unknown_tools.rows })
  end)

  it("is an error if the page cannot be written", function()
    local code, _, err = process.run { daemon.binary, "replay", log, "--html", folder.path .. "/none/report.html" }
    assert.equal(2, code)
    assert.truthy(err:find("--html", 1, true), err)
  end)
end)
