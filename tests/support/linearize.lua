-- A linearizability checker, after Wing & Gong with Lowe's memoisation, as in Porcupine: a concurrent history is right if
-- its requests, applied one at a time in some order that respects real time, give exactly the answers that clients heard.
--
-- A history is a list of requests:
--   inv, ret    positions in the order in which the client sent requests and got answers; ret = nil: no answer was heard
--   optional    it may never have happened (its daemon was killed, its answer was lost)
--   after       the request that must have happened before; if that one never happened, this one did not either
--   by          without an answer: it happened before this position, if at all
-- A specification has:
--   begin() -> state      clone(state) -> state      apply(state, request) -> answer
--   agrees(state, request, answer) -> true, or false and the difference in words; state is the one after the request
--   digest(state) -> string; equal states have equal digests
--   describe(request) -> string
local M = {}

-- Requests applied in one search before it is given up as undecided.
M.BOUND = 200000

local NEVER = math.huge

local search = {}
search.__index = search

-- ---- the search -------------------------------------------------------------------

local function deadline_of(request) return request.ret or request.by or NEVER end

-- Requests that were answered first come first: most searches then never turn back.
local function in_order_of_answers(history)
  local list = {}
  for i, request in ipairs(history) do list[i] = { request = request, at = i } end
  table.sort(list, function(a, b)
    local one, other = deadline_of(a.request), deadline_of(b.request)
    if (a.request.optional or false) ~= (b.request.optional or false) then return not a.request.optional end
    if one ~= other then return one < other end
    return a.at < b.at
  end)
  local out = {}
  for i, one in ipairs(list) do out[i] = one.request end
  return out
end

local function new_search(history, spec, bound)
  local self = setmetatable({ spec = spec, bound = bound, tried = 0, applied = {}, marks = {}, path = {}, failed = {},
                              best = {} }, search)
  self.requests = in_order_of_answers(history)
  self.index = {}
  for i, request in ipairs(self.requests) do
    self.index[request] = i
    self.marks[i] = "0"
  end
  return self
end

-- True if the search cannot end before this request is applied.
function search:is_due(request)
  if request.optional then return false end
  return not request.after or self.applied[request.after]
end

-- The first answer of a request that is still to be applied: whatever was sent later must be applied later.
function search:horizon()
  local first, due = NEVER, false
  for _, request in ipairs(self.requests) do
    if not self.applied[request] and self:is_due(request) then
      due, first = true, math.min(first, deadline_of(request))
    end
  end
  return first, due
end

function search:may_be_next(request, horizon, newest)
  return not self.applied[request] and request.inv < horizon and deadline_of(request) > newest
         and (not request.after or self.applied[request.after])
end

function search:mark(request, value)
  self.applied[request] = value or nil
  self.marks[self.index[request]] = value and "1" or "0"
end

-- The farthest that any order came, with what kept each next request from following: for the report.
function search:keep_if_best(objections)
  if #self.path < #self.best or self.best.objections and #self.path == #self.best then return end
  self.best = { objections = objections }
  for i, step in ipairs(self.path) do self.best[i] = step end
end

