/* Recursive conversion in both directions, with a limit on depth. */
#include "sandbox/lua_json.h"

#include "base/arena.h"
#include "json/build.h"

#include <lauxlib.h>
#include <math.h>

#define ARRAY_MARK "toolgate.array"
#define ORDER      "toolgate.order" /* of objects' members, where it is kept */

#define EXACT_BELOW 9007199254740992.0 /* whole numbers that a double tells apart */

static const char null_value = 0; /* toolgate.null is its address */

/* The object is on top, the table of orders at `orders`. */
static void keep_order(lua_State *L, const struct json *object, int orders)
{
    lua_pushvalue(L, -1);
    lua_createtable(L, (int)object->len, 0);
    for (uint32_t i = 0; i < object->len; i++) {
        lua_pushlstring(L, object->members[i].key.at, object->members[i].key.len);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_rawset(L, orders);
}

/* `orders`: 0: none is kept. */
static void push(lua_State *L, const struct json *value, int orders)
{
    double n = 0;
    luaL_checkstack(L, 8, "a value is nested too deep");
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        if (orders)
            lua_pushnil(L);
        else
            lua_pushlightuserdata(L, (void *)&null_value);
        break;
    case JSON_BOOL:
        lua_pushboolean(L, value->truth);
        break;
    case JSON_NUMBER:
        json_double(value, &n);
        if (orders && !(fabs(n) < EXACT_BELOW)) /* as it is written */
            lua_pushlstring(L, value->text, value->len);
        else
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
            push(L, &value->items[i], orders);
            lua_rawseti(L, -2, (int)i + 1);
        }
        break;
    case JSON_OBJECT:
        lua_createtable(L, 0, (int)value->len);
        for (uint32_t i = 0; i < value->len; i++) {
            lua_pushlstring(L, value->members[i].key.at, value->members[i].key.len);
            push(L, &value->members[i].value, orders);
            lua_rawset(L, -3);
        }
        if (orders)
            keep_order(L, value, orders);
        break;
    }
}

void lua_json_push(lua_State *L, const struct json *value)
{
    if (!value) {
        lua_pushnil(L);
        return;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, ORDER);
    push(L, value, lua_istable(L, -1) ? lua_gettop(L) : 0);
    lua_remove(L, -2);
}

void lua_json_keep_order(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, ORDER);
}

void lua_json_push_keys(lua_State *L, int at)
{
    lua_getfield(L, LUA_REGISTRYINDEX, ORDER);
    if (!lua_istable(L, -1))
        return;
    lua_pushvalue(L, at);
    lua_rawget(L, -2);
    lua_remove(L, -2);
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

/* An object that was pushed has its members in their order; null is one that is gone. */
static struct json read_pushed(lua_State *L, int at, struct read_state *r)
{
    int names = lua_gettop(L);
    uint32_t count = (uint32_t)lua_objlen(L, names);
    struct json_member *members = ARENA_ARRAY(r->arena, struct json_member, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        lua_rawgeti(L, names, (int)i + 1);
        struct str name = copy_string(L, -1, r->arena);
        lua_rawget(L, at);
        members[i] = json_member(name, lua_isnil(L, -1) ? json_null() : read_value(L, lua_gettop(L), r));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return json_object(r->arena, members, count);
}

static struct json read_object(lua_State *L, int at, struct read_state *r)
{
    size_t size = 0, count = 0;
    lua_json_push_keys(L, at);
    if (lua_istable(L, -1))
        return read_pushed(L, at, r);
    lua_pop(L, 1);
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
    if (n == floor(n) && fabs(n) < EXACT_BELOW)
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
        if (++r->depth > LUA_JSON_DEPTH_MAX)
            luaL_error(L, "%s: a table is nested deeper than %d", r->what, LUA_JSON_DEPTH_MAX);
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

const struct json *lua_json_read(lua_State *L, int at, const char *what, struct arena *arena)
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

void lua_json_constants(lua_State *L)
{
    luaL_newmetatable(L, ARRAY_MARK);
    lua_pop(L, 1);
    lua_pushlightuserdata(L, (void *)&null_value);
    lua_setfield(L, -2, "null");
    lua_pushcfunction(L, mark_array);
    lua_setfield(L, -2, "array");
}
