/*
 * The four pattern functions over pattern.c. Arguments and results are those
 * of Lua 5.1; what differs is that they end: steps are counted, plain finds
 * are linear, and gsub within gsub stops before the C stack does.
 */
#include "sandbox/string_library.h"
#include "sandbox/read_only_proxy.h"
#include "sandbox/lua_pattern.h"
#include "sandbox/sandbox.h"

#include <string.h>

#define MAGIC "^$*+?.([%-"

static void push_capture(struct lua_pattern *m, int at, const char *s, const char *e)
{
    if (at >= m->level) {
        if (at != 0)
            luaL_error(m->L, "invalid capture index");
        lua_pushlstring(m->L, s, (size_t)(e - s)); /* no captures: the whole match */
        return;
    }
    ptrdiff_t len = m->capture[at].len;
    if (len == LUA_PATTERN_CAPTURE_UNFINISHED)
        luaL_error(m->L, "unfinished capture");
    if (len == LUA_PATTERN_CAPTURE_POSITION)
        lua_pushinteger(m->L, m->capture[at].at - m->subject + 1);
    else
        lua_pushlstring(m->L, m->capture[at].at, (size_t)len);
}

static int push_captures(struct lua_pattern *m, const char *s, const char *e)
{
    int count = m->level == 0 && s ? 1 : m->level;
    luaL_checkstack(m->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(m, i, s, e);
    return count;
}

static bool is_plain(const char *pattern, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (pattern[i] && strchr(MAGIC, pattern[i]))
            return false;
    return true;
}

/* Where a search begins: Lua's 1-based and negative positions. */
static size_t start_of(lua_State *L, int at, size_t len)
{
    lua_Integer init = luaL_optinteger(L, at, 1);
    if (init < 0)
        init += (lua_Integer)len + 1;
    if (init < 1)
        init = 1;
    return (size_t)init - 1 > len ? len : (size_t)init - 1;
}

static int find_plain(lua_State *L, const char *s, size_t len, size_t init, const char *p, size_t plen)
{
    const char *found = memmem(s + init, len - init, p, plen);
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - s + 1);
    lua_pushinteger(L, found - s + (lua_Integer)plen);
    return 2;
}

static int find_or_match(lua_State *L, bool find)
{
    size_t len, plen;
    const char *s = luaL_checklstring(L, 1, &len), *p = luaL_checklstring(L, 2, &plen);
    size_t init = start_of(L, 3, len);
    if (find && (lua_toboolean(L, 4) || is_plain(p, plen)))
        return find_plain(L, s, len, init, p, plen);
    struct lua_pattern m;
    lua_pattern_init(&m, L, s, len, p, plen);
    bool anchored = plen > 0 && *p == '^';
    for (const char *at = s + init; at <= m.end; at++) {
        m.level = m.depth = 0;
        const char *end = lua_pattern_match(&m, at, p + anchored);
        if (end && !find)
            return push_captures(&m, at, end);
        if (end) {
            lua_pushinteger(L, at - s + 1);
            lua_pushinteger(L, end - s);
            return push_captures(&m, NULL, NULL) + 2;
        }
        if (anchored)
            break;
    }
    lua_pushnil(L);
    return 1;
}

int string_library_find(lua_State *L)
{
    return find_or_match(L, true);
}

int string_library_match(lua_State *L)
{
    return find_or_match(L, false);
}

/* Upvalues: subject, pattern, offset of the next search. */
int string_library_gmatch_step(lua_State *L)
{
    size_t len, plen;
    const char *s = lua_tolstring(L, lua_upvalueindex(1), &len),
               *p = lua_tolstring(L, lua_upvalueindex(2), &plen);
    struct lua_pattern m;
    lua_pattern_init(&m, L, s, len, p, plen);
    for (const char *at = s + lua_tointeger(L, lua_upvalueindex(3)); at <= m.end; at++) {
        m.level = m.depth = 0;
        const char *end = lua_pattern_match(&m, at, p);
        if (!end)
            continue;
        lua_pushinteger(L, end - s + (end == at)); /* an empty match moves on by one */
        lua_replace(L, lua_upvalueindex(3));
        return push_captures(&m, at, end);
    }
    return 0;
}

int string_library_gmatch(lua_State *L)
{
    luaL_checkstring(L, 1);
    luaL_checkstring(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, string_library_gmatch_step, 3);
    return 1;
}

/* %0 to %9 and %% in the replacement text. */
static void add_text(struct lua_pattern *m, luaL_Buffer *b, const char *s, const char *e)
{
    size_t len;
    const char *news = lua_tolstring(m->L, 3, &len);
    for (size_t i = 0; i < len; i++) {
        if (news[i] != '%' || ++i == len) {
            if (i < len)
                luaL_addchar(b, news[i]);
            else
                luaL_addchar(b, '\0');
        } else if (news[i] < '0' || news[i] > '9') {
            luaL_addchar(b, news[i]);
        } else if (news[i] == '0') {
            luaL_addlstring(b, s, (size_t)(e - s));
        } else {
            push_capture(m, news[i] - '1', s, e);
            luaL_addvalue(b);
        }
    }
}

static void add_replacement(struct lua_pattern *m, luaL_Buffer *b, const char *s, const char *e)
{
    lua_State *L = m->L;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION:
        lua_pushvalue(L, 3);
        lua_call(L, push_captures(m, s, e), 1);
        break;
    case LUA_TTABLE:
        push_capture(m, 0, s, e);
        lua_gettable(L, 3);
        break;
    default:
        add_text(m, b, s, e);
        return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, s, (size_t)(e - s));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(b);
}

int string_library_gsub(lua_State *L)
{
    size_t len, plen;
    const char *s = luaL_checklstring(L, 1, &len), *p = luaL_checklstring(L, 2, &plen);
    proxy_unwrap(L, 3);
    int type = lua_type(L, 3);
    if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TFUNCTION && type != LUA_TTABLE)
        return luaL_argerror(L, 3, "string/function/table expected");
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)len + 1), count = 0;
    bool anchored = plen > 0 && *p == '^';
    struct lua_pattern m;
    luaL_Buffer b;
    sandbox_check_stack(L, "gsub");
    lua_pattern_init(&m, L, s, len, p, plen);
    luaL_buffinit(L, &b);
    while (count < most) {
        m.level = m.depth = 0;
        const char *end = lua_pattern_match(&m, s, p + anchored);
        if (end) {
            count++;
            add_replacement(&m, &b, s, end);
        }
        if (end && end > s)
            s = end;
        else if (s < m.end)
            luaL_addchar(&b, *s++);
        else
            break;
        if (anchored)
            break;
    }
    luaL_addlstring(&b, s, (size_t)(m.end - s));
    luaL_pushresult(&b);
    lua_pushinteger(L, count);
    return 2;
}
