/* One state, made by the first call, with the module at 1 and `json` = { null, array, keys }. */
#include "sandbox/lua_embedded.h"

#include "base/arena.h"
#include "base/embedded.h"
#include "json/build.h"
#include "sandbox/lua_json.h"
#include "sandbox/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#define MODULE "provider_formats.lua"

static int push_keys(lua_State *L)
{
    lua_json_push_keys(L, 1);
    return 1;
}

static lua_State *open_module(void)
{
    struct str source = embedded_text(MODULE);
    lua_State *L = luaL_newstate();
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
    return L;
}

struct str lua_embedded_call(struct arena *arena, const char *function, const struct json *const *arguments,
                             int count, struct json *more)
{
    static lua_State *L;
    if (!L)
        L = open_module();
    lua_getfield(L, 1, function);
    for (int i = 0; i < count; i++)
        lua_json_push(L, arguments[i], LUA_JSON_EXACT);
    if (lua_pcall(L, count, 2, 0)) {
        lua_pushnil(L);
        lua_insert(L, 2);
    }
    struct str text = lua_isstring(L, 2) ? arena_dup(arena, sandbox_string(L, 2)) : STR_NONE;
    *more = lua_isnil(L, 3) ? json_null() : *lua_json_read(L, 3, MODULE, arena);
    lua_settop(L, 1);
    return text;
}
