-- toolgate replay --mine: the sessions that this user's assistants keep below HOME.
local json = require("client").json
local recordings = require "recordings"

local SAMPLES = "tests/support/recordings/"

describe("toolgate replay --mine", function()
  local home

  before_each(function() home = process.directory() end)

  local function put(sample, path)
    os.execute(("mkdir -p '%s/%s'"):format(home, path:match "^(.*)/"))
    return process.write(home .. "/" .. path, process.read(SAMPLES .. sample))
  end

  local function mine(...)
    local argv = { "env", "HOME=" .. home, daemon.binary, "replay", "--mine", "--json", ... }
    local code, out, err = process.run(argv)
    return code, out ~= "" and json.decode(out) or nil, err
  end

  it("finds the sessions of each assistant, and says what it found", function()
    put("claude_code.jsonl", ".claude/projects/-home-ada/s-1.jsonl")
    put("codex.jsonl", ".codex/sessions/2026/11/02/rollout-1.jsonl")
    put("gemini_cli.jsonl", ".gemini/tmp/p/chats/session-1.jsonl")
    put("cline.api_conversation_history.json",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json")
    put("goose.jsonl", ".local/share/goose/sessions/old.jsonl")
    local code, report, err = mine()
    assert.equal(0, code, err)
    assert.same({ 10, {} }, { report.calls, report.skipped })
    local found = {}
    for _, entry in ipairs(report.found) do found[entry.assistant] = entry.files end
    assert.same({ ["Claude Code"] = 1, Codex = 1, ["gemini-cli"] = 1, Cline = 1, goose = 1 }, found)
    for assistant in pairs(found) do assert.truthy(err:find(assistant, 1, true), err) end
  end)

  it("says what of a database cannot be read, and reads the rest", function()
    process.write(home .. "/make.py", [[
import json, sqlite3, sys, time
path = sys.argv[1] + "/sessions.db"
goose = sqlite3.connect(path)
goose.execute("CREATE TABLE messages (session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER)")
for i in range(200):
    call = [{"type": "toolRequest", "id": str(i), "toolCall": {"status": "success", "value": {"name": "t", "arguments": {}}}}]
    goose.execute("INSERT INTO messages VALUES ('s', 'assistant', ?, ?)", (json.dumps(call) + " " * 1000, int(time.time())))
goose.commit()
goose.close()
data = bytearray(open(path, "rb").read())
data[len(data) // 2:] = bytes(len(data) - len(data) // 2)
open(path, "wb").write(data)
]])
    assert.equal(0, (process.run { "python3", home .. "/make.py", home }))
    local code, report, err = recordings.replay(home .. "/sessions.db")
    assert.equal(0, code, err)
    assert.truthy(report.calls > 10 and report.calls < 200, tostring(report.calls))
    assert.truthy(err:find("SQLite: ", 1, true), err)
  end)

  it("reads no links, pipes or older sessions, and names what it cannot read", function()
    put("claude_code.jsonl", ".claude/projects/p/new.jsonl")
    put("claude_code.jsonl", ".claude/projects/p/old.jsonl")
    put("claude_code.jsonl", ".local/share/goose/sessions/sessions.db")
    os.execute(("cd '%s/.claude/projects/p' && touch -d '60 days ago' old.jsonl && mkfifo pipe.jsonl && "
                .. "ln -s /etc/passwd link.jsonl && ln -s . loop"):format(home))
    local code, report, err = mine()
    assert.equal(0, code, err)
    assert.same({ 2, {} }, { report.calls, report.skipped })
    assert.same({ 1, 1, 3 }, { report.found[1].files, report.found[1].older, report.found[1].left_out })
    assert.truthy(err:find("3 left out: links, pipes", 1, true), err)
    assert.same({ "goose", 1 }, { report.found[2].assistant, report.found[2].unread })
    local all = select(2, mine("--since", "90")).found[1]
    assert.same({ 2, 0 }, { all.files, all.older })
  end)

  it("reads the other files if one may not be read, is another user's or goes away", function()
    if require("posix.unistd").getuid() ~= 0 then pending "only root may become another user" return end
    put("claude_code.jsonl", ".claude/projects/p/a.jsonl")
    put("codex.jsonl", ".codex/sessions/b.jsonl")
    put("codex.jsonl", ".codex/sessions/locked/c.jsonl")
    put("codex.jsonl", ".codex/sessions/d.jsonl")
    os.execute(("cd '%s' && chown -R 65534 . && chmod 000 .codex/sessions/b.jsonl .codex/sessions/locked && "
                .. "chown 0 .codex/sessions/d.jsonl"):format(home))
    local out = process.runs { "env", "HOME=" .. home, "setpriv", "--reuid=65534", "--clear-groups",
                               daemon.binary, "replay", "--mine", "--json" }
    local report = json.decode(out)
    assert.same({ 2, 1 }, { report.calls, report.skipped.read_failed.count })
    assert.truthy(report.skipped.read_failed.places[1].file:find("b.jsonl", 1, true))
    assert.equal(2, report.found[2].left_out) -- the locked folder, and the other user's file
  end)

  it("reads the databases of goose and opencode, and changes nothing of them", function()
    os.execute("mkdir -p " .. home .. "/.local/share/goose/sessions " .. home .. "/.local/share/opencode")
    process.write(home .. "/make.py", [[
import json, sqlite3, sys, time
home, now = sys.argv[1], int(time.time())
goose = sqlite3.connect(home + "/.local/share/goose/sessions/sessions.db")
goose.execute("create table messages(message_id, session_id, role, content_json, created_timestamp)")
for line in open("tests/support/recordings/goose.jsonl"):
    row = json.loads(line)
    for at in (now, now - 60 * 86400):
        goose.execute("insert into messages values(?,?,?,?,?)", ("m", "s%d" % at, row["role"], row["content_json"], at))
goose.commit()
opencode = sqlite3.connect(home + "/.local/share/opencode/opencode.db")
opencode.execute("create table message(id, session_id, time_created, data)")
opencode.execute("create table part(id, message_id, session_id, time_created, data)")
for m in json.load(open("tests/support/recordings/opencode.json"))["messages"]:
    info = m["info"]
    opencode.execute("insert into message values(?,?,?,?)", (info["id"], "s-1", now * 1000, json.dumps({"role": info["role"]})))
    for n, part in enumerate(m["parts"]):
        data = {k: v for k, v in part.items() if k not in ("id", "sessionID", "messageID")}
        row = ("p%s%d" % (info["id"], n), info["id"], "s-1", now * 1000, json.dumps(data))
        opencode.execute("insert into part values(?,?,?,?,?)", row)
opencode.commit()
]])
    assert.equal(0, (process.run { "python3", home .. "/make.py", home }))
    local before = io.popen("cd " .. home .. "/.local && find . -type f | sort | xargs cksum"):read "*a"
    local code, report, err = mine()
    assert.equal(0, code, err)
    assert.same({ 4, 2, 0, {} }, { report.calls, report.sessions, report.without_result, report.skipped })
    local _, named = recordings.replay(home .. "/.local/share/goose/sessions/sessions.db")
    assert.same({ 4, 2 }, { named.calls, named.sessions }) -- of any age
    assert.equal(before, io.popen("cd " .. home .. "/.local && find . -type f | sort | xargs cksum"):read "*a")
  end)

  it("counts the sub-agents of gemini-cli, goose and opencode to their sessions", function()
    put("gemini_cli.jsonl", ".gemini/tmp/p/chats/session-1.jsonl")
    put("gemini_cli.jsonl", ".gemini/tmp/p/chats/s-1/child.jsonl")
    os.execute(("sed -i 's/\"sessionId\":\"s-1\"/\"sessionId\":\"own\"/; s/\"main\"/\"subagent\"/; s/\"id\":\"c/\"id\":\"x/g' "
                .. "'%s/.gemini/tmp/p/chats/s-1/child.jsonl'"):format(home))
    os.execute("mkdir -p " .. home .. "/.local/share/goose/sessions " .. home .. "/.local/share/opencode")
    process.write(home .. "/make.py", [[
import json, sqlite3, sys, time
home, now = sys.argv[1], int(time.time())
goose = sqlite3.connect(home + "/.local/share/goose/sessions/sessions.db")
goose.execute("create table sessions(id, session_type, parent_session_id, accumulated_input_tokens, accumulated_output_tokens)")
goose.execute("create table messages(message_id, session_id, role, content_json, created_timestamp)")
for session, kind, parent in (("g1", "user", None), ("g2", "sub_agent", "g1"), ("g3", "sub_agent", None)):
    goose.execute("insert into sessions values(?,?,?,?,?)", (session, kind, parent, 100, 1))
    for line in open("tests/support/recordings/goose.jsonl"):
        row = json.loads(line)
        goose.execute("insert into messages values(?,?,?,?,?)", ("m", session, row["role"], row["content_json"], now))
goose.commit()
opencode = sqlite3.connect(home + "/.local/share/opencode/opencode.db")
opencode.execute("create table session(id, parent_id)")
opencode.execute("create table message(id, session_id, time_created, data)")
opencode.execute("create table part(id, message_id, session_id, time_created, data)")
for session, parent in (("o1", None), ("o2", "o1")):
    opencode.execute("insert into session values(?,?)", (session, parent))
    for m in json.load(open("tests/support/recordings/opencode.json"))["messages"]:
        id = session + m["info"]["id"]
        opencode.execute("insert into message values(?,?,?,?)", (id, session, 0, json.dumps({"role": m["info"]["role"]})))
        for n, part in enumerate(m["parts"]):
            data = {k: v for k, v in part.items() if k not in ("id", "sessionID", "messageID")}
            opencode.execute("insert into part values(?,?,?,?,?)", ("%s%d" % (id, n), id, session, now * 1000, json.dumps(data)))
opencode.commit()
]])
    assert.equal(0, (process.run { "python3", home .. "/make.py", home }))
    local code, report, err = mine()
    assert.equal(0, code, err)
    assert.same({ 14, 4, 300 }, { report.calls, report.sessions, report.tokens.input })
    assert.same({ 0, {} }, { report.without_result, report.skipped })
    local _, out = process.run { "env", "HOME=" .. home, daemon.binary, "replay", "--mine", "--html", home .. "/page.html" }
    assert.truthy(out:find("14 calls in 4 sessions", 1, true), out)
    local page = process.read(home .. "/page.html")
    for _, session in ipairs { "s-1 › child.jsonl", "g1 › g2", "g3 › g3", "o1 › o2" } do
      assert.truthy(page:find(session, 1, true), session)
    end
  end)

  it("says where it looked if there is nothing", function()
    local code, report, err = mine()
    assert.equal(2, code)
    assert.is_nil(report)
    for _, words in ipairs { "Claude Code", "Codex", home } do assert.truthy(err:find(words, 1, true), err) end
  end)

  it("asks by the built-in policies, and leaves nothing behind", function()
    os.execute("mkdir -p " .. home .. "/.claude/projects/p " .. home .. "/tmp")
    process.write(home .. "/.claude/projects/p/s.jsonl", json.encode {
      type = "assistant", sessionId = "s", message = { id = "m", role = "assistant", content = {
        { type = "tool_use", id = "t", name = "Bash", input = { command = "rm -rf /" } } } } } .. "\n")
    local code, report, err = mine("--policies", "assistant")
    assert.equal(0, code, err)
    assert.same({ 1, "assistant" }, { report.verdicts.ask, report.policies })
    local calls = { { "exec_command", { cmd = "rm -rf /" } }, { "run_shell_command", { command = "git push --force" } },
                    { "bash", { command = "ls" } }, { "edit", { filePath = "/home/x/.env", oldString = "a" } },
                    { "write_to_file", { path = "src/a.c" } }, { "Bash", { command = "ls" } },
                    { "shell", { command = { "bash", "-lc", "rm -rf /" } } }, { "shell", { command = { "ls" } } } }
    local records = {}
    for i, call in ipairs(calls) do
      records[i] = json.encode { session = "s" .. i, tool = call[1], arguments = call[2], result = "ok" }
    end
    local others = process.write(home .. "/others.jsonl", table.concat(records, "\n") .. "\n")
    local _, judged = recordings.replay(others, "--policies", "assistant") -- the tools of other assistants, too
    assert.same({ 8, 3, 1 }, { judged.calls, judged.asked, judged.lost_results })
    assert.same({ "edit", "protected_path" }, { judged.lost.rows[1].tool, judged.lost.rows[1].code })
    assert.same({}, judged.unknown_tools.rows)
    for name in io.popen("ls policies/assistant policies/assistant/lib"):lines() do
      local module = name:match "^(.*)%.lua$"
      if module then
        assert.truthy(process.read("lua/replay/assistant_policies.lua"):find(module .. '"', 1, true), module)
      end
    end
  end)

  it("reads thousands of files with sixty-four descriptors", function()
    local line = '{"type":"assistant","sessionId":"s%d","message":{"id":"m%d","role":"assistant","content":[{"type":'
                 .. '"tool_use","id":"t%d","name":"Read","input":{"file_path":"/a"}}]}}\n'
    os.execute("mkdir -p " .. home .. "/.claude/projects/p")
    for i = 1, 2000 do process.write(("%s/.claude/projects/p/%d.jsonl"):format(home, i), line:format(i, i, i)) end
    local out = process.runs { "env", "HOME=" .. home, "sh", "-c", 'ulimit -n 64; exec "$0" "$@"', daemon.binary,
                               "replay", "--mine", "--json" }
    local report = json.decode(out)
    assert.same({ 2000, 2000, {} }, { report.calls, report.sessions, report.skipped })
  end)

  it("drafts a policy from the commands that ran, which a recording cannot write into", function()
    local lines = {}
    for i, command in ipairs { "git status && make 2>&1 | tail", "CC=gcc make test", "echo '; rm x'",
                               "x]]os.exit() %s\n\27[31m" } do
      lines[i] = json.encode { type = "assistant", sessionId = "s", message = { id = "m" .. i, role = "assistant", content = {
        { type = "tool_use", id = "t" .. i, name = "Bash", input = { command = command } } } } }
    end
    lines[#lines + 1] = json.encode { type = "assistant", sessionId = "s", message = { id = "n", role = "assistant", content = {
      { type = "tool_use", id = "n1", name = "Read", input = { file_path = "/home/ada/.env" } },
      { type = "tool_use", id = "n2", name = "Read", input = { file_path = "/x/.env\nos.exit()" } } } } }
    os.execute("mkdir -p " .. home .. "/.claude/projects/p " .. home .. "/drafts")
    process.write(home .. "/.claude/projects/p/s.jsonl", table.concat(lines, "\n") .. "\n")
    local code, _, err = mine("--emit-policy", home .. "/drafts/bash.lua")
    assert.equal(0, code, err)
    local draft = process.read(home .. "/drafts/bash.lua")
    for _, words in ipairs { '["git"] = 1', '["make"] = 2', '["tail"] = 1', '["echo"] = 1', "/home/ada/.env" } do
      assert.truthy(draft:find(words, 1, true), draft)
    end
    for _, words in ipairs { "os.exit", "\27", '["rm"]', '["1"]' } do assert.falsy(draft:find(words, 1, true), draft) end
    local tested, out = process.run { daemon.binary, "test", home .. "/drafts" }
    assert.equal(0, tested, out)
    local _, judged = mine("--policies", home .. "/drafts")
    assert.equal(1, judged.verdicts.ask) -- what ran before is not asked about, but for what has no plain name
  end)

  it("refuses nothing of 375 sessions of ordinary work", function()
    local id = 0
    local function call(lines, session, name, arguments, result, failed)
      id = id + 1
      lines[#lines + 1] = json.encode { type = "assistant", sessionId = session, message = { id = "m" .. id, role = "assistant",
        content = { { type = "tool_use", id = "t" .. id, name = name, input = arguments } } } }
      lines[#lines + 1] = json.encode { type = "user", sessionId = session, toolUseResult = "x", message = { role = "user",
        content = { { type = "tool_result", tool_use_id = "t" .. id, content = result, is_error = failed or false } } } }
    end
    os.execute("mkdir -p " .. home .. "/.claude/projects/p")
    for s = 1, 375 do
      local lines, session = {}, "s" .. s
      lines[1] = json.encode { type = "user", sessionId = session, message = { role = "user", content = "fix the tests" } }
      for round = 1, 5 do -- the same commands after each edit, each time with another answer
        call(lines, session, "Read", { file_path = "/a.c" }, "int x = " .. round)
        call(lines, session, "Edit", { file_path = "/a.c", old_string = "x" .. round, new_string = "y" }, "edited")
        call(lines, session, "Bash", { command = "make test" }, (6 - round) .. " tests fail", round < 5)
        call(lines, session, "Bash", { command = "git status" }, "modified: a.c")
        call(lines, session, "TodoWrite", { todos = {} }, "saved")
      end
      process.write(("%s/.claude/projects/p/%s.jsonl"):format(home, session), table.concat(lines, "\n") .. "\n")
    end
    local code, report, err = mine()
    assert.equal(0, code, err)
    assert.same({ 375 * 25, 375, 0, 0 }, { report.calls, report.sessions, report.refused, report.lost_results })
  end)
end)
