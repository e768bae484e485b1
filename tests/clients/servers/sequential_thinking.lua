-- @modelcontextprotocol/server-sequential-thinking over stdio: one tool, four required fields, and boxes on its stderr.
return function(talk)
  talk.serve { upstreams = { thinking = {
    command = talk.node, args = { talk.packages .. "/@modelcontextprotocol/server-sequential-thinking/dist/index.js" },
  } } }
  local model = talk.model()
  local thought = { thought = "first", nextThoughtNeeded = true, thoughtNumber = 1, totalThoughts = 2 }

  model:hears("a thought is taken", model:calls("sequentialthinking", thought), '"thoughtHistoryLength": 1')
  local log = talk.gate:logs "Thought 1/2"
  talk.check("what it draws on its stderr is in the log, as lines of that server", log, log)
  model:hears("numbers and truth sent as text are mended", model:calls("sequentialthinking",
    { thought = "second", nextThoughtNeeded = "true", thoughtNumber = "2", totalThoughts = "2" }), '"thoughtNumber": 2')

  model:is_refused("all problems are told at once",
    model:calls("sequentialthinking", { thought = "third", nextThoughtNeeded = true, thoughtNumber = 1.5,
                                        totalThoughts = 0 }),
    "'thoughtNumber': expected integer, got 1.5", "'totalThoughts': must be at least 1, got 0")
  model:is_refused("and all that is missing", model:calls("sequentialthinking", { thought = "third" }),
    "'nextThoughtNeeded': required field is missing", "'thoughtNumber': required field is missing",
    "'totalThoughts': required field is missing")

  talk.is_killed_in_a_call(talk.model(), "sequentialthinking", thought)
end
