/* Several diagnostics about one file, handed over as one error. Only files of this room include this header.
 */
#ifndef TOOLGATE_SANDBOX_DIAGNOSTICS_H
#define TOOLGATE_SANDBOX_DIAGNOSTICS_H

#include "base/str.h"

#include <lua.h>

struct arena;

#define DIAGNOSTICS_MAX       8u   /* about one file; the rest is counted */
#define DIAGNOSTICS_MAX_BYTES 240u /* one */

struct diagnostics {
    struct arena *arena;
    const char *file; /* as the operator knows it */
    struct str list[DIAGNOSTICS_MAX];
    size_t count;
};

/* What is said of the same line already is not said again. */
void diagnostics_add(struct diagnostics *diagnostics, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Raises an error with all of them, one a line and each with its place, where there are any. */
void diagnostics_raise(lua_State *L, const struct diagnostics *diagnostics);

/* Cuts the first complaint off such a text, or off any other: then all of it. */
struct str diagnostics_next(struct str *text);

#endif
