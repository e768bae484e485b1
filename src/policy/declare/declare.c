/* All fields of a tool and of a gateway, each once, in two tables; adding a field adds a row. */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "base/date.h"
#include "base/suggest.h"
#include "base/time_zone.h"
#include "policy/source_location.h"
#include "sandbox/bridge.h"
#include "sandbox/diagnostics.h"

struct policy *declare_blank(struct policy_set *set, struct str name, struct str file)
{
    struct policy *p = ARENA_NEW(set->arena, struct policy);
    p->name = name;
    p->file = file;
    p->validate = true;
    p->envelopes = true;
    p->coerce = coerce_options_all;
    p->repair = p->same_call = p->transient = POLICY_UNSET;
    p->repeats = p->halt = p->across_turns = p->poll_max = POLICY_UNSET;
    p->limits = policy_limits_unset;
    p->cost = POLICY_COST_UNSET;
    p->set = set;
    p->code = ARENA_NEW(set->arena, struct policy_code);
    for (int i = 0; i < HOOK_COUNT; i++)
        p->code->hooks[i].ref = HOOK_NONE;
    return p;
}

static void read_schema(struct declaration *d, const struct field *field, int at)
{
    enum mark mark = lua_istable(d->L, at) ? sandbox_mark(d->L, at) : MARK_NONE;
    bool table = lua_istable(d->L, at) && (mark == MARK_NONE || mark == MARK_OBJECT);
    if (!table && !lua_isboolean(d->L, at))
        field_mismatch(d, field->name, at, "json \"file\", json [[{…}]] or params { … }");
    *FIELD_INTO(d, field, const struct json *) = field_json(d, field->name, at, NULL);
}

/* A schema, or how far that of whoever runs the tool decides. */
static void read_input_schema(struct declaration *d, const struct field *field, int at)
{
    static const char *const words[] = {
        [SCHEMA_STRICT] = "strict", [SCHEMA_LEARN] = "learn", [SCHEMA_ADVISE] = "advise"};
    if (lua_type(d->L, at) != LUA_TSTRING) {
        read_schema(d, field, at);
        return;
    }
    for (int mode = SCHEMA_STRICT; mode <= SCHEMA_ADVISE; mode++)
        if (strcmp(lua_tostring(d->L, at), words[mode]) == 0) {
            d->policy->schema_mode = (enum policy_schema_mode)mode;
            return;
        }
    field_mismatch(d, field->name, at,
                   "\"strict\", \"learn\", \"advise\", or a schema: json \"file\", params { … }");
}

static void read_object(struct declaration *d, const struct field *field, int at)
{
    if (!lua_istable(d->L, at))
        field_mismatch(d, field->name, at, "{ name = value }");
    *FIELD_INTO(d, field, const struct json *) = field_json(d, field->name, at, NULL);
}

static struct policy_hook_code reference_function(struct declaration *d, const char *name, int at)
{
    lua_Debug where = {0};
    if (!lua_isfunction(d->L, at) || lua_iscfunction(d->L, at))
        field_mismatch(d, name, at, "a function");
    lua_pushvalue(d->L, at);
    lua_getinfo(d->L, ">S", &where);
    lua_pushvalue(d->L, at);
    return (struct policy_hook_code){.ref = luaL_ref(d->L, LUA_REGISTRYINDEX), .line = where.linedefined};
}

static void read_hook(struct declaration *d, const struct field *field, int at)
{
    d->policy->code->hooks[field->first] = reference_function(d, field->name, at);
    d->policy->hooks[field->first] = true;
}

static void read_instructions(struct declaration *d, const struct field *field, int at)
{
    if (lua_type(d->L, at) != LUA_TSTRING)
        field_mismatch(d, field->name, at, "a string");
    d->set->instructions = field_string(d, at);
}

