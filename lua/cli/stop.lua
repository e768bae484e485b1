-- toolgate stop: ends the user's own daemon, as SIGTERM does.
local own = require "own_daemon"

local STOP_MS = 15000 -- calls finish for up to 5 s, then upstreams are stopped for up to 5 s

-- Also one whose parent has not asked for its end yet.
local function has_ended(pid)
  local words = cli.file("/proc/" .. pid .. "/stat")
  return not words or words:find("%) [ZX] ") ~= nil
end

return command {
  name = "stop", summary = "end the user's own daemon",
  about = [[
Sends SIGTERM to the daemon: it lets calls in flight finish and stops its upstreams. Waits for its end.
What has no daemon starts it again where it may: `toolgate connect`, `toolgate hook`. A daemon of systemd
is ended by `systemctl`.]],
  exits = [[
  0  it has ended
  1  none listens there
  2  it does not end, or belongs to another user]],
  example = "  toolgate stop",
  options = { socket },
  run = function(o)
    local path = o.socket or cli.default_socket()
    local why = cli.connect(path)
    if why then
      io.write(("no daemon listens at %s\n"):format(path))
      return 1
    end
    local pid = tonumber(rpc(o, "toolgate/status").pid)
    if not pid then fail("the daemon at %s does not say its process id", path) end
    local sent, error = cli.terminate(pid)
    if not sent then fail("process %d at %s: %s", pid, path, error) end
    if not own.wait(function() return has_ended(pid) end, STOP_MS) then
      fail("process %d at %s has not ended after %d s", pid, path, STOP_MS / 1000)
    end
    io.write(("the daemon at %s (process %d) has ended\n"):format(path, pid))
  end,
}
