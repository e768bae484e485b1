-- @modelcontextprotocol/server-filesystem over stdio, from an mcpServers file: it reads, writes and edits files in a
-- temporary folder, and a path outside is its error.
local process = require "process"

return function(talk)
  local folder = process.directory()
  talk.serve { mcp_config = { mcpServers = { files = {
    type = "stdio", command = talk.node,
    args = { talk.packages .. "/@modelcontextprotocol/server-filesystem/dist/index.js", folder },
  } } } }
  local model = talk.model()
  local notes = folder .. "/notes.txt"

  local listed = model:lists()
  talk.check("its tools are listed", listed.read_text_file and listed.write_file and listed.edit_file, listed)
  model:hears("a file is written", model:calls("write_file", { path = notes, content = "one\ntwo\n" }), "Successfully wrote")
  talk.check("and is on disk", process.read(notes) == "one\ntwo\n", process.read(notes))
  model:hears("it is read", model:calls("read_text_file", { path = notes }), "one\ntwo\n")
  model:hears("it is edited", model:calls("edit_file",
    { path = notes, edits = { { oldText = "two", newText = "three" } } }), "+three")
  talk.check("and the edit is on disk", process.read(notes) == "one\nthree\n", process.read(notes))
  local reads = model:calls("read_text_file", { path = notes, head = 1 })
  talk.check("its structured content arrives", reads.result.structuredContent.content == "one", reads)
  model:hears("the folder is listed", model:calls("list_directory", { path = folder }), "[FILE] notes.txt")

  model:is_refused("all problems of an edit are reported at once",
    model:calls("edit_file", { pth = notes, edits = { { oldText = "three" }, { newText = 4 } } }),
    "'pth': unknown field — did you mean 'path'?", "'edits[0].newText' is missing", "'edits[1].oldText' is missing")
  talk.check("and nothing was edited", process.read(notes) == "one\nthree\n", process.read(notes))
  reads = model:calls("read_text_file", { path = notes, head = "1" })
  model:hears("a number sent as a string is coerced", reads, "one")

  model:reads_failure("a path outside is the server's error, quoted",
    model:calls("read_text_file", { path = "/etc/hostname" }), "Access denied - path outside allowed directories",
    "change that and call again")
  model:reads_failure("a missing file is the server's error",
    model:calls("read_text_file", { path = folder .. "/none.txt" }), "ENOENT: no such file")
  model:reads_failure("a string to replace that does not occur is the server's error",
    model:calls("edit_file", { path = notes, edits = { { oldText = "four", newText = "five" } } }),
    "Could not find exact match")

  talk.is_killed_in_a_call(talk.model(), "write_file", { path = folder .. "/late.txt", content = "late" })
  process.remove(folder)
end
