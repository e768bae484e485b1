-- The decision log as `decisions` and `shadow` read it: named files, standard input, or the log of the daemon with its
-- rotated files. A record is a `log` of C (src/cli/lua_log.c) that is asked for what is needed of it.
local ui = require "ui"

local decision_log = {}

local ROTATED_MAX = 1000                                -- FILE.1000 is the oldest that is looked for
local SYSTEM_LOG = "/var/lib/toolgate/decisions.ndjson" -- in the StateDirectory= of the service
local ENOENT, EACCES = 2, 13
local COPIED_BYTES = 65536

-- Outcomes of a call that are no verdict of the gate about it: it ran, or what runs it was not there.
local NOT_REFUSED = { ok = true, partial_data = true, semantic_garbage = true, schema_mismatch = true, transient = true,
                      tool_error = true, unavailable = true, cancelled = true }

local ANSWERS = { ["toolgate/approve"] = "approved", ["toolgate/deny"] = "denied" }

-- The gate kept the call from its tool; with "would" it would have if the policy's mode were enforce. A call that has a
-- result ran, whatever a policy said of it then.
function decision_log.is_refused(log, would)
  local verdict = log:get("verdict", would)
  return verdict and verdict ~= "pass" and not NOT_REFUSED[log:get("error_class", would) or ""]
         and (would or not log:get("class", "result"))
end

-- Of a call: what was answered to the question of its policy. Of an operator's answer, which is a record of its own: that.
function decision_log.answer(log) return ANSWERS[log:get "method" or ""] or log:get "answer" end

function decision_log.answered_by(log)
  return log:get(ANSWERS[log:get "method" or ""] and "user" or "answered_by") or "the user"
end

function decision_log.is_answer(log) return ANSWERS[log:get "method" or ""] ~= nil end

-- A report completes the record of its check, which has the same id.
function decision_log.is_report(log) return log:get "method" == "toolgate/report" end

-- The digits of a whole number, or nil.
function decision_log.whole(log, name)
  local n = log:value(name)
  return type(n) == "number" and n >= 0 and n % 1 == 0 and ("%d"):format(n) or nil
end

function decision_log.turn(log)
  local turn = decision_log.whole(log, "turn")
  return turn ~= "0" and turn or nil
end

-- ---- the daemon's files ----

-- The answer of toolgate/status; nil: no daemon.
function decision_log.status(path) return (cli.ask(path, "toolgate/status", nil, "exact")) end

-- Also true for a file that may not be read, or in a folder that may not be.
local function exists(path)
  local file, _, code = io.open(path)
  if file then file:close() end
  return file or code == EACCES
end

local function path_of(status, given)
  local place = given or cli.default_socket()
  local paths = status and status.paths
  local path = paths and ui.text(ui.table(paths).decisions) or ""
  if path ~= "" then return path end
  if paths then
    fail("the daemon at %s writes no file of decisions: set decisions = true in its configuration, without file = false, or "
         .. "name a FILE", place)
  end
  if status then
    fail("the daemon at %s tells its files only to root and to the user that runs it: run this as one of them, or name a FILE",
         place)
  end
  local beside = cli.default_log(place)
  if exists(beside) then return beside end
  if not given and exists(SYSTEM_LOG) then return SYSTEM_LOG end
  fail("no daemon answers at %s, and there is no log at %s: start the daemon, name its socket with --socket, or name a FILE",
       place, beside)
end

local function check_readable(path, may_be_missing)
  local file, why, code = io.open(path)
  if file then return file:close() end
  if code == ENOENT and may_be_missing then return end
  if code ~= EACCES then fail("%s: wait for the daemon's first call, or name a FILE", why) end
  local owner = cli.stat(path)
  fail("%s: only root and the user %s may read it: run this as one of them, with sudo", path,
       owner and cli.user_name(owner.uid) or "of the daemon")
end

-- The files of the daemon at that socket (nil: the default one), rotated ones first, the oldest in front; and its status.
-- With `written_only` only the file that is written, which need not exist yet.
function decision_log.find(given, written_only)
  local status = decision_log.status(given or cli.default_socket())
  local path, files = path_of(status, given), {}
  check_readable(path, written_only)
  for i = written_only and 0 or ROTATED_MAX, 1, -1 do -- an operator may have taken one of them away
    local rotated = ("%s.%d"):format(path, i)
    if cli.stat(rotated) then files[#files + 1] = rotated end
  end
  files[#files + 1] = path
  if cli.stderr_is_terminal then io.stderr:write("reading ", table.concat(files, ", "), "\n") end
  return files, status
end

-- ---- reading ----

local function copy_of(name, shown)
  local from, why = io.stdin, nil
  if name ~= "-" then from, why = io.open(name) end
  if not from then fail("%s", why) end
  local copy
  copy, why = io.tmpfile()
  while copy do
    local bytes
    bytes, why = from:read(COPIED_BYTES)
    if not bytes then break end
    why = select(2, copy:write(bytes))
    if why then break end
  end
  if why or not copy:flush() then fail("%s: %s", shown, why or "it could not be copied") end
  return copy
end

local Input = {}
Input.__index = Input

-- Standard input and pipes are copied to a temporary file: the records are read twice, as what follows a refusal is known
-- only at the end.
function decision_log.open(files)
  local input = setmetatable({ paths = {}, names = {}, copies = {}, cut_short = false }, Input)
  for i, name in ipairs(files) do
    input.paths[i] = name
    if name == "-" or (cli.stat(name) or {}).kind == "pipe" then
      local shown = name == "-" and "stdin" or name
      input.copies[i] = copy_of(name, shown)
      input.paths[i] = "/proc/self/fd/" .. cli.descriptor(input.copies[i])
      input.names[input.paths[i]] = shown
    end
  end
  return input
end

-- "toolgate decisions: lines that are not JSON: 2, at a.log:7 (…), a.log:9 (…)"
function Input:report(faults)
  for _, fault in ipairs(faults) do
    local places = {}
    for i, place in ipairs(fault.places) do
      places[i] = cli.line(self.names[place.file] or place.file) .. (place.number > 0 and ":" .. place.number or "")
                  .. (place.why ~= "" and " (" .. cli.line(place.why) .. ")" or "")
    end
    cli.warn(("%s: %d, at %s%s"):format(fault.text, fault.count, table.concat(places, ", "),
                                        fault.count > #places and ", …" or ""))
  end
end

-- Calls visit(log) with each record in the order of the log, until it returns false; a second walk ends where the first did,
-- though the daemon goes on writing. `reports` what could not be read. Returns false after an error.
function Input:walk(visit, reports)
  local log, why = cli.log(self.paths)
  if not log then return cli.warn(why) or false end
  local walked = self.records
  self.records = 0
  while log:next() and self.records ~= walked do
    self.records = self.records + 1
    if visit(log) == false then break end
  end
  local faults, failed = log:faults()
  self.cut_short = self.cut_short or failed
  if reports then self:report(faults) end
  log:close()
  return true
end

-- Follows the one file through its rotations until visit(log), or wait() at the end of what is written, returns false. What
-- cannot be read is reported when it comes, since there is no end at which it could be.
function Input:follow(visit, wait)
  local reported, log, why = 0
  log, why = cli.log(self.paths, function()
    local faults, count = log:faults(), 0
    for _, fault in ipairs(faults) do count = count + fault.count end
    if count > reported then self:report(faults) end
    reported = count
    return wait()
  end)
  if not log then return cli.warn(why) or false end
  local going = true
  while going and log:next() do going = visit(log) end
  log:close()
  return true
end

return decision_log
