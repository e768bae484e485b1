/* The words of policies that are written in C. */
#include "policy/policy_internal.h"

#include "base/arena.h"
#include "base/date.h"
#include "base/hash.h"
#include "json/build.h"
#include "json/parse.h"
#include "policy/source_location.h"
#include "sandbox/bridge.h"
#include "schema/format.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

/* ---- json "file" and json [[text]], read while a policy loads, and the order of fields. Lua tables keep
 * neither number texts nor order, so the JSON of a table is remembered until the file is loaded. ---- */

/* A file is read once per set. */
static void read_file(lua_State *L, const struct sandbox_context *now, struct str name, struct json *out)
{
    struct why why = {""};
    if (!now->folder)
        luaL_error(L, "json \"%s\": this policy has no folder to read a file from", name.at);
    if (name.len && (name.at[0] == '/' || memmem(name.at, name.len, "..", 2)))
        luaL_error(L, "json \"%s\": expected a file beside the policy or below, without '/' in front or '..'",
                   name.at);
    struct str path = arena_printf(now->arena, "%s/" STR_FMT, now->folder, STR_ARG(name));
    struct json_file *file = now->files->first;
    while (file && !str_eq(file->path, path))
        file = file->next;
    if (file) {
        *out = file->value;
        return;
    }
    struct arena *arena = now->files->arena;
    if (json_read_file(arena, path.at, SANDBOX_SOURCE_MAX_BYTES, out, &why) != OK)
        luaL_error(L, "json: %s", why.text);
    hash_add(&now->files->hash, hash_stable((struct str){out->raw, out->raw_len}).low);
    file = ARENA_NEW(arena, struct json_file);
    *file = (struct json_file){now->files->first, arena_dup(arena, path), *out};
    now->files->first = file;
}

static int word_json(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(L);
    struct str given = sandbox_string(L, 1);
    if (lua_type(L, 1) != LUA_TSTRING)
        return luaL_error(L, "json: expected a file's name or JSON in [[…]], got %s", luaL_typename(L, 1));
    if (!now->loading)
        return luaL_error(
            L, "json: files and texts are read while the policy loads: put it at the top of the file");
    struct json *value = ARENA_NEW(now->arena, struct json);
    struct str trimmed = str_trim(given);
    if (trimmed.len && strchr("{[\"", trimmed.at[0])) {
        struct json_error fault;
        int line = 1;
        given = arena_dup(now->arena, given);
        bool is_json = json_parse(now->arena, given, NULL, value, &fault) == OK;
        for (size_t i = 0; !is_json && i < fault.offset && i < given.len; i++)
            line += given.at[i] == '\n';
        if (!is_json)
            luaL_error(L, "json: line %d of the text: %s", line, fault.text);
        bridge_charge(L, "json", bridge_size(value));
    } else {
        read_file(L, now, given, value);
    }
    bridge_push(L, value);
    return 1;
}

/* json_decode(text): the value; or nil and the reason. */
static int word_json_decode(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(L);
    struct json *value = ARENA_NEW(now->arena, struct json);
    struct json_error fault;
    if (lua_type(L, 1) != LUA_TSTRING)
        return luaL_error(L, "json_decode: expected a string, got %s", luaL_typename(L, 1));
    bridge_charge(L, "json_decode", sandbox_string(L, 1).len); /* before the copy: a run may catch it */
    struct str text = arena_dup(now->arena, sandbox_string(L, 1));
    if (json_parse(now->arena, text, NULL, value, &fault) == OK) {
        bridge_charge(L, "json_decode", bridge_size(value));
        bridge_push(L, value);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, fault.text);
    return 2;
}

#define ORDER_NAMES_MAX 1000u /* more fields than that keep the order of their names */

size_t word_read_names(lua_State *L, int list, struct str *names, size_t most)
{
    size_t count = 0;
    for (bool more = true; more && count < most; count += more) {
        lua_rawgeti(L, list, (int)count + 1);
        names[count] = sandbox_string(L, -1);
        more = names[count].at != NULL;
        lua_pop(L, 1);
    }
    return count;
}

/* source_order(names, line): the list in the order of the first table from that line on that has exactly
 * these fields; the list itself if none exists. */
