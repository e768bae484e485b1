-- toolgate words, and the two files that are generated from it.

local function words(...)
  return process.run { daemon.binary, "words", ... }
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

describe("toolgate words", function()
  for format, path in pairs { markdown = "docs/vocabulary.md", luacats = "docs/types/toolgate.lua" } do
    it("prints " .. path .. " as it is in the repository", function()
      local code, out = words("--format", format)
      assert.equal(0, code)
      assert.is_true(out == read(path), path .. " is not what the program knows today: run `make reference`")
    end)
  end

  it("lists all words", function()
    local code, out = words()
    assert.equal(0, code)
    assert.truthy(out:find("\nrepair ", 1, true), out)
  end)

  it("describes a word with its parameters", function()
    local code, out = words "repair"
    assert.equal(0, code)
    assert.truthy(out:find("suggest", 1, true), out)
    golden.check("cli", "words: repair", out)
  end)

  it("describes a field and its place", function()
    local code, out = words "volatile"
    assert.equal(0, code)
    golden.check("cli", "words: volatile", out)
  end)

  it("accepts a field's path as error messages write it", function()
    local code, out = words "loop.poll.every"
    assert.equal(0, code)
    golden.check("cli", "words: loop.poll.every", out)
    code, out = words "call.goal"
    assert.equal(0, code)
    golden.check("cli", "words: call.goal", out)
    assert.equal(1, (words "call.gaol"))
  end)

  it("suggests the closest for an unknown word", function()
    local code, _, err = words "exlusive"
    assert.equal(1, code)
    golden.check("cli", "words: a misspelled word", err)
    code, _, err = words "quetzalcoatl"
    assert.equal(1, code)
    golden.check("cli", "words: an unknown word", err)
  end)

  it("lists the formats for an unknown one", function()
    local code, _, err = words("--format", "html")
    assert.equal(2, code)
    golden.check("cli", "words: an unknown format", err)
  end)

  it("lists only functions that the libraries have", function()
    local dir = process.directory()
    for _, library in ipairs { "string", "table", "math", "bit" } do
      local _, out = words(library)
      for name in assert(out:match(library .. "%.([%w_, ]+)")):gmatch "[%w_]+" do
        process.write(dir .. "/p.lua", ('local _ = %s.%s return tool "t" { examples = {} }\n'):format(library, name))
        process.runs { daemon.binary, "test", dir }
      end
    end
    process.run { "rm", "-r", dir }
  end)
end)

describe("lua/policy/reference.lua", function()
  it("describes every word", function()
    for _, word in ipairs(dofile "lua/policy/reference.lua".words) do
      assert.truthy(word.signature:find(word.name, 1, true) and #word.sentence >= 5, word.name)
      assert.truthy(word.type or word.group == "Lua's own", word.name .. " has no type, for editors")
    end
  end)
end)

describe("docs/types/toolgate.lua", function()
  it("defines every type that it uses", function()
    local text, defined = read "docs/types/toolgate.lua", {}
    for name in text:gmatch "\n%-%-%-@%a+ (toolgate%.%a+)" do defined[name] = true end
    for name in text:gmatch "toolgate%.%u%a+" do assert.is_true(defined[name], name) end
  end)

  it("is valid Lua, and defines only what policies have", function()
    local seen = {}
    local chunk = assert(loadfile "docs/types/toolgate.lua")
    setfenv(chunk, setmetatable({}, { __newindex = function(_, name) seen[name] = true end }))
    chunk()
    local text = read "docs/types/toolgate.lua"
    for name in text:gmatch "\nfunction ([%w_]+)" do assert.is_true(seen[name]) end
    for name in pairs(seen) do
      local code = words(name)
      assert.equal(0, code, name)
    end
    assert.is_nil(text:match "%-%-%-@%a+ *\n", "an annotation that says nothing")
    for _, absent in ipairs { "io", "os", "dofile", "load", "setmetatable", "coroutine", "print" } do
      assert.is_nil(seen[absent])
    end
  end)
end)
