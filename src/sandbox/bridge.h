/*
 * JSON to Lua and back. Values go over as plain tables, eagerly; what comes
 * back is compared with what went over, so that whatever a policy left alone
 * keeps its very bytes, its key order and numbers that a double cannot hold;
 * a table also where it was moved to another place, and a number that a double
 * cannot hold where it was copied.
 *
 * Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_BRIDGE_H
#define TOOLGATE_SANDBOX_BRIDGE_H

#include "json/value.h"

#include <lua.h>

struct arena;

#define BRIDGE_MAX_DEPTH       128
#define BRIDGE_MAX_NODES       100000u
#define BRIDGE_TEXT_LAZY_BYTES 65536u /* a field's text of that size goes over when it is read first */

/* Pushes the value (NULL pushes nil). JSON's null is the word `null`, truthy as every value but nil and
 * false. Where the run has origins, tables keep their bytes and key order wherever a policy puts them. */
void bridge_push(lua_State *L, const struct json *value);

/* The same, where the caller keeps the table on its stack until the run ends. */
void bridge_push_pinned(lua_State *L, const struct json *value);

/* Lets go of what the last run was given: it is garbage then. */
void bridge_release(lua_State *L);

/* Puts in all texts that the table at `at` left out until somebody reads them; it is a table as any other
 * from then on. `at` is no pseudo-index and not relative to the top. */
void bridge_materialize(lua_State *L, int at);

/* At set-up of the state. */
void bridge_open(lua_State *L);

/* Does a file with this text go over the fields of tables without naming them? Then nothing may be lazy. */
bool bridge_needs_eager(struct str source);

struct bridge_hints {
    const struct json *original; /* what stood in this place before; NULL: nothing */
    const struct json *schema;   /* decides whether an empty table is a list or an object; NULL: unknown */
    bool by_table;               /* loading: tables are known by bridge_json_source, too */
};

/*
 * The value at `at` as JSON in `arena`: `original` itself where nothing was
 * changed. Raises an error that begins with `what` and the path where the
 * value holds what JSON cannot: functions, holes, cycles, both list items and
 * named fields. An empty table is what the original, a mark or the schema
 * says; else a list inside of something, and an object on its own. What was
 * not changed is shared with what went over.
 */
const struct json *bridge_read(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                               struct arena *arena);

/* The same, with nothing of it outside of `arena`: for what is kept longer than what it came from. */
const struct json *bridge_read_copy(lua_State *L, int at, const char *what, const struct bridge_hints *hints,
                                    struct arena *arena);

/* While a file loads: the JSON value that the table at `at` was made from, NULL if none; the table on top is
 * remembered as made from `value`; all are forgotten. */
const struct json *bridge_json_source(lua_State *L, int at);
void bridge_remember_json(lua_State *L, const struct json *value);
void bridge_forget_json(lua_State *L);

#endif
