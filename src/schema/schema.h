/*
 * JSON Schema (draft-07, 2019-09, 2020-12): compiled once, then two passes
 * from one source: `schema_validate` says yes or no and allocates nothing;
 * `schema_explain` runs only on failure and finds every problem at once.
 */
#ifndef TOOLGATE_SCHEMA_SCHEMA_H
#define TOOLGATE_SCHEMA_SCHEMA_H

#include "base/err.h"
#include "json/value.h"
#include "schema/problem.h"

struct arena;
struct schema;

#define SCHEMA_MAX_BYTES      262144u /* of a schema's text; checked by whoever reads it */
#define SCHEMA_MAX_SUBSCHEMAS 10000u
#define SCHEMA_MAX_NESTING    64u
#define SCHEMA_MAX_STEPS      200000u /* evaluation steps a call; then SCHEMA_TOO_COMPLEX */

struct schema_registry; /* documents that $ref and $schema may name by URI; nothing is ever fetched */

/* Lives in the arena. The metaschemas of the three drafts need no adding. */
struct schema_registry *schema_registry_new(struct arena *arena);

/* `document` is borrowed for as long as schemas are compiled with it. The first of two with one URI stays. */
void schema_registry_add(struct schema_registry *registry, struct str uri, const struct json *document);

struct schema_options {
    bool annotate_format; /* true: `format` is an annotation only, as the specification's default; tool calls
                             assert it */
    const struct schema_registry *registry; /* NULL: metaschemas only */
    const char *default_dialect;            /* $schema where none is given; NULL: 2020-12 */
};

/*
 * `source` is borrowed and must outlive the schema, which lives in `arena`.
 * A real-world schema with a small fault (draft-4 boolean exclusiveMinimum,
 * duplicate enum entries, `"type":"any"`, nullable) is understood, and
 * `warnings` (may be NULL) says so; one that cannot be understood is ERR_SCHEMA
 * or ERR_LIMIT with a sentence that holds the JSON pointer.
 */
enum err schema_compile(struct arena *arena, const struct json *source, const struct schema_options *options,
                        struct schema **out, struct problems *warnings, struct why *why);

enum schema_validity { SCHEMA_VALID, SCHEMA_INVALID, SCHEMA_TOO_COMPLEX };

/* The boolean pass. */
enum schema_validity schema_validate(const struct schema *schema, const struct json *instance);

/* The collecting pass: adds every problem (texts in problems->arena). After SCHEMA_TOO_COMPLEX the list holds
 * a problem with code "too_complex". Returns what schema_validate would. */
enum schema_validity schema_explain(const struct schema *schema, const struct json *instance,
                                    struct problems *problems);

/*
 * The members of an object that no property or patternProperty of the schema
 * declares, nor a schema for additional ones, as warnings with code
 * "unknown_field" and, where a declared name is close and not in use, that as
 * the suggestion. Top level only; nothing where the schema names no properties
 * at all. The gate decides what it means (unknown = pass, drop or refuse).
 */
void schema_unknown_properties(const struct schema *schema, const struct json *instance,
                               struct problems *problems);

/* The instance without all of those, however many; itself where there are none. */
const struct json *schema_drop_unknown_properties(struct arena *arena, const struct schema *schema,
                                                  const struct json *instance);

/* The JSON the schema was compiled from. */
const struct json *schema_source(const struct schema *schema);

#endif
