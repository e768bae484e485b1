/* From Lua to JSON depth, number of values and bytes are bounded here, also of what a table shares: a loop
 * that puts one long string into each item of a list would become gigabytes. For the other direction parse.h
 * bounds them. */
#include "sandbox/bridge.h"

#include "base/arena.h"
#include "base/buf.h"
#include "json/build.h"
#include "sandbox/freeze.h"
#include "sandbox/sandbox.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH      128
#define MAX_NODES      100000u
#define LOAD_MAX_BYTES 16777216u /* BRIDGE_MAX_BYTES for loading one file */
#define VALUE_BYTES    8u        /* that each value counts, besides its text and its key */

/* ---- origins: which table of this run was made from which JSON value, and which literal a double that
 * cannot hold it was made from; false for several literals. The table also keeps these tables alive, as
 * another one could get the address of one that was collected. ---- */

#define EXACT_DIGITS 15u /* a number of at most this many characters survives conversion to double */

static const char origins_key; /* its address names the table in the registry */

static void push_origins(lua_State *L)
{
    struct bridge_run *run = sandbox_bridge(L);
    lua_pushlightuserdata(L, (void *)&origins_key);
    if (run->recorded) {
        lua_rawget(L, LUA_REGISTRYINDEX);
        return;
    }
    lua_createtable(L, 0, 4);
    lua_insert(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    run->recorded = true;
}

void bridge_record(lua_State *L, const struct json *value)
{
    push_origins(L);
    lua_pushvalue(L, -2);
    lua_pushlightuserdata(L, (void *)value);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

const struct json *bridge_origin(lua_State *L, int at)
{
    const struct bridge_run *run = sandbox_bridge(L);
    if (lua_type(L, at) != LUA_TTABLE)
        return NULL;
    if (run->pinned && run->pinned == lua_topointer(L, at))
        return run->pinned_value;
    if (!run->recorded)
        return NULL;
    lua_pushvalue(L, at);
    push_origins(L);
    lua_insert(L, -2);
    lua_rawget(L, -2);
    const struct json *found = lua_touserdata(L, -1);
    lua_pop(L, 2);
    return found;
}

void bridge_release(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&origins_key);
    lua_pushnil(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
}

static double number_of(const struct json *v)
{
    int64_t whole;
    double n = 0;
    if (v->len <= EXACT_DIGITS && json_int(v, &whole)) /* a string of digits is converted fastest */
        return (double)whole;
    json_double(v, &n);
    return n;
}

static void record_number(lua_State *L, double n, const struct json *literal)
{
    push_origins(L);
    lua_pushnumber(L, n);
    lua_pushnumber(L, n);
    lua_rawget(L, -3);
    const struct json *earlier = lua_touserdata(L, -1);
    if (lua_isnil(L, -1))
        lua_pushlightuserdata(L, (void *)literal);
    else
        lua_pushboolean(L, false);
    lua_remove(L, -2);
    if (earlier && json_equal(earlier, literal))
        lua_pop(L, 2);
    else
        lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* The literal that this double was made from; NULL: it needs none; *several: there are different ones. */
static const struct json *literal_of(lua_State *L, double n, struct arena *arena, bool *several)
{
    *several = false;
    if (!sandbox_bridge(L)->recorded || isnan(n))
        return NULL;
    push_origins(L);
    lua_pushnumber(L, n);
    lua_rawget(L, -2);
    const struct json *found = lua_touserdata(L, -1);
    *several = lua_isboolean(L, -1);
    lua_pop(L, 2);
    if (!found)
        return NULL;
    struct json exact = isfinite(n) ? json_number(arena, n) : json_null();
    return json_equal(&exact, found) ? NULL : found;
}

/* ---- to Lua ---- */

struct push_state {
    lua_State *L;
    bool records;
    const struct json *pinned; /* the caller keeps its table alive */
};

static void push_value(const struct push_state *p, const struct json *v);

/* Records that the table on top was made from this value. */
static void record(const struct push_state *p, const struct json *v)
{
    if (v == p->pinned) {
        struct bridge_run *run = sandbox_bridge(p->L);
        run->pinned = lua_topointer(p->L, -1);
        run->pinned_value = v;
    } else if (p->records) {
        bridge_record(p->L, v);
    }
}

static void push_value(const struct push_state *p, const struct json *v)
{
    lua_State *L = p->L;
    double n;
    switch (v->type) {
    case JSON_BOOL:
        lua_pushboolean(L, v->truth);
        break;
    case JSON_NUMBER:
        n = number_of(v);
        if (p->records && (v->len > EXACT_DIGITS || isinf(n)))
            record_number(L, n, v);
        lua_pushnumber(L, n);
        break;
    case JSON_STRING:
        lua_pushlstring(L, v->text, v->len);
        break;
    case JSON_ARRAY:
        luaL_checkstack(L, 8, "JSON nested too deep");
        lua_createtable(L, (int)v->len, 0);
        sandbox_set_mark(L, MARK_ARRAY);
        record(p, v);
        for (uint32_t i = 0; i < v->len; i++) {
            push_value(p, &v->items[i]);
            lua_rawseti(L, -2, (int)i + 1);
        }
        break;
    case JSON_OBJECT:
        luaL_checkstack(L, 8, "JSON nested too deep");
        lua_createtable(L, 0, (int)v->len);
        record(p, v);
        for (uint32_t i = 0; i < v->len; i++) {
            lua_pushlstring(L, v->members[i].key.at, v->members[i].key.len);
            push_value(p, &v->members[i].value);
            lua_rawset(L, -3);
        }
        if (v->len == 0)
            sandbox_set_mark(L, MARK_OBJECT);
        break;
    default:
        lua_pushlightuserdata(L, NULL);
    }
}

void bridge_push(lua_State *L, const struct json *v)
{
    struct push_state p = {L, sandbox_context(L)->keeps_origins, NULL};
    if (v)
        push_value(&p, v);
    else
        lua_pushnil(L);
}

void bridge_push_pinned(lua_State *L, const struct json *v)
{
    struct push_state p = {L, sandbox_context(L)->keeps_origins, v};
    push_value(&p, v);
}

/* ---- detection of changes: most values come back unchanged, which one walk finds without building ---- */

static bool is_unchanged(lua_State *L, int at, const struct json *original);

/* Whether the value on top is what the original has at the key below it. */
static bool is_same_entry(lua_State *L, const struct json *original)
{
    const struct json *was = NULL;
    struct str key = sandbox_string(L, -2);
    if (original->type == JSON_OBJECT && key.at) {
        was = json_get(original, key);
    } else if (original->type == JSON_ARRAY && lua_type(L, -2) == LUA_TNUMBER) {
        double n = lua_tonumber(L, -2);
        uint32_t i = n >= 1 && n <= original->len ? (uint32_t)n : 0;
        was = i && i == n ? &original->items[i - 1] : NULL;
    }
    return was && is_unchanged(L, lua_gettop(L), was);
}

/* Lists and empty objects are marked. Keys are unique on both sides: if each is in the original and the
 * counts match, they are equal. */
static bool is_same_table(lua_State *L, int at, const struct json *original)
{
    uint32_t count = original->len;
    if (sandbox_mark(L, at) != (original->type == JSON_ARRAY ? MARK_ARRAY
                                : original->len              ? MARK_NONE
                                                             : MARK_OBJECT))
        return false;
    luaL_checkstack(L, 8, "nested too deep");
    sandbox_check_deadline(L); /* a table that was emptied is slow to look at */
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1), count--)
        if (!count || !is_same_entry(L, original)) {
            lua_pop(L, 2);
            return false;
        }
    return count == 0;
}

/* Whether the value at `at` equals what `original` is pushed as. The original's size bounds its cost. */
static bool is_unchanged(lua_State *L, int at, const struct json *original)
{
    switch (lua_type(L, at)) {
    case LUA_TBOOLEAN:
        return original->type == JSON_BOOL && original->truth == lua_toboolean(L, at);
    case LUA_TNUMBER:
        return original->type == JSON_NUMBER && number_of(original) == lua_tonumber(L, at);
    case LUA_TSTRING:
        return original->type == JSON_STRING && str_eq(json_str(original), sandbox_string(L, at));
    case LUA_TTABLE:
        return (original->type == JSON_ARRAY || original->type == JSON_OBJECT) &&
               is_same_table(L, at, original);
    case LUA_TLIGHTUSERDATA:
        return original->type == JSON_NULL;
    default:
        return false;
    }
}

/* ---- from Lua ---- */

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
    uint32_t nodes;
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

static const char *place_of(const struct read_state *r, const struct read_path *path)
{
    struct buf text = buf_in(r->arena);
    buf_text(&text, r->what);
    add_path(&text, path);
    buf_byte(&text, '\0');
    return text.at;
}

static int fail_at(const struct read_state *r, const struct read_path *path, const char *problem)
{
    return luaL_error(r->L, "%s: %s", place_of(r, path), problem);
}

size_t bridge_size(const struct json *value)
{
    size_t bytes = VALUE_BYTES;
    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        return bytes + value->len;
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->len; i++)
        bytes += bridge_size(&value->items[i]);
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->len; i++)
        bytes += value->members[i].key.len + bridge_size(&value->members[i].value);
    return bytes;
}