static unsigned read_pattern_set(struct declaration *d, const struct field *field, int at)
{
    static const struct str names[] = {STR("secrets"), STR("instructions"), STR("hidden")};
    const size_t count = sizeof(names) / sizeof(names[0]);
    struct str given = lua_type(d->L, at) == LUA_TSTRING ? field_string(d, at) : STR_NONE;
    for (unsigned i = 0; i < count; i++)
        if (str_eq(names[i], given))
            return 1u << i;
    struct str meant = given.len ? suggest_closest(given, names, count) : STR_NONE;
    if (!meant.len)
        field_mismatch(d, field->name, at,
                       "a list of pattern sets, \"secrets\", \"instructions\" or \"hidden\", or a function");
    field_error(d, field->name, "'%s': there is no pattern set \"" STR_FMT "\" (did you mean '" STR_FMT "'?)",
                field->name, STR_ARG(str_cut(given, 60)), STR_ARG(meant));
}

/* check and result of a gateway: a hook, or the names of pattern sets. */
static void read_guard(struct declaration *d, const struct field *field, int at)
{
    uint8_t *sets = field->first == HOOK_CHECK ? &d->policy->check_sets : &d->policy->result_sets;
    if (lua_isfunction(d->L, at)) {
        read_hook(d, field, at);
        return;
    }
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 0;
    if (!count)
        *sets = (uint8_t)read_pattern_set(d, field, at);
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(d->L, at, (int)i);
        *sets |= (uint8_t)read_pattern_set(d, field, lua_gettop(d->L));
        lua_pop(d->L, 1);
    }
}

static void read_prepare_tools(struct declaration *d, const struct field *field, int at)
{
    d->set->prepare_tools = reference_function(d, field->name, at);
}

static void read_on_error(struct declaration *d, const struct field *field, int at)
{
    const char *given = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    if (strcmp(given, "open") != 0 && strcmp(given, "closed") != 0)
        field_mismatch(d, field->name, at, "\"closed\" or \"open\"");
    d->policy->fails_open = strcmp(given, "open") == 0;
}

#define SWITCH(name, sentence)                                                                               \
    {                                                                                                        \
#name, FIELD_BOOL, NULL, NULL, sentence, .offset = offsetof(struct coerce_options, name)             \
    }
static const struct field coerce_fields[] = {
    SWITCH(json, "A string that holds JSON is parsed, if only the parsed value fits."),
    SWITCH(strings, "\"5\" becomes 5 if only a number fits, \"true\" becomes true; 5 becomes \"5\" if only a "
                    "string fits; spaces around a string go."),
    SWITCH(lists, "One value becomes a list of one, if only a list fits, and a string in a list of one "
                  "becomes the string; \"a, b\" is split if each part fits an enum or a format."),
    SWITCH(nulls, "null for an optional field counts as left out."),
    SWITCH(enums, "The case of an enum's value is corrected."),
    SWITCH(floats, "5.0 becomes 5 if only a whole number fits."),
    SWITCH(names, "A name that differs from one declared, unused name in case, separators or a final s "
                  "becomes that name."),
    SWITCH(words,
           "\"yes\", \"no\", 1 and 0 become a boolean if only a boolean fits, true becomes \"True\" of an "
           "enum; \"\", \"None\" and \"null\" for an optional field count as left out."),
    SWITCH(wrapped, "Parameters inside one undeclared \"arguments\", \"args\", \"input\", \"parameters\", "
                    "\"params\" or the tool's name are taken out of it."),
};
#undef SWITCH

const struct field_table declare_coerce_table = FIELD_TABLE(
    "coerce", "toolgate.Coerce",
    "Which unambiguous values are converted; what is not named stays on, or off if the tool destroys.",
    coerce_fields);

/* coerce = false, or { strings = false }. What is named is also kept apart: a tool that destroys gets only
 * that. */
static void read_coerce(struct declaration *d, const struct field *field, int at)
{
    if (lua_isboolean(d->L, at) && lua_toboolean(d->L, at))
        d->policy->coerce_named = coerce_options_all;
    if (field_is_false(d, at))
        d->policy->coerce = (struct coerce_options){0};
    if (lua_isboolean(d->L, at))
        return;
    field_require_table(d, field->name, at, "true, false or { strings = false }");
    field_read_table(d, at, field->name, &declare_coerce_table, &d->policy->coerce);
    field_read_table(d, at, field->name, &declare_coerce_table, &d->policy->coerce_named);
}

static void read_timezone(struct declaration *d, const struct field *field, int at)
{
    struct why why;
    if (lua_type(d->L, at) != LUA_TSTRING)
        field_mismatch(d, field->name, at, field->expected);
    if (time_zone_load(d->arena, field_string(d, at), FIELD_INTO(d, field, const struct time_zone *), &why) !=
        OK)
        field_error(d, field->name, "'%s': %s: expected a name of the tz database, such as %s", field->name,
                    why.text, field->expected);
}

