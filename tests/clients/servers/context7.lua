-- @upstash/context7-mcp over stdio, which speaks both eras. Without network it reports the failure in a result that
-- claims success, and a short policy turns that into a transient failure.
local POLICY = [[
-- %s: context7's tool, which reports an unreachable site as a success.
return tool "%s" {
  upstream = "context7",
  effects  = "read",
  result = function(result)
    local text = result.text or ""
    if text:find("fetch failed", 1, true) then
      return transient("context7 can't reach its documentation site")
    end
  end,
}
]]

return function(talk)
  local function serve(policies)
    talk.serve { policies = policies, upstreams = { context7 = {
      command = talk.node, args = { talk.packages .. "/@upstash/context7-mcp/dist/index.js" },
      env = { CONTEXT7_API_URL = "http://127.0.0.1:9" },
    } } }
    return talk.model()
  end

  local model = serve {}
  local listed = model:lists()
  talk.check("its tools are listed", listed["resolve-library-id"] and listed["query-docs"], listed)
  model:is_refused("all problems are reported at once", model:calls("resolve-library-id", { libraryNam = "react" }),
    "'query' is missing", "'libraryNam': unknown field — did you mean 'libraryName'?")
  local asked = { query = "how do hooks work?", libraryName = "react" }
  model:hears("without a policy the model reads the server's result",
    model:calls("resolve-library-id", asked), "fetch failed")
  talk.is_killed_in_a_call(talk.model(), "resolve-library-id", asked)
  talk.gate:stop()

  local policies = {}
  for _, name in ipairs { "resolve-library-id", "query-docs" } do
    policies[name .. ".lua"] = POLICY:format(name, name)
  end
  model = serve(policies)
  for name, arguments in pairs { ["resolve-library-id"] = asked,
                                 ["query-docs"] = { libraryId = "/facebook/react", query = "hooks" } } do
    local reads = model:calls(name, arguments)
    talk.check(name .. ": with a policy the unreachable site is transient", reads.isError
      and reads.verdict.error_class == "transient" and reads.verdict.verdict == "wait"
      and reads.text:find("can't reach its documentation site", 1, true), reads)
  end
end
