/*
 * url, host_in and glob. Hosts are compared as a whole: "evil-example.com"
 * and "example.com.evil.org" are not "example.com". A URL that browsers parse
 * differently (with a backslash or a space) is no URL.
 */
#include "sandbox/read_only_proxy.h"
#include "policy/vocabulary.h"
#include "base/str.h"

#include <lauxlib.h>
#include <stdbool.h>

#define GLOB_MAX_BYTES 1024u /* of a pattern; bounds pattern times text */
#define HOST_MAX_BYTES 253u

struct url {
    struct str scheme, user, host, port, path, query, fragment;
};

static size_t find_any(struct str s, const char *any)
{
    size_t i = 0;
    while (i < s.len && !strchr(any, s.at[i]))
        i++;
    return i;
}

static struct str upto(struct str s, size_t n)
{
    return (struct str){s.at, n};
}

static bool is_scheme(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
            return false;
    }
    return s.len > 0;
}

/* [user@]host[:port] */
static bool read_authority(struct str s, struct url *out)
{
    for (size_t i = s.len; i-- > 0;) {
        if (s.at[i] != '@')
            continue;
        out->user = upto(s, i);
        s = str_from(s, i + 1);
        break;
    }
    size_t end = find_any(s, ":");
    if (s.len && s.at[0] == '[') {
        end = find_any(s, "]");
        if (end++ == s.len)
            return false;
    }
    out->host = upto(s, end);
    struct str rest = str_from(s, end);
    if (rest.len && rest.at[0] != ':')
        return false;
    out->port = str_from(rest, 1);
    for (size_t i = 0; i < out->port.len; i++)
        if (out->port.at[i] < '0' || out->port.at[i] > '9')
            return false;
    return out->host.len > 0 && out->host.len <= HOST_MAX_BYTES;
}

static bool read_url(struct str s, struct url *out)
{
    *out = (struct url){0};
    s = str_trim(s);
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] <= ' ' || s.at[i] == '\\' || s.at[i] == 127)
            return false;
    size_t at = find_any(s, ":");
    out->scheme = upto(s, at);
    if (s.len < at + 3 || !is_scheme(out->scheme) || memcmp(s.at + at, "://", 3) != 0)
        return false;
    s = str_from(s, at + 3);
    at = find_any(s, "/?#");
    if (!read_authority(upto(s, at), out))
        return false;
    s = str_from(s, at);
    at = find_any(s, "#");
    out->fragment = str_from(s, at + 1);
    s = upto(s, at);
    at = find_any(s, "?");
    out->query = str_from(s, at + 1);
    out->path = upto(s, at);
    return true;
}

static struct str check_text(lua_State *L, int at)
{
    struct str s;
    s.at = luaL_checklstring(L, at, &s.len);
    return s;
}

static void set_field(lua_State *L, const char *name, struct str value, bool lower)
{
    if (!value.len)
        return;
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t i = 0; i < value.len; i++)
        luaL_addchar(&b, lower ? ascii_lower(value.at[i]) : value.at[i]);
    luaL_pushresult(&b);
    lua_setfield(L, -2, name);
}

int word_url(lua_State *L)
{
    struct url url;
    if (!read_url(check_text(L, 1), &url)) {
        lua_pushnil(L);
        return 1;
    }
    lua_createtable(L, 0, 7);
    set_field(L, "scheme", url.scheme, true);
    set_field(L, "host", url.host, true);
    set_field(L, "user", url.user, false);
    set_field(L, "query", url.query, false);
    set_field(L, "fragment", url.fragment, false);
    set_field(L, "path", url.path.len ? url.path : STR_LIT("/"), false);
    if (url.port.len) {
        lua_pushlstring(L, url.port.at, url.port.len);
        lua_pushnumber(L, lua_tonumber(L, -1));
        lua_setfield(L, -3, "port");
        lua_pop(L, 1);
    }
    return 1;
}

static bool same_host(struct str a, struct str b)
{
    return a.len == b.len && a.len > 0 && str_contains_nocase(a, b);
}

/* "*.example.org" matches any subdomain of example.org, but not example.org itself. */
static bool host_fits(struct str pattern, struct str host)
{
    if (!str_starts(pattern, "*."))
        return same_host(pattern, host);
    struct str suffix = str_from(pattern, 1);
    return suffix.len > 1 && host.len > suffix.len &&
           same_host(str_from(host, host.len - suffix.len), suffix);
}

int word_host_in(lua_State *L)
{
    struct str text = check_text(L, 1);
    struct url url;
    proxy_unwrap(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    struct str host = read_url(text, &url) ? url.host : text;
    if (host.len && host.at[host.len - 1] == '.') /* the root's dot */
        host.len--;
    bool found = false;
    for (int i = 1; !found; i++) {
        struct str pattern;
        lua_rawgeti(L, 2, i);
        if (lua_isnil(L, -1))
            break;
        if (lua_type(L, -1) != LUA_TSTRING)
            return luaL_error(L, "host_in: expected a list of host names, got a %s in it",
                              luaL_typename(L, -1));
        pattern.at = lua_tolstring(L, -1, &pattern.len);
        found = host_fits(pattern, host);
        lua_pop(L, 1);
    }
    lua_pushboolean(L, found);
    return 1;
}

int word_glob(lua_State *L)
{
    struct str pattern = check_text(L, 1), text = check_text(L, 2);
    if (pattern.len > GLOB_MAX_BYTES)
        return luaL_error(L, "glob: expected a pattern of at most %d bytes, got %d", (int)GLOB_MAX_BYTES,
                          (int)pattern.len);
    lua_pushboolean(L, str_glob(pattern, text));
    return 1;
}
