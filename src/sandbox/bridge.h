/* Converts JSON to Lua and back. Values become plain tables. On the way back they are compared with the
 * originals, so that everything a policy did not change keeps its exact bytes, its key order, and numbers
 * that a double cannot hold; this includes tables that were moved and such numbers that were copied. */
#ifndef TOOLGATE_SANDBOX_BRIDGE_H
#define TOOLGATE_SANDBOX_BRIDGE_H

#include "json/value.h"

#include <lua.h>

struct arena;
struct arena_pool;

#define BRIDGE_MAX_BYTES 4194304u /* of JSON that one run of a hook may write, beside what it was given */

/* What one run of the sandbox has converted; all zero at its start. */
struct bridge_run {
    size_t written;     /* bytes of JSON that left Lua */
    const void *pinned; /* the table that the caller keeps */
    const struct json *pinned_value;
    bool recorded; /* other tables and numbers are recorded, in the registry */
};

/* Pushes the value; NULL pushes nil. JSON's null is the builtin `null`, which is truthy. If the run keeps
 * origins (sandbox_context), tables keep their bytes and key order even when they are moved. */
void bridge_push(lua_State *L, const struct json *value);

/* The same, for a table that the caller keeps on its stack until the run ends. */
void bridge_push_pinned(lua_State *L, const struct json *value);

struct bridge_hints {
    const struct json *original; /* the value in this place before; NULL: none */
    const struct json *schema;   /* whether an empty table is a list or an object; NULL: unknown */
};

/* The value at `at` as JSON in `arena`; the `original` itself if nothing was changed. Unchanged parts are
 * shared. Raises an error that begins with `what` and the path for anything that JSON does not have:
 * functions, holes, cycles, tables with both list items and named fields. An empty table is a list or an
 * object according to its mark, the original or the schema; otherwise a list inside another value, and an
 * object at the top. */
const struct json *bridge_read(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                               struct arena *arena);

/* The same as a deep copy, for a value that outlives the original. */
const struct json *bridge_read_copy(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                                    struct arena_pool *pool);

/* What a value counts in BRIDGE_MAX_BYTES. */
size_t bridge_size(const struct json *value);

/* Counts `bytes` that leave Lua in this run for the value named `what`; raises an error past the limit.
 * Each function that copies from Lua calls it, so that a table or string counts each time it is written. */
void bridge_charge(lua_State *L, const char *what, size_t bytes);

/* The JSON value that the table at `at` was made from in this run, or NULL; records `value` for the table on
 * top. */
const struct json *bridge_origin(lua_State *L, int at);
void bridge_record(lua_State *L, const struct json *value);

/* At the end of a run: its tables can be collected. */
void bridge_release(lua_State *L);

#endif
