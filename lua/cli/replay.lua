-- toolgate replay: what the gateway would have said of recorded calls. src/cli/lua_replay.c replays them and makes the
-- report; lua/report has its views.

local reader = require "replay/reader"

local FORMATS = { "toolgate's decision log", "NDJSON of {session, tool, arguments, result}", "MCP's JSON-RPC" }
for _, name in ipairs(reader.names) do FORMATS[#FORMATS + 1] = name end

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

return command {
  name = "replay", operands = "FILE...", summary = "say what the gateway would have said of recorded calls",
  least = 1, most = 100000,
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
  toolgate replay --format openai run.json --tools tools.json
  toolgate replay decisions.ndjson --policies policies --against stricter --fail-on-new]],
  options = {
    text { name = "policies", letter = "p", argument = "DIR",
           words = "the folder of policies (default: the configuration's, else none)" },
    text { name = "against", letter = "a", argument = "DIR", words = "other policies: every call whose verdict they change" },
    require "files"[1],
    list { name = "tools", letter = "t", argument = "FILE",
           words = "tool definitions (MCP, OpenAI, Anthropic); TOOLSET=FILE for records of a `toolset`" },
    text { name = "format", letter = "f", argument = "FORMAT",
           words = "decisions, ndjson, openai, anthropic or mcp (default: found out)" },
    flag { name = "json", letter = "j", words = "print one JSON document" },
    flag { name = "markdown", words = "print Markdown" },
    text { name = "html", argument = "FILE", words = "also write one self-contained page with charts" },
    flag { name = "fail-on-new", words = "exit 1 if --against refuses a call that --policies passes" },
    flag { name = "allow-unjudged", words = "with --fail-on-new: results that were not recorded are no error" },
  },

  run = function(o)
    if o["fail-on-new"] and not o.against then
      fail "--fail-on-new compares two sets of policies: name the other with --against DIR"
    end
    o.reader = reader.new(o.format)
    local views, text = cli.replay(o)
    local report = cli.parse(views, true)
    if o.json then
      io.write(text, "\n")
    else
      require(o.markdown and "report/markdown" or "report/text")(report)
    end
    local written = not o.html or write_page(o.html, report)
    return written and exit_code(o, report) or 2
  end,
}
