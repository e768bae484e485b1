/* Reads rules from the tables that lua/policy/declare.lua and conditions.lua make, inside a protected call.
 */
#include "base/arena.h"
#include "sandbox/bridge.h"
#include "sandbox/bytecode.h"
#include "policy/rule/rule.h"
#include "policy/rule/rule_describe.h"
#include "sandbox/sandbox.h"
#include "policy/vocabulary/vocabulary.h"

#include <stdlib.h>

#define RULES_MAX 1000u /* per policy */

struct rule_reader {
    lua_State *L;
    struct arena *arena;
    struct rules *rules;
};

static size_t raw_field(lua_State *L, int at, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, at);
    return lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
}

static struct str copy_string(lua_State *L, struct arena *arena)
{
    struct str s = {NULL, 0};
    if (lua_type(L, -1) == LUA_TSTRING)
        s.at = lua_tolstring(L, -1, &s.len);
    return s.at ? arena_dup(arena, s) : STR_NONE;
}

/* The list of strings on top of the stack. */
static struct rule_names read_names(lua_State *L, struct arena *arena)
{
    size_t count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
    struct str *list = ARENA_ARRAY(arena, struct str, count + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        list[i] = copy_string(L, arena);
        lua_pop(L, 1);
    }
    return (struct rule_names){list, count};
}

static struct rule_names *read_lists(lua_State *L, int at, const char *name, struct arena *arena,
                                     size_t *count)
{
    *count = raw_field(L, at, name);
    struct rule_names *lists = ARENA_ARRAY(arena, struct rule_names, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        lists[i] = read_names(L, arena);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return lists;
}

static struct rule_names read_name_list(lua_State *L, int at, const char *name, struct arena *arena)
{
    raw_field(L, at, name);
    struct rule_names names = read_names(L, arena);
    lua_pop(L, 1);
    return names;
}

static int by_text(const void *a, const void *b)
{
    struct json left = *(const struct json *)a, right = *(const struct json *)b;
    return str_cmp((struct str){left.text, left.len}, (struct str){right.text, right.len});
}

/* The keys of set{…}, sorted. */
static size_t read_set(lua_State *L, struct arena *arena, struct json *out)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1); /* lua_tolstring would change the key in place */
        if (out)
            out[count] = *bridge_read_copy(L, -1, "when", NULL, arena);
        lua_pop(L, 1);
        count++;
    }
    if (out && count && json_is(&out[0], JSON_STRING))
        qsort(out, count, sizeof(*out), by_text);
    return count;
}

/* The value on top of the stack: one, or any of a list or set. */
static void read_values(struct rule_reader *r, struct rule_condition *out)
{
    lua_State *L = r->L;
    int at = lua_gettop(L);
    bool is_set = sandbox_mark(L, at) == MARK_SET;
    out->count = !lua_istable(L, at) ? 1 : is_set ? read_set(L, r->arena, NULL) : lua_objlen(L, at);
    struct json *values = ARENA_ARRAY(r->arena, struct json, out->count + 1);
    if (lua_istable(L, at) && out->count == 0)
        luaL_error(L, "rules: when: '%s': expected a value or a list of values, got an empty table",
                   out->path.at);
    for (size_t i = 0; !is_set && i < out->count; i++) {
        if (lua_istable(L, at))
            lua_rawgeti(L, at, (int)i + 1);
        else
            lua_pushvalue(L, at);
        values[i] = *bridge_read_copy(L, -1, "rules: when", NULL, r->arena);
        lua_pop(L, 1);
    }
    if (is_set)
        read_set(L, r->arena, values);
    out->values = values;
}

/* Pushes a field of the condition on top of the stack, past any metatable. */
static void push_field(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, -2);
}

static void read_none_of(struct rule_reader *r, struct rule_condition *out)
{
    push_field(r->L, "values");
    read_values(r, out);
    lua_pop(r->L, 1);
}

static void read_bound(struct rule_reader *r, const char *name, const char *open, struct bound *out)
{
    push_field(r->L, name);
    if (!lua_isnil(r->L, -1))
        out->value = bridge_read_copy(r->L, -1, "rules: when", NULL, r->arena);
    if (json_is(out->value, JSON_STRING))
        word_time_parse(json_str(out->value), &out->seconds);
    lua_pop(r->L, 1);
    push_field(r->L, open);
    out->open = lua_toboolean(r->L, -1);
    lua_pop(r->L, 1);
}

static void read_range(struct rule_reader *r, struct rule_condition *out)
{
    read_bound(r, "low", "low_open", &out->low);
    read_bound(r, "high", "high_open", &out->high);
}

static unsigned count_parameters(lua_State *L, int at)
{
    struct arena *arena = arena_new();
    unsigned count = bytecode_read(L, at, arena)->parameters;
    arena_free(arena);
    return count;
}

/* out->test is the index among the predicates of all rules. */
static void read_is(struct rule_reader *r, struct rule_condition *out)
{
    struct rules *rules = r->rules;
    push_field(r->L, "words");
    out->words = copy_string(r->L, r->arena);
    lua_pop(r->L, 1);
    push_field(r->L, "test");
    out->which = lua_topointer(r->L, -1);
    out->takes_call = count_parameters(r->L, -1) > 2;
    out->test = rules->test_count;
    int *tests = ARENA_ARRAY(r->arena, int, rules->test_count + 1);
    if (rules->test_count)
        memcpy(tests, rules->tests, rules->test_count * sizeof(*tests));
    rules->tests = tests;
    rules->tests[rules->test_count++] = luaL_ref(r->L, LUA_REGISTRYINDEX);
}

