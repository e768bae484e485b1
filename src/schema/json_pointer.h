/* JSON pointers (RFC 6901), token by token. Internal to this room. */
#ifndef TOOLGATE_SCHEMA_JSON_POINTER_H
#define TOOLGATE_SCHEMA_JSON_POINTER_H

#include "base/buf.h"
#include "json/value.h"

/* Appends "/" and the token, escaped. */
void json_pointer_put(struct buf *out, struct str token);

/* The child of `at` that the first token of *pointer names, or NULL; *pointer moves to the next slash. An
 * escaped token is decoded in the arena. */
const struct json *json_pointer_step(struct arena *arena, const struct json *at, struct str *pointer);

#endif
