-- Where the decision log writes: files that are rotated, moved, full or not its own, sockets that nobody reads. Calls go on
-- in all cases; what is lost is counted; it resumes by itself.
local cjson = require "cjson"
local metrics = require "metrics"
local signal = require "posix.signal"
local stat = require "posix.sys.stat"
local unix = require "socket.unix"
local unistd = require "posix.unistd"

local PATIENCE_S = 30
local BIG = ("x"):rep(100000)

local lines_of = process.whole_lines

local function read_labels(...)
  local labels = {}
  for _, path in ipairs { ... } do
    for _, line in ipairs(lines_of(path)) do labels[#labels + 1] = cjson.decode(line).label end
  end
  return labels
end

local function has_labels(expected, ...)
  local paths = { ... }
  process.eventually("the records", function() return #read_labels(unpack(paths)) >= #expected end, PATIENCE_S)
  assert.same(expected, read_labels(unpack(paths)))
end

local function mode_of(path) return assert(stat.stat(path)).st_mode % 512 end
local function sink(gate, number) return gate:status().decisions.sinks[number or 1] end
local function count(text, what) return select(2, text:gsub(what, "")) end

describe("a sink of the decision log", function()
  local directory, client
  before_each(function() directory = process.directory() end)

  local function start(decisions, more)
    local given = { policies = { ["echo.lua"] = fixtures.echo },
                    config = "return { metrics = { listen = 'unix:metrics.sock' }, decisions = " .. decisions .. " }" }
    for key, value in pairs(more or {}) do given[key] = value end
    local gate = daemon.start(given)
    client = gate:connect()
    return gate
  end

  -- Each in a turn of its own, so that no budget refuses.
  local turn = 0
  local function call(label, text)
    turn = turn + 1
    client:calls("echo", { text = (text or "hi") .. label }, { ["dev.toolgate/call"] = label, ["dev.toolgate/session"] = "s",
                                                               ["dev.toolgate/turn"] = turn })
  end

  local function calls(from, to, text)
    local labels = {}
    for i = from, to do
      labels[#labels + 1] = "n" .. i
      call("n" .. i, text)
    end
    return labels
  end

  local function file_sink(more) return ("{ file = %q%s }"):format(directory .. "/log", more or "") end

  describe("that is a file", function()
    it("is rotated by size, private, and keeps so many older ones", function()
      local gate = start(file_sink ", max_mb = 1, keep = 2")
      calls(1, 45, BIG)
      gate:stop()
      local log = directory .. "/log"
      assert.is_nil(io.open(log .. ".3"))
      local labels = read_labels(log .. ".2", log .. ".1", log)
      assert.equal("n45", labels[#labels])
      for i = 2, #labels do assert.equal(tonumber(labels[i - 1]:sub(2)) + 1, tonumber(labels[i]:sub(2))) end
      for _, path in ipairs { log, log .. ".1", log .. ".2" } do
        assert.equal(384, mode_of(path)) -- 0600
        assert.is_true(stat.stat(path).st_size <= 1048576)
      end
    end)

    it("is opened again once it is moved", function()
      local gate = start(file_sink())
      local first = calls(1, 2)
      has_labels(first, directory .. "/log")
      os.rename(directory .. "/log", directory .. "/moved")
      has_labels(calls(3, 4), directory .. "/log")
      assert.same(first, read_labels(directory .. "/moved"))
      assert.equal("up", sink(gate).state)
    end)

    it("is made again once it is removed", function()
      start(file_sink())
      has_labels(calls(1, 2), directory .. "/log")
      os.remove(directory .. "/log")
      has_labels(calls(3, 4), directory .. "/log")
    end)

    it("is opened again on SIGUSR1", function()
      local gate = start(file_sink())
      has_labels(calls(1, 1), directory .. "/log")
      os.rename(directory .. "/log", directory .. "/moved")
      gate:signal(signal.SIGUSR1)
      process.eventually("a new file", function() return stat.stat(directory .. "/log") end)
      has_labels(calls(2, 2), directory .. "/log")
    end)

    it("is made private", function()
      os.execute(("umask 0; touch %s/log; chmod 666 %s/log"):format(directory, directory))
      start(file_sink())
      has_labels(calls(1, 1), directory .. "/log")
      assert.equal(384, mode_of(directory .. "/log"))
    end)

    it("never runs two records together, after a crash within one", function()
      process.write(directory .. "/log", '{"v":1,"label":"ha')
      start(file_sink())
      local labels = calls(1, 1)
      process.eventually("two lines", function() return #lines_of(directory .. "/log") == 2 end)
      assert.equal(labels[1], cjson.decode(lines_of(directory .. "/log")[2]).label)
    end)

    it("waits for space on a full disk, and loses nothing", function()
      local gate = start(file_sink(), { before = { "prlimit", "--fsize=30000:unlimited" } })
      local labels = calls(1, 200)
      gate:logs "decision_log_down"
      local down = sink(gate)
      assert.equal("down", down.state)
      assert.is_true(down.written < 200)
      for _, line in ipairs(lines_of(directory .. "/log")) do cjson.decode(line) end -- no half record
      process.run { "prlimit", "--pid", tostring(gate:pid()), "--fsize=unlimited" }
      gate:logs "decision_log_up"
      has_labels(labels, directory .. "/log")
      assert.equal(0, gate:status().decisions.dropped)
      assert.same({ 1, 1 }, { count(gate:log(), "decision_log_down"), count(gate:log(), "decision_log_up") })
    end)

    it("counts what it drops once too much waits for space", function()
      local gate = start(file_sink(), { before = { "prlimit", "--fsize=30000:unlimited" } })
      local total = 450
      calls(1, total, BIG)
      local dropped = gate:status().decisions.dropped
      assert.is_true(dropped > 0)
      process.run { "prlimit", "--pid", tostring(gate:pid()), "--fsize=unlimited" }
      local up = gate:logs "decision_log_up"
      assert.equal(dropped, tonumber(up:match "dropped=(%d+)"))
      calls(total + 1, total + 1)
      gate:stop()
      assert.equal(total + 1 - dropped, #lines_of(directory .. "/log"))
    end)

    -- Whatever it is: the daemon serves, says once that records wait and once that they are written, and none is missing.
    local function goes_down_and_up(what, breaks, repairs, more)
      it(what, function()
        local gate = start(file_sink(), more and more(directory))
        -- A daemon in a mount namespace of its own has another directory.
        local log = "/proc/" .. gate:pid() .. "/root" .. directory .. "/log"
        local labels = calls(1, 2)
        has_labels(labels, log)
        breaks(gate, log)
        for i = 3, 6 do
          call("n" .. i, ("x"):rep(3000)) -- more than the rest of a page
          labels[#labels + 1] = "n" .. i
        end
        gate:logs "decision_log_down"
        assert.equal("down", sink(gate).state)
        assert.equal(1, metrics.scrape("unix:" .. gate.directory .. "/metrics.sock").samples.toolgate_decision_sinks_down)
        local _, shown = process.run { daemon.binary, "status", "--socket", gate.socket }
        assert.matches("the decision log cannot write: ", shown)
        repairs(gate, log)
        gate:logs "decision_log_up"
        process.eventually("all records", function()
          local found = #read_labels(log .. ".away") + #read_labels(log)
          return found == #labels
        end, PATIENCE_S)
        assert.equal("up", sink(gate).state)
        assert.equal(0, metrics.scrape("unix:" .. gate.directory .. "/metrics.sock").samples.toolgate_decision_sinks_down)
        assert.same({ 1, 1 }, { count(gate:log(), "decision_log_down"), count(gate:log(), "decision_log_up") })
      end)
    end

    local function shell(command, ...) assert(os.execute(command:format(...)) == 0, command:format(...)) end
    local function own_disk(where)
      return { before = { "unshare", "-m", "sh", "-c",
                          ('mount -t tmpfs -o size=64k none "%s" && exec "$@"'):format(where), "sh" } }
    end

    it("is down at the limit of a file's size, also where the log has the same limit", function()
      local gate = start(file_sink())
      local labels = calls(1, 2)
      has_labels(labels, directory .. "/log")
      local function limit(value)
        process.run { "prlimit", "--pid", tostring(gate:pid()), "--fsize=" .. value .. ":unlimited" }
      end
      limit(0)
      call "n3"
      client:calls("unknown", {}) -- the log has a line about it, and so it has about the sink
      process.eventually("the sink is down", function() return sink(gate).state == "down" end)
      process.eventually("lines are lost", function() return (gate:status().log_lines_dropped or 0) >= 2 end)
      assert.is_nil(gate:log():find("decision_log_down", 1, true))
      local _, shown = process.run { daemon.binary, "status", "--socket", gate.socket }
      assert.matches("the decision log cannot write: .*LimitFSIZE", shown)
      assert.matches("the log has lost %d+ lines", shown)
      _, shown = process.run { daemon.binary, "doctor", "--socket", gate.socket, "--config", gate.directory .. "/toolgate.lua" }
      assert.matches("the decision log cannot be written: ", shown)
      assert.matches("the daemon's log has lost %d+ lines", shown)
      local samples = metrics.scrape("unix:" .. gate.directory .. "/metrics.sock").samples
      assert.equal(1, samples.toolgate_decision_sinks_down)
      assert.is_true(samples.toolgate_log_lines_dropped_total >= 2)
      limit "unlimited"
      gate:logs "decision_log_up"
      local line = gate:logs "log_lines_dropped"
      assert.equal(gate:status().log_lines_dropped, tonumber(line:match "lines=(%d+)"))
      process.eventually("all records", function() return #lines_of(directory .. "/log") == 4 end)
    end)

    goes_down_and_up("is down while a FIFO is in its place",
                     function(_, log) shell("mv %s %s.away; mkfifo %s", log, log, log) end,
                     function(_, log) shell("rm %s", log) end)
    goes_down_and_up("is down while its folder is gone",
                     function() os.rename(directory, directory .. ".moved") end,
                     function() os.rename(directory .. ".moved", directory) end)
    if unistd.geteuid() == 0 then
      goes_down_and_up("is down while another user's file is in its place",
                       function(_, log) shell("mv %s %s.away; touch %s; chown nobody %s", log, log, log, log) end,
                       function(_, log) shell("rm %s", log) end)
      goes_down_and_up("is down while its disk is full",
                       function(_, log) shell("cat /dev/zero > %s.filler 2>/dev/null; true", log) end,
                       function(_, log) shell("rm %s.filler", log) end, own_disk)

      it("is down until a thread can be started for it", function()
        shell("chmod 777 %s", directory)
        -- As a user who has no process yet, in the folder of its socket.
        local gate = start(file_sink(), { before = { "sh", "-c", [[
          for word; do case $word in */toolgate.sock) chown 54321 "${word%/*}";; esac; done
          exec prlimit --nproc=1: setpriv --reuid=54321 --regid=0 --clear-groups "$@"]], "sh" } })
        local labels = calls(1, 3)
        assert.matches("thread", gate:logs "decision_log_down")
        assert.equal("down", sink(gate).state)
        process.run { "setpriv", "--reuid=54321", "--clear-groups", "prlimit", "--pid", tostring(gate:pid()), "--nproc=1000:" }
        gate:logs "decision_log_up"
        has_labels(labels, directory .. "/log")
      end)
    end

    it("is one daemon's: another one waits for it", function()
      local first = start(file_sink())
      has_labels(calls(1, 1), directory .. "/log")
      local second = daemon.start { policies = { ["echo.lua"] = fixtures.echo } ,
                                    config = ("return { decisions = { file = %q } }"):format(directory .. "/other") }
      second:stop()
      local text, code = daemon.fails { policies = { ["echo.lua"] = fixtures.echo },
                                        config = "return { decisions = " .. file_sink() .. " }" }
      assert.equal(1, code)
      assert.truthy(text:find("another daemon", 1, true))
      assert.equal("up", sink(first).state)
    end)

    it("that cannot be opened is an error at the start, with the fix", function()
      os.execute(("mkdir %s/folder; ln -s /dev/null %s/link; touch %s/theirs"):format(directory, directory, directory))
      local bad = { missing = "/no/such/folder/log", folder = directory .. "/folder", link = directory .. "/link" }
      if unistd.getuid() == 0 then
        bad.theirs = directory .. "/theirs"
        os.execute("chown 65534 " .. bad.theirs)
      end
      for name, path in pairs(bad) do
        local text, code = daemon.fails { policies = { ["echo.lua"] = fixtures.echo },
                                          config = ("return { decisions = { file = %q } }"):format(path) }
        assert.equal(1, code, name)
        assert.truthy(text:find("decisions.file: " .. path .. ": ", 1, true), text)
      end
    end)

    it("that holds something else, such as the configuration, is left as it is", function()
      process.write(directory .. "/mine.lua", "return {}\n")
      os.execute(("chmod 644 %s/mine.lua"):format(directory))
      local text, code = daemon.fails { policies = { ["echo.lua"] = fixtures.echo },
                                        config = ("return { decisions = { file = %q } }"):format(directory .. "/mine.lua") }
      assert.equal(1, code)
      assert.truthy(text:find("mine.lua: it holds something else", 1, true), text)
      assert.equal("return {}\n", process.read(directory .. "/mine.lua"))
      assert.equal(420, mode_of(directory .. "/mine.lua"))
    end)

    it("that a power failure has left with bytes of zero goes on", function()
      process.write(directory .. "/log", ("\0"):rep(5000))
      start(file_sink())
      calls(1, 1)
      process.eventually("a record in a line of its own", function()
        return process.read(directory .. "/log"):find('\n{"v":1,', 1, true)
      end)
    end)

    it("by default only warns if it cannot be opened", function()
      process.write(directory .. "/file", "")
      local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo },
                                  config = ("return { state = %q }"):format(directory .. "/file") }
      local why = gate:logs "decision_log_down"
      assert.truthy(why:find("decisions.ndjson", 1, true))
      client = gate:connect()
      calls(1, 3)
      assert.equal("down", sink(gate).state)
    end)
  end)

  -- A receiver; `read` false: its buffer fills.
  local function receiver(path)
    local socket = assert(unix.dgram())
    assert(socket:bind(path))
    socket:settimeout(PATIENCE_S)
    return socket
  end

  local function received(socket)
    return cjson.decode(assert(socket:receive(131072)):match "\nMESSAGE=([^\n]*)\n").label
  end

  it("that is journald gets an entry each", function()
    local socket = receiver(directory .. "/journal")
    start(("{ file = false, journald = %q }"):format(directory .. "/journal"))
    call "n1"
    local entry = assert(socket:receive(131072))
    assert.equal("toolgate-decisions", entry:match "SYSLOG_IDENTIFIER=([^\n]*)\n")
    assert.equal("n1", cjson.decode(entry:match "\nMESSAGE=([^\n]*)\n").label)
    socket:close()
  end)

  it("that nobody reads stops no call, and gets all once it is read", function()
    local socket = receiver(directory .. "/journal")
    local gate = start(("{ file = false, journald = %q }"):format(directory .. "/journal"))
    local labels = calls(1, 600)
    gate:logs "decision_log_down"
    assert.equal("down", sink(gate).state)
    for _, label in ipairs(labels) do assert.equal(label, received(socket)) end
    gate:logs "decision_log_up"
    assert.equal(0, gate:status().decisions.dropped)
    socket:close()
  end)

  it("whose receiver begins later gets what was recorded before", function()
    local gate = start(("{ file = false, journald = %q }"):format(directory .. "/journal"))
    local labels = calls(1, 3)
    gate:logs "decision_log_down"
    local socket = receiver(directory .. "/journal")
    for _, label in ipairs(labels) do assert.equal(label, received(socket)) end
    socket:close()
  end)

  it("changes with a reload", function()
    local gate = start(file_sink())
    has_labels(calls(1, 2), directory .. "/log")
    local config = gate.directory .. "/toolgate.lua"
    process.write(config, ("return { decisions = { file = %q } }"):format(directory .. "/second"))
    gate:reload()
    has_labels(calls(3, 4), directory .. "/second")
    process.write(config, "return { decisions = false }")
    gate:reload()
    calls(5, 6)
    assert.is_false(gate:status().decisions.on)
    process.write(config, ("return { decisions = { file = %q } }"):format(directory .. "/third"))
    gate:reload()
    has_labels(calls(7, 7), directory .. "/third")
    assert.equal(2, #lines_of(directory .. "/log"))
  end)

  it("whose file cannot be opened after a reload is down, and the daemon serves", function()
    local gate = start(file_sink())
    process.write(gate.directory .. "/toolgate.lua", "return { decisions = { file = '/no/such/folder/log' } }")
    gate:reload()
    gate:logs "decision_log_down"
    calls(1, 2)
  end)
end)
