/*
 * Masks that an output schema accepts: walks the schema beside the value, and makes a sample of a field's
 * schema where the mask of its type does not fit (minItems, enum, format, const). Only redact*.c include
 * this header.
 */
#ifndef TOOLGATE_RESULT_REDACT_FIT_H
#define TOOLGATE_RESULT_REDACT_FIT_H

#include "schema/schema.h"

struct redact_fit;

struct redact_fit *redact_fit_new(struct arena *arena, const struct schema *output);
const struct json *redact_fit_root(const struct redact_fit *fit);

/* The schema of a member or an item, through $ref and the branches of allOf, anyOf and oneOf; NULL: none. */
const struct json *redact_fit_property(const struct redact_fit *fit, const struct json *schema,
                                       struct str key);
const struct json *redact_fit_item(const struct redact_fit *fit, const struct json *schema, uint32_t index);
bool redact_fit_requires(const struct redact_fit *fit, const struct json *schema, struct str key);

/* `mask` if the schema accepts it, else a sample of the schema; NULL: neither, and the field is optional. If
 * it is required, `mask`, and the result does not fit. */
const struct json *redact_fit_mask(const struct redact_fit *fit, const struct json *schema,
                                   const struct json *mask, bool is_required);

#endif
