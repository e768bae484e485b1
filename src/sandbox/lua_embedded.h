/* Runs a Lua file of this program, which is trusted: tables and words that are shorter in Lua than in C. */
#ifndef TOOLGATE_SANDBOX_LUA_EMBEDDED_H
#define TOOLGATE_SANDBOX_LUA_EMBEDDED_H

#include "json/value.h"

struct arena;

/* Calls a function of lua/provider_formats.lua with these values. Its first result is a string, in the arena;
 * empty: nil, or it raised an error. `more`: its second result or the error, as JSON. */
struct str lua_embedded_call(struct arena *arena, const char *function, const struct json *const *arguments,
                             int count, struct json *more);

#endif
