---@meta _

-- What policies may write, for completion in editors (lua-language-server and kin; how to
-- set one up is in docs/policy.md). `toolgate words --format luacats` prints this file.
-- luacheck: ignore

---What a policy's file returns: made by tool or gateway.
---@class toolgate.Declaration

---What a hook decided: made by repair, refuse, ask, retry, ok, partial, …
---@class toolgate.Outcome

---What is demanded of an id: made by seen or shape.
---@class toolgate.Id

---What an argument must be for a rule: made by above, between, none_of, is, …
---@class toolgate.Condition

---JSON's null.
---@class toolgate.Null

---The type of an argument: made by str, int, list, …
---@class toolgate.Type

---A type, or the word for one without anything behind it.
---@alias toolgate.AnyType toolgate.Type|fun(...: any): toolgate.Type

---A JSON Schema: made by json or params.
---@alias toolgate.Schema table|boolean

---A tool's definition as in MCP: name, description, inputSchema, …
---@alias toolgate.Definition table

---How far the user's question is answered.
---@alias toolgate.Coverage "SATISFIED"|"NEEDS_MORE_TOOLS"|"NEED_USER_INPUT"|"FAILED"

---What an id may look like.
---@alias toolgate.ShapeName "uuid"|"integer"|"digits"|"hex"|"slug"|"email"|"url"

---As in MCP.
---@alias toolgate.LogLevel "debug"|"info"|"notice"|"warning"|"error"|"critical"|"alert"|"emergency"

---How a call ended: "ok", "tool_error", "partial_data", …
---@alias toolgate.Class string

---What is demanded of arguments where a condition holds: made by when, always, needs_one_of, exclusive.
---@class toolgate.Rule
---@field needs (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) These arguments are required.
---@field drops (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) These arguments mean nothing here and are taken out.
---@field defaults (fun(self: toolgate.Rule, values: table<string, any>): toolgate.Rule) Values for arguments that are left out.
---@field refuses (fun(self: toolgate.Rule, code: string, message: string, hint?: string): toolgate.Rule)|(fun(self: toolgate.Rule, message: string): toolgate.Rule) Such a call is refused.
---@field needs_one_of (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) At least one of these arguments is required.
---@field exclusive (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) At most one of these arguments may be given.

---What `tool "name" { … }` declares; everything may be left out.
---@class toolgate.Policy
---@field title? string A short name, for people.
---@field description? string What the tool does; the model reads it in the list and again in a refusal.
---@field use_when? string When the model should take this tool; joins the description.
---@field avoid_when? string When it should not, and what to take instead; joins the description.
---@field upstream? string The server that runs it, by its name in the configuration; after a slash, what the tool is called there. With http: whose address and headers it uses.
---@field exec? toolgate.Exec A command that is the tool, started for each call, without a shell.
---@field http? string|toolgate.Http The HTTP endpoint that is the tool: arguments become a request, its answer the result.
---@field schema? toolgate.Schema What the arguments must be, as JSON Schema; left out: the schema that the tool itself comes with.
---@field output_schema? toolgate.Schema What a result must be; one that is not is broken, and told so to the model.
---@field annotations? table<string, any> Annotations as in MCP, for the tool's definition.
---@field effects? "read"|"write"|"destructive"|"toggle" What a call does in the world; sets how often the same call may be made.
---@field idempotent? boolean true: making the same call twice does no more than making it once, so that a failed one may be tried again (retry.again); left out: by its effects and annotations.
---@field mode? "enforce"|"shadow"|"off" enforce; shadow: everything is computed and logged, and nobody feels it; off.
---@field unknown? "pass"|"drop"|"refuse" What becomes of fields that an open schema does not name.
---@field validate? boolean false: the schema is documentation only.
---@field envelopes? boolean false: a result that says of itself that it failed, would pass later or asks the user ({"success": false}, "Error: …") is taken for a result like any other.
---@field final? boolean true: this tool's result ends the run.
---@field on_policy_error? "closed"|"open" Whether a policy that breaks refuses the call, or lets it pass.
---@field coerce? boolean|toolgate.Coerce Which arguments are mended where only one reading fits; all are, until turned off.
---@field retry? toolgate.Retry How often the model may try again.
---@field loop? toolgate.Loop What counts as going round in circles.
---@field limits? toolgate.Limits How much of this tool may be used up, by number, cost and time.
---@field cost? number What a call costs, in whatever unit the limits count in; a result may tell better.
---@field compact? boolean|toolgate.Compact What a result that is too large for a model is shortened to, field by field.
---@field ids? table<string, toolgate.Id> Which arguments hold ids, and what is demanded of them.
---@field gives_ids? string|string[] Where this tool's results carry ids.
---@field aliases? string|string[] Names that the tool used to have: a call of one is a call of this tool, and the model is told.
---@field redact? string|string[] Fields of results that nobody may read: a path as in gives_ids, or the name of a field anywhere.
---@field rules? toolgate.Rule[] What the arguments must be to each other; told to the model in words.
---@field prepare? fun(def: toolgate.Definition, call: toolgate.Call): toolgate.Definition? The tool's definition as this peer shall see it; nil hides it.
---@field normalise? fun(args: table, call: toolgate.Call): table|toolgate.Outcome|nil Arguments in, arguments out; the schema is checked again where they changed.
---@field check? fun(args: table, call: toolgate.Call): toolgate.Outcome? What needs the session: nothing to pass, or repair, refuse, ask.
---@field run? fun(args: table, call: toolgate.Call): any The tool itself, where it is written in Lua: its value, or retry, failed, transient.
---@field result? fun(result: any, call: toolgate.Call): toolgate.Outcome? What a result means: nothing where it is good, or ok, partial, garbage, …
---@field examples? toolgate.Example[] The specification: they run whenever the file is loaded.

