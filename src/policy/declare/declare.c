/* All fields of a policy, each once, in one table; adding one adds a line. */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "json/build.h"
#include "sandbox/bridge.h"
#include "policy/source_location.h"
#include "policy/vocabulary/vocabulary.h"

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

/* ---- values ------------------------------------------------------------------------- */

/* A file's value is kept once for all policies that read it. */
static bool is_of_file(const struct policy_set *set, const struct json *value)
{
    const struct json_file *file = set->files.first;
    while (file && !(value->raw_len && file->value.raw == value->raw))
        file = file->next;
    return file != NULL;
}

/* Read aside and then packed: half of what reading takes is thrown away. */
const struct json *declare_json(struct declaration *d, const char *what, int at, const struct json *schema)
{
    struct bridge_hints hints = {
        .original = bridge_json_source(d->L, at), .schema = schema, .by_table = true};
    const struct json *value = bridge_read(d->L, at, what, &hints, d->scratch);
    struct json *kept = ARENA_NEW(d->arena, struct json);
    *kept = is_of_file(d->set, value) ? *value : json_copy(d->arena, value);
    return kept;
}

struct str declare_raw_text(struct declaration *d, int at, const char *name)
{
    struct str s = STR_NONE;
    lua_pushstring(d->L, name);
    lua_rawget(d->L, at);
    if (lua_type(d->L, -1) == LUA_TSTRING)
        s = fields_text(d, -1);
    lua_pop(d->L, 1);
    return s;
}

void declare_must_be_table(struct declaration *d, const char *parent, const char *name, int at,
                           const char *expected)
{
    if (!lua_istable(d->L, at) || sandbox_mark(d->L, at) != MARK_NONE)
        fields_wrong(d, parent, name, at, expected);
}

static void read_schema(struct declaration *d, const struct field *field, int at)
{
    const struct json **into = (const struct json **)((char *)d->policy + field->offset);
    if (lua_isboolean(d->L, at)) {
        *into = declare_json(d, field->name, at, NULL);
        return;
    }
    if (!lua_istable(d->L, at) ||
        (sandbox_mark(d->L, at) != MARK_NONE && sandbox_mark(d->L, at) != MARK_OBJECT))
        fields_wrong(d, NULL, field->name, at, "json \"file\", json [[{…}]] or params { … }");
    *into = declare_json(d, field->name, at, NULL);
}

static void read_object(struct declaration *d, const struct field *field, int at)
{
    if (!lua_istable(d->L, at))
        fields_wrong(d, NULL, field->name, at, "{ name = value }");
    *(const struct json **)((char *)d->policy + field->offset) = declare_json(d, field->name, at, NULL);
}

/* ---- functions ------------------------------------------------------------------------ */

static struct policy_hook_code keep_function(struct declaration *d, const char *name, int at)
{
    lua_Debug where = {0};
    if (!lua_isfunction(d->L, at) || lua_iscfunction(d->L, at))
        fields_wrong(d, NULL, name, at, "a function");
    lua_pushvalue(d->L, at);
    lua_getinfo(d->L, ">S", &where);
    lua_pushvalue(d->L, at);
    return (struct policy_hook_code){.ref = luaL_ref(d->L, LUA_REGISTRYINDEX), .line = where.linedefined};
}

static void read_hook(struct declaration *d, const struct field *field, int at)
{
    d->policy->code->hooks[field->from] = keep_function(d, field->name, at);
    d->policy->hooks[field->from] = true;
}

/* ---- what to do with a call ------------------------------------------------------------ */

#define SWITCH(which, what)                                                                                  \
    {                                                                                                        \
        .name = #which, .kind = FIELD_FLAG, .offset = offsetof(struct coerce_options, which),                \
        .sentence = (what)                                                                                   \
    }
static const struct field coerce_fields[] = {
    SWITCH(json, "JSON that was sent as a text becomes what it says, where only that fits."),
    SWITCH(strings,
           "\"5\" becomes 5 where only a number fits, \"true\" becomes true, spaces around a text go."),
    SWITCH(lists, "One value becomes a list of one, where only a list fits."),
    SWITCH(nulls, "null for an optional field counts as left out."),
    SWITCH(enums, "Capitals of an enum's value are mended."),
    SWITCH(floats, "5.0 becomes 5 where only a whole number fits."),
};
#undef SWITCH

const struct field_table declare_coerce_table = {
    .of = "coerce",
    .type = "toolgate.Coerce",
    .sentence = "What is mended where only one reading fits; what is not named stays on.",
    FIELD_TABLE(coerce_fields)};

