-- Makes toolgate(1) from its template and from what the commands' --help says, so that an option is described once:
--   luajit man/command_page.lua build/toolgate man/toolgate.1.in > man/toolgate.1
-- The template has no synopsis, and those options of which the page says more than --help; they come in the order of
-- --help. FILE OPTIONS are not repeated in a section that mentions them.
local program, template = arg[1], assert(io.open(arg[2])):read "*a"

local function output_of(arguments)
  local pipe = assert(io.popen(program .. " " .. arguments))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

-- `…` is bold.
local ESCAPES = { ["\\"] = "\\e", ["-"] = "\\-", ["'"] = "\\(aq", ["^"] = "\\(ha", ["~"] = "\\(ti", ["…"] = "..." }
local function roff(text)
  text = text:gsub("…", "..."):gsub("[\\%-'^~]", ESCAPES):gsub("`([^`]*)`", "\\fB%1\\fR")
  return (text:gsub("^%.", "\\&."))
end

-- What a user replaces is italic, a word to type bold.
local function operands_of(help)
  local operands = roff(help:match "^usage: toolgate %l+ ?([^\n]-) ?%[options%]")
  return (operands:gsub("%a+", function(word) return (word:find "%l" and "\\fB" or "\\fI") .. word .. "\\fR" end))
end

local function synopsis()
  local out = {}
  for name in output_of "--help":gmatch "\n  ([a-z]+) " do
    local operands = operands_of(output_of(name .. " --help"))
    out[#out + 1] = (".B toolgate %s\n%s[\\fIoptions\\fR]\n"):format(name, operands ~= "" and operands .. " " or "")
  end
  return table.concat(out, ".br\n")
end

-- Each option as a paragraph, in the order of --help.
local function options_of(help)
  local list = {}
  for line in help:match "\noptions:\n(.-)\n\n":gmatch "[^\n]+" do
    local letter, name, rest = line:match "^ +%-?(%w?),? *%-%-([%l-]+)(.*)"
    local argument, words = rest:match "^ (%S+) +(.*)"
    if not argument then words = rest:match "^ +(.*)" end
    local tag = (letter ~= "" and "\\fB\\-" .. letter .. "\\fR, " or "") .. "\\fB" .. roff("--" .. name) .. "\\fR"
    list[#list + 1] = { name = name, text = (".TP\n%s%s\n%s%s.\n"):format(tag, argument and " \\fI" .. roff(argument) .. "\\fR"
                        or "", words:sub(1, 1):upper(), roff(words:sub(2))) }
  end
  return list
end

local FILE_OPTIONS = { config = true, policies = true, tools = true, ["mcp-config"] = true }

-- The options of a command, those of the template with their text there.
local function section(name, text)
  local by_hand, out = {}, { "" }
  for block in ("\n" .. text):gsub("\n%.TP\n", "\n\0%0"):gmatch "%Z+" do
    block = block:match "^\n*(.-)\n*$" .. "\n"
    local option = block:match "^%.TP\n[^\n]-\\%-\\%-([%l\\-]+)"
    if option then
      by_hand[option:gsub("\\", "")] = block
    else
      out[#out + 1] = block
    end
  end
  for _, option in ipairs(options_of(output_of(name .. " --help"))) do
    local is_shared = FILE_OPTIONS[option.name] and text:find "file%s+options"
    if option.name ~= "help" and not is_shared then out[#out + 1] = by_hand[option.name] or option.text end
    by_hand[option.name] = nil
  end
  assert(next(by_hand) == nil, ("%s has no --%s"):format(name, next(by_hand)))
  return (".SS %s\n%s"):format(name, table.concat(out))
end

local version = output_of "--version":match " (%S+)"
local page = template:gsub("@VERSION@", version):gsub("@SYNOPSIS@\n", (synopsis():gsub("%%", "%%%%")))
local before, commands, after = page:match "^(.-\n%.SH COMMANDS\n)(.-)(\n%.SH .*)$"
io.write(before)
for name, text in (commands .. "\n"):gsub("\n%.SS ", "\n\0%0"):gsub("^%.SS ", "\n%0"):gmatch "\n%.SS (%l+)\n(%Z*)" do
  io.write(section(name, text))
end
io.write(after:sub(2))
