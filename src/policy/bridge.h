/*
 * JSON to Lua and back. Values go over as plain tables, eagerly; what comes
 * back is compared with what went over, so that whatever a policy left alone
 * keeps its very bytes, its key order and numbers that a double cannot hold.
 *
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_POLICY_BRIDGE_H
#define TOOLGATE_POLICY_BRIDGE_H

#include "json/value.h"

#include <lua.h>

struct arena;

#define BRIDGE_MAX_DEPTH 128
#define BRIDGE_MAX_NODES 100000u

/* Pushes the value (NULL pushes nil). JSON's null is the word `null`, truthy as every value but nil and
 * false. */
void bridge_push(lua_State *L, const struct json *value);

struct bridge_hints {
    const struct json *original; /* what stood in this place before; NULL: nothing */
    const struct json *schema;   /* decides whether an empty table is a list or an object; NULL: unknown */
    bool by_table; /* tables are known by what they came from (word_json_source), wherever they are now */
};

/*
 * The value at `at` as JSON in `arena`: `original` itself where nothing was
 * changed. Raises an error that begins with `what` and the path where the
 * value holds what JSON cannot: functions, holes, cycles, both list items and
 * named fields. An empty table is what the original, a mark or the schema
 * says; else a list inside of something, and an object on its own.
 */
const struct json *bridge_read(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                               struct arena *arena);

#endif
