-- The built-in tools of coding assistants have effects without a policy, and what destroys by annotation alone has the
-- budget of a write.

local function definition(name, annotations)
  return { name = name, description = name .. ".", annotations = annotations,
           inputSchema = { type = "object", additionalProperties = true, properties = { x = { type = "string" } } } }
end

describe("a tool that coding assistants have built in", function()
  local client

  before_each(function()
    client = daemon.start { tools = json.encode {
      definition "Edit", definition "Bash", definition "TodoWrite", definition "update_plan", definition "KillShell",
      definition "tidy_up", definition "Read", definition "create_file", definition "wait",
      definition "scroll_down", definition "browser_press_key", definition "file_bug",
      { name = "run_in_tab", description = "Runs.", inputSchema = { type = "object", properties = {
        command = { type = "string" }, description = { type = "string" }, timeout = { type = "integer" } } } },
      definition("press_key", { destructiveHint = true }), definition("delete_row", { destructiveHint = true }) } }:connect()
  end)

  -- Checked and, if it may run, reported as done: "pass", or the code of the refusal.
  local function does(name, x, result)
    local place = session("s", { turn = 1 })
    local checked = client:checks(name, { x = x }, place)
    if checked.verdict ~= "pass" then return checked.code end
    client:asks("toolgate/report", { callId = checked.callId, name = name, arguments = { x = x }, result = result or "done",
                                     _meta = place })
    return "pass"
  end

  local function three_times(name, between)
    local said = {}
    for i = 1, 3 do
      said[i] = does(name, "a")
      between(i)
    end
    return table.concat(said, " ")
  end

  it("edits again after a shell's success, another write does not", function()
    local function shell(i) does("Bash", "make " .. i) end
    assert.equal("pass pass pass", three_times("Edit", shell))
    assert.equal("pass pass same_call", (three_times("create_file", shell):gsub("loop", "same_call")))
  end)

  it("keeps a list or reads without being a reason to write again", function()
    for _, name in ipairs { "TodoWrite", "update_plan", "Read", "wait" } do
      local n = 0
      local function note()
        n = n + 1
        does(name, name .. n)
      end
      local said = {}
      for i = 1, 3 do
        said[i] = does("Edit", name)
        note()
      end
      assert.equal("refused", said[3] == "pass" and "pass" or "refused", name)
    end
  end)

  it("has them in the list, unless its name is unknown", function()
    local guessed = client:asks("toolgate/tools").guessed_effects
    local by = {}
    for _, name in ipairs { "Edit", "Read", "TodoWrite", "KillShell", "tidy_up" } do by[name] = guessed[name] or "" end
    assert.same({ Edit = "write", Read = "read", TodoWrite = "read", KillShell = "", tidy_up = "" }, by)
  end)

  it("by annotation alone has a write's budget, and another key re-arms it; a name that deletes has none", function()
    local said = {}
    for i = 1, 4 do
      said[i] = does("press_key", "ArrowDown", "moved " .. i)
      does("press_key", "Enter" .. i)
    end
    assert.equal("pass pass pass pass", table.concat(said, " "))
    assert.equal("pass same_call", does("delete_row", "1") .. " " .. does("delete_row", "1"))
  end)

  it("may repeat a step up to loop.poll.max, also one that is known by its verb", function()
    for _, name in ipairs { "scroll_down", "browser_press_key" } do
      for i = 1, 8 do assert.equal("pass", does(name, "ArrowDown"), name .. " " .. i) end
    end
  end)

  it("makes the same call whatever label a command has, and whatever time limit", function()
    local function runs(name, i)
      local place = session("labels", { turn = 1 })
      local arguments = { command = "echo noop", description = "Try " .. i, timeout = i }
      local checked = client:checks(name, arguments, place)
      if checked.verdict ~= "pass" then return checked.verdict end
      client:asks("toolgate/report", { callId = checked.callId, name = name, arguments = arguments, result = "noop",
                                       _meta = place })
    end
    for _, name in ipairs { "Bash", "run_in_tab" } do
      local stopped
      for i = 1, 6 do stopped = stopped or runs(name, i) end
      assert.truthy(stopped, name)
    end
    for i = 1, 6 do assert.equal("pass", client:checks("file_bug", { description = "Bug " .. i }, session "s").verdict) end
  end)

  it("is in toolgate words --tools", function()
    local out = process.runs { daemon.binary, "words", "--tools" }
    for _, name in ipairs { "Edit", "TodoWrite", "apply_patch", "exec_command" } do
      assert.truthy(out:find("\n" .. name .. "\n", 1, true), name)
    end
  end)
end)
