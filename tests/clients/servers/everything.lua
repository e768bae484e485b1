-- @modelcontextprotocol/server-everything over stdio: every one of its tools is called.
local client = require "client"
local json = client.json
local EMPTY = json.decode '{"nothing":1}' -- cjson writes an empty table as a list; the schemas here allow a field

local function block(reads, type)
  for _, one in ipairs(reads.result.content or {}) do
    if one.type == type then return one end
  end
end

local function contents(talk, model)
  model:hears("echo answers", model:calls("echo", { message = "héllo" }), "Echo: héllo")
  model:hears("two numbers are added", model:calls("get-sum", { a = 1, b = 2.5 }), "The sum of 1 and 2.5 is 3.5")

  local reads = model:calls("get-annotated-message", { messageType = "error", includeImage = true })
  model:hears("a text that mentions an error is a success", reads, "Error: Operation failed")
  talk.check("its annotations arrive", block(reads, "text").annotations.priority == 1
    and block(reads, "text").annotations.audience[1] == "user", reads)
  talk.check("and its complete image", #block(reads, "image").data > 1000
    and block(reads, "image").mimeType == "image/png", reads)

  reads = model:calls("get-tiny-image", {})
  talk.check("an image arrives", not reads.isError and #block(reads, "image").data > 1000, reads)

  reads = model:calls("get-resource-links", { count = 2 })
  talk.check("links to resources arrive", block(reads, "resource_link").uri:find("^demo://resource/dynamic/"), reads)
  reads = model:calls("get-resource-reference", { resourceType = "Text", resourceId = 1 })
  talk.check("a resource arrives", block(reads, "resource").resource.uri == "demo://resource/dynamic/text/1", reads)

  reads = model:calls("get-structured-content", { location = "Chicago" })
  talk.check("structured content arrives beside its text",
    reads.result.structuredContent.conditions and block(reads, "text").text:find "conditions", reads)

  reads = model:calls("gzip-file-as-resource", { name = "x.gz", data = "data:text/plain,hello", outputType = "resource" })
  talk.check("a blob arrives", block(reads, "resource").resource.mimeType == "application/gzip", reads)
  reads = model:calls("gzip-file-as-resource", { name = "y.gz", data = "data:text/plain,hello" })
  talk.check("a link to the new resource arrives", block(reads, "resource_link").uri:find "y%.gz$", reads)
end

local function toggles(model)
  for _, tool in ipairs { "toggle-simulated-logging", "toggle-subscriber-updates" } do
    model:hears(tool .. " starts", model:calls(tool, {}), "Started")
    model:hears(tool .. " stops", model:calls(tool, {}), "Stopped")
  end
end

local function environment(talk, model)
  local reads = model:calls("get-env", {})
  local its = json.decode(block(reads, "text").text)
  talk.check("the server has its configured environment and a PATH", its.GREETING == "good day" and its.PATH, reads)
  talk.check("and no other variable of the daemon", its.TOOLGATE_TEST_SECRET == nil, reads)
end

local function wrong_arguments(talk, model)
  model:is_refused("all problems are reported at once", model:calls("get-sum", { a = "one" }),
    "get-sum was not run", "'a': expected number", "'b' is missing")
  model:is_refused("a misspelled name is reported", model:calls("echo", { mesage = "hello" }),
    "'mesage'", "did you mean 'message'")
  model:is_refused("and the values of an enum", model:calls("get-structured-content", { location = "Boston" }),
    "New York", "Chicago", "Los Angeles")
  model:is_refused("and a range", model:calls("get-resource-links", { count = 11 }), "'count'", "10")
  local reads = model:calls("ecko", { message = "hello" })
  talk.check("an unknown tool suggests the closest", reads.isError
    and reads.verdict.error_class == "unknown_tool" and reads.text:find "echo", reads)
end

local function failures(talk, model, listed)
  model:reads_failure("a tool that fails is quoted",
    model:calls("gzip-file-as-resource", { name = "z.gz", data = "https://gone.invalid/z" }), "fetch failed")

  -- It answers only clients that support tasks, which current clients do not.
  local reads = model:calls("simulate-research-query", { topic = "bees" })
  talk.check("a tool that only runs as a task is not listed", reads.isError
    and not listed["simulate-research-query"] and reads.verdict.error_class == "unknown_tool", reads)
  -- The server offers it only to clients that can sample.
  reads = model:calls("trigger-sampling-request", { prompt = "hello" })
  talk.check("a tool that needs sampling is not listed", reads.isError
    and not listed["trigger-sampling-request"] and reads.verdict.error_class == "unknown_tool", reads)
end

-- The gateway does not answer an elicitation: the model gets it as a question for its user.
local function question(talk, model)
  local reads = model:calls("trigger-elicitation-request", {})
  talk.check("a tool that elicits makes the model ask the user", reads.isError
    and reads.verdict.verdict == "ask" and reads.verdict.error_class == "need_user_input"
    and reads.verdict.coverage == "NEED_USER_INPUT" and reads.text:find("It asks the user", 1, true)
    and reads.text:find("favorite integer", 1, true), reads)
end

-- A client that can elicit gets the request itself, and repeats the call with the answer.
local function answered_question(talk)
  local line = talk.gate:connect()
  local meta = client.modern { ["io.modelcontextprotocol/clientCapabilities"] = { elicitation = { form = EMPTY } } }
  local asks = line:asks("tools/call", { name = "trigger-elicitation-request", arguments = EMPTY, _meta = meta })
  local id, request = next(asks.inputRequests or {})
  if not talk.check("it relays the elicitation to a client that can elicit", asks.resultType == "input_required"
    and request.method == "elicitation/create" and request.params.requestedSchema.properties.name, asks) then return end
  local result = line:asks("tools/call", { name = "trigger-elicitation-request", arguments = EMPTY, _meta = meta,
    inputResponses = { [id] = { action = "accept", content = { name = "Ada" } } }, requestState = asks.requestState })
  talk.check("and relays the answer to the server", result.resultType == "complete"
    and client.text(result):find("Name: Ada", 1, true), result)
end

local function progress(talk, model)
  local line = model.line
  line.notices = {}
  local reads = model:calls("trigger-long-running-operation", { duration = 0.2, steps = 4 }, { progressToken = "p" })
  model:hears("a long operation ends", reads, "Steps: 4")
  local last, rising, steps = 0, true, 0
  for _, notice in ipairs(line.notices) do
    if notice.method == "notifications/progress" then -- its lists of resources may change meanwhile
      rising = rising and notice.params.progressToken == "p" and notice.params.progress > last and notice.params.total == 4
      last, steps = notice.params.progress, steps + 1
    end
  end
  talk.check("and its four steps are relayed as progress", rising and steps == 4, line.notices)

  model:says("trigger-long-running-operation", { duration = 30, steps = 2 })
  line:say { jsonrpc = "2.0", method = "notifications/cancelled", params = { requestId = model.last_id } }
  talk.check("a cancelled call gets no answer", pcall(line.hears_only_a_ping, line))
end

-- Each call gets its own answer, in any order.
local function many(talk, model)
  local waiting, right = {}, 0
  for i = 1, 32 do
    model:says("echo", { message = "number " .. i })
    waiting[model.last_id] = "Echo: number " .. i
  end
  for _ = 1, 32 do
    local message = model.line:hears()
    local expected = waiting[message.id]
    waiting[message.id] = nil
    if expected and message.result.content[1].text == expected then right = right + 1 end
  end
  talk.check("each of 32 concurrent calls gets its own answer", right == 32, { right = right })
end

-- Every prompt is got, every resource read, also by template and by the link in a result; a watched one is reported.
local ARGUMENTS = { city = "Bern", state = "BE", department = "Engineering", name = "Alice", resourceType = "Text",
                    resourceId = "1" }

local function prompts_and_resources(talk)
  local line = talk.gate:connect()
  local prompts, got = line:asks("prompts/list", EMPTY).prompts, 0
  for _, prompt in ipairs(prompts) do
    local given
    for _, argument in ipairs(prompt.arguments or {}) do
      given = given or {}
      given[argument.name] = ARGUMENTS[argument.name]
    end
    got = got + (#line:asks("prompts/get", { name = prompt.name, arguments = given }).messages > 0 and 1 or 0)
  end
  talk.check("each of its prompts is got", #prompts >= 4 and got == #prompts, prompts)

  local resources, read = line:asks("resources/list", EMPTY).resources, 0
  for _, resource in ipairs(resources) do
    local said = line:asks("resources/read", { uri = resource.uri }).contents[1]
    read = read + (said.uri == resource.uri and 1 or 0)
  end
  talk.check("each of its resources is read", #resources >= 7 and read == #resources, resources)
  local templates = line:asks("resources/templates/list", EMPTY).resourceTemplates
  local by_template = line:asks("resources/read", { uri = "demo://resource/dynamic/text/7" }).contents[1]
  talk.check("its templates are listed, and give resources", #templates == 2 and by_template.text:find("Resource 7", 1, true),
             templates)

  local linked = line:calls("get-resource-links", { count = 2 }).content
  local link = linked[#linked]
  talk.check("a link in a result is read", link.type == "resource_link"
    and #line:asks("resources/read", { uri = link.uri }).contents == 1, linked)
  local completed = line:asks("completion/complete", { ref = { type = "ref/prompt", name = "completable-prompt" },
                                                       argument = { name = "department", value = "E" } })
  talk.check("an argument is completed", completed.completion.values[1] == "Engineering", completed)
  line:asks("resources/subscribe", { uri = "demo://resource/dynamic/text/7" })
  line.notices = {}
  line:calls("toggle-subscriber-updates", EMPTY) -- from now on every five seconds
  local told, why = pcall(line.hears_notice, line, "notifications/resources/updated")
  talk.check("a watched resource is reported", told, why)
  line:calls("toggle-subscriber-updates", EMPTY)
end

return function(talk)
  talk.serve {
    upstreams = { everything = {
      command = talk.node,
      args = { talk.packages .. "/@modelcontextprotocol/server-everything/dist/index.js", "stdio" },
      env = { GREETING = "good day" },
    } },
    environment = { TOOLGATE_TEST_SECRET = "not for servers" },
  }
  local model = talk.model()
  local listed = model:lists()
  talk.check("its tools are listed with unchanged schemas", listed.echo
    and listed.echo.inputSchema["$schema"] == "http://json-schema.org/draft-07/schema#"
    and listed.echo.annotations.readOnlyHint == true and listed["get-structured-content"].outputSchema, listed)
  talk.check("without the task support of the definition", listed.echo.execution == nil, listed.echo)
  contents(talk, model)
  toggles(model)
  environment(talk, model)
  wrong_arguments(talk, model)
  failures(talk, model, listed)
  question(talk, model)
  answered_question(talk)
  progress(talk, model)
  many(talk, talk.model())
  prompts_and_resources(talk)
  talk.is_killed_in_a_call(talk.model(), "trigger-long-running-operation", { duration = 0.1, steps = 1 })
end
