---@meta _

-- What policies may write, for completion in editors (lua-language-server and kin; how to
-- set one up is in docs/policy.md). `toolgate words --format luacats` prints this file.
-- luacheck: ignore

---What a policy's file returns: made by tool, policy or gateway.
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
---@field drops (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) These arguments are removed.
---@field defaults (fun(self: toolgate.Rule, values: table<string, any>): toolgate.Rule) Values for arguments that are left out.
---@field refuses (fun(self: toolgate.Rule, code: string, message: string, hint?: string): toolgate.Rule)|(fun(self: toolgate.Rule, message: string): toolgate.Rule) The call is refused.
---@field needs_one_of (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) At least one of these arguments is required.
---@field exclusive (fun(self: toolgate.Rule, ...: string|string[]): toolgate.Rule) At most one of these arguments may be given.

---What `tool "name" { … }` declares; every field is optional.
---@class toolgate.Policy
---@field title? string A short name, for people.
---@field description? string What the tool does; the model reads it in the list of tools and in refusals.
---@field upstream? string The server that runs it, by its name in the configuration; after a slash, the tool's name there. With http: the upstream whose address and headers it uses.
---@field exec? toolgate.Exec A command that is the tool, started for each call, without a shell.
---@field http? string|toolgate.Http The HTTP endpoint that is the tool: arguments become a request, the response the result.
---@field schema? toolgate.Schema|"strict"|"learn"|"advise" JSON Schema of the arguments. Default: the schema of the upstream's tool, of which a word says what it decides: strict: arguments that do not fit are refused; learn (default): until the model insists and the server accepts them; advise: they pass with a warning.
---@field output_schema? toolgate.Schema JSON Schema of the result; a result that does not fit is broken, and the model reads why.
---@field annotations? table<string, any> Annotations as in MCP, for the tool's definition.
---@field idempotent? boolean true: making the same call twice has the effect of one, so that a failed call may be repeated (retry.again). Default: by effects and annotations.
---@field validate? boolean false: the schema is documentation only.
---@field envelopes? boolean false: a result that reports its own failure ({"success": false}, "Error: …") counts as a success.
---@field final? boolean true: this tool's result ends the run.
---@field coerce? boolean|toolgate.Coerce Which unambiguous arguments are converted. Default: all.
---@field timezone? string The time zone of date-times that the model sends without one; its offset is added. Default: they stay as they are, with a note.
---@field formats? "lenient"|"strict" strict: a date-time without its time zone is refused.
---@field rate? string|toolgate.Rate How many calls may be made in any second, minute, hour or day, over all daemons.
---@field cost? number What a call costs, in the unit of the limits; ok { cost = … } replaces it.
---@field compact? boolean|toolgate.Compact What a result that is too large for a model is shortened to, field by field.
---@field gives_ids? string|string[] Which fields of this tool's results hold ids.
---@field aliases? string|string[] Former names of the tool: a call by one of them runs this tool, and the model learns the new name.
---@field prepare? fun(def: toolgate.Definition, call: toolgate.Call): toolgate.Definition? The tool's definition for this client; nil hides the tool.
---@field run? fun(args: table, call: toolgate.Call): any The tool itself, written in Lua: returns its value, or retry, failed, transient.
---@field use_when? string When the model should use this tool; added to the description.
---@field avoid_when? string When it should not, and what to use instead; added to the description.
---@field effects? "read"|"write"|"destructive"|"toggle" What a call changes; sets how often the same call may be made.
---@field mode? "enforce"|"shadow"|"off" enforce; shadow: evaluated and logged, not enforced; off.
---@field shadow_until? string The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces nothing.
---@field unknown? "pass"|"drop"|"refuse" What happens to arguments that an open schema does not name.
---@field on_policy_error? "closed"|"open" Whether a policy that fails refuses the call, or passes it.
---@field retry? toolgate.Retry How often a call may be tried again.
---@field loop? toolgate.Loop What counts as a loop.
---@field limits? toolgate.Limits How much of this tool may be used: calls, cost and time.
---@field ids? table<string, toolgate.Id> Which arguments hold ids, and what an id must be.
---@field redact? string|string[] Fields of results that are redacted: a path as in gives_ids, or the name of a field anywhere.
---@field rules? toolgate.Rule[] Conditions on arguments and what follows from them; the model reads them in words.
---@field normalise? fun(args: table, call: toolgate.Call): table|toolgate.Outcome|nil Changes the arguments; changed arguments are checked against the schema again.
---@field check? fun(args: table, call: toolgate.Call): toolgate.Outcome? What needs the session: nothing to pass, or repair, refuse, ask.
---@field result? fun(result: any, call: toolgate.Call): toolgate.Outcome? Judges a result: nothing if it is good, or ok, partial, garbage, …
---@field examples? toolgate.Example[] The specification: they run whenever the file is loaded.

