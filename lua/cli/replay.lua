-- toolgate replay: what the gateway would have said of recorded calls. src/cli/lua_replay.c replays them and makes the
-- report; lua/report has its views.

local assistant_policies = require "replay/assistant_policies"
local conversation = require "replay/conversation"
local database = require "replay/database"
local draft_policy = require "replay/draft_policy"
local mine = require "replay/mine"
local reader = require "replay/reader"
local ui = require "ui"

local FORMATS = { "toolgate's decision log", "NDJSON of {session, tool, arguments, result}" }
for _, name in ipairs(reader.names) do FORMATS[#FORMATS + 1] = name end

local BAR_COLUMNS = 30

-- A function that draws a bar on stderr, and one that takes it away.
local function progress_bar()
  local shown = false
  return function(position, total)
    local bar = math.floor(position * BAR_COLUMNS / math.max(total, 1))
    io.stderr:write("\r", total > 0 and ("[%s%s] %3d %%  "):format(("#"):rep(bar), ("."):rep(BAR_COLUMNS - bar),
                    math.floor(position * 100 / total)) or "", ("%d MB"):format(math.floor(position / 1e6)))
    shown = true
  end, function()
    if shown then io.stderr:write "\r\27[K" end
  end
end

local function write_page(name, report)
  local file, why = io.open(name, "w")
  if file then
    require "report/html"(report, file)
    local closed, fault = file:close()
    if closed then return true end
    why = name .. ": " .. fault
  end
  cli.warn("--html: " .. why)
  return false
end

local function write_draft(o, draft)
  if not draft then return true end
  local written, why = draft.write(o["emit-policy"])
  if not written then cli.warn("--emit-policy: " .. why) end
  return written
end

-- What a recording looks like of which nothing was understood.
local function what_it_is(r)
  if r.without_arguments > 0 then return "its calls were recorded without their arguments" end
  if r.lines == 0 then return "no line could be read" end
  local fault = r.skipped.not_record
  local first = fault and fault.places[1]
  if not first then return "none of the lines is a call" end
  return ("none of the lines is a call; %s:%d: %s"):format(cli.line(first.file, 200), first.line, cli.line(first.why or "", 200))
end

local function exit_code(o, r)
  if r.calls == 0 then
    fail("no call could be replayed: %s. Read are %s", what_it_is(r), table.concat(FORMATS, ", "))
  end
  if not o["fail-on-new"] then return 0 end
  if r.against.new_refusals > 0 then return 1 end
  if r.unjudged_results > 0 and not o["allow-unjudged"] then
    fail("of %d call%s the result was not recorded: output schemas and result hooks were not judged; record them with "
         .. 'decisions = { results = "masked" }, or accept that with --allow-unjudged', r.unjudged_results,
         r.unjudged_results == 1 and "" or "s")
  end
  return 0
end

-- `--policies assistant` are those of the program, unless a folder of this name is here. Returns what removes them.
local function builtin_policies(o)
  local folders = {}
  local function remove()
    for _, each in ipairs(folders) do each() end
  end
  for _, name in ipairs { "policies", "against" } do
    if o[name] == "assistant" and not cli.access("assistant", "") then
      local folder, why = assistant_policies()
      if not folder then
        remove()
        fail("--%s assistant: %s", name, why)
      end
      o[name], folders[#folders + 1] = folder, why
      o.shown = o.shown or {}
      o.shown[folder] = "assistant"
    end
  end
  return remove
end

-- A tool list that a daemon has stored; nil: it is none.
local function stored_tools(path)
  local text = path:find "%.tools%.json$" and cli.file(path)
  local list = text and text:find '^{"upstream":' and cli.parse(text)
  return list and type(list.tools) == "table" and #list.tools > 0 and list.tools or nil
end

-- A decision log lies beside the tool lists of its daemon's upstreams: without a configuration, they are taken from there.
-- A list with a tool that another one has is left out: the daemon served them under other names.
local function add_stored_tools(o)
  local seen, named = {}, {}
  for _, path in ipairs(o) do
    local folder = (path:match "^(.*/)" or "./") .. "upstreams"
    local names = seen[folder] and {} or cli.list_folder(folder)
    seen[folder] = true
    table.sort(names)
    for _, name in ipairs(names) do
      local tools, new = stored_tools(folder .. "/" .. name), true
      for _, tool in ipairs(tools or {}) do new = new and not named[tool.name] end
      for _, tool in ipairs(tools or {}) do named[tool.name or ""] = true end
      if tools and new then
        o.tools = o.tools or {}
        table.insert(o.tools, folder .. "/" .. name)
      end
    end
  end
end

-- What the assistants of this user have, one line each.
local function print_found(found)
  local function say(words, ...) io.stderr:write(words:format(...), "\n") end
  for _, f in ipairs(found) do
    if f.files + f.older > 0 then
      local size = f.bytes < 1e5 and cli.fixed(f.bytes / 1000, 1) .. " kB" or cli.fixed(f.bytes / 1e6, 1) .. " MB"
      say("%-12s %s, %s%s%s", f.assistant, ui.count(f.files, "file"), size,
          f.newest and ", the latest " .. ui.ago(f.newest) or "", f.older > 0 and ("; %d older"):format(f.older) or "")
    end
    if f.unread > 0 then say("%-12s %s not read: %s", f.assistant, ui.count(f.unread, "file"), f.why) end
    if f.left_out > 0 then
      say("%-12s %d left out: links, pipes, or what you do not own or may not read", f.assistant, f.left_out)
    end
  end
end

-- A database of goose or opencode that is named becomes the lines in it.
local function open_databases(o)
  local kinds = { ["sessions.db"] = database.goose, ["opencode.db"] = database.opencode }
  for i, path in ipairs(o) do
    local kind = kinds[path:match "[^/]*$"]
    local lines, why
    if kind then lines, why = database.lines(kind, path, 0) end
    if kind and not lines then fail("%s: %s", path, why) end
    if why then cli.warn(("%s: %s"):format(path, why)) end
    if kind then
      o.shown = o.shown or {}
      o[i], o.shown[lines] = lines, path
    end
  end
end

-- With --mine the files become those of the user's assistants; returns what was found.
local function choose_files(o)
  local days = o.since or "30"
  if not o.mine and not o[1] then
    fail "name a FILE, or say --mine for the sessions of your own assistants (Claude Code, Codex, gemini-cli, …)"
  end
  if o.since and not o.mine then fail "--since chooses from the sessions that --mine finds" end
  if not o.mine then return open_databases(o) end
  if o[1] then fail "--mine finds the files: name none" end
  days = tonumber(days:match "^(%d+)d?$")
  if not days or days == 0 then fail("--since: expected a number of days, e.g. 30, got '%s'", o.since) end
  local home = os.getenv "HOME"
  if not home or home == "" then fail "--mine: HOME is not set" end
  local files, found, shown, full = mine(home, days)
  o.shown = shown
  print_found(found)
  if full then io.stderr:write(("only the first %d files were looked at"):format(full), "\n") end
  if #files == 0 then
    fail("no sessions of the last %d days below %s, of Claude Code, Codex, gemini-cli, opencode, goose, pi, Cline or Roo", days,
         home)
  end
  for i, file in ipairs(files) do o[i] = file end
  return found
end

return command {
  name = "replay", operands = "[FILE...]", summary = "say what the gateway would have said of recorded calls",
  least = 0, most = 100000,
  about = [[
Replays recorded sessions with a virtual clock and the recorded results: no tool runs. FILE is a
transcript of an assistant or SDK (Claude Code, Codex, gemini-cli, opencode, goose, Cline, OpenHands,
OpenAI, Anthropic, LangChain, OpenTelemetry, …), a decision log, NDJSON of {session, tool, arguments,
result}, or MCP's JSON-RPC; its format is found out. - is stdin. With --against, every call whose
verdict changes is listed by tool and code.]],
  exits = [[
  0  replayed
  1  with --fail-on-new: --against refuses a call that --policies passes
  2  usage, a file that cannot be read, no call that could be replayed;
     with --fail-on-new: rules for results, and results that were not recorded]],
  example = [[
  toolgate replay --mine
  toolgate replay --format openai run.json --tools tools.json
  toolgate replay decisions.ndjson --policies policies --against stricter --fail-on-new]],
  options = {
    text { name = "policies", letter = "p", argument = "DIR",
           words = "the folder of policies (default: the configuration's, else none); `assistant`: the built-in ones" },
    text { name = "against", letter = "a", argument = "DIR", words = "other policies: every call whose verdict they change" },
    require "files"[1],
    list { name = "tools", letter = "t", argument = "FILE",
           words = "tool definitions (MCP, OpenAI, Anthropic); TOOLSET=FILE for records of a `toolset`" },
    text { name = "format", letter = "f", argument = "FORMAT",
           words = "decisions, ndjson, openai, anthropic or mcp (default: found out)" },
    flag { name = "mine", words = "the sessions of your own assistants, wherever they keep them" },
    text { name = "since", argument = "DAYS", words = "with --mine: what changed in so many days (default 30)" },
    flag { name = "json", letter = "j", words = "print one JSON document" },
    flag { name = "markdown", words = "print Markdown" },
    text { name = "html", argument = "FILE", words = "also write one self-contained page with charts" },
    text { name = "emit-policy", argument = "FILE", words = "draft a policy that asks about commands that never ran" },
    flag { name = "fail-on-new", words = "exit 1 if --against refuses a call that --policies passes" },
    flag { name = "allow-unjudged", words = "with --fail-on-new: results that were not recorded are no error" },
  },

  run = function(o)
    if o["fail-on-new"] and not o.against then
      fail "--fail-on-new compares two sets of policies: name the other with --against DIR"
    end
    local found = choose_files(o)
    o.reader = reader.new(o.format)
    if not o.config and not o.mine then add_stored_tools(o) end
    local draft = o["emit-policy"] and draft_policy()
    if draft then conversation.set_watch(draft.watch) end
    local remove, clear = builtin_policies(o), nil
    if cli.stderr_is_terminal then o.progress, clear = progress_bar() end
    local replayed, views, text = pcall(cli.replay, o)
    remove()
    if clear then clear() end
    if not replayed then error(views, 0) end
    for path, name in pairs(o.shown or {}) do
      local from, to = '"' .. path .. '"', cli.quote(name):gsub("%%", "%%%%")
      views, text = views:gsub(from, to), text:gsub(from, to)
    end
    local report = cli.parse(views, true)
    if o.json then
      io.write(found and '{"found":' .. cli.json(found) .. "," .. text:sub(2) or text, "\n")
    else
      local first = o.mine and not o.against and not o.markdown
      if first and report.calls > 0 then
        ui.say "toolgate stands between an assistant and its tools. This is what it would have done in your own sessions."
        ui.say "Nothing was run again, nothing left this machine.\n"
      end
      require(o.markdown and "report/markdown" or "report/text")(report, first)
      if first and report.calls > 0 then
        ui.say "\nTo put toolgate in front of your assistant: toolgate attach, with --hooks for its own tools"
        ui.say("Every session, and the tables: %s", o.html and cli.line(o.html, 200) or "--html FILE, --markdown or --json")
      end
    end
    local written = not o.html or write_page(o.html, report)
    return write_draft(o, draft) and written and exit_code(o, report) or 2
  end,
}
