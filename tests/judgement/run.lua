-- make judgement: how right the gate's verdicts are on recorded traffic of real models, and how it takes right calls
-- that arrive spoiled. Prints the tables, writes docs/judgement.md if all was judged, and ends with `N passed, N failed`; a
-- line fails beyond its bound.
--
-- The recordings lie beside the project (../shared/data/corpus, or CORPUS); without them nothing of them is judged, and it
-- says so. RECORDINGS=DIR judges one's own transcripts instead. EACH=400 spoiled calls of each way;
-- ONLY=recorded,results,situations,invented,spoiled selects; VERBOSE=1 prints each miss.
package.path = "tests/support/?.lua;tests/judgement/?.lua;" .. package.path
local daemon = require "daemon"
local corpus = require "corpus"
local score = require "score"

local PARTS = { "recorded", "results", "situations", "invented", "spoiled" }

local parts = {}

function parts.recorded(open, sets)
  local recorded = require "recorded"
  require("transcripts").corpus()
  recorded.labelled(open)
  recorded.sessions(open, sets)
  recorded.fresh_ids(open, sets)
end

function parts.results() require("recorded").results() end
function parts.situations() require("situations").judge_all() end
function parts.invented(open) require("spoiled").invented(open) end
function parts.spoiled(open, sets) require("spoiled").spoiled(open, sets) end

local function chosen(name)
  local only = os.getenv "ONLY"
  return not only or ("," .. only .. ","):find("," .. name .. ",", 1, true)
end

local function judge_corpus()
  if not corpus.is_there() then
    print("no recordings in " .. corpus.folder .. ": only situations are judged (set CORPUS to their folder)")
    parts.situations()
    return
  end
  local open, sets = corpus.opener(), corpus.definitions()
  for _, name in ipairs(PARTS) do
    if chosen(name) then parts[name](open, sets) end
  end
  if not os.getenv "ONLY" and not os.getenv "EACH" and not os.getenv "CORPUS" then
    require("page").write("docs/judgement.md", score.figures)
  end
end

local function main()
  local own = os.getenv "RECORDINGS"
  if own then
    os.exit(require("transcripts").own(own) and 0 or 1)
  end
  judge_corpus()
  daemon.stop_all()
  print(("%d passed, %d failed"):format(score.passed, score.failed))
  os.exit(score.failed == 0 and 0 or 1)
end

local ok, why = xpcall(main, debug.traceback)
if not ok then
  io.stderr:write(why, "\n")
  pcall(daemon.stop_all)
  os.exit(1)
end
