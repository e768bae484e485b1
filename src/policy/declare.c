/* All fields of a policy, each once, in one table; adding one adds a line. */
#include "policy/declare.h"
#include "base/arena.h"
#include "policy/bridge.h"
#include "policy/fields.h"
#include "policy/locate.h"
#include "policy/words.h"

#include <stdlib.h>

#define EXAMPLES_MAX 10000u
#define IDS_MAX      256u

struct policy *declare_blank(struct policies *home, struct str name, struct str file)
{
    struct policy *p = ARENA_NEW(home->arena, struct policy);
    p->name = name;
    p->file = file;
    p->validate = true;
    p->coerce = coerce_all;
    p->repair = p->same_call = p->transient = POLICY_UNSET;
    p->repeats = p->halt = p->across_turns = p->poll_max = POLICY_UNSET;
    p->home = home;
    p->code = ARENA_NEW(home->arena, struct policy_code);
    for (int i = 0; i < HOOK_COUNT; i++)
        p->code->hooks[i].ref = HOOK_NONE;
    return p;
}

/* ---- values ------------------------------------------------------------------------- */

static const struct json *read_json(struct declaring *d, const char *what, int at, const struct json *schema)
{
    struct bridge_hints hints = {.original = word_json_source(d->L, at), .schema = schema};
    return bridge_read(d->L, at, what, &hints, d->home->arena);
}

static void read_schema(struct declaring *d, const struct field *field, int at)
{
    const struct json **into = (const struct json **)((char *)d->policy + field->offset);
    if (lua_isboolean(d->L, at)) {
        *into = read_json(d, field->name, at, NULL);
        return;
    }
    if (!lua_istable(d->L, at) ||
        (sandbox_mark(d->L, at) != MARK_NONE && sandbox_mark(d->L, at) != MARK_OBJECT))
        fields_wrong(d, NULL, field->name, at, "json \"file\", json [[{…}]] or params { … }");
    *into = read_json(d, field->name, at, NULL);
}

static void read_object(struct declaring *d, const struct field *field, int at)
{
    if (!lua_istable(d->L, at))
        fields_wrong(d, NULL, field->name, at, "{ name = value }");
    *(const struct json **)((char *)d->policy + field->offset) = read_json(d, field->name, at, NULL);
}

/* ---- functions ------------------------------------------------------------------------ */

static struct policy_hook_code keep_function(struct declaring *d, const char *name, int at)
{
    lua_Debug where = {0};
    if (!lua_isfunction(d->L, at) || lua_iscfunction(d->L, at))
        fields_wrong(d, NULL, name, at, "a function");
    lua_pushvalue(d->L, at);
    lua_getinfo(d->L, ">S", &where);
    lua_pushvalue(d->L, at);
    return (struct policy_hook_code){.ref = luaL_ref(d->L, LUA_REGISTRYINDEX), .line = where.linedefined};
}

static void read_hook(struct declaring *d, const struct field *field, int at)
{
    d->policy->code->hooks[field->from] = keep_function(d, field->name, at);
    d->policy->hooks[field->from] = true;
}

/* ---- tables within ----------------------------------------------------------------------- */

static void must_be_table(struct declaring *d, const char *parent, const char *name, int at,
                          const char *expected)
{
    if (!lua_istable(d->L, at) || sandbox_mark(d->L, at) != MARK_NONE)
        fields_wrong(d, parent, name, at, expected);
}

static void read_retry(struct declaring *d, const struct field *field, int at)
{
    static const struct field fields[] = {
        {.name = "repair", .kind = FIELD_COUNT, .offset = offsetof(struct policy, repair)},
        {.name = "same_call", .kind = FIELD_COUNT, .offset = offsetof(struct policy, same_call)},
        {.name = "transient", .kind = FIELD_COUNT, .offset = offsetof(struct policy, transient)},
    };
    must_be_table(d, NULL, field->name, at, "{ repair = 2, same_call = 3 }");
    fields_read(d, at, field->name, fields, sizeof(fields) / sizeof(fields[0]), d->policy);
}

