/* Recursive conversion in both directions, with a limit on depth. */
#include "sandbox/lua_json.h"

#include "base/arena.h"
#include "base/embedded.h"
#include "json/build.h"
#include "sandbox/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ARRAY_MARK  "toolgate.array"
#define ORDER       "toolgate.order"  /* of objects' members, where it is kept */
#define NUMBER_MARK "toolgate.number" /* a number as it was written */

#define EXACT_BELOW 9007199254740992.0 /* whole numbers that a double tells apart */

static const char null_value = 0; /* toolgate.null is its address */

/* What a value becomes, and where the orders of objects are kept: the stack's index of their table; 0:
 * nowhere. */
struct push_state {
    enum lua_json_form form;
    int orders;
};

static void push(lua_State *L, const struct json *value, const struct push_state *p)
{
    double n = 0;
    luaL_checkstack(L, 8, "a value is nested too deep");
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        lua_pushlightuserdata(L, (void *)&null_value);
        break;
    case JSON_BOOL:
        lua_pushboolean(L, value->truth);
        break;
    case JSON_NUMBER:
        json_double(value, &n);
        if (p->form == LUA_JSON_SPEC || fabs(n) < EXACT_BELOW) {
            lua_pushnumber(L, n);
            break;
        }
        if (p->form == LUA_JSON_EXACT)
            lua_createtable(L, 1, 0);
        lua_pushlstring(L, value->text, value->len);
        if (p->form == LUA_JSON_EXACT) {
            lua_rawseti(L, -2, 1);
            luaL_getmetatable(L, NUMBER_MARK);
            lua_setmetatable(L, -2);
        }
        break;
    case JSON_STRING:
        lua_pushlstring(L, value->text, value->len);
        break;
    case JSON_ARRAY:
        lua_createtable(L, (int)value->len, 0);
        luaL_getmetatable(L, ARRAY_MARK);
        lua_setmetatable(L, -2);
        for (uint32_t i = 0; i < value->len; i++) {
            push(L, &value->items[i], p);
            lua_rawseti(L, -2, (int)i + 1);
        }
        break;
    case JSON_OBJECT:
        lua_createtable(L, 0, (int)value->len);
        for (uint32_t i = 0; i < value->len; i++) {
            if (p->form == LUA_JSON_ANSWER && value->members[i].value.type == JSON_NULL)
                continue;
            lua_pushlstring(L, value->members[i].key.at, value->members[i].key.len);
            push(L, &value->members[i].value, p);
            lua_rawset(L, -3);
        }
        if (!p->orders)
            break;
        lua_pushvalue(L, -1);
        lua_createtable(L, (int)value->len, 0);
        for (uint32_t i = 0; i < value->len; i++) {
            lua_pushlstring(L, value->members[i].key.at, value->members[i].key.len);
            lua_rawseti(L, -2, (int)i + 1);
        }
        lua_rawset(L, p->orders);
        break;
    }
}