---What `policy { … }` declares for several tools; of each limit the stricter one holds.
---@class toolgate.Guard
---@field tools string|string[] The tools it lies over, beside their own policies: names, or globs with * and ?.
---@field use_when? string When the model should use this tool; added to the description.
---@field avoid_when? string When it should not, and what to use instead; added to the description.
---@field effects? "read"|"write"|"destructive"|"toggle" What a call changes; sets how often the same call may be made.
---@field mode? "enforce"|"shadow"|"off" enforce; shadow: evaluated and logged, not enforced; off.
---@field shadow_until? string The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces nothing.
---@field unknown? "pass"|"drop"|"refuse" What happens to arguments that an open schema does not name.
---@field on_policy_error? "closed"|"open" Whether a policy that fails refuses the call, or passes it.
---@field retry? toolgate.Retry How often a call may be tried again.
---@field loop? toolgate.Loop What counts as a loop.
---@field limits? toolgate.Limits How much of this tool may be used: calls, cost and time.
---@field ids? table<string, toolgate.Id> Which arguments hold ids, and what an id must be.
---@field redact? string|string[] Fields of results that are redacted: a path as in gives_ids, or the name of a field anywhere.
---@field rules? toolgate.Rule[] Conditions on arguments and what follows from them; the model reads them in words.
---@field normalise? fun(args: table, call: toolgate.Call): table|toolgate.Outcome|nil Changes the arguments; changed arguments are checked against the schema again.
---@field check? fun(args: table, call: toolgate.Call): toolgate.Outcome? What needs the session: nothing to pass, or repair, refuse, ask.
---@field result? fun(result: any, call: toolgate.Call): toolgate.Outcome? Judges a result: nothing if it is good, or ok, partial, garbage, …
---@field examples? toolgate.Example[] The specification: they run whenever the file is loaded.

---How often a call may be tried again.
---@class toolgate.Retry
---@field repair? integer How often in a row the model may correct its arguments. Default 2.
---@field same_call? integer How often the same call may run in a turn. Default by effects: 3, read 5, write 2, destructive 1.
---@field transient? integer How often the model may repeat a call that failed with a transient error. Default 3.
---@field again? boolean|toolgate.Again toolgate repeats a failed call itself, if the tool is idempotent or the call surely did not reach it.

---How often toolgate itself repeats a call after a transient failure, before the model sees it.
---@class toolgate.Again
---@field times? integer How many more tries after the first, at most 5. Default 2.
---@field backoff? string|number The pause before the second try; it doubles with each try and varies at random by a quarter. Default 200 ms.
---@field within? string|number No further try begins later than this after the first one began; at most a minute. Default 5 s.

---What counts as a loop.
---@class toolgate.Loop
---@field repeats? integer toolgate refuses the n-th identical call in a row with an identical result. Default 3.
---@field halt? integer The n-th such call ends the run. Default 5.
---@field across_turns? integer The run ends when the same call is repeated in this many turns. Default 5.
---@field volatile? string|string[] Arguments that do not make a call a different one.
---@field volatile_result? string|string[] Fields of results that do not make a result a different one: a path as in gives_ids, or the name of a field anywhere.
---@field compare? "result"|"arguments" What makes calls identical: arguments and result, or the arguments alone. Default result; for a tool that writes always arguments.
---@field same_failure? integer|"note"|"refuse" toolgate refuses the n-th failure in a row with the same error, whatever the arguments; "refuse" is the sixth, "note" none. Default 10.
---@field poll? boolean|toolgate.Poll Agents poll the tool until something has changed.

