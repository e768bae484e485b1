-- What an assistant reads on stdout after a hook, one line of JSON; nothing at all lets it go its own way. Codex takes an
-- answer with a key or a decision that it does not know as none, and runs the call. An event that may be Codex' therefore
-- gets what both understand.
local quote = cli.quote
local answer = {}

local function reason_of(words) return quote(words:find "[^ \t\n\r]" and words or "toolgate refuses this call.") end

local function output(e, members)
  return ('{"hookSpecificOutput":{"hookEventName":%s,%s}}\n'):format(quote(e.name), members)
end

-- gemini-cli has its decisions at top level.
local function denied(e, reason)
  if e.client == "gemini" then return ('{"decision":"deny","reason":%s}\n'):format(reason_of(reason)) end
  return output(e, ('"permissionDecision":"deny","permissionDecisionReason":%s'):format(reason_of(reason)))
end

-- For PreToolUse: "ask", "deny"; "allow" writes nothing, so that the assistant's own prompt stays. `updated`: the arguments
-- in place of the input, only with "ask". Only Claude Code can ask: elsewhere "ask" would run the call, and `updatedInput`
-- needs "allow". So others get a denial, with the question or the corrected call in words.
function answer.decision(e, decision, reason, updated)
  if decision == "allow" then return "" end
  if decision == "ask" and e.client ~= "claude" then
    decision = "deny"
    reason = reason .. (updated and "\nCall it again with these arguments: " .. updated
                        or "\nAsk the user first, and call it again only after the user has said yes.")
  end
  if decision == "deny" then return denied(e, reason) end
  return output(e, ('"permissionDecision":"ask","permissionDecisionReason":%s%s'):format(reason_of(reason),
                   updated and ',"updatedInput":' .. updated or ""))
end

-- A note for the model beside a call that goes on, or beside its result. Codex lets a call pass only where nothing is
-- written.
function answer.note(e, note)
  if e.kind == "before" and e.client ~= "claude" then return "" end
  return output(e, '"additionalContext":' .. quote(note))
end

-- The call is denied; or its result is not what it seems. The model reads why.
function answer.block(e, reason)
  if e.kind == "before" then return answer.decision(e, "deny", reason) end
  if e.client == "gemini" and e.kind == "after" then return denied(e, reason) end
  if e.kind == "after" then return ('{"decision":"block","reason":%s}\n'):format(reason_of(reason)) end
  return answer.note(e, reason) -- it failed already
end

-- The same where no further call would help: Claude Code and gemini-cli end the agent's run.
function answer.halt(e, reason)
  local block = answer.block(e, reason)
  if e.client ~= "claude" and e.client ~= "gemini" then return block end
  return ('{"continue":false,"stopReason":%s,'):format(reason_of(reason)) .. block:sub(2) -- the same object has both
end

-- Claude Code blocks a call whose hook failed only where it is told to; Codex knows neither that key nor the events of
-- failures and of batches.
local INSTALLED = {
  { event = "PreToolUse", about_tools = true, blocks = true }, { event = "PostToolUse", about_tools = true },
  { event = "PostToolUseFailure", about_tools = true, claude_only = true }, { event = "PostToolBatch", claude_only = true },
  { event = "UserPromptSubmit" }, { event = "PreCompact" }, { event = "SessionStart" },
}
local INSTALLED_IN_GEMINI = {
  { event = "BeforeTool", about_tools = true }, { event = "AfterTool", about_tools = true }, { event = "BeforeAgent" },
  { event = "PreCompress" }, { event = "SessionStart" },
}
local TIMEOUT_S = 10

-- What belongs into the assistant's settings, as a list of { event, the JSON of its list }. `line`: a command line for sh.
function answer.hooks(client, line)
  local is_gemini, hooks = client == "gemini", {}
  for _, row in ipairs(is_gemini and INSTALLED_IN_GEMINI or INSTALLED) do
    if not (row.claude_only and client == "codex") then
      hooks[#hooks + 1] = { row.event, ('[{ %s"hooks": [{ "type": "command", "command": %s, "timeout": %d%s }] }]'):format(
        row.about_tools and ('"matcher": "%s", '):format(is_gemini and ".*" or "*") or "", quote(line),
        is_gemini and TIMEOUT_S * 1000 or TIMEOUT_S, row.blocks and client ~= "codex" and ', "onFailure": "block"' or "") }
    end
  end
  return hooks
end

function answer.install(client, line)
  local lines = {}
  for i, row in ipairs(answer.hooks(client, line)) do lines[i] = ('    "%s": %s'):format(row[1], row[2]) end
  return '{\n  "hooks": {\n' .. table.concat(lines, ",\n") .. "\n  }\n}\n"
end

return answer
