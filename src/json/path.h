/*
 * Dotted paths into a value: "options.limit" reads, sets or removes one member;
 * "items[].id" collects values from many places. A key that contains a dot has
 * precedence over the path through it.
 */
#ifndef TOOLGATE_JSON_PATH_H
#define TOOLGATE_JSON_PATH_H

#include "base/buf.h"
#include "json/value.h"

struct arena;

const struct json *json_path_get(const struct json *object, struct str path); /* NULL: absent */
/* The object with that member set, or removed. No object is created: where one is missing, the rest of the
 * path is the key that is set. */
struct json json_path_with(struct arena *arena, const struct json *object, struct str path,
                           struct json value);
struct json json_path_without(struct arena *arena, const struct json *object, struct str path);

/* Writes the strings and numbers at a path like "items[].id" to `out`, at most `max`; returns how many.
 * `out` NULL: only counts them. */
size_t json_path_scalars(const struct json *value, struct str path, const struct json **out, size_t max);

/* JSON pointers (RFC 6901), token by token. Appends "/" and the token, escaped. */
void json_pointer_put(struct buf *out, struct str token);

/* The child of `at` that the first token of *pointer names, or NULL; *pointer moves to the next slash. An
 * index of an array has no sign and at most nine digits. */
const struct json *json_pointer_step(struct arena *arena, const struct json *at, struct str *pointer);

/* What "#/…" names in the document; NULL: nothing, or it is another reference. */
const struct json *json_pointer_find(struct arena *arena, const struct json *document, struct str reference);

#endif
