-- toolgate hook: one event of a coding assistant on stdin, its answer on stdout. The assistant's own tools (Bash, Edit,
-- WebFetch, …) get policies, loops, budgets and a decision log. The shapes of events are those of Claude Code's hook
-- reference (2026-09); Codex CLI (0.153) sends the same. gemini-cli has names of its own: BeforeTool, AfterTool, BeforeAgent
-- and PreCompress.
--
--   UserPromptSubmit, PreCompact, SessionStart ─▶ toolgate/turn      PostToolBatch: the step ends
--   PreToolUse ─▶ toolgate/check                                     PostToolUse… ─▶ toolgate/report
--
-- What a model sent is passed on as JSON, byte for byte. An error of this file is exit code 2, which blocks the call.
local hook = cli.hook()
local answer = require "hook_answer"
local quote = cli.quote

local BLOCKS      = 2    -- the exit code that makes an assistant stop, with stderr as the reason
local GOAL_BYTES  = 8192 -- of a prompt: what a goal may have
local AGENT_BYTES = 128
local START_MS    = 1400 -- for a daemon to start: less than a hook has
local KEPT_MS     = 86400000 -- of a note
local SWEPT_MAX   = 4096 -- files that one sweep looks at
local PRIVATE, OTHERS = 448, 63 -- 0700, 0077
local UNREADABLE  = { [1001] = true, [1002] = true, [1003] = true } -- limits of a message, its depth and its values

local KINDS = { PreToolUse = "before", PostToolUse = "after", PostToolUseFailure = "failed", PostToolBatch = "batch",
                UserPromptSubmit = "prompt", PreCompact = "compacted", SessionStart = "nothing",
                BeforeTool = "before", AfterTool = "after", BeforeAgent = "prompt", PreCompress = "compacted" }
local OF_GEMINI = { BeforeTool = true, AfterTool = true, BeforeAgent = true, PreCompress = true }
-- Events of assistants that toolgate does not need, but which are spelt as those that it does.
local UNNEEDED = { AfterAgent = true, BeforeModel = true, AfterModel = true, BeforeToolSelection = true }
local IS_CALL = { before = true, after = true, failed = true }

local options, client -- of this hook

-- The members of the result, decoded and as JSON; or nil, why, and what is wrong, as of client:answer.
local function call(method, params)
  local sent, why, wrong = client:ask(method, params)
  if not sent then return nil, why, wrong end
  return client:answer "members"
end

-- ---- the event ----

-- Codex names its turn in every event, Claude Code its prompt. Anthropic's ids of calls begin with "toolu_", OpenAI's with
-- "call_" or "fc_"; but a model of another provider runs in both. "unknown": only what both understand may be answered.
-- gemini-cli's events are no other's, whatever the option says: it takes no other answer to them.
local function client_of(name, raw, id)
  if OF_GEMINI[name] then return "gemini" end
  local given = options.client or "auto"
  if given ~= "auto" and (given ~= "gemini" or KINDS[name] == "nothing") then return given end
  if raw.turn_id or id:find "^call_" or id:find "^fc_" then return "codex" end
  return (raw.prompt_id or id:find "^toolu_") and "claude" or "unknown"
end

-- Assistants have events that toolgate does not need, and get new ones. But one that is about a tool's call nobody else
-- would check, and one that is ours but for its spelling would do nothing for ever.
local function fault_of_unknown(e)
  if e.name == "PermissionRequest" or e.name == "PermissionDenied" then return nil end
  if e.tool ~= "" then
    return "hook_event_name: expected PreToolUse, PostToolUse or PostToolUseFailure for a tool's call"
  end
  for name in pairs(UNNEEDED[e.name] and {} or KINDS) do
    if hook.misspells(e.name, name) then return "hook_event_name: misspelt" end
  end
end

-- A member that is missing or of another type is a fault, never a guess.
local function fault_of(e)
  if e.name == "" then return "hook_event_name: expected a string" end
  if e.session == "" then return "session_id: expected a string" end
  if not e.kind then return fault_of_unknown(e) end
  if not IS_CALL[e.kind] then return nil end
  if e.tool == "" then return "tool_name: expected a string" end
  return e.kind == "before" and not (e.input or ""):find "^{" and "tool_input: expected an object" or nil
end

