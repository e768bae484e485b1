/*
 * Converts JSON to Lua and back. Values become plain tables. On the way back they
 * are compared with the originals, so that everything a policy did not change
 * keeps its exact bytes, its key order, and numbers that a double cannot hold;
 * this includes tables that were moved and such numbers that were copied.
 */
#ifndef TOOLGATE_SANDBOX_BRIDGE_H
#define TOOLGATE_SANDBOX_BRIDGE_H

#include "json/value.h"

#include <lua.h>

struct arena;

#define BRIDGE_MAX_DEPTH 128
#define BRIDGE_MAX_NODES 100000u
#define BRIDGE_MAX_BYTES                                                                                     \
    4194304u /* of JSON that one run of a hook may write, beside the size of the value that it was given */
#define BRIDGE_LOAD_MAX_BYTES  16777216u /* the same for loading one file */
#define BRIDGE_VALUE_BYTES     8u        /* that each value counts, besides its text and its key */
#define BRIDGE_TEXT_LAZY_BYTES 65536u /* a field's string of that size is converted when it is first read */

/* Pushes the value; NULL pushes nil. JSON's null is the builtin `null`, which is truthy. If the run has
 * origins, tables keep their bytes and key order even when they are moved. */
void bridge_push(lua_State *L, const struct json *value);

/* The same, for a table that the caller keeps on its stack until the run ends. */
void bridge_push_pinned(lua_State *L, const struct json *value);

/* Converts all deferred strings of the table at `at`, which is an ordinary table then. `at` must be an
 * absolute index. */
void bridge_materialize(lua_State *L, int at);

/* Once, when the state is created. */
void bridge_open(lua_State *L);

/* Whether a file with this source may iterate over fields (pairs, next), so that no string may be deferred.
 */
bool bridge_needs_eager(struct str source);

struct bridge_hints {
    const struct json *original; /* the value in this place before; NULL: none */
    const struct json *schema;   /* whether an empty table is a list or an object; NULL: unknown */
    bool by_table;               /* while loading: also look tables up by bridge_json_source */
};

/*
 * The value at `at` as JSON in `arena`; the `original` itself if nothing was
 * changed. Unchanged parts are shared. Raises an error that begins with `what`
 * and the path for anything that JSON does not have: functions, holes, cycles,
 * tables with both list items and named fields. An empty table is a list or an
 * object according to its mark, the original or the schema; otherwise a list
 * inside another value, and an object at the top.
 */
const struct json *bridge_read(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                               struct arena *arena);

/* The same as a deep copy in `arena`, for a value that outlives the original. */
const struct json *bridge_read_copy(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                                    struct arena *arena);

/* What a value counts in BRIDGE_MAX_BYTES. */
size_t bridge_size(const struct json *value);

/* Counts `bytes` that leave Lua in this run for the value named `what`; raises an error past the limit.
 * Whatever copies from Lua calls it, so that a table or string counts each time it is written. */
void bridge_charge(lua_State *L, const char *what, size_t bytes);

/* While a file loads: the JSON value that the table at `at` was made from, or NULL; records `value` for the
 * table on top; forgets all. */
const struct json *bridge_json_source(lua_State *L, int at);
void bridge_remember_json(lua_State *L, const struct json *value);
void bridge_forget_json(lua_State *L);

#endif
