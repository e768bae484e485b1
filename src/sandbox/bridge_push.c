/*
 * From JSON to Lua. A pushed table is recognised by its address until the run
 * ends (bridge_origins.h), which keeps it alive until then.
 */
#include "base/arena.h"
#include "sandbox/bridge_internal.h"

#include <math.h>

#define EXACT_DIGITS 15u /* a number of at most so many characters survives conversion to double */

struct push_state {
    lua_State *L;
    struct bridge_origins *origins; /* NULL: not recorded */
    const struct json *pinned;      /* the caller keeps its table alive */
    bool lazy;
    int base, anchors; /* stack index of the list of anchors: intended; 0: not pushed yet */
};

static void push_value(struct push_state *p, const struct json *v);

/* The fast path for short whole numbers. */
static bool small_integer(const struct json *v, double *out)
{
    size_t i = v->len > 0 && v->text[0] == '-';
    int64_t n = 0;
    if (v->len > EXACT_DIGITS || i == v->len)
        return false;
    for (size_t at = i; at < v->len; at++) {
        if (v->text[at] < '0' || v->text[at] > '9')
            return false;
        n = n * 10 + (v->text[at] - '0');
    }
    *out = (double)(i ? -n : n);
    return true;
}

double bridge_number(const struct json *v)
{
    double n = 0;
    if (!small_integer(v, &n))
        json_double(v, &n);
    return n;
}

/* Records that the table on top was made from this value. */
static void record(struct push_state *p, const struct json *v)
{
    if (!p->origins)
        return;
    const void *table = lua_topointer(p->L, -1);
    if (v == p->pinned) {
        p->origins->pinned = (struct bridge_origin){(uint64_t)(uintptr_t)table, v};
        return;
    }
    if (!p->anchors) { /* below the values being pushed */
        bridge_origins_push_anchors(p->L, p->origins);
        lua_insert(p->L, p->base);
        p->anchors = p->base;
    }
    bridge_origins_add_table(p->origins, table, v);
    lua_pushvalue(p->L, -1);
    lua_rawseti(p->L, p->anchors, (int)p->origins->tables.count);
}

static void push_object(struct push_state *p, const struct json *v)
{
    bool deferred = false;
    lua_createtable(p->L, 0, (int)v->len);
    record(p, v);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *member = &v->members[i];
        if (p->lazy && bridge_is_deferred(&member->value)) {
            deferred = true;
            continue;
        }
        lua_pushlstring(p->L, member->key.at, member->key.len);
        push_value(p, &member->value);
        lua_rawset(p->L, -3);
    }
    if (v->len == 0 || deferred)
        sandbox_set_mark(p->L, deferred ? MARK_LAZY : MARK_OBJECT);
}

static void push_value(struct push_state *p, const struct json *v)
{
    double n;
    switch (v->type) {
    case JSON_BOOL:
        lua_pushboolean(p->L, v->truth);
        break;
    case JSON_NUMBER:
        n = bridge_number(v);
        if (p->origins && (v->len > EXACT_DIGITS || isinf(n)))
            bridge_origins_add_number(p->origins, n, v);
        lua_pushnumber(p->L, n);
        break;
    case JSON_STRING:
        lua_pushlstring(p->L, v->text, v->len);
        break;
    case JSON_ARRAY:
        luaL_checkstack(p->L, 8, "JSON nested too deep");
        lua_createtable(p->L, (int)v->len, 0);
        sandbox_set_mark(p->L, MARK_ARRAY);
        record(p, v);
        for (uint32_t i = 0; i < v->len; i++) {
            push_value(p, &v->items[i]);
            lua_rawseti(p->L, -2, (int)i + 1);
        }
        break;
    case JSON_OBJECT:
        luaL_checkstack(p->L, 8, "JSON nested too deep");
        push_object(p, v);
        break;
    default:
        lua_pushlightuserdata(p->L, NULL);
    }
}

static void push(lua_State *L, const struct json *v, bool pinned)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    struct push_state p = {.L = L,
                           .origins = now->origins,
                           .pinned = pinned ? v : NULL,
                           .lazy = now->lazy && now->origins,
                           .base = lua_gettop(L) + 1};
    if (!v) {
        lua_pushnil(L);
        return;
    }
    push_value(&p, v);
    if (p.anchors)
        lua_remove(L, p.anchors);
}

void bridge_push(lua_State *L, const struct json *v)
{
    push(L, v, false);
}

void bridge_push_pinned(lua_State *L, const struct json *v)
{
    push(L, v, true);
}

const struct json *bridge_origin_of(lua_State *L, int at)
{
    struct bridge_origins *origins = sandbox_context(sandbox_of(L))->origins;
    return origins ? bridge_origins_table(origins, lua_topointer(L, at)) : NULL;
}

void bridge_materialize(lua_State *L, int at)
{
    const struct json *source = bridge_origin_of(L, at);
    if (sandbox_mark(L, at) != MARK_LAZY || !source)
        return;
    for (uint32_t i = 0; i < source->len; i++) {
        const struct json_member *member = &source->members[i];
        if (!bridge_is_deferred(&member->value))
            continue;
        lua_pushlstring(L, member->key.at, member->key.len);
        lua_pushlstring(L, member->value.text, member->value.len);
        lua_rawset(L, at);
    }
    lua_pushnil(L);
    lua_setmetatable(L, at);
}

/* Converts the deferred strings of the table at 1 if `key` is one of them. */
static void materialize_for(lua_State *L, int key)
{
    struct str name;
    if (lua_type(L, key) != LUA_TSTRING)
        return;
    name.at = lua_tolstring(L, key, &name.len);
    const struct json *wanted = json_get(bridge_origin_of(L, 1), name);
    if (wanted && bridge_is_deferred(wanted))
        bridge_materialize(L, 1);
}

/* __index */
static int index_lazy(lua_State *L)
{
    materialize_for(L, 2);
    lua_rawget(L, 1);
    return 1;
}

/* __newindex */
static int newindex_lazy(lua_State *L)
{
    materialize_for(L, 2);
    lua_rawset(L, 1);
    return 0;
}

void bridge_open(lua_State *L)
{
    sandbox_push_mark(L, MARK_LAZY);
    lua_pushcfunction(L, index_lazy);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, newindex_lazy);
    lua_setfield(L, -2, "__newindex");
    lua_pop(L, 1);
}

/* Functions that access fields without naming them. */
static const struct str iterating_functions[] = {STR("pairs"), STR("next"), STR("newest")};

static bool is_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool bridge_needs_eager(struct str source)
{
    const char *end = source.at + source.len;
    for (size_t i = 0; i < sizeof(iterating_functions) / sizeof(iterating_functions[0]); i++) {
        struct str word = iterating_functions[i];
        const char *at = source.at; /* in a comment or a string it counts, too, which is only slower */
        for (; (at = memmem(at, (size_t)(end - at), word.at, word.len)); at += word.len)
            if ((at == source.at || !is_letter(at[-1])) && (at + word.len == end || !is_letter(at[word.len])))
                return true;
    }
    return false;
}
