-- toolgate validate: checks JSON files with the validator that checks tool calls.
local ui = require "ui"

local function print_problems(file, problems)
  ui.say("%s: %s", ui.bold(file), problems.valid and cli.green .. "valid" or cli.red .. "invalid")
  io.write(cli.plain)
  for _, p in ipairs(problems) do ui.say("  %s: %s", cli.lines(p.path ~= "" and p.path or "the value itself"), p.message) end
  if problems.more > 0 then ui.say("  and %d more", problems.more) end
end

local function print_json(file, problems)
  local list = {}
  for i, p in ipairs(problems) do
    local values = {}
    for _, name in ipairs { "expected", "got", "suggestion" } do
      if p[name] ~= "" then values[#values + 1] = (',"%s":%s'):format(name, cli.shown_json(p[name])) end
    end
    list[i] = ('{"path":%s,"code":%s,"message":%s%s}'):format(cli.json(p.path), cli.json(p.code),
              cli.json(p.message), table.concat(values))
  end
  ui.say('{"instance":%s,"valid":%s,"problems":[%s],"more":%d}', cli.json(file), tostring(problems.valid),
         table.concat(list, ","), problems.more)
end

return command {
  name = "validate", operands = "SCHEMA INSTANCE...", least = 2, most = 1000,
  summary = "check JSON against a schema, with all problems",
  about = [[
SCHEMA is a file with a JSON Schema (2020-12, 2019-09 or draft-07 by its $schema; 2020-12 if it has
none), INSTANCE a JSON file, or - for stdin. `format` is asserted, as for tool calls.]],
  exits = [[
  0  every instance is valid
  1  one is not
  2  usage, a file that is not JSON, a schema with an error, a check that was given up]],
  example = [[
  toolgate validate get_events.schema.json call.json
  echo '{"id": 7}' | toolgate validate schema.json - --json]],
  options = {
    flag { name = "json", letter = "j", words = "print one JSON object for each instance" },
    list { name = "with", letter = "w", argument = "URI=FILE",
           words = "a document that $ref may name; may be repeated; nothing is fetched" },
    flag { name = "annotate-format", words = "do not assert `format`, as is the specification's default" },
  },

  run = function(o) return cli.validate(o, o.json and print_json or print_problems) end,
}