---For a tool that agents poll.
---@class toolgate.Poll
---@field max? integer How often the same call may be made. Default 20.
---@field every? string|number The pause between two of the same call; a call that comes sooner is answered with the time to wait.

---How much of this tool may be used; false lifts a limit of the configuration's defaults.
---@class toolgate.Limits
---@field calls_per_turn? number|false Calls of this tool in one turn.
---@field calls_per_session? number|false Calls of this tool in one session.
---@field seconds_per_turn? number|false Seconds after its first call of a turn; later calls are refused.
---@field cost_per_turn? number|false Total cost of its calls in one turn.
---@field cost_per_session? number|false Total cost of its calls in one session.

---How many calls of this tool may be made in a span of time.
---@class toolgate.Rate
---@field [1]? string
---@field by? "session"|"user"|"tool" Whose calls count together: of one session, of one user, of all. Default user.

---The command that is the tool. Items without a name are its words, in which {name} is an argument. A word whose argument is left out is left out, too; a table of words goes in as a whole or not at all.
---@class toolgate.Exec
---@field [1]? string|number
---@field [2]? toolgate.ExecGroup
---@field stdin? boolean Whether the arguments go in as one line of JSON. Default: if no word names an argument.
---@field output? "auto"|"json"|"lines"|"text" The format of stdout. auto: JSON if it parses, else a string; json: anything else is broken; lines: one JSON value per line, as a list; text: a string.
---@field exit? table<integer, "ok"|"refused"|"transient"|"broken"> The meaning of exit codes. Default: 0 is ok, every other code is refused.
---@field cwd? string The working directory; a relative one is relative to the policy. Default: the daemon's.
---@field env? table<string, string> Environment variables besides PATH, HOME, LANG, TZ and TERM; ${NAME} is from the daemon's environment, ${file:/path} from a file.
---@field sandbox? toolgate.ExecSandbox|boolean|"best_effort" Confines the command by Landlock and seccomp. Default: it may do what the daemon may.
---@field timeout? string|number How long a call may take; then toolgate kills the command and all that it started. Default 30 s.
---@field max_output? integer Bytes of stdout; toolgate kills a command that writes more. Default 4194304.
---@field memory_mb? integer|false MiB of memory that each of its processes may write to. Default 2048.
---@field file_mb? integer|false MiB of each file that it writes. Default 1024.
---@field cpu_s? integer|false Seconds of processor time for each of its processes. Default: only the timeout.
---@field processes? integer|false Processes that its user may have, counting those of other programs. Default: no limit; root has none.
---@field dashes? boolean true: an argument may begin with "-" where the command could read it as an option.

---What the command may reach. Relative paths are relative to the policy.
---@class toolgate.ExecSandbox
---@field read? string|string[] Files and folders that it may read besides system libraries. Default: everything but toolgate's state and sockets.
---@field write? string|string[] Files and folders that it may read and change. Default: none.
---@field network? boolean Whether it may open IP sockets. Default: false.
---@field best_effort? boolean Run it without what the kernel lacks. Default: false, it does not run.

---Words of a command that go in together or not at all: { "--limit", "{limit}" }.
---@class toolgate.ExecGroup
---@field [1]? string|number
---@field when? string The group goes in if this argument is given and not false. Default: if all arguments that it names are.

---The HTTP endpoint that is the tool. First, without a name: method and address, "GET https://…", in which {name} is an argument; only a path, from "/" on, if the policy names an upstream.
---@class toolgate.Http
---@field [1]? string
---@field headers? table<string, string> Headers of each request; ${NAME} is from the environment, ${file:/path} from a file, {name} an argument.
---@field query? string|string[] Arguments that go into the query. With GET, HEAD and DELETE all others do, too; with other methods the others are the JSON body.
---@field timeout? string|number How long a call may take. Default: the upstream's, or 30 s.
---@field pick? string The part of the response that is the result. Default: the whole.
---@field ca_file? string Certificates that are trusted instead of the system's.