---How often the model may try again.
---@class toolgate.Retry
---@field repair? integer How often the model may mend its arguments, in a row; 2 where nothing is said.
---@field same_call? integer How often the very same call may run in a turn; where nothing is said, by its effects: 3, read 5, write 2, destructive 1.
---@field transient? integer How often a call that failed for a moment only may be tried again; 3 where nothing is said.
---@field again? boolean|toolgate.Again toolgate tries it again itself: only where that does no harm (idempotent), or where it surely was not reached.

---How often toolgate itself tries again what failed for a moment only, before the model hears of it.
---@class toolgate.Again
---@field times? integer How often after the first try, at most 5; 2 where nothing is said.
---@field backoff? string|number The pause before the second try, doubled with each, a quarter more or less by chance; 200 ms where nothing is said.
---@field within? string|number How long it may take, all tries together, at most a minute; 5 s where nothing is said. The first has its own time.

---What counts as going round in circles.
---@class toolgate.Loop
---@field repeats? integer The identical call in a row, with an identical result, that is refused; 3 where nothing is said.
---@field halt? integer And the one that ends the run; 5 where nothing is said.
---@field across_turns? integer What goes on turn after turn ends here; 5 where nothing is said.
---@field volatile? string|string[] Arguments that don't make a call a different one.
---@field poll? boolean|toolgate.Poll The tool is meant to be asked again until something has changed.

---A tool that is meant to be asked again.
---@class toolgate.Poll
---@field max? integer How often it may be asked; 20 where nothing is said.
---@field every? string|number The pause between two of the same call; one that comes sooner is told how long to wait.

---How much of this tool may be used up; false lifts a limit of the configuration's defaults.
---@class toolgate.Limits
---@field calls_per_turn? number|false Calls of this tool in one turn.
---@field calls_per_session? number|false Calls of this tool in one session.
---@field seconds_per_turn? number|false Seconds from its first call of a turn on, after which it is refused.
---@field cost_per_turn? number|false What its calls of one turn may cost together.
---@field cost_per_session? number|false What its calls of one session may cost together.

---The command that is the tool. Without a name: its words, in which {name} is an argument; a word is left out where its argument is, and a table of words goes in as a whole or not at all.
---@class toolgate.Exec
---@field [1]? string|number
---@field [2]? toolgate.ExecGroup
---@field stdin? boolean Whether the arguments go in as one line of JSON; left out: where no word names one.
---@field output? "auto"|"json"|"lines"|"text" What stdout is: auto takes JSON where it is JSON and else a text; json: anything else is broken; lines: one JSON value a line, together a list; text: whatever it looks like.
---@field exit? table<integer, "ok"|"refused"|"transient"|"broken"> What exit codes mean; 0 is ok and every other refused, until said here.
---@field cwd? string The folder it runs in, beside the policy where it is relative; the daemon's where it is left out.
---@field env? table<string, string> Its environment beside PATH, HOME, LANG, TZ and TERM; ${NAME} is from the daemon's, ${file:/path} a file's text.
---@field timeout? string|number How long a call may take; then it is ended with all that it started. 30 s.
---@field max_output? integer Bytes of stdout; a command that writes more is ended. 4194304.
---@field memory_mb? integer|false MiB that each of its processes may write to. 2048.
---@field file_mb? integer|false MiB of each file that it writes. 1024.
---@field cpu_s? integer|false Seconds of processor time that each of its processes may use; no limit but the timeout.
---@field processes? integer|false Processes that its user may have altogether, not only for it; no limit, and none for root.
---@field dashes? boolean true: an argument may begin with "-" where the command could take it for an option.

