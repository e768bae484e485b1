/*
 * JSON as an operator's spec writes and reads it: plain Lua tables. An array
 * has a metatable, so that an empty one stays one; null is a value of its own.
 * (Policies have a bridge of their own, which keeps what they don't touch.)
 */
#ifndef TOOLGATE_MODULE_MODULE_VALUE_H
#define TOOLGATE_MODULE_MODULE_VALUE_H

#include "json/value.h"

#include <lua.h>

struct arena;

#define MODULE_VALUE_DEPTH_MAX 100

/* Puts null, array and object into the table on top: the words of this file. */
void module_value_constants(lua_State *L);

/* Numbers become what a double holds; NULL pushes nil. */
void module_value_push(lua_State *L, const struct json *value);

/* The value at `at`. A table is an array where it is marked or has items, else an object. Raises an error
 * that begins with `what` where JSON has no such value. */
const struct json *module_value_read(lua_State *L, int at, const char *what, struct arena *arena);

#endif