/* The mode is read before. */
static void read_shadow_until(struct declaration *d, const struct field *field, int at)
{
    int64_t seconds;
    if (lua_type(d->L, at) != LUA_TSTRING || !date_read(field_string(d, at), &seconds))
        field_mismatch(d, field->name, at, "a date such as \"2026-12-01\"");
    if (!d->policy->mode_given || d->policy->mode != POLICY_SHADOW)
        field_error(d, field->name,
                    "'%s' is the end of mode shadow: set mode = \"shadow\" here, or remove it", field->name);
    d->policy->shadow_until = field_string(d, at);
}

static void read_inner(struct declaration *d, const struct field *field, int at)
{
    field_require_table(d, field->name, at, field->expected);
    field_read_table(d, at, field->name, field->table, d->out);
}

#define AT(member)    .offset = offsetof(struct policy, member)
#define GIVEN(member) .given = offsetof(struct policy, member) + 1
/* A table of further fields of the same struct. */
#define INNER(inner, example) .read = read_inner, .table = &(inner), .expected = (example)
#define HOOK(number)          .read = read_hook, .first = (number)

/* Rows of a policy for one tool, which a policy for several tools cannot have. */
static const struct field tool_fields[] = {
    {"title", FIELD_STRING, "\"Calendar events\"", NULL, "A short name, for people.", AT(title)},
    {"description", FIELD_STRING, "\"Read calendar events.\"", NULL,
     "What the tool does; the model reads it in the list of tools and in refusals.", AT(description)},
    {"upstream", FIELD_STRING, "\"calendar\"  or  \"calendar/getEvents\"", NULL,
     "The server that runs it, by its name in the configuration; after a slash, the tool's name there. With "
     "http: the upstream whose address and headers it uses.",
     AT(upstream)},
    {"exec", FIELD_CUSTOM, "{ \"jq\", \"-c\", \".items[]\", \"{file}\", timeout = \"10s\" }", "toolgate.Exec",
     "A command that is the tool, started for each call, without a shell.", READ(declare_exec)},
    {"http", FIELD_CUSTOM, "{ \"GET https://api.example.com/v1/issues/{id}\", headers = { … } }",
     "string|toolgate.Http",
     "The HTTP endpoint that is the tool: arguments become a request, the response the result.",
     READ(declare_http)},
    {"schema", FIELD_CUSTOM, "json \"file.json\"  or  params { … }  or  \"strict\"",
     "toolgate.Schema|\"strict\"|\"learn\"|\"advise\"",
     "JSON Schema of the arguments. Default: the schema of the upstream's tool, of which a word says what it "
     "decides: strict: arguments that do not fit are refused; learn (default): until the model insists and "
     "the server accepts them; advise: they pass with a warning.",
     AT(schema), READ(read_input_schema)},
    {"output_schema", FIELD_CUSTOM, "json \"file.json\"", "toolgate.Schema",
     "JSON Schema of the result; a result that does not fit is broken, and the model reads why.",
     AT(output_schema), READ(read_schema)},
    {"annotations", FIELD_CUSTOM, "{ readOnlyHint = true }", "table<string, any>",
     "Annotations as in MCP, for the tool's definition.", AT(annotations), READ(read_object)},
    {"idempotent", FIELD_BOOL, NULL, NULL,
     "true: making the same call twice has the effect of one, so that a failed call may be repeated "
     "(retry.again). Default: by effects and annotations.",
     AT(idempotent), GIVEN(idempotent_given)},
    {"validate", FIELD_BOOL, "false", NULL, "false: the schema is documentation only.", AT(validate)},
    {"envelopes", FIELD_BOOL, "false", NULL,
     "false: a result that reports its own failure ({\"success\": false}, \"Error: …\") counts as a success.",
     AT(envelopes)},
    {"final", FIELD_BOOL, NULL, NULL, "true: this tool's result ends the run.", AT(final)},
    {"coerce", FIELD_CUSTOM, "false  or  { strings = false, … }", "boolean|toolgate.Coerce",
     "Which unambiguous arguments are converted. Default: all.", GIVEN(coerce_given), READ(read_coerce)},
    {"timezone", FIELD_CUSTOM, "\"Europe/Berlin\"", "string",
     "The time zone of date-times that the model sends without one; its offset is added. Default: they stay "
     "as they "
     "are, with a note.",
     AT(timezone), READ(read_timezone)},
    {"formats", FIELD_CHOICE, NULL, NULL, "strict: a date-time without its time zone is refused.",
     AT(formats), GIVEN(formats_given), CHOICES("lenient strict", FORMATS_LENIENT)},
    {"rate", FIELD_CUSTOM, "{ \"10/minute\", \"100/hour\", by = \"user\" }", "string|toolgate.Rate",
     "How many calls may be made in any second, minute, hour or day, over all daemons.", READ(declare_rate)},
    {"cost", FIELD_CUSTOM, "0.02", "number",
     "What a call costs, in the unit of the limits; ok { cost = … } replaces it.", READ(declare_cost)},
    {"compact", FIELD_CUSTOM, "{ max_bytes = 20000, keep = { \"title\" }, drop = { \"events[].raw\" } }",
     "boolean|toolgate.Compact",
     "What a result that is too large for a model is shortened to, field by field.", GIVEN(compact_given),
     READ(declare_compact)},
    {"gives_ids", FIELD_STRINGS, "{ \"events[].id\" }", NULL, "Which fields of this tool's results hold ids.",
     AT(gives_ids)},
    {"aliases", FIELD_STRINGS, "{ \"get_event\" }", NULL,
     "Former names of the tool: a call by one of them runs this tool, and the model learns the new name.",
     AT(aliases)},
    {"prepare", FIELD_CUSTOM, "function(def, call) … end",
     "fun(def: toolgate.Definition, call: toolgate.Call): toolgate.Definition?",
     "The tool's definition for this client; nil hides the tool.", HOOK(HOOK_PREPARE)},
    {"run", FIELD_CUSTOM, "function(args, call) … end", "fun(args: table, call: toolgate.Call): any",
     "The tool itself, written in Lua: returns its value, or retry, failed, transient.", HOOK(HOOK_RUN)},
};