/* coerce = false, or { strings = false }: what is not named stays on. */
static void read_coerce(struct declaration *d, const struct field *field, int at)
{
    if (lua_isboolean(d->L, at)) {
        if (!lua_toboolean(d->L, at))
            d->policy->coerce = (struct coerce_options){0};
        return;
    }
    declare_must_be_table(d, NULL, field->name, at, "true, false or { strings = false }");
    fields_read(d, at, field->name, coerce_fields, declare_coerce_table.count, &d->policy->coerce);
}

static void read_on_error(struct declaration *d, const struct field *field, int at)
{
    const char *given = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    if (strcmp(given, "open") != 0 && strcmp(given, "closed") != 0)
        fields_wrong(d, NULL, field->name, at, "\"closed\" or \"open\"");
    d->policy->fails_open = strcmp(given, "open") == 0;
}

/* ---- all of them ------------------------------------------------------------------------------------ */

#define AT(member)    .offset = offsetof(struct policy, member)
#define GIVEN(member) .given = offsetof(struct policy, member) + 1

static const struct field tool_fields[] = {
    {.name = "title",
     .kind = FIELD_TEXT,
     AT(title),
     .form = "\"Calendar events\"",
     .sentence = "A short name, for people."},
    {.name = "description",
     .kind = FIELD_TEXT,
     AT(description),
     .form = "\"Read calendar events.\"",
     .sentence = "What the tool does; the model reads it in the list and again in a refusal."},
    {.name = "use_when",
     .kind = FIELD_TEXT,
     AT(use_when),
     .form = "\"you need what is in the calendar\"",
     .sentence = "When the model should take this tool; joins the description."},
    {.name = "avoid_when",
     .kind = FIELD_TEXT,
     AT(avoid_when),
     .form = "\"you only need an address: use lookup_contact\"",
     .sentence = "When it should not, and what to take instead; joins the description."},
    {.name = "upstream",
     .kind = FIELD_TEXT,
     AT(upstream),
     .form = "\"calendar\"  or  \"calendar/getEvents\"",
     .sentence = "The server that runs it, by its name in the configuration; after a slash, what the tool is "
                 "called there. With http: whose address and headers it uses."},
    {.name = "exec",
     .kind = FIELD_OWN,
     .read = declare_exec,
     .form = "{ \"jq\", \"-c\", \".items[]\", \"{file}\", timeout = \"10s\" }",
     .type = "toolgate.Exec",
     .sentence = "A command that is the tool, started for each call, without a shell."},
    {.name = "http",
     .kind = FIELD_OWN,
     .read = declare_http,
     .form = "{ \"GET https://api.example.com/v1/issues/{id}\", headers = { … } }",
     .type = "string|toolgate.Http",
     .sentence = "The HTTP endpoint that is the tool: arguments become a request, its answer the result."},
    {.name = "schema",
     .kind = FIELD_OWN,
     AT(schema),
     .read = read_schema,
     .form = "json \"file.json\"  or  params { … }",
     .type = "toolgate.Schema",
     .sentence =
         "What the arguments must be, as JSON Schema; left out: the schema that the tool itself comes with."},
    {.name = "output_schema",
     .kind = FIELD_OWN,
     AT(output_schema),
     .read = read_schema,
     .form = "json \"file.json\"",
     .type = "toolgate.Schema",
     .sentence = "What a result must be; one that is not is broken, and told so to the model."},
    {.name = "annotations",
     .kind = FIELD_OWN,
     AT(annotations),
     .read = read_object,
     .form = "{ readOnlyHint = true }",
     .type = "table<string, any>",
     .sentence = "Annotations as in MCP, for the tool's definition."},
    {.name = "effects",
     .kind = FIELD_CHOICE,
     AT(effects),
     .choices = "read write destructive toggle",
     .from = EFFECTS_READ,
     .sentence = "What a call does in the world; sets how often the same call may be made."},
    {.name = "idempotent",
     .kind = FIELD_FLAG,
     AT(idempotent),
     GIVEN(idempotent_given),
     .sentence =
         "true: making the same call twice does no more than making it once, so that a failed one may "
         "be tried again (retry.again); left out: by its effects and annotations."},
    {.name = "mode",
     .kind = FIELD_CHOICE,
     AT(mode),
     .choices = "enforce shadow off",
     .from = POLICY_ENFORCE,
     GIVEN(mode_given),
     .sentence = "enforce; shadow: everything is computed and logged, and nobody feels it; off."},
    {.name = "unknown",
     .kind = FIELD_CHOICE,
     AT(unknown),
     .choices = "pass drop refuse",
     .from = UNKNOWN_PASS,
     GIVEN(unknown_given),
     .sentence = "What becomes of fields that an open schema does not name."},
    {.name = "validate",
     .kind = FIELD_FLAG,
     AT(validate),
     .form = "false",
     .sentence = "false: the schema is documentation only."},
    {.name = "envelopes",
     .kind = FIELD_FLAG,
     AT(envelopes),
     .form = "false",
     .sentence = "false: a result that says of itself that it failed, would pass later or asks the user "
                 "({\"success\": false}, \"Error: …\") is taken for a result like any other."},
    {.name = "final", .kind = FIELD_FLAG, AT(final), .sentence = "true: this tool's result ends the run."},
    {.name = "on_policy_error",
     .kind = FIELD_OWN,
     .read = read_on_error,
     .form = "\"closed\"  or  \"open\"",
     .type = "\"closed\"|\"open\"",
     .sentence = "Whether a policy that breaks refuses the call, or lets it pass."},
    {.name = "coerce",
     .kind = FIELD_OWN,
     .read = read_coerce,
     GIVEN(coerce_given),
     .form = "false  or  { strings = false, … }",
     .type = "boolean|toolgate.Coerce",
     .sentence = "Which arguments are mended where only one reading fits; all are, until turned off."},
    {.name = "retry",
     .kind = FIELD_OWN,
     .read = declare_retry,
     .form = "{ repair = 2, same_call = 3 }",
     .type = "toolgate.Retry",
     .sentence = "How often the model may try again."},
    {.name = "loop",
     .kind = FIELD_OWN,
     .read = declare_loop,
     .form = "{ repeats = 3, volatile = { \"request_id\" } }",
     .type = "toolgate.Loop",
     .sentence = "What counts as going round in circles."},
    {.name = "limits",
     .kind = FIELD_OWN,
     .read = declare_limits,
     .form = "{ calls_per_turn = 10, cost_per_session = 2.5 }",
     .type = "toolgate.Limits",
     .sentence = "How much of this tool may be used up, by number, cost and time."},
    {.name = "cost",
     .kind = FIELD_OWN,
     .read = declare_cost,
     .form = "0.02",
     .type = "number",
     .sentence = "What a call costs, in whatever unit the limits count in; a result may tell better."},
    {.name = "compact",
     .kind = FIELD_OWN,
     .read = declare_compact,
     GIVEN(compact_given),
     .form = "{ max_bytes = 20000, keep = { \"title\" }, drop = { \"events[].raw\" } }",
     .type = "boolean|toolgate.Compact",
     .sentence = "What a result that is too large for a model is shortened to, field by field."},
    {.name = "ids",
     .kind = FIELD_OWN,
     .read = declare_ids,
     .form = "{ contact_id = seen(), [\"items[].id\"] = shape \"uuid\" }",
     .type = "table<string, toolgate.Id>",
     .sentence = "Which arguments hold ids, and what is demanded of them."},
    {.name = "gives_ids",
     .kind = FIELD_TEXTS,
     AT(gives_ids),
     .form = "{ \"events[].id\" }",
     .sentence = "Where this tool's results carry ids."},
    {.name = "aliases",
     .kind = FIELD_TEXTS,
     AT(aliases),
     .form = "{ \"get_event\" }",
     .sentence =
         "Names that the tool used to have: a call of one is a call of this tool, and the model is told."},
    {.name = "redact",
     .kind = FIELD_TEXTS,
     AT(redact),
     .form = "{ \"customers[].email\", \"iban\" }",
     .sentence =
         "Fields of results that nobody may read: a path as in gives_ids, or the name of a field anywhere."},
    {.name = "rules",
     .kind = FIELD_OWN,
     .read = declare_rules,
     .form = "{ when { … } : needs \"…\", … }",
     .type = "toolgate.Rule[]",
     .sentence = "What the arguments must be to each other; told to the model in words."},
    {.name = "prepare",
     .kind = FIELD_OWN,
     .read = read_hook,
     .from = HOOK_PREPARE,
     .form = "function(def, call) … end",
     .type = "fun(def: toolgate.Definition, call: toolgate.Call): toolgate.Definition?",
     .sentence = "The tool's definition as this peer shall see it; nil hides it."},
    {.name = "normalise",
     .kind = FIELD_OWN,
     .read = read_hook,
     .from = HOOK_NORMALISE,
     .form = "function(args, call) … end",
     .type = "fun(args: table, call: toolgate.Call): table|toolgate.Outcome|nil",
     .sentence = "Arguments in, arguments out; the schema is checked again where they changed."},
    {.name = "check",
     .kind = FIELD_OWN,
     .read = read_hook,
     .from = HOOK_CHECK,
     .form = "function(args, call) … end",
     .type = "fun(args: table, call: toolgate.Call): toolgate.Outcome?",
     .sentence = "What needs the session: nothing to pass, or repair, refuse, ask."},
    {.name = "run",
     .kind = FIELD_OWN,
     .read = read_hook,
     .from = HOOK_RUN,
     .form = "function(args, call) … end",
     .type = "fun(args: table, call: toolgate.Call): any",
     .sentence = "The tool itself, where it is written in Lua: its value, or retry, failed, transient."},
    {.name = "result",
     .kind = FIELD_OWN,
     .read = read_hook,
     .from = HOOK_RESULT,
     .form = "function(result, call) … end",
     .type = "fun(result: any, call: toolgate.Call): toolgate.Outcome?",
     .sentence = "What a result means: nothing where it is good, or ok, partial, garbage, …"},
    {.name = "examples",
     .kind = FIELD_OWN,
     .read = declare_examples,
     .form = "{ { \"what it shows\", args = { … }, gives = \"pass\" }, … }",
     .type = "toolgate.Example[]",
     .sentence = "The specification: they run whenever the file is loaded."},
};

