/*
 * Replaces the stock table functions, which never check the deadline. sort is a
 * heap sort: it needs no stack and ends with any comparator, even one that
 * contradicts itself. Read-only proxies are read, never changed.
 */
#include "sandbox/table_library.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/sandbox.h"

#include <limits.h>

#define MOVES_PER_CHECK 1024 /* between two checks of the deadline */

/* Whether the two values on top (left below right) are in order; pops neither. */
static bool is_less(lua_State *L, bool has_comparator)
{
    sandbox_check_deadline(L);
    if (!has_comparator)
        return lua_lessthan(L, -2, -1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_call(L, 2, 1);
    bool less = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return less;
}

/* Moves the value at `root` of t[1] to t[count] down until both children are no greater. */
static void sift(lua_State *L, int root, int count, bool has_comparator)
{
    lua_rawgeti(L, 1, root);
    for (int child; (child = 2 * root) <= count; root = child) {
        lua_rawgeti(L, 1, child);
        if (child < count) {
            lua_rawgeti(L, 1, child + 1);
            if (is_less(L, has_comparator)) {
                lua_remove(L, -2);
                child++;
            } else {
                lua_pop(L, 1);
            }
        }
        if (!is_less(L, has_comparator)) {
            lua_pop(L, 1);
            break;
        }
        lua_rawseti(L, 1, root);
    }
    lua_rawseti(L, 1, root);
}

/* Argument 1 must be a list that may be changed; returns its length. */
static int check_list(lua_State *L)
{
    proxy_refuse_write(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t size = lua_objlen(L, 1);
    luaL_argcheck(L, size < INT_MAX / 2, 1, "the list is too long");
    return (int)size;
}

static int sort_list(lua_State *L)
{
    int count = check_list(L);
    bool has_comparator = !lua_isnoneornil(L, 2);
    if (has_comparator)
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    sandbox_check_stack(L, "table.sort");
    for (int root = count / 2; root >= 1; root--)
        sift(L, root, count, has_comparator);
    for (int last = count; last > 1; last--) {
        lua_rawgeti(L, 1, 1);
        lua_rawgeti(L, 1, last);
        lua_rawseti(L, 1, 1);
        lua_rawseti(L, 1, last);
        sift(L, 1, last - 1, has_comparator);
    }
    return 0;
}

static int insert_item(lua_State *L)
{
    int end = check_list(L) + 1;
    if (lua_gettop(L) == 2) {
        lua_rawseti(L, 1, end);
        return 0;
    }
    if (lua_gettop(L) != 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    lua_Integer at = luaL_checkinteger(L, 2);
    luaL_argcheck(L, at >= 1 && at <= end, 2, "position out of bounds");
    for (int i = end; i > (int)at; i--) {
        if (i % MOVES_PER_CHECK == 0)
            sandbox_check_deadline(L);
        lua_rawgeti(L, 1, i - 1);
        lua_rawseti(L, 1, i);
    }
    lua_rawseti(L, 1, (int)at);
    return 0;
}

static int remove_item(lua_State *L)
{
    int end = check_list(L);
    lua_Integer at = luaL_optinteger(L, 2, end);
    if (at < 1 || at > end)
        return 0;
    lua_rawgeti(L, 1, (int)at);
    for (int i = (int)at; i < end; i++) {
        if (i % MOVES_PER_CHECK == 0)
            sandbox_check_deadline(L);
        lua_rawgeti(L, 1, i + 1);
        lua_rawseti(L, 1, i);
    }
    lua_pushnil(L);
    lua_rawseti(L, 1, end);
    return 1;
}

static int concat_list(lua_State *L)
{
    size_t len = 0;
    luaL_Buffer text;
    proxy_unwrap(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *between = luaL_optlstring(L, 2, "", &len);
    lua_Integer at = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, (lua_Integer)lua_objlen(L, 1));
    lua_settop(L, 2);
    luaL_buffinit(L, &text);
    for (; at <= last; at++) {
        if (at % MOVES_PER_CHECK == 0)
            sandbox_check_deadline(L);
        lua_rawgeti(L, 1, (int)at);
        if (!lua_isstring(L, -1))
            return luaL_error(L, "table.concat: item %d: expected text or a number, got a %s", (int)at,
                              proxy_is(L, -1) ? "table" : luaL_typename(L, -1));
        luaL_addvalue(&text);
        if (at < last)
            luaL_addlstring(&text, between, len);
    }
    luaL_pushresult(&text);
    return 1;
}

const luaL_Reg table_library_functions[] = {{"sort", sort_list},
                                            {"insert", insert_item},
                                            {"remove", remove_item},
                                            {"concat", concat_list},
                                            {NULL, NULL}};
