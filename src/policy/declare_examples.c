/* Examples: data that gate/examples.c runs. A mistake in one is an error, as it would pass and show nothing.
 */
#include "policy/declare.h"
#include "base/arena.h"
#include "base/suggest.h"
#include "policy/source_location.h"

#define EXAMPLES_MAX 10000u
#define HISTORY_MAX  100u /* calls before one example; the ledger remembers 32 */

/* What a value may be besides JSON, and the schema that it follows: the row's `first` and `least`. */
enum form { ANY, TABLE, OBJECT, LIST };
enum value_schema { NO_SCHEMA, INPUT, OUTPUT };
#define VALUE(schema, form) READ(read_value), LEAST(schema), .first = (form)

static void read_value(struct declaration *d, const struct field *field, int at)
{
    static const char *const expected[] = {
        [TABLE] = "a table", [OBJECT] = "a table with names", [LIST] = "a list"};
    const struct json *const schemas[] = {
        [NO_SCHEMA] = NULL, [INPUT] = d->policy->schema, [OUTPUT] = d->policy->output_schema};
    if (field->first != ANY && !lua_istable(d->L, at))
        field_mismatch(d, field->name, at, expected[field->first]);
    const struct json *value = field_json(d, field->name, at, schemas[field->least]);
    if (field->first == OBJECT && value->type != JSON_OBJECT && value->len)
        field_mismatch(d, field->name, at, expected[OBJECT]);
    if (field->first == LIST && value->type != JSON_ARRAY && value->len)
        field_error(d, field->name, "'%s.%s': expected a list, got a table with names", d->parent,
                    field->name);
    *FIELD_INTO(d, field, const struct json *) = value;
}

static void read_status(struct declaration *d, const struct field *field, int at)
{
    static const struct str names[] = {STR("SATISFIED"), STR("NEEDS_MORE_TOOLS"), STR("NEED_USER_INPUT"),
                                       STR("FAILED")};
    if (lua_type(d->L, at) != LUA_TSTRING)
        field_mismatch(d, field->name, at, "a string");
    struct str given = field_string(d, at), meant = suggest_closest(given, names, 4);
    for (size_t i = 0; i < 4; i++)
        if (str_eq(given, names[i])) {
            *FIELD_INTO(d, field, struct str) = given;
            return;
        }
    field_error(
        d, field->name,
        "'example.status': expected SATISFIED, NEEDS_MORE_TOOLS, NEED_USER_INPUT or FAILED, got '" STR_FMT
        "'%s",
        STR_ARG(str_cut(given, 60)), field_hint(d->scratch, meant));
}

/* The calls are only checked here; gate/examples.c reads them from the JSON. */
struct past_call {
    struct str tool, class;
    const struct json *args, *result;
    uint32_t turn, ago;
};

#define AT(member) .offset = offsetof(struct past_call, member)

static const struct field call_fields[] = {
    {"tool", FIELD_STRING, "\"list_orders\"", NULL, "The tool. Default: this one.", AT(tool)},
    {"args", FIELD_CUSTOM, "{ page = 1 }", "table", "Its arguments; equal arguments make it the same call.",
     AT(args), VALUE(INPUT, TABLE)},
    {"result", FIELD_CUSTOM, "{ orders = {} }", "any",
     "Its result: another result is progress, and ids in it are known. Default: the same each time.",
     AT(result), VALUE(OUTPUT, ANY)},
    {"class", FIELD_STRING, "\"tool_error\"", "toolgate.Class", "How it ended. Default: ok.", AT(class)},
    {"turn", FIELD_COUNT, "2", NULL, "The user turn. Default: the example's own.", AT(turn)},
    {"ago", FIELD_COUNT, "3600", NULL, "Seconds before the call. Default: one second apart.", AT(ago)},
};
#undef AT

const struct field_table declare_example_call_table = FIELD_TABLE_OF(
    "a call of an example's history", "toolgate.ExampleCall", "One of an example's `history`", call_fields);

static void read_history(struct declaration *d, const struct field *field, int at)
{
    struct past_call call;
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 0;
    if (count > HISTORY_MAX)
        field_error(d, field->name, "'example.history': expected at most %u calls, got %zu", HISTORY_MAX,
                    count);
    for (size_t i = 1; i <= count; i++) {
        const char *name = arena_printf(d->arena, "history[%zu]", i).at;
        table_push_item(d->L, at, i);
        if (!lua_istable(d->L, -1))
            field_mismatch(d, name, -1, "{ tool = \"…\", args = {…}, class = \"…\" }");
        field_read_table(d, lua_gettop(d->L), arena_printf(d->arena, "example.%s", name).at,
                         &declare_example_call_table, 0, &call);
        lua_pop(d->L, 1);
    }
    read_value(d, field, at); /* its row names no schema */
}

#define AT(member) .offset = offsetof(struct policy_example, member)