-- Applies one request after the other; `newest`: the latest position at which an applied request was sent.
function search:run(state, newest)
  local horizon, due = self:horizon()
  if not due then return true end
  local set, digest = table.concat(self.marks), nil
  local known = self.failed[set]
  if known then
    digest = self.spec.digest(state)
    if known[digest] then return false end
  end
  local objections = {}
  for _, request in ipairs(self.requests) do
    if self:may_be_next(request, horizon, newest) then
      self.tried = self.tried + 1
      if self.tried > self.bound then error "undecided" end
      local following = self.spec.clone(state)
      local answer = self.spec.apply(following, request)
      local agrees, why = self.spec.agrees(following, request, answer)
      if agrees then
        self:mark(request, true)
        self.path[#self.path + 1] = request
        if self:run(following, math.max(newest, request.inv)) then return true end
        self.path[#self.path] = nil
        self:mark(request, false)
      else
        objections[#objections + 1] = { request = request, why = why }
      end
    end
  end
  self:keep_if_best(objections)
  self.failed[set] = known or {}
  self.failed[set][digest or self.spec.digest(state)] = true
  return false
end

-- Returns "explained" and the order; "wrong" and the farthest order; or "undecided".
local function look_for_order(history, spec, bound)
  local self = new_search(history, spec, bound)
  local ok, found = pcall(self.run, self, spec.begin(), -1)
  if not ok then
    if not tostring(found):find("undecided", 1, true) then error(found, 0) end
    return "undecided", self.best, self.tried
  end
  return found and "explained" or "wrong", found and self.path or self.best, self.tried
end

-- ---- the shortest prefix that cannot be explained ----------------------------------

-- What clients knew when the n-th answer came: later answers are unknown, later requests were not sent yet.
local function prefix_of(history, position)
  local out, twins = {}, {}
  for _, request in ipairs(history) do
    if request.inv <= position then
      local twin = setmetatable({}, { __index = request })
      if request.ret and request.ret > position then
        twin = setmetatable({ optional = true, unheard = true }, { __index = function(_, name)
          if name ~= "ret" and name ~= "answer" then return request[name] end
        end })
      end
      twins[request] = twin
      out[#out + 1] = twin
    end
  end
  for _, twin in ipairs(out) do
    if twin.after then rawset(twin, "after", twins[twin.after]) end
  end
  return out
end

-- A longer prefix of a wrong history is wrong too, so the shortest is found by halving.
local function shortest_wrong_prefix(history, spec, bound)
  local ends = {}
  for _, request in ipairs(history) do ends[#ends + 1] = request.ret end
  table.sort(ends)
  local low, high, best = 1, #ends, nil
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local part = prefix_of(history, ends[middle])
    local found, order = look_for_order(part, spec, bound)
    if found == "wrong" then
      best, high = { part = part, order = order, answers = middle }, middle - 1
    else
      low = middle + 1
    end
  end
  return best
end

local function lines_of(history, spec)
  local lines = {}
  for _, request in ipairs(history) do
    lines[#lines + 1] = ("    [%s, %s] %s%s"):format(request.inv, request.ret or "-", spec.describe(request),
                                                    request.optional and "  (may not have happened)" or "")
  end
  return lines
end

local function farthest_of(order, spec)
  local lines = { "  The farthest order:" }
  for _, line in ipairs(lines_of(order, spec)) do lines[#lines + 1] = line end
  lines[#lines + 1] = "  Nothing can follow:"
  for _, one in ipairs(order.objections or {}) do
    lines[#lines + 1] = "    " .. spec.describe(one.request) .. ": " .. tostring(one.why)
  end
  return table.concat(lines, "\n")
end

local function story_of(wrong, history, spec)
  local lines = { ("%d requests; no order explains the first %d answers. Requests, [sent, answered]:"):format(
    #history, wrong.answers) }
  for _, line in ipairs(lines_of(wrong.part, spec)) do lines[#lines + 1] = line end
  return table.concat(lines, "\n") .. "\n" .. farthest_of(wrong.order, spec)
end

-- Checks one history. Returns { result = "explained" | "wrong" | "undecided", order, tried, story }; story: of a wrong
-- history, its shortest prefix that cannot be explained, unless `tells` is false.
function M.check(history, spec, bound, tells)
  bound = bound or M.BOUND
  local result, order, tried = look_for_order(history, spec, bound)
  local out = { result = result, order = order, tried = tried }
  if tells == false or result == "explained" then return out end
  if result == "wrong" then
    local wrong = shortest_wrong_prefix(history, spec, bound) or { part = history, order = order, answers = #history }
    out.story = story_of(wrong, history, spec)
  else
    out.story = ("undecided after %d requests were tried; %d of %d are in order\n%s"):format(tried, #order, #history,
                                                                                           farthest_of(order, spec))
  end
  return out
end

return M