/* Rows that both have; they are read after the others, since rules and examples need the schema. */
static const struct field shared_fields[] = {
    {"use_when", FIELD_STRING, "\"you need what is in the calendar\"", NULL,
     "When the model should use this tool; added to the description.", AT(use_when)},
    {"avoid_when", FIELD_STRING, "\"you only need an address: use lookup_contact\"", NULL,
     "When it should not, and what to use instead; added to the description.", AT(avoid_when)},
    {"effects", FIELD_CHOICE, NULL, NULL, "What a call changes; sets how often the same call may be made.",
     AT(effects), CHOICES("read write destructive toggle", EFFECTS_READ)},
    {"mode", FIELD_CHOICE, NULL, NULL, "enforce; shadow: evaluated and logged, not enforced; off.", AT(mode),
     GIVEN(mode_given), CHOICES("enforce shadow off", POLICY_ENFORCE)},
    {"shadow_until", FIELD_CUSTOM, "\"2026-12-01\"", "string",
     "The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces "
     "nothing.",
     AT(shadow_until), READ(read_shadow_until)},
    {"unknown", FIELD_CHOICE, NULL, NULL, "What happens to arguments that an open schema does not name.",
     AT(unknown), GIVEN(unknown_given), CHOICES("pass drop refuse", UNKNOWN_PASS)},
    {"on_policy_error", FIELD_CUSTOM, "\"closed\"  or  \"open\"", "\"closed\"|\"open\"",
     "Whether a policy that fails refuses the call, or passes it.", READ(read_on_error)},
    {"retry", FIELD_CUSTOM, "{ repair = 2, same_call = 3 }", "toolgate.Retry",
     "How often a call may be tried again.", INNER(declare_retry_table, "{ repair = 2, same_call = 3 }")},
    {"loop", FIELD_CUSTOM, "{ repeats = 3, volatile = { \"request_id\" } }", "toolgate.Loop",
     "What counts as a loop.", INNER(declare_loop_table, "{ repeats = 3 }")},
    {"limits", FIELD_CUSTOM, "{ calls_per_turn = 10, cost_per_session = 2.5 }", "toolgate.Limits",
     "How much of this tool may be used: calls, cost and time.",
     INNER(declare_limits_table, "{ calls_per_turn = 10 }")},
    {"ids", FIELD_CUSTOM, "{ contact_id = seen(), [\"items[].id\"] = shape \"uuid\" }",
     "table<string, toolgate.Id>", "Which arguments hold ids, and what an id must be.", READ(declare_ids)},
    {"redact", FIELD_STRINGS, "{ \"customers[].email\", \"iban\" }", NULL,
     "Fields of results that are redacted: a path as in gives_ids, or the name of a field anywhere.",
     AT(redact)},
    {"rules", FIELD_CUSTOM, "{ when { … } : needs \"…\", … }", "toolgate.Rule[]",
     "Conditions on arguments and what follows from them; the model reads them in words.",
     READ(declare_rules)},
    {"normalise", FIELD_CUSTOM, "function(args, call) … end",
     "fun(args: table, call: toolgate.Call): table|toolgate.Outcome|nil",
     "Changes the arguments; changed arguments are checked against the schema again.", HOOK(HOOK_NORMALISE)},
    {"check", FIELD_CUSTOM, "function(args, call) … end",
     "fun(args: table, call: toolgate.Call): toolgate.Outcome?",
     "What needs the session: nothing to pass, or repair, refuse, ask.", HOOK(HOOK_CHECK)},
    {"result", FIELD_CUSTOM, "function(result, call) … end",
     "fun(result: any, call: toolgate.Call): toolgate.Outcome?",
     "Judges a result: nothing if it is good, or ok, partial, garbage, …", HOOK(HOOK_RESULT)},
    {"examples", FIELD_CUSTOM, "{ { \"what it shows\", args = { … }, gives = \"pass\" }, … }",
     "toolgate.Example[]", "The specification: they run whenever the file is loaded.",
     READ(declare_examples)},
};