const struct field_table declare_policy_table = {
    .of = "tool",
    .type = "toolgate.Policy",
    .sentence = "What `tool \"name\" { … }` declares; everything may be left out.",
    FIELD_TABLE(tool_fields)};

static void read_tool(struct declaration *d, int fields)
{
    declare_annotations(d, fields);
    fields_read(d, fields, NULL, tool_fields, declare_policy_table.count, d->policy);
    d->policy->wants_history = locate_mentions(d->source, "history");
    d->policy->wants_facts = locate_mentions(d->source, "facts");
    d->policy->code->walks = bridge_needs_eager(d->source);
    declare_check_annotations(d);
    declare_check_rules(d);
    declare_check_runner(d);
    declare_check_http(d);
    declare_check_exec(d);
}

static void read_prepare_tools(struct declaration *d, const struct field *field, int at)
{
    d->set->prepare_tools = keep_function(d, field->name, at);
}

static const struct field gateway_fields[] = {
    {.name = "instructions",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct policy_set, instructions),
     .form = "\"…\"",
     .sentence = "What a client is told when it connects."},
    {.name = "prepare_tools",
     .kind = FIELD_OWN,
     .read = read_prepare_tools,
     .form = "function(defs, call) … end",
     .type = "fun(defs: toolgate.Definition[], call: toolgate.Call): toolgate.Definition[]?",
     .sentence = "The list of tools as this peer shall see it; nil hides all."},
};

