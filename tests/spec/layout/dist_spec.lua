-- make dist: the tarball has what git tracks, and is the same from git and from an unpacked tarball.

describe("make dist", function()
  local directory
  before_each(function() directory = process.directory() end)

  -- The path of the tarball. SAN=: the same build directory, with or without sanitizers.
  local function dist(root, build)
    local out = process.runs({ "make", "-s", "--no-print-directory", "SAN=", "BUILD=" .. build, "dist" },
                             { directory = root })
    return (out:gsub("%s+$", ""))
  end

  it("gives the same bytes from git and from an unpacked tarball", function()
    local first = dist(daemon.root, directory .. "/first")
    local name = first:match "([^/]+)%.tar%.gz$"
    assert.equal("toolgate-" .. process.read("src/base/version.h"):match 'TOOLGATE_VERSION "([^"]+)"', name)
    assert.equal(0, (process.run { "tar", "-xzf", first, "-C", directory }))
    local second = dist(directory .. "/" .. name, directory .. "/second")
    assert.is_true(process.read(first) == process.read(second))
  end)

  it("has what a build needs, and nothing of one", function()
    local _, names = process.run { "tar", "-tzf", dist(daemon.root, directory) }
    for _, name in ipairs { "Makefile", "src/cli/main.c", "debian/rules", "docs/toolgate.lua", "man/toolgate.1" } do
      assert.truthy(names:find("/" .. name .. "\n", 1, true), name)
    end
    assert.is_nil(names:find("/build/", 1, true))
    assert.is_nil(names:find("/.git/", 1, true))
  end)
end)

-- A build that is not released says so, and sorts before the release.
describe("the version", function()
  local version = process.read("src/base/version.h"):match 'TOOLGATE_VERSION "([^"]+)"'

  it("is the one of the program, the package and the changelog", function()
    local _, said = process.run { daemon.binary, "--version" }
    assert.equal("toolgate " .. version .. "\n", said)
    assert.equal(version, process.read("debian/changelog"):match "^toolgate %((.-)%-%d+%)")
    local newest = process.read("CHANGELOG.md"):match "\n## %[(.-)%]"
    assert.equal(newest == "Unreleased", version:find("~dev", 1, true) ~= nil)
    if newest ~= "Unreleased" then assert.equal(newest, version) end
  end)

  it("is that of the clients, as PyPI and npm spell it", function()
    local python, npm = version:gsub("~dev", ".dev0"), version:gsub("~", "-")
    assert.equal(python, process.read("clients/python/pyproject.toml"):match '\nversion = "([^"]+)"')
    assert.equal(npm, process.read("clients/typescript/package.json"):match '"version": "([^"]+)"')
    assert.equal(npm, process.read("clients/typescript/src/gate.ts"):match 'clientInfo: {[^}]*version: "([^"]+)"')
  end)
end)