---Words of a command that go in together or not at all: { "--limit", "{limit}" }.
---@class toolgate.ExecGroup
---@field [1]? string|number
---@field when? string It goes in where this argument is there and not false; left out: where all that it names are.

---The HTTP endpoint that is the tool. First, without a name: method and address, "GET https://…", in which {name} is an argument; from "/" on where the policy names an upstream.
---@class toolgate.Http
---@field [1]? string
---@field headers? table<string, string> Sent with each request; ${NAME} is from the environment, ${file:/path} a file's text, {name} an argument.
---@field query? string|string[] Arguments that go into the query; with GET, HEAD and DELETE all do that the address does not name, with others those are the JSON body.
---@field timeout? string|number How long a call may take; 30 s where neither this nor the upstream says.
---@field pick? string What of the answer is the result; all of it where this is left out.
---@field ca_file? string Certificates that are trusted instead of the system's.

---What a result that is too large for a model is shortened to.
---@class toolgate.Compact
---@field max_bytes? integer What a result may have; a larger one is shortened to it. 20000 where no budget is named.
---@field max_tokens? integer The same in tokens, as estimated: about one for four letters, three digits or two signs.
---@field keep? string|string[] Fields that stay whatever goes: a path as in gives_ids, or the name of a field anywhere.
---@field drop? string|string[] Fields that go first, named likewise.

---What is mended where only one reading fits; what is not named stays on.
---@class toolgate.Coerce
---@field json? boolean JSON that was sent as a text becomes what it says, where only that fits.
---@field strings? boolean "5" becomes 5 where only a number fits, "true" becomes true, spaces around a text go.
---@field lists? boolean One value becomes a list of one, where only a list fits.
---@field nulls? boolean null for an optional field counts as left out.
---@field enums? boolean Capitals of an enum's value are mended.
---@field floats? boolean 5.0 becomes 5 where only a whole number fits.

---One of `examples`: first a text that says what it shows, then
---@class toolgate.Example
---@field [1]? string
---@field args? any What the model sends.
---@field seen? (string|number)[] Ids that are known already.
---@field goal? string What the user asked for.
---@field called? string The name of `aliases` that it is called by; the tool's own where left out.
---@field turn? integer The user turn that the call belongs to: call.turn, and where budgets by turn begin anew.
---@field user? string Who the agent works as: call.user. Where it is told, a tool hidden from this user does not exist.
---@field history? toolgate.ExampleCall[] Calls of this session before this one, oldest first: call.history, and what budgets and loops count.
---@field facts? table<string, any> What call.facts holds.
---@field result? any What the tool gives, instead of running it.
---@field gives? string Words that all must fit: the verdict, the class, the code.
---@field becomes? table The arguments as the tool gets them.
---@field shows? any The result as the model gets it: redacted, and shortened where it is too large.
---@field says? string A text that the model must read.
---@field status? toolgate.Coverage The coverage that the reply tells.

---One of an example's `history`
---@class toolgate.ExampleCall
---@field tool? string The tool; this one where left out.
---@field args? table What it was called with: the same again is one call repeated.
---@field result? any What it gave: another result is progress, and ids in it are known; where left out, the same each time.
---@field class? toolgate.Class How it ended; ok where left out.
---@field turn? integer The user turn; the example's own where left out.
---@field ago? integer Seconds before the call; one apart where left out.

---What `gateway { … }` declares for all tools; one file of a folder may.
---@class toolgate.Gateway
---@field instructions? string What a client is told when it connects.
---@field prepare_tools? fun(defs: toolgate.Definition[], call: toolgate.Call): toolgate.Definition[]? The list of tools as this peer shall see it; nil hides all.

