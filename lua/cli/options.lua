-- What a command declares, and what comes of it: parsing, --help and completion. `command { … }` takes name, operands,
-- summary, about, exits, example, options (each made by one of the words below), least and most operands, and `run`, which
-- gets a table of the options' values with the operands as its list, and returns the exit code (nothing: 0).
-- The file returns how a command is run: by its name and its arguments.

function flag(o) o.is_flag = true return o end
function text(o) return o end
function number(o) o.is_number = true return o end
function choice(o) o.is_choice = true return o end
function list(o) o.is_list = true return o end

socket = text { name = "socket", letter = "s", argument = "PATH",
                words = "the daemon's socket (default $XDG_RUNTIME_DIR/toolgate/toolgate.sock)" }
json = flag { name = "json", letter = "j", words = "print JSON" }
files = "files" -- among a command's options: those of files.lua

local LIST_MAX = 64 -- values of one option

local help = flag { name = "help", letter = "h", words = "print this help" }

-- Says what is wrong, and ends the command.
function fail(form, ...)
  cli.warn(form:format(...))
  error(2, 0)
end

function command(c)
  local options = {}
  for _, given in ipairs(c.options or {}) do
    if given == files then given = require "files" end
    for _, option in ipairs(given.name and { given } or given) do options[#options + 1] = option end
  end
  c.operands, c.least, c.options = c.operands or "", c.least or 0, options
  c.most, c.all = c.most or c.least, { unpack(options) }
  c.all[#c.all + 1] = help
  return c
end

local function unknown(c, word) require "help".refuse(c, word) end

-- A long option may be cut, as long as no other begins alike.
local function find_long(c, name)
  local found
  for _, option in ipairs(c.all) do
    if option.name == name then return option end
    if option.name:sub(1, #name) == name then
      if found then return nil end
      found = option
    end
  end
  return found
end

local function find_letter(c, letter)
  for _, option in ipairs(c.all) do
    if option.letter == letter then return option end
  end
end

local function spoken(words) return (table.concat(words, ", "):gsub(", (%S+)$", " or %1")) end

local function value_of(o, given)
  if o.is_number then
    local n = given:match "^%s*%+?(%d+)$"
    n = n and tonumber(n)
    if not n or n < 1 or n > 1000000 then
      fail("--%s: expected a whole number from 1 to 1000000, got '%s'", o.name, given)
    end
    return n
  end
  if o.is_choice then
    local words = {}
    for word in o.argument:gmatch "[^|]+" do
      if word == given then return given end
      words[#words + 1] = word
    end
    fail("--%s: expected %s, got '%s'", o.name, spoken(words), given)
  end
  return given
end

-- The option's value: behind it, or the next word, which is no other option.
local function take(c, o, inline, words)
  if inline then return value_of(o, inline) end
  local given = table.remove(words)
  if not given then fail("--%s needs a %s", o.name, o.argument) end
  local other = given:match "^%-%-(.+)"
  for _, option in ipairs(c.all) do
    if option.name == other then
      fail("--%s needs a %s, got the option '%s'; write --%s=%s if that is the %s", o.name, o.argument, given, o.name,
           given, o.argument)
    end
  end
  return value_of(o, given)
end

local function put(o, value, out)
  if not o.is_list then
    out[o.name] = value
    return
  end
  local values = out[o.name] or {}
  if #values == LIST_MAX then
    fail("--%s: given more than %d times; list the files in the configuration instead", o.name, LIST_MAX)
  end
  values[#values + 1], out[o.name] = value, values
end

local function read_long(c, word, words, out)
  local name, inline = word:match "^%-%-([^=]*)=?(.*)"
  inline = word:find("=", 1, true) and inline
  local o = find_long(c, name) or unknown(c, word)
  if o.is_flag and inline then fail("--%s takes no value", o.name) end
  put(o, o.is_flag or take(c, o, inline, words), out)
end

-- "-lj", "-n3", "-n 3"
local function read_letters(c, word, words, out)
  local rest = word:sub(2)
  while rest ~= "" do
    local o = find_letter(c, rest:sub(1, 1)) or unknown(c, "-" .. rest:sub(1, 1))
    rest = rest:sub(2)
    if not o.is_flag then return put(o, take(c, o, rest ~= "" and rest or nil, words), out) end
    out[o.name] = true
  end
end

-- False: it was --help. Options and operands come in any order; "--" ends the options.
local function parse(c, given)
  local words, out, only_operands = {}, {}, false -- the next word is the last of the list: there may be 100,000
  for i, word in ipairs(given) do words[#given + 1 - i] = word end
  while words[1] do
    local word = table.remove(words)
    if only_operands or not word:find "^%-." then
      out[#out + 1] = word
    elseif word == "--" then
      only_operands = true
    else
      (word:sub(1, 2) == "--" and read_long or read_letters)(c, word, words, out)
      if out.help then return false end
    end
  end
  if #out < c.least or #out > c.most then
    fail("expected %s, got %d operand%s; `%s %s --help` has an example", c.operands ~= "" and c.operands or "no operands",
         #out, #out == 1 and "" or "s", cli.program, c.name)
  end
  return out
end

local function finish(client, ...)
  client:close()
  return ...
end

-- The answer to one request, in a form of client:answer; or nil, and why no answer came. `params`: a table, or JSON.
function cli.ask(path, method, params, form)
  local client, why = cli.client(path)
  if not client then return nil, why end
  local sent
  sent, why = client:ask(method, type(params) == "table" and cli.json(params) or params)
  if not sent then return finish(client, nil, why) end
  return finish(client, client:answer(form))
end

-- The same; without an answer the command ends.
function cli.rpc(...)
  local answer, more = cli.ask(...)
  if answer == nil then fail("%s", more) end
  return answer, more
end

-- The answer to a request of this command, by its --socket; --json prints it, the daemon's own bytes.
function rpc(o, method, params)
  if not o.json then return (cli.rpc(o.socket, method, params)) end
  local answer, bytes = cli.rpc(o.socket, method, params, "raw")
  io.write(bytes, "\n")
  return answer
end

return function(name, words)
  local c = require(name)
  local o = parse(c, words)
  if o then return c.run(o) or 0 end
  require "help".print(c)
  return 0
end
