-- retry() from run and result, and error.retry of a report: the model tries again, on the tool's repair budget.

local POLICY = [==[
-- book: books a room. For specs.
return tool "book" {
  description = "Book a room.", effects = "read", retry = { repair = 3 }, schema = params { n = int "Which" },
  %s
}
]==]

describe("retry", function()
  local function attempts(call)
    local codes, last = {}, nil
    for n = 1, 4 do
      last = call(n)
      local v = last.verdict and last or verdict(last)
      codes[n] = v.verdict .. " " .. v.code .. " " .. tostring(v.attempts_left)
    end
    return codes, last
  end
  local SPENT = { "repair retry 3", "repair retry 2", "repair retry 1", "refuse retry_budget_exceeded 0" }

  local HOOK = "%s = function() return retry('no such room', 'name a room of this floor') end,"
  for where, from in pairs { run = HOOK:format "run",
                             result = "run = function(args) return args end, " .. HOOK:format "result" } do
    it("from " .. where .. " spends the repair budget", function()
      local client = daemon.start { policies = { ["book.lua"] = POLICY:format(from) } }:connect()
      local first
      local codes, last = attempts(function(n)
        local result = client:calls("book", { n = n }, session("s", { turn = 1 }))
        first = first or result
        return result
      end)
      assert.same(SPENT, codes)
      assert.is_true(last.isError)
      assert.is_nil((text(first) .. text(last)):find("was not run", 1, true))
      golden.check("feedback", "retry: the tool ran", text(first))
      golden.check("feedback", "retry: none are left", text(last))
    end)
  end

  describe("of a report", function()
    local client
    before_each(function()
      client = daemon.start { policies = { ["book.lua"] = POLICY:format "" } }:connect()
    end)

    local function refuses(params)
      params.callId = client:checks("book", { n = 1 }, session("s", { turn = 1 })).callId
      local answer = client:ask("toolgate/report", params)
      assert.equal(-32602, answer.error and answer.error.code)
      return answer.error.message
    end

    local function reports(n, error)
      local id = client:checks("book", { n = n }, session("s", { turn = 1 })).callId
      return client:asks("toolgate/report", { callId = id, error = error })
    end

    it("spends the repair budget, with its message", function()
      local codes = attempts(function(n) return (reports(n, { retry = "no such room" })) end)
      assert.same(SPENT, codes)
    end)

    it("takes the message of the error if it is true, and false is none", function()
      local said = reports(1, { message = "no such room", retry = true })
      assert.same({ "invalid_arguments", "retry", "no such room" }, { said.error_class, said.code, said.detail })
      assert.equal("tool_error", reports(2, { message = "no such room", retry = false }).error_class)
    end)

    it("is an error if it is no message, or beside transient", function()
      for _, wrong in ipairs { { message = "x", retry = 3 }, { message = "x", retry = "" },
                               { message = "x", retry = true, transient = true }, { retry = true } } do
        refuses { error = wrong }
      end
      assert.truthy(refuses({ error = { message = "busy", transient = "yes" } }):find("params.error", 1, true))
    end)

    it("of neither or both of result and error says so", function()
      for _, wrong in ipairs { {}, { result = { a = 1 }, error = { message = "x" } }, { error = client_of.json.null } } do
        assert.truthy(refuses(wrong):find("either result", 1, true))
      end
      assert.truthy(refuses({ error = "broke" }):find("params.error: expected an object", 1, true))
    end)

    it("takes null for no result and no error", function()
      local id = client:checks("book", { n = 1 }, session("s", { turn = 1 })).callId
      local null = client_of.json.null
      assert.equal("ok", client:asks("toolgate/report", { callId = id, result = { a = 1 }, error = null }).error_class)
      id = client:checks("book", { n = 2 }, session("s", { turn = 1 })).callId
      assert.equal("tool_error", client:asks("toolgate/report",
                   { callId = id, result = null, error = { message = "x" } }).error_class)
    end)
  end)
end)