---What `repair { … }` takes: one problem, or a list of them.
---@class toolgate.Problem
---@field path? string The argument that is wrong; without it the model has to guess.
---@field message string What is wrong, and what would be right.
---@field code? string The same for programs and logs.
---@field suggest? any The value to send, or a table of arguments to change.
---@field expected? any What would be right.
---@field got? any What was sent.

---What `ok { … }` takes.
---@class toolgate.Ok
---@field coverage? toolgate.Coverage How far the user's question is answered: SATISFIED, NEEDS_MORE_TOOLS, NEED_USER_INPUT, FAILED.
---@field facts? table<string, any> Remembered for the session; they come back as call.facts.
---@field follow_up? toolgate.FollowUp The exact next call.
---@field cost? number What this call really cost, instead of what the policy declares.

---What `follow_up` of `ok { … }` holds.
---@class toolgate.FollowUp
---@field tool string The tool to call.
---@field args? table All of its arguments.

---What `tool_return { … }` takes.
---@class toolgate.ToolReturn
---@field value? any The result.
---@field content? table[] MCP content blocks (text, image, audio, resource_link, resource), instead of the value as a text.
---@field metadata? table For the agent's program alone, as _meta; the model does not read it.

---What `seen { … }` takes.
---@class toolgate.SeenOptions
---@field look_up? string Where the model finds the id; told when it sends one that nobody gave.
---@field shape? toolgate.ShapeName|toolgate.Id What the id must look like besides.

---What `params({ … }, { … })` takes after the fields.
---@class toolgate.ParamsOptions
---@field open? boolean Fields that are not named are let in, too.

---What every type in `params { … }` takes.
---@class toolgate.TypeOptions
---@field [1]? string
---@field description? string What it is, for the model; the same as the text that stands alone.
---@field title? string A short name, for people.
---@field default? any What is told to be meant where it is left out.
---@field examples? any[] Values that would do.

---What `str { … }` takes besides.
---@class toolgate.TextOptions: toolgate.TypeOptions
---@field [1]? string
---@field min? integer The least length, in characters.
---@field max? integer The greatest length.
---@field pattern? string A regular expression that must be found in it.

---What `int { … }` and `num { … }` take besides.
---@class toolgate.NumberOptions: toolgate.TypeOptions
---@field [1]? string
---@field min? number The least value.
---@field max? number The greatest value.
---@field over? number It must be greater than this.
---@field under? number It must be less than this.
---@field step? number It must be a multiple of this.

---What `list { type, … }` takes besides.
---@class toolgate.ListOptions: toolgate.TypeOptions
---@field [1]? toolgate.AnyType
---@field [2]? string
---@field min? integer The least number of items.
---@field max? integer The greatest number.
---@field unique? boolean No item may be there twice.

---What a hook may know of the call; a field that there is not is an error.
---@class toolgate.Call
---@field tool string The tool's name.
---@field session? string The conversation, as the agent names it; nil where it names none.
---@field goal? string What the user asked for, in their words; nil where it is not told.
---@field step? string The model's message that this call is part of; nil where it is not told.
---@field user? string The user whose process is calling; nil where it has no name.
---@field uid integer And their number.
---@field turn integer The user's turn in this session; 0 where turns are not told.
---@field attempt integer 1 at first, more when arguments are mended and sent again.
---@field history toolgate.Past[] The calls of this session so far, oldest first; empty in prepare.
---@field facts table<string, any> What earlier results of this session said with ok { facts = … }.
---@field args table In result: the arguments of the call that is judged.
---@field peer toolgate.Peer Who is calling.
---@field progress fun(done: number, total?: number, message?: string) In run: tells the agent's program how far it is.
---@field log fun(level: toolgate.LogLevel, text: string) In run: tells the agent's program something that the model does not read.

---Who is calling, as the kernel tells it.
---@class toolgate.Peer
---@field user? string The user whose process it is; nil where it has no name.
---@field uid integer And their number.

---One call of the session's past.
---@class toolgate.Past
---@field tool string The tool that was called.
---@field class string How it ended: success, invalid_arguments, tool_error, …
---@field code? string The code beside the class, as fabricated_id.
---@field turn? integer The user's turn it was made in.
---@field step? integer The model's message in that turn, counted.
---@field at_ms? integer When, in milliseconds since 1970.
---@field retries? integer How often its arguments were mended.
---@field open? boolean true: its arguments are still wrong; it has not run.

