/* Examples: data that gate/examples.c plays. One that is not read as it was meant would show nothing. */
#include "policy/declare_parts.h"
#include "base/arena.h"
#include "policy/locate.h"
#include "policy/words.h"

#define EXAMPLES_MAX 10000u

static const struct json *example_value(struct declaring *d, int at, const char *name,
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

/* FIELD_TEXT: a text; FIELD_OWN: a table; FIELD_ANY: whatever a tool may be given. */
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
    {.name = "history",
     .kind = FIELD_OWN,
     .form = "{ { tool = \"get\", class = \"success\" } }",
     .type = "table[]",
     .sentence = "What call.history holds."},
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
    .sentence = "One of `examples`: first a text that says what it shows, then",
    FIELD_TABLE(example_fields)};

/* An example that is not read as it was meant would pass without showing anything. */
static void check_example_field(struct declaring *d, const char *name, int line, bool *known)
{
    for (size_t i = 0; i < declare_example_table.count; i++) {
        if (strcmp(name, example_fields[i].name) != 0)
            continue;
        *known = true;
        bool is_text = example_fields[i].kind == FIELD_TEXT;
        if (example_fields[i].kind != FIELD_ANY &&
            lua_type(d->L, -1) != (is_text ? LUA_TSTRING : LUA_TTABLE)) {
            words_push_kind(d->L, -1);
            luaL_error(d->L, "%s:%d: example: '%s': expected %s, got %s", sandbox_chunk(d->file.at), line,
                       name, is_text ? "a text" : "a table", lua_tostring(d->L, -1));
        }
    }
}

static void check_example_names(struct declaring *d, int at, int line)
{
    const char *chunk = sandbox_chunk(d->file.at);
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        bool ok = lua_type(d->L, -2) == LUA_TNUMBER && lua_tonumber(d->L, -2) == 1;
        if (lua_type(d->L, -2) == LUA_TSTRING)
            check_example_field(d, lua_tostring(d->L, -2), line, &ok);
        if (ok)
            continue;
        words_push_kind(d->L, -2);
        luaL_error(d->L,
                   "%s:%d: example: unknown field %s: expected a name, then args, seen, goal, history, "
                   "facts, result, gives, "
                   "becomes, says, status",
                   chunk, line, lua_tostring(d->L, -1));
    }
}

static void read_example(struct declaring *d, int at, size_t n, struct policy_example *e)
{
    const char *chunk = sandbox_chunk(d->file.at);
    e->line = locate_item(d->source, "examples", n);
    if (!lua_istable(d->L, at))
        luaL_error(d->L, "%s:%d: example: expected { \"name\", args = { … }, gives = \"…\" }, got a %s",
                   chunk, e->line, luaL_typename(d->L, at));
    check_example_names(d, at, e->line);
    lua_rawgeti(d->L, at, 1);
    if (lua_type(d->L, -1) != LUA_TSTRING)
        luaL_error(d->L, "%s:%d: example: expected its name first, as in { \"ids are asked for\", args = … }",
                   chunk, e->line);
    e->name = fields_text(d, -1);
    lua_pop(d->L, 1);
    e->args = example_value(d, at, "args", d->policy->schema);
    e->becomes = example_value(d, at, "becomes", d->policy->schema);
    e->result = example_value(d, at, "result", d->policy->output_schema);
    e->seen = example_value(d, at, "seen", NULL);
    e->history = example_value(d, at, "history", NULL);
    e->facts = example_value(d, at, "facts", NULL);
    e->goal = declare_raw_text(d, at, "goal");
    e->gives = declare_raw_text(d, at, "gives");
    e->says = declare_raw_text(d, at, "says");
    e->status = declare_raw_text(d, at, "status");
    if (!e->gives.len && !e->says.len && !e->status.len && !e->becomes)
        luaL_error(d->L,
                   "%s:%d: example '%s': expects nothing: say what it gives, becomes, says or its status",
                   chunk, e->line, e->name.at);
}

/* Examples under names of their own would be no part of the list, and never run. */
static void check_is_list(struct declaring *d, const struct field *field, int at, size_t count)
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

void declare_examples(struct declaring *d, const struct field *field, int at)
{
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 0;
    declare_must_be_table(d, NULL, field->name, at, "a list of examples");
    if (count > EXAMPLES_MAX)
        fields_complain(d, NULL, field->name, "'examples': expected at most %u, got %zu", EXAMPLES_MAX,
                        count);
    check_is_list(d, field, at, count);
    struct policy_example *list = ARENA_ARRAY(d->home->arena, struct policy_example, count + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(d->L, at, (int)i + 1);
        read_example(d, lua_gettop(d->L), i, &list[i]);
        lua_pop(d->L, 1);
    }
    d->policy->examples = list;
    d->policy->example_count = count;
}
