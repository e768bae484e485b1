-- @modelcontextprotocol/server-filesystem over stdio, by the mcpServers file that people have: it reads, writes and
-- edits in a folder of its own, and a path outside is its error, explained.
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
  talk.check("and stands there", process.read(notes) == "one\ntwo\n", process.read(notes))
  model:hears("it is read", model:calls("read_text_file", { path = notes }), "one\ntwo\n")
  model:hears("it is edited", model:calls("edit_file",
    { path = notes, edits = { { oldText = "two", newText = "three" } } }), "+three")
  talk.check("and what stands there is new", process.read(notes) == "one\nthree\n", process.read(notes))
  local reads = model:calls("read_text_file", { path = notes, head = 1 })
  talk.check("its structured content arrives", reads.result.structuredContent.content == "one", reads)
  model:hears("the folder is listed", model:calls("list_directory", { path = folder }), "[FILE] notes.txt")

  model:is_refused("all problems with an edit are told at once",
    model:calls("edit_file", { pth = notes, edits = { { oldText = "three" }, { newText = 4 } } }),
    "'path': required field is missing", "'pth'", "'edits[0].newText': required field is missing",
    "'edits[1].oldText': required field is missing", "'edits[1].newText': expected string, got 4")
  talk.check("and nothing was edited", process.read(notes) == "one\nthree\n", process.read(notes))
  reads = model:calls("read_text_file", { path = notes, head = "1" })
  model:hears("a number sent as text is mended", reads, "one")

  model:is_told_of_a_failure("a path outside is the server's error, explained",
    model:calls("read_text_file", { path = "/etc/hostname" }), "Access denied - path outside allowed directories",
    "change that and call again")
  model:is_told_of_a_failure("so is a file that is not there",
    model:calls("read_text_file", { path = folder .. "/none.txt" }), "ENOENT: no such file")
  model:is_told_of_a_failure("and a text to replace that does not occur",
    model:calls("edit_file", { path = notes, edits = { { oldText = "four", newText = "five" } } }),
    "Could not find exact match")

  talk.is_killed_in_a_call(talk.model(), "write_file", { path = folder .. "/late.txt", content = "late" })
  process.remove(folder)
end
