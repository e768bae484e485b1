/*
 * Arguments and results are those of Lua 5.1. The pattern functions count steps,
 * plain finds are linear, and gsub within gsub stops before the C stack is
 * full. rep checks its count, which LuaJIT misreads above 2^31. format and
 * tostring show a table or function by its type, as an address would differ
 * on every worker and in every replay.
 */
#include "sandbox/string_library.h"
#include "sandbox/freeze.h"
#include "sandbox/lua_pattern.h"
#include "sandbox/sandbox.h"

#include <lauxlib.h>
#include <string.h>

#define MAGIC         "^$*+?.([%-"
#define OPTION_DIGITS 2 /* of a width or precision: LuaJIT's own limit */

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

static int find_or_match(lua_State *L, bool find)
{
    size_t len, plen;
    const char *s = luaL_checklstring(L, 1, &len), *p = luaL_checklstring(L, 2, &plen);
    lua_Integer init = luaL_optinteger(L, 3, 1); /* 1-based; negative: from the end */
    init = init < 0 ? init + (lua_Integer)len : init - 1;
    init = init < 0 ? 0 : init > (lua_Integer)len ? (lua_Integer)len : init;
    bool plain = find && (lua_toboolean(L, 4) || is_plain(p, plen));
    if (plain) {
        const char *found = memmem(s + init, len - (size_t)init, p, plen);
        if (!found) {
            lua_pushnil(L);
            return 1;
        }
        lua_pushinteger(L, found - s + 1);
        lua_pushinteger(L, found - s + (lua_Integer)plen);
        return 2;
    }
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

/* The iterator. Upvalues: subject, pattern, offset of the next search. */
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
        lua_pushinteger(L, end - s + (end == at)); /* after an empty match, one further */
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

/* A replacement string: expands %0 to %9 and %%. */
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

/* Upvalue 1 is the stock function; its arguments are checked already. */
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

/* Pushes the type name of a value that has no string form. */
static void push_type(lua_State *L, int at)
{
    if (lua_type(L, at) == LUA_TLIGHTUSERDATA)
        lua_pushliteral(L, "null");
    else
        lua_pushstring(L, proxy_is(L, at) ? "table" : luaL_typename(L, at));
}

/* Checks the option at `form`, after its %, and the argument at `at`; returns the option's letter. The stock
 * function's errors would not name the function and line that the policy called. */
static const char *check_option(lua_State *L, const char *form, int at)
{
    const char *begin = form;
    form += strspn(form, "-+ #0");
    form += strspn(form, "0123456789") <= OPTION_DIGITS ? strspn(form, "0123456789") : 0;
    if (*form == '.')
        form += 1 + (strspn(form + 1, "0123456789") <= OPTION_DIGITS ? strspn(form + 1, "0123456789") : 0);
    if (*form == 'p')
        luaL_error(L, "string.format: %%p would show an address: use %%s");
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

int string_library_format(lua_State *L)
{
    size_t len;
    const char *form = luaL_checklstring(L, 1, &len), *end = form + len;
    for (int at = 2; (form = memchr(form, '%', (size_t)(end - form))); form++) {
        if (*++form == '%')
            continue;
        form = check_option(L, form, at);
        int type = lua_type(L, at);
        if (type != LUA_TSTRING && type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TNIL) {
            push_type(L, at);
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
        push_type(L, 1);
    }
    return 1;
}
