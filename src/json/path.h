/*
 * Dotted paths into a value: "options.limit" reads, sets or removes one member;
 * "items[].id" collects values from many places. A key that contains a dot has
 * precedence over the path through it.
 */
#ifndef TOOLGATE_JSON_PATH_H
#define TOOLGATE_JSON_PATH_H

#include "json/value.h"

struct arena;

const struct json *json_path_get(const struct json *object, struct str path); /* NULL: absent */
/* The object with that member set, or removed. Missing objects on the path are created. */
struct json json_path_with(struct arena *arena, const struct json *object, struct str path,
                           struct json value);
struct json json_path_without(struct arena *arena, const struct json *object, struct str path);

/* Writes the strings and numbers at a path like "items[].id" to `out`, at most `max`; returns how many. */
size_t json_path_scalars(const struct json *value, struct str path, const struct json **out, size_t max);

#endif
