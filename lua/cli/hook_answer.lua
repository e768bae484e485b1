-- What an assistant reads on stdout after a hook, one line of JSON; nothing at all lets it go its own way. Codex takes an
-- answer with a key or a decision that it does not know as none, and runs the call. An event that may be Codex' therefore
-- gets what both understand.
local quote = cli.quote
local answer = {}

local function reason_of(words) return quote(words:find "[^ \t\n\r]" and words or "toolgate refuses this call.") end

local function output(e, members)
  return ('{"hookSpecificOutput":{"hookEventName":%s,%s}}\n'):format(quote(e.name), members)
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
    updated = nil
  end
  return output(e, ('"permissionDecision":"%s","permissionDecisionReason":%s%s'):format(decision, reason_of(reason),
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
  if e.kind == "after" then return ('{"decision":"block","reason":%s}\n'):format(reason_of(reason)) end
  return answer.note(e, reason) -- it failed already
end

-- The same where no further call would help: Claude Code ends the agent's run.
function answer.halt(e, reason)
  local block = answer.block(e, reason)
  if e.client ~= "claude" then return block end
  return ('{"continue":false,"stopReason":%s,'):format(reason_of(reason)) .. block:sub(2) -- the same object has both
end

-- Claude Code blocks a call whose hook failed only where it is told to; Codex knows neither that key nor the events of
-- failures and of batches.
local INSTALLED = {
  { event = "PreToolUse", about_tools = true, blocks = true }, { event = "PostToolUse", about_tools = true },
  { event = "PostToolUseFailure", about_tools = true, claude_only = true }, { event = "PostToolBatch", claude_only = true },
  { event = "UserPromptSubmit" }, { event = "PreCompact" }, { event = "SessionStart" },
}

-- What belongs into the assistant's settings. `line`: a command line for sh.
function answer.install(client, line)
  local hooks = {}
  for _, row in ipairs(INSTALLED) do
    if not (row.claude_only and client == "codex") then
      hooks[#hooks + 1] = ('    "%s": [{ %s"hooks": [{ "type": "command", "command": %s, "timeout": 10%s }] }]'):format(
        row.event, row.about_tools and '"matcher": "*", ' or "", quote(line),
        row.blocks and client ~= "codex" and ', "onFailure": "block"' or "")
    end
  end
  return '{\n  "hooks": {\n' .. table.concat(hooks, ",\n") .. "\n  }\n}\n"
end

return answer
