-- Hooks on results and follow-ups, and the blame if a policy breaks its own schema.

describe("a result hook", function()
  local client

  before_each(function()
    client = daemon.start { policies = { ["mails.lua"] = [==[
-- mails: finds mails, and names the call that reads the newest. For specs.
return tool "mails" {
  description = "Find mails.", effects = "read", gives_ids = { "mails[].id" },
  schema = params { limit = optional(int { min = 1, max = 100, "At most" }) },
  normalise = function(args, call)
    if wants_all(call.goal) then args.limit = 100 end
    return args
  end,
  run = function(args)
    return { limit = args.limit, mails = { { id = "m1", at = "2026-05-01T10:00:00Z" },
             { id = "m2", at = "2026-05-01T13:00:00+02:00" }, { id = "m3", at = "2026-04-30T23:00:00Z" } } }
  end,
  result = function(result, call)
    local last = newest(result.mails, "at")
    return ok { coverage = call.facts.newest == last.id and "SATISFIED" or "NEEDS_MORE_TOOLS",
                facts = { newest = last.id }, follow_up = { tool = "read", args = { id = last.id } } }
  end,
}
]==], ["read.lua"] = [==[
-- read: reads a mail. For specs.
return tool "read" { description = "Read a mail.", effects = "read", schema = params { id = str "Which" },
  ids = { id = seen() }, run = function(args) return { id = args.id, body = "hello" } end }
]==] } }:connect()
  end)

  local function finds(goal, arguments)
    return client:calls("mails", arguments or {}, session("s", { turn = 1, goal = goal }))
  end

  it("finds the newest item in any time zone, and the follow-up it names passes", function()
    local result = finds "what is new?"
    local follow_up = verdict(result).follow_up
    golden.check("feedback", "follow-up: the exact next call", text(result))
    assert.truthy(text(result):find('Next: call read with {"id":"m2"}', 1, true), text(result))
    local read = client:calls(follow_up.tool, follow_up.args, session("s", { turn = 1, goal = "what is new?" }))
    assert.is_not_true(read.isError, text(read))
  end)

  it("raises the limit if the user's goal asks for everything", function()
    assert.truthy(text(finds("show me ALL my mails", { limit = 3 })):find('"limit":100', 1, true))
    assert.truthy(text(finds("after all, what is new?", { limit = 3 })):find('"limit":3', 1, true))
  end)

  it("stores facts for the session, and its coverage may depend on them", function()
    assert.equal("NEEDS_MORE_TOOLS", verdict(finds "what is new?").coverage)
    assert.equal("SATISFIED", verdict(finds "what is new?").coverage)
    assert.same({ newest = "m2" }, client:asks("toolgate/session", { session = "s" }).facts)
  end)
end)

