/*
 * An instance that a schema accepts, made from the schema alone: an example
 * call of a tool that has none. Values that the schema names (const, enum,
 * default, examples) come first, then the simplest value its keywords allow.
 */
#ifndef TOOLGATE_SCHEMA_SAMPLE_H
#define TOOLGATE_SCHEMA_SAMPLE_H

#include "schema/schema.h"

#define SAMPLE_MAX_NODES 2000u
#define SAMPLE_DEPTH_MAX 12u

enum sample_extent {
    SAMPLE_REQUIRED, /* required properties */
    SAMPLE_ALL       /* every declared property */
};

/* True: schema_validate has accepted `out`. False if no sample was found: the schema accepts nothing, or uses
 * keywords that this does not work out (not, if, contains, a pattern with lookaround). */
bool schema_sample(struct arena *arena, const struct schema *schema, enum sample_extent extent,
                   struct json *out);

/* A string of at most SAMPLE_TEXT_MAX_BYTES that matches a pattern of literals, classes, groups and counts;
 * STR_NONE for any other pattern. */
#define SAMPLE_TEXT_MAX_BYTES 256u
struct str sample_pattern(struct arena *arena, struct str pattern);

#endif