const struct field_table declare_gateway_table = {
    .of = "gateway",
    .type = "toolgate.Gateway",
    .sentence = "What `gateway { … }` declares for all tools; one file of a folder may.",
    FIELD_TABLE(gateway_fields)};

static void read_gateway(struct declaration *d, int fields)
{
    if (d->set->gateway_file.len)
        luaL_error(d->L, "%s: a second gateway { … }: the first is in %s", sandbox_chunk(d->file.at),
                   d->set->gateway_file.at);
    fields_read(d, fields, NULL, gateway_fields, declare_gateway_table.count, d->set);
    d->set->gateway_file = d->file;
}

void declare_read(struct declaration *d, int at)
{
    lua_State *L = d->L;
    if (sandbox_mark(L, at) != MARK_DECLARATION) {
        words_push_kind(L, at);
        luaL_error(L, "%s: expected the file to return tool \"name\" { … } or gateway { … }, got %s",
                   sandbox_chunk(d->file.at), lua_tostring(L, -1));
    }
    lua_getfield(L, at, "fields");
    int fields = lua_gettop(L);
    lua_getfield(L, at, "name");
    if (lua_isnil(L, -1)) {
        read_gateway(d, fields);
        return;
    }
    d->policy = declare_blank(d->set, fields_text(d, -1), d->file);
    read_tool(d, fields);
}
