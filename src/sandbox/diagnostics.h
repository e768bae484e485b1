/* Collects the problems of one file and raises them as one Lua error. */
#ifndef TOOLGATE_SANDBOX_DIAGNOSTICS_H
#define TOOLGATE_SANDBOX_DIAGNOSTICS_H

#include "base/str.h"

#include <lua.h>

struct arena;

#define DIAGNOSTICS_MAX       8u   /* problems of one file; further ones are counted */
#define DIAGNOSTICS_MAX_BYTES 240u /* of one */

struct diagnostics {
    struct arena *arena;
    const char *file; /* as the operator named it */
    struct str list[DIAGNOSTICS_MAX];
    size_t count;
};

/* Adds a problem unless the same one is reported for this line already. */
void diagnostics_add(struct diagnostics *diagnostics, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* If there are any, raises an error with one line "file:line: …" for each. */
void diagnostics_raise(lua_State *L, const struct diagnostics *diagnostics);

/* Cuts the first problem off the text of such an error. Of any other text, all of it. */
struct str diagnostics_next(struct str *text);

/* Pushes a value in words, for messages: `nothing`, `"abc"`, `a table`. */
void diagnostics_push_value(lua_State *L, int at);

#endif