/* poll = true, or poll = { max = 20 } */
static void read_poll(struct declaring *d, const struct field *field, int at)
{
    static const struct field fields[] = {
        {.name = "max", .kind = FIELD_COUNT, .offset = offsetof(struct policy, poll_max)},
        {.name = "every",
         .kind = FIELD_ABSENT,
         .choices = "a pause between polls is not served by this version: remove it; max bounds how often"},
    };
    d->policy->polls = true;
    if (lua_isboolean(d->L, at)) {
        d->policy->polls = lua_toboolean(d->L, at);
        return;
    }
    must_be_table(d, "loop", field->name, at, "true or { max = 20 }");
    fields_read(d, at, "poll", fields, sizeof(fields) / sizeof(fields[0]), d->policy);
}

static void read_loop(struct declaring *d, const struct field *field, int at)
{
    static const struct field fields[] = {
        {.name = "repeats", .kind = FIELD_COUNT, .offset = offsetof(struct policy, repeats)},
        {.name = "halt", .kind = FIELD_COUNT, .offset = offsetof(struct policy, halt)},
        {.name = "across_turns", .kind = FIELD_COUNT, .offset = offsetof(struct policy, across_turns)},
        {.name = "volatile", .kind = FIELD_TEXTS, .offset = offsetof(struct policy, volatiles)},
        {.name = "poll", .kind = FIELD_OWN, .read = read_poll},
    };
    must_be_table(d, NULL, field->name, at, "{ repeats = 3 }");
    fields_read(d, at, field->name, fields, sizeof(fields) / sizeof(fields[0]), d->policy);
}

/* coerce = false, or { strings = false }: what is not named stays on. */
static void read_coerce(struct declaring *d, const struct field *field, int at)
{
#define SWITCH(which)                                                                                        \
    {                                                                                                        \
        .name = #which, .kind = FIELD_FLAG, .offset = offsetof(struct coerce_switches, which)                \
    }
    static const struct field fields[] = {SWITCH(json),  SWITCH(strings), SWITCH(lists),
                                          SWITCH(nulls), SWITCH(enums),   SWITCH(floats)};
#undef SWITCH
    if (lua_isboolean(d->L, at)) {
        if (!lua_toboolean(d->L, at))
            d->policy->coerce = (struct coerce_switches){0};
        return;
    }
    must_be_table(d, NULL, field->name, at, "true, false or { strings = false }");
    fields_read(d, at, field->name, fields, sizeof(fields) / sizeof(fields[0]), &d->policy->coerce);
}

static void read_on_error(struct declaring *d, const struct field *field, int at)
{
    const char *given = lua_type(d->L, at) == LUA_TSTRING ? lua_tostring(d->L, at) : "";
    if (strcmp(given, "open") != 0 && strcmp(given, "closed") != 0)
        fields_wrong(d, NULL, field->name, at, "\"closed\" or \"open\"");
    d->policy->fails_open = strcmp(given, "open") == 0;
}

/* ---- ids ------------------------------------------------------------------------------------ */

static struct str raw_text(struct declaring *d, int at, const char *name)
{
    struct str s = STR_NONE;
    lua_pushstring(d->L, name);
    lua_rawget(d->L, at);
    if (lua_type(d->L, -1) == LUA_TSTRING)
        s = fields_text(d, -1);
    lua_pop(d->L, 1);
    return s;
}

/* A bare shape or seen, or a bare word: `ids = { id = seen }` lacks its parentheses. */
static void read_id(struct declaring *d, struct policy_id *id)
{
    int at = lua_gettop(d->L);
    if (lua_type(d->L, at - 1) != LUA_TSTRING)
        fields_wrong(d, NULL, "ids", at, "{ argument = seen() or shape \"uuid\" }");
    id->path = fields_text(d, at - 1);
    if (sandbox_mark(d->L, at) != MARK_ID)
        fields_wrong(d, "ids", id->path.at, at, "seen(), seen { … } or shape \"…\"");
    id->shape = raw_text(d, at, "shape");
    id->look_up = raw_text(d, at, "look_up");
    lua_pushliteral(d->L, "seen");
    lua_rawget(d->L, at);
    id->seen = lua_toboolean(d->L, -1);
    lua_pop(d->L, 1);
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct policy_id *)a)->path, ((const struct policy_id *)b)->path);
}

