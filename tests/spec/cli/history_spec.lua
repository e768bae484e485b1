-- What toolgate decisions, session, sessions and shadow say of a policy's refusal, a question and its answer, and a halt: what
-- they were, enforced and in mode shadow.
local cjson = require "cjson"

local PAY = [==[
-- pay: sends money. Never 13; asks above 100.
return tool "pay" {
  description = "Send money.", effects = "write", mode = %q, retry = { same_call = 20 },
  schema = params { amount = int "How much" },
  check = function(args)
    if args.amount == 13 then return refuse("unlucky", "13 is never paid", "Choose another amount.") end
    if args.amount == 14 then return repair("odd", "14 is odd", "Choose another amount.") end
    if args.amount > 100 then return ask("Pay " .. args.amount .. "?") end
  end,
  run = function(args) return { paid = args.amount } end,
  result = function(result) if result.paid == 60 then return refuse("late", "it has run") end end,
}
]==]

describe("the history of", function()
  local gate, client

  local function start(mode, more)
    local policies = { ["pay.lua"] = PAY:format(mode) }
    for name, text in pairs(more or {}) do policies[name] = text end
    gate, client = daemon.open { policies = policies, config = 'return { decisions = { arguments = "full" } }' }
  end

  local function pays(amount, name) return verdict(client:calls("pay", { amount = amount }, session(name, { turn = 1 }))) end

  local function toolgate(...)
    local argv = { daemon.binary, ... }
    argv[#argv + 1], argv[#argv + 2] = "--socket", gate.socket
    local _, out = process.run(argv)
    return out
  end

  -- Once the record that comes last is there.
  local function decisions(last, ...)
    local argv, out = { "decisions", ... }, nil
    process.eventually("the last record", function()
      out = toolgate(unpack(argv))
      return out:find(last, 1, true)
    end)
    return out
  end

  local function has(out, words) assert.truthy(out:find(words, 1, true), words .. "\n" .. out) end
  local function has_not(out, words) assert.is_nil(out:find(words, 1, true), words .. "\n" .. out) end

  it("a policy's refusal: nobody repairs it", function()
    start "enforce"
    pays(13, "refused")
    pays(5, "refused")
    pays(13, "left")
    pays(14, "repaired")
    pays(6, "repaired")
    local out = decisions '{"amount":6}'
    has(out, 'forbidden unlucky  refused turn 1')
    has(out, '→ a call with other arguments passed later: {"amount":5}')
    has(out, '→ no further call')
    has(out, '→ the model repaired it in 1 call: {"amount":6}')
    has_not(out, "gave up")
    has(toolgate("session", "refused"), "forbidden          a policy refused it")
  end)

  it("a question: who has answered it, and how", function()
    start "enforce"
    assert.equal(0, (process.run { daemon.binary, "approve", pays(500, "asked").approval, "--socket", gate.socket }))
    assert.equal("pass", pays(500, "asked").verdict)
    assert.equal(0, (process.run { daemon.binary, "deny", pays(600, "denied").approval, "--socket", gate.socket }))
    assert.equal("declined", pays(600, "denied").code)
    assert.equal(0, (process.run { daemon.binary, "deny", pays(700, "left").approval, "--socket", gate.socket }))
    for _ = 1, 2 do pays(800, "waits") end
    pays(1, "last")
    local out = decisions '{"amount":1}'
    local user = assert(out:match "approved pay  by (%S+)", out)
    has(out, "ask     pay  need_user_input  asked turn 1")
    has(out, "→ approved by " .. user .. "; the same call passed later")
    has(out, "pass    pay  approved by " .. user .. "  asked turn 1")
    has(out, "→ denied by " .. user .. "; no later call of it passed in that turn")
    has(out, "denied pay  by " .. user .. "  left")
    has(out, "refuse  pay  forbidden declined  denied by " .. user .. "  denied turn 1")
    has(out, "→ no answer is recorded; no later call of it passed in that turn")
    has_not(decisions("Pay 800?", "--refused"), "  by " .. user) -- an answer is no refused call
    has(toolgate("session", "asked"), "it was asked about and approved [approved]")
    has(toolgate("session", "denied"), "it was asked about and denied [declined]")
    has(toolgate "approvals", "approved by " .. user .. "; it has run")
    local _, report = process.run { daemon.binary, "replay", "--json", gate:status().paths.decisions }
    assert.equal(8, cjson.decode(report).calls) -- an answer is no call
    local refused = {}
    for _, one in ipairs(cjson.decode(toolgate("sessions", "--json")).sessions) do refused[one.session] = one.refusals end
    assert.same({ asked = 0, denied = 1, left = 0, waits = 0, last = 0 }, refused)
  end)

  for _, mode in ipairs { "enforce", "shadow" } do
    it("a program that checks and reports, in mode " .. mode, function()
      start(mode)
      local function checks(amount)
        local outcome = client:checks("pay", { amount = amount }, session("program", { turn = 1 }))
        if outcome.verdict == "pass" then
          client:asks("toolgate/report", { callId = outcome.callId, result = { paid = amount } })
        end
        return outcome
      end
      checks(5)
      has_not(toolgate("session", "program"), "not enforced")
      has_not(toolgate("session", "program"), "asked about")
      local outcome = checks(500)
      if mode == "shadow" then
        has(toolgate("session", "program"), "ok                 not enforced (mode shadow): a policy was against it")
      else
        assert.equal(0, (process.run { daemon.binary, "approve", outcome.approval, "--socket", gate.socket }))
        assert.equal("pass", checks(500).verdict)
        has(toolgate("session", "program"), "it was asked about and approved [approved]")
      end
      outcome = checks(5)
      local id = outcome.callId -- only the gate says what came of a check
      local last = ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"):gsub(id:sub(-1), "")
      for letter in last:gmatch "." do
        assert.truthy(client:ask("toolgate/report", { callId = id:sub(1, -2) .. letter, result = {} }).error)
      end
    end)
  end

  it("a question that the client's user answers", function()
    start "enforce"
    client:ask("initialize", { protocolVersion = "2025-06-18", capabilities = { elicitation = {} },
                               clientInfo = { name = "spec", version = "1" } }, "hello")
    for _, yes in ipairs { true, false } do
      client:begins("pay", "pay", { amount = 500 }, session(tostring(yes)))
      local question = client:hears()
      assert.equal("elicitation/create", question.method)
      client:say { jsonrpc = "2.0", id = question.id, result = { action = "accept", content = { answer = yes } } }
      client:answer "pay"
    end
    local out = decisions "declined"
    has(out, "pass    pay  approved by the user  true")
    has(out, "forbidden declined  denied by the user  false")
  end)

  it("a halt: the run was to end, and did or did not", function()
    start "enforce"
    for _ = 1, 6 do pays(1, "loops") end
    for _ = 1, 5 do pays(2, "ends") end
    local out = decisions("→ the run ended", "--verdict", "halt")
    has(out, "→ the run did not end: the model made the same call 1 more time; none passed")
    has(out, "→ the run ended: no further call")
    has_not(out, "gave up")
    local list = toolgate("session", "loops")
    has(list, "loop               the same call again, with nothing new")
    has(list, "the run was told to end: the same call again")
    has(toolgate "sessions", "pay, 6 times, told to end the run [loop]")
  end)

  it("a call that ran before its policy failed: it was not refused", function()
    start "enforce"
    assert.equal("policy_error", pays(60, "late").error_class)
    pays(13, "last")
    local out = decisions("unlucky", "--refused")
    has_not(out, "result_unchecked")
  end)

  it("mode shadow: it was let run, and the sums add up", function()
    start "shadow"
    pays(13, "shadow")
    pays(500, "shadow")
    pays(14, "shadow")
    pays(5, "shadow")
    for _ = 1, 6 do pays(1, "loops") end
    decisions('"amount":1', "--would")
    local row = cjson.decode(toolgate("shadow", "--json"))
    assert.same({ 10, 7 }, { row.calls, row.would_refuse })
    assert.same({ repair = 1, wait = 0, refuse = 3, ask = 1, halt = 2 }, row.verdicts)
    assert.same({ 2, 0, 1, 4, 0 }, { row.worked, row.failed, row.asked, row.repeats, row.unknown })
    local codes = row.other_codes
    for _, code in ipairs(row.codes) do codes = codes + code.count end
    assert.equal(7, codes)
    has(toolgate "shadow", "pay: 10 calls, 7 would not have run (1 repair, 3 refuse, 1 ask, 2 halt)\n  of these 2 worked, ")
    local list = toolgate("session", "shadow")
    has(list, "ok                 not enforced (mode shadow): a policy was against it")
    list = toolgate("session", "loops")
    has(list, "loop               not enforced (mode shadow): the run was told to end")
    has(list, "; 4 more ran in mode shadow")
    has_not(list, "--reset")
    list = toolgate "sessions"
    has(list, "pay, 6 times, let run in mode shadow [loop]")
    has(list, " 0 calls refused")
  end)

  it("a policy for several tools in mode shadow, over one that is enforced", function()
    start("enforce", { ["small.lua"] = [==[
-- small: no small payments.
return policy {
  tools = { "pay" }, mode = "shadow",
  check = function(args) if args.amount < 5 then return refuse("small", "too small") end end,
}
]==] })
    pays(4, "a")
    pays(13, "b")
    pays(9, "c")
    decisions '"amount":9'
    local row = cjson.decode(toolgate("shadow", "--json"))
    assert.same({ "pay", 3, 1, 1 }, { row.tool, row.calls, row.would_refuse, row.worked })
  end)
end)
