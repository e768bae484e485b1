-- Transcripts as `toolgate replay` judges them: the corpus, or one's own (RECORDINGS=DIR). A recorded result is evidence:
-- a refused call that had brought something new was refused wrongly.
local process = require "process"
local daemon = require "daemon"
local corpus = require "corpus"
local score = require "score"
local json = require("client").json

local FILES_AT_A_TIME = 500
local EXAMPLES = 10

local M = {}

local SUMS = { "calls", "sessions", "refused", "lost_results", "repaired", "failures", "failures_shown", "failures_unmarked",
               "without_result" }
local LOOPS = { "calls_saved", "runaways", "halted" }

local function add(report, sum)
  for _, key in ipairs(SUMS) do sum[key] = (sum[key] or 0) + report[key] end
  for _, key in ipairs(LOOPS) do sum[key] = (sum[key] or 0) + report.loops[key] end
  sum.codes = sum.codes or {}
  for _, row in ipairs(report.codes.rows) do sum.codes[row.code] = (sum.codes[row.code] or 0) + row.refused end
  return sum
end

-- The sums of the reports on all files; files that cannot be replayed are counted as `unread`.
local function replay(files, options)
  local sum = { unread = 0, refusals = {} }
  for from = 1, #files, FILES_AT_A_TIME do
    local argv = { daemon.binary, "replay", "--json" }
    for _, option in ipairs(options) do argv[#argv + 1] = option end
    for i = from, math.min(from + FILES_AT_A_TIME - 1, #files) do argv[#argv + 1] = files[i] end
    local _, out, err = process.run(argv)
    if out ~= "" then
      add(json.decode(out), sum)
    else
      io.stderr:write(err)
      sum.unread = sum.unread + math.min(FILES_AT_A_TIME, #files - from + 1)
    end
  end
  return sum.calls and sum.calls > 0 and sum or nil
end

local function files_of(pattern)
  local files = {}
  for path in io.popen(pattern):lines() do files[#files + 1] = path end
  table.sort(files)
  return files
end

-- Refusals by what refused: "loop 550, unknown_field 23".
local function reasons(sum)
  local list = {}
  for code, calls in pairs(sum.codes) do
    if calls > 0 then list[#list + 1] = { code, calls } end
  end
  table.sort(list, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  for i, reason in ipairs(list) do list[i] = ("%s %d"):format(reason[1], reason[2]) end
  return table.concat(list, ", ", 1, math.min(#list, EXAMPLES))
end

local ROWS = {
  { "calls without a recorded result", function(s) return s.without_result end },
  { "refused though they brought something new, of 10,000 calls",
    function(s) return ("%s (%d)"):format(score.per_10000(s.lost_results, s.calls), s.lost_results) end },
  { "saved: repetitions that brought nothing new", function(s) return s.calls_saved end },
  { "sessions that ran away: 20 of these or more", function(s) return s.runaways end },
  { "sessions told to end", function(s) return s.halted end },
  { "calls with repaired arguments", function(s) return s.repaired end },
  { "failures marked as such, shown by their text", function(s) return ("%d of %d"):format(s.failures_shown, s.failures) end },
  { "failures that only the text shows", function(s) return s.failures_unmarked end },
}

local function print_table(plain, guarded)
  print(("%-62s %16s %16s"):format("", "built-in rules", "with policies"))
  for _, row in ipairs(ROWS) do
    print(("%-62s %16s %16s"):format(row[1], row[2](plain), row[2](guarded)))
  end
  print("refused by: " .. reasons(plain))
  print("with the policies of policies/assistant: " .. reasons(guarded))
end

-- One's own transcripts, in every format that `toolgate replay` reads, without policies and with those for assistants.
-- Returns whether any call was found.
function M.own(folder)
  local files = files_of("find '" .. folder:gsub("'", "'\\''") .. "' -type f -size -256M 2>/dev/null")
  local plain = replay(files, {})
  if not plain then
    print(("%s holds no transcript that toolgate replay can read (%d files)"):format(folder, #files))
    return false
  end
  print(("calls %s, sessions %s, files %s in %s"):format(score.number(plain.calls), score.number(plain.sessions),
    score.number(#files), folder))
  if plain.unread > 0 then print(("files that could not be read: %d"):format(plain.unread)) end
  print_table(plain, replay(files, { "--policies", daemon.root .. "/policies/assistant" }))
  print("Where each refusal stands: toolgate replay FILE..., with --policies policies/assistant for the second column.")
  return true
end

-- The corpus with its definitions.
function M.corpus()
  local options = {}
  for _, path in ipairs(files_of("ls " .. corpus.folder .. "/tools-*.json")) do
    options[#options + 1] = "--tools"
    options[#options + 1] = path:match "tools%-(.*)%.json$" .. "=" .. path
  end
  local sum = replay(files_of("ls " .. corpus.folder .. "/trajectories-*.ndjson"), options)
  score.judge(sum.lost_results <= 1, "recorded calls that would have been refused though they brought something new: %d of %d, "
    .. "%s in 10,000 (to reach: 0 or 1); %d repetitions saved", sum.lost_results, sum.calls,
    score.per_10000(sum.lost_results, sum.calls), sum.calls_saved)
  score.keep { calls = sum.calls, sessions = sum.sessions, lost = sum.lost_results, saved = sum.calls_saved,
               lost_per_10000 = score.per_10000(sum.lost_results, sum.calls), reasons = reasons(sum) }
end

return M
