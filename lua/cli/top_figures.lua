-- What `toolgate top` shows, computed from two answers of toolgate/status: rates are the difference of two counters over the
-- time between them.
local VERDICTS_MAX, CODES_MAX = 6, 3

local top_figures = {}

local function number(object, name)
  local value = type(object) == "table" and object[name]
  return type(value) == "number" and value or 0
end

local function is_same_process(before, now)
  return number(before, "pid") == number(now, "pid") and number(before, "started_ms") == number(now, "started_ms")
end

-- Counters never decrease in one process.
local function rate(before, now, seconds) return now > before and seconds > 0 and (now - before) / seconds or 0 end

local function sum(counts)
  local total = 0
  for name in pairs(counts or {}) do total = total + number(counts, name) end
  return total
end

local function share(part, of) return of > 0 and part / of or nil end

-- The most frequent ones, first.
local function codes_of(counts)
  local codes = {}
  for _, name in ipairs(counts and cli.keys(counts) or {}) do
    local code = { code = name, count = number(counts, name) }
    for i = 1, CODES_MAX do
      if code and code.count > (codes[i] and codes[i].count or 0) then codes[i], code = code, codes[i] end
    end
  end
  return codes
end

local function tool_of(before, now, seconds)
  local chains, calls, refused = now.chains, number(now, "calls"), number(now, "refused")
  return {
    name = now.tool or "", calls = calls, refused = refused,
    calls_s = rate(number(before, "calls"), calls, seconds), refused_s = rate(number(before, "refused"), refused, seconds),
    refused_share = share(refused, calls), recovered_share = share(number(chains, "success"), sum(chains)),
    codes = codes_of(now.codes),
  }
end

-- Descending; equal ones by the totals, then by name, so that idle tools keep their places.
local function by(figure, total)
  return function(a, b)
    if a[figure] ~= b[figure] then return a[figure] > b[figure] end
    if a[total] ~= b[total] then return a[total] > b[total] end
    return a.name < b.name
  end
end

local ORDERS = { rate = by("calls_s", "calls"), refusals = by("refused_s", "refused"),
                 name = function(a, b) return a.name < b.name end }

-- Snapshots: { status, sessions, at_us }. If `before` is empty, or of another process, rates are those since the start of
-- the daemon, and `seconds` is 0.
function top_figures.compute(before, now, order)
  local is_comparable = before.status and is_same_process(before.status, now.status)
  local status, earlier = now.status, is_comparable and before.status or {}
  local seconds = is_comparable and (now.at_us - before.at_us) / 1e6 or number(status, "uptime_s")
  local figures = { seconds = is_comparable and seconds or 0, calls_s = 0, verdicts = {}, tools = {} }
  local counters, past = status.counters or {}, earlier.counters or {}
  for i, name in ipairs(counters.verdicts and cli.keys(counters.verdicts) or {}) do
    local total = number(counters.verdicts, name)
    local per_s = rate(number(past.verdicts, name), total, seconds)
    figures.calls_s = figures.calls_s + per_s
    if i <= VERDICTS_MAX then figures.verdicts[i] = { name = name, total = total, per_s = per_s } end
  end
  figures.recovered, figures.chains = number(counters.chains, "success"), sum(counters.chains)
  local by_name = {}
  for _, tool in ipairs(earlier.tools or {}) do by_name[tool.tool or ""] = tool end
  for _, tool in ipairs(status.tools or {}) do
    if number(tool, "calls") ~= 0 then
      figures.tools[#figures.tools + 1] = tool_of(by_name[tool.tool or ""], tool, seconds)
    end
  end
  table.sort(figures.tools, ORDERS[order])
  return figures
end

top_figures.number, top_figures.is_same_process = number, is_same_process

return top_figures