describe("a policy that breaks its own schema", function()
  -- Line 3 holds the schema; `part` begins at line 4.
  local function breaks(part, arguments)
    local gate = daemon.start { policies = { ["task.lua"] = [==[
-- task: for specs.
return tool "task" { description = "For specs.", run = function(args) return args end,
  schema = json [[{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}]],
]==] .. part .. "\n}\n" } }
    local result = gate:connect():calls("task", arguments, session "s")
    return result, gate
  end

  local function blames(where, part, arguments)
    local result, gate = breaks(part, arguments)
    local said = verdict(result)
    assert.same({ "refuse", "policy_error" }, { said.verdict, said.error_class })
    assert.truthy(said.detail:find(where, 1, true), said.detail)
    assert.is_nil(said.attempts_left) -- the model has nothing to repair
    golden.check("feedback", "policy error: a policy breaks its own schema", text(result))
    assert.is_nil(text(result):find("task.lua", 1, true), text(result))
    assert.truthy(gate:logs("policy_error"):find("task.lua:", 1, true))
    local status = client_of.json.encode((gate:connect():asks("toolgate/status", {})))
    assert.truthy(status:find("task.lua:", 1, true), status)
  end

  it("in a rule is named by the rule and its line", function()
    blames("task.lua:6: the rule 'when b is \"x\": 'a' is dropped' changed the arguments against the schema: 'a'",
           'rules = {\n  when { b = "y" } : defaults { a = 1 },\n  when { b = "x" } : drops "a",\n},', { a = 1, b = "x" })
  end)

  it("in normalise is named by the hook and its line", function()
    blames("task.lua:5: normalise changed the arguments against the schema: 'a' ",
           "rules = { when { b = 'y' } : defaults { a = 1 } },\nnormalise = function(args) args.a = 'text' return args end,",
           { a = 1, b = "x" })
  end)

  it("is blamed only for its own changes: the model repairs what the model sent", function()
    local result = breaks("normalise = function(args) args.b = 'c' return args end,", { a = "text" })
    assert.equal("invalid_arguments", verdict(result).error_class)
  end)

  it("is not an error with validate = false, neither for arguments nor for results", function()
    local result = breaks("validate = false, output_schema = json [[{\"type\":\"object\",\"required\":[\"z\"]}]],",
                          { a = "text" })
    assert.is_not_true(result.isError, text(result))
  end)
end)

describe("the ids of a long result", function()
  -- A daemon with a tool that gives `count` ids, and one that takes only those.
  local function shelf_of(count)
    return daemon.start { policies = { ["books.lua"] = ([==[
-- books: all books of a shelf. For specs.
return tool "books" {
  description = "List the books.", effects = "read", gives_ids = { "books[].id" }, schema = params {},
  run = function()
    local books = {}
    for i = 1, %d do books[i] = { id = "book-" .. i } end
    return { books = books }
  end,
}
]==]):format(count), ["lend.lua"] = [==[
-- lend: lends a book. For specs.
return tool "lend" { description = "Lend a book.", effects = "write", schema = params { id = str "Which" },
  ids = { id = seen() }, run = function(args) return { lent = args.id } end }
]==] } }:connect()
  end

  local function lends(client, id)
    return verdict(client:calls("lend", { id = id }, session("s", { turn = 1, goal = "lend me something" })))
  end

  it("are all seen, and any other id is refused as fabricated", function()
    local client = shelf_of(300)
    client:calls("books", {}, session("s", { turn = 1, goal = "lend me something" }))
    for _, id in ipairs { "book-1", "book-64", "book-65", "book-300" } do
      assert.equal("pass", lends(client, id).verdict, id)
    end
    assert.equal("refuse", lends(client, "book-301").verdict)
  end)

  it("beyond the capacity of the record cost one repair, never a refusal", function()
    local client = shelf_of(2000)
    client:calls("books", {}, session("s", { turn = 1, goal = "lend me something" }))
    assert.equal("pass", lends(client, "book-300").verdict)
    assert.equal("repair", lends(client, "book-1999").verdict)
    assert.equal("pass", lends(client, "book-1999").verdict)
  end)
end)

describe("a tool that the client registers and a policy guards", function()
  it("is suggested once, and its truncated description ends in an ellipsis", function()
    local client = daemon.start { policies = { ["get_stock.lua"] = [==[
-- get_stock: how many of an article there are. For specs.
return tool "get_stock" { description = ("How many there are. "):rep(20), effects = "read",
                          schema = params { article = int "Which" } }
]==] } }:connect()
    client:asks("toolgate/register", { tools = { { name = "get_stock", inputSchema = { type = "object" } } } })
    local unknown = client:asks("toolgate/check", { name = "get_stok", arguments = {} })
    assert.equal("unknown_tool", unknown.error_class)
    golden.check("feedback", "unknown tool: the closest one is registered by the client", unknown.text)
    local wrong = client:asks("toolgate/check", { name = "get_stock", arguments = { article = "x" } })
    assert.equal("invalid_arguments", wrong.error_class)
    golden.check("feedback", "arguments: of a tool that the client registered", wrong.text)
  end)
end)

describe("a failure", function()
  it("is attributed to the policy if a result hook found it, and to the tool if run returned it", function()
    local client = daemon.start { policies = { ["job.lua"] = [==[
-- job: tells how a job is. For specs.
return tool "job" {
  description = "Tell how a job is.", effects = "read",
  schema = params { how = enum({ "queued", "broken", "down" }, "What it is to be") },
  run = function(args)
    if args.how == "down" then return transient "no worker is there" end
    return { how = args.how }
  end,
  result = function(result)
    if result.how == "queued" then return transient("the job is queued still", 2) end
    if result.how == "broken" then return failed("job_broken", "the job has broken off") end
  end,
}
]==] } }:connect()
    for _, how in ipairs { "queued", "broken", "down" } do
      golden.check("feedback", "result hook: " .. how, text(client:calls("job", { how = how }, session "s")))
    end
  end)
end)