---The parts of a URL.
---@class toolgate.Url
---@field scheme string "https"
---@field host? string "example.com", in lower case
---@field port? number 8080; nil where it is not told
---@field path? string "/a"
---@field query? string "b=c"
---@field fragment? string "d"
---@field user? string What stands before @

---Declares a tool's policy; the file returns it.
---```lua
---tool "name" { … }
---```
---@param name string
---@return fun(fields: toolgate.Policy): toolgate.Declaration
function tool(name) end

---Declares what holds for all tools; the file returns it.
---```lua
---gateway { instructions = …, prepare_tools = function(defs, call) … end }
---```
---@param fields toolgate.Gateway
---@return toolgate.Declaration
function gateway(fields) end

---JSON from a file beside the policy, or from the text itself; only while the policy loads.
---```lua
---json "file.json"
---json [[{…}]]
---```
---@param file_or_text string
---@return table
function json(file_or_text) end

---A JSON Schema without JSON: closed, everything required that is not optional.
---```lua
---params { name = type, … }
---params({ … }, { open = true })
---```
---@param fields table<string, toolgate.AnyType>
---@param options? toolgate.ParamsOptions
---@return toolgate.Schema
function params(fields, options) end

---Each id here must have come from an earlier result or from the user.
---```lua
---seen()
---seen { look_up = "…", shape = "uuid" }
---```
---@param options? toolgate.SeenOptions
---@return toolgate.Id
function seen(options) end

---Each id here must look like this, or it cannot be one: uuid, integer, digits, hex, slug, email, url, or a prefix.
---```lua
---shape "uuid"
---shape { prefix = "evt_" }
---```
---@param name toolgate.ShapeName|{ prefix: string }
---@return toolgate.Id
function shape(name) end

---JSON's null; it counts as true in a condition, so compare with it.
---```lua
---null
---```
---@type toolgate.Null
null = nil

---Marks a table as a JSON array, even when it is empty.
---```lua
---array { … }
---```
---@param list? any[]
---@return any[]
function array(list) end

---Begins a rule that holds where each argument has the value, one of the list, or is what the condition says.
---```lua
---when { argument = value, other = { value, value }, third = above(100) }
---```
---@param condition table<string, any>
---@return toolgate.Rule
function when(condition) end

---The argument is greater than this number, or later than this time; the bound itself is not.
---```lua
---when { limit = above(100) }
---```
---@param bound number|string
---@return toolgate.Condition
function above(bound) end

---The argument is less than this number, or earlier than this time; the bound itself is not.
---```lua
---when { limit = below(0) }
---```
---@param bound number|string
---@return toolgate.Condition
function below(bound) end

---The argument is this number or greater, this time or later.
---```lua
---when { start = at_least("2026-05-01") }
---```
---@param bound number|string
---@return toolgate.Condition
function at_least(bound) end

---The argument is this number or less, this time or earlier.
---```lua
---when { limit = at_most(10) }
---```
---@param bound number|string
---@return toolgate.Condition
function at_most(bound) end

---The argument is in this range of numbers or times, both bounds included.
---```lua
---when { limit = between(1, 10) }
---```
---@overload fun(low: string, high: string): toolgate.Condition
---@param low number
---@param high number
---@return toolgate.Condition
function between(low, high) end

---The argument is there, and not null.
---```lua
---when { start = given }
---```
---@type toolgate.Condition
given = nil

---The argument is left out, or null.
---```lua
---when { query = absent }
---```
---@type toolgate.Condition
absent = nil

---The argument is given, and is none of these values.
---```lua
---when { mode = none_of { "draft", "spam" } }
---```
---@param ... any
---@return toolgate.Condition
function none_of(...) end

---The argument is given, and the pure function says yes of it; the words say what it is then.
---```lua
---when { day = is("on a weekend", function(value, args) … end) }
---```
---@param words string
---@param test fun(value: any, args: table): any
---@return toolgate.Condition
function is(words, test) end

---Begins a rule that always holds.
---```lua
---always : defaults { page = 1 }
---```
---@type toolgate.Rule
always = nil

---At least one of these arguments is required.
---```lua
---needs_one_of { "id", "query" }
---rule : needs_one_of { … }
---```
---@param ... string|string[]
---@return toolgate.Rule
function needs_one_of(...) end

---At most one of these arguments may be given.
---```lua
---exclusive { "id", "name" }
---rule : exclusive { … }
---```
---@param ... string|string[]
---@return toolgate.Rule
function exclusive(...) end

