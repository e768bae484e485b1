/* The arguments that a tool's schema declares secret: `writeOnly: true`, `format: "password"`. */
#ifndef TOOLGATE_CATALOG_SECRET_FIELDS_H
#define TOOLGATE_CATALOG_SECRET_FIELDS_H

#include "json/value.h"

struct arena;

#define SECRET_FIELDS_MAX       64u
#define SECRET_FIELDS_DEPTH_MAX 16u    /* of nested schemas and references */
#define SECRET_FIELDS_STEPS_MAX 20000u /* schemas that are looked at: references multiply */

/* Their paths, as in a policy's `redact`: "account.pin", "keys[].value". `schema` NULL: none. */
size_t secret_fields_find(struct arena *arena, const struct json *schema, const struct str **paths);

#endif
