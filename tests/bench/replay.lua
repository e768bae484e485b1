-- Measures toolgate replay: calls a second, memory, and instructions a call (valgrind, if it is installed). The recording
-- is written here: decision records of several hundred bytes, of sessions that interleave. ROUNDS=5 CALLS=200000.
package.path = "tests/support/?.lua;" .. package.path
local process = require "process"
local json = require("cjson").new()

local TOOLGATE = assert(os.getenv "TOOLGATE", "TOOLGATE names the binary")
local ROUNDS, CALLS = tonumber(os.getenv "ROUNDS" or 5), tonumber(os.getenv "CALLS" or 200000)
local INTERLEAVED = 64 -- sessions at a time, of 20 calls each

local TOOLS = { "get_events", "search_orders", "update_order", "send_mail" }

local TOOL = [[{"name":"%s","description":"A tool.","inputSchema":{"type":"object","required":["id","limit"],"properties":{
  "id":{"type":"string","pattern":"^[a-z0-9-]+$"},"limit":{"type":"integer","minimum":1,"maximum":100},
  "query":{"type":"string","maxLength":200},"tags":{"type":"array","items":{"type":"string"}}}}}]]

local POLICY = [[
-- %s: a check and a result hook in Lua.
return tool %q {
  check = function(args, call)
    if args.limit > %d then return refuse("too_many", "At most %d at once.") end
    for _, tag in ipairs(args.tags or {}) do
      if tag == "secret" then return refuse("secret_tag", "Secret tags are not searched.") end
    end
  end,
}
]]

local folder = process.directory()

local function record(i)
  local block, at = math.floor(i / (INTERLEAVED * 20)), i % (INTERLEAVED * 20)
  local session, turn = block * INTERLEAVED + at % INTERLEAVED, math.floor(at / INTERLEAVED / 5) + 1
  local second = math.floor(i / 20)
  return ('{"v":1,"ts":"2026-11-%02dT%02d:%02d:%02d.123456Z","decision_id":"%032x","generation":"4c1f00aa4c1f00aa",'
    .. '"policy_mode":"enforce","user":"support","uid":1001,"session":"chat-%d","turn":%d,"step":"m%d","tool":"%s",'
    .. '"upstream":"crm","method":"tools/call","arguments":{"id":"order-%d","limit":%d,"query":"orders of customer %d that '
    .. 'are open and late","tags":["open","late"]},"verdict":"pass","error_class":"ok","result":{"class":"ok","hash":'
    .. '"%032x","bytes":812},"us":{"total":812,"queue":3,"schema":2,"policy":9,"ledger":61,"upstream":731},"ledger":"local"}\n')
    :format(1 + second / 86400 % 28, second / 3600 % 24, second / 60 % 60, second % 60, i, session, turn, i, TOOLS[i % 4 + 1],
            i % 997, i % 119 + 1, i % 89, i)
end

local function write_recording(name, calls)
  local file = assert(io.open(folder .. "/" .. name, "w"))
  for i = 1, calls do file:write(record(i)) end
  file:close()
  return folder .. "/" .. name
end

local function write_policies(name, most)
  os.execute("mkdir " .. folder .. "/" .. name)
  for _, tool in ipairs(TOOLS) do
    process.write(("%s/%s/%s.lua"):format(folder, name, tool), POLICY:format(tool, tool, most, most))
  end
  return folder .. "/" .. name
end

local definitions = {}
for i, tool in ipairs(TOOLS) do definitions[i] = TOOL:format(tool) end
local tools = process.write(folder .. "/tools.json", "[" .. table.concat(definitions, ",") .. "]")
local policies, stricter = write_policies("policies", 100), write_policies("stricter", 50)
local VARIANTS = {
  { "schemas and built-in rules" },
  { "policies with a check in Lua", "--policies", policies },
  { "--against: two sets of policies", "--policies", policies, "--against", stricter },
}

local function replay(recording, variant, before)
  local argv = before or {}
  for _, word in ipairs { TOOLGATE, "replay", "--json", recording, "--tools", tools, unpack(variant, 2) } do
    argv[#argv + 1] = word
  end
  local code, out, err = process.run(argv)
  assert(code == 0, err)
  return json.decode(out), err
end

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

local function instructions(variant)
  if os.execute "command -v valgrind >/dev/null 2>&1" ~= 0 then return nil end
  local counts = {}
  for k = 1, 2 do
    local _, err = replay(write_recording("small" .. k, k * 5000), variant, { "valgrind", "--tool=none", "--tool=callgrind",
                          "--callgrind-out-file=/dev/null" })
    counts[k] = tonumber((err:match "Collected : (%d+)"))
  end
  return counts[1] and counts[2] and (counts[2] - counts[1]) / 5000
end

local recording = write_recording("recording.ndjson", CALLS)
local bytes = #process.read(recording) / CALLS
print(("%d calls, %.0f bytes each, %d rounds"):format(CALLS, bytes, ROUNDS))
for _, variant in ipairs(VARIANTS) do variant.rates = {} end
for _ = 1, ROUNDS do -- in turn, so that a busy host disturbs all alike
  for _, variant in ipairs(VARIANTS) do
    local report = replay(recording, variant)
    assert(report.calls == CALLS)
    table.insert(variant.rates, report.calls / report.us * 1e6)
  end
end
for _, variant in ipairs(VARIANTS) do
  local each = instructions(variant)
  print(("%-34s %8.0f calls/s (best %.0f)%s"):format(variant[1], median(variant.rates), variant.rates[#variant.rates],
    each and (", %.0f instructions a call"):format(each) or ""))
end
process.remove(folder)
