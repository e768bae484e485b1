/*
 * What changed, as a JSON Patch (RFC 6902): `remove`, `add` and `replace`
 * only, objects by key; an array whose length changed is replaced whole.
 */
#ifndef TOOLGATE_JSON_PATCH_H
#define TOOLGATE_JSON_PATCH_H

#include "json/value.h"

struct arena;

/* The operations that make `after` from `before`, as a JSON array value; its len is 0 where nothing changed.
 * `add` and `replace` carry the new value. Values are the same if json_equal says so and both are spelled
 * alike. */
struct json json_patch(struct arena *arena, const struct json *before, const struct json *after);

#endif
