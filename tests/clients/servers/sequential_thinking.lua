-- @modelcontextprotocol/server-sequential-thinking over stdio: one tool, four required fields, and drawings on stderr.
return function(talk)
  talk.serve { upstreams = { thinking = {
    command = talk.node, args = { talk.packages .. "/@modelcontextprotocol/server-sequential-thinking/dist/index.js" },
  } } }
  local model = talk.model()
  local thought = { thought = "first", nextThoughtNeeded = true, thoughtNumber = 1, totalThoughts = 2 }

  model:hears("a thought is accepted", model:calls("sequentialthinking", thought), '"thoughtHistoryLength": 1')
  local log = talk.gate:logs "Thought 1/2"
  talk.check("its stderr is in the log as lines of that upstream", log, log)
  model:hears("numbers and booleans sent as strings are coerced", model:calls("sequentialthinking",
    { thought = "second", nextThoughtNeeded = "true", thoughtNumber = "2", totalThoughts = "2" }), '"thoughtNumber": 2')

  model:is_refused("all problems are reported at once",
    model:calls("sequentialthinking", { thought = "third", nextThoughtNeeded = true, thoughtNumber = 1.5,
                                        totalThoughts = 0 }),
    "'thoughtNumber': expected integer from 1, got number 1.5", "'totalThoughts': must be at least 1, got 0")
  model:is_refused("all missing fields are reported", model:calls("sequentialthinking", { thought = "third" }),
    "'nextThoughtNeeded' is missing", "'thoughtNumber' is missing",
    "'totalThoughts' is missing")

  talk.is_killed_in_a_call(talk.model(), "sequentialthinking", thought)
end