/* By their names in lua/policy/conditions.lua. */
static const struct {
    const char *name;
    enum condition_kind kind;
    void (*read)(struct rule_reader *r, struct rule_condition *out); /* NULL: the kind is all */
} kinds[] = {
    {"none_of", COND_NONE_OF, read_none_of}, {"numbers", COND_NUMBERS, read_range},
    {"times", COND_TIMES, read_range},       {"given", COND_GIVEN, NULL},
    {"absent", COND_ABSENT, NULL},           {"is", COND_PREDICATE, read_is},
};

static void read_condition(struct rule_reader *r, struct rule_condition *out)
{
    lua_State *L = r->L;
    if (!lua_istable(L, -1) || sandbox_mark(L, -1) != MARK_CONDITION) {
        read_values(r, out);
        return;
    }
    push_field(L, "kind");
    struct str kind = copy_string(L, r->arena);
    lua_pop(L, 1);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!str_is(kind, kinds[i].name))
            continue;
        out->kind = kinds[i].kind;
        if (kinds[i].read)
            kinds[i].read(r, out);
        return;
    }
    luaL_error(L, "rules: when: '%s': the condition was changed after it was made", out->path.at);
}

/* Predicates last, as they cost most. */
static int by_cost_and_path(const void *a, const void *b)
{
    const struct rule_condition *left = a, *right = b;
    bool left_is = left->kind == COND_PREDICATE, right_is = right->kind == COND_PREDICATE;
    return left_is != right_is ? left_is - right_is : str_cmp(left->path, right->path);
}

static void read_conditions(struct rule_reader *r, int at, struct rule *out)
{
    lua_State *L = r->L;
    size_t count = 0, n = 0;
    raw_field(L, at, "condition");
    int when = lua_gettop(L);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1))
        count++;
    lua_settop(L, when);
    struct rule_condition *list = ARENA_ARRAY(r->arena, struct rule_condition, count + 1);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        list[n].path = copy_string(L, r->arena);
        lua_pop(L, 1);
        read_condition(r, &list[n++]);
    }
    lua_settop(L, when - 1);
    qsort(list, n, sizeof(*list), by_cost_and_path);
    out->conditions = list;
    out->condition_count = n;
}

static void read_refusal(lua_State *L, int at, struct arena *arena, struct rule *out)
{
    static const char *const names[] = {"code", "message", "hint"};
    struct str *fields[] = {&out->code, &out->message, &out->hint};
    raw_field(L, at, "refusal");
    out->refuses = lua_istable(L, -1);
    for (size_t i = 0; out->refuses && i < 3; i++) {
        lua_pushstring(L, names[i]);
        lua_rawget(L, -2);
        *fields[i] = copy_string(L, arena);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void read_rule(struct rule_reader *r, int at, const struct json *schema, struct rule *out)
{
    lua_State *L = r->L;
    struct arena *arena = r->arena;
    raw_field(L, at, "line");
    out->line = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    read_conditions(r, at, out);
    out->needs = read_name_list(L, at, "required", arena);
    out->drops = read_name_list(L, at, "dropped", arena);
    struct bridge_hints hints = {.schema = schema};
    raw_field(L, at, "values");
    const struct json *defaults = bridge_read_copy(L, -1, "rules: defaults", &hints, arena);
    out->defaults = defaults->type == JSON_OBJECT && defaults->len ? defaults : NULL;
    lua_pop(L, 1);
    out->one_of = read_lists(L, at, "one_of", arena, &out->one_of_count);
    out->exclusive = read_lists(L, at, "at_most_one", arena, &out->exclusive_count);
    read_refusal(L, at, arena, out);
    rule_describe(arena, out);
    if (str_eq(out->words, STR_NONE) || (out->when.len && out->words.len == out->when.len + 2))
        luaL_error(
            L, "rules: the rule on line %d demands nothing: add needs, drops, defaults, exclusive or refuses",
            out->line);
}

void rule_read_all(lua_State *L, int at, const struct json *schema, struct arena *arena, struct rules *out)
{
    struct rule_reader r = {L, arena, out};
    *out = (struct rules){0};
    if (lua_isnil(L, at))
        return;
    size_t count = lua_istable(L, at) ? lua_objlen(L, at) : 0;
    if (!lua_istable(L, at) || count > RULES_MAX || sandbox_mark(L, at) == MARK_RULE)
        luaL_error(L, "rules: expected a list of at most %d rules, got %s", (int)RULES_MAX,
                   lua_istable(L, at) ? "one rule (put it in { })" : luaL_typename(L, at));
    out->list = ARENA_ARRAY(arena, struct rule, count + 1);
    out->hits = ARENA_ARRAY(arena, uint64_t, count + 1);
    for (out->count = 0; out->count < count; out->count++) {
        lua_rawgeti(L, at, (int)out->count + 1);
        if (sandbox_mark(L, -1) != MARK_RULE)
            luaL_error(L, "rules: item %d: expected a rule (when { … } : needs \"…\"), got a %s",
                       (int)out->count + 1, luaL_typename(L, -1));
        read_rule(&r, lua_gettop(L), schema, &out->list[out->count]);
        lua_pop(L, 1);
    }
}
