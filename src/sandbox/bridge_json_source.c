/* Which Lua table was made from which JSON value while a file loads, so that a schema that nobody changed
 * keeps its bytes. */
#include "sandbox/bridge.h"

static const char sources_key; /* its address names the table in the registry */

void bridge_remember_json(lua_State *L, const struct json *value)
{
    lua_pushlightuserdata(L, (void *)&sources_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushlightuserdata(L, (void *)&sources_key);
        lua_pushvalue(L, -2);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    lua_pushvalue(L, -2);
    lua_pushlightuserdata(L, (void *)value);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

const struct json *bridge_json_source(lua_State *L, int at)
{
    lua_pushvalue(L, at);
    lua_pushlightuserdata(L, (void *)&sources_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    const struct json *found = NULL;
    if (lua_istable(L, -1) && lua_istable(L, -2)) {
        lua_pushvalue(L, -2);
        lua_rawget(L, -2);
        found = lua_touserdata(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return found;
}

void bridge_forget_json(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&sources_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}
