-- Codex: ~/.codex/sessions/*/*/*/rollout-*.jsonl. A sub-agent has a rollout of its own, which may begin with its parent's
-- session_meta once more. Whether a call failed, only its output tells, or an event.
local conversation = require "replay/conversation"
local each, parsed, is_object = conversation.each, conversation.parsed, conversation.is_object

local HEAD_BYTES = 400 -- of an output, in which its exit code is
local FAILED_MAX = 256 -- calls of which an event has said so, before their outputs

local KINDS = { session_meta = true, turn_context = true, response_item = true, event_msg = true, compacted = true }

-- Older rollouts have the items themselves, one a line.
local function is(value) return KINDS[value.type] ~= nil and is_object(value.payload) end

-- The text of an output, and whether it says that the command failed.
local function outcome(output)
  local text, code = output, nil
  if type(output) == "string" then
    local head = output:sub(1, HEAD_BYTES)
    head = head:sub(1, head:find("\nOutput:", 1, true) or -1)
    local said = head:find "^Chunk ID:" or head:find "^Wall time:"
    code = said and head:match "Process exited with code (%-?%d+)" or head:match "^Exit code: (%-?%d+)"
    local inner = output:find('"metadata"', 1, true) and parsed(output)
    if is_object(inner) and is_object(inner.metadata) then
      text, code = inner.output, tostring(inner.metadata.exit_code or 0)
    end
  end
  return text, code ~= nil and code ~= "0" and code ~= "0.0"
end

local ITEMS = {}

function ITEMS.function_call(c, p)
  c:call(p.call_id, (p.namespace or "") .. p.name, p.arguments)
end

function ITEMS.custom_tool_call(c, p)
  local name = p.name == "apply_patch" and "command" or "input" -- of the text, which has none here; hooks call a patch so
  c:call(p.call_id, p.name, type(p.input) == "string" and { [name] = p.input } or p.input)
end

function ITEMS.local_shell_call(c, p) c:call(p.call_id or p.id, "local_shell", p.action) end

function ITEMS.function_call_output(c, p)
  local failed = c.failures and c.failures[p.call_id]
  local text, says_so = outcome(p.output)
  c:result(p.call_id, text, failed or says_so)
end
ITEMS.custom_tool_call_output = ITEMS.function_call_output
ITEMS.local_shell_call_output = ITEMS.function_call_output

local CALLS = { function_call = true, custom_tool_call = true, local_shell_call = true }

local function read_event(c, p)
  local failed = p.type == "patch_apply_end" and p.success == false
  if p.type == "mcp_tool_call_end" and is_object(p.result) then
    local ok = p.result.Ok
    failed = p.result.Err ~= nil or (is_object(ok) and (ok.isError or ok.is_error))
  end
  if failed then
    c.failures = c.failures or conversation.remembered(FAILED_MAX)
    c.failures[p.call_id or ""] = true
  elseif p.type == "token_count" and is_object(p.info) then
    c:usage(p.info.total_token_usage, "total")
  end
end

local function read(value, state)
  local kind, p = value.type, value.payload
  if kind == "session_meta" then
    local source = is_object(p.source) and p.source.subagent
    local spawn = is_object(source) and source.thread_spawn
    if not state.id and is_object(spawn) then state.id, state.agent = spawn.parent_thread_id, p.id end
    state.id = state.id or p.id
    return true
  end
  local c = state.session(nil, state.agent)
  c.at = value.timestamp
  if kind == "compacted" then
    c:compacted()
  elseif kind == "event_msg" then
    read_event(c, p)
  elseif kind == "response_item" then
    if CALLS[p.type] and not c.in_calls then c:message() end
    c.in_calls = CALLS[p.type] or false
    if ITEMS[p.type] then
      ITEMS[p.type](c, p)
    elseif p.type == "message" and p.role == "user" then
      for part in each(p.content) do
        -- What the program adds in the user's name is in angle brackets.
        if type(part.text) == "string" and not part.text:find "^%s*<" then return c:begin_turn() or true end
      end
    end
  end
  return true
end

return { name = "Codex", is = is, read = read }