static size_t limit_of(lua_State *L)
{
    return sandbox_context(L)->loading ? LOAD_MAX_BYTES : BRIDGE_MAX_BYTES;
}

static int raise_too_large(lua_State *L, const char *place)
{
    return luaL_error(
        L,
        "%s: more than %d bytes of JSON from Lua in one run (a table or string counts each time it "
        "is written): write less, or write it once",
        place, (int)limit_of(L));
}

void bridge_charge(lua_State *L, const char *what, size_t bytes)
{
    if ((sandbox_bridge(L)->written += bytes) > limit_of(L))
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
    raise_too_large(r->L, place_of(r, path));
}

static struct json read_value(struct read_state *r, int at, const struct read_path *path,
                              const struct bridge_hints *hints);

static struct json read_number(struct read_state *r, double n, const struct read_path *path,
                               const struct json *original)
{
    bool several;
    if (json_is(original, JSON_NUMBER) && number_of(original) == n) {
        charge(r, path, original->len);
        return *original;
    }
    const struct json *literal = literal_of(r->L, n, r->arena, &several);
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

/* `count`: the number of keys in the table. */
static struct json read_object(struct read_state *r, int at, size_t count, const struct read_path *path,
                               const struct bridge_hints *hints)
{
    const struct json *original = json_is(hints->original, JSON_OBJECT) ? hints->original : NULL;
    uint32_t had = original ? original->len : 0;
    charge(r, path, had * (size_t)VALUE_BYTES);
    struct json_member *members = ARENA_ARRAY(r->arena, struct json_member, had + count + 1);
    size_t n = 0, known = 0;
    bool same = original != NULL;
    for (uint32_t i = 0; i < had; i++) {
        const struct json_member *was = &original->members[i];
        struct bridge_hints member = {.original = &was->value, .schema = schema_of(hints->schema, was->key)};
        if (!read_member(r, at, was->key, path, &member, &members[n].value)) {
            same = false;
            continue;
        }
        known++;
        same = same && same_value(&members[n].value, &was->value);
        members[n++].key = was->key;
    }
    if (same && known == count)
        return *original;
    /* Keys that the original does not have are sorted by bytes, as Lua has no order. */
    struct str *added = ARENA_ARRAY(r->arena, struct str, count + 1);
    size_t add = 0;
    for (lua_pushnil(r->L); known < count && lua_next(r->L, at);) {
        lua_pop(r->L, 1);
        struct str key = sandbox_string(r->L, -1);
        if (!original || !json_get(original, key))
            added[add++] = arena_dup(r->arena, key);
    }
    if (known == count)
        lua_pop(r->L, 1);
    qsort(added, add, sizeof(*added), by_key);
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
        struct str name = sandbox_string(r->L, -1);
        if (name.at && utf8_prefix(name) != name.len)
            fail_at(r, path, "a field whose name is not UTF-8");
        if (name.at)
            keys.names++;
        else if (n >= 1 && n == floor(n) && n < 1e9)
            keys.numbers++;
        else
            fail_at(r, path, "a table for JSON has names, or positions 1, 2, 3, … as its keys");
        keys.highest = n > (double)keys.highest ? (size_t)n : keys.highest;
        if (keys.names + keys.numbers > MAX_NODES)
            fail_at(r, path, "more values than JSON of this size may have (100000)");
    }
    if (keys.names && keys.numbers)
        fail_at(r, path, "a table with both list items and named fields: JSON has lists or objects");
    if (keys.highest != keys.numbers)
        fail_at(r, path, "a list with a hole in it: put null there, or close the gap");
    return keys;
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
    if (path->depth >= MAX_DEPTH)
        fail_at(r, path, "nested deeper than 128");
    luaL_checkstack(r->L, 6, "nested too deep");
    struct bridge_hints moved = *hints;
    moved.original = bridge_origin(r->L, at);
    if (moved.original)
        hints = &moved;
    struct keys keys = count_keys(r, at, path);
    bool list = keys.numbers != 0;
    if (!list && !keys.names) { /* as marked, as it was, as the schema has it, or by its place */
        struct str type = json_str(json_get_text(hints->schema, "type"));
        const struct json *was = hints->original;
        list = mark == MARK_ARRAY || mark == MARK_OBJECT               ? mark == MARK_ARRAY
               : json_is(was, JSON_ARRAY) || json_is(was, JSON_OBJECT) ? was->type == JSON_ARRAY
               : str_is(type, "object") || str_is(type, "array")       ? str_is(type, "array")
                                                                       : path->up != NULL;
    }
    if (list)
        return read_list(r, at, keys.numbers, path, hints);
    return read_object(r, at, keys.names, path, hints);
}

