/*
 * The difference of two values as a JSON Patch (RFC 6902). Uses `remove`,
 * `add` and `replace` only; an array whose length changed is replaced whole.
 */
#ifndef TOOLGATE_JSON_PATCH_H
#define TOOLGATE_JSON_PATCH_H

#include "json/value.h"

struct arena;

/* The operations that turn `before` into `after`, as a JSON array; empty if nothing changed. Two numbers with
 * different literals count as a change, even if they are equal. */
struct json json_patch(struct arena *arena, const struct json *before, const struct json *after);

#endif
