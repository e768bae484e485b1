/* Reads rules from the tables that lua/policy/declare.lua and conditions.lua make, inside a protected call.
 */
#include "base/arena.h"
#include "policy/rule.h"
#include "policy/vocabulary.h"
#include "sandbox/bridge.h"
#include "sandbox/bytecode.h"
#include "sandbox/sandbox.h"

#include <stdlib.h>

#define RULES_MAX 1000u /* per policy */

struct rule_reader {
    lua_State *L;
    struct arena *arena;
    struct rules *rules;
};

/* Pushes a field of the table at `at`, past any metatable. */
static void push_field(lua_State *L, int at, const char *name)
{
    lua_pushvalue(L, at);
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

static struct str read_string(const struct rule_reader *r, int at, const char *name)
{
    struct str s = STR_NONE;
    push_field(r->L, at, name);
    if (lua_type(r->L, -1) == LUA_TSTRING) {
        s.at = lua_tolstring(r->L, -1, &s.len);
        s = arena_dup(r->arena, s);
    }
    lua_pop(r->L, 1);
    return s;
}

/* A list, or with `type` JSON_OBJECT an object; NULL if it is empty or anything else. */
static const struct json *read_json(const struct rule_reader *r, int at, const char *name, const char *what,
                                    enum json_type type, const struct json *schema)
{
    struct bridge_hints hints = {.schema = schema};
    int top = lua_gettop(r->L);
    const struct json *value = NULL;
    push_field(r->L, at, name);
    lua_pushnil(r->L);
    if (lua_istable(r->L, -2) && lua_next(r->L, -2)) { /* most are empty */
        lua_pop(r->L, 2);
        value = bridge_read_copy(r->L, -1, what, &hints, r->arena);
    }
    lua_settop(r->L, top);
    return json_is(value, type) && value->len ? value : NULL;
}

/* The same for lists of names. */
static const struct json *read_lists(const struct rule_reader *r, int at, const char *name)
{
    const struct json *lists = read_json(r, at, name, "rules", JSON_ARRAY, NULL);
    for (uint32_t i = 0; i < rule_items(lists); i++)
        if (lists->items[i].type != JSON_ARRAY)
            return NULL;
    return lists;
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
    struct json *values = ARENA_ARRAY(r->arena, struct json, out->count);
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

static void read_bound(struct rule_reader *r, const char *name, const char *open, struct bound *out)
{
    push_field(r->L, -1, name);
    if (!lua_isnil(r->L, -1))
        out->value = bridge_read_copy(r->L, -1, "rules: when", NULL, r->arena);
    if (json_is(out->value, JSON_STRING))
        word_time_parse(json_str(out->value), &out->seconds);
    lua_pop(r->L, 1);
    push_field(r->L, -1, open);
    out->open = lua_toboolean(r->L, -1);
    lua_pop(r->L, 1);
}

/* out->test is the index among the predicates of all rules. */
static void read_predicate(struct rule_reader *r, struct rule_condition *out)
{
    struct rules *rules = r->rules;
    out->words = read_string(r, -1, "words");
    push_field(r->L, -1, "test");
    struct arena *scratch = arena_new();
    out->which = lua_topointer(r->L, -1);
    out->takes_call = bytecode_read(r->L, -1, scratch)->parameters > 2;
    arena_free(scratch);
    out->test = rules->test_count;
    rules->tests = arena_grow(r->arena, rules->tests, rules->test_count, sizeof(*rules->tests));
    rules->tests[rules->test_count++] = luaL_ref(r->L, LUA_REGISTRYINDEX);
}

static void read_condition(struct rule_reader *r, struct rule_condition *out)
{
    static const char *const kinds[] = {
        [COND_NONE_OF] = "none_of", [COND_NUMBERS] = "numbers", [COND_TIMES] = "times",
        [COND_GIVEN] = "given",     [COND_ABSENT] = "absent",   [COND_PREDICATE] = "is"};
    if (!lua_istable(r->L, -1) || sandbox_mark(r->L, -1) != MARK_CONDITION) {
        read_values(r, out);
        return;
    }
    struct str kind = read_string(r, -1, "kind"); /* as lua/policy/conditions.lua names them */
    for (out->kind = COND_NONE_OF; out->kind <= COND_PREDICATE && !str_is(kind, kinds[out->kind]);)
        out->kind++;
    if (out->kind > COND_PREDICATE)
        luaL_error(r->L, "rules: when: '%s': the condition was changed after it was made", out->path.at);
    if (out->kind == COND_NONE_OF) {
        push_field(r->L, -1, "values");
        read_values(r, out);
        lua_pop(r->L, 1);
    } else if (out->kind == COND_NUMBERS || out->kind == COND_TIMES) {
        read_bound(r, "low", "low_open", &out->low);
        read_bound(r, "high", "high_open", &out->high);
    } else if (out->kind == COND_PREDICATE) {
        read_predicate(r, out);
    }
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
    push_field(L, at, "condition");
    int when = lua_gettop(L);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1))
        count++;
    lua_settop(L, when);
    struct rule_condition *list = ARENA_ARRAY(r->arena, struct rule_condition, count);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1)) {
        struct str path = STR_NONE;
        if (lua_type(L, -2) == LUA_TSTRING)
            path.at = lua_tolstring(L, -2, &path.len);
        list[n].path = arena_dup(r->arena, path);
        read_condition(r, &list[n++]);
    }
    lua_settop(L, when - 1);
    qsort(list, n, sizeof(*list), by_cost_and_path);
    out->conditions = list;
    out->condition_count = n;
}

static void read_rule(struct rule_reader *r, int at, const struct json *schema, struct rule *out)
{
    lua_State *L = r->L;
    push_field(L, at, "line");
    out->line = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    read_conditions(r, at, out);
    out->needs = read_json(r, at, "required", "rules", JSON_ARRAY, NULL);
    out->drops = read_json(r, at, "dropped", "rules", JSON_ARRAY, NULL);
    out->defaults = read_json(r, at, "values", "rules: defaults", JSON_OBJECT, schema);
    out->one_of = read_lists(r, at, "one_of");
    out->exclusive = read_lists(r, at, "at_most_one");
    push_field(L, at, "refusal");
    out->refuses = lua_istable(L, -1);
    if (out->refuses) {
        out->code = read_string(r, -1, "code");
        out->message = read_string(r, -1, "message");
        out->hint = read_string(r, -1, "hint");
    }
    lua_pop(L, 1);
    rule_describe(r->arena, out);
    if (!out->words.len || (out->when.len && out->words.len == out->when.len + 2))
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
    out->list = ARENA_ARRAY(arena, struct rule, count);
    out->hits = ARENA_ARRAY(arena, uint64_t, count);
    for (out->count = 0; out->count < count; out->count++) {
        lua_rawgeti(L, at, (int)out->count + 1);
        if (sandbox_mark(L, -1) != MARK_RULE)
            luaL_error(L, "rules: item %d: expected a rule (when { … } : needs \"…\"), got a %s",
                       (int)out->count + 1, luaL_typename(L, -1));
        read_rule(&r, lua_gettop(L), schema, &out->list[out->count]);
        lua_pop(L, 1);
    }
}
