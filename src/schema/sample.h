/*
 * An instance that a schema accepts, made from nothing but the schema: for a
 * first call of a tool that nobody has written an example for. What the schema
 * names itself comes first (const, enum, default, examples), then the simplest
 * value that its keywords allow.
 */
#ifndef TOOLGATE_SCHEMA_SAMPLE_H
#define TOOLGATE_SCHEMA_SAMPLE_H

#include "schema/schema.h"

#define SAMPLE_MAX_NODES 2000u
#define SAMPLE_DEPTH_MAX 12u

enum sample_extent {
    SAMPLE_REQUIRED, /* what must be there */
    SAMPLE_ALL       /* every declared property, too */
};

/* True: `out` is an instance that schema_validate has accepted. False where none was found: the schema
 * accepts nothing, or says what it wants in a way that this does not work out (not, if, contains, a pattern
 * with lookaround). */
bool schema_sample(struct arena *arena, const struct schema *schema, enum sample_extent extent,
                   struct json *out);

/* A text that the pattern matches, for the plain ones: literals, classes, groups, counts. STR_NONE: too hard.
 * Bounded by SAMPLE_TEXT_MAX_BYTES. */
#define SAMPLE_TEXT_MAX_BYTES 256u
struct str sample_pattern(struct arena *arena, struct str pattern);

#endif