static const struct field_table shared_table = FIELD_TABLE(NULL, NULL, NULL, shared_fields);

static const struct field several_fields[] = {
    {"tools", FIELD_STRINGS, "{ \"write_*\", \"edit_file\" }", NULL,
     "The tools it lies over, beside their own policies: names, or globs with * and ?.", AT(guards),
     .required = true},
};

const struct field_table declare_policy_table =
    FIELD_TABLE("policy", "toolgate.Guard",
                "What `policy { … }` declares for several tools; of each limit the stricter one holds.",
                several_fields, ALSO(shared_table));

const struct field_table declare_tool_table =
    FIELD_TABLE("tool", "toolgate.Policy", "What `tool \"name\" { … }` declares; every field is optional.",
                tool_fields, ALSO(shared_table));

static const struct field gateway_fields[] = {
    {"instructions", FIELD_CUSTOM, "\"…\"", "string", "Instructions that a client receives when it connects.",
     READ(read_instructions)},
    {"prepare_tools", FIELD_CUSTOM, "function(defs, call) … end",
     "fun(defs: toolgate.Definition[], call: toolgate.Call): toolgate.Definition[]?",
     "The list of tools for this client; nil hides all.", READ(read_prepare_tools)},
    {"mode", FIELD_CHOICE, NULL, NULL,
     "Of check and result. Default: shadow (evaluated and logged, not enforced); enforce; off.", AT(mode),
     GIVEN(mode_given), CHOICES("enforce shadow off", POLICY_ENFORCE)},
    {"shadow_until", FIELD_CUSTOM, "\"2026-12-01\"", "string",
     "The date by which mode shadow is to end. From then on toolgate warns everywhere, and still enforces "
     "nothing.",
     READ(read_shadow_until)},
    {"except", FIELD_STRINGS, "{ \"vault__*\" }", NULL,
     "Tools that check and result leave alone: names, or globs with * and ?.", AT(except)},
    {"check", FIELD_CUSTOM, "{ \"secrets\" }",
     "string[]|fun(args: table, call: toolgate.Call): toolgate.Outcome?",
     "Of every tool: pattern sets whose finds in the arguments refuse the call (secrets: keys and tokens; "
     "instructions: orders to the model; hidden: zero-width, bidirectional and tag characters), or a "
     "function "
     "as in policy.",
     .read = read_guard, .first = HOOK_CHECK},
    {"result", FIELD_CUSTOM, "{ \"secrets\", \"instructions\" }",
     "string[]|fun(result: any, call: toolgate.Call): toolgate.Outcome?",
     "Of every tool: pattern sets for results. What secrets finds is masked, what hidden finds is removed, "
     "what instructions finds is marked as data for the model; or a function as in policy.",
     .read = read_guard, .first = HOOK_RESULT},
    {"examples", FIELD_CUSTOM, "{ { \"what it shows\", tool = \"…\", args = { … }, gives = \"pass\" }, … }",
     "toolgate.Example[]", "The specification: they run whenever the file is loaded.",
     READ(declare_examples)},
};

