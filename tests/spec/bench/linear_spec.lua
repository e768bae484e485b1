-- What reads a peer's text is linear in it: twice the text takes at most 2.2 times the instructions, whatever it repeats.

local GROWTH_MAX, FREE = 2.2, 40000 -- instructions that a case takes whatever its size, or saves by ending early

local function unit_binary()
  local path = daemon.binary:gsub("toolgate$", "unit/result/linear")
  return process.read(path) ~= "" and path
end

-- The instructions of each run, in their order.
local function counted(binary, directory)
  local code, out, err = process.run({ "env", "LINEAR=names", "valgrind", "--tool=callgrind",
    "--toggle-collect=linear_measured", "--dump-after=linear_measured",
    "--callgrind-out-file=" .. directory .. "/out", binary }, { patience_s = 500 })
  assert(code == 0, err)
  local names, counts = {}, {}
  for name in out:gmatch "[^\n]+" do names[#names + 1] = name end
  for i = 1, 2 * #names do
    counts[i] = tonumber(process.read(("%s/out.%d"):format(directory, i)):match "\ntotals: (%d+)")
  end
  return names, counts
end

describe("each function that reads a peer's text", function()
  it("is linear in it", function()
    if os.execute "command -v valgrind >/dev/null 2>&1" ~= 0 then
      pending "needs valgrind: apt-get install valgrind"
      return
    end
    if process.read(daemon.binary):find("__asan_init", 1, true) or not unit_binary() then
      pending "counts the build without sanitizers"
      return
    end
    local directory = process.directory()
    local names, counts = counted(unit_binary(), directory)
    process.remove(directory)
    assert.is_true(#names > 300)
    local bad = {}
    for i, name in ipairs(names) do
      local one, two = counts[2 * i - 1], counts[2 * i]
      if two > GROWTH_MAX * one + FREE then
        bad[#bad + 1] = ("%s: %d instructions, %d of twice the text"):format(name, one, two)
      end
    end
    assert.same({}, bad)
  end)
end)
