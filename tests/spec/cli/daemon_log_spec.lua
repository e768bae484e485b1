-- toolgate decisions and toolgate shadow without a FILE: they read the daemon's own log.
local cjson = require "cjson"
local records = require "decision_records"
local unistd = require "posix.unistd"

describe("the daemon's log", function()
  local folder

  before_each(function()
    folder = process.directory()
    records.restart()
  end)

  local function ids(...)
    local code, out, err = process.run { daemon.binary, "decisions", "--json", ... }
    local list = {}
    for line in out:gmatch "[^\n]+" do list[#list + 1] = cjson.decode(line).decision_id end
    return list, code, err
  end

  -- Starts a daemon that records one call, and waits for the record.
  local function recorded(config)
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, config = config }
    gate:connect():calls("echo", { text = "a" }, session "s")
    local path = gate:status().paths.decisions
    process.eventually("the call is recorded", function()
      local file = io.open(path)
      local line = file and file:read "*l"
      if file then file:close() end
      return line
    end)
    return gate, path
  end

  it("is read where the running daemon writes it", function()
    local path = folder .. "/elsewhere.ndjson"
    local gate, told = recorded(('return { decisions = { file = %q } }'):format(path))
    assert.equal(path, told)
    assert.equal(1, #ids("--socket", gate.socket))
  end)

  it("is read with its rotated files, the oldest first; a named file alone", function()
    local gate, path = recorded()
    local older, oldest = records.record {}, records.record {}
    records.write(path .. ".1", { older }, cjson.encode)
    records.write(path .. ".2", { oldest }, cjson.encode)
    local list = ids("--socket", gate.socket)
    assert.equal(3, #list)
    assert.same({ oldest.decision_id, older.decision_id }, { list[1], list[2] })
    assert.same({ list[3] }, (ids(path)))
    assert.same({ list[3] }, (ids("--socket", gate.socket, "--last", "1")))
  end)

  it("is read beyond a rotated file that an operator has taken away", function()
    local gate, path = recorded()
    local oldest = records.record {}
    records.write(path .. ".3", { oldest }, cjson.encode)
    local list = ids("--socket", gate.socket)
    assert.same({ 2, oldest.decision_id }, { #list, list[1] })
  end)

  it("is found beside its socket after the daemon has ended", function()
    local _, path = recorded()
    local socket = folder .. "/toolgate.sock"
    os.execute("mkdir -m 700 " .. socket .. ".state")
    process.write(socket .. ".state/decisions.ndjson", process.read(path))
    assert.equal(1, #ids("--socket", socket))
  end)

  it("is an error with its fix where there is none", function()
    local _, code, err = ids("--socket", folder .. "/none.sock")
    assert.equal(2, code)
    assert.truthy(err:find("name a FILE", 1, true), err)
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo }, config = "return { decisions = false }" }
    _, code, err = ids("--socket", gate.socket)
    assert.equal(2, code)
    assert.truthy(err:find("decisions = true", 1, true), err)
  end)

  it("is an error where it may not be read", function()
    if unistd.getuid() ~= 0 then pending "only root may become another user" return end
    local gate = recorded()
    process.run { "chmod", "666", gate.socket }
    for _, command in ipairs { "decisions", "shadow" } do
      local code, _, err = process.run { "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", daemon.binary,
                                         command, "--socket", gate.socket }
      assert.equal(2, code)
      assert.truthy(err:find("name a FILE", 1, true), err)
    end
    daemon.stop_all()
    local socket = folder .. "/toolgate.sock"
    process.run { "chmod", "755", folder }
    os.execute("mkdir -m 755 " .. socket .. ".state")
    records.write(socket .. ".state/decisions.ndjson", { records.record {} }, cjson.encode)
    process.run { "chmod", "600", socket .. ".state/decisions.ndjson" }
    local code, _, err = process.run { "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", daemon.binary,
                                       "decisions", "--socket", socket }
    assert.equal(2, code)
    assert.truthy(err:find("only root", 1, true), err)
  end)

  it("goes through toolgate shadow too, with the dates that have come", function()
    local gate, path = recorded "return { defaults = { mode = 'shadow', shadow_until = '2026-01-31' } }"
    local list = {}
    for i = 1, 20 do list[i] = records.record { policy_mode = "shadow", tool = "old", session = "s" .. i } end
    records.write(path .. ".1", list, cjson.encode)
    local _, out, err = process.run { daemon.binary, "shadow", "--json", "--socket", gate.socket }
    local row = cjson.decode(out:match "[^\n]+")
    assert.same({ "old", 20 }, { row.tool, row.calls })
    assert.truthy(err:find("2026-01-31", 1, true), err)
  end)
end)
