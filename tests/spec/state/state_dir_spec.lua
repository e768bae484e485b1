-- Whom the daemon trusts with its state: a folder, or a file beside the socket, that another user could have made.
local unistd = require "posix.unistd"
local stat = require "posix.sys.stat"
local signal = require "posix.signal"

local OTHER = 65534 -- nobody

local directory
before_each(function()
  directory = process.directory()
  os.execute("chmod 700 " .. directory)
end)

local function run(command, ...)
  assert.equal(0, os.execute((command:format(...))))
end

local function config(state, more) return ("return { state = '%s', %s }"):format(state, more or "") end

local function refuses(state, words)
  local text, code = daemon.fails { config = config(state) }
  assert.equal(1, code)
  assert.truthy(text:find(words, 1, true), text)
end

local function mode(path) return stat.stat(path).st_mode % 512 end

local function as_root()
  return unistd.geteuid() == 0
end

describe("the state folder", function()
  it("is made for the daemon's user alone, below a private folder of /tmp", function()
    local state = directory .. "/state"
    local gate = daemon.start { config = config(state) }
    assert.equal(tonumber("700", 8), mode(state))
    gate:connect():asks "ping"
  end)

  it("is refused if others may write into it", function()
    for _, bits in ipairs { "0770", "0777", "1777" } do
      run("mkdir -p %s/state && chmod %s %s/state", directory, bits, directory)
      refuses(directory .. "/state", ("chmod go-w %s/state"):format(directory))
    end
    run("chmod 0750 %s/state", directory) -- as systemd makes it
    daemon.start { config = config(directory .. "/state") }
  end)

  it("is refused if everybody may replace it", function()
    run("mkdir -m 0700 %s/open && chmod 0777 %s/open && mkdir -m 0700 %s/open/state", directory, directory, directory)
    refuses(directory .. "/open/state", ("chmod o-w %s/open"):format(directory))
    run("chmod 1777 %s/open", directory) -- sticky, as /tmp: only its owner may
    daemon.start { config = config(directory .. "/open/state") }
  end)

  it("is refused if another user owns it, a folder above it, or the link to it", function()
    if not as_root() then return pending "needs root, to be another user" end
    run("mkdir -p %s/theirs/state %s/mine && chown %d %s/theirs && ln -s %s/mine %s/link && chown -h %d %s/link", directory,
        directory, OTHER, directory, directory, directory, OTHER, directory)
    refuses(directory .. "/theirs", ("the folder %s/theirs belongs to uid %d"):format(directory, OTHER))
    refuses(directory .. "/theirs/state", ("%s/theirs above it belongs to uid %d"):format(directory, OTHER))
    refuses(directory .. "/link", ("%s/link is a symbolic link of uid %d"):format(directory, OTHER))
    run("chown -h 0 %s/link", directory) -- as systemd links /var/lib/toolgate
    daemon.start { config = config(directory .. "/link") }
  end)
end)

describe("the folder beside the socket", function()
  local function offers(name)
    local offer = process.write(directory .. "/offer.json", ('[{"name":"%s","inputSchema":{"type":"object"}}]'):format(name))
    return fixtures.serving("files", "offering", { OFFER = offer }, "start = 'lazy'")
  end

  local function names(gate)
    local found = {}
    for _, tool in ipairs(gate:connect():asks("tools/list", {}).tools) do found[#found + 1] = tool.name end
    return table.concat(found, " ")
  end

  it("has all but the list of pinned upstreams, and takes in what an earlier version left beside the socket", function()
    local socket = directory .. "/t.sock"
    process.write(socket .. ".quarantine", "")
    process.write(socket .. ".pins.json", '{"version":1}')
    run("mkdir -m 700 %s.upstreams", socket)
    local gate = daemon.start { socket = socket, config = offers "search" }
    assert.equal("search", names(gate))
    gate:logs(("state_moved from=%s.pins.json to=%s.state/pins.json"):format(socket, socket))
    local left = {}
    for name in io.popen("ls " .. directory):lines() do
      if name:find "^t%.sock" then left[#left + 1] = name end
    end
    assert.same({ "t.sock", "t.sock.pinned", "t.sock.state" }, left)
    assert.equal(tonumber("700", 8), mode(socket .. ".state"))
  end)

  it("has files that are not read if another user made them, and what their links name is not written", function()
    if not as_root() then return pending "needs root, to be another user" end
    local socket = directory .. "/t.sock"
    run("chmod 1777 %s", directory)
    local first = daemon.start { socket = socket, config = offers "search" }
    assert.equal("search", names(first))
    first:stop()
    -- The same files as the daemon writes, but another user's.
    run("sed -i s/search/planted/ %s.state/upstreams/files.tools.json && chown -R %d %s.state/upstreams", socket, OTHER, socket)
    process.write(directory .. "/precious", "precious")
    run("rm -f %s.state/pins.json && ln -s %s/precious %s.state/pins.json && chown -h %d %s.state/pins.json",
        socket, directory, socket, OTHER, socket)
    run("ln -s %s/precious %s.state/upstreams/files.tools.json.new", directory, socket)
    run("ln -s %s/precious %s.state/upstreams/files.tools.new", directory, socket)
    run("echo 0123456789abcdef x > %s.state/quarantine && chown %d %s.state/quarantine", socket, OTHER, socket)
    local gate = daemon.start { socket = socket, config = offers "search" }
    assert.equal("search", names(gate))
    assert.equal("precious", process.read(directory .. "/precious"))
    gate:logs "upstream_tools_ignored"
    gate:logs "quarantine_unavailable"
    gate:stop()
    run("rm -f %s.state/call-ids.key && head -c 16 /dev/zero > %s.state/call-ids.key && chown %d %s.state/call-ids.key",
        socket, socket, OTHER, socket)
    gate = daemon.start { socket = socket, config = offers "search" }
    gate:logs(('call_id_key_not_kept why="%s.state/call-ids.key: it belongs to uid %d, and is not used'):format(socket, OTHER))
  end)

  it("and the socket, which listens as soon as its file is there", function()
    if daemon.binary:find("build-san", 1, true) then return pending "cannot be preloaded before the sanitizers" end
    local library, socket = directory .. "/slow_listen.so", directory .. "/t.sock"
    assert.equal(0, (process.run { "cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", library,
                                   daemon.root .. "/tests/support/slow_listen.c", "-ldl" }))
    local child = process.start({ daemon.binary, "serve", "--socket", socket, "--policies", directory },
                                { environment = { LD_PRELOAD = library }, stderr = directory .. "/log" })
    process.eventually("the file is there", function() return os.execute("test -S " .. socket) == 0 end)
    local connection = client_of.connect(socket)
    child:signal(signal.SIGTERM)
    child:wait()
    assert.is_truthy(connection)
    connection:close()
    assert.equal("", io.popen("ls " .. directory .. " | grep 't.sock.[0-9]'"):read "*a")
  end)

  it("and the socket itself have their mode from the beginning", function()
    for _, given in ipairs { "0600", "0660", "0666" } do
      local gate = daemon.start { config = ("return { socket_mode = '%s' }"):format(given) }
      assert.equal(tonumber(given, 8), mode(gate.socket))
    end
  end)
end)
