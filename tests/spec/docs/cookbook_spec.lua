-- docs/cookbook.md: each policy in it loads and passes its examples, and the page quotes exactly what the model reads.
local json = require("client").json

local PAGE = "docs/cookbook.md"
local LONGEST = 40 -- lines of a recipe's policy: one screen

-- One entry for each heading such as "## 7. Paths that lead out".
local function recipes_of(page)
  local recipes, current = {}, nil
  for line in (page .. "\n"):gmatch "([^\n]*)\n" do
    local title = line:match "^## (%d+%. .+)$"
    if title then
      current = { title = title, lines = {} }
      recipes[#recipes + 1] = current
    elseif current then
      current.lines[#current.lines + 1] = line
    end
  end
  for _, recipe in ipairs(recipes) do
    recipe.text = table.concat(recipe.lines, "\n") .. "\n"
    recipe.policy = recipe.text:match "```lua\n(.-\n)```"
    recipe.example, recipe.form, recipe.read = recipe.text:match "The model reads[^\n]-“([^\n]-)”:\n\n```(%a+)\n(.-)\n```"
  end
  return recipes
end

-- "…" on a line of its own stands for any lines.
local function is_shown(shown, said)
  local at, loose = 1, false
  said = said .. "\n"
  for line in (shown .. "\n"):gmatch "([^\n]*)\n" do
    if line == "…" then
      loose = true
    else
      local from, to = said:find(line .. "\n", at, true)
      if not from or (not loose and from ~= at) then return false end
      at, loose = to + 1, false
    end
  end
  return loose or at > #said
end

-- The outcomes of `toolgate test`, by the example's name.
local function play(recipe)
  local folder, told = process.directory(), {}
  process.write(folder .. "/" .. assert(recipe.policy:match '\nreturn tool "([%w_]+)"') .. ".lua", recipe.policy)
  local code, out, err = process.run { daemon.binary, "test", folder, "--json" }
  local _, found, complaints = process.run { daemon.binary, "lint", folder, "--json" }
  process.remove(folder)
  assert.equal("", found .. complaints)
  for line in out:gmatch "[^\n]+" do
    local outcome = json.decode(line)
    if outcome.kind == "example" then told[outcome.example] = outcome end
  end
  return told, code, out .. err
end

describe("the cookbook", function()
  local page = process.read(PAGE)
  local recipes = recipes_of(page)

  it("has twenty recipes in order", function()
    for i, recipe in ipairs(recipes) do assert.equal(tostring(i), recipe.title:match "^%d+") end
    assert.equal(20, #recipes)
  end)

  it("links each of them in its table", function()
    local linked = {}
    for anchor in page:gmatch "%]%(#([^)]+)%)" do linked[anchor] = true end
    for _, recipe in ipairs(recipes) do
      local anchor = recipe.title:lower():gsub("[^%w%s-]", ""):gsub("%s", "-")
      assert.truthy(linked[anchor], "no link to #" .. anchor)
      linked[anchor] = nil
    end
    assert.same({}, linked)
  end)

  for _, recipe in ipairs(recipes) do
    it(recipe.title, function()
      assert(recipe.policy, "no policy")
      assert(recipe.read, "it does not say what the model reads")
      local _, lines = recipe.policy:gsub("\n", "")
      assert.is_true(lines <= LONGEST, "the policy has " .. lines .. " lines")
      assert.matches("^%-%- [%w_]+: ", recipe.policy)
      local told, code, all = play(recipe)
      assert.equal(0, code, all)
      local outcome = assert(told[recipe.example], "no example named '" .. recipe.example .. "'")
      if recipe.form == "json" then -- the result, instead of the words beside it
        assert.same(outcome.shown, json.decode(recipe.read))
      else
        assert.truthy(is_shown(recipe.read, outcome.said),
                      "the page says:\n" .. recipe.read .. "\nthe model reads:\n" .. outcome.said)
      end
    end)
  end
end)
