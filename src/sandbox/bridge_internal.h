/* Shared by bridge_push.c (to Lua) and bridge.c (from Lua). */
#ifndef TOOLGATE_SANDBOX_BRIDGE_INTERNAL_H
#define TOOLGATE_SANDBOX_BRIDGE_INTERNAL_H

#include "sandbox/bridge.h"
#include "sandbox/bridge_origins.h"
#include "sandbox/sandbox.h"

/* A JSON number as a Lua number. */
double bridge_number(const struct json *v);

/* A string that a lazy table converts only when it is read. */
static inline bool bridge_is_deferred(const struct json *member)
{
    return member->type == JSON_STRING && member->len >= BRIDGE_TEXT_LAZY_BYTES;
}

/* The value that the table at `at` was made from in this run, or NULL. */
const struct json *bridge_origin_of(lua_State *L, int at);

#endif
