-- Mistakes in policies that Lua accepts and that would have no effect, or a puzzling one: errors at load that name the
-- line and the fix.

local function policy(parts)
  return ([[
-- p: for specs.
return tool "p" {
  description = "P.", effects = "read",
  schema = params { n = int "N", m = optional(int "M"), page = optional(int "Page") },
  run = function(args) return { n = args.n } end,
%s
}
]]):format(parts)
end

-- What `toolgate test` says of a policy with these fields, and its exit code.
local function tested(parts)
  local folder = process.directory()
  process.write(folder .. "/p.lua", policy(parts))
  local code, out, err = process.run { daemon.binary, "test", folder .. "/p.lua" }
  process.remove(folder)
  return out .. err, code
end

describe("a mistake in a policy", function()
  -- { the fields, the error with the line of the mistake }
  for name, case in pairs {
    ["a dot before a method of a rule"] = {
      '  rules = { when { n = 1 } . needs "m" },', "p%.lua:6: needs: .*write when { … } : needs …" },
    ["a dot after always"] = { '  rules = { always . drops "m" },', "p%.lua:6: drops: .*write always : drops …" },
    ["a comma before a method of a rule"] = {
      '  rules = { when { n = 1 }, needs "m" },', "p%.lua:6: 'needs' continues a rule: write when { … } : needs …" },
    ["a dot later in a rule"] = {
      '  rules = {\n    when { n = 1 } : needs "m" . refuses "no" },', "p%.lua:7: refuses: expected a colon" },
    ["a time zone that the tz database does not have"] = {
      '  timezone = "Europe/Berlim",', "p%.lua:6: 'timezone': no time zone 'Europe/Berlim'" },
    ["a time zone for date-times that are refused"] = {
      '  timezone = "Europe/Berlin",\n  formats = "strict",', "p%.lua:7: 'formats': \"strict\" refuses" },
    ["a mistyped field of repair"] = {
      '  check = function(args)\n    if args.n == 3 then return repair { path = "n", mesage = "no" } end\n  end,',
      "p%.lua:7: repair: unknown field 'mesage' %(did you mean 'message'%?%)" },
    ["a mistyped field in a list of problems"] = {
      '  check = function(args)\n    if args.n == 3 then return repair { { path = "n", message = "no" },\n'
      .. '      { path = "m", message = f({ x = 1 }), sugest = 5 } } end\n  end,',
      "p%.lua:8: repair: unknown field 'sugest' %(did you mean 'suggest'%?%)" },
    ["a mistyped field of ok"] = {
      '  result = function(r)\n    if r.n == 8 then return ok({ coverag = "SATISFIED", facts = { any = 1 } }) end\n  end,',
      "p%.lua:7: ok: unknown field 'coverag' %(did you mean 'coverage'%?%)" },
    ["a mistyped field of follow_up"] = {
      '  result = function(r)\n    if r.n == 8 then return ok { follow_up = { tool = "p", arg = { n = 1 } } } end\n  end,',
      "p%.lua:7: ok%.follow_up: unknown field 'arg' %(did you mean 'args'%?%)" },
    ["a table for a word that takes its values in order"] = {
      '  result = function(r)\n    if r.n == 8 then return partial { code = "x", detial = "y" } end\n  end,',
      "p%.lua:7: partial: expected its values in order, partial%(code, detail, next_args, hint%), got a table" },
    ["a computed table for such a word"] = {
      '  check = function(args)\n    local why = { code = "x" }\n    local said = refuse(why)\n    return said\n  end,\n'
      .. '  examples = { { "one", args = { n = 1 }, gives = "pass" } },',
      "p%.lua:8: refuse: expected its values in order" },
    ["a mistyped status in an example"] = {
      '  examples = {\n    { "one", args = { n = 1 }, status = "SATISFED" } },',
      "p%.lua:7: .*status.*'SATISFED' %(did you mean 'SATISFIED'%?%)" },
    ["a set whose members are names"] = {
      '  check = function() return nil end, title = set { draft = true } and "T",',
      'p%.lua:6: set: expected its members in a list, set { "a", "b" }, got one with the key "draft"' },
    ["names of arguments with one that is no item"] = {
      '  rules = { always : needs_one_of { "m", "page", also = "n" } },',
      'p%.lua:6: needs_one_of: expected names of arguments in a list, got one with the key "also"' },
    ["values behind the list of none_of"] = {
      '  rules = { when { n = none_of({ 1 }, 2) } : needs "m" },', "p%.lua:6: none_of: expected one list of values" },
    ["an openness that is no boolean"] = {
      '  output_schema = params({ n = int }, { open = "false" }),',
      'p%.lua:6: params: open: expected true or false, got "false"' },
    ["a field given twice"] = {
      '  check = function(args) return refuse("no", "no") end,\n  unknown = "drop",\n  check = function() end,',
      "p%.lua:8: 'check' is given twice in one table, first on line 6: only this one would count" },
    ["an argument given twice, in another spelling"] = {
      '  rules = { when { n = 1, m = 2, ["n"] = 3 } : needs "page" },', "p%.lua:6: 'n' is given twice .* first on line 6" },
  } do
    it(name .. " is an error with its line", function()
      local said, code = tested(case[1])
      assert.matches(case[2], said)
      assert.not_equal(0, code)
    end)
  end

  it("is none where only the words of statements are alike, or two tables have the same field", function()
    local said, code = tested [[
  check = function(args)
    local a, m = args.n, args.m
    if a == 3 then a, m = 1, 2 end
    repeat local b, m = a, m; a, m = b, m until m == m
    for i = 1, 2 do a, m = m, i end
    local function f(x, m) return { n = x, m = m }, { n = m, m = x } end
    return f(a, m) and nil
  end,
  examples = { { "one", args = { n = 1 }, gives = "pass" }, { "two", args = { n = 2 }, gives = "pass" } },]]
    assert.equal(0, code, said)
  end)

  it("is found in the verdict that an example expects", function()
    local said, code = tested '  examples = { { "one", args = { n = "x" }, gives = "repiar invalid_arguments" } },'
    assert.matches("there is no 'repiar': did you mean 'repair'%?", said)
    assert.equal(1, code)
    local other = tested '  examples = { { "one", args = { n = "x" }, gives = "refuse" } },'
    assert.is_nil(other:find("there is no", 1, true))
  end)

  it("is found in the next arguments that partial proposes", function()
    local function said(next_args)
      return tested(([[
  result = function() return partial("more", "more follows", %s) end,
  examples = { { "one", args = { n = 1 }, gives = "partial_data" } },]]):format(next_args))
    end
    local wrong, code = said "{ pgae = 2 }"
    assert.equal(1, code)
    assert.matches("next_args +expected +arguments that the tool takes", wrong)
    assert.matches("'pgae' %(did you mean 'page'%?%)", said "{ pgae = 2 }")
    assert.matches('got +{.*"n":"two"', (said '{ n = "two" }'))
    local right, fine = said "{ n = 2 }"
    assert.equal(0, fine, right)
  end)

  it("is none where the policy gives the word another meaning, or the table has other fields inside", function()
    local said, code = tested [[
  check = function(args)
    local ok = function(t) return t.coverag end
    if ok { coverag = true } and args.n == 3 then
      return repair { path = "n", message = "no", suggest = { n = 5, any = { sugest = 1 } }, ["got"] = { x = 1 } }
    end
  end,
  examples = { { "one", args = { n = 1 }, gives = "pass" } },]]
    assert.equal(0, code, said)
  end)
end)
