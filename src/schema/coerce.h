/*
 * Coercion of arguments: only where exactly one reading fits the schema and
 * nothing is lost. A valid value is never changed.
 */
#ifndef TOOLGATE_SCHEMA_COERCE_H
#define TOOLGATE_SCHEMA_COERCE_H

#include "schema/schema.h"

struct time_zone;

struct coerce_options {
    bool json; /* "{\"a\":1}" -> {"a":1}, "[1]" -> [1], where an object or array fits and a string does not */
    bool strings; /* "5" -> 5, "true" -> true, where only a number or boolean fits; 5, true -> "5", "true" for
                     a string */
    bool lists;   /* "a" -> ["a"], where only a list fits; ["a"] -> "a" where only a string fits */
    bool nulls;   /* null -> absent, for an optional property that does not allow null */
    bool enums;   /* case, separators and outer space of an enum value */
    bool floats;  /* 5.0 -> 5 for an integer: valid already, but some tools reject the spelling */
    bool names;   /* "filePath" -> "file_path": case, separators and a final s of a declared name */
    bool wrapped; /* {"arguments": {…}} -> {…}; done by the caller */
    bool words;   /* "yes", 1 -> true; true -> "True" of an enum; "", "None" -> absent, as null is */
};

extern const struct coerce_options coerce_options_all;

/* Returns `instance` itself if nothing was coerced. Call it only after schema_validate rejected the instance,
 * or with `floats` set. */
const struct json *schema_coerce(const struct schema *schema, const struct json *instance,
                                 const struct coerce_options *options, struct arena *arena,
                                 struct schema_work *work);

/* For a valid instance with members that no property declares: renames those that misspell an unused declared
 * name, if the result is valid too. Otherwise the instance itself. */
const struct json *schema_coerce_names(const struct schema *schema, const struct json *instance,
                                       const struct coerce_options *options, struct arena *arena,
                                       struct schema_work *work);

/* For an instance that is valid only because date-times may lack their zone: adds the offset that the zone
 * has at that time, or, without a zone, a warning of code "format" for each. A time that the zone's clocks
 * skip or show twice is an error. */
const struct json *schema_coerce_times(const struct schema *schema, const struct json *instance,
                                       const struct time_zone *zone, struct problems *problems,
                                       struct schema_work *work);

/* Whether two names differ in case, separators and a final s alone. */
bool schema_names_alike(struct str one, struct str other);

#endif
