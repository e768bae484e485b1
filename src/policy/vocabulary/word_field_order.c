/*
 * The order in which an author wrote the fields of a table, which Lua's
 * tables do not keep: it is found in the file's text while the file loads,
 * and goes with the table to the JSON that is made of it.
 */
#include "base/arena.h"
#include "json/build.h"
#include "policy/source_location.h"
#include "sandbox/bridge.h"
#include "sandbox/sandbox.h"
#include "policy/vocabulary/vocabulary.h"

#include <lauxlib.h>

static const char templates_key; /* its address names the table in the registry */

#define ORDER_NAMES_MAX 1000u /* more fields than that keep the order of their names */

static bool read_names(lua_State *L, int at, struct str *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, at, (int)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            return false;
        out[i].at = lua_tolstring(L, -1, &out[i].len); /* the list keeps it alive */
        lua_pop(L, 1);
    }
    return true;
}

/* written(names, line): the list in the order in which a table with just these fields names them, the first
 * such from that line on; the list itself where there is none. */
int word_source_order(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    int line = (int)luaL_checkinteger(L, 2);
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t count = lua_objlen(L, 1);
    if (!now->loading || count < 2 || count > ORDER_NAMES_MAX)
        return 1;
    struct str *names = ARENA_ARRAY(now->arena, struct str, count);
    if (!read_names(L, 1, names, count) || !location_sort_fields(now->source, line, names, count))
        return 1;
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, names[i].at, names[i].len);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* An object with these names as its keys. */
static struct json *template_of(lua_State *L, int names, struct arena *arena)
{
    size_t count = lua_objlen(L, names);
    struct json_member *members = ARENA_ARRAY(arena, struct json_member, count + 1);
    struct json *template = ARENA_NEW(arena, struct json);
    for (size_t i = 0; i < count; i++) {
        struct str name;
        lua_rawgeti(L, names, (int)i + 1);
        name.at = lua_tolstring(L, -1, &name.len);
        members[i] = json_member(arena_dup(arena, name), json_null());
        lua_pop(L, 1);
    }
    *template = json_object(arena, members, count);
    return template;
}

/* The table of templates by their lists; templates live in the arena of one file's loading, the lists may
 * live longer. */
static void push_templates(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&templates_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1))
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushlightuserdata(L, (void *)&templates_key);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

void word_order_release(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&templates_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

/* order(table, names): the table, which as JSON has its fields in this order. One list is one template,
 * however many tables go by it. */
int word_order(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(sandbox_of(L));
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    if (now->loading) {
        push_templates(L);
        lua_pushvalue(L, 2);
        lua_rawget(L, 3);
        struct json *template = lua_touserdata(L, 4);
        if (!template) {
            template = template_of(L, 2, now->arena);
            lua_pushvalue(L, 2);
            lua_pushlightuserdata(L, template);
            lua_rawset(L, 3);
        }
        lua_settop(L, 1);
        bridge_remember_json(L, template);
    }
    lua_settop(L, 1);
    return 1;
}
