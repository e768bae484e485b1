-- http tools: the request that the endpoint gets, and what the client gets for each response.
local http_server = require "http_server"

local server, gate, client

-- A tool with an http field and a schema, as Lua and JSON.
local function policy(http, schema, more)
  return ([==[
-- endpoint: for specs.
return tool "endpoint" { description = "For specs.", effects = "read", %s
  schema = json [[%s]],
  http = %s }
]==]):format(more or "", schema or '{"type":"object"}', (http:gsub("SERVER", server.address)))
end

local function serves(http, schema, options)
  options = options or {}
  gate, client = daemon.open { policies = { ["endpoint.lua"] = policy(http, schema, options.more) }, config = options.config,
                               environment = options.environment }
end

local function answers(routes, given)
  given = given or {}
  given.routes = routes
  server = http_server.start(given)
end

-- Each call has its own session, so that no budget interferes.
local sessions = 0
local function calls(arguments)
  sessions = sessions + 1
  return client:calls("endpoint", arguments or {}, session("s" .. sessions))
end

-- Asserts class and code, and with a key the golden text.
local function is_refused(result, class, code, key)
  assert.is_true(result.isError, text(result))
  assert.same({ class, code }, { verdict(result).error_class, verdict(result).code })
  if key then golden.check("feedback", "http: " .. key, text(result)) end
  return result
end

local ISSUE = '{"type":"object","properties":{"owner":{"type":"string"},"id":{"type":["integer","string"]},' ..
              '"page":{"type":"integer"},"labels":{"type":"array"},"filter":{"type":"object"},"open":{"type":"boolean"},' ..
              '"q":{"type":["string","null"]}},"required":["owner","id"]}'

