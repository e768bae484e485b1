/* Examples: data that gate/examples.c plays. One that is not read as it was meant would show nothing. */
#include "policy/declare/declare_internal.h"
#include "base/arena.h"
#include "policy/source_location.h"
#include "policy/vocabulary/vocabulary.h"
#include "base/suggest.h"

#include <stdlib.h>

#define EXAMPLES_MAX 10000u
#define HISTORY_MAX  100u /* calls before one example; the ledger remembers 32 */

/* FIELD_TEXT: a text; FIELD_COUNT: a whole number; FIELD_OWN: a table; FIELD_ANY: whatever a tool may be
 * given. */
static const struct field example_fields[] = {
    {.name = "args", .kind = FIELD_ANY, .form = "{ action = \"list\" }", .sentence = "What the model sends."},
    {.name = "seen",
     .kind = FIELD_OWN,
     .form = "{ \"e1\" }",
     .type = "(string|number)[]",
     .sentence = "Ids that are known already."},
    {.name = "goal",
     .kind = FIELD_TEXT,
     .form = "\"what is on today?\"",
     .sentence = "What the user asked for."},
    {.name = "called",
     .kind = FIELD_TEXT,
     .form = "\"get_event\"",
     .sentence = "The name of `aliases` that it is called by; the tool's own where left out."},
    {.name = "turn",
     .kind = FIELD_COUNT,
     .form = "3",
     .sentence = "The user turn that the call belongs to: call.turn, and where budgets by turn begin anew."},
    {.name = "user",
     .kind = FIELD_TEXT,
     .form = "\"anna\"",
     .sentence =
         "Who the agent works as: call.user. Where it is told, a tool hidden from this user does not exist."},
    {.name = "history",
     .kind = FIELD_OWN,
     .form = "{ { args = { id = 7 }, class = \"ok\" } }",
     .type = "toolgate.ExampleCall[]",
     .sentence = "Calls of this session before this one, oldest first: call.history, and what budgets and "
                 "loops count."},
    {.name = "facts",
     .kind = FIELD_OWN,
     .form = "{ orders = 3 }",
     .type = "table<string, any>",
     .sentence = "What call.facts holds."},
    {.name = "result",
     .kind = FIELD_ANY,
     .form = "{ events = {} }",
     .sentence = "What the tool gives, instead of running it."},
    {.name = "gives",
     .kind = FIELD_TEXT,
     .form = "\"refuse fabricated_id\"",
     .sentence = "Words that all must fit: the verdict, the class, the code."},
    {.name = "becomes",
     .kind = FIELD_OWN,
     .form = "{ action = \"list\" }",
     .type = "table",
     .sentence = "The arguments as the tool gets them."},
    {.name = "shows",
     .kind = FIELD_ANY,
     .form = "{ name = \"Ana\", email = \"[redacted]\" }",
     .sentence = "The result as the model gets it: redacted, and shortened where it is too large."},
    {.name = "says",
     .kind = FIELD_TEXT,
     .form = "\"page 2\"",
     .sentence = "A text that the model must read."},
    {.name = "status",
     .kind = FIELD_TEXT,
     .form = "\"NEED_USER_INPUT\"",
     .type = "toolgate.Coverage",
     .sentence = "The coverage that the reply tells."},
};

const struct field_table declare_example_table = {
    .of = "an example",
    .type = "toolgate.Example",
    .items = {"string"},
    .sentence = "One of `examples`: first a text that says what it shows, then",
    FIELD_TABLE(example_fields)};

static const struct field call_fields[] = {
    {.name = "tool",
     .kind = FIELD_TEXT,
     .form = "\"list_orders\"",
     .sentence = "The tool; this one where left out."},
    {.name = "args",
     .kind = FIELD_OWN,
     .form = "{ page = 1 }",
     .type = "table",
     .sentence = "What it was called with: the same again is one call repeated."},
    {.name = "result",
     .kind = FIELD_ANY,
     .form = "{ orders = {} }",
     .sentence = "What it gave: another result is progress, and ids in it are known; where left out, the "
                 "same each time."},
    {.name = "class",
     .kind = FIELD_TEXT,
     .form = "\"tool_error\"",
     .type = "toolgate.Class",
     .sentence = "How it ended; ok where left out."},
    {.name = "turn",
     .kind = FIELD_COUNT,
     .form = "2",
     .sentence = "The user turn; the example's own where left out."},
    {.name = "ago",
     .kind = FIELD_COUNT,
     .form = "3600",
     .sentence = "Seconds before the call; one apart where left out."},
};