---What a result that is too large for a model is shortened to.
---@class toolgate.Compact
---@field max_bytes? integer The most bytes of texts and structured value as sent. Default 20000, if neither budget is given.
---@field max_tokens? integer The same in tokens, as estimated: one for about four letters, three digits or two signs.
---@field keep? string|string[] Fields that are never removed: a path as in gives_ids, or the name of a field anywhere.
---@field drop? string|string[] Fields that are removed first, named likewise.

---Which unambiguous values are converted; what is not named stays on, or off if the tool destroys.
---@class toolgate.Coerce
---@field json? boolean A string that holds JSON is parsed, if only the parsed value fits.
---@field strings? boolean "5" becomes 5 if only a number fits, "true" becomes true; 5 becomes "5" if only a string fits; spaces around a string go.
---@field lists? boolean One value becomes a list of one, if only a list fits, and a string in a list of one becomes the string; "a, b" is split if each part fits an enum or a format.
---@field nulls? boolean null for an optional field counts as left out.
---@field enums? boolean The case of an enum's value is corrected.
---@field floats? boolean 5.0 becomes 5 if only a whole number fits.
---@field names? boolean A name that differs from one declared, unused name in case, separators or a final s becomes that name.
---@field words? boolean "yes", "no", 1 and 0 become a boolean if only a boolean fits, true becomes "True" of an enum; "", "None" and "null" for an optional field count as left out.
---@field wrapped? boolean Parameters inside one undeclared "arguments", "args", "input", "parameters", "params" or the tool's name are taken out of it.

---One of `examples`: first a string that says what it shows, then
---@class toolgate.Example
---@field [1]? string
---@field tool? string In a policy for several tools: the one that is called.
---@field args? any What the model sends.
---@field seen? (string|number)[] Ids that are known already.
---@field goal? string What the user asked for.
---@field called? string The alias that is called. Default: the tool's name.
---@field turn? integer The user turn of the call: call.turn, and the turn that budgets count.
---@field user? string The user of the agent: call.user. A tool that is hidden from this user does not exist in the example.
---@field history? toolgate.ExampleCall[] Earlier calls of this session, oldest first: call.history, and what budgets and loops count.
---@field facts? table<string, any> The value of call.facts.
---@field context? table<string, any> The value of call.context: what the agent's program says of the request.
---@field result? any The tool's result; the tool does not run.
---@field gives? string Words that must all match: the verdict, the class, the code.
---@field again? string The same words for the same call, made once more directly after it.
---@field becomes? table The arguments that the tool receives.
---@field shows? any The result that the model receives, redacted and compacted.
---@field says? string Text that the reply to the model must contain.
---@field status? toolgate.Coverage The coverage in the reply.

---One of an example's `history`
---@class toolgate.ExampleCall
---@field tool? string The tool. Default: this one.
---@field args? table Its arguments; equal arguments make it the same call.
---@field result? any Its result: another result is progress, and ids in it are known. Default: the same each time.
---@field class? toolgate.Class How it ended. Default: ok.
---@field turn? integer The user turn. Default: the example's own.
---@field ago? integer Seconds before the call. Default: one second apart.

---What `gateway { … }` declares for all tools; one file of a folder may.
---@class toolgate.Gateway
---@field instructions? string Instructions that a client receives when it connects.
---@field prepare_tools? fun(defs: toolgate.Definition[], call: toolgate.Call): toolgate.Definition[]? The list of tools for this client; nil hides all.
---@field mode? "enforce"|"shadow"|"off" Of check and result. Default: shadow (evaluated and logged, not enforced); enforce; off.
---@field shadow_until? string The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces nothing.
---@field except? string|string[] Tools that check and result leave alone: names, or globs with * and ?.
---@field check? string[]|fun(args: table, call: toolgate.Call): toolgate.Outcome? Of every tool: pattern sets whose finds in the arguments refuse the call (secrets: keys and tokens; instructions: orders to the model; hidden: zero-width, bidirectional and tag characters), or a function as in policy.
---@field result? string[]|fun(result: any, call: toolgate.Call): toolgate.Outcome? Of every tool: pattern sets for results. What secrets finds is masked, what hidden finds is removed, what instructions finds is marked as data for the model; or a function as in policy.
---@field examples? toolgate.Example[] The specification: they run whenever the file is loaded.

