-- A result that says that something is under way makes the same call a poll: of a tool that reads, of a known poll, and of a
-- shell command that shows how far something is; never of a tool that may write.

local function definition(name, reads)
  return { name = name, description = name .. ".", annotations = reads and { readOnlyHint = true } or nil,
           inputSchema = { type = "object", additionalProperties = true } }
end

describe("a call whose last result says that something is under way", function()
  local client

  before_each(function()
    client = daemon.start { tools = json.encode {
      definition("get_job", true), definition "submit_transfer", definition "Bash", definition "shell", definition "wait",
      definition "send_mail", definition("get_order", true) } }:connect()
  end)

  local function does(name, arguments, result)
    local place = session("s", { turn = 1 })
    local checked = client:checks(name, arguments, place)
    if checked.verdict ~= "pass" then return checked.code, checked.verdict, checked.text end
    local reported = client:asks("toolgate/report", { callId = checked.callId, name = name, arguments = arguments,
                                                      result = result, _meta = place })
    return "pass", "pass", reported.advice or ""
  end

  -- How many of so many calls passed, and the last code, verdict and text.
  local function passes(count, name, arguments, result)
    local passed, code, verdict, said = 0, nil, nil, nil
    for i = 1, count do
      code, verdict, said = does(name, arguments, type(result) == "function" and result(i) or result)
      assert.not_equal("halt", code == "poll_budget" and verdict or "")
      if code == "pass" then passed = passed + 1 end
    end
    return passed, code, verdict, said
  end

  local UNDER_WAY = {
    { "get_job", { id = 1 }, { status = "running" } },
    { "get_job", { id = 2 }, { job = { id = 2, State = "In Progress" } } },
    { "get_job", { id = 3 }, '{"build_status": "QUEUED", "queue": 4}' },
    { "get_job", { id = 4 }, "Job 4 is still running." },
    { "get_job", { id = 5 }, "Name: nightly\nStatus: in progress\n" },
    { "wait", { id = 6 }, "nothing yet" },
    { "Bash", { command = "sleep 20 && ls out" }, "12/40 files" },
    { "Bash", { command = "cd /srv && kubectl get pods" }, "web-1   0/1   ContainerCreating   0   3s" },
    { "Bash", { command = "cd /srv/deployments && cd app; kubectl get pods" }, "web-1   0/1   ContainerCreating   0   3s" },
    { "Bash", { command = "gh run view 7", description = "See the run" }, "* main CI in progress" },
    { "Bash", { command = "tail -n 3 train.log" }, "epoch 3: 45 % done" },
    { "Bash", { command = "squeue --me" }, "JOBID PARTITION NAME USER ST TIME\n 71 gpu train me PD 0:00" },
    { "Bash", { command = "docker logs job" }, { stdout = "Building\n3/10 layers", stderr = "", interrupted = false } },
    { "shell", { command = { "tail", "-f", "log" } }, { output = "a\nPending\n", metadata = { exit_code = 0 } } },
    { "shell", { command = { "bash", "-lc", "sleep 5; cat state" } }, "state: pending" },
  }
  for _, case in ipairs(UNDER_WAY) do
    it("may be made up to loop.poll.max: " .. case[1] .. " " .. json.encode(case[2]), function()
      local passed, code, verdict, said = passes(26, case[1], case[2], case[3])
      assert.same({ 20, "poll_budget", "refuse" }, { passed, code, verdict })
      assert.truthy(said:find("25 times", 1, true) and said:find("20 s", 1, true), said) -- the count, and the wait
    end)
  end

  local NOT = {
    { "submit_transfer", { to = "a" }, { status = "pending" } },
    { "send_mail", { to = "a" }, { state = "queued" } },
    { "get_job", { id = 1 }, { status = "done" } },
    { "get_job", { id = 2 }, "The service was running; status: stopped." },
    { "get_order", { q = "open" }, { { id = 1, status = "pending" }, { id = 2, status = "pending" } } },
    { "get_job", { id = 3 }, "3/10 files at 40 %" },
    { "Bash", { command = "make test" }, "status: running" },
    { "Bash", { command = "tailor --fit" }, "3/10" },
    { "Bash", { command = "tail app.log" }, "2026/11/27 10/10 tests, 100 %, src/3/4" },
  }
  for _, case in ipairs(NOT) do
    it("is a loop otherwise: " .. case[1] .. " " .. json.encode(case[2]), function()
      local passed, code = passes(8, case[1], case[2], case[3])
      assert.is_true(passed <= 2, passed)
      assert.not_equal("poll_budget", code)
    end)
  end

  it("reads how long to wait from the second time on", function()
    local _, _, first = does("get_job", { id = 1 }, { status = "running" })
    assert.is_nil(first:find("20 s", 1, true))
    local _, _, second = does("get_job", { id = 1 }, { status = "running" })
    assert.truthy(second:find("2 times", 1, true) and second:find("20 s", 1, true), second)
    assert.is_nil(second:find("Use the result", 1, true))
  end)

  it("is over when the result says so", function()
    local said = {}
    for i = 1, 12 do said[i] = does("get_job", { id = 1 }, { status = i > 8 and "done" or "processing" }) end
    assert.equal(("pass "):rep(10) .. "loop loop", table.concat(said, " "))
  end)

  it("says as much where the gateway runs the tool itself", function()
    local agent = daemon.start { policies = { ["job.lua"] = [==[
-- job: how far a job is. For specs.
return tool "job" { description = "How far.", effects = "read", schema = params { n = int "Which" },
  run = function(args) return { n = args.n, status = "running" } end }
]==] } }:connect()
    for i = 1, 20 do
      local result = agent:calls("job", { n = 1 }, session("s", { turn = 1 }))
      assert.is_nil(client_of.verdict(result) and client_of.verdict(result).code, i)
      assert.equal(i > 1, text(result):find("still under way", 1, true) ~= nil, text(result))
      if i == 3 then golden.check("feedback", "polls: the third", text(result)) end
    end
    local refused = agent:calls("job", { n = 1 }, session("s", { turn = 1 }))
    local said = client_of.verdict(refused)
    golden.check("feedback", "polls: refused", text(refused))
    assert.same({ "refuse", "poll_budget" }, { said.verdict, said.code })
  end)
end)
