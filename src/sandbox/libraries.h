/*
 * What policies may have of Lua's own libraries, and the two guards that
 * shared tables need: a complaint for names that do not exist, and a wrapper
 * that cannot be written to. Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_LIBRARIES_H
#define TOOLGATE_SANDBOX_LIBRARIES_H

#include "base/str.h"

#include <lua.h>

#define LIBRARIES_NAMES_MAX    256 /* candidates for "did you mean" */
#define LIBRARIES_SENTENCE_MAX 240 /* bytes of "there is no …" */

/* Opens the stock libraries into the globals of the state, which policies never see. */
void libraries_open(lua_State *L);

/* Puts string, table, math and bit for policies into the table at `found`, and locks the metatable of
 * strings. */
void libraries_add(lua_State *L, int found);

/* Reading what the table on top has not got raises "there is no library.name", for NULL "no word or global",
 * with the closest name. */
void libraries_guard_missing(lua_State *L, const char *library);

/* "there is no library.name", for NULL "no word or global", and the closest of the names. */
void libraries_format_missing(char *out, size_t size, const char *library, struct str name,
                              const struct str *names, size_t count);

/* Adds the keys of the table at `at` that are texts to the `count` names in out[LIBRARIES_NAMES_MAX]; how
 * many there are then. */
size_t libraries_collect_names(lua_State *L, int at, struct str *out, size_t count);

/* Replaces the table on top by a userdata that reads from it and refuses writes. */
void libraries_wrap_read_only(lua_State *L, const char *name);

/* Pushes the table of a value at `at` that was wrapped so; false, and nothing pushed, for any other. */
bool libraries_push_wrapped(lua_State *L, int at);

#endif
