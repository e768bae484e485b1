-- Makes toolgate.lua(5) from the sample configuration and from the program's own list of keys:
--   luajit man/config_page.lua build/toolgate docs/toolgate.lua > man/toolgate.lua.5
local program, sample = arg[1], arg[2]

local function output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

-- "limits.depth" -> "Whole number, 4 to 128."
local types = {}
for path, what in output_of(program .. " words --format config"):gmatch "([^\t\n]+)\t([^\t]*)\t[^\n]*\n" do
  if not what:find "manual" and what ~= "table" and not what:find "^path" and not what:find '^"' then
    types[path] = what:sub(1, 1):upper() .. what:sub(2) .. "."
  end
end

local ESCAPES = { ["\\"] = "\\e", ["-"] = "\\-", ["'"] = "\\(aq", ["`"] = "\\(ga", ["^"] = "\\(ha", ["~"] = "\\(ti",
                  ["…"] = "..." }
local function roff(text)
  text = text:gsub("…", "..."):gsub("[\\%-'`^~]", ESCAPES)
  return (text:gsub("^%.", "\\&."))
end

-- As an argument of a macro.
local function quoted(text)
  return '"' .. roff(text):gsub('"', "\\(dq") .. '"'
end

local out, path, sentences = {}, {}, {}
local function put(line) out[#out + 1] = line end

-- upstreams.files.command is a key of any upstream.
local function full(name)
  local keys = {}
  for i, key in ipairs(path) do keys[i] = (i == 2 and path[1] == "upstreams") and "NAME" or key end
  keys[#keys + 1] = name
  return table.concat(keys, ".")
end

-- In the file the value follows its comment; here it precedes it.
local function take_sentences(type_of)
  local last = #sentences
  if last > 0 then
    sentences[last] = sentences[last]:gsub("; an example:$", "; this is an example."):gsub("; examples:$",
      "; these are examples."):gsub("An example:$", "This is an example."):gsub(":$", ".")
  end
  for _, line in ipairs(sentences) do put(roff(line)) end
  if type_of then put(roff(type_of)) end
  sentences = {}
end

local function setting(name, value)
  put ".TP"
  put((".BR %s %s"):format(quoted(full(name)), quoted(" = " .. value)))
  take_sentences(types[full(name)])
end

local function subtable(name)
  if #sentences > 0 and not (path[1] == "upstreams" and #path == 1) then
    put ".TP"
    put(".B " .. quoted(full(name)))
    take_sentences()
  end
  path[#path + 1] = name
end

local version = output_of(program .. " --version"):match "%S+%s+(%S+)"
local date = assert(io.open "src/base/version.h"):read "*a":match 'VERSION_DATE "([^"]*)"'
put [[.\" Made by man/config_page.lua from docs/toolgate.lua.]]
put(('.TH TOOLGATE.LUA 5 %s "toolgate %s" "File Formats"'):format(date, version))
put ".SH NAME\ntoolgate.lua \\- the configuration of toolgate\n.SH SYNOPSIS\n.I /etc/toolgate/toolgate.lua\n.SH DESCRIPTION"
put "A Lua file that returns a table, plain data without functions. Every key is optional; each is shown here with its"
put "default, or with an example where it has none. An unknown key or a value of a wrong type is an error, which names the"
put "line and the closest key. At start an error is fatal; at a reload the daemon keeps the configuration that it has."
put ".PP"
put "Sizes are in bytes. Paths are relative to the file's folder. Strings of upstreams and the address of Redis may contain"
put "${NAME}, a variable of the daemon's environment, ${NAME:\\-default} and ${file:/path}, the content of a file."
put ".PP\n.B \"toolgate serve \\-c FILE \\-\\-check\"\nchecks a file with everything that it names."
put ".SH KEYS"

local started = false
for line in io.lines(sample) do
  local title = line:match "^%s*%-%- == (.*) ==$"
  local comment = line:match "^%s*%-%- (.*)$"
  local name, value = line:match "^%s*%-?%-?([%w_]+) = (.-),?$"
  if line == "return {" then
    started, sentences = true, {}
  elseif title then
    put(".SS " .. roff(title))
  elseif comment then
    sentences[#sentences + 1] = comment
  elseif started and name then
    if value == "{" then subtable(name) else setting(name, value) end
  elseif started and line:find "^%s*%-?%-?}" then
    path[#path] = nil
  elseif started and line == "" and #sentences > 0 then
    put ".PP"
    take_sentences()
  end
end

put ".SH FILES\n.TP\n.I /etc/toolgate/toolgate.lua\nThe configuration of the service.\n.TP"
put ".I /usr/share/doc/toolgate/toolgate.lua\nAll keys with their defaults, as comments.\n.TP"
put ".I /etc/toolgate/NAME.lua\nThe configuration of an additional daemon, toolgate@NAME.service."
put ".SH EXAMPLES\n.EX\nreturn {"
put '  allow = { { groups = { "support" }, tools = { "get_*", "search_*" } } },'
put "  defaults = { retry = { repair = 2 }, loop = { repeats = 3 } },"
put '  log = { format = "json" },\n}\n.EE'
put ".SH SEE ALSO\n.BR toolgate (1),\n.BR toolgate\\-policy (5)\n.PP\nconfiguration.md in\n.IR /usr/share/doc/toolgate ."
print(table.concat(out, "\n"))