static int word_source_order(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(L);
    int line = (int)luaL_checkinteger(L, 2);
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t count = lua_objlen(L, 1);
    if (!now->tokens || count < 2 || count > ORDER_NAMES_MAX)
        return 1;
    struct str *names = ARENA_ARRAY(now->arena, struct str, count);
    if (word_read_names(L, 1, names, count) < count || !location_sort_fields(now->tokens, line, names, count))
        return 1;
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, names[i].at, names[i].len);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

/* order(table, names): the table, whose JSON has its fields in the order of these names. */
static int word_order(lua_State *L)
{
    const struct sandbox_context *now = sandbox_context(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    if (now->loading) {
        size_t count = lua_objlen(L, 2);
        struct str *names = ARENA_ARRAY(now->arena, struct str, count);
        struct json_member *members = ARENA_ARRAY(now->arena, struct json_member, count);
        count = word_read_names(L, 2, names, count);
        for (size_t i = 0; i < count; i++)
            members[i] = json_member(arena_dup(now->arena, names[i]), json_null());
        lua_settop(L, 1);
        bridge_record(L, json_keep(now->arena, json_object(now->arena, members, count)));
    }
    lua_settop(L, 1);
    return 1;
}

/* ---- time, date and duration: ISO 8601 as models and tools write it; times without a zone are UTC. There is
 * no clock, so that a replay gives the same result. ---- */

#define DAY_S 86400

bool word_time_parse(struct str s, double *out)
{
    int64_t seconds, ns = 0;
    s = str_trim(s);
    if (!date_read(s, &seconds) && (!time_read(&s, &seconds, &ns) || s.len))
        return false;
    *out = (double)seconds + (double)ns / 1e9;
    return true;
}

static struct str text_at(lua_State *L, int at, const char *word)
{
    if (lua_type(L, at) != LUA_TSTRING)
        luaL_error(L, "%s: expected text, got %s", word, luaL_typename(L, at));
    return sandbox_string(L, at);
}

/* A number is seconds already; nil: the text is not one. */
static int push_seconds(lua_State *L, const char *word, bool (*parse)(struct str, double *))
{
    double seconds;
    if (lua_type(L, 1) == LUA_TNUMBER)
        lua_pushvalue(L, 1);
    else if (parse(text_at(L, 1, word), &seconds))
        lua_pushnumber(L, seconds);
    else
        lua_pushnil(L);
    return 1;
}

static int word_time(lua_State *L)
{
    return push_seconds(L, "time", word_time_parse);
}

/* The day in UTC of seconds or of a time. */
static int word_day(lua_State *L)
{
    double t;
    struct tm day;
    char text[40];
    if (lua_type(L, 1) == LUA_TNUMBER) {
        t = lua_tonumber(L, 1);
    } else if (!word_time_parse(text_at(L, 1, "date"), &t)) {
        lua_pushnil(L);
        return 1;
    }
    if (!(fabs(t) < 1e13))
        return luaL_error(L, "date: the time is beyond the calendar");
    time_t seconds = (time_t)floor(t);
    gmtime_r(&seconds, &day);
    snprintf(text, sizeof(text), "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    lua_pushstring(L, text);
    return 1;
}

static bool take_digit(struct str *s, int *digit)
{
    if (!s->len || !ascii_is_digit(s->at[0]))
        return false;
    *digit = s->at[0] - '0';
    *s = str_from(*s, 1);
    return true;
}

static bool take_char(struct str *s, const char *any)
{
    if (!s->len || !s->at[0] || !strchr(any, s->at[0]))
        return false;
    *s = str_from(*s, 1);
    return true;
}

/* "90" or "1.5". */
static bool take_amount(struct str *s, double *out)
{
    double whole = 0, fraction = 0, scale = 0.1;
    size_t before = s->len;
    int digit;
    while (take_digit(s, &digit))
        whole = whole * 10 + digit;
    if (s->len == before)
        return false;
    bool point = take_char(s, ".,");
    before = s->len;
    for (; point && take_digit(s, &digit); scale /= 10)
        fraction += digit * scale;
    *out = whole + fraction;
    return !point || s->len < before;
}

static double unit_seconds(char unit)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'w', 7.0 * DAY_S}, {'d', DAY_S}, {'h', 3600}, {'m', 60}, {'s', 1}};
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if ((unit | 32) == units[i].unit)
            return units[i].seconds;
    return 0;
}

