/* The environment of the userdata is the table, for C; its __index is the table, for Lua. */
#include "sandbox/read_only_proxy.h"

#include <lauxlib.h>

struct proxy {
    const void *tag; /* &tag: no other userdata of this state begins with it */
};

/* stock_key and aware_key are registry keys of tables that map functions to their variants. */
static const char tag, stock_key, aware_key;

#define UNPACK_MAX 65536 /* the limit of Lua's stack */

#define KINDS 9 /* of Lua values: LUA_TNIL to LUA_TTHREAD */

bool proxy_is(lua_State *L, int at)
{
    return lua_type(L, at) == LUA_TUSERDATA && lua_objlen(L, at) == sizeof(struct proxy) &&
           ((const struct proxy *)lua_touserdata(L, at))->tag == &tag;
}

void proxy_unwrap(lua_State *L, int at)
{
    if (!proxy_is(L, at))
        return;
    if (at < 0)
        at = lua_gettop(L) + at + 1;
    lua_getfenv(L, at);
    lua_replace(L, at);
}

void proxy_copy(lua_State *L)
{
    if (!proxy_is(L, -1))
        return;
    int at = lua_gettop(L);
    lua_newtable(L);
    lua_getfenv(L, at);
    for (lua_pushnil(L); lua_next(L, at + 2);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, at + 1);
    }
    lua_settop(L, at + 1);
    lua_replace(L, at);
}

const char *proxy_name(lua_State *L, int at)
{
    lua_getmetatable(L, at);
    lua_rawgeti(L, -1, 1);
    const char *name = lua_tostring(L, -1); /* the metatable keeps it */
    lua_pop(L, 2);
    return name;
}

static int refuse_write(lua_State *L)
{
    return luaL_error(L,
                      "keeps state between calls: the table '%s' was made when the file was loaded, and is "
                      "read-only: change a copy of it; " PROXY_WRITE_HINT,
                      proxy_name(L, 1));
}

void proxy_refuse_write(lua_State *L, int at)
{
    if (!proxy_is(L, at))
        return;
    lua_pushvalue(L, at);
    lua_replace(L, 1);
    refuse_write(L);
}

static int length(lua_State *L)
{
    lua_getfenv(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_objlen(L, -1));
    return 1;
}

void proxy_push(lua_State *L, const char *name)
{
    struct proxy *made = lua_newuserdata(L, sizeof(*made));
    made->tag = &tag;
    lua_pushvalue(L, -2);
    lua_setfenv(L, -2);
    lua_createtable(L, 2, 3);
    lua_pushstring(L, name);
    lua_rawseti(L, -2, 1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, refuse_write);
    lua_setfield(L, -2, "__newindex");
    lua_pushcfunction(L, length);
    lua_setfield(L, -2, "__len");
    lua_setmetatable(L, -2);
}

/* Upvalues: the names of the types. */
static int aware_type(lua_State *L)
{
    luaL_checkany(L, 1);
    int type = proxy_is(L, 1) ? LUA_TTABLE : lua_type(L, 1);
    lua_pushvalue(L, lua_upvalueindex(type + 1));
    return 1;
}

/* Pushes the table of argument 1 or raises an error. */
static void push_table(lua_State *L)
{
    if (proxy_is(L, 1)) {
        lua_getfenv(L, 1);
        return;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushvalue(L, 1);
}

static int aware_next(lua_State *L)
{
    lua_settop(L, 2);
    push_table(L);
    lua_insert(L, 1);
    lua_remove(L, 2);
    if (lua_next(L, 1))
        return 2;
    lua_pushnil(L);
    return 1;
}

/* Upvalue 1: the table, which the policy must not see. */
static int next_pair(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_next(L, lua_upvalueindex(1)))
        return 2;
    lua_pushnil(L);
    return 1;
}

static int next_item(lua_State *L)
{
    int at = (int)luaL_checkinteger(L, 2) + 1;
    lua_pushinteger(L, at);
    lua_rawgeti(L, lua_upvalueindex(1), at);
    return lua_isnil(L, -1) ? 0 : 2;
}

/* pairs and ipairs. Upvalues: the stock iterator and its first key. The iterator receives the table itself,
 * which a `for` loop hides. */
static int fast_loop(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    push_table(L);
    lua_pushvalue(L, lua_upvalueindex(2));
    return 3;
}

/* The same, but for a proxy with the iterator in upvalue 3, which hides the table. */
static int aware_loop(lua_State *L)
{
    if (!proxy_is(L, 1))
        return fast_loop(L);
    lua_getfenv(L, 1);
    lua_pushcclosure(L, lua_tocfunction(L, lua_upvalueindex(3)), 1);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    return 3;
}

static int aware_unpack(lua_State *L)
{
    push_table(L);
    lua_replace(L, 1);
    double first = luaL_optnumber(L, 2, 1), last = luaL_optnumber(L, 3, (double)lua_objlen(L, 1));
    double count = last - first + 1;
    if (count <= 0)
        return 0;
    if (!(count < UNPACK_MAX) || !lua_checkstack(L, (int)count))
        return luaL_error(L, "unpack: too many results");
    for (int i = 0; i < (int)count; i++)
        lua_rawgeti(L, 1, (int)first + i);
    return (int)count;
}

/* In the registry's table `key`, maps the function at `from` to the one at `to`. */
static void map_function(lua_State *L, const void *key, int from, int to)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, from);
    lua_pushvalue(L, to);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* Replaces the global by the function on top. */
static void replace_global(lua_State *L, const char *name)
{
    int aware = lua_gettop(L);
    lua_getglobal(L, name);
    map_function(L, &aware_key, aware + 1, aware);
    map_function(L, &stock_key, aware, aware + 1);
    lua_pop(L, 1);
    lua_setglobal(L, name);
}

/* Calls the stock function once for its iterator and first key. */
static void replace_loop(lua_State *L, const char *name, lua_CFunction step)
{
    int top = lua_gettop(L), stock = top + 1, iterator = top + 2, first = top + 4;
    lua_getglobal(L, name);
    lua_pushvalue(L, stock);
    lua_newtable(L);
    lua_call(L, 1, 3);
    lua_pushvalue(L, iterator);
    lua_pushvalue(L, first);
    lua_pushcfunction(L, step);
    lua_pushcclosure(L, aware_loop, 3);
    lua_pushvalue(L, iterator);
    lua_pushvalue(L, first);
    lua_pushcclosure(L, fast_loop, 2);
    int fast = lua_gettop(L), aware = fast - 1;
    map_function(L, &aware_key, stock, aware);
    map_function(L, &aware_key, fast, aware);
    map_function(L, &stock_key, fast, stock);
    lua_setglobal(L, name);
    lua_settop(L, top);
}

void proxy_open(lua_State *L)
{
    for (int i = 0; i < 2; i++) {
        lua_pushlightuserdata(L, (void *)(i ? &stock_key : &aware_key));
        lua_newtable(L);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    for (int type = 0; type < KINDS; type++)
        lua_pushstring(L, lua_typename(L, type));
    lua_pushcclosure(L, aware_type, KINDS);
    replace_global(L, "type");
    lua_pushcfunction(L, aware_next);
    replace_global(L, "next");
    lua_pushcfunction(L, aware_unpack);
    replace_global(L, "unpack");
    replace_loop(L, "pairs", next_pair);
    replace_loop(L, "ipairs", next_item);
}

static void exchange(lua_State *L, const void *key)
{
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    lua_insert(L, -2);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

void proxy_stock_function(lua_State *L)
{
    exchange(L, &stock_key);
}

void proxy_aware_function(lua_State *L)
{
    exchange(L, &aware_key);
}
