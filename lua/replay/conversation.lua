-- A conversation as it is read: whose turn it is, which message, and when. Its calls go to the replay as they are found.
local log = require "replay/log"
local read_usage = require "replay/usage"

local Conversation = {}
Conversation.__index = Conversation

local watch -- sees each call beside the replay; nil: nobody does

-- Whether this call or result was read before: of a session that was resumed, the new file begins with what the old one has.
local function is_again(self, kind, id)
  local key = self.once and id and self.session .. kind .. id
  if not key then return false end
  local again = self.once[key] ~= nil
  self.once[key] = true
  return again
end

function Conversation:call(id, tool, arguments)
  if is_again(self, " call ", id) then return end
  if watch then watch(tool, arguments) end
  log.call(self, id, tool, arguments)
end
function Conversation:result(id, result, failed)
  if not is_again(self, " result ", id) then log.result(self, id, result, failed) end
end
function Conversation:both(id, tool, arguments, result, failed)
  if watch then watch(tool, arguments) end
  log.both(self, id, tool, arguments, result, failed)
end

-- A person says something; to a sub-agent only its parent does.
function Conversation:begin_turn()
  if not self.agent then self.turn, self.by_person = self.turn + 1, true end
end

-- The model no longer sees what it has read, so that it may read it again.
function Conversation:compacted() log.compacted(self) end

-- What the model has read and written. Of figures with one id the last ones count: a message that is written again, or the
-- sum of all so far.
function Conversation:usage(object, id)
  local input, cached, output = read_usage(object)
  if not input then return end
  local counted, key = self.once or self.counted, id and self.session .. " usage " .. id
  local before = id and counted[key] or { 0, 0, 0 }
  if id then counted[key] = { input, cached, output } end
  log.usage(self, input - before[1], cached - before[2], output - before[3])
end

-- A message: the calls in it are one step.
function Conversation:message(at)
  self.messages = self.messages + 1
  self.at = at or self.at
end

-- A table that remembers the last so many keys at least, and twice as many at most.
local function remembered(most)
  local young, old, count = {}, {}, 0
  return setmetatable({}, {
    __index = function(_, key)
      local value = young[key]
      if value == nil then return old[key] end
      return value
    end,
    __newindex = function(_, key, value)
      if count == most then young, old, count = {}, young, 0 end
      if young[key] == nil then count = count + 1 end
      young[key] = value
    end,
  })
end

local function new(session, agent)
  return setmetatable({ session = session, agent = agent, turn = 0, messages = 0, counted = remembered(256) }, Conversation)
end

-- Each object of a list; nothing of what is none.
local function each(list)
  local i, count = 0, log.kind(list) == "array" and #list or 0
  return function()
    while i < count do
      i = i + 1
      local item = list[i]
      if log.kind(item) == "object" then return item end
    end
  end
end

-- The first member of these names that is a text or a number, as a text.
local function text(object, ...)
  for _, name in ipairs { ... } do
    local value = object[name]
    if type(value) == "string" and value ~= "" or type(value) == "number" then return tostring(value) end
  end
end

-- A text that holds JSON as its value, else what it is.
local function parsed(value) return type(value) == "string" and log.parse(value) or value end

local function is_object(value) return log.kind(value) == "object" end
local function is_array(value) return log.kind(value) == "array" end

local function set_watch(watcher) watch = watcher end

return { remembered = remembered, set_watch = set_watch, new = new, each = each, text = text, parsed = parsed,
         is_object = is_object, is_array = is_array }
