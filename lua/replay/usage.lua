-- What a model has read and written, in tokens, under the names that APIs, SDKs and assistants have for it.
local log = require "replay/log"

local MOST = 1e12 -- a larger figure is none

local INPUT = { "input_tokens", "prompt_tokens", "inputTokens", "promptTokenCount", "promptTokens", "input", "tokens_sent",
                "request_tokens", "accumulated_input_tokens" }
local OUTPUT = { "output_tokens", "completion_tokens", "outputTokens", "candidatesTokenCount", "completionTokens", "output",
                 "tokens_received", "response_tokens", "accumulated_output_tokens" }
local THOUGHTS = { "thoughts", "thoughtsTokenCount" } -- beside what was written
-- What came from a cache is a part of the input, or beside it, as Anthropic and those who copy its figures count.
local WITHIN = { "cached_input_tokens", "cached_tokens", "cachedInputTokens", "cachedContentTokenCount", "cached",
                 "cache_read_tokens", "cache_read", "cacheReadTokens" }
local BESIDE = { "cache_read_input_tokens", "cacheReadInputTokens", "cacheRead", "read" }
local STORED = { "cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWrite", "write" }
local DETAILS = { "prompt_tokens_details", "input_tokens_details", "input_token_details", "inputTokenDetails", "cache" }

local function figure(object, names)
  for _, name in ipairs(names) do
    local n = object[name]
    if type(n) == "number" and n >= 0 and n < MOST then return n end
  end
end

-- What the model has read, what of it came from a cache, and what it has written. Nil: the object has no such figures.
return function(object)
  if type(object) ~= "table" and log.kind(object) ~= "object" then return end
  local input, output = figure(object, INPUT), figure(object, OUTPUT)
  if not input and not output then return end
  local details
  for _, name in ipairs(DETAILS) do details = details or log.kind(object[name]) == "object" and object[name] or nil end
  local within = figure(object, WITHIN) or details and figure(details, WITHIN)
  local beside, stored = figure(object, BESIDE) or details and figure(details, BESIDE) or 0,
                         figure(object, STORED) or details and figure(details, STORED) or 0
  if within or object.prompt_tokens then beside, stored, within = 0, 0, within or beside end
  return (input or 0) + beside + stored, within or beside, (output or 0) + (figure(object, THOUGHTS) or 0)
end