---Text.
---```lua
---str
---str "Title"
---str { min = 1, max = 80, pattern = "^[a-z]+$", "Title" }
---```
---@param spec? string|toolgate.TextOptions
---@return toolgate.Type
function str(spec) end

---A whole number.
---```lua
---int { min = 1, max = 100, "How many" }
---```
---@param spec? string|toolgate.NumberOptions
---@return toolgate.Type
function int(spec) end

---A number; over and under exclude the bound, min and max include it, step is what it is a multiple of.
---```lua
---num { over = 0, "Price" }
---```
---@param spec? string|toolgate.NumberOptions
---@return toolgate.Type
function num(spec) end

---true or false.
---```lua
---bool "Whether to send"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function bool(spec) end

---A list of one type.
---```lua
---list(str, "Tags")
---list { uuid, "Members", min = 1, unique = true }
---```
---@overload fun(spec: toolgate.ListOptions): toolgate.Type
---@param type toolgate.AnyType
---@param description? string|toolgate.ListOptions
---@return toolgate.Type
function list(type, description) end

---An object with these fields, closed.
---```lua
---object({ street = str, city = str }, "Where to")
---```
---@param fields table<string, toolgate.AnyType>
---@param description? string|toolgate.TypeOptions
---@return toolgate.Type
function object(fields, description) end

---One of these values.
---```lua
---enum({ "open", "done" }, "State")
---```
---@param values any[]
---@param description? string|toolgate.TypeOptions
---@return toolgate.Type
function enum(values, description) end

---Text in the form of a UUID.
---```lua
---uuid "Project"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function uuid(spec) end

---Text: an ISO 8601 date and time with its zone.
---```lua
---datetime "When it is due"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function datetime(spec) end

---Text: an email address.
---```lua
---email "Whom to ask"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function email(spec) end