void lua_json_push(lua_State *L, const struct json *value, enum lua_json_form form)
{
    if (!value) {
        lua_pushnil(L);
        return;
    }
    lua_getfield(L, LUA_REGISTRYINDEX, ORDER);
    struct push_state p = {form, lua_istable(L, -1) ? lua_gettop(L) : 0};
    push(L, value, &p);
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
    luaL_newmetatable(L, NUMBER_MARK);
    lua_pop(L, 1);
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

static bool has_mark(lua_State *L, int at, const char *mark)
{
    if (!lua_getmetatable(L, at))
        return false;
    luaL_getmetatable(L, mark);
    bool marked = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return marked;
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

/* An object that was pushed has its members in their order, of which one that is gone is null. */
static struct json read_object(lua_State *L, int at, struct read_state *r)
{
    size_t size = 0, count = 0;
    lua_json_push_keys(L, at);
    bool pushed = lua_istable(L, -1);
    int names = lua_gettop(L);
    for (lua_pushnil(L); !pushed && lua_next(L, at); lua_pop(L, 1), size++)
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "%s: a table has a key that is a %s: expected a string", r->what,
                       luaL_typename(L, -2));
    size = pushed ? lua_objlen(L, names) : size;
    struct json_member *members = ARENA_ARRAY(r->arena, struct json_member, size + 1);
    lua_settop(L, names);
    for (lua_pushnil(L); lua_next(L, pushed ? names : at); lua_settop(L, names + 1)) {
        if (pushed) { /* the name is the value: put it and its own value in their places */
            lua_pushvalue(L, -1);
            lua_rawget(L, at);
        }
        struct str name = arena_dup(r->arena, sandbox_string(L, -2));
        members[count++] =
            json_member(name, lua_isnil(L, -1) ? json_null() : read_value(L, lua_gettop(L), r));
    }
    lua_settop(L, names - 1);
    return json_object(r->arena, members, count);
}

static struct json read_value(lua_State *L, int at, struct read_state *r)
{
    struct json value;
    double n;
    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN:
        return json_bool(lua_toboolean(L, at));
    case LUA_TNUMBER:
        n = lua_tonumber(L, at);
        if (!isfinite(n))
            luaL_error(L, "%s: JSON has no such number as %s", r->what, isnan(n) ? "nan" : "infinity");
        return n == floor(n) && fabs(n) < EXACT_BELOW ? json_integer(r->arena, (int64_t)n)
                                                      : json_number(r->arena, n);
    case LUA_TSTRING:
        return json_string(arena_dup(r->arena, sandbox_string(L, at)));
    case LUA_TTABLE:
        if (has_mark(L, at, NUMBER_MARK)) {
            lua_rawgeti(L, at, 1);
            struct str text = arena_dup(r->arena, sandbox_string(L, -1));
            lua_pop(L, 1);
            return (struct json){.type = JSON_NUMBER, .text = text.at, .len = (uint32_t)text.len};
        }
        if (++r->depth > LUA_JSON_DEPTH_MAX)
            luaL_error(L, "%s: a table is nested deeper than %d", r->what, LUA_JSON_DEPTH_MAX);
        luaL_checkstack(L, 6, "a table is nested too deep");
        value =
            has_mark(L, at, ARRAY_MARK) || lua_objlen(L, at) ? read_array(L, at, r) : read_object(L, at, r);
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

/* ---- the embedded file: one state, made by the first call, with the module at 1, the coroutine of the call
 * in pieces at 2, and `json` = { null, array, keys } ---- */

#define MODULE "provider_formats.lua"

static int push_keys(lua_State *L)
{
    lua_json_push_keys(L, 1);
    return 1;
}

static lua_State *module_state(void)
{
    static lua_State *L;
    if (L)
        return L;
    struct str source = embedded_text(MODULE);
    L = luaL_newstate();
    luaL_openlibs(L);
    lua_json_keep_order(L);
    lua_newtable(L);
    lua_json_constants(L);
    lua_pushcfunction(L, push_keys);
    lua_setfield(L, -2, "keys");
    lua_setglobal(L, "json");
    if (luaL_loadbuffer(L, source.at, source.len, "=" MODULE) || lua_pcall(L, 0, 1, 0)) {
        fprintf(stderr, "toolgate: %s\n", lua_tostring(L, -1));
        abort(); /* an error in the embedded file is one of the build */
    }
    lua_pushnil(L);
    return L;
}

/* Pushes a coroutine that is about to call the function. */
static lua_State *push_call(lua_State *L, const char *function, const struct json *const *arguments,
                            int count)
{
    lua_State *call = lua_newthread(L);
    lua_getfield(L, 1, function);
    lua_xmove(L, call, 1);
    for (int i = 0; i < count; i++)
        lua_json_push(call, arguments[i], LUA_JSON_EXACT);
    return call;
}

static bool resume(lua_State *call, struct arena *arena, struct str *text, struct json *more)
{
    bool begins = lua_status(call) != LUA_YIELD;
    int status = lua_resume(call, begins ? lua_gettop(call) - 1 : 0);
    if (status == LUA_YIELD)
        return true;
    if (!status)
        lua_settop(call, 2);
    int at = lua_gettop(call); /* of the second result, or of the error */
    *text = status ? STR_NONE : arena_dup(arena, sandbox_string(call, at - 1));
    *more = lua_isnil(call, at) ? json_null() : *lua_json_read(call, at, MODULE, arena);
    return false;
}

struct str lua_embedded_call(struct arena *arena, const char *function, const struct json *const *arguments,
                             int count, struct json *more)
{
    lua_State *L = module_state(), *call = push_call(L, function, arguments, count);
    struct str text;
    while (resume(call, arena, &text, more))
        continue;
    lua_settop(L, 2);
    return text;
}

void lua_embedded_begin(const char *function, const struct json *const *arguments, int count)
{
    lua_State *L = module_state();
    push_call(L, function, arguments, count);
    lua_replace(L, 2);
}

bool lua_embedded_next(struct arena *arena, struct str *text, struct json *more)
{
    if (resume(lua_tothread(module_state(), 2), arena, text, more))
        return true;
    lua_embedded_drop();
    return false;
}

void lua_embedded_drop(void)
{
    lua_State *L = module_state();
    lua_pushnil(L);
    lua_replace(L, 2);
}