static const struct field example_fields[] = {
    {"tool", FIELD_STRING, "\"edit_file\"", NULL, "In a policy for several tools: the one that is called.",
     AT(tool)},
    {"args", FIELD_CUSTOM, "{ action = \"list\" }", "any", "What the model sends.", AT(args),
     VALUE(INPUT, ANY)},
    {"seen", FIELD_CUSTOM, "{ \"e1\" }", "(string|number)[]", "Ids that are known already.", AT(seen),
     VALUE(NO_SCHEMA, LIST)},
    {"goal", FIELD_STRING, "\"what is on today?\"", NULL, "What the user asked for.", AT(goal)},
    {"called", FIELD_STRING, "\"get_event\"", NULL, "The alias that is called. Default: the tool's name.",
     AT(called)},
    {"turn", FIELD_COUNT, "3", NULL, "The user turn of the call: call.turn, and the turn that budgets count.",
     AT(turn)},
    {"user", FIELD_STRING, "\"anna\"", NULL,
     "The user of the agent: call.user. A tool that is hidden from this user does not exist in the example.",
     AT(user)},
    {"history", FIELD_CUSTOM, "{ { args = { id = 7 }, class = \"ok\" } }", "toolgate.ExampleCall[]",
     "Earlier calls of this session, oldest first: call.history, and what budgets and loops count.",
     AT(history), READ(read_history), .first = LIST},
    {"facts", FIELD_CUSTOM, "{ orders = 3 }", "table<string, any>", "The value of call.facts.", AT(facts),
     VALUE(INPUT, TABLE)},
    {"context", FIELD_CUSTOM, "{ role = \"guest\" }", "table<string, any>",
     "The value of call.context: what the agent's program says of the request.", AT(context),
     VALUE(NO_SCHEMA, OBJECT)},
    {"result", FIELD_CUSTOM, "{ events = {} }", "any", "The tool's result; the tool does not run.",
     AT(result), VALUE(OUTPUT, ANY)},
    {"gives", FIELD_STRING, "\"refuse fabricated_id\"", NULL,
     "Words that must all match: the verdict, the class, the code.", AT(gives)},
    {"again", FIELD_STRING, "\"refuse same_call\"", NULL,
     "The same words for the same call, made once more directly after it.", AT(again)},
    {"becomes", FIELD_CUSTOM, "{ action = \"list\" }", "table", "The arguments that the tool receives.",
     AT(becomes), VALUE(INPUT, TABLE)},
    {"shows", FIELD_CUSTOM, "{ name = \"Ana\", email = \"[redacted]\" }", "any",
     "The result that the model receives, redacted and compacted.", AT(shows), VALUE(OUTPUT, ANY)},
    {"says", FIELD_STRING, "\"page 2\"", NULL, "Text that the reply to the model must contain.", AT(says)},
    {"status", FIELD_CUSTOM, "\"NEED_USER_INPUT\"", "toolgate.Coverage", "The coverage in the reply.",
     AT(status), READ(read_status)},
};

const struct field_table declare_example_table = FIELD_TABLE_OF(
    "an example", "toolgate.Example", "One of `examples`: first a string that says what it shows, then",
    example_fields, ITEMS("string"));

static void read_example(struct declaration *d, int at, struct policy_example *e)
{
    const char *chunk = sandbox_chunk(d->file.at);
    if (!lua_istable(d->L, at))
        luaL_error(d->L, "%s:%d: example: expected { \"name\", args = { … }, gives = \"…\" }, got a %s",
                   chunk, d->line, luaL_typename(d->L, at));
    e->line = d->line;
    field_read_table(d, at, "example", &declare_example_table, 1, e);
    lua_rawgeti(d->L, at, 1);
    if (lua_type(d->L, -1) != LUA_TSTRING)
        luaL_error(d->L, "%s:%d: example: expected its name first, as in { \"ids are asked for\", args = … }",
                   chunk, d->line);
    e->name = field_string(d, -1);
    lua_pop(d->L, 1);
    bool is_overlay = policy_is_overlay(d->policy); /* then each example names one of its tools */
    if (!is_overlay && e->tool.len)
        luaL_error(d->L, "%s:%d: example '%s': 'tool' is for policies of several tools: remove it", chunk,
                   d->line, e->name.at);
    if (is_overlay && !e->tool.len)
        luaL_error(d->L, "%s:%d: example '%s': expected the tool that it calls, as in tool = \"%s\"", chunk,
                   d->line, e->name.at, d->policy->guards[0].at);
    if (is_overlay && !policy_guards(d->policy, e->tool))
        luaL_error(d->L, "%s:%d: example '%s': no name in 'tools' matches '%s'", chunk, d->line, e->name.at,
                   e->tool.at);
    if (!e->gives.len && !e->says.len && !e->status.len && !e->becomes && !e->again.len)
        luaL_error(d->L, "%s:%d: example '%s': expects nothing: add gives, becomes, says or status", chunk,
                   d->line, e->name.at);
}

/* The arena of the examples is freed once they have run. */
void declare_examples(struct declaration *d, const struct field *field, int at)
{
    struct arena *kept = d->arena;
    d->arena = d->set->examples;
    field_require_table(d, field->name, at, "a list of examples");
    size_t count = lua_objlen(d->L, at);
    if (count > EXAMPLES_MAX)
        field_error(d, field->name, "'examples': expected at most %u, got %zu", EXAMPLES_MAX, count);
    if (table_has_other_key(d->L, at, count)) {
        diagnostics_push_value(d->L, -1); /* an example under a name of its own would never run */
        field_error(d, field->name, "'%s': expected a list { {…}, {…} }, got one with the key %s",
                    field->name, lua_tostring(d->L, -1));
    }
    struct policy_example *list = ARENA_ARRAY(d->arena, struct policy_example, count + 1);
    const int *lines = location_of_items(d->scratch, d->tokens, "examples", count);
    for (size_t i = 0; i < count; i++) {
        table_push_item(d->L, at, i + 1);
        sandbox_check_deadline(d->L);
        d->line = lines[i];
        read_example(d, lua_gettop(d->L), &list[i]);
        lua_pop(d->L, 1);
    }
    d->line = 0;
    d->policy->examples = list;
    d->policy->example_count = count;
    d->arena = kept;
}
