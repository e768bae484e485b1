/* Recursive conversion in both directions, with a limit on depth. */
#include "module/module_value.h"

#include "base/arena.h"
#include "json/build.h"

#include <lauxlib.h>
#include <math.h>

#define ARRAY_MARK "toolgate.array"

static const char null_value = 0; /* toolgate.null is its address */

void module_value_push(lua_State *L, const struct json *value)
{
    double n = 0;
    luaL_checkstack(L, 4, "a value is nested too deep");
    if (!value) {
        lua_pushnil(L);
        return;
    }
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        lua_pushlightuserdata(L, (void *)&null_value);
        break;
    case JSON_BOOL:
        lua_pushboolean(L, value->truth);
        break;
    case JSON_NUMBER:
        json_double(value, &n);
        lua_pushnumber(L, n);
        break;
    case JSON_STRING:
        lua_pushlstring(L, value->text, value->len);
        break;
    case JSON_ARRAY:
        lua_createtable(L, (int)value->len, 0);
        luaL_getmetatable(L, ARRAY_MARK);
        lua_setmetatable(L, -2);
        for (uint32_t i = 0; i < value->len; i++) {
            module_value_push(L, &value->items[i]);
            lua_rawseti(L, -2, (int)i + 1);
        }
        break;
    case JSON_OBJECT:
        lua_createtable(L, 0, (int)value->len);
        for (uint32_t i = 0; i < value->len; i++) {
            lua_pushlstring(L, value->members[i].key.at, value->members[i].key.len);
            module_value_push(L, &value->members[i].value);
            lua_rawset(L, -3);
        }
        break;
    }
}

struct read_state {
    const char *what;
    struct arena *arena;
    int depth;
};

static struct json read_value(lua_State *L, int at, struct read_state *r);

static bool is_array(lua_State *L, int at)
{
    bool marked = false;
    if (lua_getmetatable(L, at)) {
        luaL_getmetatable(L, ARRAY_MARK);
        marked = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
    }
    return marked || lua_objlen(L, at) > 0;
}

static struct json read_array(lua_State *L, int at, struct read_state *r)
{
    size_t count = lua_objlen(L, at);
    struct json *items = ARENA_ARRAY(r->arena, struct json, count + 1);
    size_t seen = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (lua_type(L, -2) != LUA_TNUMBER)
            luaL_error(L, "%s: a list also has the key %s: JSON has no such table", r->what,
                       lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2));
        if (key < 1 || key > (double)count || key != floor(key))
            luaL_error(L, "%s: a list has holes: use toolgate.null", r->what);
        items[(size_t)key - 1] = read_value(L, lua_gettop(L), r);
        seen++;
    }
    if (seen < count)
        luaL_error(L, "%s: a list has holes: use toolgate.null", r->what);
    return json_array(items, count);
}

static struct str copy_string(lua_State *L, int at, struct arena *arena)
{
    struct str s;
    s.at = lua_tolstring(L, at, &s.len);
    return arena_dup(arena, s);
}

static struct json read_object(lua_State *L, int at, struct read_state *r)
{
    size_t size = 0, count = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1), size++)
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "%s: a table has a key that is a %s: expected a string", r->what,
                       luaL_typename(L, -2));
    struct json_member *members = ARENA_ARRAY(r->arena, struct json_member, size + 1);
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        struct json value = read_value(L, lua_gettop(L), r);
        members[count++] = json_member(copy_string(L, -2, r->arena), value);
    }
    return json_object(r->arena, members, count);
}

static struct json read_number(lua_State *L, int at, struct read_state *r)
{
    double n = lua_tonumber(L, at);
    if (!isfinite(n))
        luaL_error(L, "%s: JSON has no such number as %s", r->what, isnan(n) ? "nan" : "infinity");
    if (n == floor(n) && fabs(n) < 9007199254740992.0)
        return json_integer(r->arena, (int64_t)n);
    return json_number(r->arena, n);
}

static struct json read_value(lua_State *L, int at, struct read_state *r)
{
    struct json value;
    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN:
        return json_bool(lua_toboolean(L, at));
    case LUA_TNUMBER:
        return read_number(L, at, r);
    case LUA_TSTRING:
        return json_string(copy_string(L, at, r->arena));
    case LUA_TTABLE:
        if (++r->depth > MODULE_VALUE_DEPTH_MAX)
            luaL_error(L, "%s: a table is nested deeper than %d", r->what, MODULE_VALUE_DEPTH_MAX);
        luaL_checkstack(L, 6, "a table is nested too deep");
        value = is_array(L, at) ? read_array(L, at, r) : read_object(L, at, r);
        r->depth--;
        return value;
    default:
        if (lua_touserdata(L, at) != (void *)&null_value)
            luaL_error(L, "%s: JSON has no value that is a %s", r->what, luaL_typename(L, at));
        return json_null();
    }
}

const struct json *module_value_read(lua_State *L, int at, const char *what, struct arena *arena)
{
    struct read_state r = {what, arena, 0};
    struct json *value = ARENA_NEW(arena, struct json);
    *value = read_value(L, at, &r);
    return value;
}

/* toolgate.array { … } marks the table and returns it. */
static int mark_array(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_getmetatable(L, ARRAY_MARK);
    lua_setmetatable(L, 1);
    return 1;
}

void module_value_constants(lua_State *L)
{
    luaL_newmetatable(L, ARRAY_MARK);
    lua_pop(L, 1);
    lua_pushlightuserdata(L, (void *)&null_value);
    lua_setfield(L, -2, "null");
    lua_pushcfunction(L, mark_array);
    lua_setfield(L, -2, "array");
}
