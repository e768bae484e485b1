/* Most values come back unchanged, which one walk detects without building anything. */
#include "sandbox/bridge_internal.h"

/* Whether the value on top is what the original has at the key below it. */
static bool is_same_entry(lua_State *L, const struct json *original)
{
    const struct json *was = NULL;
    struct str key;
    if (original->type == JSON_OBJECT && lua_type(L, -2) == LUA_TSTRING) {
        key.at = lua_tolstring(L, -2, &key.len);
        was = json_get(original, key);
    } else if (original->type == JSON_ARRAY && lua_type(L, -2) == LUA_TNUMBER) {
        double n = lua_tonumber(L, -2);
        uint32_t i = n >= 1 && n <= original->len ? (uint32_t)n : 0;
        was = i && i == n ? &original->items[i - 1] : NULL;
    }
    return was && bridge_is_unchanged(L, lua_gettop(L), was);
}

/* Lists are marked, and objects that are empty or lazy. Keys are unique on both sides: if each is in the
 * original and the counts match, they are equal. */
static bool is_same_table(lua_State *L, int at, const struct json *original)
{
    uint32_t count = original->len;
    enum mark mark = sandbox_mark(L, at);
    if (mark == MARK_LAZY && bridge_origin_of(L, at) == original) {
        for (uint32_t i = 0; i < original->len; i++)
            count -= bridge_is_deferred(&original->members[i].value);
    } else if (mark != (original->type == JSON_ARRAY ? MARK_ARRAY
                        : original->len              ? MARK_NONE
                                                     : MARK_OBJECT)) {
        return false;
    }
    luaL_checkstack(L, 8, "nested too deep");
    sandbox_check_deadline(L); /* a table that was emptied is slow to look at */
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1), count--)
        if (!count || !is_same_entry(L, original)) {
            lua_pop(L, 2);
            return false;
        }
    return count == 0;
}

bool bridge_is_unchanged(lua_State *L, int at, const struct json *original)
{
    struct str s;
    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN:
        return original->type == JSON_BOOL && original->truth == lua_toboolean(L, at);
    case LUA_TNUMBER:
        return original->type == JSON_NUMBER && bridge_number(original) == lua_tonumber(L, at);
    case LUA_TSTRING:
        s.at = lua_tolstring(L, at, &s.len);
        return original->type == JSON_STRING && str_eq(json_str(original), s);
    case LUA_TTABLE:
        return (original->type == JSON_ARRAY || original->type == JSON_OBJECT) &&
               is_same_table(L, at, original);
    case LUA_TLIGHTUSERDATA:
        return original->type == JSON_NULL;
    default:
        return false;
    }
}
