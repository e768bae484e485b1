/*
 * What makes texts of other values, or long ones of short ones. LuaJIT takes a
 * count beyond 2^31 for something else, and tells addresses in the place of
 * what is no text: what a policy makes is the same on every worker and in
 * every replay.
 */
#include "sandbox/tostring_library.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/sandbox.h"

#include <lauxlib.h>
#include <string.h>

#define OPTION_DIGITS 2 /* of a width or precision: LuaJIT's own limit */

/* With arguments that it takes: the only error left is that memory runs out. */
static int call_stock(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

int string_library_rep(lua_State *L)
{
    size_t len, between = 0, most = sandbox_memory_bytes(sandbox_of(L));
    luaL_checklstring(L, 1, &len);
    double count = luaL_checknumber(L, 2);
    if (!lua_isnoneornil(L, 3))
        luaL_checklstring(L, 3, &between);
    luaL_argcheck(L, count == count, 2, "a count expected, got nan");
    if (count <= 0 || len + between == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (count * (double)(len + between) > (double)most) {
        lua_pushfstring(L, "%f", count * (double)(len + between));
        return luaL_error(L,
                          "string.rep: out of memory: %s bytes asked for, and all policies together may use "
                          "%d KB (config limits.policy_kb)",
                          lua_tostring(L, -1), (int)(most / 1024));
    }
    return call_stock(L);
}

/* Pushes the kind of what has no text of its own. */
static void push_kind(lua_State *L, int at)
{
    if (lua_type(L, at) == LUA_TLIGHTUSERDATA)
        lua_pushliteral(L, "null");
    else
        lua_pushstring(L, proxy_is(L, at) ? "table" : luaL_typename(L, at));
}

static bool has_text(int type)
{
    return type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TBOOLEAN || type == LUA_TNIL;
}

/* The one option at `form`, behind its %: what it wants of the argument at `at`. Told here, as the stock
 * function would not know by what name and from which line it was called. */
static const char *check_option(lua_State *L, const char *form, int at)
{
    const char *begin = form;
    form += strspn(form, "-+ #0");
    form += strspn(form, "0123456789") <= OPTION_DIGITS ? strspn(form, "0123456789") : 0;
    if (*form == '.')
        form += 1 + (strspn(form + 1, "0123456789") <= OPTION_DIGITS ? strspn(form + 1, "0123456789") : 0);
    if (*form == 'p')
        luaL_error(L, "string.format: %%p would tell an address: use %%s");
    if (*form == '\0' || !strchr("cdiuoxXeEfgGaAqs", *form)) {
        lua_pushlstring(L, begin, strnlen(begin, (size_t)(form - begin) + 1));
        luaL_error(L, "string.format: no such option: '%%%s'", lua_tostring(L, -1));
    }
    if (*form == 's' || *form == 'q')
        luaL_checkany(L, at);
    else
        luaL_checknumber(L, at);
    return form;
}

/* %s and %q of a table or a function are its kind, as with tostring. */
int string_library_format(lua_State *L)
{
    size_t len;
    const char *form = luaL_checklstring(L, 1, &len), *end = form + len;
    for (int at = 2; (form = memchr(form, '%', (size_t)(end - form))); form++) {
        if (*++form == '%')
            continue;
        form = check_option(L, form, at);
        if (!has_text(lua_type(L, at))) {
            push_kind(L, at);
            lua_replace(L, at);
        }
        at++;
    }
    return call_stock(L);
}

int string_library_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    switch (lua_type(L, 1)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
        lua_pushvalue(L, 1);
        lua_tostring(L, -1);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, 1) ? "true" : "false");
        break;
    case LUA_TNIL:
        lua_pushliteral(L, "nil");
        break;
    default:
        push_kind(L, 1);
    }
    return 1;
}