const struct field_table declare_gateway_table =
    FIELD_TABLE("gateway", "toolgate.Gateway",
                "What `gateway { … }` declares for all tools; one file of a folder may.", gateway_fields);

struct policy_wants declare_wants(struct str source)
{
    return (struct policy_wants){.history = location_has_access(source, "history"),
                                 .facts = location_has_access(source, "facts"),
                                 .progress = location_has_access(source, "turn") ||
                                             location_has_access(source, "step") ||
                                             location_has_access(source, "no_progress")};
}

/* A gateway without check and result is no policy: it guards nothing. */
static bool guards_calls(struct declaration *d, bool mode_given)
{
    const struct policy *p = d->policy;
    const char *idle = mode_given         ? "mode"
                       : p->except_count  ? "except"
                       : p->example_count ? "examples"
                                          : NULL;
    if (p->check_sets || p->result_sets || p->hooks[HOOK_CHECK] || p->hooks[HOOK_RESULT])
        return true;
    if (idle)
        field_error(d, idle,
                    "'%s' has no effect without check or result: declare one, as in check = { \"secrets\" }",
                    idle);
    return false;
}

static void finish_policy(struct declaration *d)
{
    d->policy->wants = declare_wants(d->source);
    d->policy->code->walks = bridge_needs_eager(d->source);
    declare_check_rules(d);
}

/* Its check and result lie over every tool, as a policy for several tools does; in shadow if nothing else is
 * said. */
static void declare_gateway(struct declaration *d, int fields)
{
    static const struct str every_tool[] = {STR("*")};
    if (d->set->gateway_file.len)
        luaL_error(d->L, "%s: a second gateway { … }: the first is in %s", sandbox_chunk(d->file.at),
                   d->set->gateway_file.at);
    d->policy = declare_blank(d->set, STR_LIT("gateway"), d->file);
    d->policy->guards = every_tool;
    d->policy->guard_count = 1;
    d->policy->mode = POLICY_SHADOW;
    field_read_table(d, fields, NULL, &declare_gateway_table, d->policy);
    d->set->gateway_file = d->file;
    d->set->gateway_wants = declare_wants(d->source);
    bool mode_given = d->policy->mode_given;
    d->policy->mode_given = true;
    if (guards_calls(d, mode_given))
        finish_policy(d);
    else
        d->policy = NULL;
}

void declare_read(struct declaration *d, int at)
{
    lua_State *L = d->L;
    if (sandbox_mark(L, at) != MARK_DECLARATION) {
        diagnostics_push_value(L, at);
        luaL_error(
            L, "%s: expected the file to return tool \"name\" { … }, policy { … } or gateway { … }, got %s",
            sandbox_chunk(d->file.at), lua_tostring(L, -1));
    }
    lua_getfield(L, at, "fields");
    int fields = lua_gettop(L);
    if (str_is(field_raw_string(d, at, "what"), "policy")) {
        declare_several(d, fields);
        finish_policy(d);
        return;
    }
    lua_getfield(L, at, "name");
    if (lua_isnil(L, -1)) {
        declare_gateway(d, fields);
        return;
    }
    d->policy = declare_blank(d->set, field_string(d, -1), d->file);
    declare_annotations(d, fields);
    field_read_table(d, fields, NULL, &declare_tool_table, d->policy);
    declare_check_annotations(d);
    finish_policy(d);
    declare_check_runner(d);
    declare_check_formats(d);
    declare_check_http(d);
    declare_check_exec(d);
}