-- What the model reads of it; or the call failed.
local function read_gemini_response(e)
  local response, parts = cli.parse(e.response or "null")
  if type(response) ~= "table" then return end
  e.response = parts.llmContent or e.response
  if not parts.error or parts.error == "null" then return end
  local fault = response.error
  e.kind, e.error = "failed", type(fault) == "table" and fault.message or fault
  if type(e.error) ~= "string" then e.error = parts.error end
end

local function read_event(texts, raw)
  local e = { name = texts.hook_event_name or "", session = texts.session_id or "", tool = texts.tool_name or "",
              call = texts.tool_use_id or "", agent = cli.cut(texts.agent_id or "", AGENT_BYTES),
              prompt = texts.prompt or "", error = texts.error or "", input = raw.tool_input,
              response = raw.tool_response, cancelled = raw.is_interrupt == "true" } -- by its user: no failure of the tool
  e.client = client_of(e.name, raw, e.call)
  e.kind = KINDS[e.name]
  if e.name == "AfterTool" then read_gemini_response(e) end -- a failure is another kind
  if e.name == "SessionStart" and (texts.source == "compact" or texts.source == "clear") then e.kind = "compacted" end
  e.fault = fault_of(e)
  if e.kind == "prompt" and e.agent ~= "" then e.kind = "nothing" end -- no person's
  return e
end

-- ---- notes to the next hook, which is another process ----
-- Files in $XDG_RUNTIME_DIR/toolgate-hook, or /tmp/toolgate-hook-UID. Another user may own what has our name in /tmp, or a
-- link may lie there: the folder must be ours alone, and then so is what lies in it.

local function notes_folder()
  local runtime = os.getenv "XDG_RUNTIME_DIR" or ""
  local path = runtime:find "^/" and runtime .. "/toolgate-hook" or ("/tmp/toolgate-hook-%d"):format(cli.uid)
  local made, why = cli.make_folder(path, PRIVATE)
  local look = made and cli.stat(path, true)
  if look and look.kind == "folder" and look.uid == cli.uid and bit.band(look.mode, OTHERS) == 0 then return path .. "/" end
  return nil, why or "Operation not permitted"
end

-- nil and why: it cannot be kept. `only_there`: a note that is there is replaced, and none is made.
local function keep(key, words, only_there)
  local folder, why = notes_folder()
  local path = folder and folder .. hook.name(key)
  if not path or only_there and not cli.access(path, "") then return nil, why end
  return cli.write_file(path, words, true)
end

-- "": none exists. `takes`: it is forgotten.
local function kept(key, takes)
  local folder = notes_folder()
  local path = folder and folder .. hook.name(key)
  local words = path and cli.file(path) or ""
  if takes and words ~= "" then os.remove(path) end
  return words
end

