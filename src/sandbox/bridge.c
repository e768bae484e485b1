/*
 * From Lua to JSON. Depth, number of values and bytes are bounded here, also of what a table shares: a loop
 * that puts one long string into each item of a list would become gigabytes. For the other direction parse.h
 * bounds them.
 */
#include "sandbox/bridge.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "sandbox/bridge_internal.h"
#include "sandbox/freeze.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- detection of changes: most values come back unchanged, which one walk finds without building ---- */

static bool is_unchanged(lua_State *L, int at, const struct json *original);

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
    return was && is_unchanged(L, lua_gettop(L), was);
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

/* Whether the value at `at` equals what `original` is pushed as. Its cost is bounded by the original's size.
 */
static bool is_unchanged(lua_State *L, int at, const struct json *original)
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

/* ---- sources: which Lua table was made from which JSON value while a file loads, so that a schema that
 * nobody changed keeps its bytes ---- */

static const char sources_key; /* its address names the table in the registry */

void bridge_remember_json(lua_State *L, const struct json *value)
{
    lua_pushlightuserdata(L, (void *)&sources_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushlightuserdata(L, (void *)&sources_key);
        lua_pushvalue(L, -2);
        lua_rawset(L, LUA_REGISTRYINDEX);
    }
    lua_pushvalue(L, -2);
    lua_pushlightuserdata(L, (void *)value);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

const struct json *bridge_json_source(lua_State *L, int at)
{
    lua_pushvalue(L, at);
    lua_pushlightuserdata(L, (void *)&sources_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    const struct json *found = NULL;
    if (lua_istable(L, -1) && lua_istable(L, -2)) {
        lua_pushvalue(L, -2);
        lua_rawget(L, -2);
        found = lua_touserdata(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    return found;
}

void bridge_forget_json(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&sources_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

/* ---- reading ---- */

#define PATH_KEY_BYTES 64u /* of each name in a message's path */

/* The path to the value that is being read, for messages and to detect cycles. */
struct read_path {
    const struct read_path *up;
    const void *table;
    struct str key; /* or index */
    int index;
    int depth;
};

struct read_state {
    lua_State *L;
    struct arena *arena;
    const char *what;
    bool by_table;
    uint32_t nodes;
    struct sandbox *sandbox;
    const struct json *given; /* the original of the whole value: its size is not counted; NULL: none */
    size_t *written;          /* bytes of this run */
    size_t limit;
};

static void add_path(struct buf *out, const struct read_path *path)
{
    if (!path->up)
        return;
    add_path(out, path->up);
    if (path->index)
        buf_printf(out, "[%d]", path->index);
    else
        buf_printf(out, "." STR_FMT, STR_ARG(str_cut(path->key, PATH_KEY_BYTES)));
}

static int fail_at(struct read_state *r, const struct read_path *path, const char *problem)
{
    struct buf text = buf_in(r->arena);
    buf_text(&text, r->what);
    add_path(&text, path);
    buf_byte(&text, '\0');
    return luaL_error(r->L, "%s: %s", text.at, problem);
}

size_t bridge_size(const struct json *value)
{
    size_t bytes = BRIDGE_VALUE_BYTES;
    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        return bytes + value->len;
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++)
        bytes += bridge_size(&value->items[i]);
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->len; i++)
        bytes += value->members[i].key.len + bridge_size(&value->members[i].value);
    return bytes;
}

static size_t limit_of(const struct sandbox_context *now)
{
    return now->loading ? BRIDGE_LOAD_MAX_BYTES : BRIDGE_MAX_BYTES;
}

static int raise_too_large(lua_State *L, const char *place)
{
    size_t most = limit_of(sandbox_context(sandbox_of(L)));
    return luaL_error(
        L,
        "%s: more than %d bytes of JSON from Lua in one run (a table or string counts each time it "
        "is written): write less, or write it once",
        place, (int)most);
}

void bridge_charge(lua_State *L, const char *what, size_t bytes)
{
    struct sandbox *sandbox = sandbox_of(L);
    if ((*sandbox_written_bytes(sandbox) += bytes) > limit_of(sandbox_context(sandbox)))
        raise_too_large(L, what);
}

/* `path` is of the value that is too much. */
static void charge(struct read_state *r, const struct read_path *path, size_t bytes)
{
    *r->written += bytes;
    if (*r->written <= r->limit)
        return;
    if (r->given) { /* its size is measured only if it matters */
        r->limit += bridge_size(r->given);
        r->given = NULL;
        if (*r->written <= r->limit)
            return;
    }
    struct buf text = buf_in(r->arena);
    buf_text(&text, r->what);
    add_path(&text, path);
    buf_byte(&text, '\0');
    raise_too_large(r->L, text.at);
}

static struct json read_value(struct read_state *r, int at, const struct read_path *path,
                              const struct bridge_hints *hints);

static struct json read_number(struct read_state *r, double n, const struct read_path *path,
                               const struct json *original)
{
    struct bridge_origins *origins = sandbox_context(sandbox_of(r->L))->origins;
    bool several = false;
    if (json_is(original, JSON_NUMBER) && bridge_number(original) == n) {
        charge(r, path, original->len);
        return *original;
    }
    const struct json *literal = origins ? bridge_origins_number(origins, n, &several) : NULL;
    if (several)
        fail_at(
            r, path,
            "several numbers of the input are equal in Lua, whose numbers hold 15 digits, so it is unclear "
            "which of them this is: leave it in its field, or move the object that contains it");
    if (literal) {
        charge(r, path, literal->len);
        return *literal;
    }
    if (!isfinite(n))
        fail_at(r, path, "JSON has no number for inf or nan");
    if (n == floor(n) && fabs(n) < 9007199254740992.0)
        return json_integer(r->arena, (int64_t)n);
    return json_number(r->arena, n);
}

/* Length of the longest prefix that is valid UTF-8. */
static size_t utf8_prefix(struct str s)
{
    const char *p = s.at, *end = s.at + s.len;
    for (size_t len = 1; p < end && len; p += len)
        len = (unsigned char)*p < 0x80 ? 1 : str_utf8_length(p, end);
    return (size_t)(p - s.at);
}

/* A copy with invalid UTF-8, for example of a truncated string, replaced by U+FFFD. */
static struct str copy_utf8(struct arena *arena, struct str s)
{
    struct buf out = buf_in(arena);
    size_t good = utf8_prefix(s);
    if (good == s.len)
        return arena_dup(arena, s);
    for (; good < s.len; good = utf8_prefix(s)) {
        buf_add(&out, s.at, good);
        buf_text(&out, "\xEF\xBF\xBD");
        s = (struct str){s.at + good + 1, s.len - good - 1};
    }
    buf_str(&out, s);
    return buf_view(&out);
}

static bool same_value(const struct json *a, const struct json *b)
{
    return b && a->type == b->type && a->len == b->len && a->truth == b->truth && a->text == b->text;
}

static struct json read_list(struct read_state *r, int at, size_t count, const struct read_path *path,
                             const struct bridge_hints *hints)
{
    struct json *items = ARENA_ARRAY(r->arena, struct json, count ? count : 1);
    uint32_t had = json_is(hints->original, JSON_ARRAY) ? hints->original->len : 0;
    bool same = json_is(hints->original, JSON_ARRAY) && had == count;
    struct read_path inner = {.up = path, .depth = path->depth + 1};
    for (size_t i = 0; i < count; i++) {
        struct bridge_hints item = {.original = i < had ? &hints->original->items[i] : NULL,
                                    .schema = json_get_text(hints->schema, "items")};
        inner.index = (int)i + 1;
        lua_rawgeti(r->L, at, (int)i + 1);
        items[i] = read_value(r, lua_gettop(r->L), &inner, &item);
        lua_pop(r->L, 1);
        same = same && same_value(&items[i], item.original);
    }
    return same ? *hints->original : json_array(items, count);
}

static const struct json *schema_of(const struct json *schema, struct str key)
{
    const struct json *named = json_get(json_get_text(schema, "properties"), key);
    return named ? named : json_get_text(schema, "additionalProperties");
}

/* Reads the member's value; returns whether the table has the key. */
static bool read_member(struct read_state *r, int at, struct str key, const struct read_path *path,
                        const struct bridge_hints *hints, struct json *out)
{
    struct read_path inner = {.up = path, .key = key, .depth = path->depth + 1};
    lua_pushlstring(r->L, key.at, key.len);
    lua_rawget(r->L, at);
    bool there = !lua_isnil(r->L, -1);
    if (there)
        charge(r, &inner, key.len);
    if (there)
        *out = read_value(r, lua_gettop(r->L), &inner, hints);
    lua_pop(r->L, 1);
    return there;
}

static int by_key(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Keys that the original does not have, sorted by bytes, as Lua has no order. */
static size_t new_keys(struct read_state *r, int at, const struct json *original, struct str *out)
{
    size_t count = 0;
    lua_pushnil(r->L);
    while (lua_next(r->L, at)) {
        struct str key;
        lua_pop(r->L, 1);
        key.at = lua_tolstring(r->L, -1, &key.len);
        if (!json_is(original, JSON_OBJECT) || !json_get(original, key))
            out[count++] = arena_dup(r->arena, key);
    }
    qsort(out, count, sizeof(*out), by_key);
    return count;
}

/* `count`: the number of keys in the table. */
static struct json read_object(struct read_state *r, int at, size_t count, bool lazy,
                               const struct read_path *path, const struct bridge_hints *hints)
{
    const struct json *original = json_is(hints->original, JSON_OBJECT) ? hints->original : NULL;
    uint32_t had = original ? original->len : 0;
    charge(r, path, had * (size_t)BRIDGE_VALUE_BYTES);
    struct json_member *members = ARENA_ARRAY(r->arena, struct json_member, had + count + 1);
    size_t n = 0, known = 0;
    bool same = original != NULL;
    for (uint32_t i = 0; i < had; i++) {
        const struct json_member *was = &original->members[i];
        struct bridge_hints member = {.original = &was->value, .schema = schema_of(hints->schema, was->key)};
        if (read_member(r, at, was->key, path, &member, &members[n].value)) {
            known++;
        } else if (lazy && bridge_is_deferred(&was->value)) {
            members[n].value = was->value;
            charge(r, path, was->value.len);
        } else {
            same = false;
            continue;
        }
        same = same && same_value(&members[n].value, &was->value);
        members[n++].key = was->key;
    }
    if (same && known == count)
        return *original;
    struct str *added = ARENA_ARRAY(r->arena, struct str, count + 1);
    size_t add = known < count ? new_keys(r, at, original, added) : 0;
    for (size_t i = 0; i < add; i++) {
        struct bridge_hints member = {.original = NULL, .schema = schema_of(hints->schema, added[i])};
        read_member(r, at, added[i], path, &member, &members[n].value);
        members[n++].key = added[i];
    }
    return json_object(r->arena, members, n);
}

struct keys {
    size_t names, numbers, highest;
};

static struct keys count_keys(struct read_state *r, int at, const struct read_path *path)
{
    struct keys keys = {0};
    lua_pushnil(r->L);
    while (lua_next(r->L, at)) {
        lua_pop(r->L, 1);
        double n = lua_type(r->L, -1) == LUA_TNUMBER ? lua_tonumber(r->L, -1) : 0;
        struct str name;
        name.at = lua_type(r->L, -1) == LUA_TSTRING ? lua_tolstring(r->L, -1, &name.len) : NULL;
        if (name.at && utf8_prefix(name) != name.len)
            fail_at(r, path, "a field whose name is not UTF-8");
        if (name.at)
            keys.names++;
        else if (n >= 1 && n == floor(n) && n < 1e9)
            keys.numbers++;
        else
            fail_at(r, path, "a table for JSON has names, or positions 1, 2, 3, … as its keys");
        keys.highest = n > (double)keys.highest ? (size_t)n : keys.highest;
        if (keys.names + keys.numbers > BRIDGE_MAX_NODES)
            fail_at(r, path, "more values than JSON of this size may have (100000)");
    }
    if (keys.names && keys.numbers)
        fail_at(r, path, "a table with both list items and named fields: JSON has lists or objects");
    if (keys.highest != keys.numbers)
        fail_at(r, path, "a list with a hole in it: put null there, or close the gap");
    return keys;
}

static bool schema_wants(const struct json *schema, const char *type)
{
    return str_is(json_str(json_get_text(schema, "type")), type);
}

static bool empty_is_list(enum mark mark, const struct read_path *path, const struct bridge_hints *hints)
{
    if (mark == MARK_ARRAY || mark == MARK_OBJECT || mark == MARK_LAZY)
        return mark == MARK_ARRAY;
    if (hints->original && (hints->original->type == JSON_ARRAY || hints->original->type == JSON_OBJECT))
        return hints->original->type == JSON_ARRAY;
    if (schema_wants(hints->schema, "object") || schema_wants(hints->schema, "array"))
        return schema_wants(hints->schema, "array");
    return path->up != NULL;
}

static struct json read_table(struct read_state *r, int at, struct read_path *path,
                              const struct bridge_hints *hints)
{
    enum mark mark = sandbox_mark(r->L, at);
    if (mark == MARK_OUTCOME || mark == MARK_RULE || mark == MARK_TYPE || mark == MARK_ID ||
        mark == MARK_CALL || mark == MARK_CONDITION)
        fail_at(r, path, "expected plain data, got an outcome, a rule, a condition, a type or `call`");
    path->table = lua_topointer(r->L, at);
    for (const struct read_path *up = path->up; up; up = up->up)
        if (up->table == path->table)
            fail_at(r, path, "a table that contains itself: JSON has no cycles");
    if (path->depth >= BRIDGE_MAX_DEPTH)
        fail_at(r, path, "nested deeper than 128");
    luaL_checkstack(r->L, 6, "nested too deep");
    struct bridge_hints moved = *hints;
    moved.original = bridge_origin_of(r->L, at);
    if (!moved.original && r->by_table)
        moved.original = bridge_json_source(r->L, at);
    if (moved.original)
        hints = &moved;
    struct keys keys = count_keys(r, at, path);
    if (keys.numbers || (!keys.names && empty_is_list(mark, path, hints)))
        return read_list(r, at, keys.numbers, path, hints);
    return read_object(r, at, keys.names, mark == MARK_LAZY, path, hints);
}

static struct json read_value(struct read_state *r, int at, const struct read_path *path,
                              const struct bridge_hints *hints)
{
    struct read_path here = *path;
    struct str s;
    char problem[64];
    proxy_unwrap(r->L, at);
    if (sandbox_deadline_passed(r->sandbox)) /* a table that was emptied is slow to look at */
        sandbox_raise_deadline(r->L);
    charge(r, path, BRIDGE_VALUE_BYTES);
    if (++r->nodes > BRIDGE_MAX_NODES)
        fail_at(r, path, "more values than JSON of this size may have (100000)");
    switch (lua_type(r->L, at)) {
    case LUA_TBOOLEAN:
        return json_is(hints->original, JSON_BOOL) && hints->original->truth == lua_toboolean(r->L, at)
                   ? *hints->original
                   : json_bool(lua_toboolean(r->L, at));
    case LUA_TNUMBER:
        return read_number(r, lua_tonumber(r->L, at), path, hints->original);
    case LUA_TSTRING:
        s.at = lua_tolstring(r->L, at, &s.len);
        charge(r, path, s.len);
        return json_is(hints->original, JSON_STRING) && str_eq(json_str(hints->original), s)
                   ? *hints->original
                   : json_string(copy_utf8(r->arena, s));
    case LUA_TTABLE:
        return read_table(r, at, &here, hints);
    case LUA_TLIGHTUSERDATA:
        return json_is(hints->original, JSON_NULL) ? *hints->original : json_null();
    case LUA_TNIL:
        return json_null();
    default:
        snprintf(problem, sizeof(problem), "expected plain data, got a %s", luaL_typename(r->L, at));
        fail_at(r, path, problem);
        return json_null();
    }
}

const struct json *bridge_read(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                               struct arena *arena)
{
    static const struct bridge_hints none;
    struct sandbox *sandbox = sandbox_of(L);
    const struct sandbox_context *now = sandbox_context(sandbox);
    struct read_state r = {.L = L,
                           .arena = arena,
                           .what = what,
                           .by_table = hints && hints->by_table,
                           .sandbox = sandbox,
                           .given = hints && !now->loading ? hints->original : NULL,
                           .written = sandbox_written_bytes(sandbox),
                           .limit = limit_of(now)};
    struct read_path root = {0};
    if (!hints)
        hints = &none;
    if (at < 0 && at > LUA_REGISTRYINDEX)
        at = lua_gettop(L) + at + 1;
    if (hints->original && is_unchanged(L, at, hints->original))
        return hints->original;
    struct json value = read_value(&r, at, &root, hints);
    if (hints->original && same_value(&value, hints->original))
        return hints->original;
    struct json *out = ARENA_NEW(arena, struct json);
    *out = value;
    return out;
}

const struct json *bridge_read_copy(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                                    struct arena *arena)
{
    struct json *own = ARENA_NEW(arena, struct json);
    const struct json *value = bridge_read(L, at, what, hints, arena);
    if (hints && value == hints->original)
        bridge_charge(L, what, bridge_size(value));
    *own = json_copy(arena, value);
    return own;
}
