/*
 * Published schemas that contradict themselves: rewritten so that the contradicting keyword no longer
 * refuses. Works on the JSON before schema_compile; validation itself knows nothing of it. For the arguments
 * of tools only: nothing here is JSON Schema's.
 */
#ifndef TOOLGATE_SCHEMA_CONTRADICTION_H
#define TOOLGATE_SCHEMA_CONTRADICTION_H

#include "json/value.h"
#include "schema/problem.h"

/*
 * The schema without its contradictions, in the arena; `schema` itself if none exist. Each is added to
 * `found` as a warning: its path is a JSON pointer, its code one of "required_has_default",
 * "required_is_optional", "required_fits_nothing", "enum_outside_type", "bounds_cross".
 *
 * Subschemas of `oneOf`, `not` and `if` stay as they are: there, less strict is not always more lenient. A
 * definition that they share with others is softened, so a value may fit the given schema only: ask both.
 */
const struct json *schema_soften(struct arena *arena, const struct json *schema, struct problems *found);

/* `anyOf` or `oneOf` of an object that declares its properties and one that is open to any: without the open
 * one, which would hide every problem of the other. `schema` itself if none exists. */
const struct json *schema_drop_open_branches(struct arena *arena, const struct json *schema);

/* Whether the schema's `type`, or its `nullable`, has the value's type. A name that is no type has all. */
bool schema_type_allows(const struct json *schema, const struct json *value);

/* Whether a parameter's description says that it may be left out: "Optional …", "(optional)", "defaults to
 * …", "if omitted …"; not "not optional", and not what speaks of an error if it is missing. */
bool description_says_optional(struct str description);

#endif
