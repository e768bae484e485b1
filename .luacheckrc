-- make lint
std = "luajit"
max_line_length = 130
exclude_files = { "tests/fuzz/**" }

-- The words a policy has (src/policy/); a policy file returns a document and defines nothing.
local words = {
  "above", "below", "at_least", "at_most", "between", "given", "absent", "none_of", "is",
  "tool", "gateway", "json", "params", "when", "always", "needs_one_of", "exclusive", "seen", "shape",
  "str", "int", "num", "bool", "list", "object", "enum", "uuid", "datetime", "date", "email", "uri", "optional",
  "repair", "refuse", "ask", "retry", "tool_return",
  "ok", "partial", "garbage", "broken", "transient", "need_user", "failed", "newest",
  "null", "array", "wants_all", "time", "duration", "url", "host_in", "glob", "set",
}
for _, folder in ipairs { "policies", "lua/templates", "tests/bench/toolgate-bench", "tests/clients/conformance-policies" } do
  files[folder] = { read_globals = words, ignore = { "212" } } -- a hook names its arguments, also those it does not read
end
files["lua/cli"] = { globals = { "flag", "text", "number", "choice", "list", "files", "socket", "json", "fail", "command", "rpc" },
                     read_globals = { "cli" } }
files["lua/cli/options.lua"] = { globals = { "cli" } }
files["lua/provider_formats.lua"] = { read_globals = { "json" } }
files["lua/report"] = { read_globals = { "cli" } }
files["lua/replay"] = { read_globals = { "cli" } }
files["lua/policy"] = { read_globals = words }
files["tests/spec"] = { std = "luajit+busted", read_globals = { -- of tests/support/helper.lua
  "client_of", "daemon", "fixtures", "golden", "json", "modern", "process", "problems", "session", "text", "verdict" } }
files["tests/support/helper.lua"] = { std = "luajit+busted" }
