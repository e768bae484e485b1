-- toolgate hook: the assistant says an event on stdin, and reads an answer, or nothing, on stdout. The events have the
-- shapes of Claude Code's hook reference (2026-09).
local cjson = require "cjson"

describe("toolgate hook", function()
  local gate, folder, uses
  before_each(function()
    gate, folder, uses = nil, process.directory(), 0
  end)

  local function serves()
    gate = daemon.start { policies = daemon.root .. "/policies/assistant" }
  end

  -- What the assistant reads (nil: nothing), the exit code, and stderr.
  local function hears(event, ...)
    local code, out, err = process.run({ daemon.binary, "hook", "--socket", gate and gate.socket or folder .. "/none", ... },
                                       { input = type(event) == "string" and event or cjson.encode(event),
                                         environment = { XDG_RUNTIME_DIR = folder } })
    return out ~= "" and cjson.decode(out) or nil, code, err
  end

  local function event(name, more)
    local it = { session_id = "5c3f", transcript_path = "/t.jsonl", cwd = "/home/me", permission_mode = "default",
                 hook_event_name = name }
    for key, value in pairs(more or {}) do it[key] = value end
    return it
  end

  local function before(tool, input, id)
    uses = uses + 1
    return event("PreToolUse", { tool_name = tool, tool_input = input, tool_use_id = id or ("toolu_%02d"):format(uses) })
  end
  local function after(pre, response)
    return event("PostToolUse", { tool_name = pre.tool_name, tool_input = pre.tool_input, tool_use_id = pre.tool_use_id,
                                  tool_response = response })
  end
  local function failed(pre, message)
    return event("PostToolUseFailure", { tool_name = pre.tool_name, tool_input = pre.tool_input,
                                         tool_use_id = pre.tool_use_id, error = message, is_interrupt = false })
  end

  local function decision(answer)
    local specific = answer.hookSpecificOutput
    assert.equal("PreToolUse", specific.hookEventName)
    return specific.permissionDecision, specific.permissionDecisionReason, specific.updatedInput
  end

  it("says nothing about a call that passes, so that the assistant's own prompt stays", function()
    serves()
    local answer, code = hears(before("Bash", { command = "ls", description = "List" }))
    assert.is_nil(answer)
    assert.equal(0, code)
  end)

  it("denies what a policy refuses, in words for the model", function()
    serves()
    local what, why = decision(hears(before("Write", { file_path = "/home/me/.env", content = "KEY=1" })))
    assert.equal("deny", what)
    assert.matches("holds secrets", why)
    assert.equal("deny", (decision(hears(before("Bash", { command = "toolgate pins accept x y" })))))
    assert.equal("deny", (decision(hears(before("WebFetch", { url = "http://169.254.169.254/", prompt = "?" })))))
  end)

  it("asks the user where a policy asks", function()
    serves()
    local what, why = decision(hears(before("Bash", { command = "rm -rf /srv/data" })))
    assert.equal("ask", what)
    assert.equal("This command deletes folders. Run it?", why) -- the user reads it, not the model
  end)

  it("reports a call that its user has allowed", function()
    serves()
    local pre = before("Bash", { command = "rm -rf /srv/data" })
    assert.equal("ask", (decision(hears(pre))))
    hears(after(pre, { stdout = "", stderr = "" }))
    process.eventually("it is recorded", function()
      local lines = process.whole_lines(gate.socket .. ".state/decisions.ndjson")
      return #lines == 2 and cjson.decode(lines[2]).method == "toolgate/report"
    end)
  end)

  it("asks with the corrected arguments where some were repaired", function()
    serves()
    local what, _, updated = decision(hears(before("Bash", { Command = "ls" })))
    assert.equal("ask", what)
    assert.same({ command = "ls" }, updated)
  end)

  it("tells Codex in words, which runs what it is told to ask about", function()
    serves()
    local what, why, updated = decision(hears(before("Bash", { command = "rm -rf x" }, "call_1")))
    assert.equal("deny", what)
    assert.matches("Ask the user first", why)
    assert.is_nil(updated)
    local id = assert(why:match "toolgate approve (%x+)", why)
    assert.equal(0, (process.run { daemon.binary, "approve", id, "--socket", gate.socket }))
    assert.is_nil(hears(before("Bash", { command = "rm -rf x" }, "call_2")), "what was approved passes")
    what, why, updated = decision(hears(before("Bash", { Command = "ls" }), "--client", "codex"))
    assert.equal("deny", what)
    assert.matches('{"command":"ls"}', why, 1, true)
    assert.is_nil(updated)
  end)

  it("knows a tool without a policy, and counts its calls", function()
    serves()
    local last
    for i = 1, 6 do
      local pre = before("mcp__tickets__get", { id = 7 })
      last = hears(pre)
      if last then break end
      local note = hears(after(pre, { content = { { type = "text", text = "ticket 7" } } }))
      if i == 2 then assert.matches("same result 2 times", note.hookSpecificOutput.additionalContext) end
    end
    local what, why = decision(last)
    assert.equal("deny", what)
    assert.matches("mcp__tickets__get", why)
  end)

  -- The same call until something but the note is heard: what was heard, and the other keys of the answer.
  local function repeats(tool, times, more)
    local heard = {}
    for i = 1, times do
      local pre = before(tool, { id = 7 })
      for key, value in pairs(more or {}) do pre[key] = value end
      heard[i] = hears(pre) or {}
      local specific = heard[i].hookSpecificOutput
      if not (specific and specific.permissionDecision) then
        local report = after(pre, "ticket 7")
        for key, value in pairs(more or {}) do report[key] = value end
        hears(report)
      end
    end
    return heard
  end

  it("ends Claude Code's run where the verdict is a halt", function()
    serves()
    local heard = repeats("mcp__tickets__get", 8)
    local last = heard[#heard]
    assert.is_false(last["continue"])
    assert.matches("^Stop%.", last.stopReason)
    assert.equal("deny", (decision(last)))
    for _, answer in ipairs(heard) do assert.equal(answer["continue"] == false, answer.stopReason ~= nil) end
  end)

  -- What Codex takes (0.153): any other key or decision is a failed hook, and the call runs.
  local function is_for_codex(answer)
    for key in pairs(answer) do assert.truthy(({ decision = 1, reason = 1, hookSpecificOutput = 1 })[key], key) end
    if answer.decision then
      assert.equal("block", answer.decision)
      assert.matches("%S", answer.reason)
    end
    local specific = answer.hookSpecificOutput or {}
    for key in pairs(specific) do
      local known = { hookEventName = 1, permissionDecision = 1, permissionDecisionReason = 1, additionalContext = 1 }
      assert.truthy(known[key], key)
    end
    if specific.hookEventName == "PreToolUse" then
      assert.equal("deny", specific.permissionDecision)
      assert.matches("%S", specific.permissionDecisionReason)
      assert.is_nil(specific.additionalContext)
    end
  end

  for label, more in pairs {
    ["names its turn"] = { turn_id = "t1" },
    ["names its turn, with an id of Anthropic's"] = { turn_id = "t1", tool_use_id = "toolu_x" },
    ["has an id of OpenAI's"] = { tool_use_id = "call_x" }, ["may be anybody's"] = { tool_use_id = "x-1" },
    ["has no id of the call"] = { tool_use_id = cjson.null } } do
    it("answers only what Codex takes to an event that " .. label, function()
      serves()
      local function says(it)
        for key, value in pairs(more) do it[key] = value end
        if more.tool_use_id and more.tool_use_id ~= cjson.null then it.tool_use_id = more.tool_use_id .. uses end
        return hears(it)
      end
      local denied = 0
      for _ = 1, 10 do
        local pre = before("mcp__tickets__get", { id = 7 })
        local answer = says(pre)
        if answer then
          is_for_codex(answer)
          denied = denied + 1
        else
          is_for_codex(says(after(pre, "ticket 7")) or {})
        end
      end
      assert.is_true(denied >= 4, denied)
      for _, input in ipairs { { command = "rm -rf /srv" }, { Command = "ls" }, { command = 3 }, {} } do
        is_for_codex(assert(says(before("Bash", input))))
      end
      daemon.stop_all()
      is_for_codex(assert(says(before("Bash", { command = "ls" }))))
    end)
  end

  it("asks Claude Code's user also where a model of another provider runs in it", function()
    serves()
    local pre = before("Bash", { command = "rm -rf /srv/data" }, "chatcmpl-tool-1")
    local what, why = decision(hears(pre))
    assert.equal("deny", what)
    assert.matches("toolgate approve %x+", why) -- else nobody could ever allow it
    pre.prompt_id = "p1"
    assert.equal("ask", (decision(hears(pre))))
    pre.prompt_id = nil
    assert.equal("ask", (decision(hears(pre, "--client", "claude"))))
  end)

  it("reports a result that is too large to be read as unread", function()
    serves()
    for i, response in ipairs { ("x"):rep(9000000), ("y"):rep(9000000), "[" .. ("1,"):rep(200000) .. "1]",
                                ("["):rep(300) .. ("]"):rep(300) } do
      local pre = before("mcp__tickets__get", { id = 7 })
      assert.is_nil(hears(pre), "another result is no loop")
      local report = cjson.encode(after(pre, "HERE")):gsub('"HERE"', function()
        return i <= 2 and '"' .. response .. '"' or response
      end)
      local _, code = hears(report)
      assert.equal(0, code)
      local history = gate:connect():asks("toolgate/session", { session = "5c3f" }).history
      assert.equal(i, #history)
      for _, call in ipairs(history) do assert.equal("ok", call.class) end
    end
  end)

  it("counts the calls of one message as one step where the assistant says that they have ended", function()
    serves()
    local function steps()
      local seen = {}
      for _, call in ipairs(gate:connect():asks("toolgate/session", { session = "5c3f" }).history) do
        seen[#seen + 1] = call.step
      end
      return table.concat(seen, " ")
    end
    local function runs(...)
      for _, path in ipairs { ... } do
        local pre = before("Read", { file_path = path })
        hears(pre)
        hears(after(pre, path))
      end
    end
    local function ends() assert.is_nil(hears(event("PostToolBatch", { tool_calls = {} }))) end
    runs("a", "b") -- it may be an assistant that never says so
    assert.equal("1 2", steps())
    ends()
    runs("c", "d")
    ends()
    runs("e", "f")
    hears(event("UserPromptSubmit", { prompt = "stop that" })) -- the user interrupted: nobody says that they have ended
    runs "g"
    assert.equal("1 2 3 3 4 4", steps():sub(1, -3))
    assert.not_equal("4", steps():sub(-1))
  end)

  it("says that attempts run out though each call has an id of its own", function()
    serves()
    for i = 1, 6 do
      local what, why = decision(hears(before("Bash", { description = "try " .. i })))
      assert.equal("deny", what)
      if i <= 2 then
        assert.matches(i == 1 and "2 attempts left" or "1 attempt left", why, 1, true)
      else
        assert.is_nil(why:find "[1-9] attempts? left", why)
      end
    end
    assert.is_nil(hears(before("Bash", { command = "ls" })), "a right call still passes")
  end)

  it("refuses the same failing command again, and quotes what it failed with", function()
    serves()
    local last
    for _ = 1, 6 do
      local pre = before("Bash", { command = "make all" })
      last = hears(pre)
      if last and last.hookSpecificOutput.permissionDecision then break end
      hears(failed(pre, "make: *** No rule to make target 'all'.  Stop."))
    end
    local what, why = decision(last)
    assert.equal("deny", what)
    assert.matches("No rule to make target", why, 1, true)
  end)

  it("counts no call that the user interrupted", function()
    serves()
    for _ = 1, 4 do
      local pre = before("Bash", { command = "make all" })
      assert.is_nil(hears(pre))
      local it = failed(pre, "[Request interrupted by user for tool use]")
      it.is_interrupt = true
      assert.is_nil(hears(it))
    end
    for _, call in ipairs(gate:connect():asks("toolgate/session", { session = "5c3f" }).history) do
      assert.equal("cancelled", call.class)
    end
  end)

  it("begins a turn with the user's prompt, which is the goal", function()
    serves()
    local answer, code = hears(event("UserPromptSubmit", { prompt = "Tidy up the build folder" }))
    assert.is_nil(answer)
    assert.equal(0, code)
    hears(before("Bash", { command = "ls" }))
    hears(event("UserPromptSubmit", { prompt = ("x"):rep(20000) }))
    hears(before("Bash", { command = "ls -l" }))
    local session = gate:connect():asks("toolgate/session", { session = "5c3f" })
    assert.equal(2, session.turn)
  end)

  -- Passes everything, and keeps what it was asked.
  local RECORDER = [[
import json, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(8)
while True:
    one, _ = listener.accept()
    for line in one.makefile("rb"):
        with open(sys.argv[2], "ab") as asked: asked.write(line)
        one.sendall(b'{"jsonrpc":"2.0","id":%d,"result":{"verdict":"pass"}}\n' % json.loads(line)["id"])
]]

  it("tells the daemon who calls, that a person began a turn, and that the model has forgotten what it had read", function()
    local recorder = process.start({ "python3", "-c", RECORDER, folder .. "/none", folder .. "/asked" }, {})
    process.eventually("it listens", function() return os.rename(folder .. "/none", folder .. "/none") end)
    local function asked(it)
      process.write(folder .. "/asked", "")
      assert.equal(0, select(2, hears(it)))
      local lines = process.whole_lines(folder .. "/asked")
      return #lines > 0 and cjson.decode(lines[#lines]) or {}
    end
    local pre = before("Read", { file_path = "a" })
    assert.is_nil(asked(pre).params._meta["dev.toolgate/agent"])
    pre.agent_id = "a17"
    local meta = asked(pre).params._meta
    assert.equal("a17", meta["dev.toolgate/agent"])
    assert.equal("5c3f", meta["dev.toolgate/session"])
    assert.equal(pre.tool_use_id, meta["dev.toolgate/call"])
    assert.equal(pre.tool_use_id, meta["dev.toolgate/step"])
    local turn = asked(event("UserPromptSubmit", { prompt = "go on" }))
    assert.equal("toolgate/turn", turn.method)
    assert.equal("person", turn.params.by)
    assert.equal("go on", turn.params.goal)
    assert.is_nil(turn.params.compacted)
    assert.is_nil(asked(event("UserPromptSubmit", { prompt = "go on", agent_id = "a17" })).method) -- no person's
    for source, method in pairs { compact = "toolgate/turn", clear = "toolgate/turn", startup = false, resume = false,
                                  fork = false } do
      local said = asked(event("SessionStart", { source = source }))
      assert.equal(method, said.method or false, source)
      if method then
        assert.is_true(said.params.compacted)
        assert.is_nil(said.params.by)
      end
    end
    assert.is_true(asked(event("PreCompact", { trigger = "auto", custom_instructions = cjson.null })).params.compacted)
    recorder:signal(9)
    recorder:wait()
  end)

  it("writes the decision log with the assistant's session and its own id of the call", function()
    serves()
    local pre = before("Bash", { command = "ls" })
    hears(pre)
    hears(after(pre, { stdout = "a", stderr = "" }))
    local records = process.eventually("both are recorded", function()
      local list = {}
      for _, line in ipairs(process.whole_lines(gate.socket .. ".state/decisions.ndjson")) do
        list[#list + 1] = cjson.decode(line)
      end
      return #list >= 2 and list
    end)
    assert.equal("5c3f", records[1].session)
    assert.equal(pre.tool_use_id, records[1].label)
    assert.equal("toolgate/report", records[2].method)
    assert.equal(records[1].decision_id, records[2].decision_id)
  end)

  it("reports nothing for a call that it has not checked", function()
    serves()
    local answer, code = hears(after(before("Bash", { command = "ls" }), { stdout = "" }))
    assert.is_nil(answer)
    assert.equal(0, code)
  end)

  for given, wanted in pairs { ask = "ask", deny = "deny" } do
    it("means " .. wanted .. " while no daemon answers, with --on-unavailable " .. given, function()
      local answer, code, err = hears(before("Bash", { command = "ls" }), "--on-unavailable", given)
      assert.equal(wanted, (decision(answer)))
      assert.equal(0, code)
      assert.matches("toolgate hook: ", err)
    end)
  end

  it("says what kept the daemon from checking the call", function()
    serves()
    local what, why = decision((hears(before("Bash", { command = ("x"):rep(9000000) }))))
    assert.equal("ask", what)
    assert.truthy(why:find("has not checked this one", 1, true) and why:find("limits.message", 1, true), why)
  end)

  it("asks while no daemon answers if nothing is said, and lets the user's prompt through", function()
    assert.equal("ask", (decision(hears(before("Bash", { command = "ls" })))))
    assert.is_nil((hears(before("Bash", { command = "ls" }), "--on-unavailable", "allow")))
    local answer, code = hears(event("UserPromptSubmit", { prompt = "x" }))
    assert.is_nil(answer)
    assert.equal(0, code)
  end)

  it("blocks what is no event, with the reason on stderr", function()
    serves()
    for given, why in pairs { ["{"] = "stdin", ["[]"] = "hook_event_name", ["{}"] = "hook_event_name",
                              ['{"hook_event_name":"PreToolUse"}'] = "session_id",
                              ['{"hook_event_name":"PreToolUse","session_id":"s"}'] = "tool_name",
                              ['{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"T","tool_input":3}'] =
                                "tool_input" } do
      local answer, code, err = hears(given)
      assert.is_nil(answer, given)
      assert.equal(2, code, given)
      assert.truthy(err:find(why, 1, true), given .. ": " .. err)
    end
  end)

  it("follows no link that another user planted for its calls", function()
    serves()
    os.execute(("mkdir '%s/elsewhere' && ln -s elsewhere '%s/toolgate-hook'"):format(folder, folder))
    local _, code, err = hears(before("Bash", { command = "ls" }))
    assert.equal(0, code)
    assert.matches("cannot be reported", err)
    assert.equal(0, #(io.popen(("ls '%s/elsewhere'"):format(folder)):read "*a"))
  end)

  local function installed(...)
    local out = process.runs { daemon.binary, "hook", "--install", ... }
    return cjson.decode(out).hooks
  end

  it("prints what belongs into the assistant's settings", function()
    local hooks = installed("--socket", "/run/x.sock")
    for _, name in ipairs { "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "UserPromptSubmit",
                            "PreCompact", "SessionStart" } do
      assert.matches("toolgate hook %-%-socket /run/x.sock$", hooks[name][1].hooks[1].command)
      assert.equal("command", hooks[name][1].hooks[1].type)
      assert.equal(name == "PreToolUse" and "block" or nil, hooks[name][1].hooks[1].onFailure)
      assert.is_nil(hooks[name][1].onFailure) -- there it would do nothing
    end
    assert.equal("*", hooks.PreToolUse[1].matcher)
    assert.is_nil(hooks.UserPromptSubmit[1].matcher)
  end)

  it("prints for Codex what Codex knows", function()
    local hooks, names = installed("--client", "codex"), {}
    for name, groups in pairs(hooks) do
      names[#names + 1] = name
      for key in pairs(groups[1].hooks[1]) do assert.truthy(("type command timeout"):find(key, 1, true), key) end
      assert.matches("%-%-client codex$", groups[1].hooks[1].command)
    end
    table.sort(names)
    assert.same({ "PostToolUse", "PreCompact", "PreToolUse", "SessionStart", "UserPromptSubmit" }, names)
  end)

  it("prints for gemini-cli its own events, with milliseconds", function()
    local hooks, names = installed("--client", "gemini"), {}
    for name, groups in pairs(hooks) do
      names[#names + 1] = name
      assert.equal(10000, groups[1].hooks[1].timeout)
      assert.is_nil(groups[1].hooks[1].onFailure)
    end
    table.sort(names)
    assert.same({ "AfterTool", "BeforeAgent", "BeforeTool", "PreCompress", "SessionStart" }, names)
    assert.equal(".*", hooks.BeforeTool[1].matcher)
  end)

  -- gemini-cli gives a call no id.
  local function gemini(name, more)
    return { session_id = "5c3f", transcript_path = "/t.json", cwd = "/home/me", timestamp = "2026-11-27T10:00:00Z",
             hook_event_name = name, tool_name = more.tool_name, tool_input = more.tool_input, prompt = more.prompt,
             tool_response = more.tool_response, trigger = more.trigger }
  end

  it("speaks gemini-cli's events, and ends its run where the verdict is a halt", function()
    serves()
    local call = { tool_name = "mcp_tickets_get", tool_input = { id = 7 } }
    local result = { tool_name = call.tool_name, tool_input = call.tool_input,
                     tool_response = { llmContent = "ticket 7", returnDisplay = "Ticket 7" } }
    assert.is_nil(hears(gemini("BeforeAgent", { prompt = "What is ticket 7?" })))
    local denied, halted, noted
    for _ = 1, 8 do
      local answer, code, words = hears(gemini("BeforeTool", call), "--client", "claude")
      assert.equal(0, code, words)
      if answer then
        assert.equal("deny", answer.decision)
        assert.matches("mcp_tickets_get", answer.reason)
        denied, halted = true, halted or answer["continue"] == false and answer.stopReason
      else
        local note = hears(gemini("AfterTool", result))
        noted = noted or note and note.hookSpecificOutput.additionalContext
      end
    end
    assert.matches("same result 2 times", noted)
    assert.truthy(denied)
    assert.matches("^Stop%.", halted)
    assert.is_nil(hears(gemini("PreCompress", { trigger = "auto" })))
    assert.is_nil((hears(gemini("BeforeTool", call))), "the model has forgotten what it had read")
  end)

  it("judges gemini-cli's shell and editors by the shipped policies", function()
    gate = daemon.start { policies = daemon.root .. "/policies/assistant" }
    for tool, input in pairs { run_shell_command = { command = "git push -f" }, write_file = { file_path = ".env", content = "" },
                               replace = { file_path = "C:\\project\\.env", old_string = "a", new_string = "b" } } do
      local answer = hears(gemini("BeforeTool", { tool_name = tool, tool_input = input }))
      assert.equal("deny", answer and answer.decision, tool)
    end
  end)

  it("tells gemini-cli's model what a policy asks, and reports a failure as one", function()
    serves()
    local call = { tool_name = "Bash", tool_input = { command = "rm -rf x" } }
    local answer = hears(gemini("BeforeTool", call))
    assert.equal("deny", answer.decision)
    assert.matches("Ask the user first", answer.reason)
    assert.is_nil(answer.hookSpecificOutput)
    local fails = { tool_name = "mcp_db_query", tool_input = { q = 1 } }
    assert.is_nil(hears(gemini("BeforeTool", fails)))
    fails.tool_response = { llmContent = "no", error = { message = "the disk is full", type = "x" } }
    hears(gemini("AfterTool", fails))
    local last
    for _ = 1, 3 do last = hears(gemini("BeforeTool", { tool_name = "mcp_db_query", tool_input = { q = 1 } })) or last end
    assert.matches("the disk is full", last.reason)
  end)

  it("lets events of gemini-cli pass that it does not need", function()
    for _, name in ipairs { "AfterAgent", "BeforeModel", "AfterModel", "BeforeToolSelection", "SessionEnd", "Notification" } do
      local answer, code, words = hears(gemini(name, {}))
      assert.is_nil(answer)
      assert.equal(0, code, name .. words)
    end
    assert.equal(2, (select(2, hears(gemini("BeforeTol", {})))))
  end)

  it("prints a command that sh reads as it was meant", function()
    local odd = folder .. "/it's a $(place) \"of\" `mine`;&\\"
    os.execute(("mkdir '%s'"):format((odd:gsub("'", "'\\''"))))
    local program = odd .. "/tool gate"
    os.execute(("cp '%s' '%s'"):format(daemon.binary, (program:gsub("'", "'\\''"))))
    local _, out = process.run { program, "hook", "--install", "--socket", odd .. "/s", "--on-unavailable", "deny" }
    local command = cjson.decode(out).hooks.PreToolUse[1].hooks[1].command
    local answer = process.runs({ "sh", "-c", command }, { input = cjson.encode(before("Bash", { command = "ls" })) })
    assert.equal("deny", (decision(cjson.decode(answer)))) -- there is no daemon; the options were kept
    local _, words = process.run { "sh", "-c", "printf '%s|' " .. command }
    assert.equal(table.concat({ program, "hook", "--socket", odd .. "/s", "--on-unavailable", "deny", "" }, "|"), words)
  end)
end)