const struct field_table declare_example_call_table = {.of = "a call of an example's history",
                                                       .type = "toolgate.ExampleCall",
                                                       .sentence = "One of an example's `history`",
                                                       FIELD_TABLE(call_fields)};

/* Where in an example the reader is: what its complaints begin with. */
struct place {
    struct declaration *d;
    int line;
    const char *what; /* "example", "example: history[2]" */
};

static void complain(const struct place *p, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
static void complain(const struct place *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str text = arena_vprintf(p->d->arena, format, args);
    va_end(args);
    luaL_error(p->d->L, "%s:%d: %s: %s", sandbox_chunk(p->d->file.at), p->line, p->what, text.at);
    abort(); /* luaL_error never returns */
}

static bool has_kind(lua_State *L, const struct field *field)
{
    int type = lua_type(L, -1);
    double n = type == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
    switch (field->kind) {
    case FIELD_TEXT:
        return type == LUA_TSTRING;
    case FIELD_COUNT:
        return n >= 0 && n <= UINT32_MAX && n == (double)(uint32_t)n;
    case FIELD_OWN:
        return type == LUA_TTABLE;
    default:
        return true;
    }
}

static void check_kind(const struct place *p, const struct field *field)
{
    const char *expected = field->kind == FIELD_TEXT    ? "a text"
                           : field->kind == FIELD_COUNT ? "a whole number from 0"
                                                        : "a table";
    if (has_kind(p->d->L, field))
        return;
    words_push_kind(p->d->L, -1);
    complain(p, "'%s': expected %s, got %s", field->name, expected, lua_tostring(p->d->L, -1));
}

static void unknown_field(const struct place *p, const struct field_table *table, const char *first)
{
    struct str names[32], meant = STR_NONE;
    struct buf list = buf_in(p->d->arena);
    for (size_t i = 0; i < table->count; i++) {
        names[i] = str_of(table->fields[i].name);
        buf_printf(&list, "%s%s", i ? ", " : "", table->fields[i].name);
    }
    if (lua_type(p->d->L, -2) == LUA_TSTRING)
        meant = suggest_closest(str_of(lua_tostring(p->d->L, -2)), names, table->count);
    words_push_kind(p->d->L, -2);
    const char *name = lua_tostring(p->d->L, -1);
    if (meant.len)
        complain(p, "unknown field %s (did you mean '" STR_FMT "'?)", name, STR_ARG(meant));
    complain(p, "unknown field %s: expected %s" STR_FMT, name, first, STR_ARG(buf_view(&list)));
}

/* What is not read as it was meant would pass without showing anything. `named`: a text comes first. */
static void check_fields(const struct place *p, int at, const struct field_table *table, bool named)
{
    lua_State *L = p->d->L;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        const struct field *known = NULL;
        if (named && lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == 1)
            continue;
        for (size_t i = 0; i < table->count && !known && lua_type(L, -2) == LUA_TSTRING; i++)
            if (strcmp(lua_tostring(L, -2), table->fields[i].name) == 0)
                known = &table->fields[i];
        if (!known)
            unknown_field(p, table, named ? "a name, then " : "");
        else
            check_kind(p, known);
    }
}