static struct json read_value(struct read_state *r, int at, const struct read_path *path,
                              const struct bridge_hints *hints)
{
    struct read_path here = *path;
    struct str s;
    char problem[64];
    proxy_unwrap(r->L, at);
    sandbox_check_deadline(r->L); /* a table that was emptied is slow to look at */
    charge(r, path, VALUE_BYTES);
    if (++r->nodes > MAX_NODES)
        fail_at(r, path, "more values than JSON of this size may have (100000)");
    switch (lua_type(r->L, at)) {
    case LUA_TBOOLEAN:
        return json_is(hints->original, JSON_BOOL) && hints->original->truth == lua_toboolean(r->L, at)
                   ? *hints->original
                   : json_bool(lua_toboolean(r->L, at));
    case LUA_TNUMBER:
        return read_number(r, lua_tonumber(r->L, at), path, hints->original);
    case LUA_TSTRING:
        s = sandbox_string(r->L, at);
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
    struct read_state r = {.L = L,
                           .arena = arena,
                           .what = what,
                           .given = hints && !sandbox_context(L)->loading ? hints->original : NULL,
                           .written = &sandbox_bridge(L)->written,
                           .limit = limit_of(L)};
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
                                    struct arena_pool *pool)
{
    const struct json *value = bridge_read(L, at, what, hints, sandbox_context(L)->arena);
    if (hints && value == hints->original)
        bridge_charge(L, what, bridge_size(value));
    return json_pool_copy(pool, value);
}
