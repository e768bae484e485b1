-- What is printed of a command's options: --help, and the error of one that it does not have.
local function print_help(c)
  io.write("usage: ", cli.program, " ", c.name, c.operands ~= "" and " " or "", c.operands, " [options]\n\n", c.about,
           "\n\noptions:\n")
  for _, o in ipairs(c.all) do
    local left = (o.letter and "  -%s, --%s" or "      %s--%s"):format(o.letter or "", o.name)
    io.write(("%-26s %s\n"):format(o.argument and left .. " " .. o.argument or left, o.words))
  end
  io.write("\nexit code:\n", c.exits, "\n\nexample:\n", c.example, "\n")
end

local function refuse(c, word)
  local names = {}
  for i, option in ipairs(c.all) do names[i] = option.name end
  local near = cli.suggest(word:match "^%-*([^=]*)", names)
  if near then fail("unknown option '%s' (did you mean '--%s'?)", word, near) end
  fail("unknown option '%s'; `%s %s --help` lists them", word, cli.program, c.name)
end

return { print = print_help, refuse = refuse }
