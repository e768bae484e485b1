-- @modelcontextprotocol/server-memory over stdio: it keeps a graph in a file, which survives its restart.
local process = require "process"

return function(talk)
  local folder = process.directory()
  talk.serve { upstreams = { memory = {
    command = talk.node, args = { talk.packages .. "/@modelcontextprotocol/server-memory/dist/index.js" },
    env = { MEMORY_FILE_PATH = folder .. "/graph.jsonl" },
  } } }
  local model = talk.model()
  local ada = { name = "Ada", entityType = "person", observations = { "writes programs" } }

  local reads = model:calls("create_entities", { entities = { ada } })
  model:hears("an entity is stored", reads, "writes programs")
  talk.check("the structured result fits the server's own schema", reads.result.structuredContent.entities[1].name == "Ada",
    reads)
  model:hears("the entity is found", model:calls("search_nodes", { query = "Ada" }), "writes programs")
  reads = model:calls("open_nodes", { names = { "Zoe" } })
  talk.check("an empty result is delivered", not reads.isError
    and #reads.result.structuredContent.entities == 0, reads)

  model:is_refused("all problems are reported at once, with their paths",
    model:calls("create_entities", { entities = { { name = "Ada" }, { nam = "Ben", entityType = 4 } } }),
    "'entities[0].entityType' is missing", "'entities[0…1].observations' is missing",
    "'entities[1].nam': unknown field — did you mean 'name'?")
  model:reads_failure("an unknown entity is the server's error", model:calls("add_observations",
    { observations = { { entityName = "Nobody", contents = { "x" } } } }), "Entity with name Nobody not found")

  talk.is_killed_in_a_call(talk.model(), "add_observations",
    { observations = { { entityName = "Ada", contents = { "knows Charles" } } } },
    { unsure = true, next_tool = "search_nodes", next_arguments = { query = "Ada" } })
  process.remove(folder)
end