---What `repair { … }` takes: one problem, or a list of them.
---@class toolgate.Problem
---@field path? string The argument that is wrong; without it the model has to guess.
---@field message string What is wrong, and what would be right.
---@field code? string The same for programs and logs.
---@field suggest? any The value to send, or a table of arguments to change.
---@field expected? any What would be right.
---@field got? any What the model sent.

---What `ok { … }` takes.
---@class toolgate.Ok
---@field coverage? toolgate.Coverage How far the user's question is answered: SATISFIED, NEEDS_MORE_TOOLS, NEED_USER_INPUT, FAILED.
---@field facts? table<string, any> The session remembers them; later calls read them as call.facts.
---@field follow_up? toolgate.FollowUp The exact next call.
---@field cost? number The actual cost of this call, instead of the declared one.

---What `follow_up` of `ok { … }` holds.
---@class toolgate.FollowUp
---@field tool string The tool to call.
---@field args? table All of its arguments.

---What `tool_return { … }` takes.
---@class toolgate.ToolReturn
---@field value? any The result.
---@field content? table[] MCP content blocks (text, image, audio, resource_link, resource), instead of the value as text.
---@field metadata? table _meta of the result, for the agent's program; the model does not read it.

---What `seen { … }` takes.
---@class toolgate.SeenOptions
---@field look_up? string How the model finds an id; it reads this after sending an unknown one.
---@field shape? toolgate.ShapeName|toolgate.Id The format of the id.
---@field strict? boolean true: if the model insists on an unknown id, the user is asked.

---What `params({ … }, { … })` takes after the fields.
---@class toolgate.ParamsOptions
---@field open? boolean true: arguments that are not named are allowed, too.

---What every type in `params { … }` takes.
---@class toolgate.TypeOptions
---@field [1]? string
---@field description? string What it is, for the model; the same as a string without a name.
---@field title? string A short name, for people.
---@field default? any The default that the schema names; toolgate does not fill it in.
---@field examples? any[] Example values.

---What `str { … }` takes besides.
---@class toolgate.TextOptions: toolgate.TypeOptions
---@field [1]? string
---@field min? integer The least length, in characters.
---@field max? integer The greatest length.
---@field pattern? string A regular expression that the string must match somewhere.

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
---@field unique? boolean true: no item may occur twice.

---What `map { type, type, … }` takes besides.
---@class toolgate.MapOptions: toolgate.TypeOptions
---@field [1]? toolgate.AnyType
---@field [2]? toolgate.AnyType
---@field [3]? string
---@field min? integer The least number of keys.
---@field max? integer The greatest number.

---What a hook knows of the call; reading any other field is an error.
---@class toolgate.Call
---@field tool string The tool's name.
---@field session? string The session, as the agent names it; nil if it names none.
---@field goal? string The user's request, in their words; nil if the agent does not send it.
---@field step? string The model's message that this call is part of; nil if the agent does not send it.
---@field user? string The user of the calling process; nil if it has no name.
---@field uid integer The user's number.
---@field turn integer The user's turn in this session; 0 if the agent does not send it.
---@field attempt integer 1, or more after the model corrected its arguments.
---@field no_progress integer How many calls in a row brought nothing new, before this one.
---@field history toolgate.Past[] The earlier calls of this session, oldest first.
---@field facts table<string, any> The facts that earlier results of this session gave with ok { facts = … }.
---@field context? table<string, any> What the agent's program says of this request in dev.toolgate/context; nil if it says nothing.
---@field args? table In result: the arguments of the call; nil if a report does not repeat what is no longer known.
---@field peer toolgate.Peer The calling process.
---@field progress fun(done: number, total?: number, message?: string) In run: reports progress to the agent's program.
---@field log fun(level: toolgate.LogLevel, text: string) In run: logs to the agent's program; the model does not read it.

---The calling process, from the kernel.
---@class toolgate.Peer
---@field user? string The user of the calling process; nil if it has no name.
---@field uid integer The user's number.

