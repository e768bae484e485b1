-- clients/python: its core needs the standard library alone. Its adapters are tested by make conformance.

describe("the Python client", function()
  it("passes the tests of its core", function()
    if os.execute "command -v python3 >/dev/null" ~= 0 then return pending "python3 is not here" end
    local out = process.runs({ "python3", "-B", "core_test.py" }, {
      directory = daemon.root .. "/clients/python/tests", patience_s = 120,
      environment = { TOOLGATE = daemon.binary, PYTHONPATH = daemon.root .. "/clients/python/src" },
    })
    assert.is_nil(out:find("not ok", 1, true), out)
    assert(select(2, out:gsub("\nok %- core", "")) >= 12, out)
  end)
end)
