-- What a server's process wrote last says why it is not there: in status, doctor and the refusal, as a field of its own.

local SECRET = "hunter2-and-more"

describe("what a server wrote last", function()
  -- `script`: of sh, which stands for the server.
  local function serves(script, more)
    return daemon.start { late = true,
      environment = { TOOLGATE_SPEC_SECRET = SECRET },
      config = ([==[return { upstreams = { ill = { command = "sh", args = { "-c", [[%s]] },
                                                   env = { GIVEN = "${TOOLGATE_SPEC_SECRET}" }, %s } } }]==])
        :format(script, more or ""),
      policies = { ["look.lua"] = [[
return tool "look" { upstream = "ill/look", effects = "read", schema = { type = "object" } }]] } }
  end

  local function upstream(gate)
    return gate:status().upstreams[1]
  end

  local function printed(gate, command)
    local _, out, err = process.run { daemon.binary, command, "--socket", gate.socket }
    return out .. err
  end

  it("is shown while it starts", function()
    local gate = serves "echo fetched 3 of 9 packages >&2; exec sleep 1000"
    process.eventually("it has written", function() return upstream(gate).last_stderr == "fetched 3 of 9 packages" end)
    assert.equal("starting", upstream(gate).state)
    assert.truthy(printed(gate, "status"):find("it wrote last: fetched 3 of 9 packages", 1, true))
    assert.truthy(printed(gate, "doctor"):find("it wrote last: fetched 3 of 9 packages", 1, true))
    local missing = "1 server is starting: ill (it wrote last: fetched 3 of 9 packages)"
    assert.truthy(printed(gate, "tools"):find(missing, 1, true), printed(gate, "tools"))
  end)

  it("stays when it was too slow, and a call of its tool says it", function()
    local gate = serves("echo waiting for the database >&2; exec sleep 1000", "start_timeout = 1")
    process.eventually("it was too slow", function()
      return (upstream(gate).last_error or ""):find("not ready within", 1, true)
    end)
    process.eventually("its words are kept", function() return upstream(gate).last_stderr == "waiting for the database" end)
    assert.truthy(printed(gate, "status"):find("waiting for the database", 1, true))
  end)

  it("is in the refusal and in status when it is down, without its secrets", function()
    local gate = serves("echo hello >&2; echo fatal: no table for $GIVEN >&2; exit 3")
    local result = gate:connect():calls("look", { q = 1 })
    assert.equal("unavailable", verdict(result).error_class)
    assert.equal("fatal: no table for ***", verdict(result).last_stderr)
    golden.check("feedback", "upstream: it is down, with what it wrote last", text(result), { ["%d+ s;"] = "<n> s;",
      ["in %d+ s%."] = "in <n> s." })
    assert.equal("fatal: no table for ***", upstream(gate).last_stderr)
    assert.is_nil(gate:log():find(SECRET, 1, true))
  end)

  it("has no secret that its entry has written out, as files of other clients do", function()
    local gate = daemon.start { config = ([[return { upstreams = { a = { command = "sh", env = { API_KEY = "%s" },
      args = { "-c", "echo Error: bad key $API_KEY, bad token $1 >&2; exit 1", "sh", "--token=%s" } } } }]])
      :format(SECRET, SECRET) }
    process.eventually("it failed", function() return upstream(gate).last_stderr end)
    assert.equal("Error: bad key ***, bad token --token=***", upstream(gate).last_stderr)
    assert.is_nil((gate:log() .. printed(gate, "doctor")):find(SECRET, 1, true))
  end)

  it("names the variable that is missing, although the entry names it as well", function()
    local gate = daemon.start { config = [[return { upstreams = { a = { command = "sh",
      args = { "-c", "echo Error: GITHUB_TOKEN is not set >&2; exit 1", "sh", "run", "-e", "GITHUB_TOKEN" } } } }]] }
    process.eventually("it failed", function() return upstream(gate).last_stderr end)
    assert.equal("Error: GITHUB_TOKEN is not set", upstream(gate).last_stderr)
  end)

  it("is in the answer to the call in which it died", function()
    local gate, client = daemon.open { config = fixtures.serving("fake", "fake_upstream", {}) }
    process.eventually("it is up", function() return upstream(gate).state == "up" end)
    local result = client:calls("do", { how = "exit", words = "panic: index out of range" })
    assert.equal("crashed", verdict(result).code)
    assert.equal("ValueError: panic: index out of range", verdict(result).last_stderr)
    local _, count = text(result):gsub("panic: index", "")
    assert.equal(1, count, text(result))
  end)

  it("names the folder of a corrupt npx cache", function()
    local gate = serves [=[echo "Error: Cannot find module '/root/.npm/_npx/3f0a/node_modules/zod/v4'" >&2; exit 1]=]
    process.eventually("it failed", function() return upstream(gate).last_stderr end)
    assert.truthy(printed(gate, "doctor"):find("rm -r /root/.npm/_npx/3f0a\n", 1, true), printed(gate, "doctor"))
  end)

  it("names a folder that a server made up as one word of the shell", function()
    local gate = serves [=[echo 'Cannot find module /home$(true)/_npx/3f0a' >&2; exit 1]=]
    process.eventually("it failed", function() return upstream(gate).last_stderr end)
    assert.truthy(printed(gate, "doctor"):find("rm -r '/home$(true)/_npx/3f0a'\n", 1, true), printed(gate, "doctor"))
  end)
end)
