/*
 * Dotted paths into a value: "options.limit" to read, set or remove one member; "items[].id" to collect what
 * stands at many places. A key that itself holds a dot wins over the path through it.
 */
#ifndef TOOLGATE_JSON_PATH_H
#define TOOLGATE_JSON_PATH_H

#include "json/value.h"

struct arena;

const struct json *json_path_get(const struct json *object, struct str path); /* NULL: nothing there */
/* A copy with that member set, or without it. Objects on the way are made if they are missing. */
struct json json_path_with(struct arena *arena, const struct json *object, struct str path,
                           struct json value);
struct json json_path_without(struct arena *arena, const struct json *object, struct str path);

/* The strings and numbers at a path like "items[].id", at most `max`; returns how many were written to `out`.
 */
size_t json_path_scalars(const struct json *value, struct str path, const struct json **out, size_t max);

#endif