describe("an HTTP endpoint", function()
  it("sends GET with arguments in the path and the rest in the query", function()
    answers { ["GET /v1/a%20b/issues/12"] = { echo = true } }
    serves('{ "GET SERVER/v1/{owner}/issues/{id}?v=2" }', ISSUE)
    local result = calls { owner = "a b", id = 12, page = 3, labels = { "x", "y&z" }, open = true,
                           filter = { of = "me" }, q = json.null }
    assert.is_not_true(result.isError, text(result))
    local seen = json.decode(text(result))
    local parts = {}
    for part in seen.query:gmatch "[^&]+" do parts[#parts + 1] = part end
    table.sort(parts)
    assert.same({ "filter=%7B%22of%22%3A%22me%22%7D", "labels=x", "labels=y%26z", "open=true", "page=3", "v=2" }, parts)
    assert.same(json.null, seen.body)
    assert.equal("toolgate/" .. process.read("src/base/version.h"):match 'TOOLGATE_VERSION "([^"]+)"', seen.headers["user-agent"])
  end)

  it("sends POST with the rest as JSON body, except what `query` names", function()
    answers { ["POST /v1/a/issues/12"] = { echo = true } }
    serves('{ "POST SERVER/v1/{owner}/issues/{id}", query = { "page" } }', ISSUE)
    local seen = json.decode(text(calls { owner = "a", id = 12, page = 3, labels = { "x" }, open = true }))
    assert.equal("page=3", seen.query)
    assert.same({ labels = { "x" }, open = true }, seen.body)
    assert.equal("application/json", seen.headers["content-type"])
  end)

  it("escapes an argument in the path, and rejects one that would change the path", function()
    answers { ["GET /v1/a%2Fb%3Fc%23%25/issues/..x"] = { echo = true } }
    serves('{ "GET SERVER/v1/{owner}/issues/{id}" }', ISSUE)
    assert.equal("/v1/a%2Fb%3Fc%23%25/issues/..x", json.decode(text(calls { owner = "a/b?c#%", id = "..x" })).path)
    for _, bad in ipairs { "..", ".", "../../admin", "a/../../b", "..\\x" } do
      local result = calls { owner = bad, id = 1 }
      assert.is_true(result.isError, bad)
      golden.check("feedback", "http: a path parameter that leads elsewhere", text(result))
    end
    golden.check("feedback", "http: an empty path parameter", text(calls { owner = "", id = 1 }))
    assert.equal(1, #server:saw())
  end)

  it("returns the member that `pick` names, and fails if it is missing", function()
    answers { ["GET /list"] = { { body = { data = { items = { { id = 7 } } } } }, { body = { data = {} } } } }
    serves '{ "GET SERVER/list", pick = "data.items.0" }'
    assert.same({ id = 7 }, json.decode(text(calls())))
    local result = calls()
    assert.is_true(result.isError)
    golden.check("feedback", "http: the picked member is missing", text(result))
  end)

  it("returns text, JSON of any content type, and null for an empty body", function()
    answers { ["GET /"] = { { body = "plain words" }, { body = "[1,2]" }, { status = 204 },
                            { headers = { ["Content-Type"] = "application/json" }, body = "\239\187\191[3]" } } }
    serves '{ "GET SERVER/" }'
    assert.equal("plain words", text(calls()))
    assert.same({ 1, 2 }, json.decode(text(calls())))
    assert.equal("null", text(calls()))
    assert.same({ 3 }, json.decode(text(calls()))) -- after a byte order mark
  end)

  it("takes 90,000 arguments in a body, and says that they are too long for a query", function()
    answers { ["POST /"] = { body = "stored" } }
    local many = {}
    for i = 1, 90000 do many["n" .. i] = 0 end
    for method, expected in pairs { POST = "stored", GET = "at most 8192 can be sent" } do
      serves('{ "' .. method .. ' SERVER/" }')
      local said = text(calls(many))
      assert.truthy(said:find(expected, 1, true), said:sub(1, 500))
    end
  end)

  it("returns status and headers for HEAD", function()
    answers { ["HEAD /file"] = { headers = { ["Content-Type"] = "image/png", ["X-Else"] = "1" }, announce = 1234 } }
    serves '{ "HEAD SERVER/file" }'
    local seen = json.decode(text(calls()))
    assert.same({ status = 200, ["content-type"] = "image/png", ["content-length"] = "1234" }, seen)
  end)
end)

describe("an HTTP endpoint that fails", function()
  it("may have 100 headers, and no more", function()
    local function headers(count)
      local all = {}
      for i = 1, count - 2 do all["X-Header-" .. i] = "x" end
      return all
    end
    answers { ["GET /full"] = { body = { a = 1 }, headers = headers(100) },
              ["GET /over"] = { body = { a = 1 }, headers = headers(101) } }
    serves('{ "GET SERVER/{path}" }', '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}')
    assert.is_not_true(calls({ path = "full" }).isError)
    assert.is_true(calls { path = "over" }.isError)
  end)

  it("may not send heads without end", function()
    answers { ["GET /few"] = { hints = 1, echo = true }, ["GET /many"] = { hints = 5000, echo = true } }
    serves('{ "GET SERVER/{path}" }', '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}')
    assert.is_not_true(calls({ path = "few" }).isError)
    is_refused(calls { path = "many" }, "schema_mismatch", "too_large")
    assert.is_true(tonumber(process.read("/proc/" .. gate:pid() .. "/status"):match "VmHWM:%s*(%d+)") < 100000)
  end)

  it("with status 4xx is a tool_error that quotes the response", function()
    answers { ["GET /"] = { { status = 404, body = { error = { message = "no issue 12", code = 4 } } },
              { status = 422, headers = { ["Content-Type"] = "application/problem+json" },
                body = '{"title":"Bad","detail":"page must be below 9"}' },
              { status = 400, body = { errors = { { message = "first of them" } } } },
              { status = 409, headers = { ["Content-Type"] = "text/html" }, body = "<html>no</html>" } } }
    serves '{ "GET SERVER/" }'
    is_refused(calls { n = 1 }, "tool_error", "http_404", "status 404")
    is_refused(calls { n = 2 }, "tool_error", "http_422", "status 422 with problem details")
    is_refused(calls { n = 3 }, "tool_error", "http_400", "status 400 with a list of errors")
    assert.is_nil(text(is_refused(calls { n = 4 }, "tool_error", "http_409")):find("html", 1, true))
  end)

  it("with 429 or 5xx is transient, with the delay of Retry-After", function()
    answers { ["GET /"] = { { status = 429, headers = { ["Retry-After"] = "7" }, body = "slow down" },
              { status = 503 }, { status = 500, body = { message = "boom" } },
              { status = 503, headers = { ["Retry-After"] = "Fri, 31 Dec 9999 23:59:59 GMT" } } } }
    serves '{ "GET SERVER/" }'
    local first = is_refused(calls { n = 1 }, "transient", "http_429", "status 429")
    assert.equal(7, verdict(first).after_s)
    is_refused(calls { n = 2 }, "transient", "http_503")
    is_refused(calls { n = 3 }, "transient", "http_500", "status 500")
    assert.equal(86400, verdict(calls { n = 4 }).after_s) -- the longest delay
  end)

  it("is classified by the failure of the connection", function()
    answers { ["GET /hang"] = { hang = true }, ["GET /reset"] = { reset = true },
              ["GET /short"] = { announce = 100, body = "x", close = true },
              ["GET /noise"] = { raw = "220 smtp.example.com ESMTP\r\n" },
              ["GET /large"] = { fill = 17 * 1024 * 1024 }, ["GET /slow"] = { headers_slowly = 0.2 },
              ["GET /json"] = { headers = { ["Content-Type"] = "application/json" }, body = '{"a":' } }
    gate = daemon.start { policies = {}, config = "return {}" }
    local patience = "300ms"
    local function fails(path, class, code)
      gate:write_policy("endpoint.lua", policy('{ "GET SERVER' .. path .. '", timeout = "' .. patience .. '" }', nil,
                                               "-- " .. path))
      gate:reload()
      client = gate:connect()
      return is_refused(calls(), class, code, "connection: " .. path)
    end
    fails("/hang", "transient", "timeout")
    fails("/slow", "transient", "timeout")
    patience = "20s"
    fails("/reset", "transient", "broken_off")
    fails("/short", "transient", "broken_off")
    fails("/noise", "schema_mismatch", "invalid_http")
    fails("/large", "schema_mismatch", "too_large")
    fails("/json", "schema_mismatch", "invalid_json")
    server:stop()
    fails("/gone", "transient", "unreachable")
  end)
end)

describe("the secrets of an HTTP endpoint", function()
  it("come from the environment and from a file, and are masked everywhere", function()
    answers { ["GET /"] = { { echo = true }, { status = 401, body = { message = "token-of-the-spec is not known" } },
              { status = 503, body = "not with file-of-the-spec" } } }
    local file = process.write(server.directory .. "/key", "file-of-the-spec\n")
    serves('{ "GET SERVER/", headers = { Authorization = "Bearer ${SPEC_TOKEN}", ["X-Key"] = "${file:' .. file ..
           '}", ["X-Plain"] = "${SPEC_ABSENT:-otherwise}" } }', nil, { environment = { SPEC_TOKEN = "token-of-the-spec" } })
    local first, second = text(calls { n = 1 }), text(calls { n = 2 })
    golden.check("feedback", "http: status 401 that repeats the token", second)
    local everything = first .. second .. text(calls { n = 3 })
    local sent = server:saw()[1].headers
    assert.same({ "Bearer token-of-the-spec", "file-of-the-spec", "otherwise" },
                { sent.authorization, sent["x-key"], sent["x-plain"] })
    everything = everything .. json.encode((client:asks "toolgate/status")) ..
                 json.encode((client:asks "tools/list")) .. gate:log()
    assert.is_nil(everything:find("of-the-spec", 1, true), everything)
    assert.truthy(everything:find("Bearer ***", 1, true))
  end)

  it("that are not set are named to the operator only, and nothing is sent", function()
    answers { ["GET /"] = { echo = true } }
    serves '{ "GET SERVER/", headers = { Authorization = "Bearer ${SPEC_NOT_SET}" } }'
    local heard = is_refused(calls(), "unavailable", "not_configured", "a secret is not set")
    assert.is_nil(text(heard):find("SPEC_NOT_SET", 1, true))
    golden.check("log", "http: a secret is not set", gate:logs "tool=endpoint code=not_configured ")
    assert.same({}, server:saw())
  end)

  it("that are misspelt are the operator's to correct, not the model's", function()
    answers { ["GET /"] = { echo = true } }
    serves '{ "GET SERVER/", headers = { Authorization = "Bearer ${SPEC-TOKEN}" } }'
    is_refused(calls(), "unavailable", "not_configured")
    gate:logs "tool=endpoint code=not_configured "
    assert.matches("expected ${NAME}", gate:log(), 1, true)
    assert.same({}, server:saw())
  end)

  it("that the server rejects are an error for the operator, in the log and the status", function()
    answers { ["GET /"] = { { status = 401, body = { message = "who are you" } } } }
    serves('"GET /"', nil, { more = 'upstream = "billing",', config = 'return { upstreams = { billing = { rest = "' ..
                             server.address .. '" } } }' })
    is_refused(calls(), "unavailable", "http_401", "status 401")
    gate:logs "upstream_call_failed upstream=billing tool=endpoint code=http_401"
    local billing = gate:status().upstreams[1]
    assert.truthy(billing.last_error:find("status 401", 1, true), billing.last_error)
    assert.same({ 1, 1, "closed" }, { billing.calls, billing.failures, billing.breaker })
    assert.truthy(billing.last_error_s_ago >= 0)
  end)

  it("are not sent along a redirect to another host", function()
    local elsewhere = http_server.start { routes = { ["GET /there"] = { echo = true } } }
    answers { ["GET /"] = { { status = 302, headers = { Location = elsewhere.address .. "/there?key=hidden" } },
              { status = 302, headers = { Location = "/here" } } }, ["GET /here"] = { body = "followed" } }
    serves '{ "GET SERVER/", headers = { Authorization = "Bearer secret-of-the-spec" } }'
    local result = calls { n = 1 }
    assert.is_true(result.isError)
    golden.check("feedback", "http: a redirect to another host", text(result))
    assert.is_nil(text(result):find("hidden", 1, true))
    assert.same({}, elsewhere:saw())
    assert.equal("followed", text(calls { n = 2 }))
  end)
end)

describe("the connections of HTTP endpoints", function()
  it("follow a redirect, also if its page is long in coming", function()
    answers { ["GET /"] = { status = 302, headers = { Location = "/here" }, fill = 200000 },
              ["GET /here"] = { body = "followed" } }
    serves '{ "GET SERVER/" }'
    assert.equal("followed", text(calls()))
  end)

  it("are reused", function()
    answers { ["GET /"] = { echo = true } }
    serves '{ "GET SERVER/" }'
    for n = 1, 3 do calls { n = n } end
    local saw = server:saw()
    assert.same({ 3, saw[1].connection, saw[1].connection }, { #saw, saw[2].connection, saw[3].connection })
  end)

  it("are trusted by certificate", function()
    answers({ ["GET /"] = { body = "encrypted" } }, { tls = true })
    serves '{ "GET SERVER/" }'
    is_refused(calls(), "unavailable", "misconfigured", "the certificate is not trusted")
    gate:write_policy("endpoint.lua", policy('{ "GET SERVER/", ca_file = "' .. server.certificate .. '" }'))
    gate:reload()
    assert.equal("encrypted", text(gate:connect():calls("endpoint", { n = 2 }, session "s")))
  end)

  it("serve a call while another waits, and close if the client cancels", function()
    answers { ["GET /"] = { { hang = true }, { body = "second" } } }
    serves '{ "GET SERVER/" }'
    client:begins(1, "endpoint", { n = 1 })
    server:sees("the first call", function() return true end)
    assert.equal("second", text(gate:connect():calls("endpoint", { n = 2 }, session "s")))
    client:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = 1 } }
    assert.is_true(client:hears_only_a_ping())
  end)
end)

describe("a REST upstream", function()
  it("provides its endpoints with a base address, headers and one breaker", function()
    answers { ["GET /base/v1/bills"] = { { echo = true }, { status = 503 } } }
    serves('"GET /v1/bills"', nil, { more = 'upstream = "billing",', environment = { SPEC_KEY = "key-of-the-spec" },
      config = 'return { upstreams = { billing = { rest = "' .. server.address ..
               '/base/", headers = { ["X-Key"] = "${SPEC_KEY}", Accept = "text/plain" } } } }' })
    local seen = json.decode(text(calls()))
    assert.same({ "/base/v1/bills", "text/plain" }, { seen.path, seen.headers.accept })
    assert.equal("key-of-the-spec", server:saw()[1].headers["x-key"])
    for n = 1, 5 do is_refused(calls { n = n }, "transient", "http_503") end
    is_refused(calls { n = 6 }, "unavailable", "breaker_open", "circuit breaker is open")
    assert.equal(6, #server:saw())
    gate:logs "upstream_call_failed upstream=billing tool=endpoint code=http_503"
    local status = json.encode((gate:status()))
    assert.truthy(status:find('"billing"', 1, true), status)
    assert.is_nil(status:find("key-of-the-spec", 1, true), status)
  end)

  it("is retried within the call's limits after status 503", function()
    answers { ["GET /bills"] = { { status = 503 } } }
    serves('"GET /bills"', nil, {
      more = 'upstream = "billing", retry = { again = { times = 4, backoff = "1ms", within = "30s" } },',
      config = 'return { upstreams = { billing = { rest = "' .. server.address .. '" } } }' })
    local said = verdict(is_refused(calls(), "transient", "http_503", "tried five times"))
    assert.same({ "wait", 5, 1 }, { said.verdict, said.tries, said.after_s })
    assert.equal(5, #server:saw())
  end)

  it("without libcurl is an error that names the package", function()
    answers { ["GET /"] = { echo = true } }
    process.write(server.directory .. "/libcurl.so.4", "")
    process.write(server.directory .. "/libcurl-gnutls.so.4", "")
    serves('"GET SERVER/"', nil, { environment = { LD_LIBRARY_PATH = server.directory } })
    is_refused(calls(), "unavailable", "not_configured")
    golden.check("log", "http: libcurl is missing", gate:logs "tool=endpoint code=not_configured ",
                 { ["%(/.*%)"] = "(<dlerror>)" })
  end)

  it("is reached through the proxy of the environment", function()
    answers { ["GET http://nowhere.invalid/x"] = { body = "by proxy" } }
    gate = daemon.start { environment = { http_proxy = server.address, no_proxy = "" }, policies = { ["endpoint.lua"] = [==[
-- endpoint: for specs.
return tool "endpoint" { description = "x", schema = json [[{"type":"object"}]], http = "GET http://nowhere.invalid/x" }
]==] } }
    client = gate:connect()
    assert.equal("by proxy", text(calls()))
  end)
end)

describe("the endpoint in docs/running.md", function()
  it("works as the page describes, and its examples pass", function()
    local page = process.read "docs/running.md"
    local source = assert(page:match "\n```lua\n(%-%- list_bills:.-)\n```")
    answers { ["GET /v1/customers/c-7/bills"] = { body = { data = { items = { { id = "b-1" } } } } } }
    source = source:gsub("https://api.example.com", (server.address:gsub("%%", "%%%%")))
    gate = daemon.start { policies = { ["list_bills.lua"] = source }, environment = { BILLING_TOKEN = "token-of-the-page" } }
    local result = gate:connect():calls("list_bills", { customer = "c-7", state = "open" }, session "s")
    assert.same({ { id = "b-1" } }, json.decode(text(result)))
    local seen = server:saw()[1]
    assert.same({ "state=open", "Bearer token-of-the-page" }, { seen.query, seen.headers.authorization })
    process.runs { daemon.binary, "test", gate.policies }
  end)
end)

describe("a policy with an HTTP endpoint", function()
  local function is_rejected(http, words, schema, more)
    server = { address = "http://127.0.0.1:1" }
    local log = daemon.fails { policies = { ["endpoint.lua"] = policy(http, schema, more) } }
    assert.truthy(log:find(words, 1, true), log)
    assert.truthy(log:find("endpoint.lua:", 1, true), log)
  end

  it("is rejected at load if it cannot make a request", function()
    is_rejected('"FETCH SERVER/"', 'expected "GET …"')
    is_rejected('"GET"', 'expected "METHOD address"')
    is_rejected('"GET /v1"', 'begins with http:// or https://')
    is_rejected('"GET SERVER/v1"', 'expected a path that begins with "/"', nil, 'upstream = "billing",')
    is_rejected('"GET https://{host}/"', '{host} is before the path',
                     '{"type":"object","properties":{"host":{"type":"string"}},"required":["host"]}')
    is_rejected('"GET SERVER/{id"', "has '{id'")
    is_rejected('{ "GET SERVER/", headers = { ["X Y"] = "z" } }', "the header 'X Y'")
    is_rejected('{ "GET SERVER/", heders = {} }', "did you mean 'headers'?")
    is_rejected('{ "GET SERVER/", timeout = "soon" }', "http.timeout")
    is_rejected('{ headers = {} }', 'expected "METHOD address"')
    is_rejected('"GET SERVER/", run = function() end', "expected one of run, exec and http")
  end)

  it("is rejected at load if the address needs an argument that the schema does not require", function()
    is_rejected('"GET SERVER/{id}"', "the schema does not require it", '{"type":"object","properties":{"id":{}}}')
    is_rejected('"GET SERVER/{ids}"', "did you mean 'id'?",
                     '{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}')
    is_rejected('{ "POST SERVER/", query = { "pages" } }', "did you mean 'page'?",
                     '{"type":"object","properties":{"page":{"type":"string"}}}')
  end)
end)
