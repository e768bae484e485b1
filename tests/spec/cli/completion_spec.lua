-- toolgate completion: the candidates, and each shell's script in that shell.
local cjson = require "cjson"

local directory
local function scratch(name, text) return process.write(directory .. "/" .. name, text) end

-- The candidates for the last word, without their descriptions.
local function candidates(...)
  local out = process.runs { daemon.binary, "completion", "words", "--", ... }
  local found = {}
  for line in out:gmatch "[^\n]+" do found[#found + 1] = line:match "^[^\t]*" end
  return found
end

describe("toolgate completion words", function()
  it("completes commands, also after help", function()
    assert.same({ "serve" }, candidates "serv")
    assert.same({ "reload" }, candidates("help", "rel"))
    assert.same({}, candidates("nothing", ""))
  end)

  it("completes every option that --help lists", function()
    for name in select(2, process.run { daemon.binary, "--help" }):gmatch "\n  ([a-z]+) " do
      local offered = {}
      for _, option in ipairs(candidates(name, "--")) do offered[option] = true end
      for option in select(2, process.run { daemon.binary, name, "--help" }):gmatch "\n  [ %-][^\n]-(%-%-[a-z-]+)" do
        assert.is_true(offered[option], name .. " " .. option)
      end
    end
  end)

  it("completes the values of an option", function()
    assert.same({ "mcp", "openai", "anthropic", "gemini", "mistral", "bedrock" }, candidates("tools", "--format", ""))
    assert.same({ "openai" }, candidates("tools", "-f", "o"))
    assert.same({ "openai" }, candidates("tools", "--format", "=", "o")) -- as bash takes --format=o apart
    assert.same({ ":folders" }, candidates("serve", "--policies", ""))
    assert.same({ ":files" }, candidates("serve", "--check", "-c", ""))
    assert.same({}, candidates("call", "--goal", ""))
  end)

  it("completes operands by their place", function()
    assert.same({ "optional" }, candidates("words", "opti"))
    assert.same({ ":files" }, candidates("validate", "schema.json", "one.json", ""))
    assert.same({ ":files" }, candidates("test", "--only", "x", ""))
    assert.same({}, candidates("status", ""))
  end)

  it("completes the tools of a running daemon", function()
    local gate = daemon.start { policies = { ["echo.lua"] = fixtures.echo } }
    assert.same({ "echo" }, candidates("call", "--socket", gate.socket, "e"))
    assert.same({ "echo" }, candidates("session", "-s", gate.socket, "--reset", ""))
    assert.same({}, candidates("call", "--socket", gate.socket .. ".none", ""))
  end)

  it("offers no name of a tool that a shell would run", function()
    local schema = { inputSchema = { type = "object" } }
    local tools = {}
    for _, name in ipairs { "plain.name-1", "$(id)", "`id`", "a;id", "a b", "~", "*", "x\ny", "'q" } do
      tools[#tools + 1] = { name = name, inputSchema = schema.inputSchema }
    end
    local gate = daemon.start { tools = cjson.encode(tools) }
    assert.same({ "plain.name-1" }, candidates("call", "--socket", gate.socket, ""))
    daemon.stop_all()
  end)
end)

describe("toolgate completion", function()
  before_each(function()
    directory = process.directory()
    local program = (daemon.binary:find "^/" and "" or daemon.root .. "/") .. daemon.binary
    assert.equal(0, (process.run { "ln", "-s", program, directory .. "/toolgate" }))
    scratch("policy.lua", "")
    assert.equal(0, (process.run { "mkdir", directory .. "/policies" }))
  end)

  local function run_in(shell, script)
    local out, err = process.runs({ shell, scratch("script", script) },
      { directory = directory, environment = { PATH = directory .. ":" .. os.getenv "PATH", HOME = directory } })
    assert.equal("", err)
    return out
  end

  -- bash calls the function as it does at the Tab key; compopt fails outside of it.
  it("works in bash", function()
    assert.equal("status;--socket;policy.lua;policies;openai;", run_in("bash", [[
      compopt() { :; }
      source <(toolgate completion bash)
      complete -p toolgate > /dev/null || exit 1
      try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _toolgate "$1"; printf '%s;' "${COMPREPLY[*]}"; }
      try toolgate sta
      try toolgate serve --so
      try toolgate test policy
      try toolgate serve --policies pol
      try toolgate tools --format = o
    ]]))
  end)

  -- Stands in for zsh's own functions, which need a terminal.
  it("works in zsh", function()
    assert.equal("status:show generation;files;folders;", (run_in("zsh", [=[
      compdef() { : }
      _files() { [[ $1 = -/ ]] && printf 'folders;' || printf 'files;' }
      _describe() { printf '%s;' "${(@P)2}" }
      source <(toolgate completion zsh)
      try() { words=("$@"); CURRENT=$#; _toolgate }
      try toolgate statu
      try toolgate test ''
      try toolgate serve --policies ''
    ]=]):gsub("(status:show generation)[^;]*", "%1")))
  end)

  it("works in fish", function()
    local out = run_in("fish", [[
      toolgate completion fish | source
      complete -C "toolgate statu"
      complete -C "toolgate serve --soc"
      complete -C "toolgate test pol"
      complete -C "toolgate serve --policies pol"
    ]])
    local words = {}
    for line in out:gmatch "[^\n]+" do words[#words + 1] = line:match "^[^\t]*" end
    assert.same({ "status", "--socket", "policies/", "policy.lua", "policies/" }, words)
  end)

  it("names the shells for an unknown one", function()
    local code, _, err = process.run { daemon.binary, "completion", "csh" }
    assert.equal(2, code)
    assert.matches("expected bash, zsh or fish, got 'csh'", err)
  end)
end)
