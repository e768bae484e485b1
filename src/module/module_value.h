/*
 * Converts JSON to the plain Lua tables of operators' specs and back. An array
 * has a metatable, so that an empty one stays an array; null is a special value.
 * Policies use sandbox/bridge.h instead, which preserves unchanged bytes.
 */
#ifndef TOOLGATE_MODULE_MODULE_VALUE_H
#define TOOLGATE_MODULE_MODULE_VALUE_H

#include "json/value.h"

#include <lua.h>

struct arena;

#define MODULE_VALUE_DEPTH_MAX 100

/* Adds `null` and `array` to the table on top. */
void module_value_constants(lua_State *L);

/* Numbers become doubles; NULL pushes nil. */
void module_value_push(lua_State *L, const struct json *value);

/* The value at `at`, in `arena`. A table is an array if it is marked or has items, else an object. Raises an
 * error that begins with `what` if JSON has no such value. */
const struct json *module_value_read(lua_State *L, int at, const char *what, struct arena *arena);

#endif