/* Amounts and units: "1h30m", and after its P and T "PT1H30M". Months and years have no length: refused. */
bool word_duration_parse(struct str s, double *out)
{
    double amount;
    s = str_trim(s);
    bool iso = take_char(&s, "Pp"), clock = !iso;
    *out = 0;
    if (!s.len)
        return false;
    while (s.len) {
        if (iso && !clock && take_char(&s, "Tt"))
            clock = true;
        if (!take_amount(&s, &amount) || !s.len)
            return false;
        char unit = s.at[0];
        if (unit_seconds(unit) == 0 || (!clock && strchr("hHmMsS", unit)))
            return false;
        *out += amount * unit_seconds(unit);
        s = str_from(s, 1);
    }
    return true;
}

static int word_duration(lua_State *L)
{
    return push_seconds(L, "duration", word_duration_parse);
}

/* ---- url, host_in and glob. Hosts are compared as a whole: "evil-example.com" and "example.com.evil.org"
 * are not "example.com". A URL that browsers parse differently (with a backslash, a space) is no URL. ---- */

#define GLOB_MAX_BYTES 1024u /* of a pattern; bounds pattern times text */
#define HOST_MAX_BYTES 253u

struct url {
    struct uri_parts parts;
    struct str user, host, port;
};

static bool read_url(struct str s, struct url *out)
{
    s = str_trim(s);
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.at[i] <= ' ' || s.at[i] == '\\' || s.at[i] == 127)
            return false;
    struct uri_parts parts = out->parts = uri_parts(s);
    return parts.scheme.len && uri_is_scheme((struct str){parts.scheme.at, parts.scheme.len - 1}) &&
           uri_authority(str_from(parts.authority, 2), &out->user, &out->host, &out->port) &&
           out->host.len > 0 && out->host.len <= HOST_MAX_BYTES;
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

static int word_url(lua_State *L)
{
    struct url url;
    if (!read_url(check_text(L, 1), &url)) {
        lua_pushnil(L);
        return 1;
    }
    lua_createtable(L, 0, 7);
    set_field(L, "scheme", str_cut(url.parts.scheme, url.parts.scheme.len - 1), true);
    set_field(L, "host", url.host, true);
    set_field(L, "user", url.user, false);
    set_field(L, "query", str_from(url.parts.query, 1), false);
    set_field(L, "fragment", str_from(url.parts.fragment, 1), false);
    set_field(L, "path", url.parts.path.len ? url.parts.path : STR_LIT("/"), false);
    if (url.port.len > 1) {
        lua_pushlstring(L, url.port.at + 1, url.port.len - 1);
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

static int word_host_in(lua_State *L)
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
        lua_rawgeti(L, 2, i);
        if (lua_isnil(L, -1))
            break;
        if (lua_type(L, -1) != LUA_TSTRING)
            return luaL_error(L, "host_in: expected a list of host names, got a %s in it",
                              luaL_typename(L, -1));
        found = host_fits(sandbox_string(L, -1), host);
        lua_pop(L, 1);
    }
    lua_pushboolean(L, found);
    return 1;
}

static int word_glob(lua_State *L)
{
    struct str pattern = check_text(L, 1), text = check_text(L, 2);
    if (pattern.len > GLOB_MAX_BYTES)
        return luaL_error(L, "glob: expected a pattern of at most %d bytes, got %d", (int)GLOB_MAX_BYTES,
                          (int)pattern.len);
    lua_pushboolean(L, str_glob(pattern, text));
    return 1;
}

const luaL_Reg words_in_c[] = {
    {"json", word_json}, {"json_decode", word_json_decode}, {"time", word_time}, {"duration", word_duration},
    {"url", word_url},   {"host_in", word_host_in},         {"glob", word_glob}, {NULL, NULL}};

const luaL_Reg word_builtins[] = {{"time", word_time},
                                  {"day", word_day},
                                  {"source_order", word_source_order},
                                  {"order", word_order},
                                  {NULL, NULL}};