static void check_history(const struct place *example, int at)
{
    lua_State *L = example->d->L;
    lua_pushliteral(L, "history");
    lua_rawget(L, at);
    int list = lua_gettop(L);
    size_t count = lua_istable(L, list) ? lua_objlen(L, list) : 0;
    if (count > HISTORY_MAX)
        complain(example, "'history': expected at most %u calls, got %zu", HISTORY_MAX, count);
    for (size_t i = 1; i <= count; i++) {
        struct place p = {example->d, example->line,
                          arena_printf(example->d->arena, "example: history[%zu]", i).at};
        lua_rawgeti(L, list, (int)i);
        if (!lua_istable(L, -1))
            complain(&p, "expected { tool = \"…\", args = {…}, class = \"…\" }, got a %s",
                     luaL_typename(L, -1));
        check_fields(&p, lua_gettop(L), &declare_example_call_table, false);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static const struct json *example_value(struct declaration *d, int at, const char *name,
                                        const struct json *schema)
{
    const struct json *value = NULL;
    lua_pushstring(d->L, name);
    lua_rawget(d->L, at);
    if (!lua_isnil(d->L, -1))
        value = declare_json(d, name, lua_gettop(d->L), schema);
    lua_pop(d->L, 1);
    return value;
}

static uint32_t example_count(struct declaration *d, int at, const char *name)
{
    lua_pushstring(d->L, name);
    lua_rawget(d->L, at);
    uint32_t count = (uint32_t)lua_tonumber(d->L, -1);
    lua_pop(d->L, 1);
    return count;
}

static void read_fields(struct declaration *d, int at, struct policy_example *e)
{
    e->args = example_value(d, at, "args", d->policy->schema);
    e->becomes = example_value(d, at, "becomes", d->policy->schema);
    e->shows = example_value(d, at, "shows", d->policy->output_schema);
    e->result = example_value(d, at, "result", d->policy->output_schema);
    e->seen = example_value(d, at, "seen", NULL);
    e->history = example_value(d, at, "history", NULL);
    e->facts = example_value(d, at, "facts", NULL);
    e->turn = example_count(d, at, "turn");
    e->user = declare_raw_text(d, at, "user");
    e->goal = declare_raw_text(d, at, "goal");
    e->called = declare_raw_text(d, at, "called");
    e->gives = declare_raw_text(d, at, "gives");
    e->says = declare_raw_text(d, at, "says");
    e->status = declare_raw_text(d, at, "status");
}

static void check_list(const struct place *p, const char *name, const struct json *value)
{
    if (value && value->type != JSON_ARRAY && value->len)
        complain(p, "'%s': expected a list, got a table with names", name);
}

static void read_example(struct declaration *d, int at, size_t n, struct policy_example *e)
{
    struct place p = {d, locate_item(d->source, "examples", n), "example"};
    e->line = p.line;
    if (!lua_istable(d->L, at))
        complain(&p, "expected { \"name\", args = { … }, gives = \"…\" }, got a %s", luaL_typename(d->L, at));
    check_fields(&p, at, &declare_example_table, true);
    check_history(&p, at);
    lua_rawgeti(d->L, at, 1);
    if (lua_type(d->L, -1) != LUA_TSTRING)
        complain(&p, "expected its name first, as in { \"ids are asked for\", args = … }");
    e->name = fields_text(d, -1);
    lua_pop(d->L, 1);
    read_fields(d, at, e);
    p.what = arena_printf(d->arena, "example '" STR_FMT "'", STR_ARG(e->name)).at;
    check_list(&p, "seen", e->seen);
    check_list(&p, "history", e->history);
    if (!e->gives.len && !e->says.len && !e->status.len && !e->becomes)
        complain(&p, "expects nothing: say what it gives, becomes, says or its status");
}

/* Examples under names of their own would be no part of the list, and never run. */
static void check_is_list(struct declaration *d, const struct field *field, int at, size_t count)
{
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        double key = lua_type(d->L, -2) == LUA_TNUMBER ? lua_tonumber(d->L, -2) : 0;
        if (key >= 1 && key <= (double)count)
            continue;
        words_push_kind(d->L, -2);
        fields_complain(d, NULL, field->name, "'%s': expected a list { {…}, {…} }, got one with the key %s",
                        field->name, lua_tostring(d->L, -1));
    }
}

/* They are wanted until they have been tried, and lie where they can be let go of. */
void declare_examples(struct declaration *d, const struct field *field, int at)
{
    struct arena *kept = d->arena;
    d->arena = d->set->examples;
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 0;
    declare_must_be_table(d, NULL, field->name, at, "a list of examples");
    if (count > EXAMPLES_MAX)
        fields_complain(d, NULL, field->name, "'examples': expected at most %u, got %zu", EXAMPLES_MAX,
                        count);
    check_is_list(d, field, at, count);
    struct policy_example *list = ARENA_ARRAY(d->arena, struct policy_example, count + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(d->L, at, (int)i + 1);
        read_example(d, lua_gettop(d->L), i, &list[i]);
        lua_pop(d->L, 1);
    }
    d->policy->examples = list;
    d->policy->example_count = count;
    d->arena = kept;
}
