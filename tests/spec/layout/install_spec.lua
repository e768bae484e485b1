-- make install and make uninstall with a temporary DESTDIR and the existing binary.

describe("make uninstall", function()
  it("removes every file that make install installed", function()
    local build = daemon.binary:match "^(.*)/[^/]*$"
    local module = io.open(build .. "/toolgate.so")
    if not module then pending "toolgate.so is not built: a sanitizer build has none" return end
    module:close()
    local directory = process.directory()
    local function make(target)
      -- SAN= and -o: install what is there, build nothing.
      process.runs({ "make", "-s", "BUILD=" .. build, "SAN=", "DESTDIR=" .. directory,
                     "-o", build .. "/toolgate", "-o", build .. "/toolgate.so", target },
                   { directory = daemon.root })
    end
    local function files()
      local _, out = process.run { "find", directory, "-type", "f" }
      return out
    end

    make "install"
    for _, path in ipairs { "bin/toolgate", "share/man/man1/toolgate.1", "lib/systemd/system/toolgate.service",
                           "lib/systemd/user/toolgate.socket" } do
      assert.truthy(files():find("/usr/local/" .. path, 1, true), path .. " is not installed")
    end
    make "uninstall"
    assert.equal("", files())
  end)
end)
