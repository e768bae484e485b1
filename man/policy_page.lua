-- Makes toolgate-policy(5) from the reference that `toolgate words --format markdown` prints:
--   luajit man/policy_page.lua docs/vocabulary.md src/base/version.h > man/toolgate-policy.5
local reference, header = arg[1], arg[2]

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

local version = read(header)
local function constant(name) return assert(version:match(name .. ' "([^"]+)"')) end

-- Text that roff takes literally; the backticks of code go.
local ESCAPES = { ["\\"] = "\\e", ["-"] = "\\-", ["'"] = "\\(aq", ["`"] = "", ["^"] = "\\(ha", ["~"] = "\\(ti" }
local function roff(text) return (text:gsub("[\\%-'`^~]", ESCAPES):gsub("^%.", "\\&.")) end

local BEGIN = [[
.\" Made by `make reference`.
.TH TOOLGATE\-POLICY 5 %s "toolgate %s" "File Formats"
.SH NAME
toolgate\-policy \- the policy of a tool
.SH SYNOPSIS
.I /etc/toolgate/policies/*.lua
.SH DESCRIPTION
A policy is a Lua file that returns what toolgate knows of one tool: its schema, who may call it, its limits and
rules, who runs it, and examples that toolgate runs whenever it loads the file.
A file that returns
.B policy
is a policy for several tools.
.PP
.EX
\-\- get_weather: the weather at a place. Read only.
return tool "get_weather" {
  description = "The weather at a place.",
  effects = "read",
  schema = params { place = str { min = 1, "A city" } },
  examples = {
    { "a city", args = { place = "Oslo" }, gives = "pass" },
    { "no city", args = {}, gives = "repair" },
  },
}
.EE
.PP
.B "toolgate new"
writes a first policy,
.B "toolgate test"
runs the examples, and
.B "toolgate words"
prints the entries below.
]]

local END = [[
.SH SEE ALSO
.BR toolgate (1),
.BR toolgate.lua (5)
.PP
policy.md, cookbook.md and testing.md in
.IR /usr/share/doc/toolgate .
]]

-- A tagged paragraph: the name, its forms as an example, its sentence.
local function put_entry(name, forms, sentence)
  io.write(".TP\n.B ", roff(name), "\n", roff(sentence), "\n.RS\n.PP\n.EX\n")
  for form in (forms .. "` or `"):gmatch "(.-)` or `" do io.write(roff(form), "\n") end
  io.write(".EE\n.RE\n")
end

io.write(BEGIN:format(constant "TOOLGATE_VERSION_DATE", constant "TOOLGATE_VERSION"))
local is_field = false
for line in read(reference):gmatch "[^\n]+" do
  local cells = line:gsub("\\|", "\1")
  local name, forms, sentence = cells:match "^| `([^`]*)` | `(.-)` | ([^|]*) |$"
  if name then
    put_entry(name, (forms:gsub("\1", "|")), (sentence:gsub("\1", "|")))
  elseif line:find "^## " then
    is_field = line == "## Fields"
    io.write(".SH ", line:sub(4):upper(), "\n")
  elseif line:find "^### " then
    io.write(".SS ", roff((is_field and "Fields of " or "") .. line:sub(5)), "\n")
  elseif is_field and not line:find "^|" then
    io.write(roff(line), "\n")
  end
end
io.write(END)