static void read_ids(struct declaring *d, const struct field *field, int at)
{
    struct policy_id *ids = ARENA_ARRAY(d->home->arena, struct policy_id, IDS_MAX);
    must_be_table(d, NULL, field->name, at, "{ argument = seen() }");
    for (lua_pushnil(d->L); lua_next(d->L, at); lua_pop(d->L, 1)) {
        if (d->policy->id_count == IDS_MAX)
            fields_complain(d, NULL, field->name, "'ids': expected at most %u arguments", IDS_MAX);
        read_id(d, &ids[d->policy->id_count++]);
    }
    qsort(ids, d->policy->id_count, sizeof(*ids), by_path);
    d->policy->ids = ids;
}

/* ---- rules ------------------------------------------------------------------------------------ */

static void read_rules(struct declaring *d, const struct field *field, int at)
{
    struct rules *rules = &d->policy->code->rules;
    (void)field;
    rules_read(d->L, at, d->policy->schema, d->home->arena, rules);
    struct str *words = ARENA_ARRAY(d->home->arena, struct str, rules->count + 1);
    for (size_t i = 0; i < rules->count; i++) {
        words[i] = rules->list[i].words;
        d->policy->hooks[HOOK_CHECK] |= rules->list[i].refuses; /* a rule that refuses speaks in that stage */
    }
    d->policy->rule_words = words;
    d->policy->rule_count = rules->count;
}

/* ---- examples ------------------------------------------------------------------------------------ */

static const struct json *example_value(struct declaring *d, int at, const char *name,
                                        const struct json *schema)
{
    const struct json *value = NULL;
    lua_pushstring(d->L, name);
    lua_rawget(d->L, at);
    if (!lua_isnil(d->L, -1))
        value = read_json(d, name, lua_gettop(d->L), schema);
    lua_pop(d->L, 1);
    return value;
}

/* What an example may hold beside its name: a text, a table, or (0) whatever a tool may be given. */
static const struct {
    const char *name;
    int type;
} example_fields[] = {
    {"args", 0},           {"result", 0},           {"seen", LUA_TTABLE},  {"history", LUA_TTABLE},
    {"facts", LUA_TTABLE}, {"becomes", LUA_TTABLE}, {"goal", LUA_TSTRING}, {"gives", LUA_TSTRING},
    {"says", LUA_TSTRING}, {"status", LUA_TSTRING},
};

