/* What the files of the bridge share: bridge_push.c (out), bridge_same.c (did anything change) and bridge.c
 * (in). Nobody else includes this header. */
#ifndef TOOLGATE_SANDBOX_BRIDGE_INTERNAL_H
#define TOOLGATE_SANDBOX_BRIDGE_INTERNAL_H

#include "sandbox/bridge.h"
#include "sandbox/bridge_origins.h"
#include "sandbox/sandbox.h"

/* A JSON number as Lua has it. */
double bridge_number(const struct json *v);

/* A text that a lazy table leaves out until somebody reads it. */
static inline bool bridge_is_deferred(const struct json *member)
{
    return member->type == JSON_STRING && member->len >= BRIDGE_TEXT_LAZY_BYTES;
}

/* The value that the table at `at` came from in this run, or NULL. */
const struct json *bridge_origin_of(lua_State *L, int at);

/* Is the value at `at` what `original` would be pushed as? Bounded by the original's own shape. */
bool bridge_is_unchanged(lua_State *L, int at, const struct json *original);

#endif
