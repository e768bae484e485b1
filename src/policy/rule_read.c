/* Rules from the tables that lua/policy/declare.lua makes of them. Runs inside a protected call. */
#include "base/arena.h"
#include "policy/bridge.h"
#include "policy/rule.h"
#include "policy/rule_words.h"
#include "policy/sandbox.h"

#include <stdlib.h>

#define RULES_MAX 1000u /* a policy; far more than anybody can read */

static size_t raw_field(lua_State *L, int at, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, at);
    return lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
}

static struct str copy_text(lua_State *L, struct arena *arena)
{
    struct str s = {NULL, 0};
    if (lua_type(L, -1) == LUA_TSTRING)
        s.at = lua_tolstring(L, -1, &s.len);
    return s.at ? arena_dup(arena, s) : STR_NONE;
}

/* The list of texts on top. */
static struct rule_names read_names(lua_State *L, struct arena *arena)
{
    size_t count = lua_istable(L, -1) ? lua_objlen(L, -1) : 0;
    struct str *list = ARENA_ARRAY(arena, struct str, count + 1);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, -1, (int)i + 1);
        list[i] = copy_text(L, arena);
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

/* ---- conditions ---------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    struct json left = *(const struct json *)a, right = *(const struct json *)b;
    return str_cmp((struct str){left.text, left.len}, (struct str){right.text, right.len});
}

/* set{…}: its keys, in the order of their texts. */
static size_t read_set(lua_State *L, struct arena *arena, struct json *out)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1); /* reading a key must not turn it into text */
        if (out)
            out[count] = *bridge_read(L, -1, "when", NULL, arena);
        lua_pop(L, 1);
        count++;
    }
    if (out && count && json_is(&out[0], JSON_STRING))
        qsort(out, count, sizeof(*out), by_text);
    return count;
}

/* The value on top: one, or any of a list or set. */
static void read_condition(lua_State *L, struct arena *arena, struct rule_condition *out)
{
    int at = lua_gettop(L);
    bool is_set = sandbox_mark(L, at) == MARK_SET;
    out->count = !lua_istable(L, at) ? 1 : is_set ? read_set(L, arena, NULL) : lua_objlen(L, at);
    struct json *values = ARENA_ARRAY(arena, struct json, out->count + 1);
    if (lua_istable(L, at) && out->count == 0)
        luaL_error(L,
                   "rules: when: '"
                   "%s': expected a value or a list of values, got an empty table",
                   out->path.at);
    for (size_t i = 0; !is_set && i < out->count; i++) {
        if (lua_istable(L, at))
            lua_rawgeti(L, at, (int)i + 1);
        else
            lua_pushvalue(L, at);
        values[i] = *bridge_read(L, -1, "rules: when", NULL, arena);
        lua_pop(L, 1);
    }
    if (is_set)
        read_set(L, arena, values);
    out->values = values;
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct rule_condition *)a)->path, ((const struct rule_condition *)b)->path);
}

static void read_conditions(lua_State *L, int at, struct arena *arena, struct rule *out)
{
    size_t count = 0;
    raw_field(L, at, "condition");
    int when = lua_gettop(L);
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1))
        count++;
    lua_settop(L, when);
    struct rule_condition *list = ARENA_ARRAY(arena, struct rule_condition, count + 1);
    size_t n = 0;
    for (lua_pushnil(L); lua_istable(L, when) && lua_next(L, when); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        list[n].path = copy_text(L, arena);
        lua_pop(L, 1);
        read_condition(L, arena, &list[n++]);
    }
    lua_settop(L, when - 1);
    qsort(list, n, sizeof(*list), by_path);
    out->conditions = list;
    out->condition_count = n;
}

/* ---- a rule ------------------------------------------------------------------------------ */

static void read_defaults(lua_State *L, int at, const struct json *schema, struct arena *arena,
                          struct rule *out)
{
    struct bridge_hints hints = {.schema = schema};
    raw_field(L, at, "values");
    const struct json *defaults = bridge_read(L, -1, "rules: defaults", &hints, arena);
    out->defaults = defaults->type == JSON_OBJECT && defaults->len ? defaults : NULL;
    lua_pop(L, 1);
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
        *fields[i] = copy_text(L, arena);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void read_rule(lua_State *L, int at, const struct json *schema, struct arena *arena, struct rule *out)
{
    raw_field(L, at, "line");
    out->line = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    read_conditions(L, at, arena, out);
    out->needs = read_name_list(L, at, "required", arena);
    out->drops = read_name_list(L, at, "dropped", arena);
    read_defaults(L, at, schema, arena, out);
    out->one_of = read_lists(L, at, "one_of", arena, &out->one_of_count);
    out->exclusive = read_lists(L, at, "at_most_one", arena, &out->exclusive_count);
    read_refusal(L, at, arena, out);
    rule_words_fill(arena, out);
    if (str_eq(out->words, STR_NONE) || (out->when.len && out->words.len == out->when.len + 2))
        luaL_error(
            L, "rules: the rule on line %d demands nothing: add needs, drops, defaults, exclusive or refuses",
            out->line);
}

void rules_read(lua_State *L, int at, const struct json *schema, struct arena *arena, struct rules *out)
{
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
        read_rule(L, lua_gettop(L), schema, arena, &out->list[out->count]);
        lua_pop(L, 1);
    }
}