/* An example that is not read as it was meant would pass without showing anything. */
static void check_example_field(struct declaring *d, const char *name, int line, bool *known)
{
    for (size_t i = 0; i < sizeof(example_fields) / sizeof(example_fields[0]); i++) {
        if (strcmp(name, example_fields[i].name) != 0)
            continue;
        *known = true;
        if (example_fields[i].type && lua_type(d->L, -1) != example_fields[i].type) {
            words_push_kind(d->L, -1);
            luaL_error(d->L, "%s:%d: example: '%s': expected %s, got %s", sandbox_chunk(d->file.at), line,
                       name, example_fields[i].type == LUA_TSTRING ? "a text" : "a table",
                       lua_tostring(d->L, -1));
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
    e->goal = raw_text(d, at, "goal");
    e->gives = raw_text(d, at, "gives");
    e->says = raw_text(d, at, "says");
    e->status = raw_text(d, at, "status");
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

static void read_examples(struct declaring *d, const struct field *field, int at)
{
    size_t count = lua_istable(d->L, at) ? lua_objlen(d->L, at) : 0;
    must_be_table(d, NULL, field->name, at, "a list of examples");
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

/* ---- all of them ------------------------------------------------------------------------------------ */

#define AT(member)    .offset = offsetof(struct policy, member)
#define GIVEN(member) .given = offsetof(struct policy, member) + 1

static const struct field policy_fields[] = {
    {.name = "title", .kind = FIELD_TEXT, AT(title)},
    {.name = "description", .kind = FIELD_TEXT, AT(description)},
    {.name = "use_when", .kind = FIELD_TEXT, AT(use_when)},
    {.name = "avoid_when", .kind = FIELD_TEXT, AT(avoid_when)},
    {.name = "upstream",
     .kind = FIELD_ABSENT,
     .choices = "upstreams are not served by this version: give the tool a run(args, call), or leave both "
                "out and let the "
                "agent run it itself"},
    {.name = "exec",
     .kind = FIELD_ABSENT,
     .choices = "commands are not served by this version: give the tool a run(args, call)"},
    {.name = "compact",
     .kind = FIELD_ABSENT,
     .choices = "compaction of results is not served by this version: remove it"},
    {.name = "limits",
     .kind = FIELD_ABSENT,
     .choices = "limits by cost, time or number a turn are not served by this version: retry and loop are"},
    {.name = "schema", .kind = FIELD_OWN, AT(schema), .read = read_schema},
    {.name = "output_schema", .kind = FIELD_OWN, AT(output_schema), .read = read_schema},
    {.name = "annotations", .kind = FIELD_OWN, AT(annotations), .read = read_object},
    {.name = "effects",
     .kind = FIELD_CHOICE,
     AT(effects),
     .choices = "read write destructive toggle",
     .from = EFFECTS_READ},
    {.name = "mode",
     .kind = FIELD_CHOICE,
     AT(mode),
     .choices = "enforce shadow off",
     .from = POLICY_ENFORCE,
     GIVEN(mode_given)},
    {.name = "unknown",
     .kind = FIELD_CHOICE,
     AT(unknown),
     .choices = "pass drop refuse",
     .from = UNKNOWN_PASS,
     GIVEN(unknown_given)},
    {.name = "validate", .kind = FIELD_FLAG, AT(validate)},
    {.name = "final", .kind = FIELD_FLAG, AT(final)},
    {.name = "on_policy_error", .kind = FIELD_OWN, .read = read_on_error},
    {.name = "coerce", .kind = FIELD_OWN, .read = read_coerce, GIVEN(coerce_given)},
    {.name = "retry", .kind = FIELD_OWN, .read = read_retry},
    {.name = "loop", .kind = FIELD_OWN, .read = read_loop},
    {.name = "ids", .kind = FIELD_OWN, .read = read_ids},
    {.name = "gives_ids", .kind = FIELD_TEXTS, AT(gives_ids)},
    {.name = "rules", .kind = FIELD_OWN, .read = read_rules},
    {.name = "prepare", .kind = FIELD_OWN, .read = read_hook, .from = HOOK_PREPARE},
    {.name = "normalise", .kind = FIELD_OWN, .read = read_hook, .from = HOOK_NORMALISE},
    {.name = "check", .kind = FIELD_OWN, .read = read_hook, .from = HOOK_CHECK},
    {.name = "run", .kind = FIELD_OWN, .read = read_hook, .from = HOOK_RUN},
    {.name = "result", .kind = FIELD_OWN, .read = read_hook, .from = HOOK_RESULT},
    {.name = "examples", .kind = FIELD_OWN, .read = read_examples},
};

static void read_tool(struct declaring *d, int fields)
{
    fields_read(d, fields, NULL, policy_fields, sizeof(policy_fields) / sizeof(policy_fields[0]), d->policy);
    d->policy->wants_history = locate_mentions(d->source, "history");
    d->policy->wants_facts = locate_mentions(d->source, "facts");
}

static void read_prepare_tools(struct declaring *d, const struct field *field, int at)
{
    d->home->prepare_tools = keep_function(d, field->name, at);
}

static void read_gateway(struct declaring *d, int fields)
{
    static const struct field known[] = {
        {.name = "instructions", .kind = FIELD_TEXT, .offset = offsetof(struct policies, instructions)},
        {.name = "prepare_tools", .kind = FIELD_OWN, .read = read_prepare_tools},
    };
    if (d->home->gateway_file.len)
        luaL_error(d->L, "%s: a second gateway { … }: the first is in %s", sandbox_chunk(d->file.at),
                   d->home->gateway_file.at);
    fields_read(d, fields, NULL, known, sizeof(known) / sizeof(known[0]), d->home);
    d->home->gateway_file = d->file;
}

void declare_read(struct declaring *d, int at)
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
    d->policy = declare_blank(d->home, fields_text(d, -1), d->file);
    read_tool(d, fields);
}