---One earlier call of the session.
---@class toolgate.Past
---@field tool string The tool.
---@field class string How the call ended: success, invalid_arguments, tool_error, …
---@field code? string The code of that class, as fabricated_id; approved or declined if its policy had asked.
---@field turn? integer The user's turn.
---@field step? integer The number of the model's message in that turn.
---@field at_ms? integer The time, in milliseconds since 1970.
---@field retries? integer How often the model corrected its arguments.
---@field open? boolean true: its arguments are still wrong; it has not run.

---The parts of a URL.
---@class toolgate.Url
---@field scheme string "https"
---@field host? string "example.com", in lower case
---@field port? number 8080; nil if the URL has none
---@field path? string "/a"
---@field query? string "b=c"
---@field fragment? string "d"
---@field user? string The part before @

---Declares a tool's policy; the file returns it.
---```lua
---tool "name" { … }
---```
---@param name string
---@return fun(fields: toolgate.Policy): toolgate.Declaration
function tool(name) end

---Declares a policy that lies over several tools, beside their own; the strictest verdict wins.
---```lua
---policy { tools = { "write_*", "edit_file" }, check = … }
---```
---@param fields toolgate.Guard
---@return toolgate.Declaration
function policy(fields) end

---Declares what holds for all tools; the file returns it.
---```lua
---gateway { instructions = …, prepare_tools = function(defs, call) … end }
---```
---@param fields toolgate.Gateway
---@return toolgate.Declaration
function gateway(fields) end

---JSON from a file beside the policy, or from the string itself; only while the policy loads.
---```lua
---json "file.json"
---json [[{…}]]
---```
---@param file_or_text string
---@return table
function json(file_or_text) end

---The value of a JSON string; or nil and the reason. For hooks.
---```lua
---local value, why = json_decode(text)
---```
---@param text string
---@return any
---@return string?
function json_decode(text) end

---What policies/lib/paths.lua returns, read-only and shared by all policies; only while the policy loads.
---```lua
---local paths = require "lib.paths"
---```
---@param name string
---@return table
function require(name) end

---A JSON Schema without JSON: closed, and every field is required unless it is optional.
---```lua
---params { name = type, … }
---params({ … }, { open = true })
---```
---@param fields table<string, toolgate.AnyType>
---@param options? toolgate.ParamsOptions
---@return toolgate.Schema
function params(fields, options) end

---Each id of this argument must come from an earlier result or from the user.
---```lua
---seen()
---seen { look_up = "…", shape = "uuid", strict = true }
---```
---@param options? toolgate.SeenOptions
---@return toolgate.Id
function seen(options) end

---Each id of this argument must have this format: uuid, integer, digits, hex, slug, email, url, or a prefix.
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

---Begins a rule that holds if each argument has the value, has one of the list, or meets the condition.
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

---The argument is given, and not null.
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

---The argument is given, and the pure function returns true; the words describe this for the model.
---```lua
---when { day = is("on a weekend", function(value, args) … end) }
---```
---@param words string
---@param test fun(value: any, args: table, call: toolgate.Call): any
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

---A string.
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

---An object whose keys the model chooses: a type of text for them, and one for the values.
---```lua
---map(str, int, "Pieces by article")
---map { str, int, "Pieces", min = 1, max = 20 }
---```
---@overload fun(spec: toolgate.MapOptions): toolgate.Type
---@param key toolgate.AnyType
---@param value toolgate.AnyType
---@param description? string|toolgate.MapOptions
---@return toolgate.Type
function map(key, value, description) end

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

---A string: an ISO 8601 date and time with its zone.
---```lua
---datetime "When it is due"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function datetime(spec) end

---A string: an email address.
---```lua
---email "Whom to ask"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function email(spec) end

---A string: a URI.
---```lua
---uri "Where it is"
---```
---@param spec? string|toolgate.TypeOptions
---@return toolgate.Type
function uri(spec) end

---Optional; the second argument is the default that the schema names.
---```lua
---optional(str "Note")
---optional(int, 1)
---```
---@param type toolgate.AnyType
---@param default? any
---@return toolgate.Type
function optional(type, default) end

