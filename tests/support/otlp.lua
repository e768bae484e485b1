-- A collector for specs: an HTTP server that takes OTLP/HTTP JSON, whose requests are checked field by field against
-- opentelemetry/proto/trace/v1 in its JSON form, and flattened to a list of spans.
local http_server = require "http_server"
local process = require "process"

local M = { PATH = "/v1/traces" }

local function is_id(digits)
  return function(value, at)
    assert(type(value) == "string" and #value == digits and value:match "^[0-9a-f]+$" and value:find "[^0]",
           at .. ": no id of " .. digits .. " hex digits: " .. tostring(value))
  end
end

local function is_nanoseconds(value, at)
  assert(type(value) == "string" and value:match "^%d+$", at .. ": no string of nanoseconds: " .. tostring(value))
  local seconds = tonumber(value:sub(1, -10)) -- 2001 to 2100: neither milliseconds nor a monotonic clock
  assert(seconds and seconds > 1e9 and seconds < 4.2e9, at .. ": no time of this century: " .. value)
end

local function is_text(value, at) assert(type(value) == "string" and #value > 0, at .. ": no text") end

local function is_whole(least, most)
  return function(value, at)
    assert(type(value) == "number" and value % 1 == 0 and value >= least and value <= most,
           at .. ": " .. tostring(value) .. " is no number from " .. least .. " to " .. most)
  end
end

local check

-- A value of common/v1 AnyValue: exactly one of its fields.
local function is_any_value(value, at)
  local key, content = next(value)
  assert(key and not next(value, key), at .. ": expected one field")
  if key == "stringValue" then is_text(content, at)
  elseif key == "intValue" then
    assert(type(content) == "string" and content:match "^-?%d+$", at .. ": intValue is a string")
  elseif key == "doubleValue" then assert(type(content) == "number", at)
  elseif key == "boolValue" then assert(type(content) == "boolean", at)
  else error(at .. ": unexpected " .. key) end
end

local function list_of(fields)
  return function(value, at)
    assert(type(value) == "table", at .. ": no list")
    for i, item in ipairs(value) do check(item, fields, ("%s[%d]"):format(at, i)) end
  end
end

local function object(fields)
  return function(value, at) check(value, fields, at) end
end

-- "?name" may be missing.
function check(value, fields, at)
  assert(type(value) == "table", at .. ": no object")
  for name in pairs(value) do assert(fields[name] or fields["?" .. name], at .. ": unknown field " .. tostring(name)) end
  for name, is in pairs(fields) do
    local bare = name:gsub("^%?", "")
    assert(value[bare] ~= nil or bare ~= name, at .. "." .. bare .. " is missing")
    if value[bare] ~= nil then is(value[bare], at .. "." .. bare) end
  end
end

local ATTRIBUTES = list_of { key = is_text, value = is_any_value }
local SPAN = {
  traceId = is_id(32), spanId = is_id(16), ["?parentSpanId"] = is_id(16), ["?traceState"] = is_text,
  flags = is_whole(0, 0x3ff), name = is_text, kind = is_whole(1, 3), startTimeUnixNano = is_nanoseconds,
  endTimeUnixNano = is_nanoseconds, attributes = ATTRIBUTES,
  status = object { ["?code"] = is_whole(0, 2), ["?message"] = is_text },
}
local REQUEST = { resourceSpans = list_of {
  resource = object { attributes = ATTRIBUTES },
  scopeSpans = list_of { scope = object { name = is_text, version = is_text }, spans = list_of(SPAN) },
} }

local function flat(attributes)
  local found = {}
  for _, one in ipairs(attributes) do
    assert(found[one.key] == nil, "attribute twice: " .. one.key)
    found[one.key] = select(2, next(one.value))
  end
  return found
end

-- Checks one body; returns its spans, with `attributes` as a table by key and `resource` likewise.
function M.spans_of(body)
  check(body, REQUEST, "body")
  local spans = {}
  for _, resource_spans in ipairs(body.resourceSpans) do
    for _, scope_spans in ipairs(resource_spans.scopeSpans) do
      for _, span in ipairs(scope_spans.spans) do
        assert(span.endTimeUnixNano >= span.startTimeUnixNano, "a span that ends before it starts")
        span.attributes, span.resource = flat(span.attributes), flat(resource_spans.resource.attributes)
        spans[#spans + 1] = span
      end
    end
  end
  return spans
end

local collector = {}
collector.__index = collector

-- `answers`: as of http_server.lua, one for each request, the last repeated.
function M.start(answers)
  local self = setmetatable({}, collector)
  self.server = http_server.start { routes = { ["POST " .. M.PATH] = answers or { body = {} } } }
  self.endpoint = self.server.address .. M.PATH
  return self
end

function collector:answers(answers) self.server:answers { ["POST " .. M.PATH] = answers } end

function collector:requests() return self.server:saw() end

-- All spans of the requests so far, those of failed ones too.
function collector:spans()
  local all = {}
  for _, request in ipairs(self:requests()) do
    assert(request.headers["content-type"] == "application/json")
    for _, span in ipairs(M.spans_of(request.body)) do all[#all + 1] = span end
  end
  return all
end

-- Waits for `count` spans for which `wanted` is true.
function collector:gets(what, wanted, count)
  return process.eventually("the collector gets " .. what, function()
    local found = {}
    for _, span in ipairs(self:spans()) do
      if wanted(span) then found[#found + 1] = span end
    end
    return #found >= (count or 1) and found
  end)
end

-- Waits for the span of a call by its name; returns it and its children in order.
function collector:call(name)
  local root = self:gets(name, function(span) return span.name == name and span.kind == 2 end)[1]
  local children = {}
  for _, span in ipairs(self:spans()) do
    if span.parentSpanId == root.spanId then children[#children + 1] = span end
  end
  return root, children
end

return M