---Text: a URI.
---```lua
---uri "Where it is"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function uri(spec) end

---May be left out; the second argument is the default that the schema tells.
---```lua
---optional(str "Note")
---optional(int, 1)
---```
---@param type toolgate.AnyType
---@param default? any
---@return toolgate.Type
function optional(type, default) end

---The model should change the arguments: one problem, or several.
---```lua
---repair { path = "end", code = "before_start", message = "…", suggest = … }
---repair { {…}, {…} }
---```
---@param problem toolgate.Problem|toolgate.Problem[]|string
---@return toolgate.Outcome
function repair(problem) end

---This call may not be made.
---```lua
---refuse(code, message, hint)
---```
---@overload fun(message: string): toolgate.Outcome
---@param code string
---@param message string
---@param hint? string
---@return toolgate.Outcome
function refuse(code, message, hint) end

---The user must decide.
---```lua
---ask(question, { choice, … })
---```
---@param question string
---@param choices? any[]
---@return toolgate.Outcome
function ask(question, choices) end

---From run: the model should try again with other arguments; spends its repair budget.
---```lua
---retry(message, hint)
---```
---@param message string
---@param hint? string
---@return toolgate.Outcome
function retry(message, hint) end

---From run: a value with MCP content blocks, or with metadata for the agent's program alone.
---```lua
---tool_return { value = …, content = { … }, metadata = { … } }
---```
---@param fields toolgate.ToolReturn
---@return toolgate.Outcome
function tool_return(fields) end

---The result is what was asked for.
---```lua
---ok { coverage = "SATISFIED", facts = { … }, follow_up = { tool = …, args = { … } } }
---```
---@param fields? toolgate.Ok|toolgate.Coverage
---@return toolgate.Outcome
function ok(fields) end

---There is more; next_args gets it.
---```lua
---partial(code, detail, next_args, hint)
---```
---@param code string
---@param detail string
---@param next_args? table
---@param hint? string
---@return toolgate.Outcome
function partial(code, detail, next_args, hint) end

---The result is well formed and means nothing.
---```lua
---garbage(code, detail, hint)
---```
---@param code string
---@param detail string
---@param hint? string
---@return toolgate.Outcome
function garbage(code, detail, hint) end

---The tool is broken: asking again does not help.
---```lua
---broken(code, detail)
---```
---@param code string
---@param detail string
---@return toolgate.Outcome
function broken(code, detail) end

---It will work later.
---```lua
---transient(detail, after_seconds)
---```
---@param detail string
---@param after_seconds? number
---@return toolgate.Outcome
function transient(detail, after_seconds) end

---Only the user can go on.
---```lua
---need_user(question, { choice, … })
---```
---@param question string
---@param choices? any[]
---@return toolgate.Outcome
function need_user(question, choices) end

---The tool says that it could not.
---```lua
---failed(code, detail, hint)
---```
---@overload fun(detail: string): toolgate.Outcome
---@param code string
---@param detail string
---@param hint? string
---@return toolgate.Outcome
function failed(code, detail, hint) end

---The item whose field is the latest time or the greatest number, and its position.
---```lua
---newest(list, field)
---```
---@param list any[]
---@param field string
---@return any
---@return integer?
function newest(list, field) end

---Whether the user's words ask for everything there is (all, every, everyone, entire, …).
---```lua
---wants_all(call.goal)
---```
---@param goal? string
---@return boolean
function wants_all(goal) end

---Seconds since 1970 of an ISO 8601 time or date; nil for any other text.
---```lua
---time("2026-05-01T00:00:00Z")
---```
---@param text any
---@return number?
function time(text) end

---The day of a time as "2026-05-01", in UTC; nil for any other text. In params: text, an ISO 8601 date.
---```lua
---date("2026-05-01T10:00:00Z")
---date(seconds)  or, in params, date "The day"
---```
---@overload fun(spec?: string|toolgate.TypeOptions): toolgate.Type
---@param time string|number
---@return string?
function date(time) end

---Seconds of an ISO 8601 or short duration (weeks, days, hours, minutes, seconds); nil for any other text.
---```lua
---duration("PT1H30M")
---duration("90m")
---```
---@param text any
---@return number?
function duration(text) end

---A table with scheme, host, port, path, query, fragment, user; nil for any other text.
---```lua
---url("https://example.com:8080/a?b=c#d")
---```
---@param text any
---@return toolgate.Url?
function url(text) end

---Whether the host is one of these; *. stands for any subdomain, not for the domain itself.
---```lua
---host_in(url_or_host, { "example.com", "*.example.org" })
---```
---@param url_or_host string
---@param hosts string[]
---@return boolean
function host_in(url_or_host, hosts) end

---Whether the text fits the pattern: * is any run of characters, ? is one.
---```lua
---glob("reports/*.pdf", path)
---```
---@param pattern string
---@param text string
---@return boolean
function glob(pattern, text) end

---A table for asking: set[x] is true for its members.
---```lua
---set { "a", "b" }
---```
---@param ... any
---@return table<any, boolean?>
function set(...) end

---Raises the message where value is false or nil.
---```lua
---assert(value, message)
---```
---@param value any
---@param message? any
---@param ... any
---@return any
function assert(value, message, ...) end

---Ends the hook with an error; the call fails as policy_error.
---```lua
---error(message)
---```
---@param message any
---@param level? integer
function error(message, level) end

---Iterates positions 1, 2, 3, …
---```lua
---ipairs(list)
---```
---@param list any[]
---@return (fun(list: any[], at: integer): integer, any)
---@return any[]
---@return integer
function ipairs(list) end

---The next key and value.
---```lua
---next(table, key)
---```
---@param table table
---@param key? any
---@return any
---@return any
function next(table, key) end

---Iterates all keys.
---```lua
---pairs(table)
---```
---@param table table
---@return (fun(table: table, key?: any): any, any)
---@return table
function pairs(table) end

---Calls f and catches its errors; a spent deadline it does not catch.
---```lua
---pcall(f, …)
---```
---@param f function
---@param ... any
---@return boolean
---@return any
function pcall(f, ...) end

---The arguments from the n-th on, or their number for "#".
---```lua
---select(n, …)
---```
---@param n integer|"#"
---@param ... any
---@return any
function select(n, ...) end

---The number, or nil.
---```lua
---tonumber(text, base)
---```
---@param value any
---@param base? integer
---@return number?
function tonumber(value, base) end

---The text of a value.
---```lua
---tostring(value)
---```
---@param value any
---@return string
function tostring(value) end

---"nil", "boolean", "number", "string", "table", "function", "userdata".
---```lua
---type(value)
---```
---@param value any
---@return "nil"|"boolean"|"number"|"string"|"table"|"function"|"userdata"
function type(value) end

---The items as separate values.
---```lua
---unpack(list)
---```
---@param list any[]
---@param from? integer
---@param to? integer
---@return any
function unpack(list, from, to) end

