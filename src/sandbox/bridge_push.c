/*
 * Out. A table that went over is known by its identity until the run ends
 * (bridge_origins.h); so that no other table gets its address meanwhile, all
 * of them are anchored in one list, which the next run overwrites.
 */
#include "base/arena.h"
#include "sandbox/bridge_internal.h"

#include <math.h>

#define EXACT_DIGITS  15u /* a number of at most so many characters is one double and back */
#define ANCHORS_FIRST 32
#define ANCHORS_KEPT  256 /* a longer list is left to the collector */

static const char anchors_key; /* its address names the list in the registry */

struct pushing {
    lua_State *L;
    struct bridge_origins *origins; /* NULL: nobody reads it back */
    const struct json *kept;        /* its table is kept alive by the caller */
    bool lazy;
    int base, anchors; /* where the list of anchors goes; 0: not there yet */
};

static void push_value(struct pushing *p, const struct json *v);

/* ---- numbers ---------------------------------------------------------------------------- */

/* Short whole numbers without a detour: most numbers are. */
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

static void push_number(struct pushing *p, const struct json *v)
{
    double n = bridge_number(v);
    if (p->origins && (v->len > EXACT_DIGITS || isinf(n)))
        bridge_origins_add_number(p->origins, n, v);
    lua_pushnumber(p->L, n);
}

/* ---- tables ------------------------------------------------------------------------------- */

/* Puts the list of anchors below what is being pushed. */
static void fetch_anchors(struct pushing *p)
{
    lua_State *L = p->L;
    lua_pushlightuserdata(L, (void *)&anchors_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1) || (!p->origins->anchored && lua_objlen(L, -1) > ANCHORS_KEPT)) {
        lua_pop(L, 1);
        lua_createtable(L, ANCHORS_FIRST, 0);
        lua_pushlightuserdata(L, (void *)&anchors_key);
        lua_pushvalue(L, -2);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    p->origins->anchored = true;
    lua_insert(L, p->base);
    p->anchors = p->base;
}

/* The table on top came from this value. */
static void remember(struct pushing *p, const struct json *v)
{
    if (!p->origins)
        return;
    const void *table = lua_topointer(p->L, -1);
    if (v == p->kept) {
        p->origins->kept = (struct bridge_origin){(uint64_t)(uintptr_t)table, v};
        return;
    }
    if (!p->anchors)
        fetch_anchors(p);
    bridge_origins_add_table(p->origins, table, v);
    lua_pushvalue(p->L, -1);
    lua_rawseti(p->L, p->anchors, (int)p->origins->tables.count);
}

static void push_array(struct pushing *p, const struct json *v)
{
    lua_createtable(p->L, (int)v->len, 0);
    sandbox_set_mark(p->L, MARK_ARRAY);
    remember(p, v);
    for (uint32_t i = 0; i < v->len; i++) {
        push_value(p, &v->items[i]);
        lua_rawseti(p->L, -2, (int)i + 1);
    }
}

static void push_member(lua_State *L, struct pushing *p, const struct json_member *member)
{
    lua_pushlstring(L, member->key.at, member->key.len);
    push_value(p, &member->value);
    lua_rawset(L, -3);
}

static void push_object(struct pushing *p, const struct json *v)
{
    bool waits = false;
    lua_createtable(p->L, 0, (int)v->len);
    remember(p, v);
    for (uint32_t i = 0; i < v->len; i++) {
        if (p->lazy && bridge_is_deferred(&v->members[i].value))
            waits = true;
        else
            push_member(p->L, p, &v->members[i]);
    }
    if (v->len == 0 || waits)
        sandbox_set_mark(p->L, waits ? MARK_LAZY : MARK_OBJECT);
}

static void push_value(struct pushing *p, const struct json *v)
{
    switch (v->type) {
    case JSON_BOOL:
        lua_pushboolean(p->L, v->truth);
        break;
    case JSON_NUMBER:
        push_number(p, v);
        break;
    case JSON_STRING:
        lua_pushlstring(p->L, v->text, v->len);
        break;
    case JSON_ARRAY:
        luaL_checkstack(p->L, 8, "JSON nested too deep");
        push_array(p, v);
        break;
    case JSON_OBJECT:
        luaL_checkstack(p->L, 8, "JSON nested too deep");
        push_object(p, v);
        break;
    default:
        lua_pushlightuserdata(p->L, NULL);
    }
}

static void push(lua_State *L, const struct json *v, bool kept)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    struct pushing p = {.L = L,
                        .origins = now->origins,
                        .kept = kept ? v : NULL,
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

void bridge_release(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&anchors_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

/* ---- tables that wait for a reader ----------------------------------------------------------- */

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

/* If the key is one of those left out. */
static void fill(lua_State *L, int key)
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
static int read_waiting(lua_State *L)
{
    fill(L, 2);
    lua_rawget(L, 1);
    return 1;
}

/* __newindex */
static int write_waiting(lua_State *L)
{
    fill(L, 2);
    lua_rawset(L, 1);
    return 0;
}

void bridge_open(lua_State *L)
{
    sandbox_push_mark(L, MARK_LAZY);
    lua_pushcfunction(L, read_waiting);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, write_waiting);
    lua_setfield(L, -2, "__newindex");
    lua_pop(L, 1);
}

/* Words of Lua that find keys which nobody names. */
static const struct str walkers[] = {STR("pairs"), STR("next")};

static bool is_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* As a word of its own; in a comment or a text, too, which does no harm. */
static bool mentions(struct str source, struct str word)
{
    const char *end = source.at + source.len, *at = source.at;
    for (; (at = memmem(at, (size_t)(end - at), word.at, word.len)); at += word.len)
        if ((at == source.at || !is_letter(at[-1])) && (at + word.len == end || !is_letter(at[word.len])))
            return true;
    return false;
}

bool bridge_needs_eager(struct str source)
{
    for (size_t i = 0; i < sizeof(walkers) / sizeof(walkers[0]); i++)
        if (mentions(source, walkers[i]))
            return true;
    return false;
}
