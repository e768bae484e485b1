/* The part of Lua's standard libraries that policies may use, and two guards for shared tables: an error for
 * names that do not exist, and a read-only wrapper. */
#ifndef TOOLGATE_SANDBOX_LIBRARIES_H
#define TOOLGATE_SANDBOX_LIBRARIES_H

#include "base/str.h"

#include <lauxlib.h>

struct arena;

#define LIBRARIES_NAMES_MAX 256 /* candidates for "did you mean" */

/* Opens the stock libraries as globals of the state, which policies cannot access. */
void libraries_open(lua_State *L);

/* Adds string, table, math and bit to the table at `builtins`, and locks the metatable of strings. */
void libraries_add(lua_State *L, int builtins);

/* From now on, reading a missing key of the table on top raises "there is no library.name" (for NULL "no word
 * or global") with the closest name. */
void libraries_guard_missing(lua_State *L, const char *library);

/* That message, in the arena. */
struct str libraries_missing(struct arena *arena, const char *library, struct str name,
                             const struct str *names, size_t count);

/* Writes the string keys of the table at `at` to out[LIBRARIES_NAMES_MAX]; returns how many. */
size_t libraries_collect_names(lua_State *L, int at, struct str *out);

/* Replaces the table on top by a userdata that forwards reads and refuses writes. */
void libraries_wrap_read_only(lua_State *L, const char *name);

/* string_library.c: the functions that replace LuaJIT's own, upvalue 1 of each being the stock one, and
 * tostring. */
extern const luaL_Reg string_library[];
int string_library_gmatch_step(lua_State *L); /* the iterator that gmatch returns; it keeps its position */
int string_library_tostring(lua_State *L);

/* Pushes the table behind such a userdata at `at`; for any other value pushes nothing and returns false. */
bool libraries_push_wrapped(lua_State *L, int at);

#endif
