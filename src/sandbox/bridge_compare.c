/* Most values come back unchanged, which one walk detects without building anything. */
#include "sandbox/bridge_internal.h"

/* Whether the value on top, with its key below, is an item of the list. */
static bool is_same_item(lua_State *L, const struct json *list)
{
    double n = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
    uint32_t i = n >= 1 && n <= list->len ? (uint32_t)n : 0;
    return i && i == n && bridge_is_unchanged(L, lua_gettop(L), &list->items[i - 1]);
}

static bool is_same_member(lua_State *L, const struct json *object)
{
    struct str key;
    if (lua_type(L, -2) != LUA_TSTRING)
        return false;
    key.at = lua_tolstring(L, -2, &key.len);
    const struct json *was = json_get(object, key);
    return was && bridge_is_unchanged(L, lua_gettop(L), was);
}

/* Keys are unique on both sides: if each is in the original and the counts match, they are equal. */
static bool is_same_content(lua_State *L, int at, const struct json *original, uint32_t count)
{
    bool list = original->type == JSON_ARRAY;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1), count--)
        if (!count || !(list ? is_same_item(L, original) : is_same_member(L, original))) {
            lua_pop(L, 2);
            return false;
        }
    return count == 0;
}

static uint32_t count_deferred(const struct json *object)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < object->len; i++)
        count += bridge_is_deferred(&object->members[i].value);
    return count;
}

/* Lists are marked, and objects that are empty or lazy. */
static bool is_same_table(lua_State *L, int at, const struct json *original)
{
    uint32_t count = original->len;
    enum mark mark = sandbox_mark(L, at);
    if (mark == MARK_LAZY && bridge_origin_of(L, at) == original)
        count -= count_deferred(original);
    else if (mark != (original->type == JSON_ARRAY ? MARK_ARRAY : original->len ? MARK_NONE : MARK_OBJECT))
        return false;
    luaL_checkstack(L, 8, "nested too deep");
    return is_same_content(L, at, original, count);
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
