/*
 * Coercion of arguments: only where exactly one reading fits the schema and
 * nothing is lost. A valid value is never changed.
 */
#ifndef TOOLGATE_SCHEMA_COERCE_H
#define TOOLGATE_SCHEMA_COERCE_H

#include "schema/schema.h"

struct coerce_options {
    bool json; /* "{\"a\":1}" -> {"a":1}, "[1]" -> [1], where an object or array fits and a string does not */
    bool strings; /* "5" -> 5, "true" -> true, where only a number or boolean fits */
    bool lists;   /* "a" -> ["a"], where only a list fits */
    bool nulls;   /* null -> absent, for an optional property that does not allow null */
    bool enums;   /* case and outer space of an enum value */
    bool floats;  /* 5.0 -> 5 for an integer: valid already, but some tools reject the spelling */
};

extern const struct coerce_options coerce_options_all;

/* Returns `instance` itself if nothing was coerced. Call it only after schema_validate rejected the instance,
 * or with `floats` set. */
const struct json *schema_coerce(const struct schema *schema, const struct json *instance,
                                 const struct coerce_options *options, struct arena *arena);

#endif
