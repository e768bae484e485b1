/* Converts JSON to the plain Lua tables of operators' specs and of commands (lua/cli), and back. An array
 * has a metatable, so that an empty one stays an array; null is a special value. Policies use
 * sandbox/bridge.h instead, which preserves unchanged bytes. One Lua file of this program, which is trusted,
 * is run here, too: tables and words that are shorter in Lua than in C. */
#ifndef TOOLGATE_SANDBOX_LUA_JSON_H
#define TOOLGATE_SANDBOX_LUA_JSON_H

#include "json/value.h"

#include <lua.h>

struct arena;

#define LUA_JSON_DEPTH_MAX 100

/* Adds `null` and `array` to the table on top. */
void lua_json_constants(lua_State *L);

/* From now on the state remembers the order of objects' members. */
void lua_json_keep_order(lua_State *L);
/* Pushes the names of the object's members at `at` in that order; nil: it was not pushed so. */
void lua_json_push_keys(lua_State *L, int at);

enum lua_json_form {
    LUA_JSON_SPEC,   /* numbers are doubles */
    LUA_JSON_ANSWER, /* a member that is null is not there; a number that a double does not hold is a string
                      */
    LUA_JSON_EXACT   /* such a number is a table of which lua_json_read makes the same number */
};

/* NULL pushes nil. */
void lua_json_push(lua_State *L, const struct json *value, enum lua_json_form form);

/* The value at `at`, in `arena`. A table is an array if it is marked or has items, else an object. Raises an
 * error that begins with `what` if JSON has no such value. */
const struct json *lua_json_read(lua_State *L, int at, const char *what, struct arena *arena);

/* Calls a function of lua/provider_formats.lua with these values. Its first result is a string, in the arena;
 * empty: nil, or it raised an error. `more`: its second result or the error, as JSON. */
struct str lua_embedded_call(struct arena *arena, const char *function, const struct json *const *arguments,
                             int count, struct json *more);

/* The same in pieces of well below a millisecond; one such call at a time, beside which others may be made at
 * once. */
void lua_embedded_begin(const char *function, const struct json *const *arguments, int count);
/* False: it has ended, with these results. */
bool lua_embedded_next(struct arena *arena, struct str *text, struct json *more);
void lua_embedded_drop(void);

#endif