---The model must correct the arguments: one problem, or several.
---```lua
---repair { path = "end", code = "before_start", message = "…", suggest = … }
---repair { {…}, {…} }
---```
---@param problem toolgate.Problem|toolgate.Problem[]|string
---@return toolgate.Outcome
function repair(problem) end

---The call is refused.
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

---From run or result: the model should try again with other arguments; spends its repair budget.
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

---The result is good.
---```lua
---ok { coverage = "SATISFIED", facts = { … }, follow_up = { tool = …, args = { … } } }
---```
---@param fields? toolgate.Ok|toolgate.Coverage
---@return toolgate.Outcome
function ok(fields) end

---The result is incomplete; next_args fetch the rest.
---```lua
---partial(code, detail, next_args, hint)
---```
---@param code string
---@param detail string
---@param next_args? table
---@param hint? string
---@return toolgate.Outcome
function partial(code, detail, next_args, hint) end

---The result is well-formed but useless.
---```lua
---garbage(code, detail, hint)
---```
---@param code string
---@param detail string
---@param hint? string
---@return toolgate.Outcome
function garbage(code, detail, hint) end

---The tool is broken: another call does not help.
---```lua
---broken(code, detail)
---```
---@param code string
---@param detail string
---@return toolgate.Outcome
function broken(code, detail) end

---The failure is temporary.
---```lua
---transient(detail, after_seconds)
---```
---@param detail string
---@param after_seconds? number
---@return toolgate.Outcome
function transient(detail, after_seconds) end

---The user must decide before the agent continues.
---```lua
---need_user(question, { choice, … })
---```
---@param question string
---@param choices? any[]
---@return toolgate.Outcome
function need_user(question, choices) end

---The tool reported an error.
---```lua
---failed(code, detail, hint)
---```
---@overload fun(detail: string): toolgate.Outcome
---@param code string
---@param detail string
---@param hint? string
---@return toolgate.Outcome
function failed(code, detail, hint) end

---The item whose field is the latest time or the greatest number, and its position; with a goal, only of the items that share most of its words.
---```lua
---newest(list, field)
---newest(list, field, call.goal)
---```
---@param list any[]
---@param field string
---@param goal? string
---@return any
---@return integer?
function newest(list, field, goal) end

---Whether the user asks for everything (all, every, everyone, entire, …), and not for all-day or not all.
---```lua
---wants_all(call.goal)
---```
---@param goal? string
---@return boolean
function wants_all(goal) end

---Seconds since 1970 of an ISO 8601 time or date; nil for any other string.
---```lua
---time("2026-05-01T00:00:00Z")
---```
---@param text any
---@return number?
function time(text) end

---The day of a time as "2026-05-01", in UTC; nil for any other string. In params: a string, an ISO 8601 date.
---```lua
---date("2026-05-01T10:00:00Z")
---date(seconds)  or, in params, date "The day"
---```
---@overload fun(spec?: string|toolgate.TypeOptions): toolgate.Type
---@param time string|number
---@return string?
function date(time) end

---Seconds of an ISO 8601 or short duration (weeks, days, hours, minutes, seconds); nil for any other string.
---```lua
---duration("PT1H30M")
---duration("90m")
---```
---@param text any
---@return number?
function duration(text) end

---A table with scheme, host, port, path, query, fragment, user; nil for any other string.
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

---Whether the string matches the pattern: * is any run of characters, ? is one.
---```lua
---glob("reports/*.pdf", path)
---```
---@param pattern string
---@param text string
---@return boolean
function glob(pattern, text) end

---A set: set[x] is true for its members.
---```lua
---set { "a", "b" }
---```
---@param ... any
---@return table<any, boolean?>
function set(...) end

---Raises the message if value is false or nil.
---```lua
---assert(value, message)
---```
---@param value any
---@param message? any
---@param ... any
---@return any
function assert(value, message, ...) end

---Ends the hook with an error: of run it is the tool's failure, in these words; of any other hook a policy_error.
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

---Calls f and catches its errors, but not the end of the deadline.
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

---The value as a string.
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