-- Forgets notes of calls that were never reported: their user said no.
local function sweep()
  local folder = notes_folder()
  local names = folder and cli.list_folder(folder) or {}
  for i = 1, math.min(#names, SWEPT_MAX) do
    local look = names[i]:find "^%x+$" and cli.stat(folder .. names[i], true)
    if look and cli.now() - look.at > KEPT_MS then os.remove(folder .. names[i]) end
  end
end

-- gemini-cli gives a call no id.
local function call_key(e)
  return e.session .. "\n" .. (e.call ~= "" and e.call or e.tool .. "\n" .. (e.input or ""))
end
local function step_key(e) return e.session .. "\v" .. e.agent end

-- The step of this event's call, the same for all calls of one model message. Nothing in a call says which message it is
-- of, but the assistant says when all calls of one have ended. An agent that has never said so (an assistant without
-- PostToolBatch) has each call as a step: the id of the call.
local function step_of(e)
  local step = kept(step_key(e))
  return step ~= "" and step or e.call
end

-- ---- requests ----

-- A member that is left out if the text is empty.
local function optional(name, words) return words ~= "" and (',"%s":%s'):format(name, quote(words)) or "" end

local function meta(e)
  return '"_meta":{"dev.toolgate/session":' .. quote(e.session) .. optional("dev.toolgate/agent", e.agent)
         .. optional("dev.toolgate/call", e.call) .. (e.kind == "before" and optional("dev.toolgate/step", step_of(e)) or "")
         .. ',"dev.toolgate/ext":' .. quote("hook:" .. e.client) .. "}"
end

-- A tool without a policy is known by its hook. The daemon keeps what its files say of one that has a policy. True; or nil,
-- why, and what is wrong, as of call.
local function declare(e)
  local told, why, wrong = call("toolgate/register", '{"tools":[{"name":' .. quote(e.tool)
                                                     .. ',"inputSchema":{"type":"object"}}]}')
  if told or type(wrong) == "number" then return true end -- what it refuses here, it refuses to check, too
  return nil, why, wrong
end

local function check(e)
  -- Claude Code puts the question to its user itself; elsewhere the user needs an id to approve.
  local asks = e.client == "claude" and ',"asks":true' or ""
  return call("toolgate/check", '{"name":' .. quote(e.tool) .. ',"arguments":' .. e.input .. asks .. "," .. meta(e) .. "}")
end

local function report(e, call_id, result)
  if e.kind == "failed" then
    result = '"error":{"message":' .. quote(e.error ~= "" and e.error or "it failed without a message")
             .. (e.cancelled and ',"cancelled":true}' or "}")
  else
    result = '"result":' .. result
  end
  return call("toolgate/report", '{"callId":' .. quote(call_id) .. "," .. result .. "}")
end

-- A person's words begin a turn. A compaction begins none: the model has forgotten what it had read.
local function tell_turn(e)
  return call("toolgate/turn", "{" .. (e.kind == "compacted" and '"compacted":true' or '"by":"person"')
                                    .. optional("goal", cli.cut(e.prompt, GOAL_BYTES)) .. "," .. meta(e) .. "}")
end

-- ---- events ----

-- Writes the answer for the assistant. If it cannot be written, the call must not run.
local function say(words)
  local said, why = hook.say(words)
  if said then return 0 end
  cli.warn("the answer could not be written: " .. why)
  return BLOCKS
end

-- On "ask" the user reads the reason; a model would try to fix the call.
local function unavailable(e, decision, why)
  if e.kind ~= "before" then return "" end
  return answer.decision(e, decision, decision == "ask"
                         and "toolgate, which checks every call here, has not checked this one: " .. why
                         or "toolgate, which checks every call here, has not checked this one. Tell the user; do not "
                         .. "repeat the call.")
end

-- The daemon is not there, or has not judged the event. Never for --on-unavailable: what listens there is no daemon, or
-- takes no call of a hook; and a call that the model made too large or too deep to be checked is not allowed. `wrong` is
-- call's.
local function answer_failure(e, why, wrong)
  local decision, refused = options["on-unavailable"], type(wrong) == "number"
  cli.warn(why)
  if wrong == true or (refused and wrong < 0 and e.kind == "before") then return BLOCKS end
  if refused and UNREADABLE[wrong] and decision == "allow" then decision = "deny" end
  return say(unavailable(e, decision, why))
end

-- What a call hears that runs.
local function answer_pass(e, verdict, raw)
  local advice = verdict.advice or ""
  if (raw.rewrites or ""):find "^%[%s*[^%]%s]" then
    return answer.decision(e, "ask", advice ~= "" and advice or "The arguments were corrected.", raw.arguments)
  end
  return advice ~= "" and answer.note(e, advice) or ""
end

local function on_before(e)
  local verdict, raw, wrong = check(e)
  if not verdict then return answer_failure(e, raw, wrong) end
  local kind, detail = verdict.verdict or "", verdict.detail or ""
  local words = (verdict.text or "") ~= "" and verdict.text or detail
  if kind == "" then return answer_failure(e, "the daemon's answer has no verdict", true) end
  local may_run = kind == "pass" or (kind == "ask" and e.client == "claude") -- there its user may let it run
  if may_run and (verdict.callId or "") ~= "" then
    local noted, why = keep(call_key(e), verdict.callId)
    if not noted then cli.warn("the result of this call cannot be reported: " .. why) end
  end
  if kind == "pass" then return say(answer_pass(e, verdict, raw)) end
  if kind == "ask" then -- elsewhere than in Claude Code the model reads it
    return say(answer.decision(e, "ask", e.client == "claude" and detail or words))
  end
  return say(answer[kind == "halt" and "halt" or "block"](e, words))
end

local function on_after(e, call_id)
  local verdict, why, wrong = report(e, call_id, e.response or "null")
  if not verdict and UNREADABLE[wrong] and e.kind == "after" then
    cli.warn("the result is reported as unread: " .. why)
    verdict, why, wrong = report(e, call_id, quote(hook.unread(e.response or "")))
  end
  if not verdict then return answer_failure(e, why, wrong) end
  local words, advice = verdict.text or "", verdict.advice or ""
  if verdict.verdict == "halt" then return say(answer.halt(e, words)) end
  -- the model reads the code and the output itself, or what its user says next
  if verdict.code == "exit_code" or e.cancelled then words = "" end
  if verdict.verdict ~= "pass" and words ~= "" then return say(answer.block(e, words)) end
  words = words ~= "" and words or advice
  return say(words ~= "" and answer.note(e, words) or "")
end

-- The user's own daemon, where nobody else has one: see own_daemon.lua. The deadline bounds it.
local function start()
  local own = not options["no-start"] and require "own_daemon"
  local path = own and own.startable(options.socket)
  if not path then return false end
  local started, why = own.start(path, START_MS)
  if not started then cli.warn(why) end
  return started
end

local function on_event(e)
  local kind, call_id = e.kind, nil
  if kind == "batch" or kind == "prompt" then -- if a step cannot be kept, each call is one
    keep(step_key(e), cli.random(), kind == "prompt")
  end
  if kind == "prompt" then sweep() end
  if kind == "batch" or kind == "nothing" then return 0 end
  if kind ~= "before" and IS_CALL[kind] then
    call_id = kept(call_key(e), true)
    if call_id == "" then return 0 end -- no check was made, or it refused
  end
  hook.late(unavailable(e, options["on-unavailable"], "no answer within 1.5 s: the daemon hangs or is stopped"))
  local connected, why, wrong = cli.client(options.socket)
  if not connected and wrong == false and start() then connected, why, wrong = cli.client(options.socket) end
  client = connected
  if connected and IS_CALL[kind] then connected, why, wrong = declare(e) end
  if not connected then return answer_failure(e, why, wrong) end
  if kind == "before" then return on_before(e) end
  if call_id then return on_after(e, call_id) end
  local told
  told, why, wrong = tell_turn(e)
  return told and 0 or answer_failure(e, why, wrong)
end

-- An unknown event blocks: what it would have asked is unknown.
local function on_other(e)
  local name, denied = cli.cut(e.name, 100):match "^%Z*", options["on-unknown"] == "deny"
  if e.fault then
    fail("stdin is no event of a hook: %s (event '%s')", e.fault, name)
  end
  cli.warn(("the event %s is not known: it is %s (--on-unknown); `%s hook --install` has those that are"):format(name,
           denied and "refused" or "allowed", cli.program))
  return denied and BLOCKS or 0
end

-- ---- the command ----

-- The command has the options that were given, so that the assistant's hooks do what was asked for here.
local function install(given)
  local word = require "ui".word
  local line = { word(cli.read_link "/proc/self/exe" or "toolgate"), "hook" }
  if given["no-start"] then line[3] = "--no-start" end
  for _, name in ipairs { "socket", "on-unavailable", "on-unknown", "client" } do
    if given[name] then line[#line + 1] = ("--%s %s"):format(name, word(given[name])) end
  end
  io.write(answer.install(given.client, table.concat(line, " ")))
end

return command {
  name = "hook", summary = "check the own tools of a coding assistant (Claude Code, Codex CLI, gemini-cli)",
  about = [[
Reads one event of the assistant's hooks on stdin and answers on stdout as its hook protocol says: a
prompt begins a turn, a call is checked before it runs and reported after. A call that passes prints
nothing, so that the assistant's own permission prompt stays. Arguments that were corrected, and calls
that a policy wants to be asked about, become a question to the user; refusals are read by the model.
Codex runs what it is told to ask about, and gemini-cli cannot ask: there it is a refusal in words.]],
  exits = [[
  0  answered, also with a refusal
  2  any error, such as no event of a hook on stdin: the assistant blocks the call and shows stderr]],
  example = "  toolgate hook --install --socket /run/toolgate/toolgate.sock",
  options = {
    socket,
    choice { name = "on-unavailable", argument = "ask|allow|deny",
             words = "what a call means while no daemon answers (default ask)" },
    choice { name = "on-unknown", argument = "allow|deny", words = "what an event of another kind means (default allow)" },
    choice { name = "client", argument = "auto|claude|codex|gemini", words = "whose hooks these are (default: by the event)" },
    flag { name = "no-start", words = "start no daemon where none listens" },
    flag { name = "install", words = "print what belongs into the assistant's settings, and end" },
  },

  run = function(o)
    hook.begin()
    if o.install then return install(o) end
    options = o
    o["on-unavailable"] = o["on-unavailable"] or "ask"
    local texts, raw = hook.event()
    if not texts then return BLOCKS end
    local e = read_event(texts, raw)
    return (e.kind and not e.fault and on_event or on_other)(e)
  end,
}
